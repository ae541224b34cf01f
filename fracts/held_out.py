"""How far off held-out forecasts are: quantiles of their errors, and how large those of each series are.

One idea: series that share coefficients share the shape of their errors and not the size, which a scale that
a trend has widened says nothing of. So each error is told in the noise of its own series, as far as the
series is long enough to show it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fracts.evidence import MIN_HELD_OUT
from fracts.folds import group_of_each, groups_of, origins
from fracts.forecasts import MEDIAN_AT, QUANTILES
from fracts.recall import LinearMemory
from fracts.scaling import Array
from fracts.series import Panel

_USUAL_ORIGINS = 5.0  # that say of each series that its errors are as large as those of others
_CLEAR = 3.0  # standard errors of a mean that is more than chance
_MEDIAN_FROM_MEAN = np.pi / 2 - 1  # variance of their distance, of normal values, times their number
_TAIL = 0.1  # of errors at either end that are cut down to the next one for their mean
_IQR_OF_NORMAL = 1.349  # standard deviations
_ROUNDS = 8  # of what is usual, and of what each series is beside it: one far louder moves both


class Errors(NamedTuple):
    """Errors of held-out forecasts of some series, in units of scale."""

    series: NDArray[np.int64]  # (series,)
    sizes: Array  # (series, origins, horizon), NaN where unknown


def held_out_errors(memory: LinearMemory, panel: Panel, held_out: Array) -> list[Errors]:
    """Errors of forecasts by the coefficients `held_out` (groups, folds, features + ahead, horizon)."""
    found, group = [], group_of_each(len(panel.values), len(held_out))
    for part in origins(memory, panel, np.arange(memory.horizon), pooled=len(held_out) == 1):
        if part.fold == 0:
            continue
        for one, series in groups_of(part, group):
            learned, n = held_out[one, part.fold - 1], part.features.shape[-1]
            error = part.targets[0, series] - part.features[series] @ learned[:n]
            known, weights = part.ahead[0, series], learned[n:].T
            for start in range(0, memory.horizon, known.shape[2]):
                some = weights[start : start + known.shape[2]]
                said = np.einsum("sokx,kx->sok", known[:, :, : len(some)], some)
                error[..., start : start + len(some)] -= said
            found.append(Errors(part.series[series], error))
    return found


def noise_in(errors: Sequence[Errors], n_series: int) -> Array:
    """Size of the `errors` of each series (series,), 1 for the usual one of those of the same lead.

    What is usual counts like a few origins of each: a series that shows little of itself is taken for one.
    """
    noise = np.ones(n_series)
    if not errors:
        return noise
    horizon = errors[0].sizes.shape[-1]
    sums, counts = np.zeros((n_series, horizon)), np.zeros((n_series, horizon))
    for series, sizes in errors:
        sums[series] += np.nansum(np.abs(sizes), axis=1)
        counts[series] += np.sum(~np.isnan(sizes), axis=1)
    prior = _USUAL_ORIGINS * horizon
    for _ in range(_ROUNDS):
        total = (sums / noise[:, None]).sum(0)
        usual = np.where(total > 0, total, np.inf) / np.maximum(counts.sum(0), 1)
        noise = (prior + (sums / usual).sum(1)) / (prior + counts.sum(1))
    return noise


def own_quantiles(errors: Sequence[Errors], n_series: int, shared: Array) -> Array:
    """Quantiles of the `errors` of each group: (groups, horizon, quantiles).

    shared: (groups, horizon), how many errors of a lead say one thing, as `overlaps` tells.
    """
    n_groups, horizon = shared.shape
    group = group_of_each(n_series, n_groups)
    by_group: list[list[Array]] = [[np.empty((0, horizon))] for _ in range(n_groups)]
    for series, sizes in errors:
        by_group[group[series[0]]].append(sizes.reshape(-1, horizon))
    groups = zip(by_group, shared, strict=True)
    return np.stack([_quantiles(np.concatenate(sizes), alike, _proven) for sizes, alike in groups])


def shared_quantiles(errors: Sequence[Errors], noise: Array, horizon: int) -> Array:
    """Quantiles of the `errors` of all series, in the `noise` (series,) of each: (1, horizon, quantiles).

    The median is 0: what all are off by is no share of their scales, which a trend widens.
    """
    told = [np.empty((0, horizon)), *[sizes.reshape(-1, horizon) for _, sizes in errors]]
    beside = [np.empty(0), *[noise[series].repeat(sizes.shape[1]) for series, sizes in errors]]
    whole = np.concatenate(told)
    whole /= np.concatenate(beside)[:, None]
    return _quantiles(whole, np.ones(horizon), _around_the_median)[None]


def _quantiles(errors: Array, shared: Array, settled: Callable[[Array, Array, float], Array]) -> Array:
    """Quantiles of `errors` (origins, horizon) at each lead, `settled`: (horizon, quantiles).

    A lead with too few errors takes those of the lead before it, the first one a normal law of the series'
    own spread.

    shared: (horizon,), how many errors of a lead say one thing.
    """
    quantiles, last = [], ndtri(QUANTILES)
    for sizes, alike in zip(errors.T, shared, strict=True):
        seen = np.sort(sizes[~np.isnan(sizes)])  # many levels are found sooner in what is sorted
        if seen.size >= MIN_HELD_OUT:
            told = np.quantile(seen, QUANTILES, method="median_unbiased")
            last = settled(told, seen, seen.size / alike)
        quantiles.append(last)
    return np.array(quantiles)


def _around_the_median(quantiles: Array, errors: Array, n_own: float) -> Array:
    """`quantiles` less their median."""
    return np.asarray(quantiles - quantiles[MEDIAN_AT])


def _proven(quantiles: Array, errors: Array, n_own: float) -> Array:
    """`quantiles` moved to the part of the mean of the `errors` that is more than chance; the rest widens
    them.

    n_own: of the errors those that overlap no other. A mean of few shrinks to none as in James and Stein
    (1961), by as much as would be clear; so does what sets the median apart from it, by as much as is chance,
    and the quantiles lie as evenly around it as this leaves them. Mean and spread are those of the errors in
    the middle: the first ones after a break of the level are far larger than any later, in a scale that has
    not grown yet.
    """
    low, first, third, high = np.quantile(errors, [_TAIL, 0.25, 0.75, 1 - _TAIL])
    mean, variance = float(errors.clip(low, high).mean()), float((third - first) / _IQR_OF_NORMAL) ** 2
    chance = _CLEAR**2 * variance / max(n_own, 1.0)
    if not chance:
        return quantiles
    kept = mean * _more_than(chance, mean)
    around = quantiles - mean
    told = _more_than(_MEDIAN_FROM_MEAN * variance / max(n_own, 1.0), around[MEDIAN_AT])
    around = told * around + (1 - told) * (around - around[::-1]) / 2
    return np.asarray(kept + around * np.sqrt(1 + (mean - kept) ** 2 / variance))


def _more_than(chance: float, number: float) -> float:
    """The share of a `number` that is more than `chance`, its variance were it none: James and Stein's."""
    return max(0.0, 1.0 - chance / max(number**2, chance))
