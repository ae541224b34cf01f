"""What comes back: points and quantiles, which of them were asked for, and quantiles between those known.

One idea: a level is two quantiles. A model answers with a mean and with quantiles at the levels it is asked
for; a `Request` says which levels those are, and picks the columns a user wanted from the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fracts.checks import check_distinct, check_levels, check_quantiles

QUANTILES = np.array(
    [0.005, 0.01, 0.025, *np.arange(5, 100, 5) / 100, 0.975, 0.99, 0.995]
)  # the levels that models learn
MEDIAN_AT = int(np.searchsorted(QUANTILES, 0.5))  # place of the median


@dataclass(frozen=True)
class Forecast:
    """A model's answer: `mean` (series, horizon), `quantiles` (series, horizon, levels), levels ascending."""

    mean: NDArray[np.float64]
    quantiles: NDArray[np.float64]


@dataclass(frozen=True)
class Request:
    """What a user asked for.

    Parameters
    ----------
    point : "median" or "mean".
    levels : (k,), ascending quantile levels of the columns after the point.
    suffixes : (k,), what their names end in; empty for one that is looked at and not told.
    """

    point: str
    levels: NDArray[np.float64]
    suffixes: tuple[str, ...]

    @property
    def asked(self) -> NDArray[np.float64]:
        """Levels to ask the model for: those wanted and the median, ascending."""
        return np.union1d(self.levels, [0.5])

    @property
    def plain(self) -> bool:
        """Whether the median alone is wanted."""
        return self.point == "median" and not self.suffixes

    def table(self, forecast: Forecast) -> NDArray[np.float64]:
        """(series, horizon, 1 + k): the point, then the quantiles wanted, of a forecast at `asked`."""
        median = forecast.quantiles[..., np.searchsorted(self.asked, 0.5)]
        point = forecast.mean if self.point == "mean" else median
        wanted = forecast.quantiles[..., np.searchsorted(self.asked, self.levels)]
        return np.concatenate([point[..., None], wanted], axis=-1)


MEDIAN = Request("median", np.empty(0), ())


def request(
    level: float | Iterable[float] | None = None,
    quantiles: float | Iterable[float] | None = None,
    point: str = "median",
) -> Request:
    """What `level` (percent of central intervals) or `quantiles` ask for.

    Raises ValueError for both at once, for a level outside (0, 100), a quantile outside (0, 1), another
    `point`.

    Examples
    --------
    >>> request(level=[80, 95]).suffixes
    ('-lo-95', '-lo-80', '-hi-80', '-hi-95')
    >>> request(quantiles=0.1).suffixes
    ('_ql0.1',)
    """
    if level is None and quantiles is None and point == "median":
        return MEDIAN
    if point not in ("median", "mean"):
        raise ValueError(f"point must be 'median' or 'mean', got {point!r}.")
    if level is not None and quantiles is not None:
        raise ValueError(f"level={level!r} and quantiles={quantiles!r} came together. Give one of them.")
    if level is not None:
        ascending = check_levels(level)
        levels = [(100 - width) / 200 for width in ascending[::-1]] + [
            (100 + width) / 200 for width in ascending
        ]
        suffixes = [f"-lo-{width:g}" for width in ascending[::-1]] + [f"-hi-{width:g}" for width in ascending]
    else:
        levels = [] if quantiles is None else check_quantiles(quantiles)
        suffixes = [f"_ql{q:g}" for q in levels]
    check_distinct(suffixes, levels)
    return Request(point, np.array(levels, dtype=np.float64), tuple(suffixes))


def interpolate_quantiles(known: NDArray[np.float64], levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantiles at `levels` (k,) from those `known` (..., 25) at `QUANTILES`, shape (..., k).

    Linear in the normal quantile of the level, so exact for a normal distribution and at the levels known,
    and never crossing where `known` does not. Raises ValueError for a level beyond them.

    Examples
    --------
    >>> interpolate_quantiles(3 + 2 * ndtri(QUANTILES), np.array([0.5, 0.93])).round(4)
    array([3.    , 5.9516])
    """
    lowest, highest = QUANTILES[0], QUANTILES[-1]
    if (beyond := levels[(levels < lowest) | (levels > highest)]).size:
        raise ValueError(
            f"the quantile {beyond[0]:g} lies beyond those learned, {lowest:g} to {highest:g}. "
            f"Ask for one between them; the widest level is {100 * (highest - lowest):g}."
        )
    right = np.maximum(np.searchsorted(QUANTILES, levels), 1)
    left = right - 1
    start, stop = ndtri(QUANTILES[left]), ndtri(QUANTILES[right])
    weight: NDArray[np.float64] = (ndtri(levels) - start) / (stop - start)
    between: NDArray[np.float64] = known[..., left] * (1 - weight) + known[..., right] * weight
    return between
