"""Which season lengths a model takes, and which of their frequencies a set of series really has.

A harmonic is kept where its power stands out from the power beside it, as noise of any slowly changing
spectrum (white, or of long memory) would have it in one history of a hundred: the ratio of one ordinate of
the periodogram to the mean of m others follows F(2, 2m) (Brockwell and Davis, 1991, Time Series: Theory and
Methods, 10.4).
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from fracts.checks import check_season_lengths
from fracts.scaling import Array
from fracts.series import Panel
from fracts.timeline import Clock, default_season_lengths

_FINE = 6  # frequencies looked at for each harmonic
_AROUND = np.array([-4, -3, -2, 2, 3, 4])  # of these, the ones between harmonics
_REPEATED, _HIGHER = 0.3, 0.05  # autocorrelation of a season, and by how much a longer one must exceed it
_SPREADS = 4.5  # of the autocorrelation of noise
_LONGEST = 10_000  # steps of a season that is looked for
_BY_CHANCE = 0.01  # share of histories of noise in which some harmonic stands out


def chosen_season_lengths(asked: Any, panel: Panel, clock: Clock) -> tuple[int, ...]:
    """Season lengths in steps: as asked, or ("auto") those of the calendar that the history shows.

    Where the calendar has none (integers, rows of an array, years) those that the values repeat.
    """
    if not (isinstance(asked, str) and asked == "auto"):
        return check_season_lengths(asked)
    if not clock.whole or clock.season_lengths:
        return default_season_lengths(clock, int(panel.times[-1]) + 1)
    return repeated_lengths(panel.values, panel.times)


def repeated_lengths(values: Array, times: Array) -> tuple[int, ...]:
    """Lengths in steps after which the changes of the values repeat, the shortest first; two at most.

    Seen in the autocorrelation of the differences, in which a slow memory has no peaks: a peak counts if it
    is high, stands above all that comes before it, comes again at twice the length, and fits three times into
    the history.

    Parameters
    ----------
    values : (series, time), NaN where missing.
    times : (time,), in whole steps, increasing.

    Examples
    --------
    >>> t = np.arange(500.0)
    >>> y = np.sin(2 * np.pi * t / 12) + 0.1 * np.random.default_rng(0).normal(size=500)
    >>> repeated_lengths(y[None], t)
    (12,)
    """
    if times[-1] < 6:  # three times the shortest
        return ()
    correlation, chance = _of_differences(values, times)
    found: list[int] = []
    floor = np.maximum(_REPEATED, chance)
    for length in range(2, correlation.size // 2):
        reach = max(1, length // 10)
        near = correlation[max(1, length - reach) : length + reach + 1]
        high, dip = correlation[length], correlation[1:length].min(initial=1.0)
        again = correlation[2 * length] > 0.5 * high
        if again and high >= max(floor[length], near.max()) and dip < 0.5 * high:
            found.append(length)
            floor = np.maximum(floor, high + np.maximum(_HIGHER, 0.6 * chance))
    # A shorter one that does not divide the longest is a likeness within it.
    return tuple(length for length in found if found[-1] % length == 0)[-2:]


def _of_differences(values: Array, times: Array) -> tuple[Array, Array]:
    """Autocorrelation of the differences at the lags up to two thirds of the history, of all series, and what
    it hardly exceeds by chance."""
    place = np.rint(times).astype(np.int64)
    grid = np.full((len(values), place[-1] + 1), np.nan)
    grid[:, place] = values
    moves = np.diff(grid, axis=1)
    seen = ~np.isnan(moves)
    mean = np.where(seen, moves, 0.0).sum(1, keepdims=True) / np.maximum(seen.sum(1, keepdims=True), 1)
    centred = np.where(seen, moves - mean, 0.0)
    spread = np.sqrt((centred**2).mean(1, keepdims=True))
    standard = np.where(spread > 0, centred / np.where(spread > 0, spread, 1.0), 0.0)
    size, longest = 2 * grid.shape[1], 2 * min(grid.shape[1] // 3, _LONGEST)
    products, pairs = (
        np.fft.irfft(np.abs(np.fft.rfft(rows, size)) ** 2, size).sum(0)[: longest + 1]
        for rows in (standard, seen.astype(np.float64))
    )
    pairs = np.maximum(pairs, 1.0)
    correlation: Array = products / pairs
    scale = correlation[0] if correlation[0] > 0 else 1.0
    return correlation / scale, _SPREADS / np.sqrt(pairs)


def strongest_frequencies(values: Array, times: Array, season_lengths: Sequence[int], limit: int) -> Array:
    """Angular frequencies (radians per step) of the harmonics that stand out, the strongest first.

    Looked at are the harmonics `2 pi k / s`, k up to s/2, of each season length s, equal ones merged; the
    power is that of the series without their straight lines, standardised, mean over series.

    Parameters
    ----------
    values : (series, time), NaN where missing.
    times : (time,), in steps.
    limit : how many at most.

    Examples
    --------
    >>> t = np.arange(500.0)
    >>> y = np.sin(2 * np.pi * t / 12) + 0.1 * np.random.default_rng(0).normal(size=500)
    >>> 2 * np.pi / strongest_frequencies(y[None], t, [12], limit=5)
    array([12.])
    """
    strength: dict[Fraction, float] = {}
    standard = _standardised(values, times)
    stands_out = _chance_ratio(sum(length // 2 for length in season_lengths))
    for length in season_lengths:
        power = _folded_power(standard, times, _FINE * length)
        at = _FINE * np.arange(1, length // 2 + 1)
        around = power[np.abs(at[:, None] + _AROUND) % power.size].mean(1)
        for k in np.flatnonzero(power[at] > stands_out * around):
            strength[Fraction(int(k) + 1, length)] = power[at[k]] - around[k]
    strongest = sorted(strength, key=lambda turns: -strength[turns])[:limit]
    return 2 * np.pi * np.array([float(turns) for turns in strongest])


def _chance_ratio(n_harmonics: int) -> float:
    """Ratio to the power around that one of `n_harmonics` exceeds by chance: a quantile of F(2, 2 m)."""
    m = _AROUND.size
    return m * float((_BY_CHANCE / max(n_harmonics, 1)) ** (-1 / m) - 1)


def _standardised(values: Array, times: Array) -> Array:
    """Distance to the line of each series, of spread 1 over the number of values, 0 where missing."""
    seen = ~np.isnan(values)
    count = np.maximum(seen.sum(1, keepdims=True), 1)
    time = np.where(seen, times - (seen * times).sum(1, keepdims=True) / count, 0.0)
    mean = np.where(seen, values, 0.0).sum(1, keepdims=True) / count
    centred = np.where(seen, values - mean, 0.0)
    slope = (centred * time).sum(1, keepdims=True) / np.maximum((time**2).sum(1, keepdims=True), 1e-300)
    rest = centred - slope * time
    spread = np.sqrt((rest**2).sum(1, keepdims=True) / count)
    moves = spread > 1e-12 * np.abs(mean)  # else the rest is rounding
    standard: Array = np.where(moves, rest / np.where(moves, spread, 1.0), 0.0) / count
    return standard


def _folded_power(standard: Array, times: Array, period: int) -> Array:
    """Power at the frequencies j / period, j = 0..period-1: that of the series folded at `period`."""
    phase = np.floor(times).astype(np.int64) % period
    folded = np.stack([np.bincount(phase, row, minlength=period) for row in standard])
    power: Array = (np.abs(np.fft.fft(folded)) ** 2).mean(0)
    return power
