"""Objects as JSON and arrays, and back: what a file holds instead of a pickle.

One idea: a fitted model is numbers, strings, containers of them, arrays, indexes, and records of the
library. Each has one form here, and each form builds one of these and nothing else. Arrays stand beside the
JSON, under the path that leads to them.
"""

from __future__ import annotations

import datetime
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, Union, get_args, get_origin

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fracts.index_packing import (
    is_frame,
    put_column_together,
    put_index_together,
    take_column_apart,
    take_index_apart,
)
from fracts.records import RECORDS, record_name

Arrays = dict[str, NDArray[Any]]

_PLAIN = "fiub"  # kinds of dtypes that stand in a file as they are


def pack(value: Any, at: str, arrays: Arrays) -> Any:
    """`value` as JSON; its arrays go into `arrays`, named by the path `at`.

    Raises TypeError for what has no form here: functions, models of other libraries, objects of any class.

    Examples
    --------
    >>> arrays = {}
    >>> packed = pack({"weights": np.ones(2), "order": (1, 0)}, "model", arrays)
    >>> packed["dict"][1], list(arrays)
    (['order', {'tuple': [1, 0]}], ['model.weights'])
    >>> unpack(packed, arrays)
    {'weights': array([1., 1.]), 'order': (1, 0)}
    """
    if isinstance(value, np.datetime64 | np.timedelta64):
        return {"time": [value.dtype.str, int(value.astype(np.int64))]}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray):
        return _pack_array(value, at, arrays)
    if isinstance(value, pd.Index):
        return _pack_index(value, at, arrays)
    if is_frame(value):
        return _pack_frame(value, at, arrays)
    if isinstance(value, nw.Implementation):
        return {"implementation": value.name.lower()}
    if isinstance(value, pd.Timestamp):
        return {"stamp": _pack_index(pd.DatetimeIndex([value]), at, arrays)}
    if isinstance(value, datetime.tzinfo):
        return {"zone": str(value)}
    name = record_name(type(value))
    if name in RECORDS:
        return {"record": name, "fields": _pack_each(_fields_of(value), at, arrays)}
    if isinstance(value, dict):
        return {"dict": [[pack(k, at, arrays), pack(v, f"{at}.{k}", arrays)] for k, v in value.items()]}
    if type(value) in (list, tuple):
        items = [pack(item, f"{at}.{i}", arrays) for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    raise TypeError(
        f"{at} is a {type(value).__name__}, which a file without code cannot hold. "
        "Take it out before saving (`set_params` for a parameter), or pickle the model."
    )


def unpack(tree: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """What `pack` made `tree` and `arrays` of; ValueError for any other tree."""
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    if isinstance(tree, list):
        return [unpack(item, arrays) for item in tree]
    form = next((form for form in _FORMS if isinstance(tree, dict) and form in tree), None)
    if form is None:
        raise ValueError(f"{str(tree)[:80]} is no form that a file of fracts has.")
    try:
        return _FORMS[form](tree, arrays)
    except (TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ValueError(f"a {form} does not hold together: {error}.") from error


def _pack_array(array: NDArray[Any], at: str, arrays: Arrays) -> Any:
    tree: dict[str, Any] = {"array": at, "dtype": array.dtype.str, "shape": list(array.shape)}
    if array.dtype.kind in "OU":
        return tree | {"items": [pack(item, at, arrays) for item in array.ravel().tolist()]}
    if array.dtype.kind not in _PLAIN + "cmM":
        raise TypeError(f"{at} is an array of dtype {array.dtype}, which has no form in a file.")
    # The order in memory is kept: sums over another one may round otherwise.
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        tree["transposed"], array = True, array.T
    array = np.array(array, order="C")
    stored = {"c": np.float64 if array.itemsize == 16 else np.float32, "m": np.int64, "M": np.int64}
    arrays[at] = array.view(stored[array.dtype.kind]) if array.dtype.kind in stored else array
    return tree


def _unpack_array(tree: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    dtype, shape = np.dtype(tree["dtype"]), tuple(tree["shape"])
    if dtype.kind in "OU":
        found: NDArray[Any] = np.empty(len(tree["items"]), dtype=dtype)
        found[:] = [unpack(item, arrays) for item in tree["items"]]
        return found.reshape(shape)
    found = arrays[tree["array"]]
    if dtype.kind not in _PLAIN:
        found = found.view(dtype)
    if tree.get("transposed"):
        found = found.T
    if found.dtype != dtype or found.shape != shape:
        raise ValueError(
            f"the array {tree['array']} is {found.dtype} of shape {found.shape}; "
            f"the file says {dtype} of shape {shape}."
        )
    return found


def _pack_index(index: pd.Index[Any], at: str, arrays: Arrays) -> Any:
    return {"index": _pack_each(take_index_apart(index) | {"name": index.name}, at, arrays)}


def _unpack_index(tree: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> pd.Index[Any]:
    parts = {part: unpack(value, arrays) for part, value in tree["index"].items()}
    return put_index_together(parts, parts.pop("name"))


def _pack_frame(frame: Any, at: str, arrays: Arrays) -> Any:
    return {"frame": _pack_each(take_column_apart(frame), at, arrays)}


def _unpack_frame(tree: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    parts = tree["frame"]
    return put_column_together(parts["library"], unpack(parts["column"], arrays))


def _fields_of(value: Any) -> dict[str, Any]:
    if hasattr(value, "_packed"):
        return dict(value._packed())
    names = [f.name for f in fields(value) if f.init] if is_dataclass(value) else value._fields
    return {name: getattr(value, name) for name in names}


def _pack_each(named: dict[str, Any], at: str, arrays: Arrays) -> dict[str, Any]:
    return {name: pack(value, f"{at}.{name}", arrays) for name, value in named.items()}


def _unpack_record(tree: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    cls = _class_of(tree["record"])
    values = {name: unpack(value, arrays) for name, value in tree["fields"].items()}
    if hasattr(cls, "_unpacked"):
        return cls._unpacked(**values)
    for name, value in values.items():
        if not _fits(value, _hint(cls, name)):
            raise ValueError(f"{tree['record']}.{name} is {_told(value)}, which it cannot be.")
    return cls(**values)


def _class_of(name: str) -> type[Any]:
    public = import_module("fracts")
    if name not in RECORDS and name in public.__all__ and name[0].isupper():
        getattr(public, name)  # loads the room, which makes the class known
    if name not in RECORDS:
        raise ValueError(
            f"{name!r} is no class that a file may hold. If it is yours, import its module first."
        )
    return RECORDS[name]


def _hint(cls: type[Any], name: str) -> Any:
    """The type hint of a field. pandas' generic indexes have their parameters for type checkers alone."""
    hint = cls.__annotations__[name]
    if not isinstance(hint, str):
        return hint
    scope = vars(import_module(cls.__module__))
    try:
        return eval(hint, scope)
    except TypeError:
        return eval(hint.split("[")[0], scope)


def _fits(value: Any, hint: Any) -> bool:
    """Whether `value` is what the type hint of a record's field says, as far as this can be seen."""
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if origin is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin is np.ndarray:
        kind = get_args(inner[1])[0] if len(inner) > 1 else Any
        return isinstance(value, np.ndarray) and (kind is Any or np.issubdtype(value.dtype, kind))
    if origin is tuple and isinstance(value, tuple) and len(inner) == 2 and inner[1] is Ellipsis:
        return all(_fits(item, inner[0]) for item in value)
    if origin is Any or not isinstance(origin, type) or getattr(origin, "_is_protocol", False):
        return True
    return isinstance(value, origin)


def _told(value: Any) -> str:
    return f"an array of {value.dtype}" if isinstance(value, np.ndarray) else repr(value)[:60]


_FORMS: dict[str, Callable[[dict[str, Any], Mapping[str, NDArray[Any]]], Any]] = {
    "float": lambda tree, arrays: float(tree["float"]),
    "time": lambda tree, arrays: np.int64(tree["time"][1]).view(np.dtype(tree["time"][0])),
    "zone": lambda tree, arrays: pd.DatetimeTZDtype("ns", tree["zone"]).tz,
    "tuple": lambda tree, arrays: tuple(unpack(tree["tuple"], arrays)),
    "dict": lambda tree, arrays: {unpack(k, arrays): unpack(v, arrays) for k, v in tree["dict"]},
    "stamp": lambda tree, arrays: _unpack_index(tree["stamp"], arrays)[0],
    "record": _unpack_record,
    "index": _unpack_index,
    "frame": _unpack_frame,
    "implementation": lambda tree, arrays: nw.Implementation.from_string(tree["implementation"]),
    "array": _unpack_array,
}
