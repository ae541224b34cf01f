"""Exponential smoothing with additive errors: its likelihood, and the model of the least AICc.

    y[t] = level + phi trend + season + e[t]
    level' = level + phi trend + alpha e,    trend' = phi trend + beta e,    season' = season + gamma e

One idea: the errors are the series passed through a filter with few parameters, and linear in the states at
the start. So these are solved for by least squares, and at most four numbers are left to search. A value that
is missing is one more unknown of the same kind, integrated out.

Source: Hyndman, Koehler, Ord and Snyder (2008), Forecasting with Exponential Smoothing: the state space
models, their likelihood, the choice between them and their ARIMA forms.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, toeplitz
from scipy.optimize import minimize
from scipy.signal import lfilter
from scipy.special import expit, logit

from fracts.baselines.statespace import StateSpace
from fracts.records import record

Array = NDArray[np.float64]

_EDGE = 1e-4  # between the parameters and their bounds
_DAMPING = (0.8, 0.98)
# Shares of the ranges of alpha, beta, gamma and phi: the search starts from the best of their products.
_STARTS = ((0.1, 0.5, 0.9), (0.05, 0.5, 0.95), (0.05, 0.4), (0.3, 0.95))
_MOST_HOLES = 100  # solved for; of a history with more the last rows that have as many are used
_PERFECT = 1e-10  # error in units of the spread of the series, below which a fit is perfect


@record
@dataclass(frozen=True)
class Form:
    """Which parts a model has; `damped` needs `trend`; `season_length` 1 is no season."""

    trend: bool
    damped: bool
    season_length: int

    @property
    def starts(self) -> int:
        """Number of states at the start that are not known."""
        return 1 + self.trend + self.season_length - 1

    @property
    def size(self) -> int:
        """Number of parameters that are searched."""
        return 1 + self.trend + self.damped + (self.season_length > 1)

    def __str__(self) -> str:
        trend = "Ad" if self.damped else "A" if self.trend else "N"
        return f"A,{trend},{'A' if self.season_length > 1 else 'N'}"


@record
@dataclass(frozen=True)
class Smoothing:
    """A fitted model: its form, parameters, variance of the errors, AICc, and whether of the logarithm."""

    form: Form
    alpha: float
    beta: float
    gamma: float
    phi: float
    variance: float
    aicc: float
    logarithm: bool
    converged: bool
    perfect: bool

    def __str__(self) -> str:
        return f"ETS({self.form})" + (" of the logarithm" if self.logarithm else "")


def fit_form(values: Array, form: Form, logarithm: bool) -> Smoothing | None:
    """The most likely model of this form for `values` (time,), None where they are too few."""
    series = _with_few_holes(np.log(values) if logarithm else values)
    n = int(np.count_nonzero(~np.isnan(series)))
    count = form.size + form.starts + 1
    if n - count - 1 <= 0:
        return None
    scale = float(np.nanstd(series)) or 1.0
    series = (series - np.nanmean(series)) / scale

    def height(raw: Any) -> float:
        return -_log_likelihood(series, form, _bounded(raw, form))[0] / n

    starts = product(*(_STARTS[k] for k in _searched(form)))
    start = min((logit(np.array(shares)) for shares in starts), key=height)
    options: Any = {"xatol": 1e-2, "fatol": 1e-6, "maxfev": 200 * form.size}
    best = minimize(height, start, method="Nelder-Mead", options=options)
    parameters = _bounded(best.x, form)
    log_likelihood, variance = _log_likelihood(series, form, parameters)
    log_likelihood -= n * np.log(scale)
    if logarithm:
        log_likelihood -= float(np.nansum(np.log(values[-len(series) :])))
    aicc = -2 * log_likelihood + 2 * count + 2 * count * (count + 1) / (n - count - 1)
    perfect = variance <= _PERFECT**2
    return Smoothing(
        form, *parameters, variance * scale**2, float(aicc), logarithm, bool(best.success) or perfect, perfect
    )


def smoothing_space(model: Smoothing) -> StateSpace:
    """`model` as a machine of one series, whose states at the start are not known."""
    form = model.form
    season = form.season_length if form.season_length > 1 else 0
    size = 1 + form.trend + season
    transition, design, gain, diffuse = np.eye(size), np.zeros(size), np.zeros(size), np.eye(size)
    design[0], gain[0] = 1.0, model.alpha
    if form.trend:
        design[1] = transition[0, 1] = transition[1, 1] = model.phi
        gain[1] = model.beta
    if season:
        places = slice(1 + form.trend, None)
        transition[places, places] = np.roll(np.eye(season), 1, axis=1)
        design[1 + form.trend], gain[-1] = 1.0, model.gamma
        diffuse[places, places] -= 1 / season  # a mean of the seasons is part of the level
    return StateSpace(
        transition[None],
        design[None],
        np.outer(gain, gain)[None],
        gain[None],
        np.ones(1),
        np.array([model.variance]),
        np.zeros((1, size)),
        np.zeros((1, size, size)),
        diffuse[None],
    )


def _searched(form: Form) -> list[int]:
    """Places of the searched parameters among alpha, beta, gamma, phi."""
    return [k for k, used in enumerate((True, form.trend, form.season_length > 1, form.damped)) if used]


def _bounded(raw: Array, form: Form) -> tuple[float, float, float, float]:
    """alpha, beta, gamma and phi within the usual bounds: beta < alpha, gamma < 1 - alpha."""
    share = np.array([1.0, 0.0, 0.0, 1.0])
    share[_searched(form)] = _EDGE + (1 - 2 * _EDGE) * expit(raw)
    low, high = _DAMPING
    phi = low + (high - low) * share[3] if form.damped else float(form.trend)
    alpha = float(share[0])
    return alpha, alpha * float(share[1]), (1 - alpha) * float(share[2]), float(phi)


def _filters(form: Form, parameters: tuple[float, float, float, float]) -> tuple[Array, Array]:
    """Polynomials in the step back: `left` of the series is `right` of the errors."""
    alpha, beta, gamma, phi = parameters
    m = form.season_length
    season = np.zeros(m + 1)
    season[0], season[m] = 1.0, -1.0  # for m = 1 the difference
    damping = np.array([1.0, -phi]) if form.trend else np.ones(1)
    left = np.convolve(season, damping)
    right = left.copy()
    level = np.convolve(np.append(0.0, np.ones(m)), alpha * damping)
    right[: level.size] += level
    if form.trend:
        right[: m + 1] += phi * beta * np.append(0.0, np.ones(m))
    if m > 1:
        right[m : m + damping.size] += gamma * damping
    return left, right


def _log_likelihood(
    values: Array, form: Form, parameters: tuple[float, float, float, float]
) -> tuple[float, float]:
    """Log-likelihood and variance of the errors, with the states at the start and the holes solved for."""
    left, right = _filters(form, parameters)
    holes = np.flatnonzero(np.isnan(values))
    errors = lfilter(left, right, np.nan_to_num(values))
    impulse = np.eye(1, len(values))[0]
    unknown = toeplitz(lfilter([1.0], right, impulse), np.zeros(left.size - 1))
    n, determinant = len(values) - holes.size, 0.0
    if holes.size:
        response = lfilter(left, right, impulse)
        missing = toeplitz(response, np.zeros(len(values)))[:, holes]
        determinant = float(np.linalg.slogdet(missing.T @ missing)[1])
        unknown = np.column_stack([unknown, missing])
    triangle = qr(np.column_stack([unknown, errors]), mode="r", overwrite_a=True, check_finite=False)[0]
    variance = max(float(triangle[unknown.shape[1], -1]) ** 2 / n, _PERFECT**2)
    return -(n * (np.log(2 * np.pi * variance) + 1) + determinant) / 2, variance


def _with_few_holes(values: Array) -> Array:
    """The last rows of `values`, from a known one on, with no more holes than are solved for."""
    holes = np.isnan(values[::-1]).cumsum()[::-1]
    rows: Array = values[holes <= _MOST_HOLES]
    return rows[int(np.argmin(np.isnan(rows))) :]
