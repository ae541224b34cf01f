"""Reading covariates: a frame of any library taken apart into columns, stamps and names of series.

One idea: X has the form of the `y` beside it, but for a row that holds for all series, which needs no name.
What comes out are pandas columns over rows, and a look-up of the rows wanted by name and stamp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fracts.columns import numbers_of, plain_index, stamps_of
from fracts.covariate_checks import (
    check_labelled,
    check_no_target,
    check_once,
    check_rows,
    check_single_names,
    check_some_rows,
    check_time_column,
    check_two_axes,
    refused_column,
    refused_stamps,
)
from fracts.names import Names, in_columns
from fracts.timeline import Clock


class Places(NamedTuple):
    """Where covariates are wanted."""

    ids: Sequence[Any]
    counts: NDArray[np.int64]  # (series, rows), on `clock`
    clock: Clock
    needed: NDArray[np.bool_]  # (series, rows), where every column must have a value
    names: Names  # of the columns of a long frame
    labelled: bool  # y has stamps of its own: it is no array

    @property
    def stamps(self) -> pd.Index[Any]:
        """The stamps of the rows, of one series after the other."""
        return self.clock.ruler.stamps(self.counts.ravel())

    def told(self, series: int, row: int) -> str:
        """A place in words."""
        return f"of series {self.ids[series]!r} at {self.clock.stamp(self.counts[series, row])}"


@dataclass(frozen=True)
class Table:
    """X as it came: columns over rows, each of a stamp and, unless None, of a series."""

    columns: dict[Any, pd.Series[Any]]
    stamps: pd.Index[Any]
    series: pd.Index[Any] | None

    def rows(self, places: Places) -> NDArray[np.int64]:
        """The row of X for each series and stamp wanted, -1 for none: (series, rows).

        Rows off the grid of fit are none that is wanted. Raises ValueError where X has two, TypeError where
        its stamps are of another kind.
        """
        check_some_rows(len(self.stamps))
        try:
            counts, off = places.clock.located(self.stamps)
        except TypeError as kind:
            raise refused_stamps(kind, places.names.time_col) from kind
        owner = np.zeros(len(counts), dtype=np.int64)
        wanted_owner = np.zeros(len(places.ids), dtype=np.int64)
        if self.series is not None:
            known = {name: at for at, name in enumerate(places.ids)}
            codes, names = pd.factorize(self.series)
            owner = np.array([known.get(name, -1) for name in names], dtype=np.int64)[codes]
            wanted_owner = np.arange(len(places.ids))
        owner[off] = -1
        every = np.unique(counts)
        keys = owner * len(every) + np.searchsorted(every, counts)
        mine = np.flatnonzero(owner >= 0)
        check_once(keys[mine], self.stamps[mine], None if self.series is None else self.series[mine])
        rank = pd.Index(every).get_indexer(pd.Index(places.counts.ravel())).reshape(places.counts.shape)
        found = pd.Index(keys[mine]).get_indexer(
            pd.Index((wanted_owner[:, None] * len(every) + rank).ravel())
        )
        rows = np.append(mine, -1)[found].reshape(rank.shape)
        return np.where(rank >= 0, rows, -1)


def read_covariates(X: Any, places: Places, what: str) -> Table:
    """`X` taken apart; `what` tells why an array needs its rows.

    Raises TypeError for another kind of container, ValueError for columns that are named twice or missing.
    """
    if isinstance(X, np.ndarray | list | tuple):
        return _read_array(X, places, what)
    if isinstance(X, pd.DataFrame):
        check_single_names(list(X.columns))
        X, names = in_columns(X, places.names)
        places = places._replace(names=names)
        if isinstance(X.index, pd.MultiIndex):
            return _table(X, _time_level(X.index, places.names), X.index, places)
        if places.names.time_col not in X.columns:
            return _table(X, plain_index(X.index), None, places)
    frame = nw.from_native(X, pass_through=True, eager_only=True)
    if not isinstance(frame, nw.DataFrame):
        check_two_axes(X, type(X).__name__, getattr(X, "ndim", 0))
        raise TypeError(
            f"X came as {type(X).__name__}; a DataFrame of pandas, polars or Arrow is needed, or an array "
            "beside a y without stamps."
        )
    return _read_columns(frame, places)


def _read_array(X: Any, places: Places, what: str) -> Table:
    array = np.asarray(X)
    check_two_axes(X, type(X).__name__, array.ndim)
    if places.labelled:
        check_labelled()
    check_rows(len(array), places.counts.shape[1], what)
    frame = pd.DataFrame(array)
    return Table({name: frame[name] for name in frame}, pd.Index(places.counts[0]), None)


def _time_level(index: pd.MultiIndex, names: Names) -> pd.Index[Any]:
    """The level of stamps: the one of that name, or the last."""
    return plain_index(index.get_level_values(names.time_col if names.time_col in index.names else -1))


def _table(X: pd.DataFrame, stamps: pd.Index[Any], index: pd.MultiIndex | None, places: Places) -> Table:
    series: Any = None
    if index is not None:
        at = list(index.names).index(places.names.time_col) if places.names.time_col in index.names else -1
        series = index.droplevel(at)
    check_no_target(list(X.columns), places.ids if places.labelled else [], places.names.target_col)
    bare = X.reset_index(drop=True)
    return Table({name: bare[name] for name in bare.columns}, stamps, series)


def _read_columns(frame: nw.DataFrame[Any], places: Places) -> Table:
    """A frame with a column of stamps and maybe one of names."""
    names = places.names
    check_time_column(frame.columns, names.time_col)
    columns = [name for name in frame.columns if name not in (names.time_col, names.id_col)]
    check_no_target(columns, places.ids, names.target_col)
    series: Any = pd.Index(frame[names.id_col].to_numpy()) if names.id_col in frame.columns else None
    table = {name: _pandas(frame[name]).reset_index(drop=True) for name in columns}
    return Table(table, stamps_of(frame[names.time_col]), series)


def _pandas(column: nw.Series[Any]) -> pd.Series[Any]:
    """A column of any library as pandas has it: numbers, truths, texts or categories."""
    if column.implementation.is_pandas():
        native: pd.Series[Any] = column.to_native()
        return native
    name, kind = column.name, column.dtype
    if kind.is_numeric():
        return pd.Series(numbers_of(column, f"column {name!r} of X"), name=name)
    if kind == nw.Boolean:
        return pd.Series(column.to_list(), dtype="boolean", name=name)
    if isinstance(kind, nw.Enum):
        return pd.Series(pd.Categorical(column.to_list(), categories=list(kind.categories)), name=name)
    if not isinstance(kind, nw.Categorical | nw.String):
        raise refused_column(name, kind, "numbers, texts or categories")
    return pd.Series(column.to_list(), dtype=object, name=name)
