"""Averages of ridges: every penalty and anchor tried speaks at each lead as loudly as held-out time has it.

One idea: what is best one step ahead is seldom best a season ahead, and what is nearly as good as the best
should not be silent. All candidates are linear in the same numbers, so their average is one more set of
coefficients. A candidate leans on one anchor alone, or on all: then the prior has weight 1 at one of them; or
on what fractional noise would do.

A weight is the likelihood of the held-out errors, tempered: of the forecasts of lead k only every k-th is
new, and of what these say a tenth is taken for granted, since other stretches of time may say otherwise
(Holmes and Walker, 2017, Biometrika 104(2); Bates and Granger, 1969, Operational Research Quarterly 20(4)).
A lead of which few are new believes the leads before it as well, the nearer the more: what forecasts badly
one step ahead seldom does better a hundred ahead. And the forecasts that it lacks say what theory has them
say: that coefficients learned from few targets cost error, the more the freer they are.

Series with coefficients of their own have an average of their own each. To it its own errors speak as loudly
as those of the usual series; the more series there are, the less is taken for granted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from fracts.evidence import costs_of_learning, log_errors, log_errors_of_each, moments_to_try
from fracts.folds import Share, overlaps
from fracts.recall import LinearMemory
from fracts.regression import Moments, Penalty
from fracts.scaling import Array

_CREDIT = 0.1  # of the log likelihood that is taken for granted
_DIGITS = 10  # of a weight that tell which penalties are the loudest
_ENOUGH = 200.0  # new forecasts of a lead, with which it listens to no other
_MOST_HEARD = 8  # penalties that each of many series has a say on


class Verdict(NamedTuple):
    """What held-out time has against candidates, in nats, up to a constant at each lead."""

    penalties: Sequence[Penalty]
    against: Array  # (penalties, answers, leads)
    leads: NDArray[np.int64]  # from 0, between which weights go over into each other

    def of_the_loudest(self, most: int) -> Self:
        """Of `most` penalties alone, the loudest."""
        # Rounding must not order penalties that nothing tells apart.
        loud = softmax(-self.against, axis=(0, 1)).sum((1, 2)).round(_DIGITS)
        loudest = np.argsort(-loud, kind="stable")[:most]
        penalties = [self.penalties[i] for i in loudest.tolist()]
        return self._replace(penalties=penalties, against=self.against[loudest])

    def weights(self, horizon: int) -> Array:
        """Shares (penalties, answers, horizon) of the candidates in an average."""
        shares = softmax(-self.against, axis=(0, 1))
        at, leads = np.log1p(self.leads), np.log1p(np.arange(horizon))
        rows = [np.interp(leads, at, row) for row in shares.reshape(-1, at.size)]
        return np.reshape(rows, (*shares.shape[:2], -1))


@dataclass(frozen=True)
class Mixture:
    """What a linear path is the average of.

    Attributes
    ----------
    memory : of all candidates, with blended anchors where there are several.
    penalties : each with the coefficients that `Moments.solve` tells for the anchors of the memory.
    weights : (penalties, answers, horizon), not negative and of sum 1 at every lead.
    verdict : that the weights were made of, where series add to it what they say each.
    """

    memory: LinearMemory
    penalties: Sequence[Penalty]
    weights: Array
    verdict: Verdict | None = None

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
    n_groups: int,
    penalties: Sequence[Penalty],
    most: int,
) -> Mixture:
    """The average of `penalties`, `most` of them, and of all anchors by their errors on held-out time.

    share: of the series, or a sample of them.  leads: at which they are tried.  counts: (horizon,), held-out
    targets of every lead.  n_groups: that have coefficients of their own, each a series where it is not one.
    """
    tried, pooled = counts[leads] / n_groups, n_groups == 1
    moments = moments_to_try(memory, share, leads, pooled=pooled)
    errors = log_errors(memory, moments, pooled, penalties)
    shared = overlaps(share.panel, leads).mean(0)
    costs, new = costs_of_learning(memory, moments, pooled, penalties, shared), tried / shared
    against = _credit(n_groups) / 2 * errors @ evidence(new, leads)
    against += _CREDIT / 2 * costs * _lacking(new)
    verdict = Verdict(penalties, against, leads)
    return _average(memory, verdict.of_the_loudest(most), None if pooled else verdict)


def mixed_of_each(mixture: Mixture, share: Share, n_groups: int, most: int) -> list[Mixture]:
    """The average of each series of `share`, of `most` penalties: by its own errors and those behind the
    `mixture` of all `n_groups`."""
    if mixture.verdict is None:
        return [mixture] * len(share.weights)
    memory, verdict = mixture.memory, mixture.verdict.of_the_loudest(_MOST_HEARD)
    errors, counts = log_errors_of_each(memory, share, verdict.leads, verdict.penalties)
    averages = []
    for error, new in zip(errors, counts / overlaps(share.panel, verdict.leads), strict=True):
        own = _credit(n_groups) / 2 * error @ evidence(new, verdict.leads)
        both = verdict._replace(against=verdict.against + own)
        averages.append(_average(memory, both.of_the_loudest(most)))
    return averages


def _average(memory: LinearMemory, verdict: Verdict, behind: Verdict | None = None) -> Mixture:
    return Mixture(memory, verdict.penalties, verdict.weights(memory.horizon), behind)


def _credit(n_groups: int) -> float:
    """Of the log likelihood of each of `n_groups` series, what is taken for granted."""
    return min(n_groups * _CREDIT, 1.0)


def _mean(means: Array, weights: Array) -> Array:
    """Mean (size, leads) of `means` (means, size, leads) by `weights` (means, leads); 0 where all are 0."""
    total = np.maximum(weights.sum(0), np.finfo(float).tiny)
    return np.asarray(np.einsum("ml,msl->sl", weights, means) / total)


def evidence(new: Array, leads: NDArray[np.int64]) -> Array:
    """How many new forecasts of each lead (rows) speak for each lead (columns): (leads, leads).

    new: (leads,), held-out forecasts of `leads`, from 0 and ascending, that overlap no other.

    Examples
    --------
    >>> evidence(np.array([300.0, 18.0]), np.array([0, 7])).round(1)
    array([[300. ,   4.7],
           [  0. ,  18. ]])
    """
    steps = 1 + leads
    nearness = np.triu((steps[:, None] / steps) ** 2, 1)
    told = new[:, None] * nearness
    lacking = _lacking(new)
    return np.asarray(np.diag(new) + told * (lacking / np.maximum(told.sum(0), np.maximum(lacking, 1.0))))


def _lacking(new: Array) -> Array:
    """How many forecasts each lead lacks (leads,), of which `new` overlap no other."""
    return np.asarray(np.maximum(_ENOUGH - new, 0.0))
