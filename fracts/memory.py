"""The theory of fractional memory: its kernels and their approximation by a few exponentials.

A kernel that forgets as a power of time is a mixture of exponentials (the diffusive representation), and a
few modes on a geometric grid of timescales replace it, with an error that falls geometrically in their
number. Every fit here minimises the largest relative error with positive weights.

Sources: Gorenflo, Kilbas, Mainardi, Rogosin (2014), Mittag-Leffler Functions (the functions and their
spectral densities); Weideman, Trefethen (2007), Math. Comp. 76 (the contour); Beylkin, Monzon (2010), Appl.
Comput. Harmon. Anal. 28 (power laws as sums of exponentials).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import exprel, gamma, hyp1f1, rgamma

from fracts.exponents import MemoryEstimate as MemoryEstimate
from fracts.exponents import exact_local_whittle as exact_local_whittle
from fracts.exponents import gph_exponent as gph_exponent
from fracts.exponents import local_whittle as local_whittle
from fracts.positive_fit import positive_fit

Array = NDArray[np.float64]

# Where the grid ends, by modes per e-fold of time (M = 8, 12, 16, 20, 24, 32 on 1..131072): the fastest mode
# in units of the shortest time, the slowest in units of the longest.
_DENSITIES = (0.51, 0.85, 1.19, 1.53, 1.87, 2.55)
_FASTEST = (0.5, 0.5, 0.3, 0.2, 0.15, 0.1)
_SLOWEST = (1.5, 1.5, 1.5, 2.0, 2.5, 3.0)


@dataclass(frozen=True)
class Modes:
    """The kernel `feedthrough * delta(t) + sum_m weights_m exp(-t / timescales_m)`.

    `timescales` and `weights` have shape (mode,), fastest mode first; an infinite timescale never decays.
    Times are in the units of the timescales; each method maps any shape of `t` to the same shape.

    Examples
    --------
    >>> Modes(np.array([2.0]), np.array([3.0])).step(np.array([0.0, 1e6]))
    array([0., 6.])
    """

    timescales: Array
    weights: Array
    feedthrough: float = 0.0

    def kernel(self, t: ArrayLike) -> Array:
        """Response at `t > 0` to a unit impulse at 0."""
        return np.asarray(np.exp(-_age(t, self.timescales)) @ self.weights)

    def step(self, t: ArrayLike) -> Array:
        """Response to an input of 1 from time 0 on: the integral of the kernel."""
        times = np.asarray(t, dtype=np.float64)
        return np.asarray(self.feedthrough + times * (exprel(-_age(times, self.timescales)) @ self.weights))

    def ramp(self, t: ArrayLike) -> Array:
        """Response to the input `t` from time 0 on: the integral of `step`."""
        times = np.asarray(t, dtype=np.float64)
        bent = _half_square(_age(times, self.timescales)) @ self.weights
        return np.asarray(self.feedthrough * times + times**2 * bent)


def _age(t: ArrayLike, timescales: Array) -> Array:
    """Time in units of each timescale: (..., mode)."""
    return np.asarray(t, dtype=np.float64)[..., None] / timescales


def _half_square(x: Array) -> Array:
    """`(exp(-x) - 1 + x) / x^2`, without its cancellation at small x; 1/2 at 0."""
    return np.asarray(hyp1f1(1, 3, -x) / 2)


def mittag_leffler(z: ArrayLike, alpha: float, beta: float = 1.0) -> Array:
    """Mittag-Leffler function `E_{alpha,beta}(z) = sum_k z^k / Gamma(alpha k + beta)` of real `z <= 0`.

    Raises ValueError for arguments out of range.

    Parameters
    ----------
    z : any shape, real and not positive.
    alpha, beta : 0 < alpha <= 1 and alpha <= beta.

    Returns
    -------
    Shape of `z`. Relative accuracy is about 1e-12 for beta up to 4 and alpha up to .99; nearer to 1 fewer
    digits are kept far out (ten at alpha = .9999, beta = 1). exp(z) at alpha = beta = 1.

    Notes
    -----
    The inverse Laplace transform of `s^(alpha-beta) / (s^alpha - z)` at time 1, by the trapezoid on a
    parabola around the negative axis, where it has its cut and no poles. Far out the leading term in 1/z is
    exact, `E_{a,b}(z) = (E_{a,b-a}(z) - 1/Gamma(b-a)) / z`, so that beta = alpha loses no digits.

    Examples
    --------
    >>> mittag_leffler([0.0, -1.0], 1.0)
    array([1. , 0.36787944])
    """
    x = -np.asarray(z, dtype=np.float64)
    if not np.all(x >= 0):
        raise ValueError(f"z must be real and not positive, got {np.asarray(z)}. Pass -rate * t**alpha.")
    _check_order("alpha", alpha)
    if not alpha <= beta < np.inf:
        raise ValueError(f"beta must be a number not below alpha = {alpha}, got {beta}.")
    if alpha == beta == 1:
        return np.exp(-x)
    far = x > 1
    value = _inverse_laplace(np.where(far, np.inf, x), alpha, beta)
    value[far] = (rgamma(beta - alpha) - _inverse_laplace(x[far], alpha, beta - alpha)) / x[far]
    return value


def _inverse_laplace(x: Array, alpha: float, beta: float) -> Array:
    """Inverse transform of `s^(alpha-beta) / (s^alpha + x)` at time 1, by 20 conjugate pairs of nodes."""
    n_nodes = 20
    turn = 1 + 1j * (np.arange(n_nodes) + 0.5) * 3 / n_nodes
    nodes = np.pi * n_nodes / 12 * turn**2
    factors = 0.5 * np.exp(nodes) * nodes ** (alpha - beta) * turn
    total = np.zeros_like(x)
    for node, factor in zip(nodes, factors, strict=True):
        total += (factor / (node**alpha + x)).real
    return total


def relaxation_density(rates: ArrayLike, order: float, rate: float) -> Array:
    """Density of decay rates in the relaxation: `E_a(-rate t^a) = int exp(-r t) relaxation_density(r) dr`.

    Raises ValueError for arguments out of range.

    Parameters
    ----------
    rates : any shape, positive, per unit of time.
    order : a, in (0, 1). At 1 the mixture is the single rate `rate` and has no density.
    rate : positive, per unit of time to the power a.

    Examples
    --------
    >>> relaxation_density([1.0], 0.5, 1.0)  # 1 / (2 pi)
    array([0.15915494])
    """
    return rate * response_density(rates, order, rate) / np.asarray(rates, dtype=np.float64)


def response_density(rates: ArrayLike, order: float, rate: float) -> Array:
    """Density of decay rates in the answer to an impulse, `t^(a-1) E_{a,a}(-rate t^a)`.

    It is `int exp(-r t) response_density(r) dr`. Parameters and errors as in `relaxation_density`.

    Examples
    --------
    >>> response_density([1.0], 0.5, 1.0)
    array([0.15915494])
    """
    r = np.asarray(rates, dtype=np.float64)
    if not np.all(r > 0):
        raise ValueError(f"rates must be positive, got {r}.")
    _check_order("order", order)
    _check_positive("rate", rate)
    if order == 1:
        raise ValueError("order = 1 is one exponential, exp(-rate t), and has no density. Give one below 1.")
    power = r**order
    # Squares: the textbook form r^2a + 2 rate r^a cos(pi a) + rate^2 cancels at its minimum when a is near 1.
    resonance = (power - rate) ** 2 + 4 * rate * power * np.cos(np.pi * order / 2) ** 2
    return np.asarray(np.sin(np.pi * order) / np.pi * power / resonance)


def mode_timescales(shortest: float, longest: float, n_modes: int) -> Array:
    """Timescales that serve memories from `shortest` to `longest`: a geometric grid and a last, infinite one.

    The grid reaches past both ends, the further the denser it is; the infinite timescale (the tail mode, a
    plain accumulator) stands for all that is slower. Shape (n_modes,), in the units of both ends.

    Raises ValueError unless 0 < shortest < longest < inf and `n_modes` is an integer of at least 2.

    Examples
    --------
    >>> mode_timescales(1.0, 1000.0, 4)
    array([5.00000000e-01, 2.73861279e+01, 1.50000000e+03, inf])
    """
    _check_horizon(shortest, longest)
    if n_modes != int(n_modes) or n_modes < 2:
        raise ValueError(f"n_modes must be an integer of at least 2 (one and the tail mode), got {n_modes}.")
    density = (n_modes - 2) / np.log(longest / shortest)
    fastest = shortest * np.interp(density, _DENSITIES, _FASTEST)
    slowest = longest * np.interp(density, _DENSITIES, _SLOWEST)
    finite = np.geomspace(fastest, slowest, int(n_modes) - 1) if n_modes > 2 else [np.sqrt(fastest * slowest)]
    return np.append(finite, np.inf)


def power_law_modes(exponent: float, horizon: float, n_modes: int) -> Modes:
    """Modes whose kernel is `t^-exponent` for real `t` in [1, horizon], weights positive.

    Raises ValueError for arguments out of range.

    Parameters
    ----------
    exponent : in (0, 2].
    horizon : the longest time, above 1. At twice that the kernel is still good to about 2 %.
    n_modes : at least 2, the tail mode included.

    Examples
    --------
    >>> power_law_modes(0.5, horizon=1000, n_modes=16).kernel([1.0, 25.0, 900.0]).round(4)
    array([1. , 0.2 , 0.0333])
    """
    timescales = mode_timescales(1.0, horizon, n_modes)
    return Modes(timescales, power_law_weights(timescales, exponent, 1.0, horizon))


def power_law_weights(timescales: Array, exponent: float, shortest: float, longest: float) -> Array:
    """Positive weights of given modes for the kernel `t^-exponent` on real `t` in [shortest, longest].

    Shape (mode,), smooth in `exponent`, so that a table in its logarithm can be interpolated. Raises
    ValueError for arguments out of range.

    Parameters
    ----------
    timescales : (mode,), increasing, the last one infinite, as `mode_timescales` makes them.
    exponent : in (0, 2].

    Examples
    --------
    >>> grid = mode_timescales(10.0, 1e4, 16)
    >>> Modes(grid, power_law_weights(grid, 0.5, 10.0, 1e4)).kernel(100.0).round(4).item()
    0.1
    """
    if not 0 < exponent <= 2:
        raise ValueError(f"exponent must be in (0, 2], got {exponent}.")
    _check_horizon(shortest, longest)
    finite = timescales[:-1]
    if len(finite) < 1 or timescales[-1] != np.inf or finite[0] <= 0 or np.any(np.diff(timescales) <= 0):
        raise ValueError(
            f"timescales must be positive, increasing and end in infinity, got {timescales}. "
            "Make them with `mode_timescales`."
        )
    t = _log_spaced(shortest, longest, len(timescales))
    guess = _spectral_weights(timescales, finite ** (1 - exponent) / gamma(exponent), exponent)
    return positive_fit(np.exp(-_age(t, timescales)), t**-exponent, guess)


def relaxation_modes(
    order: float,
    rate: float,
    horizon: float,
    n_modes: int,
    kernel: Literal["response", "relaxation"] = "response",
) -> Modes:
    """Modes of the Caputo equation `D^order x = -rate x + u` on real `t` in [1, horizon], weights positive.

    Raises ValueError for arguments out of range, and for another `kernel`.

    Parameters
    ----------
    order : a, in (0, 1]. At 1 the result is the one mode of timescale 1 / rate, whatever `n_modes`.
    rate : positive, per unit of time to the power a.
    horizon : the longest time, above 1.
    n_modes : at least 2, the tail mode included.
    kernel : "response" is the answer to the input u, `t^(a-1) E_{a,a}(-rate t^a)`, fitted to its step and
        ramp responses together; what is faster than the fastest mode is its feedthrough. "relaxation" is the
        decay of a start value, `E_a(-rate t^a)`, fitted itself.

    Examples
    --------
    >>> modes = relaxation_modes(0.5, rate=0.3, horizon=1000, n_modes=16)
    >>> bool(np.isclose(modes.step(25.0), 5 * mittag_leffler(-1.5, 0.5, 1.5), rtol=1e-4))
    True
    """
    _check_order("order", order)
    _check_positive("rate", rate)
    if kernel not in ("response", "relaxation"):
        raise ValueError(f"kernel must be 'response' or 'relaxation', got {kernel!r}.")
    grid = mode_timescales(1.0, horizon, n_modes)
    if order == 1:
        return Modes(np.array([1 / rate]), np.ones(1))
    timescales = _with_resonance(grid, order, rate)
    t = _log_spaced(1.0, horizon, n_modes)
    if kernel == "response":
        return _response_modes(order, rate, t, timescales)
    guess = _spectral_weights(timescales, relaxation_density(1 / timescales[:-1], order, rate), order)
    target = mittag_leffler(-rate * t**order, order)
    # No mode outweighs the start value, which the trapezoid forgets where the density has a peak.
    return Modes(timescales, positive_fit(np.exp(-_age(t, timescales)), target, np.minimum(guess, 1.0)))


def _with_resonance(timescales: Array, order: float, rate: float) -> Array:
    """The grid with its nearest mode moved onto the peak of the spectral density, at `rate^(-1/order)`.

    Near order 1 the peak is narrower than the grid's spacing, and in the limit it is all there is.
    """
    finite, peak = timescales[:-1], rate ** (-1 / order)
    if order < 0.8 or len(finite) < 3 or not finite[0] / 4 < peak < finite[-1]:
        return timescales
    if peak <= finite[0]:
        return np.append(np.geomspace(peak, finite[-1], len(finite)), np.inf)
    place = int(np.clip(np.argmin(np.abs(np.log(finite / peak))), 1, len(finite) - 2))
    faster = np.geomspace(finite[0], peak, place + 1)
    slower = np.geomspace(peak, finite[-1], len(finite) - place)
    return np.concatenate([faster, slower[1:], [np.inf]])


def _response_modes(order: float, rate: float, t: Array, timescales: Array) -> Modes:
    """Weights and feedthrough fitted to the step and the ramp response at the times `t`."""
    z = -rate * t**order
    step = t**order * mittag_leffler(z, order, order + 1)
    ramp = t ** (order + 1) * mittag_leffler(z, order, order + 2)
    density = response_density(1 / timescales[:-1], order, rate)
    guess = np.append(_spectral_weights(timescales, density, order + 1), density[0] / order)
    # No mode has more than the steady gain of the whole, 1 / rate; the tail mode has none to compare.
    guess = np.minimum(guess, np.concatenate([1 / timescales[:-1], [np.inf, 1.0]]) / rate)
    age = _age(t, timescales)
    steps = np.column_stack([t[:, None] * exprel(-age), np.ones_like(t)])
    ramps = np.column_stack([t[:, None] ** 2 * _half_square(age), t])
    weights = positive_fit(np.vstack([steps, ramps]), np.append(step, ramp), guess)
    return Modes(timescales, weights[:-1], float(weights[-1]))


def approximation_error(
    approximate: Callable[[Array], Array],
    exact: Callable[[Array], Array],
    horizon: float,
    n_times: int = 10_000,
) -> float:
    """Largest relative error of `approximate` to `exact` on `n_times` log-spaced real times in [1, horizon].

    Raises ValueError unless 1 < horizon < inf.

    Examples
    --------
    >>> modes = power_law_modes(0.5, horizon=131072, n_modes=16)
    >>> approximation_error(modes.kernel, lambda t: t**-0.5, 131072) < 1e-4
    True
    """
    _check_horizon(1.0, horizon)
    t = np.geomspace(1.0, horizon, n_times)
    return float(np.max(np.abs(approximate(t) / exact(t) - 1)))


def _log_spaced(shortest: float, longest: float, n_modes: int) -> Array:
    """Times of a fit: enough between two modes to see every swing of the error."""
    return np.geomspace(shortest, longest, max(200, 8 * n_modes))


def _spectral_weights(timescales: Array, density: Array, slow_power: float) -> Array:
    """Weights by the trapezoid in log rate of a density that is about `rate^(slow_power - 1)` for slow modes.

    `density` is given at the finite modes; the tail mode gets the integral of all that is slower.
    """
    rates = 1 / timescales[:-1]
    spacing = -np.gradient(np.log(rates)) if len(rates) > 1 else np.ones(1)
    tail = density[-1] * rates[-1] * np.exp(-slow_power * spacing[-1] / 2) / slow_power
    return np.append(density * rates * spacing, tail)


def _check_order(name: str, order: float) -> None:
    if not 0 < order <= 1:
        raise ValueError(f"{name} must be in (0, 1], got {order}.")


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < np.inf:
        raise ValueError(f"{name} must be a positive finite number, got {value}.")


def _check_horizon(shortest: float, longest: float) -> None:
    if not 0 < shortest < longest < np.inf:
        raise ValueError(
            f"times must satisfy 0 < shortest < longest, got shortest = {shortest}, longest = {longest}."
        )
