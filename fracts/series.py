"""Containers in and out: what a user hands in as arrays, and arrays as what the user handed in.

One idea: reading splits a container into plain numbers (series first), an index of stamps, and a `Layout`
that remembers the rest; writing puts the same three together again. Everything between works on a `Panel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fracts.checks import check_finite, check_increasing, check_numbers

State = dict[str, NDArray[Any]]  # what a model remembers; every array has the series on its first axis

KINDS = {
    "array": "a 1-D array or list",
    "matrix": "a 2-D array (time, series)",
    "series": "a Series",
    "frame": "a wide DataFrame",
}


@dataclass(frozen=True)
class Panel:
    """Series on one clock.

    Parameters
    ----------
    values : (series, rows), NaN where a series has no value.
    times : (rows,), strictly increasing, in base steps of the clock; 0 is the first row given to fit.

    Examples
    --------
    >>> panel = Panel(np.array([[1.0, 2.0, 4.0]]), np.array([0.0, 1.0, 3.0]))
    >>> panel.ahead(2)
    array([[[ 2., nan],
            [nan,  4.],
            [nan, nan]]])
    """

    values: NDArray[np.float64]
    times: NDArray[np.float64]

    def ahead(self, horizon: int) -> NDArray[np.float64]:
        """(series, rows, horizon): the values 1..horizon steps after each row to half a step, or NaN."""
        due = self.times[:, None] + np.arange(1, horizon + 1)  # (rows, horizon)
        row = np.searchsorted(self.times, due - 0.5)
        nearest = np.minimum(row, len(self.times) - 1)
        found = (row < len(self.times)) & (self.times[nearest] < due + 0.5)
        return np.where(found, self.values[:, nearest], np.nan)


@dataclass(frozen=True)
class Layout:
    """What a container holds besides numbers and stamps: its kind and the names of its series."""

    kind: Literal["array", "matrix", "series", "frame"]
    columns: pd.Index[Any]

    @property
    def ids(self) -> list[Any]:
        """Names of the series, in order; an unnamed Series is None, the columns of an array are counted."""
        return list(self.columns)

    def align(self, other: Layout, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """`values` (series, rows) of `other` in the order of this layout, NaN where a series is absent.

        Raises TypeError for another kind of container, ValueError for a series that this layout does not
        hold.
        """
        if other.kind != self.kind:
            raise TypeError(
                f"y came as {KINDS[other.kind]}, but fit saw {KINDS[self.kind]}. Give the same kind."
            )
        if self.kind == "matrix" and len(other.columns) != len(self.columns):
            raise ValueError(
                f"y has {len(other.columns)} columns, but fit saw {len(self.columns)}. Give one for each."
            )
        if self.kind in ("array", "matrix"):
            return values
        if self.kind == "series" and (self.ids == [None] or other.ids == [None]):
            return values
        places = self.columns.get_indexer(other.columns)
        if (places < 0).any():
            raise ValueError(
                f"series {other.columns[places < 0][0]!r} was not seen by fit, which saw {self.ids}. "
                "Leave it out, rename it, or start it with `apply`."
            )
        aligned = np.full((len(self.columns), values.shape[1]), np.nan)
        aligned[places] = values
        return aligned

    def as_array(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """`table` (series, horizon, 1 + k) in the shape that arrays come back in.

        (horizon,) or (horizon, 1 + k) for a 1-D container, with an axis of series before the last for others.
        """
        if self.kind in ("array", "series"):
            return table[0, :, 0] if table.shape[2] == 1 else table[0]
        return table[:, :, 0].T if table.shape[2] == 1 else table.transpose(1, 0, 2)

    def write(self, table: NDArray[np.float64], suffixes: Sequence[str], index: pd.Index[Any]) -> Any:
        """`table` (series, horizon, 1 + k) as this container, columns `{series}` and `{series}{suffix}`."""
        if self.kind in ("array", "matrix"):
            return self.as_array(table)
        if suffixes:
            names = ["y" if name is None else name for name in self.ids]
            columns: Any = [
                column for name in names for column in (name, *(f"{name}{end}" for end in suffixes))
            ]
            columns = pd.Index(columns, name=self.columns.name)
            return pd.DataFrame(np.concatenate(list(table), axis=1), index=index, columns=columns)
        if self.kind == "series":
            return pd.Series(table[0, :, 0], index=index, name=self.ids[0])
        return pd.DataFrame(table[:, :, 0].T, index=index, columns=self.columns)


def read(y: Any, start: int = 0) -> tuple[NDArray[np.float64], pd.Index[Any], Layout]:
    """Values (series, rows), index and layout of a container; rows of arrays are counted from `start`.

    Raises TypeError for a container or values of another kind, ValueError for empty, infinite or unordered
    input.

    Examples
    --------
    >>> values, index, layout = read(pd.Series([1, 2], name="load"))
    >>> values, layout.ids
    (array([[1., 2.]]), ['load'])
    """
    if isinstance(y, pd.Series):
        values, index, layout = _read_series(y)
    elif isinstance(y, pd.DataFrame):
        values, index, layout = _read_frame(y)
    elif isinstance(y, (np.ndarray, list, tuple)):
        values, index, layout = _read_array(y, start)
    else:
        raise TypeError(
            f"y came as {type(y).__name__}; a pandas Series, a wide DataFrame, an array or a list of numbers "
            "is needed. Convert with `pd.Series(...)` or `numpy.asarray(...)`."
        )
    check_increasing(index)
    check_finite(values, layout.ids, index)
    return values, index, layout


def _read_series(y: pd.Series[Any]) -> tuple[NDArray[np.float64], pd.Index[Any], Layout]:
    _check_rows(len(y))
    values = check_numbers(y, f"series {y.name!r}")
    return values[None], y.index, Layout("series", pd.Index([y.name], dtype=object))


def _read_frame(y: pd.DataFrame) -> tuple[NDArray[np.float64], pd.Index[Any], Layout]:
    _check_rows(y.size)
    if isinstance(y.columns, pd.MultiIndex) or not y.columns.is_unique:
        raise ValueError(
            f"the columns {list(y.columns)} do not name one series each. Give every column its own name."
        )
    values = [check_numbers(y.iloc[:, at], f"series {name!r}") for at, name in enumerate(y.columns)]
    return np.stack(values), y.index, Layout("frame", y.columns)


def _read_array(y: Any, start: int) -> tuple[NDArray[np.float64], pd.Index[Any], Layout]:
    try:
        array = np.asarray(np.ma.filled(np.ma.asarray(y, dtype=float), np.nan) if np.ma.isMA(y) else y)
    except ValueError as ragged:
        raise ValueError(
            "y is a list of lists of different lengths. Give one number for every row."
        ) from ragged
    if array.ndim not in (1, 2):
        raise ValueError(f"y has shape {array.shape}; (time,) or (time, series) is needed. Reshape it.")
    _check_rows(array.size)
    values = check_numbers(array, "y")
    kind: Literal["array", "matrix"] = "array" if array.ndim == 1 else "matrix"
    columns = pd.RangeIndex(1 if array.ndim == 1 else array.shape[1])
    return np.atleast_2d(values.T), pd.RangeIndex(start, start + len(array)), Layout(kind, columns)


def _check_rows(size: int) -> None:
    if size == 0:
        raise ValueError("y is empty. At least one value is needed.")
