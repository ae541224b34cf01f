"""The line from the first value through the last: the rule to beat where there is a trend."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fracts.base import Forecaster
from fracts.baselines.spread import AtEveryRow, advance_size, empty_size, learn_shape, size
from fracts.forecasts import Forecast
from fracts.series import Panel, State
from fracts.timeline import Clock

Array = NDArray[np.float64]

_ENDS = ("first", "first_time", "last", "last_time")


class Drift(AtEveryRow, Forecaster):
    """The line through the first and the last value goes on.

    Parameters
    ----------
    horizon : the longest lead whose errors are learned, in steps. Past it they grow as the root of the lead.

    Notes
    -----
    Its slope is the drift of a random walk: the mean step. With one value it is zero. Intervals are quantiles
    of the errors of the history at each lead, around the rule's value, which is the point both as median and
    as mean.

    Examples
    --------
    >>> Drift(2).fit([1.0, 4.0, 3.0]).update([7.0]).predict()
    array([ 9., 11.])
    """

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon

    def _fit(self, panel: Panel, clock: Clock) -> None:
        empty = self._empty_state(len(panel.values))
        ends = _ends(empty, panel)[..., 1:]
        rule = _line(ends, panel.times[:, None] + np.arange(1, self.horizon + 1))
        self.shape_ = learn_shape(panel, rule, size(self._advance(empty, panel)))

    def _empty_state(self, n_series: int) -> State:
        unknown = np.full(n_series, np.nan)
        return {**{name: unknown for name in ("time", *_ENDS)}, **empty_size(n_series)}

    def _advance(self, state: State, panel: Panel) -> State:
        ends = _ends(state, panel)
        return {
            "time": np.full_like(state["time"], panel.times[-1]),
            **dict(zip(_ENDS, ends[..., -1], strict=True)),
            **advance_size(state, _surprises(ends, panel)),
        }

    def _forecast(self, state: State, horizon: int, quantiles: Array) -> Forecast:
        ends = np.stack([state[name] for name in _ENDS])[..., None]
        points = _line(ends, state["time"][0] + np.arange(1.0, horizon + 1)[None])[:, 0]
        return self._around(points, size(state), quantiles)

    def _errors(self, state: State, panel: Panel) -> Array:
        return _surprises(_ends(state, panel), panel)

    def _points_at(self, state: State, panel: Panel, rows: NDArray[np.int64], horizon: int) -> Array:
        due = panel.times[rows, None] + np.arange(1.0, horizon + 1)
        return _line(_ends(state, panel)[..., rows + 1], due)

    def _around(self, points: Array, sizes: Array, levels: Array) -> Forecast:
        return self.shape_.around(points, sizes, np.sqrt, levels)


def _ends(state: State, panel: Panel) -> Array:
    """First and last value and their times (4, series, 1 + rows), before the first row and after each."""
    known = np.column_stack([np.full(len(panel.values), np.nan), panel.values])
    times = np.broadcast_to(np.append(np.nan, panel.times), known.shape)
    seen = ~np.isnan(known)
    latest = np.maximum.accumulate(np.where(seen, np.arange(known.shape[1]), 0), axis=1)
    earliest = np.where(seen.any(1), seen.argmax(1), known.shape[1])[:, None]
    begun = np.arange(known.shape[1]) >= earliest
    at = np.minimum(earliest, known.shape[1] - 1)
    found = []
    for name, table, place in (
        ("first", known, at),
        ("first_time", times, at),
        ("last", known, latest),
        ("last_time", times, latest),
    ):
        fresh = np.where(begun, np.take_along_axis(table, np.broadcast_to(place, known.shape), 1), np.nan)
        old = state[name][:, None]
        keep_old = np.isnan(fresh) | (name.startswith("first") & ~np.isnan(old))
        found.append(np.where(keep_old, old, fresh))
    return np.stack(found)


def _surprises(ends: Array, panel: Panel) -> Array:
    """One-step errors (series, rows) of the lines through `ends`, as `_ends` has them."""
    errors: Array = panel.values - _line(ends[..., :-1], panel.times[:, None])[..., 0]
    return errors


def _line(ends: Array, times: Array) -> Array:
    """(series, rows, leads): the line through `ends` (4, series, rows) at `times` (rows, leads)."""
    first, first_time, last, last_time = ends[..., None]
    span = last_time - first_time
    slope = np.where(span > 0, (last - first) / np.where(span > 0, span, 1.0), 0.0)
    line: Array = last + slope * (times - last_time)
    return line
