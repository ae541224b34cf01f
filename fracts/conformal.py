"""Intervals that learn from their own misses: a conformal tracker of quantiles at leads up to the horizon.

One idea: a forecast is kept until its value comes, its error is told in units of what errors were like,
and every quantile moves a step up where it was exceeded and down where it was not, by as much as its
level asks for.

The tracker is that of Angelopoulos, Candes and Tibshirani (2023, Conformal PID Control for Time Series
Prediction, NeurIPS 36), q <- q + eta * (level - covered), at each lead k from the forecast made k steps
ago (Wang and Hyndman, 2024, arXiv 2410.13115). Whatever the series does, over any T steps the mean of
`covered` is off the level by what q moved over eta T, as the steps sum up: at most (range of the scores +
k eta) / (eta T).

Here `covered` is no jump but a ramp from 0 to 1 around the quantile, k eta wide: a value within it counts
in part. The bound is that of the ramp. So a late answer does not swing to and fro where a series repeats
itself, and rounding stays rounding: a stream equals a batch. Levels are tracked each by itself, as in the
paper, and told in ascending order (Ding, Gibbs and Tibshirani, 2025, arXiv 2512.23671, on what this may
cost the bound; one step ahead nothing, since the ramp keeps them in order).

What errors were like are averages of past ones: of themselves, a slow one, as far as it is beyond its
standard error, which follows a level that broke; and of their size, the mean of a quick and a slow one.
Steps and timescales were chosen on forecasts held out of the history of volatility, the VIX and taxis (one
step ahead of road traffic too), and on a river, on electric load and on processes with and without breaks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fracts.forecasts import QUANTILES
from fracts.records import record
from fracts.scaling import Array
from fracts.series import Panel, State

Ints = NDArray[np.int64]

_STEP = 0.1  # in sizes of an error, at lead 1; that of lead k is 1 / sqrt(k) of it
_QUICK, _SLOW = (20.0, 2.0), (100.0, 4.0)  # errors that an average goes back, and how many more for each lead
_SPREAD = 1.25  # standard deviation over mean size, of a normal law
_FARTHEST = 10.0  # sizes: an error beyond counts as one there in the averages
_EACH, _SPREAD_OUT = 24, 12  # leads up to which each is tracked, and how many, ever farther apart, beyond
_SMALLEST = 1e-12  # of the scale of the series: a size below it is none
_LOWER, _MEDIAN, _UPPER = (int(np.searchsorted(QUANTILES, level)) for level in (0.25, 0.5, 0.75))
_CELLS = np.diff(np.concatenate([[0.0], (QUANTILES[1:] + QUANTILES[:-1]) / 2, [1.0]]))
_KEPT = "thresholds", "averages", "due", "due_features"  # in the state


class Said(NamedTuple):
    """What a model says after each row of a panel, as far as nothing is known ahead."""

    median: Array  # (series, rows, horizon), in the units of the series
    scale: Array  # (series, rows)
    features: NDArray[np.floating]  # (series, rows, features), what else the forecast hangs on


class Due(NamedTuple):
    """Forecasts of each tracked lead whose value has come: `Said` at the rows where they were made."""

    median: Array  # (series, leads)
    scale: Array  # (series, leads)
    features: NDArray[np.floating]  # (series, leads, features)


class Outlook(NamedTuple):
    """Medians, and what an error below and above each is measured by: (series, leads) each."""

    median: Array
    below: Array
    above: Array


Complete = Callable[[Due, Array], Outlook]  # of due forecasts and the covariates (series, columns) that came


@record
@dataclass(frozen=True)
class Calibrator:
    """Quantiles of errors that start from held-out ones and are tracked.

    The state has, of each series, `averages` (leads, 3) of errors, of their sizes and, quicker, of their
    sizes, in units of scale; `thresholds` (leads, quantiles), distances to the mean error in sizes; and
    the forecasts whose values are still to come, in slots by the rounded time they were made: `due`
    (slots, 5 + quantiles), each slot of one lead, with that time (NaN for none), median, scale, mean
    error, size and thresholds; `due_features` (horizon + 1, features). Rows without a value change
    nothing.

    The median is the point forecast. It stays where the model has it as long as it lies between the tracked
    quartiles, and else moves to the nearer one.

    Parameters
    ----------
    leads : (leads,), those tracked, from 1 to the horizon.
    between : (horizon, leads), what each of them weighs at every lead.
    centre : (groups, horizon), the held-out median error, in units of scale.
    distances : (groups, horizon, quantiles), of the held-out errors to it.
    sizes : (groups, leads), of errors, to start from.
    step : (leads, 1), the farthest that a threshold moves at once, in sizes.
    weights : (leads, 3), of a new error in each of the averages.
    doubt : (leads,), the standard error of the first, in sizes.

    Examples
    --------
    >>> errors = np.linspace(-2.0, 2.0, QUANTILES.size)[None, None]  # of one group, at one lead
    >>> calibrator = Calibrator.of(errors)
    >>> group = np.zeros(1, dtype=np.int64)
    >>> bool(np.allclose(calibrator.errors(calibrator.empty(group) | {"group": group}), errors))
    True
    """

    leads: Ints
    between: Array
    centre: Array
    distances: Array
    sizes: Array
    step: Array
    weights: Array
    doubt: Array

    @classmethod
    def of(cls, errors: Array) -> Self:
        """The calibrator that starts from the quantiles of held-out `errors` (groups, horizon, quantiles)."""
        horizon = errors.shape[1]
        every = np.arange(1, horizon + 1)
        apart = np.unique(np.geomspace(1, horizon, _SPREAD_OUT).round().astype(np.int64))
        leads = every if horizon <= _EACH else apart
        between = np.stack([np.interp(every, leads, one) for one in np.eye(leads.size)], axis=1)
        centre = errors[..., _MEDIAN].copy()
        distances = errors - centre[..., None]
        sizes = np.maximum(np.abs(distances[:, leads - 1]) @ _CELLS, _SMALLEST)
        memory = np.stack([start + more * leads for start, more in (_SLOW, _SLOW, _QUICK)], axis=-1)
        weights = -np.expm1(-1 / memory)
        # Errors of lead k hang together over k steps: forecasts made meanwhile share most of what comes.
        doubt = _SPREAD * np.sqrt(leads * weights[:, 0] / 2)
        step = _STEP / np.sqrt(leads)[:, None]
        return cls(leads, between, centre, distances, sizes, step, weights, doubt)

    def start(self, group: Ints) -> State:
        """Thresholds and averages of series of each `group` (series,), as held-out errors have them."""
        sizes = self.sizes[group]
        thresholds = self.distances[group][:, self.leads - 1] / sizes[..., None]
        return {"thresholds": thresholds, "averages": np.stack([np.zeros_like(sizes), sizes, sizes], axis=-1)}

    def empty(self, group: Ints, features: NDArray[np.floating] | None = None) -> State:
        """State of series of each `group` (series,) before any row.

        features: (series, features), whose number and dtype count; None for none.
        """
        like = np.empty((len(group), 0)) if features is None else features
        due = np.ones((len(group), int((self.leads + 1).sum()), 5 + QUANTILES.size))
        due[..., 0] = np.nan
        rows = np.zeros((len(group), len(self.between) + 1, like.shape[1]), like.dtype)
        return self.start(group) | {"due": due, "due_features": rows}

    def errors(self, state: State) -> Array:
        """Quantiles of the errors to expect, in units of scale: (series, horizon, quantiles)."""
        held_out = self.distances[state["group"]]
        mean, size = self._read(state["averages"])
        tracked = mean[..., None] + size[..., None] * state["thresholds"]
        found = np.sort(held_out + self.between @ (tracked - held_out[:, self.leads - 1]), axis=-1)
        median = np.clip(0.0, found[..., [_LOWER]], found[..., [_UPPER]])
        found[..., :_MEDIAN] = np.minimum(found[..., :_MEDIAN], median)
        found[..., _MEDIAN:] = np.maximum(found[..., _MEDIAN:], median)
        found[..., [_MEDIAN]] = median
        found += self.centre[state["group"]][..., None]
        return found

    def along(
        self, state: State, panel: Panel, said: Said, complete: Complete, rows: Ints
    ) -> tuple[State, State]:
        """State after the rows of `panel`, where the model `said` this, and what `errors` reads of it after
        each of `rows`, ascending, with series and rows in one axis; `state` itself is left alone.

        complete: puts what was known ahead into forecasts that are due.
        """
        after = {name: state[name].copy() for name in _KEPT}
        told = {
            name: np.empty((len(panel.values), rows.size, *after[name].shape[1:]))
            for name in ("thresholds", "averages")
        }
        wanted = {row: at for at, row in enumerate(rows.tolist())}
        median = said.median[..., self.leads - 1]
        time = np.floor(panel.times + 0.5).astype(np.int64)
        slots = self._slots(time[:, None])
        made = time[:, None] - self.leads
        due = self._slots(made)
        kept_rows = after["due_features"].shape[1]
        for row, seen in enumerate((~np.isnan(panel.values)).T):
            if seen.any():
                came = after["due"][:, due[row]]
                known = (came[..., 0] == made[row]) & seen[:, None]
                if known.any():
                    features = after["due_features"][:, made[row] % kept_rows]
                    outlook = complete(Due(came[..., 1], came[..., 2], features), panel.covariates[:, row])
                    self._track(after, panel.values[:, row, None], outlook, came, known)
                kept = self._kept(after, time[row], median[:, row], said.scale[:, row, None])
                after["due"][np.flatnonzero(seen)[:, None], slots[row]] = kept[seen]
                after["due_features"][seen, time[row] % kept_rows] = said.features[seen, row]
            if row in wanted:
                for name, array in told.items():
                    array[:, wanted[row]] = after[name]
        return after, {name: array.reshape(-1, *array.shape[2:]) for name, array in told.items()}

    def _track(
        self, after: State, values: Array, outlook: Outlook, came: Array, known: NDArray[np.bool_]
    ) -> None:
        """Learn from the `values` (series, 1) of a row, for which `came` what was kept, where `known`."""
        mean, size = came[..., 3], came[..., 4]
        error = np.where(known, values - outlook.median, 0.0)
        error /= np.where(error < 0, outlook.below, outlook.above)
        rest = error - mean
        above = (came[..., 5:] - (rest / size)[..., None]) / (self.step * self.leads[:, None])
        covered = np.minimum(np.maximum(above + 0.5, 0.0), 1.0)
        after["thresholds"] += self.step * known[..., None] * (QUANTILES - covered)
        farthest = _FARTHEST * size
        seen = np.empty_like(after["averages"])
        seen[..., 0] = mean + np.minimum(np.maximum(rest, -farthest), farthest)
        seen[..., 1:] = np.minimum(np.abs(rest), farthest)[..., None]
        after["averages"] += self.weights * known[..., None] * (seen - after["averages"])

    def _kept(self, after: State, time: int, median: Array, scale: Array) -> Array:
        """What is kept of forecasts made at `time`: (series, leads, 5 + quantiles); scale: (series, 1)."""
        kept = np.empty((*median.shape, 5 + QUANTILES.size))
        kept[..., 0], kept[..., 1], kept[..., 2] = time, median, scale
        kept[..., 3], kept[..., 4] = self._read(after["averages"])
        kept[..., 5:] = after["thresholds"]
        return kept

    def _read(self, averages: Array) -> tuple[Array, Array]:
        """Mean and size of errors, (series, leads) each."""
        mean, size = averages[..., 0], np.maximum((averages[..., 1] + averages[..., 2]) / 2, _SMALLEST)
        doubt = self.doubt * size
        return mean - np.minimum(np.maximum(mean, -doubt), doubt), size

    def _slots(self, made: Ints) -> Ints:
        """Where the forecasts of each lead made at the times `made` (..., leads) are kept."""
        sizes = self.leads + 1
        slots: Ints = np.cumsum(sizes) - sizes + made % sizes
        return slots
