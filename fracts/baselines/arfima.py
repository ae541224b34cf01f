"""ARFIMA: the linear model of long memory, by exact likelihood, with a state of fixed size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fracts.base import Forecaster
from fracts.baselines.arfima_fit import Estimate, Orders, estimate
from fracts.baselines.each import EachSeries, Fitted, Unfit
from fracts.baselines.fractional import fractional_space
from fracts.baselines.machines import OnMachine
from fracts.baselines.season import chosen_season
from fracts.timeline import Clock

Array = NDArray[np.float64]

_AT_EDGE = 0.499  # of |d| or |d + D|
_ROWS_A_PARAMETER = 10


class ARFIMA(EachSeries, OnMachine, Forecaster):
    """Fractionally integrated autoregressive moving averages, one model a series.

        (1 - ar B - ...) (1 - B)^d (1 - B^s)^D (y - mean) = (1 + ma B + ...) e

    with |d|, |D| and |d + D| below 1/2, B the step back, and e normal. D is 0 without a `season_length`.

    Parameters
    ----------
    horizon : steps that `predict` gives unless told otherwise; any other horizon is as good.
    p, q : numbers of coefficients in ar and ma.
    differences : times that the series is differenced first, 0 to 2: a series whose memory is d of 0.5 to 1.5
        needs one, and then has a d of -0.5 to 0.5 here. The mean of the differences is taken as zero.
    season_length : steps s in a season with long memory of its own; None for none; "auto" for the shortest
        that the calendar implies and the history shows three times.
    n_jobs : processes that fit series at once; None is 1, -1 all cores.
    progress : show a bar while series are fitted.
    fallback : forecaster of the series that cannot be fitted (constant or too short); None is `Naive`.

    Attributes
    ----------
    estimates_ : dict from series to its `Estimate`; those that the fallback has are missing.
    failures_ : dict from the other series to the reason.

    Notes
    -----
    Up to 2,048 values the likelihood is exact (Sowell, 1992), for longer series and with a season it is
    Whittle's (`fracts.baselines.arfima_fit`). Standard errors are of the observed information, with the mean
    estimated. Forecasts, their variances and `update` are the exact ones of a Kalman filter on the
    AR(infinity) weights as the last value and 23 modes, which differ from each weight by at most 3 in 100,000
    up to lag 131,072; a missing value is one more step without news. The mean is part of the state, so
    `update` goes on learning it. With a season the past before the history counts as zero, and the state has
    16 modes for each step of it, right to 1 in 1,000: seasons beyond some 50 steps are slow.

    A series is distrusted with a FitWarning where the likelihood has no clear top, where d is at its edge, or
    where the curvature gives no standard errors, which are then those of the large-sample formula.

    Examples
    --------
    >>> from fracts.datasets import make_arfima
    >>> model = ARFIMA(3).fit(make_arfima(500, 0.4, random_state=0))
    >>> model.coefficients().round(2)
       series name  value  standard_error
    0       0    d   0.36            0.04
    """

    def __init__(
        self,
        horizon: int,
        *,
        p: int = 0,
        q: int = 0,
        differences: int = 0,
        season_length: int | str | None = None,
        n_jobs: int | None = None,
        progress: bool = False,
        fallback: Forecaster | None = None,
    ) -> None:
        self.horizon = horizon
        self.p = p
        self.q = q
        self.differences = differences
        self.season_length = season_length
        self.n_jobs = n_jobs
        self.progress = progress
        self.fallback = fallback

    @property
    def estimates_(self) -> dict[Any, Estimate]:
        """Estimates by series; NotFittedError before fit."""
        return self._learned_of_series()

    def coefficients(self) -> pd.DataFrame:
        """Every parameter with its standard error: columns series, name, value, standard_error."""
        rows = []
        for series, found in self.estimates_.items():
            process, seasonal = found.process, found.process.season_length > 1
            named = {"d": process.d} | ({"D": process.seasonal_d} if seasonal else {})
            named |= {f"ar{i}": value for i, value in enumerate(process.ar, 1)}
            named |= {f"ma{i}": value for i, value in enumerate(process.ma, 1)}
            errors = np.sqrt(np.diag(found.covariance))
            rows += [(series, *pair, error) for pair, error in zip(named.items(), errors, strict=True)]
        return pd.DataFrame(rows, columns=["series", "name", "value", "standard_error"])

    def _fitter(self, clock: Clock, n_steps: int) -> Callable[[Array, int], Fitted]:
        season = chosen_season(self.season_length, clock, n_steps)
        p, q = _check_order(self.p, "p", 5), _check_order(self.q, "q", 5)
        differences = _check_order(self.differences, "differences", 2)
        return _Fitter(Orders(p, q, season, mean=differences == 0), differences)


@dataclass(frozen=True)
class _Fitter:
    orders: Orders
    differences: int

    def __call__(self, values: Array, first: int) -> Fitted:
        differenced = np.diff(values, self.differences)
        known = np.flatnonzero(~np.isnan(differenced))
        needed = _ROWS_A_PARAMETER * (self.orders.size + 1)
        if self.orders.season_length > 1:
            needed = max(needed, 3 * self.orders.season_length)
        if len(known) < needed:
            raise Unfit(
                f"{len(known)} values are too few for {self.orders.size} parameters, {needed} are needed"
            )
        cut = differenced[known[0] : known[-1] + 1]
        scale = float(np.nanstd(cut))
        if scale <= 1e-10 * float(np.nanmax(np.abs(values))):
            raise Unfit(
                "its values are constant" if self.differences == 0 else "its differences are constant"
            )
        found = estimate(cut / scale, self.orders).scaled(scale)
        machine = fractional_space(found.process, found.variance, self.differences)
        return Fitted(machine, found, _remark(found))


def _remark(found: Estimate) -> str:
    """Why to distrust an estimate, or nothing."""
    total = found.process.d + max(found.process.seasonal_d, 0.0)
    if max(total, -found.process.d) > _AT_EDGE:
        cure = "one difference more" if total > 0 else "one difference fewer"
        return f"its d is at the edge, {total:.3f}; {cure} may be right"
    if not found.converged:
        return "the likelihood has no clear top, so its coefficients are not the most likely ones"
    if not found.curved:
        return "the likelihood is flat, so the standard errors are those of the large-sample formula"
    return ""


def _check_order(value: object, name: str, most: int) -> int:
    """`value` as an int; ValueError unless it is an integer from 0 to `most`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) <= most:
        raise ValueError(f"{name} must be an integer from 0 to {most}, got {value!r}.")
    return int(value)
