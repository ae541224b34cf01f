"""Checks of frames and of their rows: errors in the names, stamps and values that the user wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fracts.checks import LARGEST, far_off

MOST_CELLS = 2**28  # of a panel, 2 GiB


def check_columns(columns: Sequence[Any], wanted: dict[str, str], *, needed: Sequence[str]) -> None:
    """ValueError where a column of `wanted` (role: name) that is `needed` is not among `columns`."""
    for role in needed:
        if wanted[role] not in columns:
            free = [name for name in columns if name not in wanted.values()]
            example = repr(free[0]) if free else "..."
            raise ValueError(
                f"the frame has no column {wanted[role]!r}, only {list(columns)}. Add it, or rename the one "
                f"that is meant, or say which one it is, as in `fit(y, {role}={example})`."
            )


def check_no_more_columns(columns: Sequence[Any], known: Sequence[Any], others: Sequence[str] = ()) -> None:
    """ValueError for a column that is none of `known`; `others` are the parts it may be meant for."""
    if more := [name for name in columns if name not in known]:
        say = " and ".join(f"`{role}=...`" for role in others)
        raise ValueError(
            f"the columns {more} are none of {list(known)}, from which the series are read. "
            f"Leave them out with `y[{list(known)}]`" + (f", or say by {say} what they are." if say else ".")
        )


def check_wide(frame: pd.DataFrame) -> None:
    """TypeError for a column of a wide frame that can only hold stamps or names."""
    for name, dtype in frame.dtypes.items():
        if dtype.kind in "MO" or isinstance(dtype, pd.PeriodDtype | pd.CategoricalDtype):
            raise TypeError(
                f"series {name!r} holds values of dtype {dtype}; numbers are needed. If these are the "
                f"stamps, make them dates with `pd.to_datetime(...)` and say `fit(y, time_col={name!r})`; if "
                "numbers, convert them with `pd.to_numeric(...)`; if names of series, give a long frame."
            )


def check_stamps(index: pd.Index[Any], where: str = "") -> None:
    """TypeError unless dates, periods or integers; `where` says what else the stamps could be taken from."""
    kinds = isinstance(index, pd.DatetimeIndex | pd.PeriodIndex) or index.dtype.kind in "iu"
    if not kinds and not index.isna().all():
        of = "the stamps" if index.name is None else f"the stamps {index.name!r}"
        missing = np.flatnonzero(index.isna())
        seen = f"such as {index.dropna()[0]!r}" + (f", none in row {missing[0]}" if missing.size else "")
        cure = "`pd.to_datetime(...)`, or `pl.col(...).str.to_datetime()`"
        if index.dtype.kind == "f":
            cure = "`.astype(int)`, having dropped rows without a stamp"
        raise TypeError(
            f"{of} came as {index.dtype}, {seen}; dates, periods or integers are needed in every row. "
            f"Convert with {cure}.{where}"
        )


def check_named(codes: NDArray[np.int64], column: Any) -> None:
    """ValueError for a row whose series has no name; codes: (rows,), -1 for none."""
    if (nameless := np.flatnonzero(codes < 0)).size:
        raise ValueError(
            f"row {nameless[0]} has no name in {column!r}. Every row needs the name of its series: "
            "drop such rows, or fill the name in."
        )


def check_stamped(index: pd.Index[Any], names: pd.Index[Any]) -> None:
    """ValueError for a row without stamp; index, names: (rows,)."""
    if (missing := np.flatnonzero(index.isna())).size:
        row = missing[0]
        raise ValueError(
            f"series {names[row]!r}: the stamp of row {row} is missing ({index[row]}). Drop such rows."
        )


def check_single(codes: NDArray[np.int64], index: pd.Index[Any], names: pd.Index[Any]) -> None:
    """ValueError for a stamp that a series has twice; all (rows,), sorted by series and stamp."""
    same = (codes[1:] == codes[:-1]) & np.asarray(index[1:] == index[:-1])
    if (twice := np.flatnonzero(same)).size:
        row = twice[0]
        raise ValueError(
            f"series {names[row]!r} has the stamp {index[row]} twice. One row a stamp is needed: drop "
            "repeats with `y.drop_duplicates(...)`, or name the column that tells series apart by `id_col`."
        )


def check_row_values(values: NDArray[np.float64], index: pd.Index[Any], names: pd.Index[Any]) -> None:
    """ValueError for the first infinite or far too large or small value; all (rows,)."""
    if (bad := np.flatnonzero(far_off(values))).size:
        row = bad[0]
        raise ValueError(
            f"series {names[row]!r}: the value at {index[row]} is {values[row]}. Values must be finite, of "
            f"sizes from {1 / LARGEST:g} to {LARGEST:g}; leave the row out, or write NaN where there is none."
        )


def check_panel_size(n_series: int, n_stamps: int) -> None:
    """ValueError for a panel too large to be held on one grid of stamps."""
    if n_series * n_stamps > MOST_CELLS:
        raise ValueError(
            f"{n_series} series with {n_stamps} different stamps in all are {n_series * n_stamps} cells; "
            f"{MOST_CELLS} are the most. Fit on some of the series and use `apply` on the others, or round "
            "stamps that are meant to be the same."
        )


def check_headings(columns: Sequence[Any], came: Sequence[Any]) -> None:
    """ValueError for a column of a forecast whose name another has; `came` are those of y."""
    for at, name in enumerate(columns):
        if name in columns[:at]:
            raise ValueError(
                f"the forecast would have two columns {name!r}: y has {list(came)}, and the columns that are "
                "added are called after the model, or the series and the level. Rename that column of y."
            )


def check_one_axis(columns: pd.Index[Any]) -> None:
    """ValueError unless every column of a wide frame has a name of its own."""
    if isinstance(columns, pd.MultiIndex):
        raise ValueError(
            f"the columns have {columns.nlevels} levels {list(columns.names)}; one is needed, that names the "
            "series. Join the levels, as by `y.columns = y.columns.map('/'.join)`, or give a long frame."
        )
    if not columns.is_unique:
        raise ValueError(
            f"the columns {list(columns)} do not name one series each. Give every column its own name."
        )
