"""Stationary coefficients from partial correlations, so that a search needs no bounds.

Source: Monahan (1984), Biometrika 71.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def coefficients(partial: Array) -> Array:
    """Coefficients of the autoregression with these partial correlations, each in (-1, 1); both (p,).

    Examples
    --------
    >>> coefficients(np.array([0.5, -0.2]))
    array([ 0.6, -0.2])
    """
    weights = np.zeros(0)
    for correlation in partial:
        weights = np.append(weights - correlation * weights[::-1], correlation)
    return weights
