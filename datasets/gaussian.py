"""Stationary Gaussian series with a given autocovariance, drawn exactly.

One idea: the autocovariance folded into a circle is a circulant matrix, which the Fourier transform
diagonalises. If no eigenvalue is negative, its square root times white noise, cut to n values, has the wanted
covariance: not in some limit, but exactly, in n log n. Where no circle is found the series is built value by
value, each from its exact prediction by all values before it, in n^2. Sources: Davies and Harte (1987), Wood
and Chan (1994) for the circle; Durbin (1960), Levinson (1947) for the prediction.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

FloatArray = NDArray[np.float64]
Autocovariance = Callable[[int], FloatArray]


def stationary_gaussian(
    autocovariance: Autocovariance, n: int, n_series: int, generator: np.random.Generator
) -> FloatArray:
    """Independent series of mean zero as columns, shape (n, n_series).

    `autocovariance(m)` returns the lags 0 .. m - 1.
    """
    root = circulant_root(autocovariance, n)
    if root is None:
        return _by_prediction(autocovariance(n), generator.standard_normal((n, n_series)))
    noise = generator.standard_normal((n_series, 2 * (root.size - 1)))
    series: FloatArray = irfft(root * rfft(noise))[:, :n].T
    return series


def circulant_root(autocovariance: Autocovariance, n: int) -> FloatArray | None:
    """Square roots of the eigenvalues of a circle that holds n lags; None if each has negative ones."""
    for folded in _tables(autocovariance, n):
        circle = np.concatenate([folded, folded[-2:0:-1]])
        eigenvalues = rfft(circle).real
        if eigenvalues.min() >= -1e-13 * np.linalg.norm(circle):  # the rounding of the transform
            root: FloatArray = np.sqrt(np.maximum(eigenvalues, 0))
            return root
    return None


def _tables(autocovariance: Autocovariance, n: int) -> Iterator[FloatArray]:
    """Autocovariances to fold: n lags first, then longer ones.

    A fold makes a kink, and a kink makes negative eigenvalues: so the longer ones end where the table is
    flattest, which for a seasonal process is a crest.
    """
    yield autocovariance(next_fast_len(n, real=True) + 1)
    for reach in (2, 4, 8, 16):
        table = autocovariance(reach * max(n, 512) + 1)
        slope = np.abs(table[n + 1 :] - table[n - 1 : -2])
        yield table[: n + 1 + int(np.argmin(slope))]


def _by_prediction(autocovariance: FloatArray, noise: FloatArray) -> FloatArray:
    """The Durbin-Levinson recursion; noise and result (n, n_series)."""
    series = np.empty_like(noise)
    weights = np.zeros(0)
    variance = autocovariance[0]
    series[0] = np.sqrt(variance) * noise[0]
    for t in range(1, noise.shape[0]):
        partial = (autocovariance[t] - weights @ autocovariance[t - 1 : 0 : -1]) / variance
        weights = np.append(weights - partial * weights[::-1], partial)
        variance *= 1 - partial**2
        series[t] = weights @ series[t - 1 :: -1] + np.sqrt(variance) * noise[t]
    return series
