"""Exponential smoothing of a short series: many at once, each heard as far as it would have been right.

One idea: a series too short for coefficients of its own still tells how fast its level moves, whether it has
a season and whether its trend goes on. So it is smoothed with every gain of a small grid, with and without
the season, and with shares of the slope of its straight line as drift; half of it is the Theta method
(Hyndman and Billah, 2003, International Journal of Forecasting 19). What is said is the mean of these
members. The weight of each is the likelihood of its errors one step ahead, all made before their value came
(Dawid, 1984, Journal of the Royal Statistical Society A 147(2)): nothing is fitted, and a series that is new
is as good as any other.

A gain is never below that of a plain mean of what was seen, so the first values do not linger. A row without
a value moves nothing but the clock. The state is one array of numbers a series, all around its first value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fracts.fast import compiled_smoothing, compiles
from fracts.records import record
from fracts.scaling import SMALLEST, Array

Ints = NDArray[np.int64]

GAINS = (0.1, 0.2, 0.4, 0.7, 1.0)  # of the level
SEASON_GAINS = (0.3, 0.6)
# Shares of the slope that members have as drift. One step ahead tells little of a trend, so whether all of it
# goes on is not left to a series: that is a mean of its own, for those who read it to weigh at every lead.
DRIFTS = ((0.0, 0.5), (1.0,))
_ROUNDING = 1e-13  # of a sum of squares: an error below it is none
_NO_LEADS = np.empty(0, dtype=np.int64)
_LINE = 8  # numbers that the straight line takes


class _Parts(NamedTuple):
    """Views of a state, (series, ...). A rhythm is no season, or one of a length and a gain."""

    line: Array  # (series, 8): first value and time, last time; count and sums t, tt, u, tu around the first
    squares: Array  # (series, rhythms, members), of the errors
    level: Array  # (series, rhythms, members)
    counts: list[Array]  # of each length (series, length), values seen in each phase
    seasons: list[Array]  # of each rhythm with a season (series, members, length)


@record
@dataclass(frozen=True)
class Smoothers:
    """The mean of exponential smoothings with and without a season of each of `season_lengths` steps.

    drifts: shares of the slope of the straight line that are carried on. Everywhere `values` is (series,
    rows), NaN for no value, `times` is (rows,), in steps and increasing. What is said is NaN before the first
    value of a series.

    Examples
    --------
    >>> smoothing = Smoothers((4,), drifts=(1.0,))
    >>> line = np.arange(20.0)
    >>> state = smoothing.advance(smoothing.empty(1), line[None], line)
    >>> smoothing.read(state, now=19.0, horizon=3).round(3)
    array([[20., 21., 22.]])
    """

    season_lengths: tuple[int, ...] = ()
    drifts: tuple[float, ...] = DRIFTS[0]

    @property
    def season_length(self) -> int:
        """Steps until it has seen a season."""
        return max(self.season_lengths, default=1)

    def empty(self, n_series: int) -> Array:
        """The state before any row: (series, numbers)."""
        return np.zeros((n_series, sum(math.prod(shape) for shape in self._shapes)))

    def advance(self, state: Array, values: Array, times: Array) -> Array:
        """The state after the rows; rows without a value leave it as it was."""
        after = state.copy()
        if compiles():
            self._run_compiled(after, values, times, _NO_LEADS)
            return after
        for value, time in zip(values.T, times.tolist(), strict=True):
            self._hear(after, value, time)
        return after

    def step(self, state: Array, values: Array, time: float) -> Array:
        """`advance` over a single row.  values: (series,)."""
        return self.advance(state, values[:, None], np.array([time]))

    def read(self, state: Array, now: float, horizon: int, weights: Array | None = None) -> Array:
        """(series, horizon): what is said of `now + 1` to `now + horizon`.

        weights: of the members, other than those of `weights`.
        """
        leads = np.arange(1, horizon + 1)
        if weights is None and compiles():
            state = (
                state if state.flags.writeable else state.copy()
            )  # compiled code asks for what it may move
            return self._run_compiled(state, np.full((len(state), 1), np.nan), np.array([now]), leads)[:, 0]
        return self._said(state, now, leads, weights)

    def run(self, state: Array, values: Array, times: Array, leads: Ints) -> tuple[Array, Array]:
        """The state after the rows, and what `read` says after each of them: (series, rows, leads).

        leads: of those from 1 on, in steps.
        """
        after = state.copy()
        if compiles():
            return after, self._run_compiled(after, values, times, leads)
        said = np.empty((*values.shape, leads.size))
        for row, (value, time) in enumerate(zip(values.T, times.tolist(), strict=True)):
            self._hear(after, value, time)
            said[:, row] = self._said(after, time, leads)
        return after, said

    @staticmethod
    def seen(state: Array) -> Array:
        """Number of values (series,) behind a state."""
        return state[:, 3]

    def weights(self, state: Array) -> Array:
        """How loud each is heard: (series, rhythms, members), not negative and of sum 1 for a series."""
        parts = self._parts(state)
        worst = np.maximum(parts.squares.max((1, 2), keepdims=True), SMALLEST)
        share = np.maximum(parts.squares / worst, _ROUNDING)
        n_errors = np.maximum(parts.line[:, 3] - self.season_length, 0.0)[:, None, None]
        likelihood = -n_errors / 2 * np.log(share)
        weights = np.exp(likelihood - likelihood.max((1, 2), keepdims=True))
        return np.asarray(weights / weights.sum((1, 2), keepdims=True))

    @cached_property
    def _each(self) -> Array:
        return np.array(list(product(GAINS, self.drifts)))

    @cached_property
    def _rhythms(self) -> list[tuple[int, float]]:
        """Place of its length and gain of each rhythm with a season."""
        return [(at, gain) for at in range(len(self.season_lengths)) for gain in SEASON_GAINS]

    def _run_compiled(self, state: Array, values: Array, times: Array, leads: Ints) -> Array:
        """Move `state` by the rows, and what is said after each of them: (series, rows, leads)."""
        said: Array = compiled_smoothing().run(state, values, times, leads, self._compiled, _ROUNDING)
        return said

    @cached_property
    def _compiled(self) -> tuple[Array, Ints, Ints, Array, int]:
        """What compiled code needs to know."""
        places, least = zip(*self._rhythms, strict=True) if self._rhythms else ((), ())
        lengths = np.array(self.season_lengths, dtype=np.int64)
        return self._each, lengths, np.array(places, dtype=np.int64), np.array(least, dtype=float), _LINE

    @cached_property
    def _shapes(self) -> list[tuple[int, ...]]:
        """Of the `_Parts` of one series, one after the other."""
        members = 1 + len(self._rhythms), len(self._each)
        counts = [(length,) for length in self.season_lengths]
        seasons = [(len(self._each), self.season_lengths[at]) for at, _ in self._rhythms]
        return [(_LINE,), members, members, *counts, *seasons]

    def _parts(self, state: Array) -> _Parts:
        line, squares, level, *rest = _views(state, self._shapes)
        n = len(self.season_lengths)
        return _Parts(line, squares, level, rest[:n], rest[n:])

    def _phases(self, time: float, leads: Ints) -> list[Ints]:
        """Places (leads,) in each season of the `leads` after a time."""
        return [(math.floor(time) + leads) % length for length in self.season_lengths]

    def _hear(self, state: Array, values: Array, time: float) -> None:
        """Move `state` by the `values` (series,) of a row."""
        seen = ~np.isnan(values)
        if seen.all():
            self._hear_all(state, values, time)
        elif seen.any():
            some = state[seen]
            self._hear_all(some, values[seen], time)
            state[seen] = some

    def _hear_all(self, state: Array, values: Array, time: float) -> None:
        parts = self._parts(state)
        line, phases = parts.line, self._phases(time, np.array(0))
        new, warm = line[:, 3] == 0, line[:, 3] >= self.season_length
        line[new, 0], line[new, 1:3] = values[new], time
        value = values - line[:, 0]
        drift = ((time - line[:, 2]) * _slope(line))[:, None, None] * self._each[:, 1]
        error = value[:, None, None] - parts.level - drift
        for at, ((length, _), season) in enumerate(zip(self._rhythms, parts.seasons, strict=True), start=1):
            error[:, at] -= season[..., phases[length]]
        parts.squares[warm] += error[warm] ** 2
        _lengthen(line, value, time)
        gain = np.maximum(self._each[:, 0], 1 / line[:, 3, None])[:, None]
        parts.level[:] += drift + gain * error
        self._turn(parts, phases, (1 - gain) * error)

    def _turn(self, parts: _Parts, phases: list[Ints], rest: Array) -> None:
        """Give the seasons what the levels left over of the errors: `rest` (series, rhythms, members)."""
        for count, phase in zip(parts.counts, phases, strict=True):
            count[:, phase] += 1
        for at, ((length, least), season) in enumerate(zip(self._rhythms, parts.seasons, strict=True), 1):
            phase = phases[length]
            gain = np.maximum(least, 1 / (1 + parts.counts[length][:, phase]))
            season[..., phase] += gain[:, None] * rest[:, at]

    def _said(self, state: Array, time: float, leads: Ints, weights: Array | None = None) -> Array:
        """(series, leads): what is said of the `leads` after a time."""
        parts, weights = self._parts(state), self.weights(state) if weights is None else weights
        line = parts.line
        drift = _slope(line) * (weights.sum(1) @ self._each[:, 1])
        level = line[:, 0] + (weights * parts.level).sum((1, 2))
        said = level[:, None] + drift[:, None] * (time - line[:, 2, None] + leads)
        phases = self._phases(time, leads)
        for at, ((length, _), season) in enumerate(zip(self._rhythms, parts.seasons, strict=True), 1):
            said += (weights[:, at, None] @ season)[:, 0, phases[length]]
        said[line[:, 3] == 0] = np.nan
        return np.asarray(said)


def _views(state: Array, shapes: list[tuple[int, ...]]) -> Iterator[Array]:
    """One after the other, views of `state` (series, numbers) of the `shapes` a series."""
    start = 0
    for shape in shapes:
        stop = start + math.prod(shape)
        yield state[:, start:stop].reshape(len(state), *shape)
        start = stop


def _lengthen(line: Array, value: Array, time: float) -> None:
    """Add a `value` (series,) around the first one to the straight line."""
    since = time - line[:, 1]
    line[:, 2] = time
    line[:, 3] += 1
    line[:, 4] += since
    line[:, 5] += since**2
    line[:, 6] += value
    line[:, 7] += since * value


def _slope(line: Array) -> Array:
    """Slope (series,) of the straight line, 0 for fewer than three values."""
    count, t, tt, u, tu = line[:, 3:].T
    spread = count * tt - t**2
    known = (count > 2) & (spread > 0)
    slope: Array = np.divide(count * tu - t * u, spread, out=np.zeros(len(line)), where=known)
    return slope
