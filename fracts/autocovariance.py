"""Theoretical autocovariances of processes with long memory.

One idea: each is known exactly, so a simulation, an estimate or a forecast can be held against it. Lags run
from 0 to n - 1 and the innovations have variance 1 unless said otherwise (fractional Gaussian noise: the
series has).

Sources: fractional Gaussian noise, Mandelbrot and Van Ness (1968); ARFIMA, Hosking (1981); the product of a
fractional and an ARMA spectrum as a convolution of autocovariances ("splitting"), Bertelli and Caporin
(2002); Gegenbauer processes, Gray, Zhang and Woodward (1989).
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.signal import fftconvolve, lfilter
from scipy.special import gammaln

from fracts.process_checks import check_between, check_count, check_memory

FloatArray = NDArray[np.float64]

_LARGEST_ROOT = 0.9999


def fgn_autocovariance(n: int, hurst: float) -> FloatArray:
    """Autocovariance of fractional Gaussian noise of variance 1, shape (n,).

    Half the second difference of |k|^(2 H), written without the cancellation that costs the plain form
    half its digits at lag 100,000.

    Parameters
    ----------
    n : number of lags, at least 1.
    hurst : in (0, 1); 0.5 is white noise, above it is long memory.

    Raises
    ------
    TypeError : a count is no integer, another number none.
    ValueError : `hurst` outside (0, 1), or n below 1.

    Examples
    --------
    >>> fgn_autocovariance(3, 0.5).round(12) + 0.0
    array([1., 0., 0.])
    """
    n = check_count("n", n)
    power = 2 * check_between("hurst", hurst, 0, 1, "0.5 is white noise, above it is long memory.")
    lag = np.arange(2.0, max(n, 2))
    rise = power * np.arctanh(1 / lag)
    fall = power / 2 * np.log1p(-1 / lag**2)
    # (1 + x)^p + (1 - x)^p - 2 with x = 1 / lag, as the exponentials of fall + rise and fall - rise.
    tail = lag**power * (np.expm1(fall) * np.cosh(rise) + 2 * np.sinh(rise / 2) ** 2)
    return np.concatenate([[1.0, 2 ** (power - 1) - 1], tail])[:n]


def arfima_autocovariance(
    n: int, d: float, *, ar: Sequence[float] = (), ma: Sequence[float] = (), variance: float = 1.0
) -> FloatArray:
    """Autocovariance of ARFIMA(p, d, q) with the innovation variance given, shape (n,).

    Signs: (1 - ar[0] B - ...) (1 - B)^d x = (1 + ma[0] B + ...) e.

    Parameters
    ----------
    n : number of lags, at least 1.
    d : the memory, in (-0.5, 0.5).
    ar, ma : (p,) and (q,), coefficients of the short memory.
    variance : of the innovations, positive.

    Raises
    ------
    TypeError : a count is no integer, another number none.
    ValueError : d outside (-0.5, 0.5), `ar` not stationary, variance not positive, or n below 1.

    Examples
    --------
    >>> arfima_autocovariance(3, 0.0, ar=[0.5]).round(6)
    array([1.333333, 0.666667, 0.333333])
    """
    n, d = check_count("n", n), check_memory(d)
    variance = check_between("variance", variance, 0, np.inf, "Pass the variance of the innovations.")
    response = _arma_response(ar, ma)
    reach = response.size - 1
    short = fftconvolve(response, response[::-1])  # lags -reach .. reach
    long = _fractional_autocovariance(n + reach, d)
    both_sides = np.concatenate([long[reach:0:-1], long])  # lags -reach .. n - 1 + reach
    product: FloatArray = variance * fftconvolve(both_sides, short, mode="valid")
    return product


def gegenbauer_autocovariance(n: int, d: float, frequency: float) -> FloatArray:
    """Autocovariance of a Gegenbauer process (1 - 2 cos(w) B + B^2)^d x = e, shape (n,).

    It falls like k^(2 d - 1) cos(w k), with w the `frequency`. The first two lags are integrals of the
    spectral density, the others follow by the recursion that the differential equation of it gives.

    Parameters
    ----------
    n : number of lags, at least 1.
    d : the memory, in (-0.5, 0.5).
    frequency : in (0, pi), radians per step: 2 pi / 24 for a season of 24 steps.

    Raises
    ------
    TypeError : a count is no integer, another number none.
    ValueError : d outside (-0.5, 0.5), `frequency` outside (0, pi), or n below 1.

    Examples
    --------
    >>> gegenbauer_autocovariance(4, 0.4, 2 * np.pi / 6).round(4)
    array([ 2.2693,  0.9215, -0.745 , -1.4312])
    """
    n, d = check_count("n", n), check_memory(d)
    cure = "It is in radians per step; for frequency 0 use ARFIMA(0, 2 d, 0)."
    frequency = check_between("frequency", frequency, 0, np.pi, cure)
    before, now = (_gegenbauer_integral(lag, d, frequency) for lag in (0, 1))
    values, turn = [before, now], 2 * math.cos(frequency)
    for k in range(1, n - 1):
        before, now = now, (k * turn * now - (k - 1 + 2 * d) * before) / (k + 1 - 2 * d)
        values.append(now)
    return np.array(values[:n])


def _fractional_autocovariance(n: int, d: float) -> FloatArray:
    """Hosking's closed form for ARFIMA(0, d, 0), as a product of ratios."""
    lag = np.arange(1.0, n)
    start = np.exp(gammaln(1 - 2 * d) - 2 * gammaln(1 - d))
    ratios = np.concatenate([[start], (lag - 1 + d) / (lag - d)])
    return np.cumprod(ratios)


