"""Exponential smoothing, chosen by AICc."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fracts.base import Forecaster
from fracts.baselines.each import EachSeries, Fitted, Unfit
from fracts.baselines.ets_fit import Form, Smoothing, fit_form, smoothing_space
from fracts.baselines.logarithm import Logarithm
from fracts.baselines.machines import OnMachine
from fracts.baselines.season import chosen_season
from fracts.timeline import Clock

Array = NDArray[np.float64]

_TRENDS = {"none": (False, False), "additive": (True, False), "damped": (True, True)}


class ETS(EachSeries, OnMachine, Forecaster):
    """Exponential smoothing, one model a series: level, trend and season, the form chosen by AICc.

    Parameters
    ----------
    horizon : steps that `predict` gives unless told otherwise; any other horizon is as good.
    trend : "none", "additive", "damped", or "auto" to choose.
    season_length : steps in a season; "auto" for the shortest that the calendar implies and the history shows
        three times; None for no season. A season stays only where AICc wants it.
    logarithm : True for a model of the logarithm, False, or "auto" to choose where all values are positive.
    n_jobs : processes that fit series at once; None is 1, -1 all cores.
    progress : show a bar while series are fitted.
    fallback : forecaster of the series that cannot be fitted (constant or too short); None is `Naive`.

    Attributes
    ----------
    models_ : dict from series to its `Smoothing`; those that the fallback has are missing.
    failures_ : dict from the other series to the reason.

    Notes
    -----
    The errors are additive (Hyndman, Koehler, Ord and Snyder, 2008). The multiplicative forms of that book
    have their like in additive forms of the logarithm, which forecast no value below zero; "auto" tries those
    without a trend and with a damped one. In them a later value at or below zero counts as half of the
    smallest of the history. Parameters are in the usual bounds. Forecasts, intervals and `update` are the
    exact ones of the Kalman filter, without a new fit; a missing value is one more step without news.

    A series is distrusted with a FitWarning where the optimiser did not converge, or where the fit is perfect
    and its intervals have no width.

    Examples
    --------
    >>> y = [10.0, 12.0, 15.0, 11.0, 12.0, 14.0, 17.0, 13.0, 14.0, 16.0, 19.5, 15.0] * 2
    >>> model = ETS(4, season_length=4, trend="none").fit(y)
    >>> model.predict().round(1)
    array([14.6, 16.4, 19.4, 15. ])
    """

    def __init__(
        self,
        horizon: int,
        *,
        trend: str = "auto",
        season_length: int | str | None = "auto",
        logarithm: bool | str = "auto",
        n_jobs: int | None = None,
        progress: bool = False,
        fallback: Forecaster | None = None,
    ) -> None:
        self.horizon = horizon
        self.trend = trend
        self.season_length = season_length
        self.logarithm = logarithm
        self.n_jobs = n_jobs
        self.progress = progress
        self.fallback = fallback

    @property
    def models_(self) -> dict[Any, Smoothing]:
        """Models by series; NotFittedError before fit."""
        return self._learned_of_series()

    def _fitter(self, clock: Clock, n_steps: int) -> Callable[[Array, int], Fitted]:
        if self.trend not in ("auto", *_TRENDS):
            raise ValueError(f"trend must be 'auto', 'none', 'additive' or 'damped', got {self.trend!r}.")
        if self.logarithm not in (True, False, "auto"):
            raise ValueError(f"logarithm must be True, False or 'auto', got {self.logarithm!r}.")
        season = chosen_season(self.season_length, clock, n_steps)
        trends = tuple(_TRENDS) if self.trend == "auto" else (self.trend,)
        return _Fitter(trends, season, self.logarithm)


@dataclass(frozen=True)
class _Fitter:
    trends: Sequence[str]
    season_length: int
    logarithm: bool | str

    def __call__(self, values: Array, first: int) -> Fitted:
        positive = bool(np.nanmin(values) > 0)
        if self.logarithm is True and not positive:
            raise Unfit(f"its value {np.nanmin(values):g} has no logarithm")
        if np.nanmax(values) == np.nanmin(values):
            raise Unfit("its values are constant")
        scales = [bool(self.logarithm)] if self.logarithm != "auto" else [False, True][: 1 + positive]
        tried = [fit_form(values, form, log) for log in scales for form in self._forms(log, len(values))]
        models = [model for model in tried if model is not None]
        if not models:
            raise Unfit(f"{np.count_nonzero(~np.isnan(values))} values are too few")
        best = min(models, key=lambda model: model.aicc)
        space = smoothing_space(best)
        machine = Logarithm(space, np.array([np.nanmin(values) / 2])) if best.logarithm else space
        return Fitted(machine, best, _remark(best))

    def _forms(self, logarithm: bool, n_steps: int) -> list[Form]:
        """Forms to try: with and without the season, no undamped trend of a logarithm unless asked for."""
        trends = [t for t in self.trends if not (logarithm and t == "additive" and len(self.trends) > 1)]
        seasons = {1, self.season_length if n_steps >= 2 * self.season_length else 1}
        return [Form(*_TRENDS[trend], season) for season in sorted(seasons) for trend in trends]


def _remark(model: Smoothing) -> str:
    """Why to distrust a model, or nothing."""
    if model.perfect:
        return f"{model} fits perfectly, so its intervals have no width"
    if not model.converged:
        return f"the optimiser of {model} did not converge"
    return ""
