"""Seasonal ARIMA models of unknown order: a search by conditional sums of squares, the likelihood at the end.

    ar(B) AR(B^s) (1 - B)^d (1 - B^s)^D y = constant + ma(B) MA(B^s) e

The orders of differencing come from a test of stationarity and from the strength of the season, the others
from a walk to the neighbour of the least AICc. Each model on the way is fitted by the sum of its squared
errors with zeros before the start, a filter that takes microseconds; the best few are then fitted by their
exact likelihood in statsmodels, and the least AICc wins.

Source: Hyndman and Khandakar (2008), Journal of Statistical Software 27(3).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.signal import lfilter

from fracts.baselines.partial import coefficients
from fracts.baselines.profile import without_holes
from fracts.baselines.statespace import StateSpace
from fracts.records import record

Array = NDArray[np.float64]

_MOST = (5, 5, 2, 2)  # p, q, P, Q
_MOST_TOGETHER = 5
_STRONG_SEASON = 0.64  # strength from which a seasonal difference is taken
_STATIONARY = 0.05  # level of the KPSS test
_FINALISTS = 3  # fitted by exact likelihood; of series longer than `_LONG` values one
_LONG = 150
_PERFECT = 1e-10  # error of a perfect fit, in units of the spread of the series
_STEADY = 1e-10  # change of the filter's variances from which they stay
_PRECISION = 1e9  # of the likelihood, in units of rounding
_MOST_MODELS = 94
_DOUBLINGS = 60  # of the steps that a covariance is summed over


@record
@dataclass(frozen=True)
class Order:
    """p, d, q and P, D, Q of a season of `season_length` steps (1: none), and whether there is a constant."""

    p: int
    d: int
    q: int
    P: int
    D: int
    Q: int
    season_length: int
    constant: bool

    @property
    def size(self) -> int:
        """Number of parameters but for the variance."""
        return self.p + self.q + self.P + self.Q + self.constant

    def __str__(self) -> str:
        season = f"({self.P},{self.D},{self.Q})[{self.season_length}]" if self.season_length > 1 else ""
        return f"ARIMA({self.p},{self.d},{self.q}){season}" + (" with constant" if self.constant else "")


@record
@dataclass(frozen=True)
class ArimaFit:
    """A fitted model: its order, parameters by name, log-likelihood, AICc, whether the optimiser ended."""

    order: Order
    parameters: dict[str, float]
    log_likelihood: float
    aicc: float
    converged: bool


def differenced(values: Array, order: Order) -> Array:
    """`values` (time,) with the differences of `order` taken."""
    for _ in range(order.D):
        values = values[order.season_length :] - values[: -order.season_length]
    return np.diff(values, order.d)


def seasonal_differences(values: Array, season_length: int) -> int:
    """1 where the season is strong (Wang, Smith and Hyndman, 2006), else 0."""
    from statsmodels.tsa.seasonal import STL

    if season_length == 1 or len(values) < 2 * season_length + 1:
        return 0
    parts = STL(without_holes(values), period=season_length, seasonal=11).fit()
    rest = np.asarray(parts.resid)
    both = float(np.var(rest + np.asarray(parts.seasonal)))
    return int(both > 0 and 1 - float(np.var(rest)) / both > _STRONG_SEASON)


def plain_differences(values: Array) -> int:
    """Differences, at most 2, until the KPSS test does not reject a stationary series."""
    from statsmodels.tsa.stattools import kpss

    for d in range(2):
        if len(values) < 10 or np.ptp(values) == 0:
            return d
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the p-value lies beyond its table
            if kpss(values, regression="c", nlags=int(3 * np.sqrt(len(values)) / 13))[1] >= _STATIONARY:
                return d
        values = np.diff(values)
    return 2


def search(values: Array, start: Order, fixed: frozenset[str]) -> list[Order]:
    """The best orders by conditional sums of squares, best first, the names in `fixed` left as in `start`."""
    series = differenced(without_holes(values), start)
    scores: dict[Order, float] = {}

    def score(order: Order) -> float:
        if order not in scores:
            scores[order] = _conditional_aicc(series, order)
        return scores[order]

    def limited(**changes: Any) -> Order:
        free = {name: value for name, value in changes.items() if name not in fixed}
        if start.season_length == 1:
            free |= {"P": 0, "Q": 0}
        return replace(start, **free)

    seeds = [(2, 2, 1, 1), (0, 0, 0, 0), (1, 0, 1, 0), (0, 1, 0, 1)]
    best = min((limited(p=p, q=q, P=P, Q=Q) for p, q, P, Q in seeds), key=score)
    while len(scores) < _MOST_MODELS:
        nearest = min(_neighbours(best, fixed), key=score, default=best)
        if score(nearest) >= score(best):
            break
        best = nearest
    return sorted(scores, key=score)[: _FINALISTS if len(values) <= _LONG else 1]


def _neighbours(order: Order, fixed: frozenset[str]) -> list[Order]:
    """Orders one step away: a coefficient more or less, of one kind or of two, or the constant."""
    steps = [
        (1, 0, 0, 0),
        (0, 1, 0, 0),
        (0, 0, 1, 0),
        (0, 0, 0, 1),
        (1, 1, 0, 0),
        (0, 0, 1, 1),
        (1, -1, 0, 0),
    ]
    names = ("p", "q", "P", "Q")
    found = [] if "constant" in fixed else [replace(order, constant=not order.constant)]
    for step in steps:
        for sign in (1, -1):
            now = [getattr(order, name) + sign * move for name, move in zip(names, step, strict=True)]
            allowed = all(0 <= n <= most for n, most in zip(now, _MOST, strict=True))
            moved = {name for name, move in zip(names, step, strict=True) if move}
            seasonal = moved & {"P", "Q"} and order.season_length == 1
            if allowed and sum(now) <= _MOST_TOGETHER and not moved & fixed and not seasonal:
                found.append(replace(order, **dict(zip(names, now, strict=True))))
    return found


def _conditional_aicc(series: Array, order: Order) -> float:
    """AICc of the least sum of squared errors of the differenced `series`, infinite for too few values."""
    n, count = len(series), order.size + 1
    if n - count - 1 <= 0:
        return np.inf
    centred = series - series.mean() * order.constant
    found = _least_squares(centred, order)
    variance = max(_squares(found, centred, order) / n, np.finfo(float).tiny)
    return float(n * np.log(variance) + 2 * count + 2 * count * (count + 1) / (n - count - 1))


def _least_squares(series: Array, order: Order) -> Array:
    """Unbounded parameters of the least sum of squares."""
    size = order.size - order.constant
    if size == 0:
        return np.zeros(0)
    scale = float(series @ series) or 1.0

    def height(raw: Any) -> float:
        return float(np.log(_squares(raw, series, order) / scale + 1e-300))

    options: Any = {"gtol": 1e-4, "maxiter": 50}
    return np.asarray(minimize(height, np.full(size, 0.1), method="BFGS", options=options).x)


def _squares(raw: Array, series: Array, order: Order) -> float:
    left, right = _polynomials(raw, order)
    errors = lfilter(left, right, series)
    return float(errors @ errors)


def _polynomials(raw: Array, order: Order) -> tuple[Array, Array]:
    """Polynomials in the step back that multiply the series and the errors."""
    ar, ma, seasonal_ar, seasonal_ma = _split(raw, order)
    gap = order.season_length
    left = np.convolve(np.append(1.0, -coefficients(ar)), _spread(-coefficients(seasonal_ar), gap))
    right = np.convolve(np.append(1.0, -coefficients(ma)), _spread(-coefficients(seasonal_ma), gap))
    return left, right


def _split(raw: Array, order: Order) -> list[Array]:
    return np.split(np.tanh(raw), np.cumsum([order.p, order.q, order.P]))


def _spread(weights: Array, gap: int) -> Array:
    """1 and `weights` as a polynomial in the season back."""
    polynomial = np.zeros(gap * weights.size + 1)
    polynomial[0], polynomial[gap::gap] = 1.0, weights
    return polynomial


def likeliest(values: Array, order: Order) -> tuple[ArimaFit, StateSpace]:
    """The model of the greatest exact likelihood, by statsmodels, and its machine; holes stay holes."""
    scale = float(np.nanstd(values)) or 1.0
    model = _unfitted(values / scale, order, simple_differencing=not np.isnan(values).any())
    start = _start(without_holes(values) / scale, order)
    found = model.fit(start, method="lbfgs", maxiter=100, factr=_PRECISION, disp=0)
    log_likelihood, n = float(found.llf), int(found.nobs_effective)
    ended = found.mle_retvals["warnflag"] != 1
    return _with_machine(values, order, found.params, log_likelihood, n, converged=ended)


def perfect(values: Array, order: Order) -> tuple[ArimaFit, StateSpace]:
    """The model of `values` (time,) whose differences are constant, and stay so without error."""
    series = differenced(without_holes(values), order)
    n, variance, parameters = len(series), _PERFECT**2, np.zeros(order.size + 1)
    parameters[0], parameters[-1] = series.mean() / np.nanstd(values) * order.constant, variance
    log_likelihood = -n * (np.log(2 * np.pi * variance) + 1) / 2
    return _with_machine(values, order, parameters, log_likelihood, n, converged=True)


def _with_machine(
    values: Array, order: Order, parameters: Array, log_likelihood: float, n: int, *, converged: bool
) -> tuple[ArimaFit, StateSpace]:
    """A fit of `values` in units of their spread, and its machine in their own."""
    scale, count = float(np.nanstd(values)) or 1.0, order.size + 1
    whole = _unfitted(values / scale, order)
    whole.update(parameters)
    log_likelihood -= n * float(np.log(scale))
    aicc = -2 * log_likelihood + 2 * count + 2 * count * (count + 1) / max(n - count - 1, 0.5)
    named = dict(zip(whole.param_names, map(float, parameters), strict=True))
    return ArimaFit(order, named, log_likelihood, aicc, converged), of_statsmodels(whole.ssm, scale)


def _unfitted(values: Array, order: Order, *, simple_differencing: bool = False) -> Any:
    """The model of statsmodels for `values`."""
    from statsmodels.tsa.statespace.sarimax import SARIMAX

    model = SARIMAX(
        values,
        order=(order.p, order.d, order.q),
        seasonal_order=(order.P, order.D, order.Q, order.season_length if order.season_length > 1 else 0),
        trend="c" if order.constant else "n",
        simple_differencing=simple_differencing,
        use_exact_diffuse=True,
    )
    model.tolerance = _STEADY
    return model


def _start(filled: Array, order: Order) -> Array:
    """Parameters of the least sum of squares, in the order of statsmodels."""
    series = differenced(filled, order)
    mean = series.mean() * order.constant
    raw = _least_squares(series - mean, order)
    ar, ma, seasonal_ar, seasonal_ma = (coefficients(part) for part in _split(raw, order))
    intercept = [mean * (1 - ar.sum()) * (1 - seasonal_ar.sum())] * order.constant
    variance = max(_squares(raw, series - mean, order) / len(series), 1e-12)
    return np.concatenate([intercept, ar, -ma, seasonal_ar, -seasonal_ma, [variance]])


def of_statsmodels(ssm: Any, scale: float) -> StateSpace:
    """A state space of statsmodels, its parameters set, as a machine of the series times `scale`."""
    size = ssm.k_states
    start, diffuse, _ = ssm.initialization(model=ssm)
    transition, gain = np.eye(size + 1), np.zeros((size + 1, size + 1))
    transition[:size, :size] = ssm["transition"]
    transition[:size, size] = np.atleast_2d(ssm["state_intercept"].T)[-1] * scale  # of every step, or once
    gain[:size, :size] = ssm["selection"] @ ssm["state_cov"] @ ssm["selection"].T
    variance = float(np.trace(gain)) or 1.0
    known, spread = np.flatnonzero(~diffuse.any(axis=1)), np.zeros((size, size))
    block = np.ix_(known, known)
    spread[block] = _stationary(transition[block], gain[block])
    return StateSpace(
        transition[None],
        np.append(ssm["design"][0], 0.0)[None],
        gain[None] / variance,
        np.zeros((1, size + 1)),
        ssm["obs_cov"][0] / variance,
        np.array([variance * scale**2]),
        np.append(start * scale, 1.0)[None],
        np.pad(spread, (0, 1))[None] / variance,
        np.pad(diffuse, (0, 1))[None],
    )


def _stationary(transition: Array, noise: Array) -> Array:
    """The covariance that stays: the sum of T^k noise T'^k, doubled at each turn.

    Near a unit root the equation solved as a linear one loses the digits that the filter needs: it differs
    there by what cancels between a season and the next.
    """
    spread, power = noise, transition
    for _ in range(_DOUBLINGS):
        more = power @ spread @ power.T
        if np.abs(more).max(initial=0.0) <= np.finfo(float).eps * np.abs(spread).max(initial=0.0):
            break
        spread, power = spread + more, power @ power
    return spread
