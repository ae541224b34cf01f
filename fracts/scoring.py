"""Errors of a model over the rows that follow its cutoff, from every origin on the way.

One idea: a continuation is the rows of all series, and for each the first and the last that are new to it.
Series that stand at the same time are passed over together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fracts.cohorts import cohorts, taken, together
from fracts.passes import Ahead
from fracts.series import Panel, State

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


class Continuation(NamedTuple):
    """Rows that follow the cutoffs.

    panel: as the model sees them.  values: (series, rows), in the units of the series.  begin, end:
    (series,), the rows of each, the end left out.  counts: (series,), of the last row of each.
    """

    panel: Panel
    values: Array
    begin: Counts
    end: Counts
    counts: Counts

    def whole(self, now: Counts) -> Panel:
        """The rows of all series; ValueError unless they follow one time and end at one. now: (series,)."""
        if not (together(now) and together(self.end)):
            raise ValueError(
                "update_params=True, but the series stand at different stamps or end at different ones. "
                "Bring all to one stamp by `update` without it, and give rows of all up to one stamp."
            )
        return self.panel.part(int(self.begin[0]), int(self.end[0]))


class Medians(NamedTuple):
    """What a model says on the way over rows."""

    told: Callable[[State, Panel, Counts, Ahead], Iterator[Array]]  # (series, origins, horizon) each
    horizon: int
    n_known: int  # numbers of covariates known in advance


def mean_squares(medians: Medians, state: State, rows: Continuation, counts: Counts, times: Array) -> Array:
    """(series,): mean square of truth minus median over all origins and leads; NaN without a truth.

    counts, times: (series,), where each stands in `state`.
    """
    squares = np.full(len(counts), np.nan)
    for _, cohort in cohorts(counts):
        start = int(rows.begin[cohort[0]])
        for stop in np.unique(rows.end[cohort]):
            series = cohort[rows.end[cohort] == stop]
            if stop > start:
                panel = rows.panel.of(series).part(start, int(stop))
                truth = rows.values[series, start : int(stop)]
                errors = _errors(medians, taken(state, series), panel, truth, times[series[:1]])
                blank = np.isnan(errors).all(axis=(1, 2))
                squares[series[~blank]] = np.nanmean(errors[~blank] ** 2, axis=(1, 2))
    return squares


def _errors(medians: Medians, state: State, panel: Panel, truth: Array, now: Array) -> Array:
    """(series, rows, horizon): truth minus median, from the time `now` (1,) and all rows but the last."""
    known = Panel(
        np.pad(truth, ((0, 0), (1, 0)), constant_values=np.nan),
        np.append(now, panel.times),
        np.pad(panel.covariates, ((0, 0), (1, 0), (0, 0))),
    )
    horizon = medians.horizon

    def ahead(at: Counts) -> Array:
        near = known.reaching(int(at[0]), int(at[-1]) + 1, horizon)
        return near.covariates_ahead(horizon, medians.n_known)[:, : len(at)]

    told = list(medians.told(state, panel, np.arange(len(panel.times)), ahead))
    errors: Array = known.ahead(horizon)[:, :-1] - np.concatenate(told, axis=1)
    return errors
