"""How good forecasts were: a few metrics in numpy.

One idea: an error is told in units of the typical step of the series itself (Hyndman and Koehler, 2006,
International Journal of Forecasting 22(4)), so that 1 means as far off as the last value was, one step ahead,
on the history of fit. True values that are NaN are left out everywhere. Arrays may have any shape, often
(origins, horizon).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr


def naive_scale(y_train: ArrayLike, power: int = 1) -> float:
    """Mean of |value - value before it| ** `power` over a history (time,), missing values skipped.

    NaN with fewer than two values.

    Parameters
    ----------
    y_train : (time,), the history; NaN is skipped.
    power : 1 for the scale of `mase`, 2 for that of `rmsse`.

    Examples
    --------
    >>> naive_scale([1.0, 3.0, np.nan, 2.0])
    1.5
    """
    values = np.asarray(y_train, dtype=np.float64)
    steps = np.abs(np.diff(values[~np.isnan(values)])) ** power
    return float(steps.mean()) if steps.size else float("nan")


def mase(y_true: ArrayLike, y_pred: ArrayLike, scale: float) -> float:
    """Mean absolute error in units of `scale`.

    Parameters
    ----------
    y_true : any shape, in the units of the series; NaN is left out.
    y_pred : forecasts, shape and units of `y_true`.
    scale : above 0, the mean absolute step of the history: `naive_scale(history)`.

    Examples
    --------
    >>> mase([2.0, np.nan], [3.0, 9.0], scale=naive_scale([0.0, 2.0, 4.0]))
    0.5
    """
    return _mean_over_truths(y_true, np.abs(_errors(y_true, y_pred))) / scale


def rmsse(y_true: ArrayLike, y_pred: ArrayLike, scale: float) -> float:
    """Root of the mean squared error in units of `scale`.

    Parameters
    ----------
    y_true : any shape, in the units of the series; NaN is left out.
    y_pred : forecasts, shape and units of `y_true`.
    scale : above 0, the mean squared step of the history: `naive_scale(history, power=2)`.

    Examples
    --------
    >>> rmsse([2.0, np.nan], [3.0, 9.0], scale=naive_scale([0.0, 2.0, 4.0], power=2))
    0.5
    """
    return float(np.sqrt(_mean_over_truths(y_true, _errors(y_true, y_pred) ** 2) / scale))


def coverage(y_true: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    """Share of true values within [lower, upper], from 0 to 1.

    Parameters
    ----------
    y_true : any shape, in the units of the series; NaN is left out.
    lower, upper : ends of the intervals, shape and units of `y_true`.

    Examples
    --------
    >>> coverage([1.0, 5.0, np.nan], [0.0, 0.0, 0.0], [2.0, 2.0, 2.0])
    0.5
    """
    inside = (np.asarray(lower) <= np.asarray(y_true)) & (np.asarray(y_true) <= np.asarray(upper))
    return _mean_over_truths(y_true, inside.astype(np.float64))


def pinball(y_true: ArrayLike, y_pred: ArrayLike, quantile: float) -> float:
    """Mean pinball loss of forecasts of one quantile, in units of the series (Koenker and Bassett, 1978).

    Parameters
    ----------
    y_true : any shape, in the units of the series; NaN is left out.
    y_pred : forecasts of the quantile, shape and units of `y_true`.
    quantile : its level, between 0 and 1.

    Examples
    --------
    >>> pinball([1.0, 1.0], [0.0, 2.0], quantile=0.9)
    0.5
    """
    below = _errors(y_true, y_pred)
    return _mean_over_truths(y_true, np.maximum(quantile * below, (quantile - 1) * below))


class DieboldMariano(NamedTuple):
    """A test statistic and its two-sided p-value."""

    statistic: float
    p: float


def diebold_mariano(losses: ArrayLike, others: ArrayLike, overlap: int = 1) -> DieboldMariano:
    """Whether one forecaster's losses are as large as another's, on average.

    Parameters
    ----------
    losses, others : (origins,), of two forecasters from the same origins; an origin with a NaN is left out.
    overlap : how many forecasts in a row share a time: the horizon, in origins. Differences of losses up to
        `overlap` - 1 origins apart may be correlated.

    Returns
    -------
    The statistic, above 0 where `losses` are the larger, and its p-value by Student's law with one degree of
    freedom less than origins. Both NaN where all differences are equal, or the origins too few for the
    overlap.

    Notes
    -----
    The test of Diebold and Mariano (1995, Journal of Business and Economic Statistics 13(3)) with the
    correction for few origins of Harvey, Leybourne and Newbold (1997, International Journal of Forecasting
    13(2)). Where the sum of autocovariances is not above 0 they are weighed by Bartlett's window instead.

    Examples
    --------
    >>> diebold_mariano([3.0, 1.0, 4.0, 2.0], [1.0, 1.5, 2.0, 1.0]).statistic
    1.9...
    """
    difference = np.asarray(losses, dtype=np.float64) - np.asarray(others, dtype=np.float64)
    difference = difference[~np.isnan(difference)]
    n, h = difference.size, overlap
    shrink = (n + 1 - 2 * h + h * (h - 1) / n) / n if n > h else 0.0
    if shrink <= 0 or np.ptp(difference) == 0:
        return DieboldMariano(float("nan"), float("nan"))
    centred = difference - difference.mean()
    covariances = np.array([centred[lag:] @ centred[: n - lag] for lag in range(h)]) / n
    variance = covariances[0] + 2 * covariances[1:].sum()
    if variance <= 0:
        variance = covariances[0] + 2 * (1 - np.arange(1, h) / h) @ covariances[1:]
    statistic = float(difference.mean() * np.sqrt(shrink * n / variance))
    return DieboldMariano(statistic, float(2 * stdtr(n - 1, -abs(statistic))))


def _errors(y_true: ArrayLike, y_pred: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(y_true, dtype=np.float64) - np.asarray(y_pred, dtype=np.float64)


def _mean_over_truths(y_true: ArrayLike, losses: NDArray[np.float64]) -> float:
    return float(np.mean(losses[~np.isnan(np.asarray(y_true, dtype=np.float64))]))
