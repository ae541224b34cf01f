"""Linear Gaussian models as one filter: the exact Kalman update for a panel, each series with its own model.

    y[t] = design . x[t] + e[t],    x[t + 1] = transition x[t] + w[t]

The noises e and w may be correlated, so that models with a single source of error (exponential smoothing,
ARFIMA on its modes) need no extra state. A missing value is a step without correction, a gap is its power.
What is unknown at the start has an infinite variance of its own matrix, exactly.

Sources: Durbin and Koopman, Time Series Analysis by State Space Methods, 2nd ed. (2012), sections 4.3 and 5.2
(the diffuse start), in prediction form with correlated noises as in Harvey (1989), section 3.2.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fracts.forecasts import Forecast
from fracts.records import record
from fracts.series import Panel, State

Array = NDArray[np.float64]
Moments = tuple[Array, Array, Array]  # mean, spread and diffuse

_KNOWN = 1e-9  # share of the largest diffuse variance below which a direction is known
_SETTLED = 1e-13  # change of the spread in a step, in units of the error or of its own, from which it stays


@record
@dataclass(frozen=True)
class StateSpace:
    """One model for each series; all variances but `variance` itself are in units of it.

    Parameters
    ----------
    transition : (series, k, k).
    design : (series, k).
    noise : (series, k, k), covariance of w.
    cross : (series, k), covariance of w and e.
    error : (series,), variance of e.
    variance : (series,), in squared units of the series.
    start : (series, k), mean of the first state.
    spread, diffuse : (series, k, k), its covariance, and what infinity multiplies.
    """

    transition: Array
    design: Array
    noise: Array
    cross: Array
    error: Array
    variance: Array
    start: Array
    spread: Array
    diffuse: Array

    @classmethod
    def stack(cls, machines: Sequence[StateSpace]) -> StateSpace:
        """Models of single series as one, their states padded with zeros to the largest."""
        if len(machines) == 1:
            return machines[0]
        k = max(machine.design.shape[1] for machine in machines)
        padded = [
            [
                np.pad(array, [(0, 0), *((0, k - size) for size in array.shape[1:])])
                for array in (getattr(machine, field.name) for field in fields(cls))
            ]
            for machine in machines
        ]
        return cls(*(np.concatenate(arrays) for arrays in zip(*padded, strict=True)))

    def take(self, places: NDArray[np.int64]) -> StateSpace:
        """The models at `places`, one for each."""
        if len(places) == len(self.design) and (places == np.arange(len(places))).all():
            return self
        return StateSpace(*(getattr(self, field.name)[places] for field in fields(self)))

    def known_start(self) -> StateSpace:
        """The same models with nothing infinite: what is unknown at the start is what `start` says."""
        return replace(self, diffuse=np.zeros_like(self.diffuse))

    def empty(self, origin: int = 0) -> State:
        """The state before any row."""
        return {
            "mean": self.start,
            "spread": self.spread,
            "diffuse": self.diffuse,
            "begun": np.zeros(len(self.start), dtype=bool),
            "time": np.full(len(self.start), np.nan),
        }

    def advance(self, state: State, panel: Panel) -> State:
        """The state after the rows of `panel`, whose times are whole steps."""
        state, _, _ = self.filter(state, panel)
        return state

    def filter(self, state: State, panel: Panel) -> tuple[State, Array, Array]:
        """As `advance`, with the one-step errors (series, rows) and their variances in units of `variance`.

        An error is NaN where there is no value, and where the value only told what was unknown at the start.
        """
        now, begun = (state["mean"], state["spread"], state["diffuse"]), state["begun"]
        errors = np.full(panel.values.shape, np.nan)
        variances = np.full(panel.values.shape, np.nan)
        gaps = np.rint(np.diff(np.append(state["time"][0], panel.times)))
        seen = ~np.isnan(panel.values)
        whole = (gaps == 1) & seen.all(axis=0)
        row = 0
        while row < len(gaps):
            if gaps[row] > 1:
                now = _where(begun, self._skip(*now, int(gaps[row]) - 1), now)
            # Time before the first value is none of the series: the start stays what it is until then.
            begun = begun | seen[:, row]
            spread, certain = now[1], not now[2].any()
            *after, errors[:, row], variances[:, row] = self._correct(*now, panel.values[:, row])
            now = _where(begun, (after[0], after[1], after[2]), now)
            row += 1
            # While a start is learned the spread may stand still, and moves again once that is done.
            steady = certain and whole[row - 1] and whole[row : row + 1].any() and begun.all()
            if steady and _settled(spread, now[1]):
                rows = slice(row, row + int(np.argmin(np.append(whole[row:], False))))
                mean, errors[:, rows], variances[:, rows] = self._run(now[0], now[1], panel.values[:, rows])
                now, row = (mean, now[1], now[2]), rows.stop
        time = np.full_like(state["time"], panel.times[-1])
        mean, spread, diffuse = now
        after_all = {"mean": mean, "spread": spread, "diffuse": diffuse, "begun": begun, "time": time}
        return after_all, errors, variances

    def forecast(self, state: State, horizon: int, levels: Array) -> Forecast:
        """The next `horizon` steps, normal, at quantile `levels`."""
        means, spreads = self.moments(state, horizon)
        return Forecast(means, means[..., None] + spreads[..., None] * ndtri(levels))

    def moments(self, state: State, horizon: int) -> tuple[Array, Array]:
        """Means and standard deviations (series, horizon), in the units of the series.

        A direction that no value has told of yet counts as its start, without variance.
        """
        reach = self.design[:, None]  # (series, 1, k): what each state adds to the lead
        means = np.empty((len(reach), horizon))
        variances = np.empty_like(means)
        summed = self.error.copy()
        for lead in range(horizon):
            means[:, lead] = (reach @ state["mean"][..., None])[:, 0, 0]
            variances[:, lead] = summed + _square(reach, state["spread"])
            summed = summed + _square(reach, self.noise)
            reach = reach @ self.transition
        return means, np.sqrt(np.maximum(variances, 0.0) * self.variance[:, None])

    def _skip(self, mean: Array, spread: Array, diffuse: Array, steps: int) -> Moments:
        """The state `steps` later without a value, by squaring: the bits of `steps` say which powers."""
        power, noise = self.transition, self.noise
        while steps:
            if steps & 1:
                mean = (power @ mean[..., None])[..., 0]
                spread, diffuse = _through(power, spread) + noise, _through(power, diffuse)
            noise = noise + _through(power, noise)
            power = power @ power
            steps >>= 1
        return mean, spread, diffuse

    def _run(self, mean: Array, spread: Array, values: Array) -> tuple[Array, Array, Array]:
        """Mean, errors and variances after `values` without holes, with a spread that stays as it is."""
        _, variance, gain = self._gain(spread, np.ones(len(values), dtype=bool))
        errors = np.empty((values.shape[1], len(values), 1, 1))  # in order, as the products take them
        row, column, now = self.design[:, None], gain[..., None], mean[..., None]
        for value, error in zip(values.T[..., None, None], errors, strict=True):
            np.subtract(value, row @ now, out=error)
            now = self.transition @ now + column * error
        usable = (variance > 0)[:, None]
        told = errors[:, :, 0, 0].T
        return now[..., 0], np.where(usable, told, np.nan), np.where(usable, variance[:, None], np.nan)

    def _gain(self, spread: Array, seen: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
        """Covariance of the next state with a value, variance of that, and their ratio where it is of use."""
        reach = (spread @ self.design[..., None])[..., 0]
        variance = self._read(reach) + self.error
        moved = (self.transition @ reach[..., None])[..., 0] + self.cross
        usable = seen & (variance > 0)
        gain = np.where(usable[:, None], moved / np.where(usable, variance, 1.0)[:, None], 0.0)
        return moved, variance, gain

    def _read(self, states: Array) -> Array:
        """(series,): what `states` (series, k) add to a value."""
        read: Array = (self.design[:, None] @ states[..., None])[:, 0, 0]
        return read

    def _correct(
        self, mean: Array, spread: Array, diffuse: Array, values: Array
    ) -> tuple[Array, Array, Array, Array, Array]:
        seen = ~np.isnan(values)
        error = np.where(seen, values - self._read(mean), 0.0)
        moved, variance, gain = self._gain(spread, seen)
        usable = seen & (variance > 0)
        after = _through(self.transition, spread) + self.noise - gain[..., None] * moved[:, None]
        if diffuse.any():
            unknown, gain, after, diffuse = self._learn_start(diffuse, seen, gain, moved, variance, after)
            usable &= ~unknown
        mean = (self.transition @ mean[..., None])[..., 0] + gain * error[:, None]
        after = (after + after.swapaxes(1, 2)) / 2
        return mean, after, diffuse, np.where(usable, error, np.nan), np.where(usable, variance, np.nan)

    def _learn_start(
        self,
        diffuse: Array,
        seen: NDArray[np.bool_],
        gain: Array,
        moved: Array,
        variance: Array,
        after: Array,
    ) -> tuple[NDArray[np.bool_], Array, Array, Array]:
        """Gain and covariances where the value tells something of infinite variance."""
        reach = (diffuse @ self.design[..., None])[..., 0]
        infinite = (self.design * reach).sum(axis=1)
        unknown = seen & (infinite > _KNOWN * np.abs(diffuse).max(axis=(1, 2)))
        first = (self.transition @ reach[..., None])[..., 0] / np.where(unknown, infinite, 1.0)[:, None]
        corrected = _through(self.transition, diffuse)
        left = corrected - first[..., None] * first[:, None] * infinite[:, None, None]
        left[np.abs(left).max(axis=(1, 2)) <= _KNOWN] = 0.0
        open_loop = after + gain[..., None] * moved[:, None]
        cross = moved[..., None] * first[:, None]
        learned = (
            open_loop
            - cross
            - cross.swapaxes(1, 2)
            + first[..., None] * first[:, None] * variance[:, None, None]
        )
        at = unknown[:, None, None]
        return (
            unknown,
            np.where(unknown[:, None], first, gain),
            np.where(at, learned, after),
            np.where(at, left, corrected),
        )


def _where(begun: NDArray[np.bool_], after: Moments, before: Moments) -> Moments:
    """Of each series the state after, if it has begun."""
    if begun.all():
        return after
    mean, spread, diffuse = (
        np.where(begun.reshape(-1, *[1] * (old.ndim - 1)), new, old)
        for new, old in zip(after, before, strict=True)
    )
    return mean, spread, diffuse


def _settled(before: Array, after: Array) -> bool:
    """Whether a spread has come to stay."""
    return bool((np.abs(after - before) <= _SETTLED * max(1.0, np.abs(after).max())).all())


def _through(transition: Array, covariance: Array) -> Array:
    moved: Array = transition @ covariance @ transition.swapaxes(1, 2)
    return moved


def _square(row: Array, matrix: Array) -> Array:
    """(series,): row matrix row', of row (series, 1, k)."""
    product: Array = (row @ matrix @ row.swapaxes(1, 2))[:, 0, 0]
    return product
