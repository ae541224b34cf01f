"""The mean of the past: the rule that remembers everything alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fracts.base import Forecaster
from fracts.baselines.spread import AtEveryRow, advance_size, empty_size, learn_shape, size
from fracts.forecasts import Forecast
from fracts.series import Panel, State
from fracts.timeline import Clock


class Mean(AtEveryRow, Forecaster):
    """The mean of all values so far.

    Parameters
    ----------
    horizon : the longest lead whose errors are learned, in steps. Past it they stay as they are.

    Notes
    -----
    Intervals are quantiles of the errors of the history at each lead, around the rule's value: the point is
    the mean of the past both as median and as mean.

    Examples
    --------
    >>> Mean(2).fit([1.0, 3.0]).update([5.0]).predict()
    array([3., 3.])
    """

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon

    def _fit(self, panel: Panel, clock: Clock) -> None:
        empty = self._empty_state(len(panel.values))
        means = _means(empty, panel)[:, 1:, None]
        self.shape_ = learn_shape(
            panel, np.repeat(means, self.horizon, axis=2), size(self._advance(empty, panel))
        )

    def _empty_state(self, n_series: int) -> State:
        return {"sum": np.zeros(n_series), "values": np.zeros(n_series), **empty_size(n_series)}

    def _advance(self, state: State, panel: Panel) -> State:
        sums, values = _running(state, panel)
        moved = advance_size(state, panel.values - _mean(sums, values)[:, :-1])
        return {"sum": sums[:, -1], "values": values[:, -1], **moved}

    def _forecast(self, state: State, horizon: int, quantiles: NDArray[np.float64]) -> Forecast:
        points = np.repeat((state["sum"] / state["values"])[:, None], horizon, axis=1)
        return self._around(points, size(state), quantiles)

    def _errors(self, state: State, panel: Panel) -> NDArray[np.float64]:
        return panel.values - _means(state, panel)[:, :-1]

    def _points_at(
        self, state: State, panel: Panel, rows: NDArray[np.int64], horizon: int
    ) -> NDArray[np.float64]:
        return np.repeat(_means(state, panel)[:, rows + 1, None], horizon, axis=2)

    def _around(
        self, points: NDArray[np.float64], sizes: NDArray[np.float64], levels: NDArray[np.float64]
    ) -> Forecast:
        return self.shape_.around(points, sizes, np.ones_like, levels)


def _running(state: State, panel: Panel) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sum and number of values (series, 1 + rows), before the first row and after each."""
    known = ~np.isnan(panel.values)
    # Added one by one, so that any cutting of the rows gives the same bits.
    sums = np.cumsum(np.column_stack([state["sum"], np.where(known, panel.values, 0.0)]), axis=1)
    return sums, np.cumsum(np.column_stack([state["values"], known]), axis=1)


def _means(state: State, panel: Panel) -> NDArray[np.float64]:
    """Mean of the past (series, 1 + rows), before the first row and after each; NaN before any value."""
    return _mean(*_running(state, panel))


def _mean(sums: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of so many `values`, NaN of none."""
    return np.where(values > 0, sums / np.maximum(values, 1.0), np.nan)
