"""Estimates of the memory parameter d of a series, from the power of its lowest frequencies.

A series with memory d has a spectrum like `frequency^(-2 d)` near zero. Three estimators read d there
without a model of the rest.

Sources: Geweke, Porter-Hudak (1983), J. Time Ser. Anal. 4; Robinson (1995), Ann. Statist. 23; Shimotsu
(2010), Econometric Theory 26; the last two as implemented by the package pyelw.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class MemoryEstimate(NamedTuple):
    """Estimate of the memory parameter d and its asymptotic standard error."""

    d: float
    standard_error: float


def gph_exponent(y: ArrayLike, n_frequencies: int | None = None) -> MemoryEstimate:
    """Memory parameter d by the log-periodogram regression of Geweke and Porter-Hudak (1983).

    Parameters
    ----------
    y : (time,), finite, evenly spaced.
    n_frequencies : lowest Fourier frequencies used, below half the length; by default its square root.

    Raises
    ------
    ValueError : fewer than 32 values, one that is not finite, or all alike; `n_frequencies` out of range.

    Examples
    --------
    >>> walk = np.cumsum(np.random.default_rng(0).normal(size=10_000))
    >>> abs(gph_exponent(walk).d - 1) < 0.2
    True
    """
    series = _series(y)
    m = _bandwidth(len(series), n_frequencies, 0.5)
    frequency = 2 * np.pi * np.arange(1, m + 1) / len(series)
    log_power = 2 * np.log(np.abs(np.fft.rfft(series)[1 : m + 1]))
    regressor = -2 * np.log(2 * np.sin(frequency / 2))
    regressor -= regressor.mean()
    spread = regressor @ regressor
    # The log of an exponential variable, which a periodogram ordinate is, has variance pi^2 / 6.
    return MemoryEstimate(float(regressor @ log_power / spread), float(np.pi / np.sqrt(6 * spread)))


def local_whittle(y: ArrayLike, n_frequencies: int | None = None) -> MemoryEstimate:
    """Memory parameter d by local Whittle (Robinson 1995), for d in (-1/2, 1).

    Parameters
    ----------
    y : (time,), finite, evenly spaced.
    n_frequencies : lowest Fourier frequencies used, below half the length; by default the length**.65.

    Raises
    ------
    ValueError : fewer than 32 values, one that is not finite, or all alike; `n_frequencies` out of range.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=10_000)
    >>> abs(local_whittle(noise).d) < 0.1
    True
    """
    from pyelw import LW

    series = _series(y)
    fitted = LW().fit(series, m=_bandwidth(len(series), n_frequencies, 0.65))
    return MemoryEstimate(float(fitted.d_hat_), float(fitted.ase_))


def exact_local_whittle(y: ArrayLike, n_frequencies: int | None = None) -> MemoryEstimate:
    """Memory parameter d by two-step exact local Whittle (Shimotsu 2010), for d in (-1/2, 2), mean unknown.

    Parameters
    ----------
    y : (time,), finite, evenly spaced.
    n_frequencies : lowest Fourier frequencies used, below half the length; by default the length**.65.

    Raises
    ------
    ValueError : fewer than 32 values, one that is not finite, or all alike; `n_frequencies` out of range.

    Examples
    --------
    >>> walk = np.cumsum(np.random.default_rng(0).normal(size=10_000))
    >>> abs(exact_local_whittle(walk).d - 1) < 0.1
    True
    """
    from pyelw import TwoStepELW

    series = _series(y)
    fitted = TwoStepELW().fit(series, m=_bandwidth(len(series), n_frequencies, 0.65))
    return MemoryEstimate(float(fitted.d_hat_), float(fitted.ase_))


def _series(y: ArrayLike) -> NDArray[np.float64]:
    """`y` as one checked series of floats."""
    series = np.asarray(y, dtype=np.float64)
    if series.ndim != 1 or len(series) < 32:
        raise ValueError(f"y must be one series of at least 32 values, got shape {series.shape}.")
    if not np.all(np.isfinite(series)):
        at = int(np.argmin(np.isfinite(series)))
        raise ValueError(
            f"y[{at}] is {series[at]}: the estimate needs finite values. Fill or cut the gap first."
        )
    if np.ptp(series) == 0:
        raise ValueError(
            f"y is constant at {series[0]}: it says nothing about memory. Pass a series that varies."
        )
    return series


def _bandwidth(length: int, n_frequencies: int | None, power: float) -> int:
    m = int(length**power) if n_frequencies is None else n_frequencies
    if not 2 <= m < length / 2:
        raise ValueError(f"n_frequencies must be from 2 to below half the length ({length} / 2), got {m}.")
    return m
