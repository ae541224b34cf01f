"""Averages of ridges: every penalty and anchor tried speaks at each lead as loudly as held-out time has it.

One idea: what is best one step ahead is seldom best a season ahead, and what is nearly as good as the best
should not be silent. All candidates are linear in the same numbers, so their average is one more set of
coefficients. A candidate leans on one anchor alone, or on all: then the prior has weight 1 at one of them; or
on what fractional noise would do.

A weight is the likelihood of the held-out errors, tempered: of the forecasts of lead k only every k-th is
new, and of what these say a tenth is taken for granted, since other stretches of time may say otherwise
(Holmes and Walker, 2017, Biometrika 104(2); Bates and Granger, 1969, Operational Research Quarterly 20(4)).
A lead of which few are new believes the leads before it as well, the nearer the more: what forecasts badly
one step ahead seldom does better a hundred ahead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fracts.evidence import log_errors
from fracts.folds import Share
from fracts.recall import LinearMemory
from fracts.regression import Moments, Penalty
from fracts.scaling import Array

_CREDIT = 0.1  # of the log likelihood that is taken for granted
_DIGITS = 10  # of a weight that tell which penalties are the loudest
_ENOUGH = 200.0  # new forecasts of a lead, with which it listens to no other


@dataclass(frozen=True)
class Mixture:
    """What a linear path is the average of.

    Attributes
    ----------
    memory : of all candidates, with blended anchors where there are several.
    penalties : each with the coefficients that `Moments.solve` tells for the anchors of the memory.
    weights : (penalties, answers, horizon), not negative and of sum 1 at every lead.
    """

    memory: LinearMemory
    penalties: Sequence[Penalty]
    weights: Array

    @classmethod
    def of_one(cls, memory: LinearMemory, penalty: Penalty) -> Self:
        """A single candidate, of a memory with a single anchor."""
        return cls(memory, [penalty], np.ones((1, 1, memory.horizon)))

    @property
    def best(self) -> Penalty:
        """The penalty that says most, mean over leads."""
        return self.penalties[int(self.weights.sum((1, 2)).argmax())]

    def solve(self, moments: Moments, leads: NDArray[np.int64]) -> Array:
        """Coefficients (features + ahead, leads), learned from the `moments` of these leads, from 0.

        An answer moves with its prior mean in a straight line, so the average of many is that of a mean one.
        """
        average = np.zeros((self.memory.n_features + self.memory.n_ahead, leads.size))
        means, n_kept = self.memory.prior_means(leads), self.memory.n_alone
        for penalty, weights in zip(self.penalties, self.weights[..., leads], strict=True):
            own = self.memory.penalty(penalty)
            if means is None:
                average += weights[0] * moments.solve(own)[0]
                continue
            free, kept = np.split(weights, [len(means)])
            usual = np.stack([_mean(means[:n_kept], kept), _mean(means, free)])
            _, around, alone = moments.solve(own, usual, 1)
            average += free.sum(0) * around + kept.sum(0) * alone
        return average


def mixed(
    memory: LinearMemory,
    share: Share,
    leads: NDArray[np.int64],
    counts: NDArray[np.int64],
    pooled: bool,
    penalties: Sequence[Penalty],
    most: int,
) -> Mixture:
    """The average of `penalties`, `most` of them, and of all anchors by their errors on held-out time.

    leads: at which they are tried; between these weights go over into each other.  counts: (horizon,),
    held-out targets of every lead.
    """
    errors = log_errors(memory, share, leads, pooled, penalties)
    said = _CREDIT / 2 * errors @ evidence(counts[leads], leads)
    weights = np.exp(said.min((0, 1)) - said)
    weights /= weights.sum((0, 1))
    # Rounding must not order penalties that nothing tells apart.
    loudest = np.argsort(-weights.sum((1, 2)).round(_DIGITS), kind="stable")[:most]
    # Where none of these has anything to say they all say what they can.
    kept = np.maximum(weights[loudest], np.finfo(float).tiny)
    at, horizon = np.log1p(leads), np.log1p(np.arange(memory.horizon))
    rows = (kept / kept.sum((0, 1))).reshape(-1, leads.size)
    by_lead = np.reshape([np.interp(horizon, at, row) for row in rows], (*kept.shape[:2], -1))
    return Mixture(memory, [penalties[i] for i in loudest.tolist()], by_lead)


def _mean(means: Array, weights: Array) -> Array:
    """Mean (size, leads) of `means` (means, size, leads) by `weights` (means, leads); 0 where all are 0."""
    total = np.maximum(weights.sum(0), np.finfo(float).tiny)
    return np.asarray(np.einsum("ml,msl->sl", weights, means) / total)


def evidence(counts: NDArray[np.int64], leads: NDArray[np.int64]) -> Array:
    """How many new forecasts of each lead (rows) speak for each lead (columns): (leads, leads).

    counts: (leads,), held-out forecasts of `leads`, from 0 and ascending; those that overlap say one thing.

    Examples
    --------
    >>> evidence(np.array([300, 144]), np.array([0, 7])).round(1)
    array([[300. ,   4.7],
           [  0. ,  18. ]])
    """
    steps = 1 + leads
    new = counts / steps
    nearness = np.triu((steps[:, None] / steps) ** 2, 1)
    told = new[:, None] * nearness
    lacking = np.maximum(_ENOUGH - new, 0.0)
    return np.asarray(np.diag(new) + told * (lacking / np.maximum(told.sum(0), np.maximum(lacking, 1.0))))
