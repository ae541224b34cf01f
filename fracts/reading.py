"""Reading: a container taken apart into numbers, stamps, and a layout that can put a forecast together.

One idea: every container is one of four shapes, whatever library it comes from. Bare numbers have rows that
are counted; a wide frame has a column a series under common stamps; a long one has a row for every value,
with its name and stamp; rows under a MultiIndex are long with names and stamps in the index. Long rows may
come in any order and are brought onto one grid of all stamps, where it is kept which series had which row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fracts.checks import check_finite, check_increasing, check_numbers
from fracts.columns import numbers_of, plain_index, stamps_of
from fracts.frame_checks import (
    check_columns,
    check_named,
    check_no_more_columns,
    check_one_axis,
    check_panel_size,
    check_row_values,
    check_single,
    check_stamped,
    check_stamps,
)
from fracts.layouts import (
    ArrayLayout,
    ColumnLayout,
    FrameLayout,
    Layout,
    LongLayout,
    SeriesLayout,
    StackLayout,
    TableLayout,
)
from fracts.records import record
from fracts.timeline import Neighbours

Ints = NDArray[np.int64]
Values = NDArray[np.float64]


@record
@dataclass(frozen=True)
class Names:
    """The columns that make a frame long, as `fit` was told."""

    id_col: str = "unique_id"
    time_col: str = "ds"
    target_col: str = "y"


@dataclass(frozen=True)
class Reading:
    """A container taken apart.

    Parameters
    ----------
    values : (series, rows), NaN for none.
    present : (series, rows), whether the series has that row, with a value or without.
    index : (rows,), the stamps of all series, increasing.
    layout : the kind and the names.
    """

    values: Values
    present: NDArray[np.bool_]
    index: pd.Index[Any]
    layout: Layout

    @property
    def first(self) -> NDArray[np.int64]:
        """The first row of each series."""
        return np.asarray(self.present.argmax(axis=1))

    @property
    def last(self) -> NDArray[np.int64]:
        """The last row of each series."""
        return np.asarray(self.present.shape[1] - 1 - self.present[:, ::-1].argmax(axis=1))

    @property
    def neighbours(self) -> Neighbours | None:
        """Rows that follow each other in one series; None where all series have all rows."""
        if self.present.all():
            return None
        _, before, after = self.pairs(np.arange(len(self.index)))
        return Neighbours(before, after)

    def pairs(self, counts: Ints, known: Ints | None = None) -> tuple[Ints, Ints, Ints]:
        """Which series, and the `counts` (rows,) of two rows of it that follow each other, `known` (series,)
        ones going before the first."""
        series, rows = np.nonzero(self.present)
        at = counts[rows]
        if known is not None:
            first = np.searchsorted(series, np.arange(len(known)))
            series, at = np.insert(series, first, np.arange(len(known))), np.insert(at, first, known)
        within = series[1:] == series[:-1]
        return series[1:][within], at[:-1][within], at[1:][within]


def read(y: Any, names: Names | None = None, start: int = 0) -> Reading:
    """A container taken apart; rows of arrays are counted from `start`.

    Raises TypeError for a container, values or stamps of another kind, ValueError for empty, infinite,
    unordered or repeated rows and for columns that are missing or too many.

    Examples
    --------
    >>> reading = read(pd.Series([1, 2], name="load"))
    >>> reading.values, reading.layout.ids
    (array([[1., 2.]]), ['load'])
    """
    names = names or Names()
    if isinstance(y, pd.Series | pd.DataFrame) and isinstance(y.index, pd.MultiIndex):
        return _read_stack(y, names)
    if isinstance(y, pd.Series):
        return _read_series(y)
    if isinstance(y, np.ndarray | list | tuple):
        return _read_array(y, start)
    if isinstance(y, pd.DataFrame):
        check_one_axis(y.columns)
        if names.time_col not in y.columns:
            _refuse_half_long(y, names)
            return _read_frame(y)
    frame = _narwhal(y)
    if isinstance(frame, nw.Series):
        return _read_column(frame, start)
    if names.target_col in frame.columns and names.time_col in frame.columns:
        return _read_long(frame, names)
    if names.id_col in frame.columns:
        check_columns(frame.columns, vars(names), needed=("time_col", "target_col"))
    return _read_table(frame, names)


def _narwhal(y: Any) -> Any:
    """A narwhals frame or series of `y`; TypeError for what is neither."""
    if type(y).__module__.split(".")[0] == "pyarrow" and type(y).__name__.endswith("Array"):
        import pyarrow

        y = y if isinstance(y, pyarrow.ChunkedArray) else pyarrow.chunked_array([y])
    known = nw.from_native(y, pass_through=True, allow_series=True)
    if isinstance(known, nw.DataFrame | nw.Series):
        return known
    if isinstance(known, nw.LazyFrame):
        raise TypeError(f"y came as a lazy {type(y).__name__}. Give its rows, with `y.collect()`.")
    raise TypeError(
        f"y came as {type(y).__name__}; a Series or DataFrame of pandas, polars or Arrow, an array or a list "
        "of numbers is needed. Convert with `pd.Series(...)` or `numpy.asarray(...)`."
    )


def _read_series(y: pd.Series[Any]) -> Reading:
    _check_rows(len(y))
    values = check_numbers(y, f"series {y.name!r}")
    return _wide(values[None], plain_index(y.index), SeriesLayout(y.name, y.index[:0]))


def _read_frame(y: pd.DataFrame) -> Reading:
    _check_rows(y.size)
    values = [check_numbers(y.iloc[:, at], f"series {name!r}") for at, name in enumerate(y.columns)]
    return _wide(np.stack(values), plain_index(y.index), FrameLayout(y.columns, y.index[:0]))


def _read_array(y: Any, start: int) -> Reading:
    try:
        array = np.asarray(np.ma.filled(np.ma.asarray(y, dtype=float), np.nan) if np.ma.isMA(y) else y)
    except ValueError as ragged:
        raise ValueError(
            "y is a list of lists of different lengths. Give one number for every row."
        ) from ragged
    if array.ndim not in (1, 2):
        raise ValueError(f"y has shape {array.shape}; (time,) or (time, series) is needed. Reshape it.")
    _check_rows(array.size)
    values = np.atleast_2d(check_numbers(array, "y").T)
    layout = ArrayLayout(len(values), array.ndim == 1)
    return _wide(values, pd.RangeIndex(start, start + len(array)), layout)


def _read_column(column: nw.Series[Any], start: int) -> Reading:
    _check_rows(len(column))
    values = numbers_of(column, f"series {column.name!r}" if column.name else "y")
    layout = ColumnLayout(column.name or None, column.implementation)
    return _wide(values[None], pd.RangeIndex(start, start + len(column)), layout)


def _read_table(frame: nw.DataFrame[Any], names: Names) -> Reading:
    """A wide frame whose stamps are a column: `time_col`, or the only column of dates."""
    time_col = names.time_col
    if time_col not in frame.columns:
        dated = [name for name, kind in frame.schema.items() if kind.is_temporal()]
        if len(dated) != 1:
            check_columns(frame.columns, vars(names), needed=("time_col",))
        time_col = dated[0]
    columns = tuple(name for name in frame.columns if name != time_col)
    _check_rows(len(frame) * len(columns))
    values = np.stack([numbers_of(frame[name], f"series {name!r}") for name in columns])
    layout = TableLayout(columns, frame[:0, [time_col]].to_native())
    return _wide(values, stamps_of(frame[time_col]), layout)


def _read_long(frame: nw.DataFrame[Any], names: Names) -> Reading:
    named = names.id_col in frame.columns
    roles = [names.id_col, names.time_col, names.target_col]
    check_no_more_columns(frame.columns, roles if named else roles[1:])
    _check_rows(len(frame))
    if named:
        keys = frame[names.id_col].to_numpy()
        codes, first = _coded(keys, frame[names.id_col].is_null().to_numpy(), names.id_col)
        ids = pd.Index(keys[first])
        kept = frame[first.tolist(), [names.id_col]].to_native()
    else:
        codes, ids, kept = np.zeros(len(frame), dtype=np.int64), pd.Index([names.target_col]), None
    values = numbers_of(frame[names.target_col], f"column {names.target_col!r}")
    layout = LongLayout(kept, frame[:0, [names.time_col]].to_native(), names.target_col)
    return _gridded(codes, stamps_of(frame[names.time_col]), values, ids, layout)


def _read_stack(y: pd.Series[Any] | pd.DataFrame, names: Names) -> Reading:
    """Rows under a MultiIndex: the level `time_col` has the stamps, or else the last one."""
    if isinstance(y, pd.DataFrame) and y.shape[1] > 1:
        check_columns(list(y.columns), vars(names), needed=("target_col",))
        check_no_more_columns(list(y.columns), [names.target_col])
    column: Any = y.iloc[:, 0] if isinstance(y, pd.DataFrame) else y
    _check_rows(len(column))
    index: Any = y.index
    time_level = list(index.names).index(names.time_col) if names.time_col in index.names else -1
    time_level %= index.nlevels
    keys = index.droplevel(time_level)
    codes, first = _coded(keys, _missing(keys), list(keys.names))
    ids = keys.take(first)
    values = check_numbers(column, f"series {column.name!r}")
    stamps = index.get_level_values(time_level)
    framed = isinstance(y, pd.DataFrame)
    layout = StackLayout(column.name, framed, ids, tuple(index.names), time_level, stamps[:0])
    return _gridded(codes, plain_index(stamps), values, ids, layout)


def _coded(keys: Any, missing: NDArray[np.bool_], column: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number of the series of every row, in order of appearance, and the first row of each."""
    codes = pd.factorize(keys)[0]
    codes[missing] = -1
    check_named(codes, column)
    return codes, np.unique(codes, return_index=True)[1]


