"""How far a simple rule is off: its errors at every lead, in units of its own typical one-step error.

One idea: the shape of the errors is learned once, from every origin of the history and pooled over the
series; their size is a running root mean square in the state, so it fits any series and streams exactly. The
median is taken out of the errors, so the point is the value of the rule, as median and as mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fracts.forecasts import QUANTILES, Forecast, interpolate_quantiles
from fracts.passes import Ahead, rolled
from fracts.records import record
from fracts.series import Panel, State

ENOUGH = 20  # errors at a lead, for its quantiles to be learned

Growth = Callable[[NDArray[np.int64]], NDArray[np.float64]]


def empty_size(n_series: int) -> State:
    """The running size before any error."""
    return {"squares": np.zeros(n_series), "errors": np.zeros(n_series)}


def advance_size(state: State, errors: NDArray[np.float64]) -> State:
    """The running size after one-step `errors` (series, rows), NaN for none."""
    if errors.shape[1] == 1:
        error = errors[:, 0]
        known = ~np.isnan(error)
        squares = state["squares"] + np.where(known, error, 0.0) ** 2
        return {"squares": squares, "errors": state["errors"] + known}
    return {name: sums[:, -1] for name, sums in _running(state, errors).items()}


def size(state: State) -> NDArray[np.float64]:
    """(series,): root mean square of the one-step errors, 0 before the first."""
    return np.sqrt(state["squares"] / np.maximum(state["errors"], 1.0))


def _running(state: State, errors: NDArray[np.float64]) -> State:
    """The running size (series, 1 + rows) before the first row of `errors` and after each."""
    known = ~np.isnan(errors)
    # Added one by one, so that any cutting of the rows gives the same bits.
    squares = np.cumsum(np.column_stack([state["squares"], np.where(known, errors, 0.0) ** 2]), axis=1)
    return {"squares": squares, "errors": np.cumsum(np.column_stack([state["errors"], known]), axis=1)}


@record
@dataclass(frozen=True)
class Shape:
    """Errors of a rule in units of its size: `quantiles` (k, 25) at `QUANTILES` for `leads` (k,)."""

    leads: NDArray[np.int64]
    quantiles: NDArray[np.float64]

    def around(
        self,
        points: NDArray[np.float64],
        sizes: NDArray[np.float64],
        growth: Growth,
        levels: NDArray[np.float64],
    ) -> Forecast:
        """The forecast with the rule's `points` (series, horizon) and these errors around them.

        A lead between or past those known has the errors of the last one known, grown by the ratio of
        `growth`.
        """
        leads = np.arange(1, points.shape[1] + 1)
        at = np.maximum(np.searchsorted(self.leads, leads, side="right") - 1, 0)
        ratio = growth(leads) / growth(self.leads[at])
        errors = interpolate_quantiles(self.quantiles, levels)[at] * ratio[:, None]  # (horizon, levels)
        return Forecast(points, points[..., None] + sizes[:, None, None] * errors)


def learn_shape(panel: Panel, rule: NDArray[np.float64], sizes: NDArray[np.float64]) -> Shape:
    """The errors of `rule` (series, rows, horizon), seen from every row with a value, over `sizes` (series,).

    A lead is known from 20 errors on; where none has as many, the one with the most is. With no error at all
    the shape is flat.
    """
    moving = sizes > 0
    errors = (panel.ahead(rule.shape[2]) - rule)[moving] / sizes[moving, None, None]
    errors[np.isnan(panel.values[moving])] = np.nan
    by_lead = [lead[~np.isnan(lead)] for lead in errors.transpose(2, 0, 1)]
    counts = np.array([lead.size for lead in by_lead])
    if not counts.any():
        return Shape(np.array([1]), np.zeros((1, len(QUANTILES))))
    known = np.flatnonzero(counts >= min(ENOUGH, counts.max()))
    quantiles = np.array([np.quantile(by_lead[lead], QUANTILES) for lead in known])
    return Shape(known + 1, quantiles - interpolate_quantiles(quantiles, np.array([0.5])))


class AtEveryRow(ABC):
    """Mixin of rules that speak after every row at once. Goes before `Forecaster` among the bases."""

    _advance: Any
    _forecast: Any

    @abstractmethod
    def _errors(self, state: State, panel: Panel) -> NDArray[np.float64]:
        """One-step errors (series, rows) of the rows of `panel`, NaN for none."""

    @abstractmethod
    def _points_at(
        self, state: State, panel: Panel, rows: NDArray[np.int64], horizon: int
    ) -> NDArray[np.float64]:
        """The rule's values (series, len(rows), horizon) after each of `rows` of `panel`."""

    @abstractmethod
    def _around(
        self, points: NDArray[np.float64], sizes: NDArray[np.float64], levels: NDArray[np.float64]
    ) -> Forecast:
        """The forecast with these `points` (series, horizon), and errors of `sizes` (series,)."""

    def _roll(
        self,
        state: State,
        panel: Panel,
        origins: NDArray[np.int64],
        ahead: Ahead,
        horizon: int,
        quantiles: NDArray[np.float64],
    ) -> Iterator[Forecast]:
        def run(
            seen: State, part: Panel, rows: NDArray[np.int64], _: NDArray[np.float64]
        ) -> tuple[Forecast, State]:
            running = _running(seen, self._errors(seen, part))
            sizes = size({name: sums[:, rows + 1].ravel() for name, sums in running.items()})
            points = self._points_at(seen, part, rows, horizon).reshape(-1, horizon)
            return self._around(points, sizes, quantiles), self._advance(seen, part)

        return rolled(
            lambda seen: self._forecast(seen, horizon, quantiles), run, state, panel, origins, ahead
        )
