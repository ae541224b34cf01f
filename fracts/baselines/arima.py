"""ARIMA, its order chosen by AICc or given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fracts.base import Forecaster
from fracts.baselines.arima_fit import (
    ArimaFit,
    Order,
    differenced,
    likeliest,
    perfect,
    plain_differences,
    search,
    seasonal_differences,
)
from fracts.baselines.each import EachSeries, Fitted, Unfit
from fracts.baselines.machines import OnMachine
from fracts.baselines.needed import needed
from fracts.baselines.profile import without_holes
from fracts.baselines.season import chosen_season
from fracts.timeline import Clock

Array = NDArray[np.float64]

_FEWEST = 8  # values after differencing


class ARIMA(EachSeries, OnMachine, Forecaster):
    """Seasonal ARIMA, one model a series, the order chosen by AICc or given.

    Parameters
    ----------
    horizon : steps that `predict` gives unless told otherwise; any other horizon is as good.
    order : (p, d, q), or "auto" to choose, p and q from 0 to 5 and d from 0 to 2.
    seasonal_order : (P, D, Q), or "auto" to choose, P and Q from 0 to 2 and D from 0 to 1.
    season_length : steps in a season; "auto" for the shortest that the calendar implies and the history shows
        three times; None for no season.
    n_jobs : processes that fit series at once; None is 1, -1 all cores.
    progress : show a bar while series are fitted.
    fallback : forecaster of the series that cannot be fitted (constant or too short); None is `Naive`.

    Attributes
    ----------
    models_ : dict from series to its `ArimaFit`; those that the fallback has are missing.
    failures_ : dict from the other series to the reason.

    Notes
    -----
    The choice is that of Hyndman and Khandakar (2008): d by the KPSS test, D by the strength of the season,
    the rest by a walk to the neighbour of the least AICc, on conditional sums of squares; the best three
    orders, the best one for more than 150 values, are then fitted by exact likelihood in statsmodels. Up to
    one difference the model may have a constant. Holes are integrated out of the likelihood; the choice of
    the order sees them filled by straight lines. Forecasts and `update` are those of an exact Kalman filter,
    without a new fit. Its cost grows with the cube of the season length: seasons beyond some 50 steps are
    slow.

    A series whose differences are constant, such as a straight line or an exact season, goes on as it is. It
    is distrusted with a FitWarning, and so is one whose optimiser did not converge.

    Examples
    --------
    >>> y = np.random.default_rng(0).normal(size=200).cumsum()
    >>> model = ARIMA(3).fit(y)
    >>> str(model.models_[0].order)
    'ARIMA(0,1,0)'
    """

    def __init__(
        self,
        horizon: int,
        *,
        order: tuple[int, int, int] | str = "auto",
        seasonal_order: tuple[int, int, int] | str = "auto",
        season_length: int | str | None = "auto",
        n_jobs: int | None = None,
        progress: bool = False,
        fallback: Forecaster | None = None,
    ) -> None:
        self.horizon = horizon
        self.order = order
        self.seasonal_order = seasonal_order
        self.season_length = season_length
        self.n_jobs = n_jobs
        self.progress = progress
        self.fallback = fallback

    @property
    def models_(self) -> dict[Any, ArimaFit]:
        """Models by series; NotFittedError before fit."""
        return self._learned_of_series()

    def _fitter(self, clock: Clock, n_steps: int) -> Callable[[Array, int], Fitted]:
        needed("statsmodels", "ARIMA")
        order = _checked(self.order, "order", (5, 2, 5))
        seasonal = _checked(self.seasonal_order, "seasonal_order", (2, 1, 2))
        return _Fitter(order, seasonal, chosen_season(self.season_length, clock, n_steps))


@dataclass(frozen=True)
class _Fitter:
    order: tuple[int, int, int] | None
    seasonal_order: tuple[int, int, int] | None
    season_length: int

    def __call__(self, values: Array, first: int) -> Fitted:
        start, fixed = self._start(values)
        series = differenced(without_holes(values), start)
        if len(series) < _FEWEST or np.count_nonzero(~np.isnan(values)) < _FEWEST:
            raise Unfit(f"{np.count_nonzero(~np.isnan(values))} values are too few")
        if np.ptp(series) <= 1e-10 * np.nanmax(np.abs(values)):
            if start.d + start.D == 0:
                raise Unfit("its values are constant")
            straight, space = perfect(values, replace(start, constant=True))
            return Fitted(space, straight, f"{straight.order} fits perfectly, so its intervals have no width")
        orders = [start] if len(fixed) == 5 else search(values, start, fixed)
        models = [likeliest(values, order) for order in orders]
        best, space = min(models, key=lambda model: model[0].aicc)
        return Fitted(
            space, best, "" if best.converged else f"the optimiser of {best.order} did not converge"
        )

    def _start(self, values: Array) -> tuple[Order, frozenset[str]]:
        """An order with its differences settled, and the names that are not searched."""
        filled, s = without_holes(values), self.season_length
        if s == 1 or len(values) < 2 * s + 1:
            s, seasonal = 1, (0, 0, 0)
        else:
            seasonal = self.seasonal_order or (0, seasonal_differences(values, s), 0)
        given = Order(0, 0, 0, seasonal[0], seasonal[1], seasonal[2], s, constant=False)
        p, d, q = self.order or (0, plain_differences(differenced(filled, given)), 0)
        start = Order(p, d, q, *seasonal, s, constant=d + seasonal[1] < 2)
        fixed = {"p", "q"} if self.order else set()
        fixed |= {"P", "Q"} if self.seasonal_order or s == 1 else set()
        fixed |= {"constant"} if self.order or not start.constant else set()
        return start, frozenset(fixed)


def _checked(order: Any, name: str, most: tuple[int, int, int]) -> tuple[int, int, int] | None:
    """`order` as three ints, None for "auto"; ValueError unless each is from 0 to `most`."""
    if isinstance(order, str) and order == "auto":
        return None
    whole = isinstance(order, tuple | list) and len(order) == 3
    if not whole or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in order):
        raise ValueError(f"{name} must be three integers of at least 0 or 'auto', got {order!r}.")
    if any(n > limit for n, limit in zip(order, most, strict=True)):
        raise ValueError(f"{name} must be at most {most}, got {order!r}.")
    return tuple(order)
