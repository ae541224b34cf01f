"""The likelihood of ARFIMA models, and its top.

One idea: whitening. A way to turn values of covariance `variance` * Omega into independent ones gives the
likelihood, with the mean by generalised least squares and the variance solved for. It is exact for up to
2,048 values (the Durbin-Levinson recursion on exact autocovariances; their Cholesky factor where there are
holes). Longer series have Whittle's, which needs the periodogram alone, and so have all with a season; those
with holes the Kalman filter's, exact but for the error of its 24 modes. Standard errors are of the observed
information: the curvature at the top.

Sources: Sowell (1992), Journal of Econometrics 53 (the exact likelihood); Fox and Taqqu (1986), Annals of
Statistics 14 (Whittle's).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

from fracts.autocovariance import arfima_autocovariance
from fracts.baselines.fractional import Process, fractional_space
from fracts.baselines.partial import coefficients
from fracts.records import record
from fracts.series import Panel

Array = NDArray[np.float64]

EXACT_ROWS = 2048  # the longest series without holes whose likelihood is exact
_EDGE = 0.4999  # of d, D and their sum
_LARGEST_PARTIAL = 0.98  # partial correlation of the short memory
_STEP = 1e-3  # of the differences that give the curvature
_SLOPE_STEP = 1e-4  # and the slopes
_STARTS = (0.0, 0.5, -0.5)  # of the first partial correlations
_MOST_TOPS = 2
_NEAR = 3.0  # log-likelihood below Whittle's top from which another top is tried


@record
@dataclass(frozen=True)
class Orders:
    """What is fitted: p and q, the steps in a season (1: none), and whether the mean is not zero."""

    p: int
    q: int
    season_length: int
    mean: bool

    @property
    def size(self) -> int:
        """Number of parameters but for mean and variance."""
        return self.p + self.q + 1 + (self.season_length > 1)


@record
@dataclass(frozen=True)
class Estimate:
    """A fitted process.

    Parameters
    ----------
    process : its parameters.
    mean, variance : of the process, in units of the series; variance of the errors, in squared units.
    log_likelihood : at the top, in natural logarithm.
    covariance : (size, size) of d, (D,) ar, ma.
    n_values : that it was learned from.
    exact : whether the likelihood is exact.
    converged : whether the top is one.
    curved : whether the curvature gave the covariance; the large-sample formula did where it is not.
    """

    process: Process
    mean: float
    variance: float
    log_likelihood: float
    covariance: Array
    n_values: int
    exact: bool
    converged: bool
    curved: bool

    def scaled(self, scale: float) -> Estimate:
        """The estimate for the series times `scale`."""
        log_likelihood = self.log_likelihood - self.n_values * float(np.log(scale))
        mean, variance = self.mean * scale, self.variance * scale**2
        return replace(self, mean=mean, variance=variance, log_likelihood=log_likelihood)


def estimate(values: Array, orders: Orders) -> Estimate:
    """The most likely process for `values` (time,), which vary, NaN for holes but at both ends."""
    likelihood, exact = _likelihood(values, orders)
    objective = _objective(lambda process: likelihood(process)[0], orders, len(values))
    tops = [_top(objective, start.at, start.bend) for start in _starting_points(values, orders)]
    top = min(tops, key=lambda top: top.height)
    process = _process(top.at, orders)
    log_likelihood, mean, variance = likelihood(process)
    covariance, curved = _covariance(likelihood, process, orders, len(values))
    n_values = int(np.count_nonzero(~np.isnan(values)))
    return Estimate(process, mean, variance, log_likelihood, covariance, n_values, exact, top.sharp, curved)


Likelihood = Callable[[Process], tuple[float, float, float]]  # log-likelihood, mean, variance


def _likelihood(values: Array, orders: Orders) -> tuple[Likelihood, bool]:
    """The likelihood that fits the length and the holes of `values`, and whether it is exact."""
    holes = bool(np.isnan(values).any())
    long = np.count_nonzero(~np.isnan(values)) > EXACT_ROWS
    if orders.season_length > 1 or (long and not holes):
        return whittle(values, orders), False
    columns = np.column_stack([values, np.ones(len(values))])
    whiten = by_prediction if not holes else by_filter if long else by_factor

    def profile(process: Process) -> tuple[float, float, float]:
        white, log_determinant = whiten(process, columns)
        return _profile(white, log_determinant, orders.mean)

    return profile, not long


def _profile(white: Array, log_determinant: float, has_mean: bool) -> tuple[float, float, float]:
    """Log-likelihood, mean and variance from whitened values and ones (time, 2)."""
    values, ones = white.T
    mean = float(values @ ones / (ones @ ones)) if has_mean else 0.0
    variance = float(np.mean((values - mean * ones) ** 2))
    n = len(white)
    return -(n * (np.log(2 * np.pi * variance) + 1) + log_determinant) / 2, mean, variance


def by_prediction(process: Process, columns: Array) -> tuple[Array, float]:
    """`columns` (time, k) made white by the Durbin-Levinson recursion, and log det of their covariance."""
    n = len(columns)
    covariance = arfima_autocovariance(n, process.d, ar=process.ar.tolist(), ma=process.ma.tolist())
    white, variances = np.empty_like(columns), np.empty(n)
    backwards = covariance[::-1].copy()
    past = columns[::-1].T.copy()  # (k, time), so that the past of a row, latest first, is a slice
    weights = np.empty(n)
    variance = covariance[0]
    white[0], variances[0] = columns[0], variance
    for t in range(1, n):
        known = weights[: t - 1]
        partial = (covariance[t] - known @ backwards[n - t : n - 1]) / variance
        known -= partial * known[::-1]
        weights[t - 1] = partial
        variance *= 1 - partial**2
        white[t] = columns[t] - past[:, n - t :] @ weights[:t]
        variances[t] = variance
    return white / np.sqrt(variances)[:, None], float(np.log(variances).sum())


def by_factor(process: Process, columns: Array) -> tuple[Array, float]:
    """As `by_prediction` with holes (rows of NaN in the first column) left out."""
    rows = np.flatnonzero(~np.isnan(columns[:, 0]))
    covariance = arfima_autocovariance(
        len(columns), process.d, ar=process.ar.tolist(), ma=process.ma.tolist()
    )
    factor = cholesky(covariance[np.abs(rows[:, None] - rows)], lower=True, overwrite_a=True)
    white = solve_triangular(factor, columns[rows], lower=True)
    return white, 2 * float(np.log(np.diag(factor)).sum())


def by_filter(process: Process, columns: Array) -> tuple[Array, float]:
    """As `by_factor`, on the modes."""
    space = fractional_space(process, 1.0, 0).known_start().take(np.zeros(columns.shape[1], dtype=np.int64))
    holes = np.isnan(columns[:, 0])
    panel = Panel(np.where(holes, np.nan, columns.T), np.arange(float(len(columns))))
    _, errors, variances = space.filter(space.empty(), panel)
    white = errors / np.sqrt(variances)
    return white[:, ~holes].T, float(np.log(variances[0, ~holes]).sum())


def whittle(values: Array, orders: Orders) -> Likelihood:
    """Whittle's likelihood at the Fourier frequencies where the spectrum is finite; holes are the mean."""
    known = ~np.isnan(values)
    n = int(known.sum())
    mean = float(values[known].mean()) if orders.mean else 0.0
    power = np.abs(np.fft.rfft(np.where(known, values - mean, 0.0))) ** 2 / n
    angle: Array = np.asarray(2 * np.pi * np.fft.rfftfreq(len(values)), dtype=np.float64)
    used = np.abs(np.sin(orders.season_length * angle / 2)) > 1e-9
    power, angle = power[used], angle[used]
    share = np.where(angle < np.pi, 2.0, 1.0)  # both signs of a frequency, but at half a turn
    share *= n / share.sum()

    def likelihood(process: Process) -> tuple[float, float, float]:
        shape = np.abs(process.transfer(angle)) ** 2
        variance = float(share @ (power / shape)) / n
        determinant = float(share @ np.log(shape))
        return -(n * (np.log(2 * np.pi * variance) + 1) + determinant) / 2, mean, variance

    return likelihood


