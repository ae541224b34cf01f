"""Whether a series is told from a random walk: by the Bayes factor of what is learned of it one step ahead.

One idea: held-out forecasts of a short series are few, and many forecasts are about as good by them; but its
single steps are many, and tell whether anything learned forecasts them better than the last value does.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit, logsumexp

from fracts.anchor import SeasonSlots
from fracts.folds import FoldMoments, Share
from fracts.recall import LinearMemory
from fracts.regression import Penalty
from fracts.scaling import Array


def share_of_a_walk(memory: LinearMemory, share: Share, penalties: Sequence[Penalty]) -> float:
    """Probability that the series is a random walk, of which nothing is learned, and not what the modes tell.

    memory: of blended anchors.  share: of a single series.  penalties: priors, each as probable as the
    others. 0 of several series, and where no anchor is the last value, or seasons or covariates are told.

    The marginal likelihood of a regression around the last value beside that of the last value alone, the
    variance of the noise unknown, both as probable before (Kass and Raftery, 1995, Journal of the American
    Statistical Association 90(430); Zellner, 1971, An Introduction to Bayesian Inference in Econometrics).
    """
    at = place_of_the_last_value(memory)
    told = memory.longest_season > 1 or memory.covariates.n_columns
    if at is None or told or len(share.weights) > 1:
        return 0.0
    # Steps of a walk are alike in the units of the series, not in those of a scale that grows with it.
    moments = FoldMoments.of(memory, share, np.array([0]), 1, pooled=True, in_units=True).whole(0)
    n, alone = memory.n_features, np.zeros((1, memory.n_features + memory.n_ahead, 1))
    alone[0, at] = 1.0
    gram, tie, _, _ = moments.products([0])
    square = moments.squared_error(alone)[0, 0]
    cross = moments.cross[0, :n, 0] - tie[0, 0, :, at - n]
    each = [_log_factor(gram, cross, square, moments.count[0], memory.penalty(p)[:n]) for p in penalties]
    return float(expit(math.log(len(each)) - logsumexp(each)))


def place_of_the_last_value(memory: LinearMemory) -> int | None:
    """Of the coefficient of the last value, where it is one of the anchors beside the first; else None."""
    if not memory.blended or SeasonSlots(1) not in memory.anchors[1:]:
        return None
    return memory.n_features + memory.covariates.n_known + memory.anchors[1:].index(SeasonSlots(1))


def _log_factor(gram: Array, cross: Array, square: float, count: float, penalty: Array) -> float:
    """Log marginal likelihood of a regression under the `penalty`, less that of nothing learned."""
    root = np.sqrt(penalty)
    lower = np.linalg.cholesky(gram / np.outer(root, root) + np.eye(root.size))
    fitted = np.square(solve_triangular(lower, cross / root, lower=True)).sum()
    left = max(square - fitted, np.finfo(float).eps * square)
    return float(count / 2 * np.log(square / left) - np.log(np.diagonal(lower)).sum()) if square else 0.0
