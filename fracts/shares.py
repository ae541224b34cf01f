"""Series that are looked at together, and what an error of each counts.

One idea: a panel's series are counted in the noise of each, so that none is loud by its units; and where each
has matrices of its own, they are taken as many at once as there is room for.
"""

import numpy as np
from numpy.typing import NDArray

from fracts.cuts import FOLDS
from fracts.folds import CHOOSING_LEADS, Share, origins
from fracts.recall import LinearMemory
from fracts.scaling import Array
from fracts.series import Panel

TRIED = 64  # series, or groups of them, that have a say in what is chosen
_UNHEARD = 0.2  # of the series, at either end, where noise is compared
_FAR_APART = 10.0  # times the mean square
_LOUDEST = 4.0  # times the weight of the usual series, at most
_NUMBERS = 2**25  # in the matrices of the series solved at once


def noise_of(memory: LinearMemory, panel: Panel, leads: NDArray[np.int64]) -> Array:
    """Mean square of what the best anchor of each series leaves (series,), in units of its scale.

    NaN where nothing is seen or left.
    """
    anchors, n_series = memory.of_the_past().of_anchors(), len(panel.values)
    square, count = np.zeros((len(anchors.anchors), n_series)), np.zeros(n_series)
    for part in origins(anchors, panel, leads, pooled=True):
        square[:, part.series] += np.nansum(part.targets**2, axis=(2, 3))
        count[part.series] += np.sum(~np.isnan(part.targets[0]), axis=(1, 2))
    least = square.min(0)
    return np.where((count > 0) & (least > 0), least / np.maximum(count, 1), np.nan)


def noise_weights(noise: Array) -> Array:
    """What an error of each series counts (series,): 1 over its `noise` of `noise_of`.

    So a series that is hard to tell does not rule those that are not, one that hardly moves rules no other,
    and a penalty is in units of the noise of each. The geometric mean of the weights is 1.
    """
    if len(noise) == 1 or np.isnan(noise).all():
        return np.ones(len(noise))
    usual = np.nanmedian(noise)
    weights: Array = 1 / np.clip(np.nan_to_num(noise, nan=usual), usual / _LOUDEST, None)
    return np.asarray(weights / np.exp(np.log(weights).mean()))


def are_apart(noise: Array) -> bool:
    """Whether the `noise` of series differs so much that intervals they share would be wrong for many.

    A fifth of the series at either end has no say.
    """
    order = np.sort(noise[~np.isnan(noise)])
    if not order.size:
        return False
    cut = int(np.ceil(_UNHEARD * (order.size - 1)))
    return bool(order[-1 - cut] > _FAR_APART * order[cut])


def shares_of(whole: Share, memory: LinearMemory) -> list[Share]:
    """The series, as many at once as there is room for matrices of their own."""
    n_series = len(whole.weights)
    n_shares = min(-(-n_series * _numbers(memory) // _NUMBERS), n_series)
    return [_some(whole, part) for part in np.array_split(np.arange(n_series), n_shares)]


def sample_of(whole: Share, memory: LinearMemory) -> Share:
    """Evenly spread series, as many as there is room for matrices of their own, at most a fixed number."""
    n_series = len(whole.weights)
    return _some(whole, np.unique(np.linspace(0, n_series - 1, tried(memory, n_series)).astype(np.int64)))


def tried(memory: LinearMemory, n_series: int) -> int:
    """Of how many series, or groups of them, matrices are kept apart when candidates are tried."""
    return max(1, min(TRIED, _NUMBERS // _numbers(memory), n_series))


def _some(whole: Share, series: NDArray[np.int64]) -> Share:
    return Share(whole.panel.of(series), whole.weights[series])


def _numbers(memory: LinearMemory) -> int:
    """In the matrices of a series, about."""
    beside = memory.covariates.n_known + len(memory.anchors)
    tied = len(memory.anchors) * CHOOSING_LEADS * beside * (memory.n_features + beside)
    return int((memory.n_features**2 + tied) * 2 * (len(FOLDS) + 1))
