"""The mean of the last values: the rule that forgets all that is older."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from fracts.base import Forecaster
from fracts.baselines.spread import AtEveryRow, advance_size, empty_size, learn_shape, size
from fracts.checks import check_positive_integer
from fracts.forecasts import Forecast
from fracts.series import Panel, State
from fracts.timeline import Clock

Array = NDArray[np.float64]


class WindowAverage(AtEveryRow, Forecaster):
    """The mean of the last `window` values.

    Parameters
    ----------
    horizon : the longest lead whose errors are learned, in steps. Past it they stay as they are.
    window : number of values, NaN not counted; of a shorter history all.

    Notes
    -----
    Intervals are quantiles of the errors of the history at each lead, around the rule's value: the point is
    the mean of the window both as median and as mean.

    Examples
    --------
    >>> WindowAverage(2, 2).fit([9.0, 1.0, 3.0]).update([5.0]).predict()
    array([4., 4.])
    """

    def __init__(self, horizon: int, window: int) -> None:
        self.horizon = horizon
        self.window = window

    def _fit(self, panel: Panel, clock: Clock) -> None:
        check_positive_integer(self.window, "window")
        empty = self._empty_state(len(panel.values))
        means, _ = _running(empty["window"], panel.values)
        rule = np.repeat(means[:, 1:, None], self.horizon, axis=2)
        self.shape_ = learn_shape(panel, rule, size(self._advance(empty, panel)))

    def _empty_state(self, n_series: int) -> State:
        return {"window": np.full((n_series, self.window), np.nan), **empty_size(n_series)}

    def _advance(self, state: State, panel: Panel) -> State:
        windows = _running(state["window"], panel.values)[1]
        return {"window": windows, **advance_size(state, self._errors(state, panel))}

    def _forecast(self, state: State, horizon: int, quantiles: Array) -> Forecast:
        points = np.repeat(_mean(state["window"])[:, None], horizon, axis=1)
        return self._around(points, size(state), quantiles)

    def _errors(self, state: State, panel: Panel) -> Array:
        return panel.values - _running(state["window"], panel.values)[0][:, :-1]

    def _points_at(self, state: State, panel: Panel, rows: NDArray[np.int64], horizon: int) -> Array:
        means = _running(state["window"], panel.values)[0][:, rows + 1]
        return np.repeat(means[..., None], horizon, axis=2)

    def _around(self, points: Array, sizes: Array, levels: Array) -> Forecast:
        return self.shape_.around(points, sizes, np.ones_like, levels)


def _running(windows: Array, values: Array) -> tuple[Array, Array]:
    """Means (series, 1 + rows) before the first row and after each, and the last window of each series."""
    means, last = np.empty((len(values), values.shape[1] + 1)), np.empty_like(windows)
    for k, (window, row) in enumerate(zip(windows, values, strict=True)):
        seen = ~np.isnan(row)
        line = np.append(window, row[seen])
        all_means = _mean(sliding_window_view(line, len(window)))
        means[k] = all_means[np.append(0, np.cumsum(seen))]
        last[k] = line[-len(window) :]
    return means, last


def _mean(windows: Array) -> Array:
    """Mean of each window (..., window) over its values, NaN where it has none."""
    count = (~np.isnan(windows)).sum(axis=-1)
    total = np.nansum(windows, axis=-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
