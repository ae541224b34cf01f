"""The door, written once: what every forecaster does, whatever its model.

One idea: an estimator is weights and a state. `fit` learns the weights and runs the state over the history;
`update` runs the state on; `predict` reads it. A model fills four hooks on plain arrays (`_fit`,
`_empty_state`, `_advance`, `_forecast`); `conversion.py` brings containers to them. Everything is
checked and computed before anything is assigned, so after an error the estimator is as it was.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from fracts.checks import check_row, check_value
from fracts.cohorts import advanced
from fracts.conversion import Conversion
from fracts.covariate_checks import check_no_covariates
from fracts.forecasts import request
from fracts.gaps import check_on_gaps
from fracts.names import Names, check_names_used
from fracts.persistence import Persistence
from fracts.reading import read
from fracts.scoring import Medians, mean_squares


class Forecaster(BaseEstimator, Conversion, Persistence):
    """Base of all forecasters: a model fills the four hooks of `Conversion`.

    A `y` is a Series, a wide frame (a column a series), a long frame (a row a value, with the columns
    `unique_id`, `ds` and `y`, or without the first), rows under a MultiIndex of names and stamps, a 1-D array
    or list, or a 2-D array (time, series); frames are of pandas, polars or Arrow. Stamps are dates, periods
    or integers, which are plain numbers: 20240131 is no date. NaN, None and null are no value. What comes
    back is of the same kind.

    An `X` holds covariates, a column each, as a frame with the stamps of `y`, in its index or the column
    `ds`: the same for all series, or with names, in the index or the column `unique_id`, for each its own.
    What a series is for good is a column that is constant in it. Frames are aligned by stamp and may hold
    more rows than are looked at. Beside a `y` without stamps `X` is a 2-D array, row by row.
    """

    horizon: int
    past_only: Sequence[Any] = ()
    lower: float | None = None
    transform: Any = None
    _learned: Sequence[str] = ()  # names of the attributes that the last fit set
    _takes_covariates = False

    def fit(
        self,
        y: Any,
        X: Any = None,
        *,
        id_col: str = "unique_id",
        time_col: str = "ds",
        target_col: str = "y",
        freq: str | int | None = None,
        base_step: Any = None,
        on_gaps: str = "decay",
    ) -> Self:
        """Learn from the history `y`, forgetting any earlier fit.

        Parameters
        ----------
        y : (time,) or (time, series), a container as the class describes it. The series of a long frame may
            start and end where they like; each is forecast from its own last row.
        X : covariates of these rows, as the class describes them; None for none. Numbers, or texts and
            categories, whose levels are learned here. A value may be missing only where `y` has none.
        id_col, time_col, target_col : columns of a long frame, or levels of its index; `time_col` also of the
            stamps of a wide polars or Arrow frame, where the only column of dates needs no name. A name that
            plays no part in `y` is an error.
        freq : the grid of the stamps in the spelling of pandas ("15min", "W-WED", "ME") or of polars ("15m",
            "1mo"), an integer for integers. None finds it: the coarsest calendar that all stamps lie on.
        base_step : says that time is real, in steps of this length: a timedelta, or a text such as "1s"; an
            integer for integers. Where no grid fits the step is the median distance.
        on_gaps : "decay", the memory decays over a step without a row; "error" refuses such a history.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        TypeError : `y`, `X`, their values or stamps are of a kind that is not read; `X` is given to a model
            that makes nothing of it.
        ValueError : a parameter is out of range; `y` is empty, infinite or unordered, has a stamp twice or
            off the grid, or lacks a column; a series has no value; `X` lacks a value, or has one twice.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> Naive(2).fit([1.0, 3.0, 2.0]).series_ids_
        [0]
        """
        if not self._takes_covariates:
            check_no_covariates(X, type(self).__name__)
        check_on_gaps(on_gaps)
        fresh = type(self)(**self.get_params(deep=False))
        given = set(vars(fresh))
        fresh._names, fresh._on_gaps = Names(id_col, time_col, target_col), on_gaps
        reading = read(y, fresh._names)
        check_names_used(fresh._names, reading.layout)
        fresh._learn(reading, X, freq, base_step)
        fresh._learned = [name for name in vars(fresh) if name not in given]
        for name in self._learned:
            delattr(self, name)
        self.__dict__.update(vars(fresh))
        return self

    def predict(
        self,
        horizon: int | None = None,
        X: Any = None,
        *,
        level: float | Iterable[float] | None = None,
        quantiles: float | Iterable[float] | None = None,
        point: str = "median",
    ) -> Any:
        """The next `horizon` steps, in the kind of container given to fit. Changes nothing.

        Parameters
        ----------
        horizon : steps; None for the horizon trained for.
        X : the covariates known in advance, at these steps; columns in `past_only` are not looked at.
        level : percent of central intervals, at least 1; 90 adds the columns `load-lo-90` and `load-hi-90`.
        quantiles : between 0 and 1; 0.1 adds the column `load_ql0.1`.
        point : "median" or "mean", in the column of the series, before those added, which ascend.

        Returns
        -------
        A Series, or a DataFrame where there are several series or columns added, on the stamps that follow
        the cutoff; of a long frame a long one, `unique_id, ds` and a column named after the model, from the
        cutoff of each series; for arrays what `forecast` returns.

        Raises
        ------
        NotFittedError : before fit.
        ValueError : `horizon`, `level`, `quantiles` or `point` out of range; `level` and `quantiles` at once.
        TypeError, ValueError : `X` is of another kind than in fit, is missing or lacks a value.

        Examples
        --------
        >>> import pandas as pd
        >>> from fracts.baselines import Naive
        >>> days = pd.date_range("2024-01-01", periods=3)
        >>> Naive(2).fit(pd.Series([1.0, 3.0, 2.0], days, name="load")).predict(level=50).round(2)
                    load  load-lo-50  load-hi-50
        2024-01-04   2.0        1.25        2.75
        2024-01-05   2.0        0.94        3.06
        """
        wanted = request(level, quantiles, point)
        table = self._table(horizon, X, wanted)
        from_each = self._counts if self._layout.apart else self._counts[:1]
        stamps = self._clock.future(from_each, table.shape[1])
        return self._layout.write(table, wanted.suffixes, stamps, type(self).__name__)

    def forecast(
        self,
        horizon: int | None = None,
        X: Any = None,
        *,
        level: float | Iterable[float] | None = None,
        quantiles: float | Iterable[float] | None = None,
        point: str = "median",
    ) -> NDArray[np.float64]:
        """`predict` as a bare array, without the wrapping. Changes nothing.

        Parameters and errors are those of `predict`.

        Returns
        -------
        (horizon,), or (horizon, 1 + k) with k quantiles after the point, where fit saw a Series or a 1-D
        array; (horizon, series) or (horizon, series, 1 + k) elsewhere.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> Naive(2).fit([[1.0, 10.0], [3.0, 20.0]]).forecast()
        array([[ 3., 20.],
               [ 3., 20.]])
        """
        table = self._table(horizon, X, request(level, quantiles, point))
        return self._layout.as_array(table)

    def update(self, y: Any, X: Any = None, *, update_params: bool = False) -> Self:
        """Move on over the rows `y` that follow the cutoff: the state moves, the weights stay.

        Parameters
        ----------
        y : (time,) or (time, series), of the kind given to fit. The rows of an array follow the last one. A
            frame may leave series out: in a wide one their time moves on without a value, in a long one they
            stay where they are.
        X : the covariates of these rows, all columns that fit saw.
        update_params : learn from these rows as well, where the model was made with `forgetting`.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        NotFittedError : before fit.
        TypeError : `y`, its values or its index are of another kind than in fit.
        ValueError : `y` is empty, infinite or unordered, starts before the cutoff, or has an unknown series;
            the model does not learn on, or not from series that end at different stamps.
        TypeError, ValueError : `X` is of another kind than in fit, is missing or lacks a value.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> Naive(2).fit([1.0, 3.0]).update([2.0, 5.0]).predict()
        array([5., 5.])
        """
        rows = self._continuation(y, X)
        learned = self._learned_on(rows) if update_params else {}
        state = advanced(self._advance, self._state, rows.panel, self._counts, rows.begin, rows.end)
        self.__dict__.update(learned, _state=state, _counts=rows.counts)
        return self

    def apply(self, y: Any, X: Any = None) -> Self:
        """A new estimator: these weights, the state of the history `y` alone, of these or other series.

        Parameters
        ----------
        y : (time,) or (time, series), any container that fit takes, on the time grid of fit.
        X : the covariates of these rows, all columns that fit saw.

        Returns
        -------
        Another estimator; this one stays as it is.

        Raises
        ------
        NotFittedError : before fit.
        TypeError : `y`, its values or its index are of a kind that is not read.
        ValueError : `y` is empty, infinite, out of order or off the grid; a series has no value, or was not
            fitted where each has coefficients of its own.
        TypeError, ValueError : `X` is of another kind than in fit, is missing or lacks a value.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> Naive(2).fit([1.0, 3.0]).apply([7.0, 9.0]).predict()
        array([9., 9.])
        """
        self._check_fitted()
        reading = read(y, self._names)
        other = copy.copy(self)
        other._leave_history()
        counts = other._enter(reading, self._clock.restarted(reading.index))
        other._start(other._panel(reading.values, counts, X), reading)
        return other

    def score(self, y: Any, X: Any = None) -> float:
        """Minus the RMSSE of the medians over the continuation `y`: all origins and leads, mean over series.

        The scale of each series is the mean squared step of its history. Changes nothing.

        Parameters
        ----------
        y : (time,) or (time, series), as `update` takes it.
        X : the covariates of these rows, all columns that fit saw. Every origin is told the true values of
            those known in advance.

        Returns
        -------
        A number of at most 0, the higher the better.

        Raises
        ------
        NotFittedError : before fit.
        TypeError, ValueError : as `update`; a series never moved; `y` holds no value.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> Naive(1).fit([1.0, 3.0, 5.0]).score([6.0, 5.0])
        -0.5
        """
        rows = self._continuation(y, X)
        if not (self._scale > 0).all():
            name = self.series_ids_[int(np.argmin(self._scale > 0))]
            raise ValueError(
                f"series {name!r} never moved in the history, so errors have no scale. "
                "Give a history with two different values, or score `predict` yourself with `fracts.scores`."
            )
        told = Medians(self._medians, self.horizon, self._covariates.n_known)
        squares = mean_squares(told, self._state, rows, self._counts, self._clock.times(self._counts))
        if (blank := np.isnan(squares)).all():
            raise ValueError("y holds no value to score. At least one is needed.")
        return -float(np.sqrt(squares[~blank] / self._scale[~blank]).mean())

    def learn_one(self, y: float, x: Any = None) -> Self:
        """`update` with the value of the next step of a single series.

        Parameters
        ----------
        y : a number, in the units of the series; NaN for none.
        x : the covariates of that step: {column: value}, or values in the order of `covariates_`.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        NotFittedError : before fit.
        TypeError, ValueError : `y` is no number or infinite; fit saw several series; `x` is missing or lacks
            a value.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> Naive(1).fit([1.0, 3.0]).learn_one(4.0).predict()
        array([4.])
        """
        self._check_fitted()
        self._learn_row(check_value(y, self.series_ids_), x)
        return self

    def learn_many(self, values: ArrayLike, x: Any = None) -> Self:
        """`update` with the values of the next step of every series.

        Parameters
        ----------
        values : (series,), in the order of `series_ids_`; NaN for none.
        x : the covariates of that step: {column: value} or values in the order of `covariates_`, the same for
            all series; or (series, columns).

        Returns
        -------
        The estimator itself.

        Raises
        ------
        NotFittedError : before fit.
        TypeError : `values` are no numbers, or a Series, whose labels would be ignored.
        ValueError : another shape, an infinite value.
        TypeError, ValueError : `x` is of another kind than in fit, is missing or lacks a value.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> Naive(1).fit([[1.0, 10.0], [3.0, 20.0]]).learn_many([4.0, np.nan]).predict()
        array([[ 4., 20.]])
        """
        self._check_fitted()
        self._learn_row(check_row(values, self.series_ids_), x)
        return self

    @property
    def cutoff_(self) -> Any:
        """The stamp of the last row known, for arrays its number; NotFittedError before fit.

        Of a long frame with names a dict: the stamp of each series.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> print(Naive(1).fit([1.0, 3.0]).learn_one(4.0).cutoff_)
        2
        """
        self._check_fitted()
        if self._layout.apart and not self._layout.flat:
            return {
                name: self._clock.stamp(at) for name, at in zip(self.series_ids_, self._counts, strict=True)
            }
        return self._clock.stamp(self._counts[0])
