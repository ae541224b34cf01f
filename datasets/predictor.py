"""The best one-step forecast of ARFIMA(0, d, 0): what no model can beat on such a series.

One idea: the weights of the best linear predictor from t past values, known in closed form (Hosking, 1981),
factor into the weight of the infinite past and a ratio g(t) / g(s):

    forecast of y[t] = g(t) * sum over s < t of a[t - s] * y[s] / g(s)
    a[j] = -Gamma(j - d) / (Gamma(-d) j!)
    g(t) = Gamma(t + 1) / Gamma(t + 1 - d)

So the exact forecasts at all t, each from its whole past, are one convolution: n log n, no truncation.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import fftconvolve
from scipy.special import gammaln

from fracts.process_checks import check_count, check_memory

FloatArray = NDArray[np.float64]


def arfima_predictor(n_past: int, d: float) -> tuple[FloatArray, float]:
    """Weights of the best one-step forecast from `n_past` values, and the variance of its error.

    Parameters
    ----------
    n_past : number of past values, at least 1.
    d : the memory, in (-0.5, 0.5).

    Returns
    -------
    weights : (n_past,), the first for the latest value.
    variance : in units of the innovation variance; it falls to 1 as the past grows.

    Raises
    ------
    TypeError : `n_past` is no integer, d no number.
    ValueError : d outside (-0.5, 0.5) or n_past below 1.

    Examples
    --------
    >>> weights, variance = arfima_predictor(1, 0.4)
    >>> weights.round(6), round(variance, 6)
    (array([0.666667]), 1.150055)
    """
    n, d = check_count("n_past", n_past), check_memory(d)
    growth = _growth(n + 1, d)
    weights = _infinite_past(n, d) * growth[n] / growth[n - 1 :: -1]
    variance = np.exp(gammaln(n + 1) + gammaln(n + 1 - 2 * d) - 2 * gammaln(n + 1 - d))
    return weights, float(variance)


def arfima_one_step(y: ArrayLike, d: float) -> FloatArray:
    """Best forecast of each value of ARFIMA(0, d, 0) from all values before it, shape of y.

    The mean of the process is zero, so the first forecast is 0.

    Parameters
    ----------
    y : (time,), finite.
    d : the memory, in (-0.5, 0.5).

    Raises
    ------
    TypeError : d is no number.
    ValueError : d outside (-0.5, 0.5); y not one-dimensional, empty or not finite.

    Examples
    --------
    >>> arfima_one_step([3.0, 0.0], 0.4).round(6)
    array([0., 2.])
    """
    d = check_memory(d)
    values = np.asarray(y, dtype=float)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"y must be one series, got shape {values.shape}. Pass a non-empty 1-D array.")
    if not (finite := np.isfinite(values)).all():
        at = int(np.argmin(finite))
        raise ValueError(
            f"y must be finite, got {values[at]} at position {at}. Fill or drop such values first."
        )
    n = values.size
    growth = _growth(n, d)
    sums = fftconvolve(values[:-1] / growth[:-1], _infinite_past(n - 1, d))[: n - 1] if n > 1 else np.zeros(0)
    return np.concatenate([[0.0], growth[1:] * sums])


def _growth(n: int, d: float) -> FloatArray:
    """g(t) / g(0) for t = 0 .. n - 1."""
    step = np.arange(1.0, n)
    return np.cumprod(np.concatenate([[1.0], step / (step - d)]))


def _infinite_past(n: int, d: float) -> FloatArray:
    """a[1] .. a[n], the autoregressive weights of the fractional difference."""
    lag = np.arange(1.0, n)
    return d * np.cumprod(np.concatenate([[1.0], (lag - d) / (lag + 1)]))
