"""Learning a linear path: what is averaged, solved on all origins, and how far off held-out forecasts are.

Penalties and anchors are weighed by rolling origins in time; the errors of those held-out forecasts give the
quantiles.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from fracts.averaging import Mixture, mixed, mixed_of_each
from fracts.checks import FitWarning
from fracts.cuts import FOLDS
from fracts.evidence import (
    PENALTIES,
    choose,
    choosing_leads,
    gain_of_own,
)
from fracts.folds import FoldMoments, Share, held_out_counts, overlaps
from fracts.held_out import held_out_errors, noise_in, own_quantiles, shared_quantiles
from fracts.linear import LinearPath
from fracts.recall import LinearMemory, beside_smoothing
from fracts.regression import Penalty
from fracts.scaling import Array
from fracts.series import Panel
from fracts.shares import are_apart, noise_of, noise_weights, sample_of, shares_of
from fracts.unlearned import Unlearned

UNTRIED = 0, Penalty(0.5, 0.0, 10.0)  # anchor and penalty where no held-out forecast tells
_OWN_GAIN = 0.1  # of the log squared error, that is no doubt
_MOST_NUMBERS = 2**26  # in coefficients of their own
_FEW_PENALTIES, _MOST_PENALTIES = 4, 8  # in an average: of many series and leads, and of few
_SOLVED = 2**13  # penalties in the averages of all series and leads, where more than few
_LEADS_AT_ONCE = 32  # solved where each has a matrix of its own: of holes, of covariates
_TIED_NUMBERS = 2**21  # of leads that share a matrix and are solved at once


def is_pooled(pooled: str | bool, panel: Panel, memory: LinearMemory) -> bool:
    """Whether all series share coefficients: as asked, or ("auto") as held-out time has it.

    In doubt they do, except where their noise lies far apart: what is right for one is then seldom right for
    another. How long they are is left to held-out time, which hears the usual series and no odd one: a short
    one with coefficients of its own has a prior, and what it leans on is averaged as for the others. They
    share where there are too many to keep.
    """
    if isinstance(pooled, bool):
        return pooled or len(panel.values) == 1
    size = memory.n_features + memory.covariates.n_known
    if len(panel.values) == 1 or len(panel.values) * size * memory.horizon * (1 + len(FOLDS)) > _MOST_NUMBERS:
        return True
    counts, _ = held_out_counts(memory, panel, pooled=True)
    leads = choosing_leads(counts)
    if not leads.size:
        return True
    with threadpool_limits(1, user_api="blas"):
        noise = noise_of(memory, panel, leads)
        some = sample_of(Share(panel, noise_weights(noise)), memory)
        gain = gain_of_own(memory, beside_smoothing(memory, panel, pooled=True), some, leads)
    return gain < (-_OWN_GAIN if are_apart(noise) else _OWN_GAIN)


def fit_linear(
    panel: Panel,
    memory: LinearMemory,
    ids: Sequence[Any],
    *,
    pooled: bool,
    strength: float | None = None,
    averaged: bool = True,
) -> LinearPath:
    """Weigh penalties and anchors by rolling origins, solve on all origins, keep the held-out errors.

    strength: of the penalty, None to weigh several.  averaged: False for the best penalty and anchor alone.
    Warns (FitWarning) where the history is too short for a single held-out forecast.
    """
    values, n_all = (~np.isnan(panel.values)).sum(1), 1 if pooled else len(panel.values)
    counts, holes = held_out_counts(memory, panel, pooled=pooled)
    if not counts.any() and _moves(panel):
        warnings.warn(
            f"the longest history, of {values.max()} rows, holds no forecast of {memory.horizon} steps to "
            "try a penalty on, so one was assumed, and a normal law for the intervals. Give a longer history "
            "or a shorter horizon.",
            FitWarning,
            stacklevel=5,  # the line that called `fit`
        )
    # A second thread gains nothing on matrices of this size, and waits long where the cores are busy.
    with threadpool_limits(1, user_api="blas"):
        tried = choosing_leads(counts)
        whole = Share(panel, noise_weights(noise_of(memory, panel, tried)))
        shares = [whole] if pooled else shares_of(whole, memory)
        penalties = _of_strength(PENALTIES, strength)
        if tried.size:
            looked_at = whole if pooled else sample_of(whole, memory)
            mixture = _mixture(memory, looked_at, tried, counts, n_all, penalties, averaged)
        else:
            anchor, (penalty,) = UNTRIED[0], _of_strength([UNTRIED[1]], strength)
            mixture = Mixture.of_one(memory.leaning_on(anchor), penalty)
        leads = np.arange(memory.horizon)
        n_groups = 1 if pooled else max(len(share.weights) for share in shares)
        at_once = _leads_at_once(mixture.memory, n_groups, holes)
        batches = np.array_split(leads, -(-leads.size // at_once))
        most = _most_penalties(n_all, memory.horizon)
        solved, learned, unlearned = [], mixture.memory, np.empty(0)
        for share in shares:
            mixtures = [mixture] if pooled else mixed_of_each(mixture, share, n_all, most)
            final, held_out = _solve(mixtures, share, batches, pooled, tried)
            if averaged and len(values) == 1:
                alone = Unlearned.of(memory, share, penalties, held_out[0], tried)
                if alone is not None:
                    learned, unlearned = alone.memory, alone.shares.sum(0)
                    final, held_out = alone.beside(final), alone.beside(held_out)
            solved.append((final, held_out, *_errors(learned, share, held_out, pooled)))
        coefficients, held_out, errors, noise = (np.concatenate(parts) for parts in zip(*solved, strict=True))
    seen = values.sum(keepdims=True) if pooled else values
    told = coefficients, held_out, errors, mixture.best
    return LinearPath(learned, *told, tuple(ids), seen, whole.weights, noise, alone=unlearned)


def _mixture(
    memory: LinearMemory,
    share: Share,
    leads: NDArray[np.int64],
    counts: NDArray[np.int64],
    n_groups: int,
    penalties: Sequence[Penalty],
    averaged: bool,
) -> Mixture:
    """What the path is to be the average of; beside covariates one anchor, which saw them."""
    pooled = n_groups == 1
    if not averaged:
        anchor, penalty = choose(memory, share, leads, pooled, penalties)
        return Mixture.of_one(memory.leaning_on(anchor), penalty)
    if memory.covariates.n_columns:
        anchor, best = choose(memory, share, leads, pooled, penalties)
        memory = memory.leaning_on(anchor)
        penalties = [p._replace(covariates=best.covariates) for p in penalties]
    if not memory.bank.frequencies.size:
        penalties = list(dict.fromkeys(p._replace(seasonal_decay=0.0) for p in penalties))
    most = _most_penalties(n_groups, memory.horizon)
    return mixed(memory.blending(), share, leads, counts, n_groups, penalties, most)


def _most_penalties(n_groups: int, horizon: int) -> int:
    """In an average of each of `n_groups`."""
    return int(np.clip(_SOLVED // (n_groups * horizon), _FEW_PENALTIES, _MOST_PENALTIES))


def _leads_at_once(memory: LinearMemory, n_groups: int, holes: bool) -> int:
    """Leads to solve in one pass: many where they share matrices, few where each has its own."""
    if holes or memory.covariates.n_known:
        return _LEADS_AT_ONCE
    tied = n_groups * memory.n_features * max(memory.n_ahead, 1)
    return max(_LEADS_AT_ONCE, _TIED_NUMBERS // tied)


def _of_strength(penalties: Sequence[Penalty], strength: float | None) -> list[Penalty]:
    """The `penalties` with another `strength`, or as they are for None."""
    if strength is None:
        return list(penalties)
    return list(dict.fromkeys(penalty._replace(strength=strength) for penalty in penalties))


def _moves(panel: Panel) -> bool:
    return bool((np.nanmax(panel.values, axis=1) > np.nanmin(panel.values, axis=1)).any())


def _solve(
    mixtures: Sequence[Mixture],
    share: Share,
    batches: Sequence[NDArray[np.int64]],
    pooled: bool,
    tried: NDArray[np.int64],
) -> tuple[Array, Array]:
    """Coefficients, and those of held-out forecasts, as a `LinearPath` has them.

    tried: leads of which held-out forecasts were tried. Where there are none, none tells how far the first
    origins may be trusted. A trend widens the scale, so what they say of a lead, in the scale of few values,
    is many times what it is after more; they then count in the units of the series.
    """
    n_groups = 1 if pooled else len(share.weights)
    folds, groups, memory = range(1, len(FOLDS) + 1), list(enumerate(mixtures)), mixtures[0].memory
    final, held_out = [], []
    for leads in batches:
        moments = FoldMoments.of(memory, share, leads, n_groups, pooled=pooled, in_units=not tried.size)
        final.append([mixture.solve(moments.whole(g), leads) for g, mixture in groups])
        held_out.append(
            [[mixture.solve(moments.before(f, g), leads) for f in folds] for g, mixture in groups]
        )
    return np.concatenate(final, axis=-1), np.concatenate(held_out, axis=-1)


def _errors(memory: LinearMemory, share: Share, held_out: Array, pooled: bool) -> tuple[Array, Array]:
    """Quantiles of the held-out errors, and the noise of each series, as a `LinearPath` has them."""
    errors = held_out_errors(memory, share.panel, held_out)
    n_series, horizon = len(share.weights), memory.horizon
    if not pooled or n_series == 1:
        quantiles = own_quantiles(errors, n_series, overlaps(share.panel, np.arange(horizon)))
        return quantiles, np.ones(n_series)
    noise = noise_in(errors, n_series)
    return shared_quantiles(errors, noise, horizon), noise
