"""Forecasts of which nothing is learned, and how far a single series leans on them.

One idea: held-out forecasts of a short series are few, and many forecasts are about as good by them; but its
single steps are many, and tell whether anything learned forecasts them better than the last value does, or
exponential smoothing.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import logsumexp, softmax

from fracts.anchor import SeasonSlots
from fracts.folds import FoldMoments, Share, overlaps
from fracts.recall import Anchor, LinearMemory, with_smoothing
from fracts.regression import Moments, Penalty
from fracts.scaling import Array
from fracts.smoothing import Smoothers

_CREDIT = 0.3  # of the log likelihood that is taken for granted
_HEARD = 0.01  # the least share worth its state
_UNTRIED = 0.1  # odds of what is learned where no held-out forecast has tried it
_SHORT = 4096  # values; more tell by themselves how a level moves
_LAST = SeasonSlots(1)
_ROUNDING = 1e-13  # of a sum of squares: an error below it is none


class Unlearned(NamedTuple):
    """Anchors that forecast alone, beside what is learned around others.

    memory : of blended anchors, first those of what is learned.
    odds : (1 + blended,), log probability of what is learned, and of each anchor alone, by single steps.
    """

    memory: LinearMemory
    odds: Array

    @classmethod
    def of(cls, memory: LinearMemory, share: Share, penalties: Sequence[Penalty]) -> Self | None:
        """Those that single steps of the single series of `share` do not tell from what is learned.

        memory: with all anchors.  penalties: priors of what is learned, each as probable as the others. None
        of several series or with covariates, which held-out time tells of, or where nothing is heard.
        """
        if memory.covariates.n_columns or len(share.weights) > 1:
            return None
        if memory.anchors[0] is not None or _LAST not in memory.anchors:
            return None
        short = np.count_nonzero(~np.isnan(share.panel.values)) <= _SHORT
        both = (with_smoothing(memory) if short else memory).blending()
        # Steps are alike in the units of the series, not in those of a scale that grows with it.
        moments = FoldMoments.of(both, share, np.array([0]), 1, pooled=True, in_units=True).whole(0)
        odds = log_odds(both, moments, penalties)
        odds[1:][softmax(odds)[1:] < _HEARD] = -np.inf
        n_others = memory.blending().n_blended
        if np.isinf(odds[1 + n_others :]).all():
            both, odds = memory.blending(), odds[: 1 + n_others]
        return None if np.isinf(odds[1:]).all() else cls(both, odds)

    def shares(self, share: Share, held_out: Array, leads: NDArray[np.int64]) -> Array:
        """Of each anchor alone in the forecasts (blended, horizon); the rest is that of what is learned.

        held_out: (folds, features + ahead, horizon), learned before each fold.  leads: from 0, at which
        held-out errors are asked; of the others the nearest speak.
        """
        odds = self.odds[:, None].repeat(max(leads.size, 1), 1)
        if not leads.size:
            odds[0] += math.log(_UNTRIED)
        else:
            moments = FoldMoments.of(self.memory, share, leads, 1, pooled=True)
            new = overlaps(share.panel, leads).mean(0)
            each = np.vstack([np.zeros(odds.shape[0] - 1), np.eye(odds.shape[0] - 1)])[..., None]
            for fold, learned in enumerate(held_out[..., leads], start=1):
                inside = moments.inside(fold, 0)
                error = np.array([inside.squared_error(self.beside(learned, one)[None])[0] for one in each])
                error = np.maximum(error, _ROUNDING * error.max(0) + np.finfo(float).tiny)
                odds -= _CREDIT / 2 * inside.count / new * np.log(error)
        at, wanted = np.log1p(leads) if leads.size else np.zeros(1), np.log1p(np.arange(held_out.shape[-1]))
        return np.array([np.interp(wanted, at, row) for row in softmax(odds, axis=0)[1:]])

    def beside(self, learned: Array, shares: Array) -> Array:
        """Coefficients (..., features + ahead, leads) of both, from the `learned` ones of fewer anchors.

        shares: (blended, leads), of each anchor alone.
        """
        size = self.memory.n_features + self.memory.n_ahead
        both = np.zeros((*learned.shape[:-2], size, learned.shape[-1]))
        both[..., : learned.shape[-2], :] = (1 - shares.sum(0)) * learned
        both[..., size - len(shares) :, :] += shares
        return both


def log_odds(memory: LinearMemory, moments: Moments, penalties: Sequence[Penalty]) -> Array:
    """Log probability (1 + blended,), up to a constant, of what is learned of single steps, then of each
    blended anchor alone.

    The marginal likelihood of a regression around the last value beside that of each forecast alone, the
    variance of the noise unknown (Kass and Raftery, 1995, Journal of the American Statistical Association
    90(430); Zellner, 1971, An Introduction to Bayesian Inference in Econometrics), of which a part is taken
    for granted. What is learned, the last value, and the whole of smoothing are as probable before; the last
    value is not, where seasons are told.
    """
    n, others = memory.n_features, memory.anchors[1:]
    alone = np.zeros((len(others), n + memory.n_ahead, 1))
    alone[np.arange(len(others)), n + memory.covariates.n_known + np.arange(len(others))] = 1.0
    squares = np.array([moments.squared_error(one[None])[0, 0] for one in alone])
    if not squares.any():
        return np.append(0.0, np.full(len(others), -np.inf))
    squares, last = np.maximum(squares, _ROUNDING * squares.max()), others.index(_LAST)
    gram, tie, _, _ = moments.products([0])
    cross, count = moments.cross[0, :n, 0] - tie[0, 0, :, last], moments.count[0]
    each = [_log_factor(gram, cross, squares[last], count, memory.penalty(p)[:n]) for p in penalties]
    learned = logsumexp(each) - math.log(len(each))
    told = np.append(learned, count / 2 * np.log(squares[last] / squares))
    with np.errstate(divide="ignore"):
        return np.asarray(_CREDIT * told + np.log(np.append(1.0, _before(others))))


def _before(others: Sequence[Anchor | None]) -> Array:
    """Odds of each of the `others` before any value, beside what is learned."""
    n_members = [len(anchor.drifts) if isinstance(anchor, Smoothers) else 0 for anchor in others]
    odds = np.array(n_members) / max(sum(n_members), 1)
    if all(anchor is None or anchor.season_length == 1 for anchor in others):
        odds[others.index(_LAST)] = 1.0
    return odds


def _log_factor(gram: Array, cross: Array, square: float, count: float, penalty: Array) -> float:
    """Log marginal likelihood of a regression under the `penalty`, less that of nothing learned."""
    root = np.sqrt(penalty)
    lower = np.linalg.cholesky(gram / np.outer(root, root) + np.eye(root.size))
    fitted = np.square(solve_triangular(lower, cross / root, lower=True)).sum()
    left = max(square - fitted, np.finfo(float).eps * square)
    return float(count / 2 * np.log(square / left) - np.log(np.diagonal(lower)).sum())
