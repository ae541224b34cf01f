"""Indexes and one-column frames in a form without code, and back.

One idea: an index is counts or a list of labels, with a type that has a name. A column of pandas is one too;
of polars and Arrow it is the bytes of Arrow's own format, which keep every type these libraries know.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset


def take_index_apart(index: pd.Index[Any]) -> dict[str, Any]:
    """What makes up `index`, of arrays, labels and texts, but for its name.

    Examples
    --------
    >>> take_index_apart(pd.RangeIndex(2, 8, 2))
    {'range': [2, 8, 2]}
    """
    if isinstance(index, pd.RangeIndex):
        return {"range": [index.start, index.stop, index.step]}
    if isinstance(index, pd.DatetimeIndex):
        zone = None if index.tz is None else str(index.tz)
        return {"unit": index.unit, "zone": zone, "every": _spelled(index), "counts": index.asi8}
    if isinstance(index, pd.PeriodIndex):
        return {"freq": index.freqstr, "counts": index.asi8}
    if isinstance(index, pd.MultiIndex):
        levels = [index.get_level_values(level) for level in range(index.nlevels)]
        return {"levels": levels}
    if isinstance(index, pd.CategoricalIndex):
        categories, ordered = index.categories, bool(index.ordered)
        return {"categories": categories, "ordered": ordered, "codes": index.codes.astype(np.int64)}
    return {"dtype": str(index.dtype), "items": index.tolist()}


def put_index_together(parts: dict[str, Any], name: Any) -> pd.Index[Any]:
    """The index that `take_index_apart` took apart; KeyError, TypeError or ValueError for other parts."""
    if "range" in parts:
        start, stop, step = parts["range"]
        return pd.RangeIndex(start, stop, step, name=name)
    if "unit" in parts:
        instants = pd.DatetimeIndex(parts["counts"].view(f"M8[{parts['unit']}]"), name=name)
        if parts["zone"] is not None:
            instants = instants.tz_localize("UTC").tz_convert(parts["zone"])
        return instants if parts["every"] is None else pd.DatetimeIndex(instants, freq=parts["every"])
    if "freq" in parts:
        periods = pd.PeriodIndex.from_ordinals(parts["counts"], freq=parts["freq"])  # type: ignore[attr-defined]
        return pd.PeriodIndex(periods, name=name)
    if "levels" in parts:
        return pd.MultiIndex.from_arrays(parts["levels"], names=[level.name for level in parts["levels"]])
    if "codes" in parts:
        dtype = pd.CategoricalDtype(parts["categories"], parts["ordered"])
        return pd.CategoricalIndex(pd.Categorical.from_codes(parts["codes"], dtype=dtype), name=name)
    index: pd.Index[Any] = pd.Index(parts["items"], dtype=parts["dtype"], name=name, tupleize_cols=False)
    return index


def is_frame(value: Any) -> bool:
    """Whether `value` is a frame of a library that layouts keep columns in."""
    return nw.dependencies.is_into_dataframe(value)


def take_column_apart(frame: Any) -> dict[str, Any]:
    """What makes up a frame of one column: its library, and an index or the bytes of Arrow's format."""
    library = nw.from_native(frame, eager_only=True).implementation.name.lower()
    if library == "pandas":
        return {"library": library, "column": pd.Index(frame.iloc[:, 0])}
    buffer = io.BytesIO()
    if library == "polars":
        frame.write_ipc(buffer)
    elif library == "pyarrow":
        from pyarrow import ipc

        with ipc.new_file(buffer, frame.schema) as writer:
            writer.write_table(frame)
    else:
        raise TypeError(f"the names and stamps are of {library}. Give a frame of pandas, polars or Arrow.")
    return {"library": library, "column": np.frombuffer(buffer.getvalue(), dtype=np.uint8)}


def put_column_together(library: str, column: pd.Index[Any] | NDArray[np.uint8]) -> Any:
    """The frame that `take_column_apart` took apart."""
    if isinstance(column, pd.Index):
        return column.to_frame(index=False, name=column.name)
    data = io.BytesIO(column.tobytes())
    if library == "polars":
        import polars

        return polars.read_ipc(data)
    from pyarrow import ipc

    return ipc.open_file(data).read_all()


def _spelled(index: pd.DatetimeIndex) -> str | None:
    """The freq of `index` where it has one that its spelling brings back."""
    with contextlib.suppress(ValueError):
        if index.freq is not None and to_offset(index.freqstr) == index.freq:
            return index.freqstr
    return None
