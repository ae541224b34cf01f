"""The fractional filter nearest to a predictor: one number for the memory of any linear one-step forecast.

One idea: a predictor with weights h_j on the value j steps back leaves the error filter 1 - H. Passed through
it, ARFIMA(0, d, 0) leaves the mean square

    mean over frequencies w of |1 - H(w)|^2 |1 - exp(iw)|^(-2 d)

which is 1, its least, for the predictor of that very process, since log |1 - exp(iw)| has mean 0. The d of
the least mean square is the nearest: the process for which the predictor would be best. That is Whittle's
estimate (Hosking, 1981, Biometrika 68(1), has the process) with the two spectra in each other's place, and
its logarithm is convex in d.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, gammasgn

from fracts.exponents import MemoryEstimate

Array = NDArray[np.float64]

_BOUNDS = (-0.5, 1.5)  # between which d is sought


def nearest_exponent(kernel: Array, count: int) -> MemoryEstimate:
    """Memory parameter d of the ARFIMA(0, d, 0) nearest to the one-step predictor with weights `kernel`.

    Parameters
    ----------
    kernel : (lags,), the weights of the values 1, 2, ... steps back. Frequencies are multiples of one turn in
        lags + 1 steps, without 0: what the level does is left out.
    count : number of values that the predictor was learned from.

    Returns
    -------
    d in (-1/2, 3/2), and the standard error that Whittle's estimate has when the model is wrong: where the
    predictor is a fractional one it is sqrt(6 / (pi^2 count)), and wider the farther it is from one.

    Examples
    --------
    >>> nearest_exponent(fractional_weights(0.3, np.arange(1, 4096)), count=4096)
    MemoryEstimate(d=0.3..., standard_error=0.012...)
    """
    n = len(kernel) + 1
    error = np.abs(1 - np.fft.rfft(np.append(0.0, kernel))[1:]) ** 2
    slope = np.log(2 * np.sin(np.pi * np.arange(1, len(error) + 1) / n))
    found = minimize_scalar(
        lambda d: np.log(np.mean(error * np.exp(-2 * d * slope))), bounds=_BOUNDS, method="bounded"
    )
    ratio = error * np.exp(-2 * found.x * slope)  # 1 at every frequency where the predictor is fractional
    spread = np.sqrt(np.mean((slope * ratio) ** 2) / (2 * count)) / np.mean(slope**2 * ratio)
    return MemoryEstimate(float(found.x), float(spread))


def fractional_weights(d: float, lags: ArrayLike) -> Array:
    """Weights (lags,) of the values 1, 2, ... steps back in the best forecast of ARFIMA(0, d, 0).

    They are d Gamma(lag - d) / (Gamma(1 - d) Gamma(lag + 1)) and fall like lag^-(1 + d).

    Examples
    --------
    >>> fractional_weights(0.4, [1, 2, 3]).round(4)
    array([0.4  , 0.12 , 0.064])
    """
    lag = np.asarray(lags, dtype=np.float64)
    size = np.exp(gammaln(lag - d) - gammaln(lag + 1) - gammaln(1 - d))
    weights: Array = d * gammasgn(lag - d) * gammasgn(1 - d) * size
    return weights
