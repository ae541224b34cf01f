"""Learning effects: how covariates known in advance move what a series' own past does not tell.

One idea: generalised least squares. The errors of a series around the effects are remembered, so values say
little of an effect and innovations much; what a linear path of the past alone takes off the values it takes
off the covariates too, and on both a ridge is solved. The path is then learned again on what the effects
leave over (Cochrane and Orcutt, 1949, J. Amer. Statist. Assoc. 44).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import oaconvolve

from fracts.checks import FitWarning
from fracts.cohorts import taken
from fracts.cuts import FOLDS, Cuts
from fracts.effects import Effects, freed, typical_step
from fracts.folds import group_of_each, rows_unfit
from fracts.linear import LinearPath
from fracts.linear_fit import fit_linear
from fracts.recall import LinearMemory
from fracts.regression import Moments
from fracts.response import linear_response
from fracts.scaling import Array
from fracts.series import Panel

_ROUNDS = 2
_STRENGTHS = (1e12, 1e4, 1e3, 100.0, 10.0, 1.0, 0.1)  # of the prior, in usual rows; the first: no effect
_ROUNDING = 1e-9  # of a usual row: a prior that says nothing
_LAGS = 2**13  # of values that innovations are told by
_SPARSE = 8  # steps a value, above which values count as though they followed each other


def learned_effects(
    panel: Panel, memory: LinearMemory, ids: Sequence[Any], *, pooled: bool
) -> tuple[Effects, Panel]:
    """Effects of the covariates of `panel` known in advance, shared in typical steps where `pooled`; and the
    panel without effects, in each fold those that were learned before it."""
    n_series, alone = len(panel.values), memory.alone(1)
    steps = np.ones(n_series)
    if pooled and n_series > 1:
        steps = np.array([typical_step(row) for row in panel.values])
    folds = Cuts.of(panel, pooled=pooled).reached(panel.times)
    used = np.arange(panel.times.size) >= rows_unfit(panel, memory.longest_season)[:, None]
    sorted_out = np.where(used & (steps[:, None] > 0), folds, -1)
    rest = Panel(panel.values, panel.times)
    for _ in range(_ROUNDS):
        path = _path_of(rest, alone, ids, pooled)
        learned = _learned(_moments(path, rest, panel, steps, sorted_out, memory.covariates.n_known))
        of_each = learned[group_of_each(n_series, len(learned))]  # (series, folds + 1, known)
        each = steps[:, None, None] * of_each
        rest = replace(rest, values=freed(panel, each[:, -1]).values)
    values = freed(panel, each[:, 0]).values
    for fold in range(2, len(FOLDS) + 1):
        values = np.where(folds == fold, freed(panel, each[:, fold - 1]).values, values)
    return Effects(tuple(ids), each[:, -1], learned[0, -1]), replace(panel, values=values)


def _path_of(rest: Panel, alone: LinearMemory, ids: Sequence[Any], pooled: bool) -> LinearPath:
    """The linear path of `rest` one step ahead."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # the fit to come says it again
        return fit_linear(rest, alone, ids, pooled=pooled)


def _moments(
    path: LinearPath, rest: Panel, panel: Panel, steps: Array, folds: NDArray[np.int64], n_known: int
) -> list[list[Moments]]:
    """Of the innovations of each group and fold, by the `path` of the `rest`.

    steps: (series,), the units of each.  folds: (series, rows), below 0 for rows left out.
    """
    n_groups, lags = len(path.coefficients), np.arange(1, min(panel.times.size, _LAGS) + 1)
    group = group_of_each(len(steps), n_groups)
    state = path.advance(path.empty(path.ids), rest)
    found = []
    for one in range(n_groups):
        mine = np.flatnonzero(group == one)
        kernel = linear_response(path, taken(state, mine), lags, 1)
        own = [Moments.empty(n_known + 1, 1, 1) for _ in range(len(FOLDS) + 1)]
        for series in mine[(folds[mine] >= 0).any(1)].tolist():
            innovations = _innovations(kernel, panel, series, n_known)
            lies_in = folds[series, ~np.isnan(panel.values[series])]
            for fold, part in enumerate(own):
                here = innovations[lies_in == fold]
                part.add(here[:, 1:], here[None, :, :1] / steps[series])
        found.append(own)
    return found


def _learned(moments: list[list[Moments]]) -> Array:
    """Effects (groups, folds + 1, known), learned before each fold and, last, of all."""
    solved, errors = zip(*(_tried(own) for own in moments), strict=True)
    best = int(np.sum(errors, axis=0).argmin())
    return np.array([each[best] for each in solved])


def _tried(own: list[Moments]) -> tuple[Array, Array]:
    """Effects (strengths, folds + 1, known) of a group with moments of its `own` in each fold, and the log
    squared errors (strengths,) of what was learned before a fold inside it."""
    nothing = Moments.empty(own[0].gram.shape[0], 1, 1)
    lessons = [nothing.plus(own[: fold + 1]) for fold in range(len(own))]
    squares = np.diag(lessons[-1].gram)[:-1]
    moving = np.count_nonzero(squares)  # what never moves is no usual row
    usual = squares.sum() / max(moving * lessons[-1].count[0], 1.0)
    solved, errors = [], np.zeros(len(_STRENGTHS))
    for at, strength in enumerate(_STRENGTHS):
        penalty = np.append(np.full(len(nothing.gram) - 1, strength * usual), _ROUNDING * usual)
        told = [lesson.solve(penalty + np.finfo(float).tiny) for lesson in lessons]
        for lesson, inside in zip(told[:-1], own[1:], strict=True):
            left = max(float(inside.squared_error(lesson)[0, 0]), np.finfo(float).tiny)
            errors[at] += inside.count[0] * np.log(left)
        solved.append([lesson[0, :-1, 0] for lesson in told])
    return np.array(solved), errors


def _innovations(kernel: Array, panel: Panel, series: int, n_known: int) -> Array:
    """What `kernel` (lags,) leaves of values, covariates and the constant 1: (values seen, 1 + known + 1).

    A step without a value counts as one with the value before; what comes after such steps is as uncertain as
    a walk of their number.
    """
    seen = np.flatnonzero(~np.isnan(panel.values[series]))
    told = np.column_stack([panel.values[series, seen], panel.covariates[series, seen, :n_known]])
    told = np.column_stack([told - told[0], np.ones(seen.size)])
    at = _places(panel.times[seen])
    every = told[np.searchsorted(at, np.arange(at[-1] + 1), side="right") - 1]
    left = every.copy()
    left[1:] -= oaconvolve(every, kernel[: len(every), None], axes=0)[: len(every) - 1]
    told = left[at] / np.sqrt(np.diff(at, prepend=at[0] - 1))[:, None]
    return np.asarray(told)


def _places(times: Array) -> NDArray[np.int64]:
    """Where values at `times` stand among all steps; one after the other where most steps have none."""
    steps = times - times[0]
    if (steps == np.floor(steps)).all() and steps[-1] < _SPARSE * steps.size:
        return np.asarray(steps, dtype=np.int64)
    return np.arange(steps.size)
