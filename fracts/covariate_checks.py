"""Checks of covariates: what X is, what it holds, and what it lacks, told by column, series and stamp."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fracts.checks import LARGEST, far_off

Told = Callable[[int, int], str]  # a series and a row of it in words

_LISTED = 4  # places named before the rest is counted
_FEW_LEVELS = 20  # of texts, which a short history may hold once each


def check_no_covariates(X: object, model: str) -> None:
    """TypeError unless `X` is None, for a model that would forecast the same without."""
    if X is not None:
        raise TypeError(
            f"X came as {type(X).__name__}, but {model} makes nothing of covariates. Leave X out, or use "
            "FracRidge or FracForecaster. The series comes first: write `fit(y)` and not `fit(X, y)`."
        )


def check_two_axes(X: Any, name: str, ndim: int) -> None:
    """TypeError unless X has rows and columns: a target by habit has one axis."""
    if ndim != 2:
        raise TypeError(
            f"X came as {name} with {ndim} axis or axes; covariates have two: (rows, columns), one each. "
            "The series comes first: write `fit(y)` or `fit(y, X)` and not `fit(X, y)`. A single covariate "
            "becomes a frame by `X.to_frame()`."
        )


def check_past_only(past_only: object, names: Sequence[object]) -> None:
    """TypeError unless `past_only` is a tuple or list; ValueError for a column that X does not hold."""
    if not isinstance(past_only, tuple | list):
        raise TypeError(
            f"past_only must be a tuple of columns of X, got {past_only!r}. Write past_only=('temp',), say."
        )
    if unknown := [name for name in past_only if name not in names]:
        raise ValueError(
            f"past_only names {unknown[0]!r}, which X does not hold: it has {list(names)}. "
            "Name columns of X, or give X to fit."
        )


def check_columns(names: Sequence[object], needed: Sequence[object], fitted: Sequence[object]) -> None:
    """ValueError for columns that are lacking, or unknown to fit."""
    if lacking := [name for name in needed if name not in names]:
        raise ValueError(f"X lacks the columns {lacking}, which fit saw: it has {list(names)}. Give them.")
    if unknown := [name for name in names if name not in fitted]:
        raise ValueError(f"X has columns {unknown} that fit did not see: it saw {list(fitted)}. Drop them.")


def check_single_names(names: Sequence[object]) -> None:
    """ValueError for a column that is named twice."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise ValueError(f"X has two columns {twice!r}. Give every column its own name.")


def check_no_target(names: Sequence[object], ids: Sequence[object], target: str) -> None:
    """ValueError where a column of X has the name of a series: it would be forecast from itself."""
    if found := [name for name in names if name in ids or name == target]:
        raise ValueError(
            f"X has a column {found[0]!r}, which is the name of the series itself. Leave it out of X, with "
            f"`X.drop(columns={found[0]!r})`, or rename it."
        )


def check_time_column(names: Sequence[object], time_col: str) -> None:
    """ValueError where a frame without index has no column of stamps."""
    if time_col not in names:
        raise ValueError(
            f"X has no column {time_col!r}, only {list(names)}. Its rows are aligned by stamp: give them as "
            f"{time_col!r}, or say in fit what the column is called, with `time_col=...`."
        )


def check_one_row(x: Any, names: Sequence[object], n_series: int) -> NDArray[np.object_]:
    """`x` as values (series, columns); ValueError for another shape."""
    table = np.array(x, dtype=object)
    if table.shape not in ((len(names),), (n_series, len(names))):
        raise ValueError(
            f"x has shape {table.shape}; one value for each of the columns {list(names)} is needed, "
            f"({len(names)},), or such a row for each of {n_series} series."
        )
    return np.broadcast_to(table, (n_series, len(names)))


def check_stamp_of_row(stamp: object, stamps: pd.Index[Any]) -> None:
    """ValueError where a row of X has a `stamp` of the kind of `stamps` and it is none of theirs."""
    dates = isinstance(stamp, datetime | np.datetime64 | pd.Period)
    kind = dates if stamps.dtype.kind not in "iu" else isinstance(stamp, Integral)
    if kind and any(stamp != wanted for wanted in stamps):
        raise ValueError(
            f"x is the row of {stamp}, but the value is that of {stamps[0]}. Give the row of that stamp, "
            "or its values as a dict."
        )


def check_no_frame(x: object) -> None:
    """TypeError for a frame where the values of one step are needed."""
    if hasattr(x, "columns"):
        raise TypeError(
            f"x came as {type(x).__name__}; the covariates of one step are needed: a dict, a row such as "
            "`X.loc[stamp]`, or values in the order of the columns."
        )


