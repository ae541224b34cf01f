"""Covariates in: a frame of columns as numbers beside the series, aligned by stamp.

One idea: what fit learns of X is a `Column` each (a number's centre and spread, a category's vocabulary), and
whatever X comes later is looked up at the series and stamps wanted, in any order and with any rows more. So
one X of past and future may be handed in everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fracts.covariate_checks import (
    check_columns,
    check_complete,
    check_finite_covariate,
    check_given,
    check_levels_seen,
    check_no_frame,
    check_one_row,
    check_past_only,
    check_stamp_of_row,
    check_vocabulary,
    refused_column,
)
from fracts.covariate_reading import Places, Table, read_covariates
from fracts.records import record

Array = NDArray[np.float64]

_UNSEEN = -1.0  # code of a level that fit did not see


@record
@dataclass(frozen=True)
class Column:
    """How a column becomes numbers: a number in units of its spread, a category as one number a level.

    Attributes
    ----------
    levels : the vocabulary of a category; None for a number.
    centre, spread : (width,), of the history of fit; a level has the spread 1.
    """

    name: Any
    levels: tuple[Any, ...] | None
    centre: Array
    spread: Array

    def encode(self, numbers: Array) -> Array:
        """(..., width) of values or codes (...), 0 for NaN."""
        if self.levels is not None:
            wide: Array = (numbers[..., None] == np.arange(len(self.levels))).astype(np.float64)
        else:
            wide = numbers[..., None]
        return np.where(np.isnan(numbers)[..., None], 0.0, (wide - self.centre) / self.spread)

    def number(self, value: Any) -> float:
        """Value or code of one value; NaN for none."""
        if value is None or value is pd.NA or (isinstance(value, Real) and np.isnan(float(value))):
            return float("nan")
        if self.levels is not None:
            return float(self.levels.index(value)) if value in self.levels else _UNSEEN
        if not isinstance(value, Real | np.bool_):
            raise refused_column(self.name, type(value).__name__, "numbers")
        return float(value)


@record
@dataclass(frozen=True)
class Covariates:
    """The columns that fit saw, those known in advance first.

    Attributes
    ----------
    names : in the order of X.
    known, past : columns known in advance, and columns known up to now.
    """

    names: tuple[Any, ...] = ()
    known: tuple[Column, ...] = ()
    past: tuple[Column, ...] = ()

    @property
    def n_known(self) -> int:
        """Numbers that the columns known in advance become."""
        return sum(column.centre.size for column in self.known)

    def history(self, X: Any, places: Places) -> Array:
        """All columns where y has rows: (series, rows, numbers)."""
        return self._encoded(X, places, (*self.known, *self.past), "y has a row for each")

    def ahead(self, X: Any, places: Places) -> Array:
        """The columns known in advance at steps to come: (series, rows, numbers)."""
        return self._encoded(X, places, self.known, "one is needed for each step ahead")

    def row(self, x: Any, places: Places) -> Array:
        """All columns at one step: (series, numbers).

        x: {column: value}, or values in the order of `names`, (columns,) for all series or (series, columns).
        """
        columns = (*self.known, *self.past)
        if x is None and not columns:
            return np.empty((len(places.ids), 0))
        if x is None or not columns:
            check_given(x, self.names, f"the step {places.stamps[0]}")
        check_no_frame(x)
        if isinstance(x, pd.Series):
            check_stamp_of_row(x.name, places.stamps)
        if isinstance(x, Mapping | pd.Series):
            check_columns(list(x.keys()), self.names, self.names)
            x = [x[name] for name in self.names]
        table = check_one_row(x, self.names, len(places.ids))
        values = np.stack([table[:, self.names.index(column.name), None] for column in columns])
        numbers = np.array(
            [
                [[column.number(value[0])] for value in told]
                for column, told in zip(columns, values, strict=True)
            ]
        )
        for column, found, told in zip(columns, numbers, values, strict=True):
            if column.levels is None:
                check_finite_covariate(found[:, 0], column.name, places.stamps)
            _check_seen(column, found, told, places)
        return _joined(columns, numbers, places)[:, 0]

    def _encoded(self, X: Any, places: Places, columns: Sequence[Column], what: str) -> Array:
        wanted = [name for name in self.names if name in {column.name for column in columns}]
        if X is None and not self.names:
            return np.empty((*places.needed.shape, 0))
        if X is None or not self.names:
            check_given(X, wanted, f"{places.stamps[0]} to {places.stamps[-1]}")
        if not columns:
            return np.empty((*places.needed.shape, 0))
        table = read_covariates(X, places, what)
        check_columns(list(table.columns), wanted, self.names)
        at = table.rows(places)
        numbers = np.stack([_looked_up(column, table, at, places) for column in columns])
        return _joined(columns, numbers, places)


def learn_covariates(X: Any, past_only: Any, places: Places) -> Covariates:
    """What fit learns of `X`, None or a container as `read_covariates` takes it.

    Raises TypeError for another kind of X or of a column, ValueError for what X lacks or holds twice.

    Examples
    --------
    >>> from fracts.names import Names
    >>> from fracts.timeline import learn_clock
    >>> X = pd.DataFrame({"heat": [1.0, 3.0, 5.0], "sky": ["clear", "rain", "clear"]})
    >>> seen = np.ones((1, 3), dtype=bool)
    >>> places = Places(["load"], np.arange(3)[None], learn_clock(X.index), seen, Names(), True)
    >>> covariates = learn_covariates(X, ("sky",), places)
    >>> covariates.history(X, places).round(2)  # known in advance first; a level each
    array([[[-1.22,  0.33, -0.33],
            [ 0.  , -0.67,  0.67],
            [ 1.22,  0.33, -0.33]]])
    """
    if X is None:
        check_past_only(past_only, [])
        return Covariates()
    table = read_covariates(X, places, "y has a row for each")
    names = list(table.columns)
    check_past_only(past_only, names)
    at = table.rows(places)
    columns = [_learned(name, table, at, places) for name in names]
    return Covariates(
        tuple(names),
        tuple(column for column in columns if column.name not in past_only),
        tuple(column for column in columns if column.name in past_only),
    )


def _numbers(column: pd.Series[Any], levels: Sequence[Any] | None, stamps: pd.Index[Any]) -> Array:
    """Values (rows,) of numbers, codes of a category; NaN for none."""
    if levels is None:
        if not pd.api.types.is_numeric_dtype(column.dtype) or column.dtype.kind == "c":
            raise refused_column(column.name, column.dtype, "numbers")
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        check_finite_covariate(numbers, column.name, stamps)
        return numbers
    codes: Array = pd.Index(levels, dtype=object).get_indexer(column.astype(object)).astype(np.float64)
    codes[column.isna().to_numpy()] = np.nan
    return codes


def _learned(name: Any, table: Table, at: NDArray[np.int64], places: Places) -> Column:
    """The column `name` as the rows of y show it."""
    column = table.columns[name]
    seen = places.needed & (at >= 0)
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels: Sequence[Any] | None = column.cat.categories.tolist()
    elif pd.api.types.is_numeric_dtype(column.dtype):
        levels = None
    else:
        texts = column.iloc[np.unique(at[seen])].dropna()
        if not texts.map(lambda value: isinstance(value, str)).all():
            raise refused_column(name, column.dtype, "numbers, texts or categories")
        levels = sorted(texts.unique())
        check_vocabulary(len(levels), len(texts), name)
    raw = Column(name, None if levels is None else tuple(levels), np.zeros(1), np.ones(1))
    numbers = _looked_up(raw, table, at, places)
    check_complete((places.needed & np.isnan(numbers))[None], [name], places.told)
    shown = numbers[places.needed]
    if levels is not None:
        share = np.array([(shown == code).mean() for code in range(len(levels))])
        return Column(name, tuple(levels), share, np.ones(len(levels)))
    centre, spread = shown.mean(), shown.std()
    if len(np.unique(shown)) <= 2:  # yes and no: a rare yes is no outlier
        spread = np.ptp(shown)
    rounding = 1e-12 * np.abs(shown).max()
    return Column(name, None, np.array([centre]), np.array([spread if spread > rounding else 1.0]))


def _looked_up(column: Column, table: Table, at: NDArray[np.int64], places: Places) -> Array:
    """Values or codes (series, rows) of `column` at the rows wanted; NaN for none."""
    numbers = _numbers(table.columns[column.name], column.levels, table.stamps)
    found: Array = np.where(at >= 0, numbers[at], np.nan)
    if column.levels is not None:
        _check_seen(column, found, table.columns[column.name].to_numpy(dtype=object)[at], places)
    return found


def _check_seen(column: Column, numbers: Array, values: NDArray[Any], places: Places) -> None:
    unseen = places.needed & (numbers == _UNSEEN)
    if column.levels is not None:
        check_levels_seen(unseen, column.name, column.levels, values, places.told)


def _joined(columns: Sequence[Column], numbers: Array, places: Places) -> Array:
    """(series, rows, numbers), of (columns, series, rows)."""
    lacking = places.needed & np.isnan(numbers)
    check_complete(lacking, [column.name for column in columns], places.told)
    return np.concatenate([c.encode(n) for c, n in zip(columns, numbers, strict=True)], axis=-1)
