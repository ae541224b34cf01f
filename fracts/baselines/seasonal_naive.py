"""The value one season ago: the rule to beat where there is a season."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fracts.anchor import SeasonSlots
from fracts.base import Forecaster
from fracts.baselines.spread import AtEveryRow, advance_size, empty_size, learn_shape, size
from fracts.checks import check_positive_integer
from fracts.forecasts import Forecast
from fracts.series import Panel, State
from fracts.timeline import Clock, default_season_lengths


class SeasonalNaive(AtEveryRow, Forecaster):
    """The last value seen at the same place in the season.

    Parameters
    ----------
    horizon : the longest lead whose errors are learned, in steps. Past it they grow as the root of the
        seasons begun.
    season_length : steps in a season, or "auto": the longest that the calendar implies (168 for hours, 52 for
        weeks) and the history shows three times; ValueError where there is none.

    Notes
    -----
    A place not seen yet has the last value. Intervals are quantiles of the errors of the history at each
    lead, around the rule's value, which is the point both as median and as mean.

    Examples
    --------
    >>> SeasonalNaive(3, season_length=3).fit([1.0, 2.0, 3.0, 4.0]).predict()
    array([2., 3., 4.])
    """

    def __init__(self, horizon: int, *, season_length: int | str = "auto") -> None:
        self.horizon = horizon
        self.season_length = season_length

    def _fit(self, panel: Panel, clock: Clock) -> None:
        self.season_lengths_ = (self._chosen_length(panel, clock),)
        self._slots = SeasonSlots(*self.season_lengths_)
        state = self._advance(self._empty_state(len(panel.values)), panel)
        leads, empty = np.arange(1, self.horizon + 1), self._slots.empty(len(panel.values))
        _, rule = self._slots.run(empty, panel.values, panel.times, leads)
        self.shape_ = learn_shape(panel, rule, size(state))

    def _chosen_length(self, panel: Panel, clock: Clock) -> int:
        if self.season_length != "auto":
            return check_positive_integer(self.season_length, "season_length")
        implied = default_season_lengths(clock, int(panel.times[-1]) + 1)
        if not implied:
            raise ValueError(
                f"season_length='auto' finds no season: {len(panel.times)} rows of freq {clock.freq} show "
                "none three times. Give the steps in a season, such as season_length=12."
            )
        return max(implied)

    def _empty_state(self, n_series: int) -> State:
        return {
            "time": np.full(n_series, np.nan),
            "slots": self._slots.empty(n_series),
            **empty_size(n_series),
        }

    def _advance(self, state: State, panel: Panel) -> State:
        slots = self._slots.advance(state["slots"], panel.values, panel.times)
        return {
            "time": np.full_like(state["time"], panel.times[-1]),
            "slots": slots,
            **advance_size(state, self._errors(state, panel)),
        }

    def _forecast(self, state: State, horizon: int, quantiles: NDArray[np.float64]) -> Forecast:
        points = self._slots.read(state["slots"], state["time"][0], horizon)
        return self._around(points, size(state), quantiles)

    def _errors(self, state: State, panel: Panel) -> NDArray[np.float64]:
        return panel.values - self._slots.before(state["slots"], panel.values, panel.times)

    def _points_at(
        self, state: State, panel: Panel, rows: NDArray[np.int64], horizon: int
    ) -> NDArray[np.float64]:
        leads = np.arange(1, horizon + 1)
        return self._slots.run(state["slots"], panel.values, panel.times, leads)[1][:, rows]

    def _around(
        self, points: NDArray[np.float64], sizes: NDArray[np.float64], levels: NDArray[np.float64]
    ) -> Forecast:
        return self.shape_.around(points, sizes, self._growth, levels)

    def _growth(self, leads: NDArray[np.int64]) -> NDArray[np.float64]:
        seasons_begun = (leads - 1) // self._slots.season_length + 1
        return np.sqrt(seasons_begun)
