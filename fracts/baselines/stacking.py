"""Weights of several forecasters, by what each would have said on the last part of the history.

One idea: the weights are chosen on forecasts of values that no model had seen. So the models are fitted a
first time, to four fifths of the values, and forecast from rows of the last fifth. The weights of least
squared error among those that are not negative and sum to 1 are stacking (Wolpert, 1992, Neural Networks
5(2); Breiman, 1996, Machine Learning 24) with the sum of Granger and Ramanathan (1984, Journal of Forecasting
3(2)).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from fracts.base import Forecaster
from fracts.baselines.machines import Inner, origin_of
from fracts.checks import FitWarning
from fracts.cuts import common_ends
from fracts.passes import walked
from fracts.scores import naive_scale
from fracts.series import Panel
from fracts.timeline import Clock

Array = NDArray[np.float64]

_ORIGINS = 200  # at most, evenly spread over the last fifth
_ENOUGH = 5  # errors for each weight


def stacked(
    models: Sequence[Forecaster], panel: Panel, clock: Clock, ids: Sequence[Any], horizon: int
) -> Array:
    """(models,): the weights, the same for all series; equal ones, with a FitWarning, of a short history."""
    errors = _held_out_errors(models, panel, clock, ids, horizon)
    if len(errors) < _ENOUGH * len(models):
        warnings.warn(
            f"the last fifth of the history holds {len(errors)} forecasts to weigh {len(models)} models by. "
            f"{_ENOUGH * len(models)} are needed, so the weights are equal. Give a longer history.",
            FitWarning,
            stacklevel=6,  # the line that called `fit`
        )
        return np.full(len(models), 1 / len(models))
    return simplex_weights(errors)


def simplex_weights(errors: Array) -> Array:
    """Weights (models,), not negative and of sum 1, of least squared error `errors @ weights`.

    errors: (forecasts, models).

    Examples
    --------
    >>> simplex_weights(np.array([[1.0, -3.0, 9.0], [1.0, -3.0, 2.0]])).round(3)
    array([0.75, 0.25, 0.  ])
    """
    size = float(np.linalg.norm(errors))
    if size == 0:
        return np.full(errors.shape[1], 1 / errors.shape[1])
    # Whatever the pull of the last row towards a sum of 1, the weights it leads to have the same proportions.
    rows = np.vstack([np.linalg.qr(errors / size, mode="r"), np.ones(errors.shape[1])])
    found, _ = nnls(rows, np.append(np.zeros(len(rows) - 1), 1.0))
    weights: Array = found / found.sum()
    return weights


def _held_out_errors(
    models: Sequence[Forecaster], panel: Panel, clock: Clock, ids: Sequence[Any], horizon: int
) -> Array:
    """(forecasts, models): truth minus median, in units of the step of each series, over all leads."""
    stop = int(np.searchsorted(panel.times, common_ends(panel)[-1], side="right"))
    learned, later = panel.part(0, stop), panel.part(stop, panel.times.size)
    scale = np.array([naive_scale(row) for row in learned.values])
    series = np.flatnonzero((scale > 0) & ~np.isnan(later.values).all(1))
    if not series.size:
        return np.empty((0, len(models)))
    learned, later, names = learned.of(series), later.of(series), [ids[at] for at in series.tolist()]
    origins = np.unique(np.linspace(0, later.times.size - 1, _ORIGINS).astype(np.int64))
    truth = panel.of(series).part(stop - 1, panel.times.size).ahead(horizon)[:, origins]
    errors = []
    for model in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # the fit to the whole history says what is wrong
            inner = Inner.fitted(model, learned, clock, names)
        errors.append(truth - _medians(inner, learned, later, origins, horizon))
    scaled = np.stack(errors, axis=-1) / scale[series, None, None, None]
    by_forecast: Array = scaled[~np.isnan(truth)]
    return by_forecast


def _medians(inner: Inner, learned: Panel, later: Panel, origins: NDArray[np.int64], horizon: int) -> Array:
    """(series, origins, horizon) of a model, from `origins`, rows of `later` gone by."""
    state = inner.advance(inner.empty(origin_of(inner.clock)), learned)
    told = walked(
        lambda seen: inner.forecast(seen, horizon, np.array([0.5])),
        inner.advance,
        state,
        later,
        origins,
        lambda at: np.empty((len(learned.values), len(at), horizon, 0)),
    )
    return np.concatenate([forecast.quantiles[..., 0] for forecast in told], axis=1)
