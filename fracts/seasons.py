"""Which season lengths a model takes, and which of their frequencies a set of series really has."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fracts.checks import check_season_lengths
from fracts.scaling import Array
from fracts.series import Panel
from fracts.timeline import Clock, default_season_lengths

_FINE = 6  # frequencies looked at for each harmonic
_AROUND = np.array([-4, -3, -2, 2, 3, 4])  # of these, the ones between harmonics
_STANDS_OUT = 8.0  # times the power around it: F(2, 12) exceeds it once in 160


def chosen_season_lengths(asked: Any, panel: Panel, clock: Clock) -> tuple[int, ...]:
    """Season lengths in steps: as asked, or ("auto") those that the calendar implies and the history shows."""
    if isinstance(asked, str) and asked == "auto":
        return default_season_lengths(clock, int(panel.times[-1]) + 1)
    return check_season_lengths(asked)


def strongest_frequencies(values: Array, times: Array, season_lengths: Sequence[int], limit: int) -> Array:
    """Angular frequencies (radians per step) of the harmonics that stand out, the strongest first.

    A harmonic `2 pi k / s` of a season length s (k up to s/2, equal ones of different seasons merged) is kept
    where the power of the standardised series, mean over series, stands out from the power between the
    harmonics beside it; of these the `limit` strongest.

    values: (series, time), NaN where missing.  times: (time,), in steps.
    """
    strength: dict[float, float] = {}
    standard = _standardised(values)
    for length in season_lengths:
        power = _folded_power(standard, times, _FINE * length)
        at = _FINE * np.arange(1, length // 2 + 1)
        around = power[np.abs(at[:, None] + _AROUND) % power.size].mean(1)
        for k in np.flatnonzero(power[at] > _STANDS_OUT * around):
            strength[round((k + 1) / length, 12)] = power[at[k]] - around[k]
    strongest = sorted(strength, key=lambda turns: -strength[turns])[:limit]
    return 2 * np.pi * np.array(strongest, dtype=np.float64)


def _standardised(values: Array) -> Array:
    """Series of mean 0 and spread 1, 0 where missing."""
    seen = ~np.isnan(values)
    count = np.maximum(seen.sum(1, keepdims=True), 1)
    mean = np.where(seen, values, 0.0).sum(1, keepdims=True) / count
    centred = np.where(seen, values - mean, 0.0)
    spread = np.sqrt((centred**2).sum(1, keepdims=True) / count)
    return centred / np.where(spread > 0, spread, 1.0) / count


def _folded_power(standard: Array, times: Array, period: int) -> Array:
    """Power at the frequencies j / period, j = 0..period-1: that of the series folded at `period`."""
    folded = np.zeros((len(standard), period))
    np.add.at(folded, (slice(None), np.floor(times).astype(int) % period), standard)
    return (np.abs(np.fft.fft(folded)) ** 2).mean(0)
