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
from fracts.folds import FoldMoments, Share, origins, overlaps
from fracts.recall import Anchor, LinearMemory, with_smoothing
from fracts.regression import Moments, Penalty
from fracts.scaling import Array
from fracts.smoothing import Smoothers

_CREDIT = 0.3  # of the log likelihood that is taken for granted
_HEARD = 0.01  # the least share worth its state
_UNTRIED = 0.1  # odds of what is learned where no held-out forecast has tried it
_CHANGED = 0.01  # odds that what was learned held up to some held-out step, and no longer
_SHORT = 4096  # values; more tell by themselves how a level moves
_LAST = SeasonSlots(1)
_ROUNDING = 1e-13  # of a sum of squares: an error below it is none


class Unlearned(NamedTuple):
    """Anchors that forecast alone, beside what is learned around others.

    memory : of blended anchors, first those of what is learned.
    shares : (blended, horizon), of each alone, not negative; the rest is that of what is learned.
    """

    memory: LinearMemory
    shares: Array

    @classmethod
    def of(
        cls,
        memory: LinearMemory,
        share: Share,
        penalties: Sequence[Penalty],
        held_out: Array,
        leads: NDArray[np.int64],
    ) -> Self | None:
        """By the probability that nothing learned forecasts the single series of `share` better.

        memory: with all anchors.  penalties: priors of what is learned, each as probable as the others.
        held_out: (folds, features + ahead, horizon), learned before each fold.  leads: from 0, at which
        held-out errors are asked; of the others the nearest speak. None of several series or with covariates,
        which held-out time tells of.
        """
        plain, steps = memory.blending(), np.array([0])
        if memory.covariates.n_columns or len(share.weights) > 1:
            return None
        if memory.anchors[0] is not None or _LAST not in memory.anchors:
            return None
        short = np.count_nonzero(~np.isnan(share.panel.values)) <= _SHORT
        both = with_smoothing(memory).blending() if short else plain
        # Steps are alike in the units of the series, not in those of a scale that grows with it.
        moments = FoldMoments.of(both.alone(1), share, steps, 1, pooled=True, in_units=True).whole(0)
        each = cls(both, np.vstack([np.zeros(both.n_blended), np.eye(both.n_blended)])[..., None])
        odds = log_odds(both, moments, penalties)[:, None] - each._against(share, held_out, leads)
        changed = odds[0] + each._since_a_change(share, held_out[..., :1])[:, None]
        odds[1:] = np.where(np.isfinite(odds[1:]), np.logaddexp(odds[1:], changed), -np.inf)
        at, wanted = np.log1p(leads) if leads.size else np.zeros(1), np.log1p(np.arange(held_out.shape[-1]))
        shares = np.array([np.interp(wanted, at, row) for row in softmax(odds, axis=0)[1:]])
        shares[shares.max(1) < _HEARD] = 0.0
        smoothed = shares[plain.n_blended :].any()
        return cls(both, shares) if smoothed else cls(plain, shares[: plain.n_blended])

    def beside(self, learned: Array, shares: Array | None = None) -> Array:
        """Coefficients (..., features + ahead, leads) of both, from the `learned` ones of fewer anchors.

        shares: (blended, leads), others than those at hand.
        """
        shares, size = self.shares if shares is None else shares, self.memory.n_features + self.memory.n_ahead
        both = np.zeros((*learned.shape[:-2], size, learned.shape[-1]))
        both[..., : learned.shape[-2], :] = (1 - shares.sum(0)) * learned
        both[..., size - len(shares) :, :] += shares
        return both

    def _against(self, share: Share, held_out: Array, leads: NDArray[np.int64]) -> Array:
        """What held-out forecasts of `leads` have against each of the `shares` (shares, leads), in nats."""
        if not leads.size:
            return -np.append(math.log(_UNTRIED), np.zeros(len(self.shares) - 1))[:, None]
        against = np.zeros((len(self.shares), leads.size))
        moments = FoldMoments.of(self.memory, share, leads, 1, pooled=True)
        new = overlaps(share.panel, leads).mean(0)
        for fold, learned in enumerate(held_out[..., leads], start=1):
            inside = moments.inside(fold, 0)
            each = [self.beside(learned, one)[None] for one in self.shares]
            error = np.array([inside.squared_error(one)[0] for one in each])
            error = np.maximum(error, _ROUNDING * error.max(0) + np.finfo(float).tiny)
            against += _CREDIT / 2 * inside.count / new * np.log(error)
        return against

    def _since_a_change(self, share: Share, held_out: Array) -> Array:
        """Log odds (blended,) of each anchor alone, if what was learned holds no longer.

        Since some held-out step, all of them as probable, by the errors of the steps since (Adams and MacKay,
        2007, Bayesian Online Changepoint Detection, arXiv 0710.3742).
        """
        errors = [np.empty((0, len(self.shares)))]
        for part in origins(self.memory.alone(1), share.panel, np.array([0]), pooled=True):
            if part.fold:
                known = ~np.isnan(part.targets[0, 0, :, 0])
                seen = np.hstack([part.features[0], part.ahead[0, 0, :, 0]])[known]
                each = [self.beside(held_out[part.fold - 1], one)[:, 0] for one in self.shares]
                errors.append(part.targets[0, 0, known] - seen @ np.transpose(each))
        squares = np.square(np.concatenate(errors))
        if not squares.any():
            return np.full(len(self.shares) - 1, -np.inf)
        noise = np.maximum(squares.mean(0), _ROUNDING * squares.max())[1:]
        told = ((squares[:, :1] - squares[:, 1:]) / (2 * noise))[::-1].cumsum(0)
        found: Array = logsumexp(_CREDIT * told, axis=0) + math.log(_CHANGED / len(squares))
        return found


