"""Layouts: what a container holds besides numbers and stamps, and a table of numbers in its form.

One idea: a forecast is a table (series, horizon, 1 + k), the point first, and the stamps it is for. Every
kind of container has a layout that remembers its names and types and writes such a table as that kind.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fracts.columns import like_column, native_frame, only_column, typed_index
from fracts.frame_checks import check_headings
from fracts.records import record

Table = NDArray[np.float64]


class Layout(ABC):
    """The kind of a container and the names of its series."""

    apart = False  # whether every series has stamps of its own, and so an end of its own
    labelled = True  # whether rows have stamps, and are not counted

    @property
    @abstractmethod
    def kind(self) -> str:
        """What users call such a container."""

    @property
    @abstractmethod
    def ids(self) -> list[Any]:
        """Names of the series, in order; an unnamed one is None, the columns of an array are counted."""

    @property
    def flat(self) -> bool:
        """Whether arrays of its forecasts have no axis of series."""
        return False

    @abstractmethod
    def write(self, table: Table, suffixes: Sequence[str], stamps: pd.Index[Any], model: str) -> Any:
        """`table` as this container, further columns named by `suffixes`.

        stamps: (horizon,), or (series * horizon,) where the series are `apart`.  model: name of the column
        of a long frame.
        """

    def called(self, role: str) -> Sequence[Any]:
        """What in this container has the part `role`: "id_col", "time_col" or "target_col"."""
        return self.ids if role == "target_col" and len(self.ids) == 1 else ()

    def of(self, ids: list[Any]) -> Self:
        """The same kind of container with the series `ids`; ValueError where it holds one series alone."""
        if self.flat and len(ids) != 1:
            raise ValueError(
                f"{len(ids)} series came, but fit saw {self.kind}, which holds one. Give one series."
            )
        return self._named(ids)

    @abstractmethod
    def _named(self, ids: list[Any]) -> Self:
        """This layout with other names of its series."""

    def places(self, other: Layout) -> NDArray[np.int64]:
        """Where the series of `other` stand here.

        Raises TypeError for another kind of container, ValueError for a series that this layout does not
        hold.
        """
        if other.kind != self.kind:
            raise TypeError(f"y came as {other.kind}, but fit saw {self.kind}. Give the same kind.")
        if self.ids == [None] or (other.ids == [None] and len(self.ids) == 1):
            return np.zeros(1, dtype=np.int64)
        known = {name: at for at, name in enumerate(self.ids)}
        for name in other.ids:
            if name not in known:
                raise ValueError(
                    f"series {name!r} was not seen by fit, which saw {shortened(self.ids)}. "
                    "Leave it out, rename it, or start it with `apply`."
                )
        return np.array([known[name] for name in other.ids], dtype=np.int64)

    def as_array(self, table: Table) -> Table:
        """`table` as (horizon,) or (horizon, 1 + k), with an axis of series before the last unless `flat`."""
        if self.flat:
            return table[0, :, 0] if table.shape[2] == 1 else table[0]
        return table[:, :, 0].T if table.shape[2] == 1 else table.transpose(1, 0, 2)


@record
@dataclass(frozen=True)
class ArrayLayout(Layout):
    """Rows of numbers, counted."""

    n_series: int
    one_axis: bool
    labelled = False

    @property
    def kind(self) -> str:
        return "a 1-D array or list" if self.one_axis else "a 2-D array (time, series)"

    @property
    def ids(self) -> list[Any]:
        return list(range(self.n_series))

    @property
    def flat(self) -> bool:
        return self.one_axis

    def _named(self, ids: list[Any]) -> Self:
        return replace(self, n_series=len(ids))

    def write(self, table: Table, suffixes: Sequence[str], stamps: pd.Index[Any], model: str) -> Any:
        return self.as_array(table)

    def places(self, other: Layout) -> NDArray[np.int64]:
        if other.kind == self.kind and len(other.ids) != self.n_series:
            raise ValueError(
                f"y has {len(other.ids)} columns, but fit saw {self.n_series}. Give one for each."
            )
        return super().places(other)


@record
@dataclass(frozen=True)
class SeriesLayout(Layout):
    """A pandas Series."""

    name: Any
    stamps: pd.Index[Any]  # without an entry

    @property
    def kind(self) -> str:
        return "a Series"

    @property
    def ids(self) -> list[Any]:
        return [self.name]

    @property
    def flat(self) -> bool:
        return True

    def called(self, role: str) -> Sequence[Any]:
        return [self.stamps.name] if role == "time_col" else super().called(role)

    def _named(self, ids: list[Any]) -> Self:
        return replace(self, name=ids[0])

    def write(self, table: Table, suffixes: Sequence[str], stamps: pd.Index[Any], model: str) -> Any:
        index = _like_index(stamps, self.stamps)
        if not suffixes:
            return pd.Series(table[0, :, 0], index=index, name=self.name)
        return pd.DataFrame(table[0], index=index, columns=_headings(self.ids, suffixes))


@record
@dataclass(frozen=True)
class FrameLayout(Layout):
    """A wide pandas DataFrame: a column a series."""

    columns: pd.Index[Any]
    stamps: pd.Index[Any]  # without an entry

    @property
    def kind(self) -> str:
        return "a wide DataFrame"

    @property
    def ids(self) -> list[Any]:
        return list(self.columns)

    def called(self, role: str) -> Sequence[Any]:
        return [self.stamps.name] if role == "time_col" else super().called(role)

    def _named(self, ids: list[Any]) -> Self:
        return replace(self, columns=_like_labels(ids, self.columns))

    def write(self, table: Table, suffixes: Sequence[str], stamps: pd.Index[Any], model: str) -> Any:
        columns = self.columns
        if suffixes:
            columns = pd.Index(_headings(self.ids, suffixes), name=self.columns.name)
        values = np.concatenate(list(table), axis=1)
        return pd.DataFrame(values, index=_like_index(stamps, self.stamps), columns=columns)


@record
@dataclass(frozen=True)
class StackLayout(Layout):
    """Pandas rows under an index of several levels: stamps, and the names of the series in the others."""

    heading: Any
    framed: bool  # a DataFrame and not a Series
    names: pd.Index[Any]  # of the series: a MultiIndex where there are several levels of them
    levels: tuple[Any, ...]  # names of all levels
    time_level: int
    stamps: pd.Index[Any]  # without an entry
    apart = True

    @property
    def kind(self) -> str:
        return "rows under a MultiIndex"

    @property
    def ids(self) -> list[Any]:
        return list(self.names)

    def called(self, role: str) -> Sequence[Any]:
        if role == "target_col":
            return [self.heading]
        stamped = [self.levels[self.time_level]]
        return stamped if role == "time_col" else [level for level in self.levels if level not in stamped]

    def _named(self, ids: list[Any]) -> Self:
        return replace(self, names=_like_labels(ids, self.names))

    def write(self, table: Table, suffixes: Sequence[str], stamps: pd.Index[Any], model: str) -> Any:
        named = self.names.take(np.repeat(np.arange(table.shape[0]), table.shape[1]))
        arrays = [named.get_level_values(level) for level in range(len(self.levels) - 1)]
        arrays.insert(self.time_level, typed_index(stamps, self.stamps.dtype))
        index = pd.MultiIndex.from_arrays(arrays, names=list(self.levels))
        rows = table.reshape(-1, table.shape[2])
        if suffixes or self.framed:
            return pd.DataFrame(rows, index=index, columns=_headings([self.heading], suffixes))
        return pd.Series(rows[:, 0], index=index, name=self.heading)


@record
@dataclass(frozen=True)
class LongLayout(Layout):
    """A long frame of any library: columns of names, of stamps and of values; without names, one series."""

    names: Any  # native frame of that column, an entry a series; None without one
    stamps: Any  # native frame of that column, without an entry
    target: str
    apart = True

    @property
    def kind(self) -> str:
        return "a frame of stamps and values" if self.flat else "a long frame"

    @property
    def ids(self) -> list[Any]:
        return [self.target] if self.flat else only_column(self.names).to_list()

    @property
    def flat(self) -> bool:
        return self.names is None

    def called(self, role: str) -> Sequence[Any]:
        if role == "target_col":
            return [self.target]
        frame = self.stamps if role == "time_col" else self.names
        return () if frame is None else [only_column(frame).name]

    def _named(self, ids: list[Any]) -> Self:
        if self.flat:
            return replace(self, target=ids[0])
        names = only_column(self.names)
        library: Any = names.implementation
        if library.is_pandas():
            labels = _like_labels(ids, pd.Index(names.to_native()))
            return replace(self, names=labels.to_frame(index=False, name=names.name))
        column = nw.new_series(names.name, ids, names.dtype, backend=library)
        return replace(self, names=native_frame({names.name: column}, library))

    def write(self, table: Table, suffixes: Sequence[str], stamps: pd.Index[Any], model: str) -> Any:
        n_series, horizon = table.shape[:2]
        time = only_column(self.stamps)
        columns: dict[str, Any] = {}
        if not self.flat:
            names = only_column(self.names)
            columns[names.name] = names[np.repeat(np.arange(n_series), horizon).tolist()]
        columns[time.name] = like_column(stamps, time)
        headings = [f"{model}{suffix}" for suffix in ("", *suffixes)]
        check_headings([*columns, *headings], list(columns))
        columns |= dict(zip(headings, table.transpose(2, 0, 1).reshape(len(headings), -1), strict=True))
        return native_frame(columns, time.implementation)


@record
@dataclass(frozen=True)
class TableLayout(Layout):
    """A wide frame of any library: a column of stamps and a column a series."""

    columns: tuple[str, ...]
    stamps: Any  # native frame of that column, without an entry

    @property
    def kind(self) -> str:
        return "a wide frame with a column of stamps"

    @property
    def ids(self) -> list[Any]:
        return list(self.columns)

    def called(self, role: str) -> Sequence[Any]:
        return [only_column(self.stamps).name] if role == "time_col" else super().called(role)

    def _named(self, ids: list[Any]) -> Self:
        return replace(self, columns=tuple(ids))

    def write(self, table: Table, suffixes: Sequence[str], stamps: pd.Index[Any], model: str) -> Any:
        time = only_column(self.stamps)
        values = np.concatenate(list(table), axis=1).T
        headings = _headings(self.ids, suffixes)
        check_headings([time.name, *headings], [time.name, *self.columns])
        columns = dict(zip(headings, values, strict=True))
        return native_frame({time.name: like_column(stamps, time)} | columns, time.implementation)


@record
@dataclass(frozen=True)
class ColumnLayout(Layout):
    """A Series of polars, an array of Arrow: values alone, whose rows are counted."""

    name: str | None
    library: Any  # its narwhals Implementation
    labelled = False

    @property
    def kind(self) -> str:
        return "a column without stamps"

    @property
    def ids(self) -> list[Any]:
        return [self.name]

    @property
    def flat(self) -> bool:
        return True

    def _named(self, ids: list[Any]) -> Self:
        return replace(self, name=ids[0])

    def write(self, table: Table, suffixes: Sequence[str], stamps: pd.Index[Any], model: str) -> Any:
        columns = dict(zip(_headings(self.ids, suffixes), table[0].T, strict=True))
        if suffixes:
            return native_frame(columns, self.library)
        return nw.new_series(self.name or "", table[0, :, 0], backend=self.library).to_native()


def shortened(ids: Sequence[Any]) -> str:
    """`ids` as a list to print, of many the first."""
    shown = [repr(name) for name in ids[:8]]
    return f"[{', '.join(shown)}{', ...' if len(ids) > 8 else ''}]"


def _like_labels(ids: Sequence[Any], labels: pd.Index[Any]) -> pd.Index[Any]:
    """The names `ids` in the type of the index `labels`."""
    if isinstance(labels, pd.MultiIndex):
        return pd.MultiIndex.from_tuples(ids, names=labels.names)
    dtype: Any = labels.dtype
    like: pd.Index[Any] = pd.Index(ids, dtype=dtype, name=labels.name, tupleize_cols=False)
    return like


def _headings(ids: Sequence[Any], suffixes: Sequence[str]) -> list[Any]:
    if not suffixes:
        return ["y" if name is None else name for name in ids]
    columns = [
        column
        for name in ("y" if name is None else name for name in ids)
        for column in (name, *(f"{name}{end}" for end in suffixes))
    ]
    check_headings(columns, ids)
    return columns


def _like_index(stamps: pd.Index[Any], kept: pd.Index[Any]) -> pd.Index[Any]:
    """The stamps in the type of the index `kept`, with its freq where it had one that they follow."""
    index = typed_index(stamps, kept.dtype)
    freq = getattr(kept, "freq", None)
    if isinstance(index, pd.DatetimeIndex) and freq is not None:
        with contextlib.suppress(ValueError):  # a local midnight that a change of clocks skips
            return pd.DatetimeIndex(index, freq=freq)
    return index
