"""Exponential smoothing of short series, compiled by numba: the numbers of `fracts.smoothing`, in one call.

A state is read at the places that `Smoothers` has them: the straight line, then squares and levels of all
members, values seen in each phase, and the seasons, rhythm by rhythm.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from fracts.compiled_arithmetic import INNER
from fracts.fast import in_parts
from fracts.scaling import SMALLEST, Array

_PART = 256  # series that a core takes at once


def run(
    state: Array, values: Array, times: Array, leads: Any, own: tuple[Any, ...], rounding: float
) -> Array:
    """Move `state` by `values` (series, rows), NaN where missing, and what is said after each row of the
    `leads` after it: (series, rows, leads).

    own: members (members, 2), lengths (seasons,), place of the length and least gain of each rhythm with a
    season, numbers of the straight line.  rounding: of a sum of squares, below which an error is none.
    """
    out, rows = np.empty((*values.shape, leads.size)), np.ascontiguousarray(values)

    def fill(start: int, stop: int) -> None:
        _run(start, stop, state, rows, times, leads, *own, rounding, out)

    in_parts(fill, len(state), part=_PART)
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _run(
    start: int, stop: int, state: Any, values: Any, times: Any, leads: Any,
    members: Any, lengths: Any, places: Any, least: Any, n_line: int, rounding: float, out: Any,
) -> None:  # fmt: skip
    own = members, lengths, places, least, n_line
    longest = max(lengths.max(), 1) if lengths.size else 1
    weights = np.empty((1 + len(places)) * len(members))
    phases = np.empty((len(lengths), leads.size), np.int64)
    for at in range(start, stop):
        for row in range(times.size):
            if not math.isnan(values[at, row]):
                _hear(state[at], values[at, row], times[row], longest, *own)
            if leads.size:
                _say(state[at], times[row], longest, leads, phases, weights, rounding, out[at, row], *own)


@njit(**INNER)
def _slope(line: Any) -> float:
    spread = line[3] * line[5] - line[4] ** 2
    return (line[3] * line[7] - line[4] * line[6]) / spread if line[3] > 2 and spread > 0 else 0.0


@njit(**INNER)
def _hear(
    line: Any, value: float, time: float, longest: int,
    members: Any, lengths: Any, places: Any, least: Any, n_line: int,
) -> None:  # fmt: skip
    """Move the state of one series, of which its straight line comes first."""
    n, now = len(members), np.int64(math.floor(time))
    size = (1 + len(places)) * n
    counts = n_line + 2 * size
    if line[3] == 0:
        line[0], line[1], line[2] = value, time, time
    warm, value, since = line[3] >= longest, value - line[0], time - line[1]
    slope = (time - line[2]) * _slope(line)
    line[2] = time
    line[3] += 1
    line[4] += since
    line[5] += since**2
    line[6] += value
    line[7] += since * value
    seasons = counts
    for length in lengths:
        line[seasons + now % length] += 1
        seasons += length
    for rhythm in range(1 + len(places)):
        length, phase, turn = 0, 0, 0.0
        if rhythm:
            length, before = lengths[places[rhythm - 1]], 0
            for place in range(places[rhythm - 1]):
                before += lengths[place]
            phase = now % length
            turn = max(least[rhythm - 1], 1 / (1 + line[counts + before + phase]))
        for member in range(n):
            square = n_line + rhythm * n + member
            level, season = square + size, seasons + member * length + phase
            drift = slope * members[member, 1]
            error = value - line[level] - drift
            if rhythm:
                error -= line[season]
            if warm:
                line[square] += error**2
            gain = max(members[member, 0], 1 / line[3])
            line[level] += drift + gain * error
            if rhythm:
                line[season] += turn * ((1 - gain) * error)
        seasons += n * length


@njit(**INNER)
def _say(
    line: Any, time: float, longest: int, leads: Any, phases: Any, weights: Any, rounding: float, out: Any,
    members: Any, lengths: Any, places: Any, least: Any, n_line: int,
) -> None:  # fmt: skip
    """What is said of the `leads` of one series, into `out`; `phases` and `weights` are room to work in."""
    if line[3] == 0:
        out[:] = np.nan
        return
    n, size, now = len(members), weights.size, np.int64(math.floor(time))
    _weigh(line[n_line : n_line + size], max(line[3] - longest, 0.0), rounding, weights)
    level, drift = line[0], 0.0
    for one in range(size):
        level += weights[one] * line[n_line + size + one]
        drift += weights[one] * members[one % n, 1]
    drift *= _slope(line)
    for k in range(leads.size):
        out[k] = level + drift * (time - line[2] + leads[k])
    seasons = n_line + 2 * size
    for place in range(len(lengths)):
        seasons += lengths[place]
        for k in range(leads.size):
            phases[place, k] = (now + leads[k]) % lengths[place]
    for rhythm in range(1, 1 + len(places)):
        place = places[rhythm - 1]
        for member in range(n):
            weight = weights[rhythm * n + member]
            for k in range(leads.size):
                out[k] += weight * line[seasons + phases[place, k]]
            seasons += lengths[place]


@njit(**INNER)
def _weigh(squares: Any, n_errors: float, rounding: float, weights: Any) -> None:
    """Weights of the members, by the likelihood of their errors."""
    worst, total = max(squares.max(), SMALLEST), 0.0
    best = max(squares.min() / worst, rounding)
    for one in range(weights.size):
        share = max(squares[one] / worst, rounding)
        weights[one] = math.exp(-n_errors / 2 * (math.log(share) - math.log(best)))
        total += weights[one]
    for one in range(weights.size):
        weights[one] /= total
