"""The door, written once: what every forecaster does, whatever its model.

One idea: an estimator is weights and a state. `fit` learns the weights and runs the state over the history;
`update` runs the state on; `predict` reads it. A model fills four hooks on plain arrays (`_fit`,
`_empty_state`, `_advance`, `_forecast`); containers, stamps, checks and names are dealt with here. Everything
is checked and computed before anything is assigned, so after an error the estimator is as it was.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from fracts.checks import check_no_covariates, check_positive_integer, check_row, check_some_value
from fracts.forecasts import Forecast, Request, request
from fracts.scores import naive_scale
from fracts.series import Layout, Panel, State, read
from fracts.timeline import Clock, learn_clock


class Forecaster(BaseEstimator, ABC):
    """Base of all forecasters: a model fills the four hooks at the end.

    A `y` is a pandas Series or wide DataFrame (a column a series) with dates, periods or integers as index, a
    1-D array or list, or a 2-D array (time, series). NaN is no value. What comes back is of the same kind.
    """

    horizon: int
    series_ids_: list[Any]
    freq_: str | None
    _learned: Sequence[str] = ()  # names of the attributes that the last fit set
    _state: State
    _count: int

    def fit(self, y: Any, X: None = None) -> Self:
        """Learn from the history `y`, forgetting any earlier fit.

        Parameters
        ----------
        y : (time,) or (time, series), a container as the class describes it.
        X : None.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        TypeError : `X` is given; `y`, its values or its index are of a kind that is not read.
        ValueError : a parameter is out of range; `y` is empty, infinite or unordered; a series has no value.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> Naive(2).fit([1.0, 3.0, 2.0]).series_ids_
        [0]
        """
        check_no_covariates(X)
        fresh = type(self)(**self.get_params(deep=False))
        given = set(vars(fresh))
        fresh._learn(y)
        fresh._learned = [name for name in vars(fresh) if name not in given]
        for name in self._learned:
            delattr(self, name)
        self.__dict__.update(vars(fresh))
        return self

    def predict(
        self,
        horizon: int | None = None,
        *,
        level: float | Iterable[float] | None = None,
        quantiles: float | Iterable[float] | None = None,
        point: str = "median",
    ) -> Any:
        """The next `horizon` steps, in the kind of container given to fit. Changes nothing.

        Parameters
        ----------
        horizon : steps; None for the horizon trained for.
        level : percent of central intervals; 90 adds the columns `load-lo-90` and `load-hi-90`.
        quantiles : between 0 and 1; 0.1 adds the column `load_ql0.1`.
        point : "median" or "mean", in the column of the series, before those added, which ascend.

        Returns
        -------
        A Series, or a DataFrame where there are several series or columns added, on the stamps that follow
        the cutoff; for arrays what `forecast` returns.

        Raises
        ------
        NotFittedError : before fit.
        ValueError : `horizon`, `level`, `quantiles` or `point` out of range; `level` and `quantiles` at once.

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
        table = self._table(horizon, wanted)
        return self._layout.write(table, wanted.suffixes, self._clock.future(self._count, table.shape[1]))

    def forecast(
        self,
        horizon: int | None = None,
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
        table = self._table(horizon, request(level, quantiles, point))
        return self._layout.as_array(table)

    def update(self, y: Any, X: None = None) -> Self:
        """Move on over the rows `y` that follow the cutoff: the state moves, the weights stay.

        Parameters
        ----------
        y : (time,) or (time, series), of the kind given to fit. The rows of an array follow the last one; a
            wide frame may leave series out, whose time moves on without a value.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        NotFittedError : before fit.
        TypeError : `y`, its values or its index are of another kind than in fit.
        ValueError : `y` is empty, infinite or unordered, starts before the cutoff, or has an unknown series.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> Naive(2).fit([1.0, 3.0]).update([2.0, 5.0]).predict()
        array([5., 5.])
        """
        check_no_covariates(X)
        panel, count = self._continuation(y)
        self._state, self._count = self._advance(self._state, panel), count
        return self

    def apply(self, y: Any, X: None = None) -> Self:
        """A new estimator: these weights, the state of the history `y` alone, of these or other series.

        Parameters
        ----------
        y : (time,) or (time, series), any container that fit takes, on the time grid of fit.

        Returns
        -------
        Another estimator; this one stays as it is.

        Raises
        ------
        NotFittedError : before fit.
        TypeError : `y`, its values or its index are of a kind that is not read.
        ValueError : `y` is empty, infinite, out of order or off the grid; a series has no value, or was not
            fitted where each has coefficients of its own.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> Naive(2).fit([1.0, 3.0]).apply([7.0, 9.0]).predict()
        array([9., 9.])
        """
        check_no_covariates(X)
        self._check_fitted()
        values, index, layout = read(y)
        other = copy.copy(self)
        other._start(other._enter(values, index, layout, self._clock.restarted(index)))
        return other

    def score(self, y: Any, X: None = None) -> float:
        """Minus the RMSSE of the medians over the continuation `y`: all origins and leads, mean over series.

        The scale of each series is the mean squared step of its history. Changes nothing.

        Parameters
        ----------
        y : (time,) or (time, series), as `update` takes it.
        X : None.

        Returns
        -------
        A number of at most 0, the higher the better.

        Raises
        ------
        NotFittedError : before fit.
        TypeError, ValueError : as `update`; `X` is given; a series never moved; `y` holds no value.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> Naive(1).fit([1.0, 3.0, 5.0]).score([6.0, 5.0])
        -0.5
        """
        check_no_covariates(X)
        panel, _ = self._continuation(y)
        if not (self._scale > 0).all():
            name = self.series_ids_[int(np.argmin(self._scale > 0))]
            raise ValueError(
                f"series {name!r} never moved in the history, so errors have no scale. "
                "Give a history with two different values, or score `predict` yourself with `fracts.scores`."
            )
        errors = self._errors(panel)
        if (blank := np.isnan(errors).all(axis=(1, 2))).all():
            raise ValueError("y holds no value to score. At least one is needed.")
        squares = np.nanmean(errors[~blank] ** 2, axis=(1, 2))
        return -float(np.sqrt(squares / self._scale[~blank]).mean())

    def learn_one(self, y: float) -> Self:
        """`update` with the value of the next step of a single series.

        Parameters
        ----------
        y : a number, in the units of the series; NaN for none.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        NotFittedError : before fit.
        TypeError, ValueError : `y` is no number or infinite; fit saw several series.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> Naive(1).fit([1.0, 3.0]).learn_one(4.0).predict()
        array([4.])
        """
        return self.learn_many([y])

    def learn_many(self, values: ArrayLike) -> Self:
        """`update` with the values of the next step of every series.

        Parameters
        ----------
        values : (series,), in the order of `series_ids_`; NaN for none.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        NotFittedError : before fit.
        TypeError : `values` are no numbers, or a Series, whose labels would be ignored.
        ValueError : another shape, an infinite value.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> Naive(1).fit([[1.0, 10.0], [3.0, 20.0]]).learn_many([4.0, np.nan]).predict()
        array([[ 4., 20.]])
        """
        self._check_fitted()
        row = check_row(values, self.series_ids_)
        count = int(self._count + self._clock.step)
        panel = Panel(row[:, None], self._clock.times(np.array([count])))
        self._state, self._count = self._advance(self._state, panel), count
        return self

    @property
    def cutoff_(self) -> Any:
        """The stamp of the last row known, for arrays its number; NotFittedError before fit.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> print(Naive(1).fit([1.0, 3.0]).learn_one(4.0).cutoff_)
        2
        """
        self._check_fitted()
        return self._clock.stamp(self._count)

    @abstractmethod
    def _fit(self, panel: Panel, clock: Clock) -> None:
        """Learn the weights, attributes ending in `_`, from a panel that may hold NaN."""

    @abstractmethod
    def _empty_state(self, n_series: int) -> State:
        """The state before any row."""

    @abstractmethod
    def _advance(self, state: State, panel: Panel) -> State:
        """The state after the rows of `panel`, knowing the time of the last; `state` is left alone."""

    @abstractmethod
    def _forecast(self, state: State, horizon: int, quantiles: NDArray[np.float64]) -> Forecast:
        """The next `horizon` steps seen from the last row of `state`, at ascending levels `quantiles`."""

    def _learn(self, y: Any) -> None:
        check_positive_integer(self.horizon, "horizon")
        values, index, layout = read(y)
        panel = self._enter(values, index, layout, learn_clock(index))
        self._fit(panel, self._clock)
        self._start(panel)

    def _enter(self, values: NDArray[np.float64], index: Any, layout: Layout, clock: Clock) -> Panel:
        """The history as a panel on `clock`, once everything known of it is taken down."""
        check_some_value(values, layout.ids)
        counts = clock.counts(index)
        self._layout, self._clock, self._count = layout, clock, int(counts[-1])
        self._scale = np.array([naive_scale(row, power=2) for row in values])
        self.series_ids_, self.freq_ = layout.ids, clock.freq
        return Panel(values, clock.times(counts))

    def _start(self, panel: Panel) -> None:
        self._state = self._advance(self._empty_state(len(panel.values)), panel)

    def _continuation(self, y: Any) -> tuple[Panel, int]:
        """The rows of `y`, checked to follow the cutoff, and the count of the last."""
        self._check_fitted()
        values, index, layout = read(y, start=self._count + 1)
        values = self._layout.align(layout, values)
        counts = self._clock.counts(index)
        if counts[0] <= self._count:
            raise ValueError(
                f"y starts at {index[0]}, but rows up to {self.cutoff_} are known. Stamps must come after "
                "the cutoff: leave the earlier rows out, or start anew with `apply` or `fit`."
            )
        return Panel(values, self._clock.times(counts)), int(counts[-1])

    def _table(self, horizon: int | None, wanted: Request) -> NDArray[np.float64]:
        self._check_fitted()
        steps = check_positive_integer(self.horizon if horizon is None else horizon, "horizon")
        return wanted.table(self._forecast(self._state, steps, wanted.asked))

    def _errors(self, panel: Panel) -> NDArray[np.float64]:
        """(series, rows, horizon): truth minus median, from the cutoff and all rows but the last."""
        state, medians = self._state, []
        for row in range(len(panel.times)):
            medians.append(self._forecast(state, self.horizon, np.array([0.5])).quantiles[..., 0])
            state = self._advance(state, Panel(panel.values[:, row : row + 1], panel.times[row : row + 1]))
        origins = np.append(self._clock.times(np.array([self._count])), panel.times)
        known = Panel(np.pad(panel.values, ((0, 0), (1, 0)), constant_values=np.nan), origins)
        return known.ahead(self.horizon)[:, :-1] - np.stack(medians, axis=1)

    def _check_fitted(self) -> None:
        if not hasattr(self, "_state"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit first.")