def _missing(keys: pd.Index[Any]) -> NDArray[np.bool_]:
    if isinstance(keys, pd.MultiIndex):
        return np.asarray(keys.to_frame().isna().any(axis=1))
    return np.asarray(keys.isna())


def _gridded(
    codes: NDArray[np.int64], stamps: pd.Index[Any], values: Values, ids: pd.Index[Any], layout: Layout
) -> Reading:
    """Rows of any order on one grid of all stamps; codes, stamps, values: (rows,)."""
    check_stamps(stamps)
    check_stamped(stamps, ids.take(codes))
    order = np.lexsort((_integers(stamps), codes))
    codes, stamps, values = codes[order], stamps[order], values[order]
    names = ids.take(codes)
    check_single(codes, stamps, names)
    check_row_values(values, stamps, names)
    every = stamps.unique().sort_values()
    check_panel_size(len(ids), len(every))
    at = codes, np.searchsorted(_integers(every), _integers(stamps))
    grid = np.full((len(ids), len(every)), np.nan)
    present = np.zeros(grid.shape, dtype=bool)
    grid[at], present[at] = values, True
    return Reading(grid, present, every, layout)


def _wide(values: Values, index: pd.Index[Any], layout: Layout) -> Reading:
    """Rows that all series have."""
    check_stamps(index)
    check_increasing(index)
    check_finite(values, layout.ids, index)
    return Reading(values, np.ones(values.shape, dtype=bool), index, layout)


def _integers(stamps: Any) -> NDArray[np.int64]:
    """Integers in the order of `stamps`."""
    if isinstance(stamps, pd.DatetimeIndex | pd.PeriodIndex):
        return np.asarray(stamps.asi8)
    return np.asarray(stamps, dtype=np.int64)


def _refuse_half_long(y: pd.DataFrame, names: Names) -> None:
    """ValueError where the frame looks long but for its columns."""
    if names.id_col in y.columns or y.index.name == names.id_col:
        columns = [*(name for name in y.index.names if name is not None), *y.columns]
        check_columns(columns, vars(names), needed=("time_col", "target_col"))


def _check_rows(size: int) -> None:
    if size == 0:
        raise ValueError("y is empty. At least one value is needed.")