def log_odds(memory: LinearMemory, moments: Moments, penalties: Sequence[Penalty]) -> Array:
    """Log probability (1 + blended,), up to a constant, of what is learned of single steps, then of each
    blended anchor alone.

    The marginal likelihood of regressions around the centre and around each anchor that does not smooth,
    beside that of each anchor alone, the variance of the noise unknown (Kass and Raftery, 1995, Journal of
    the American Statistical Association 90(430); Zellner, 1971, An Introduction to Bayesian Inference in
    Econometrics), of which a part is taken for granted. What is learned, the last value, and the whole of
    smoothing are as probable before; the last value is not, where seasons are told.
    """
    others, n = memory.anchors[1:], memory.n_features
    gram, tie, own, _ = moments.products([0])
    whole = np.block([[gram, tie[0, 0]], [tie[0, 0].T, own[0, 0]]])
    cross, count = moments.cross[0, :, :1], moments.count[0]
    around = np.hstack([cross, cross - whole[:, n:]])  # (features + blended, 1 + blended)
    squares = moments.square[0, 0] - 2 * cross[n:, 0] + np.diagonal(whole)[n:]
    squares = np.append(moments.square[0, 0], squares)
    if not squares.any():
        return np.append(0.0, np.full(len(others), -np.inf))
    squares = np.maximum(squares, _ROUNDING * squares.max())
    plain = sum(not isinstance(anchor, Smoothers) for anchor in others)
    learned = whole[: n + plain, : n + plain], around[: n + plain, : 1 + plain], squares[: 1 + plain]
    each = [_log_evidence(*learned, count, memory.penalty(p)[: n + plain]) for p in penalties]
    told = np.append(logsumexp(each) - math.log(np.size(each)), -count / 2 * np.log(squares[1:]))
    with np.errstate(divide="ignore"):
        return np.asarray(_CREDIT * told + np.log(np.append(1.0, _before(others))))


def _before(others: Sequence[Anchor | None]) -> Array:
    """Odds of each of the `others` before any value, beside what is learned."""
    n_members = [len(anchor.drifts) if isinstance(anchor, Smoothers) else 0 for anchor in others]
    odds = np.array(n_members) / max(sum(n_members), 1)
    if all(anchor is None or anchor.season_length == 1 for anchor in others):
        odds[others.index(_LAST)] = 1.0
    return odds


def _log_evidence(gram: Array, cross: Array, squares: Array, count: float, penalty: Array) -> Array:
    """Log marginal likelihood (means,) of a regression under the `penalty`, up to a constant.

    cross: (size, means), `squares`: (means,), of the targets around each prior mean.
    """
    root = np.sqrt(penalty)
    lower = np.linalg.cholesky(gram / np.outer(root, root) + np.eye(root.size))
    fitted = np.square(solve_triangular(lower, cross / root[:, None], lower=True)).sum(0)
    left = np.maximum(squares - fitted, _ROUNDING * squares)
    return np.asarray(-count / 2 * np.log(left) - np.log(np.diagonal(lower)).sum())