def _objective(
    log_likelihood: Callable[[Process], float], orders: Orders, n: int
) -> Callable[[Array], float]:
    """Minus the log-likelihood of a value, as a function of numbers without bounds."""
    return lambda raw: -log_likelihood(_process(raw, orders)) / n


class _Top(NamedTuple):
    """A minimum: where, how low, the inverse of the curvature there, and whether the slope is level."""

    at: Array
    height: float
    bend: Array
    sharp: bool


def _top(objective: Callable[[Array], float], start: Array, bend: Array | None = None) -> _Top:
    def slopes(raw: Array) -> Array:
        steps = _SLOPE_STEP * np.eye(raw.size)
        return np.array([objective(raw + one) - objective(raw - one) for one in steps]) / (2 * _SLOPE_STEP)

    options: Any = {"gtol": 1e-5} if bend is None else {"gtol": 1e-5, "hess_inv0": (bend + bend.T) / 2}
    found = minimize(objective, start, jac=slopes, method="BFGS", options=options)
    return _Top(found.x, float(found.fun), np.asarray(found.hess_inv), bool(np.abs(found.jac).max() < 1e-4))


def _starting_points(values: Array, orders: Orders) -> list[_Top]:
    """Tops of Whittle's likelihood from several starts, the best first, those far below it left out."""
    likelihood = whittle(values, orders)
    objective = _objective(lambda process: likelihood(process)[0], orders, len(values))
    memory = [0.3] * (orders.size - orders.p - orders.q)
    starts = {(ar * (orders.p > 0), ma * (orders.q > 0)) for ar in _STARTS for ma in _STARTS}
    tops = []
    for ar, ma in sorted(starts):
        short = np.zeros(orders.p + orders.q)
        short[: orders.p][:1], short[orders.p :][:1] = np.arctanh(ar), np.arctanh(ma)
        tops.append(_top(objective, np.concatenate([memory, short])))
    tops.sort(key=lambda top: top.height)
    chosen = tops[:1]
    for top in tops[1:]:
        apart = min(np.abs(np.tanh(top.at) - np.tanh(other.at)).max() for other in chosen)
        near = (top.height - tops[0].height) * len(values) < _NEAR
        if near and apart > 0.02 and len(chosen) < _MOST_TOPS:
            chosen.append(top)
    return chosen