def _arma_response(ar: Sequence[float], ma: Sequence[float]) -> FloatArray:
    """Response of the ARMA part to one innovation, to the lag where 20 digits are gone."""
    autoregression = np.concatenate([[1.0], -_coefficients("ar", ar)])
    average = np.concatenate([[1.0], _coefficients("ma", ma)])
    root = max(np.abs(np.roots(autoregression)), default=0.0)
    if root >= _LARGEST_ROOT:
        raise ValueError(
            f"ar={tuple(ar)} is not stationary: its largest inverse root has modulus {root:.6g}, and "
            f"{_LARGEST_ROOT} is the limit. Mind the signs: x[t] = ar[0] x[t-1] + ar[1] x[t-2] + ... + e[t]."
        )
    fade = int(np.ceil(-20 * np.log(10) / np.log(root))) if root > 0 else 0
    impulse = np.zeros(average.size + fade)
    impulse[0] = 1.0
    response: FloatArray = lfilter(average, autoregression, impulse)
    return response


def _coefficients(name: str, values: Sequence[float]) -> FloatArray:
    coefficients: FloatArray = np.asarray(values, dtype=float)
    if coefficients.ndim != 1 or not np.isfinite(coefficients).all():
        raise ValueError(
            f"{name} must be a sequence of finite numbers, got {values!r}. Pass one such as [0.5]."
        )
    return coefficients


def _gegenbauer_integral(lag: int, d: float, frequency: float) -> float:
    """(1 / pi) times the integral over (0, pi) of cos(lag l) |2 (cos l - cos w)|^(-2 d).

    Quadrature with the algebraic weight |l - w|^(-2 d) on either side of the pole, so that the rest is
    smooth.
    """

    def smooth(angle: float) -> float:
        distance = np.sinc((angle - frequency) / (2 * np.pi))
        return float(np.cos(lag * angle) * (2 * np.sin((angle + frequency) / 2) * distance) ** (-2 * d))

    def side(start: float, end: float, powers: tuple[float, float]) -> float:
        area, _ = quad(smooth, start, end, weight="alg", wvar=powers, epsabs=1e-12, epsrel=1e-12, limit=200)
        return float(area)

    return (side(0, frequency, (0, -2 * d)) + side(frequency, math.pi, (-2 * d, 0))) / math.pi