def check_vocabulary(n_levels: int, n_rows: int, column: object) -> None:
    """ValueError for a column of texts of which nearly every one comes once."""
    if n_levels > max(_FEW_LEVELS, n_rows // 2):
        raise ValueError(
            f"column {column!r} of X holds {n_levels} different texts in {n_rows} rows. A name that does not "
            "come again tells nothing of what follows: leave it out, or make numbers or fewer kinds of it."
        )


def check_given(X: object, names: Sequence[object], stamps: str) -> None:
    """TypeError for an X that fit did not see, ValueError where the X that fit saw is missing."""
    if X is not None and not names:
        raise TypeError(
            f"X came as {type(X).__name__}, but fit saw no covariates. Leave X out, or give X to fit."
        )
    if X is None and names:
        raise ValueError(
            f"fit saw the covariates {list(names)}, and no X came with them. Give X for {stamps}; what is "
            "not known in advance belongs in past_only."
        )


def check_complete(lacking: NDArray[np.bool_], names: Sequence[object], told: Told) -> None:
    """ValueError listing what X lacks: (columns, series, rows)."""
    places = np.argwhere(lacking)
    if len(places):
        listed = [f"{names[column]!r} {told(series, row)}" for column, series, row in places[:_LISTED]]
        more = f", and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
        raise ValueError(
            f"X lacks {', '.join(listed)}{more}. Every column needs a value wherever y has one, and at every "
            "step forecast unless it is in past_only. Give it (`X.reindex(stamps).ffill()` repeats the last "
            "one, if that is what holds), or leave y NaN there."
        )


def check_levels_seen(
    unseen: NDArray[np.bool_], column: object, levels: Iterable[object], values: NDArray[Any], told: Told
) -> None:
    """ValueError naming the first level that fit did not see; unseen, values: (series, rows)."""
    if (places := np.argwhere(unseen)).size:
        series, row = places[0]
        raise ValueError(
            f"X holds {values[series, row]!r} in column {column!r} {told(series, row)}, a level unknown to "
            f"fit, which saw {list(levels)}. Declare every level that may come before fit: "
            "`X[column].astype(pd.CategoricalDtype(levels))`."
        )


def check_once(keys: NDArray[np.int64], stamps: pd.Index[Any], series: pd.Index[Any] | None) -> None:
    """ValueError naming the first row of X whose key, of series and stamp, came before; all (rows,)."""
    if (twice := np.flatnonzero(pd.Index(keys).duplicated())).size:
        owner = "" if series is None else f" of series {series[twice[0]]!r}"
        raise ValueError(
            f"X has two rows{owner} at {stamps[twice[0]]}. One is needed: drop repeats, with "
            "`X[~X.index.duplicated()]`."
        )


def check_finite_covariate(values: NDArray[np.float64], column: object, stamps: pd.Index[Any]) -> None:
    """ValueError naming the first infinite or far too large or small value in a column (rows,) of X."""
    if (at := np.flatnonzero(far_off(values))).size:
        raise ValueError(
            f"X holds {values[at[0]]} in column {column!r} at {stamps[at[0]]} (row {at[0]}). Values must be "
            f"finite, of sizes from {1 / LARGEST:g} to {LARGEST:g}: change the unit, or write NaN where "
            "there is none."
        )


def refused_column(column: object, dtype: object, needed: str) -> TypeError:
    """The error that a column is of another kind than `needed`."""
    return TypeError(
        f"column {column!r} of X has dtype {dtype}; {needed} are needed. Convert it: with "
        "`pd.to_numeric(...)` or `.astype('category')`, and of a date take its parts, as `.hour`."
    )


def check_some_rows(rows: int) -> None:
    """ValueError for an X without rows."""
    if rows == 0:
        raise ValueError("X has no rows. Give one for each stamp, with a value in every column.")


def refused_stamps(kind: TypeError, time_col: str) -> TypeError:
    """The error that the stamps of X are of another kind than those of y."""
    return TypeError(
        f"X is aligned by stamp, but {kind} Its stamps are its index, or its column {time_col!r}; what a "
        "series is for good is repeated at every stamp."
    )


def check_rows(rows: int, wanted: int, what: str) -> None:
    """ValueError unless an array X, which has no stamps, has a row for each one wanted."""
    if rows != wanted:
        raise ValueError(
            f"X has {rows} rows, but {what}: {wanted} are needed. Arrays have no stamps to align by, so "
            "give exactly these rows, or frames with an index."
        )


def check_labelled() -> None:
    """TypeError: an array X beside a y that has stamps."""
    raise TypeError(
        "X came as an array, but y has stamps, and X is aligned by stamp. Give a frame: "
        "`pd.DataFrame(X, index=y.index)`."
    )
