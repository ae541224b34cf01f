"""The last value: the rule every forecast must beat."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fracts.anchor import SeasonSlots
from fracts.base import Forecaster
from fracts.baselines.spread import AtEveryRow, advance_size, empty_size, learn_shape, size
from fracts.forecasts import Forecast
from fracts.series import Panel, State
from fracts.timeline import Clock


class Naive(AtEveryRow, Forecaster):
    """The last value goes on.

    Parameters
    ----------
    horizon : the longest lead whose errors are learned, in steps. Past it they grow as the root of the lead.

    Notes
    -----
    Intervals are quantiles of the errors of the history at each lead, around the rule's value: the point is
    the last value both as median and as mean.

    Examples
    --------
    >>> Naive(2).fit([1.0, 3.0, 2.0]).update([5.0]).predict()
    array([5., 5.])
    """

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon

    def _fit(self, panel: Panel, clock: Clock) -> None:
        state = self._advance(self._empty_state(len(panel.values)), panel)
        _, rule = _LAST.run(
            _LAST.empty(len(panel.values)), panel.values, panel.times, np.arange(1, self.horizon + 1)
        )
        self.shape_ = learn_shape(panel, rule, size(state))

    def _empty_state(self, n_series: int) -> State:
        return {"time": np.full(n_series, np.nan), "slots": _LAST.empty(n_series), **empty_size(n_series)}

    def _advance(self, state: State, panel: Panel) -> State:
        slots = _LAST.advance(state["slots"], panel.values, panel.times)
        return {
            "time": np.full_like(state["time"], panel.times[-1]),
            "slots": slots,
            **advance_size(state, self._errors(state, panel)),
        }

    def _forecast(self, state: State, horizon: int, quantiles: NDArray[np.float64]) -> Forecast:
        points = _LAST.read(state["slots"], state["time"][0], horizon)
        return self._around(points, size(state), quantiles)

    def _errors(self, state: State, panel: Panel) -> NDArray[np.float64]:
        return panel.values - _LAST.before(state["slots"], panel.values, panel.times)

    def _points_at(
        self, state: State, panel: Panel, rows: NDArray[np.int64], horizon: int
    ) -> NDArray[np.float64]:
        return _LAST.run(state["slots"], panel.values, panel.times, np.arange(1, horizon + 1))[1][:, rows]

    def _around(
        self, points: NDArray[np.float64], sizes: NDArray[np.float64], levels: NDArray[np.float64]
    ) -> Forecast:
        return self.shape_.around(points, sizes, np.sqrt, levels)


_LAST = SeasonSlots(1)