def _process(raw: Array, orders: Orders) -> Process:
    """Bounded parameters from numbers without bounds: of D and d first, then of partial correlations."""
    bounded = np.tanh(raw)
    seasonal_d = _EDGE * bounded[1] if orders.season_length > 1 else 0.0
    highest = _EDGE - max(seasonal_d, 0.0)
    d = -_EDGE + (highest + _EDGE) * (bounded[0] + 1) / 2
    partial = _LARGEST_PARTIAL * bounded[orders.size - orders.p - orders.q :]
    ar, ma = coefficients(partial[: orders.p]), -coefficients(partial[orders.p :])
    return Process(float(d), float(seasonal_d), orders.season_length, ar, ma)


def _natural(process: Process, orders: Orders) -> Array:
    memory = [process.d, process.seasonal_d][: orders.size - orders.p - orders.q]
    return np.concatenate([memory, process.ar, process.ma])


def _of_natural(parameters: Array, orders: Orders) -> Process:
    short = orders.size - orders.p - orders.q
    seasonal_d = float(parameters[1]) if orders.season_length > 1 else 0.0
    ar, ma = parameters[short : short + orders.p], parameters[short + orders.p :]
    return Process(float(parameters[0]), seasonal_d, orders.season_length, ar, ma)


def _covariance(likelihood: Likelihood, process: Process, orders: Orders, n: int) -> tuple[Array, bool]:
    """Inverse of the observed information at `process`, or of the expected one where that is none."""
    at = _natural(process, orders)
    covariance: Array
    try:
        information = -_curvature(lambda x: likelihood(_of_natural(x, orders))[0], at)
        np.linalg.cholesky(information)
    except (ValueError, np.linalg.LinAlgError):  # a neighbour is no process; the top is at an edge
        covariance = np.asarray(np.linalg.pinv(_expected_information(at, orders, n)), dtype=np.float64)
        return covariance, False
    covariance = np.asarray(np.linalg.inv(information), dtype=np.float64)
    return covariance, True


def _curvature(function: Callable[[Array], float], at: Array) -> Array:
    """Second derivatives of `function` by central differences."""
    steps = _STEP * np.eye(at.size)
    middle = function(at)
    curvature = np.empty((at.size, at.size))
    for i, one in enumerate(steps):
        curvature[i, i] = (function(at + one) - 2 * middle + function(at - one)) / _STEP**2
        for j, two in enumerate(steps[:i]):
            corners = function(at + one + two) - function(at + one - two)
            corners += function(at - one - two) - function(at - one + two)
            curvature[i, j] = curvature[j, i] = corners / (4 * _STEP**2)
    return curvature


def _expected_information(at: Array, orders: Orders, n: int) -> Array:
    """Whittle's: n / 2 times the mean product of the derivatives of the log spectrum."""
    angle = 2 * np.pi * (np.arange(4096) + 0.5) / 8192
    slopes = []
    for one in 1e-5 * np.eye(at.size):
        up, down = (np.abs(_of_natural(x, orders).transfer(angle)) for x in (at + one, at - one))
        slopes.append(2 * (np.log(up) - np.log(down)) / 2e-5)
    information: Array = n / 2 * np.cov(slopes, bias=True).reshape(at.size, at.size)
    return information
