"""Exponential smoothing with additive errors: its likelihood, and the model of the least AICc.

    y[t] = level + phi trend + season + e[t]
    level' = level + phi trend + alpha e,    trend' = phi trend + beta e,    season' = season + gamma e

One idea: the errors are the series passed through a filter with few parameters, and linear in the states at
the start. So these are solved for by least squares, and at most four numbers are left to search. A value that
is missing is one more unknown of the same kind, integrated out. The gradient costs one more filter, run
backwards: what is solved for does not move the least sum of squares.

Source: Hyndman, Koehler, Ord and Snyder (2008), Forecasting with Exponential Smoothing: the state space
models, their likelihood, the choice between them and their ARIMA forms.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.signal import lfilter

from fracts.baselines.statespace import StateSpace
from fracts.records import record

Array = NDArray[np.float64]

_EDGE = 1e-4  # between the shares and their bounds
_DAMPING = (0.8, 0.98)
# Shares of the ranges of alpha, beta, gamma and phi: the search starts from the best of their products.
_STARTS = ((0.1, 0.5, 0.9), (0.05, 0.5), (0.05, 0.4), (0.8,))
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

    def height(shares: Any) -> tuple[float, Array]:
        found = _likelihood(series, form, shares)
        return -found.log / n, -found.gradient / n

    starts = product(*(_STARTS[k] for k in _searched(form)))
    start = min(starts, key=lambda shares: height(np.array(shares))[0])
    bounds = [(_EDGE, 1 - _EDGE)] * form.size
    best = minimize(height, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-9})
    found = _likelihood(series, form, best.x)
    log_likelihood = found.log - n * np.log(scale)
    if logarithm:
        log_likelihood -= float(np.nansum(np.log(values[-len(series) :])))
    aicc = -2 * log_likelihood + 2 * count + 2 * count * (count + 1) / (n - count - 1)
    parameters, perfect = _parameters(best.x, form), found.variance <= _PERFECT**2
    return Smoothing(
        form,
        *parameters,
        found.variance * scale**2,
        float(aicc),
        logarithm,
        bool(best.success) or perfect,
        perfect,
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


def _parameters(shares: Array, form: Form) -> tuple[float, float, float, float]:
    """alpha, beta, gamma and phi within the usual bounds: beta < alpha, gamma < 1 - alpha."""
    share = np.array([1.0, 0.0, 0.0, 1.0])
    share[_searched(form)] = shares
    low, high = _DAMPING
    phi = low + (high - low) * share[3] if form.damped else float(form.trend)
    alpha = float(share[0])
    return alpha, alpha * float(share[1]), (1 - alpha) * float(share[2]), float(phi)


def _slopes(shares: Array, form: Form) -> Array:
    """(searched, 4): how alpha, beta, gamma and phi move with each share."""
    share = np.zeros(4)
    share[_searched(form)] = shares
    alpha, low_high = share[0], _DAMPING[1] - _DAMPING[0]
    slopes = np.diag([1.0, alpha, 1 - alpha, low_high])
    slopes[0, 1:3] = share[1], -share[2]
    return slopes[_searched(form)]


def _filters(form: Form, parameters: tuple[float, float, float, float]) -> tuple[Array, Array, Array, Array]:
    """Polynomials in the step back, and their slopes (4, lags) in alpha, beta, gamma and phi.

    `left` of the series is `right` of the errors.
    """
    alpha, beta, gamma, phi = parameters
    m, size = form.season_length, form.season_length + 1 + form.trend
    left, left_slopes, right_slopes = np.zeros(size), np.zeros((4, size)), np.zeros((4, size))
    left[0], left[m] = 1.0, -1.0  # for m = 1 the difference
    right_slopes[0, 1 : m + 1] = 1.0
    if m > 1:
        right_slopes[2, m] = 1.0
    if form.trend:
        left_slopes[3, 1:] = -left[:-1]
        left[1:] -= phi * left[:-1].copy()
        right_slopes[1, 1 : m + 1] = phi
        right_slopes[3] = left_slopes[3]
        right_slopes[3, 1 : m + 1] += beta
        for k, weight in ((0, alpha), (2, gamma)):
            right_slopes[3, 1:] -= weight * right_slopes[k, :-1]
            right_slopes[k, 1:] -= phi * right_slopes[k, :-1].copy()
    right = left + alpha * right_slopes[0] + beta * right_slopes[1] + gamma * right_slopes[2]
    return left, right, left_slopes, right_slopes


class _Likelihood(NamedTuple):
    """The log-likelihood, its gradient in the shares, and the variance of the errors."""

    log: float
    gradient: Array
    variance: float


def _likelihood(values: Array, form: Form, shares: Array) -> _Likelihood:
    """Of `values` (time,), with the states at the start and the holes solved for."""
    left, right, left_slopes, right_slopes = _filters(form, _parameters(shares, form))
    holes = np.flatnonzero(np.isnan(values))
    filled = np.where(np.isnan(values), 0.0, values)
    impulse = np.zeros(len(values))
    impulse[0] = 1.0
    unknown = _later(lfilter([1.0], right, impulse), range(left.size - 1))
    n, determinant, by_coefficient = len(values) - holes.size, 0.0, np.zeros(4)
    if holes.size:
        response = lfilter(left, right, impulse)
        missing = _later(response, holes)
        determinant = float(np.linalg.slogdet(missing.T @ missing)[1])
        unknown = np.column_stack([unknown, missing])
        inverse = np.vstack([np.linalg.pinv(missing).T, np.zeros_like(missing)])
        ahead = 2 * np.sum([inverse[hole : hole + len(values), k] for k, hole in enumerate(holes)], axis=0)
        by_coefficient = _moved(ahead, impulse, response, right, left_slopes, right_slopes)
    basis, triangle = np.linalg.qr(np.column_stack([unknown, lfilter(left, right, filled)]))
    errors = basis[:, -1] * triangle[-1, -1]
    if holes.size:
        solved = solve_triangular(triangle[:-1, :-1], triangle[:-1, -1], check_finite=False)
        filled[holes] = -solved[-holes.size :]
    squares = max(float(errors @ errors), n * _PERFECT**2)
    by_coefficient += 2 * n / squares * _moved(errors, filled, errors, right, left_slopes, right_slopes)
    log = -(n * (np.log(2 * np.pi * squares / n) + 1) + determinant) / 2
    return _Likelihood(log, -_slopes(shares, form) @ by_coefficient / 2, squares / n)


def _moved(
    weights: Array, inputs: Array, outputs: Array, right: Array, left_slopes: Array, right_slopes: Array
) -> Array:
    """(4,): how `weights` @ `outputs` moves with alpha, beta, gamma and phi.

    `right` of the outputs is `left` of the inputs.
    """
    adjoint = lfilter([1.0], right, weights[::-1])[::-1]
    delays = np.zeros(right.size - 1)
    by_input, by_output = (
        np.correlate(np.append(delays, series), adjoint)[::-1] for series in (inputs, outputs)
    )
    moved: Array = left_slopes @ by_input - right_slopes @ by_output
    return moved


def _later(series: Array, steps: Iterable[int]) -> Array:
    """(time, steps): `series` (time,) that many steps later, with zeros before it."""
    columns = [np.append(np.zeros(k), series[: len(series) - k]) for k in steps]
    return np.stack(columns, axis=1)


def _with_few_holes(values: Array) -> Array:
    """The last rows of `values`, from a known one on, with no more holes than are solved for."""
    holes = np.isnan(values[::-1]).cumsum()[::-1]
    rows: Array = values[holes <= _MOST_HOLES]
    return rows[int(np.argmin(np.isnan(rows))) :]
