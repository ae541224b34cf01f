"""Synthetic series with known memory: fractional Gaussian noise, ARFIMA, Gegenbauer.

One idea: the samples are exact draws of a Gaussian process whose autocovariance is a formula
(`fracts.autocovariance`), with mean zero; nothing is burnt in and nothing cut off. A single series
has shape (n,), several are columns, (n, n_series): both are a `y` for `fit`. `random_state` is an int, a
`numpy.random.Generator` (which moves on) or None for a new draw at each call.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fracts.autocovariance import (
    arfima_autocovariance,
    fgn_autocovariance,
    gegenbauer_autocovariance,
)
from fracts.datasets.gaussian import Autocovariance, stationary_gaussian
from fracts.process_checks import check_count

FloatArray = NDArray[np.float64]
RandomState = int | np.random.Generator | None


def make_fgn(n: int, hurst: float, *, n_series: int = 1, random_state: RandomState = None) -> FloatArray:
    """Fractional Gaussian noise of variance 1, shape (n,) or (n, n_series).

    Its sums are fractional Brownian motion; `hurst` is d + 1/2.

    Parameters
    ----------
    n : number of values, at least 1.
    hurst : in (0, 1); 0.5 is white noise, above it is long memory.
    n_series : number of independent series, at least 1.
    random_state : int, `numpy.random.Generator`, or None for a new draw at each call.

    Raises
    ------
    TypeError : a count is no integer, another number none.
    ValueError : `hurst` outside (0, 1), n or n_series below 1.

    Examples
    --------
    >>> make_fgn(1000, 0.8, random_state=0).shape
    (1000,)
    """
    return _draw(lambda m: fgn_autocovariance(m, hurst), n, n_series, random_state)


def make_arfima(
    n: int,
    d: float,
    *,
    ar: Sequence[float] = (),
    ma: Sequence[float] = (),
    n_series: int = 1,
    random_state: RandomState = None,
) -> FloatArray:
    """ARFIMA(p, d, q) with innovations of variance 1, shape (n,) or (n, n_series).

    Signs: (1 - ar[0] B - ...) (1 - B)^d x = (1 + ma[0] B + ...) e. With a root next to the unit circle the
    draw may take time in n^2.

    Parameters
    ----------
    n : number of values, at least 1.
    d : the memory, in (-0.5, 0.5).
    ar, ma : (p,) and (q,), coefficients of the short memory.
    n_series : number of independent series, at least 1.
    random_state : int, `numpy.random.Generator`, or None for a new draw at each call.

    Raises
    ------
    TypeError : a count is no integer, another number none.
    ValueError : d outside (-0.5, 0.5), `ar` not stationary, n or n_series below 1.

    Examples
    --------
    >>> make_arfima(500, 0.4, ar=[0.3], n_series=2, random_state=0).shape
    (500, 2)
    """
    return _draw(lambda m: arfima_autocovariance(m, d, ar=ar, ma=ma), n, n_series, random_state)


def make_gegenbauer(
    n: int, d: float, frequency: float, *, n_series: int = 1, random_state: RandomState = None
) -> FloatArray:
    """Seasonal long memory with innovations of variance 1, shape (n,) or (n, n_series).

    (1 - 2 cos(w) B + B^2)^d x = e, with w the `frequency`.

    Parameters
    ----------
    n : number of values, at least 1.
    d : the memory, in (-0.5, 0.5).
    frequency : in (0, pi), radians per step: 2 pi / 24 for a season of 24 steps.
    n_series : number of independent series, at least 1.
    random_state : int, `numpy.random.Generator`, or None for a new draw at each call.

    Raises
    ------
    TypeError : a count is no integer, another number none.
    ValueError : d outside (-0.5, 0.5), `frequency` outside (0, pi), n or n_series below 1.

    Examples
    --------
    >>> make_gegenbauer(240, 0.4, 2 * np.pi / 24, random_state=0).shape
    (240,)
    """
    return _draw(lambda m: gegenbauer_autocovariance(m, d, frequency), n, n_series, random_state)


def _draw(autocovariance: Autocovariance, n: int, n_series: int, random_state: RandomState) -> FloatArray:
    n, n_series = check_count("n", n), check_count("n_series", n_series)
    series = stationary_gaussian(autocovariance, n, n_series, np.random.default_rng(random_state))
    return series[:, 0] if n_series == 1 else series
