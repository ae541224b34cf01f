"""What held-out time says of candidates: penalties, each with every anchor.

One idea: a log likelihood in which every fold of every series has a noise of its own, so that neither a wild
value nor a loud series rules; and of what the series say the ends are cut off, so that no odd one among them
turns the choice.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from fracts.cuts import FOLDS
from fracts.folds import CHOOSING_LEADS, FoldMoments, Share
from fracts.recall import LinearMemory
from fracts.regression import Moments, Penalty
from fracts.scaling import Array
from fracts.shares import tried

PENALTIES = [Penalty(*p) for p in product((0.5, 0.75), (0.0, 0.25), (0.1, 1.0, 10.0, 100.0, 1e3, 1e4))]
COVARIATE_STRENGTHS = (1.0, 100.0, 1e4, 1e6)
MIN_HELD_OUT = 20  # held-out forecasts of a lead worth choosing by
_CUT_OFF = 0.2  # of what series say, at either end
_CLEAR_GAIN = 0.001  # of the log squared error, for a weaker prior of covariates
_PRICED = 8  # series with coefficients of their own whose degrees of freedom are counted
_ROUNDING = 1e-13  # of a sum of squares: an error below it is none


def choosing_leads(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """A few leads, from 0, of those of enough held-out targets `counts` (horizon,), denser the nearer."""
    enough = np.flatnonzero(counts >= MIN_HELD_OUT)
    if not enough.size:
        return enough
    spread: NDArray[np.int64] = np.geomspace(1, enough.size, CHOOSING_LEADS).round().astype(np.int64)
    return np.asarray(enough[np.unique(spread) - 1])


def moments_to_try(
    memory: LinearMemory, share: Share, leads: NDArray[np.int64], *, pooled: bool
) -> FoldMoments:
    """What candidates are tried on: the moments of the series of `share`, or of groups of these."""
    n_series = len(share.weights)
    n_groups = tried(memory, n_series) if pooled else n_series
    return FoldMoments.of(memory, share, leads, n_groups, pooled=pooled)


def log_errors(
    memory: LinearMemory, moments: FoldMoments, pooled: bool, penalties: Sequence[Penalty]
) -> Array:
    """Log squared error (penalties, answers, leads) of a held-out target, up to a constant at each lead.

    Answers are those of `Moments.solve` for the anchors of the memory.
    """
    said, counts = _said(memory, moments, pooled, penalties)
    return trimmed(_around_the_usual(said), counts)


def costs_of_learning(
    memory: LinearMemory,
    moments: FoldMoments,
    pooled: bool,
    penalties: Sequence[Penalty],
    shared: Array,
) -> Array:
    """Log squared error (penalties, answers, leads) that theory has learning add to that of the best
    coefficients: each degree of freedom a share of one over the number of targets.

    For what is slow that is the number of those that overlap no other; in a season all are new, since what
    the errors of overlapping targets have in common is slow.

    shared: (leads,), how many targets share the steps of one, as `overlaps` tells.
    """
    every = 1 if pooled else -(-moments.n_groups // _PRICED)
    groups = [moments.whole(group) for group in range(0, moments.n_groups, every)]
    lessons = [groups[0].plus(groups[1:])] if pooled else groups
    each = np.array([memory.penalty(penalty) for penalty in penalties])
    seasonal = np.zeros(each.shape[1], dtype=bool)
    seasonal[: memory.bank.feature_frequency.size] = memory.bank.feature_frequency > 0
    costs = np.zeros((len(penalties), 2, shared.size))
    for lesson in lessons:
        degrees, targets = lesson.degrees_of_freedom(each), np.maximum(lesson.count, shared)
        taken = degrees[:, :, seasonal].sum(2) + degrees[:, :, ~seasonal].sum(2) * shared
        costs += np.log1p(taken / targets) / len(lessons)
    means = memory.prior_means(moments.leads)
    n_around, n_alone = (memory.n_bases, 0) if means is None else (len(means), memory.n_alone)
    return costs.repeat([n_around, n_alone], axis=1)


def log_errors_of_each(
    memory: LinearMemory, share: Share, leads: NDArray[np.int64], penalties: Sequence[Penalty]
) -> tuple[Array, Array]:
    """`log_errors` that each series of `share` has with coefficients of its own (series, penalties, answers,
    leads), and the held-out targets (series, leads) behind them."""
    return _said(memory, moments_to_try(memory, share, leads, pooled=False), False, penalties)


def choose(
    memory: LinearMemory,
    share: Share,
    leads: NDArray[np.int64],
    pooled: bool,
    penalties: Sequence[Penalty] = PENALTIES,
) -> tuple[int, Penalty]:
    """Anchor and penalty, one of `penalties`, of the least log error, mean over `leads`.

    Covariates have the strongest prior that is as good as any, or nearly.
    """
    # What is known ahead is left to the second round: each of its numbers costs as much as all the leads.
    anchor, penalty = _best(memory.of_the_past(), share, leads, pooled, penalties)
    if memory.covariates.n_columns:
        strengths = [penalty._replace(covariates=strength) for strength in COVARIATE_STRENGTHS]
        moments = moments_to_try(memory, share, leads, pooled=pooled)
        error = log_errors(memory, moments, pooled, strengths).mean(-1)
        anchor = int(error.min(0).argmin())
        # What a covariate that hardly moved does is unknown: a weak prior would leave it to chance.
        enough = np.flatnonzero(error[:, anchor] <= error[:, anchor].min() + _CLEAR_GAIN)
        penalty = strengths[int(enough[-1])]
    return anchor, penalty


def gain_of_own(
    memory: LinearMemory, together: LinearMemory, share: Share, leads: NDArray[np.int64]
) -> float:
    """By how much own coefficients of each series of `share` lower the log squared error.

    memory: for own coefficients.  together: for those that all series learn together.
    Both are tried on the same origins, at the best penalty and anchor of each.
    """
    n_series, some, errors = len(share.weights), PENALTIES[::2], []  # neighbours say about the same
    for each, pooled in ((memory.of_the_past().blending(), False), (together.of_the_past().blending(), True)):
        moments = FoldMoments.of(each, share, leads, n_series, pooled=True)
        said, counts = _said(each, moments, pooled, some)
        errors.append(_of_the_best(said, counts))
    own, shared = errors
    return float(trimmed(shared - own, counts).mean())


def _best(
    memory: LinearMemory,
    share: Share,
    leads: NDArray[np.int64],
    pooled: bool,
    penalties: Sequence[Penalty],
) -> tuple[int, Penalty]:
    """`choose`, of these `penalties`."""
    moments = moments_to_try(memory, share, leads, pooled=pooled)
    error = log_errors(memory, moments, pooled, penalties).mean(-1)
    penalty, anchor = np.unravel_index(int(error.argmin()), error.shape)
    return int(anchor), penalties[int(penalty)]


def _of_the_best(said: Array, counts: Array) -> Array:
    """What each group says of the penalty and anchor best for all: (groups, leads)."""
    error = trimmed(_around_the_usual(said), counts).mean(-1)
    penalty, anchor = np.unravel_index(int(error.argmin()), error.shape)
    return np.asarray(said[:, penalty, anchor])


def _said(
    memory: LinearMemory, moments: FoldMoments, pooled: bool, penalties: Sequence[Penalty]
) -> tuple[Array, Array]:
    """Log squared errors (groups, penalties, answers, leads), mean over folds, and the held-out targets
    (groups, leads) behind them."""
    sums, counts = [], []
    for fold in range(1, len(FOLDS) + 1):
        present = [moments.inside(fold, group) for group in range(moments.n_groups)]
        count = np.array([part.count for part in present])
        taught = _taught(memory, moments, fold, pooled, penalties)
        errors = [_errors(part, learned) for part, learned in zip(present, taught, strict=True)]
        sums.append(count[:, None, None] * np.log(errors))
        counts.append(count)
    total = np.sum(counts, axis=0)
    return np.sum(sums, axis=0) / np.maximum(total, 1)[:, None, None], total


def _taught(
    memory: LinearMemory,
    moments: FoldMoments,
    fold: int,
    pooled: bool,
    penalties: Sequence[Penalty],
) -> Iterator[Array]:
    """Coefficients (penalties, answers, features + ahead, leads) of each group, learned before `fold`."""
    past = [moments.before(fold, group) for group in range(moments.n_groups)]
    lessons = [past[0].plus(past[1:])] if pooled else past
    means, n_kept = memory.prior_means(moments.leads), memory.n_alone
    for lesson in lessons:
        learned = np.array([lesson.solve(memory.penalty(each), means, n_kept) for each in penalties])
        yield from [learned] * (moments.n_groups if pooled else 1)


def _errors(present: Moments, learned: Array) -> Array:
    """Summed squared errors (penalties, answers, leads) on `present` of what was learned, none of them 0."""
    floor = _ROUNDING * present.square.max(0) + np.finfo(float).tiny
    errors = np.array([present.squared_error(coefficients) for coefficients in learned])
    return np.asarray(np.maximum(errors, floor), dtype=np.float64)


def _around_the_usual(said: Array) -> Array:
    """What groups say of each candidate, less what they say of the one in the middle."""
    return np.asarray(said - np.median(said, axis=(1, 2), keepdims=True))


def trimmed(said: Array, counts: Array) -> Array:
    """Mean (..., leads) of what groups say (groups, ..., leads), the ends cut off; they count by `counts`
    (groups, leads)."""
    weights = np.broadcast_to(counts.reshape(len(counts), *[1] * (said.ndim - 2), -1), said.shape)
    order = said.argsort(axis=0)
    said, weights = (np.take_along_axis(each, order, 0) for each in (said, weights))
    reached = weights.cumsum(0)
    whole = reached[-1]
    low, high = _CUT_OFF * whole, (1 - _CUT_OFF) * whole
    kept = np.clip(np.minimum(reached, high) - np.maximum(reached - weights, low), 0.0, None)
    return np.asarray((kept * said).sum(0) / np.maximum(kept.sum(0), np.finfo(float).tiny))
