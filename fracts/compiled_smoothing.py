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


def hear(state: Array, values: Array, time: float, own: tuple[Any, ...]) -> None:
    """Move `state` by the `values` (series,) of a row, NaN where missing.

    own: members (members, 2), lengths (seasons,), place of the length and least gain of each rhythm with a
    season, numbers of the straight line.
    """
    in_parts(lambda start, stop: _hear(start, stop, state, values, time, *own), len(values), part=_PART)


def said(state: Array, time: float, leads: Any, own: tuple[Any, ...], rounding: float) -> Array:
    """(series, leads): what is said of the `leads` after a time.

    own: as of `hear`.  rounding: of a sum of squares, below which an error is none.
    """
    out = np.empty((len(state), leads.size))

    def fill(start: int, stop: int) -> None:
        _said(start, stop, state, time, leads, *own, rounding, out)

    in_parts(fill, len(state), part=_PART)
    return out


@njit(**INNER)
def _slope(line: Any) -> float:
    spread = line[3] * line[5] - line[4] ** 2
    return (line[3] * line[7] - line[4] * line[6]) / spread if line[3] > 2 and spread > 0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _hear(
    start: int, stop: int, state: Any, values: Any, time: float,
    members: Any, lengths: Any, places: Any, least: Any, n_line: int,
) -> None:  # fmt: skip
    n, size = len(members), (1 + len(places)) * len(members)
    longest, now = max(lengths.max(), 1) if lengths.size else 1, np.int64(math.floor(time))
    for at in range(start, stop):
        if math.isnan(values[at]):
            continue
        line, counts = state[at], n_line + 2 * size
        if line[3] == 0:
            line[0], line[1], line[2] = values[at], time, time
        warm, value, since = line[3] >= longest, values[at] - line[0], time - line[1]
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


@njit(cache=True, nogil=True, error_model="numpy")
def _said(
    start: int, stop: int, state: Any, time: float, leads: Any,
    members: Any, lengths: Any, places: Any, least: Any, n_line: int, rounding: float, out: Any,
) -> None:  # fmt: skip
    n, size = len(members), (1 + len(places)) * len(members)
    longest, now = max(lengths.max(), 1) if lengths.size else 1, np.int64(math.floor(time))
    weights, phases = np.empty(size), (now + leads) % lengths.reshape(-1, 1)
    for at in range(start, stop):
        line = state[at]
        if line[3] == 0:
            out[at] = np.nan
            continue
        _weigh(line[n_line : n_line + size], max(line[3] - longest, 0.0), rounding, weights)
        level, drift = line[0], 0.0
        for one in range(size):
            level += weights[one] * line[n_line + size + one]
            drift += weights[one] * members[one % n, 1]
        drift *= _slope(line)
        for k in range(leads.size):
            out[at, k] = level + drift * (time - line[2] + leads[k])
        seasons = n_line + 2 * size
        for length in lengths:
            seasons += length
        for rhythm in range(1, 1 + len(places)):
            place = places[rhythm - 1]
            for member in range(n):
                weight = weights[rhythm * n + member]
                for k in range(leads.size):
                    out[at, k] += weight * line[seasons + phases[place, k]]
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
    weights /= total
