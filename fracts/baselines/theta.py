"""The Theta method: simple exponential smoothing with half the trend as drift."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fracts.base import Forecaster
from fracts.baselines.each import EachSeries, Fitted, Unfit
from fracts.baselines.ets_fit import Form, fit_form
from fracts.baselines.machines import OnMachine, origin_of
from fracts.baselines.needed import needed
from fracts.baselines.profile import Profiled, by_place, without_holes
from fracts.baselines.season import chosen_season
from fracts.baselines.statespace import StateSpace
from fracts.records import record
from fracts.series import Panel
from fracts.timeline import Clock

Array = NDArray[np.float64]

_FEWEST = 5  # values
_LEVEL = Form(trend=False, damped=False, season_length=1)
_SEASONAL = 1.645**2  # a squared autocorrelation over its variance from which there is a season: 90 %


@record
class ThetaFit(NamedTuple):
    """What Theta learned: weight of the last error, drift of a step, factors or addends of the season."""

    alpha: float
    drift: float
    season: Array
    multiplicative: bool


class Theta(EachSeries, OnMachine, Forecaster):
    """The Theta method, one model a series.

    Parameters
    ----------
    horizon : steps that `predict` gives unless told otherwise; any other horizon is as good.
    season_length : steps in a season; "auto" for the shortest that the calendar implies and the history shows
        three times; None for no season. A season is taken off only where a test finds one.
    n_jobs : processes that fit series at once; None is 1, -1 all cores.
    progress : show a bar while series are fitted.
    fallback : forecaster of the series that cannot be fitted (constant or too short); None is `Naive`.

    Attributes
    ----------
    models_ : dict from series to alpha, drift and season; those that the fallback has are missing.
    failures_ : dict from the other series to the reason.

    Notes
    -----
    The method of Assimakopoulos and Nikolopoulos (2000, International Journal of Forecasting 16), which is
    exponential smoothing with half the slope of the trend line as drift (Hyndman and Billah, 2003, ibid. 19);
    its alpha is the most likely one of that model. The season (ratios where all values are positive) is that
    of statsmodels' `seasonal_decompose`, the test for one that of its `ThetaModel`; both see holes filled by
    straight lines. Everything else, `update` without a new fit included, is an exact Kalman filter, to which
    a missing value is one more step without news. The season does not change after fit.

    Examples
    --------
    >>> Theta(2).fit([1.0, 2.0, 2.5, 3.5, 5.0, 5.5, 6.0, 7.5]).predict().round(2)
    array([7.95, 8.4 ])
    """

    def __init__(
        self,
        horizon: int,
        *,
        season_length: int | str | None = "auto",
        n_jobs: int | None = None,
        progress: bool = False,
        fallback: Forecaster | None = None,
    ) -> None:
        self.horizon = horizon
        self.season_length = season_length
        self.n_jobs = n_jobs
        self.progress = progress
        self.fallback = fallback

    @property
    def models_(self) -> dict[Any, ThetaFit]:
        """Models by series; NotFittedError before fit."""
        return self._learned_of_series()

    def _fitter(self, clock: Clock, n_steps: int) -> Callable[[Array, int], Fitted]:
        needed("statsmodels", "Theta")
        return _Fitter(chosen_season(self.season_length, clock, n_steps), origin_of(clock))


@dataclass(frozen=True)
class _Fitter:
    season_length: int
    origin: int

    def __call__(self, values: Array, first: int) -> Fitted:
        if np.count_nonzero(~np.isnan(values)) < _FEWEST:
            raise Unfit(f"{np.count_nonzero(~np.isnan(values))} values are too few, {_FEWEST} are needed")
        if np.nanmax(values) == np.nanmin(values):
            raise Unfit("its values are constant")
        origin = self.origin + first
        season, multiplicative = _profile(values, self.season_length, origin)
        machine = Profiled(None, (season[None],), np.array([multiplicative]))
        steps = np.arange(float(len(values)))
        bare = machine.without(Panel(values[None], steps), np.array([origin])).values[0]
        known = ~np.isnan(bare)
        drift = float(np.polyfit(steps[known], bare[known], 1)[0]) / 2
        level = fit_form(bare - drift * steps, _LEVEL, logarithm=False)
        if level is None:
            raise Unfit("its last values have too many holes")
        learned = ThetaFit(level.alpha, drift, season, multiplicative)
        remark = "it fits perfectly, so its intervals have no width" if level.perfect else ""
        return Fitted(replace(machine, inner=_space(learned, level.variance)), learned, remark)


def _profile(values: Array, length: int, origin: int) -> tuple[Array, bool]:
    """(length,): the factors or addends of a cycle, in order of the calendar, and whether they multiply.

    Zeros to add where a test finds no season.
    """
    if length == 1 or len(values) < 2 * length:
        return np.zeros(length), False
    from statsmodels.tsa.seasonal import seasonal_decompose
    from statsmodels.tsa.stattools import acf

    scale = float(np.nanstd(values))
    filled = without_holes(values) / scale
    correlation = acf(filled, nlags=length, fft=True)
    if len(values) * correlation[-1] ** 2 <= _SEASONAL * np.sum(correlation[:-1] ** 2):
        return np.zeros(length), False
    if filled.min() > 0:
        factors = np.asarray(seasonal_decompose(filled, model="multiplicative", period=length).seasonal)
        if factors.min() > 0:
            return by_place(factors, length, origin), True
    addends = np.asarray(seasonal_decompose(filled, model="additive", period=length).seasonal)
    return by_place(addends * scale, length, origin), False


def _space(learned: ThetaFit, variance: float) -> StateSpace:
    """Exponential smoothing with a fixed drift, the level at the start not known."""
    gain = np.array([[learned.alpha, 0.0]])
    return StateSpace(
        np.array([[[1.0, 1.0], [0.0, 1.0]]]),
        np.array([[1.0, 1.0]]),
        gain[:, :, None] * gain[:, None],
        gain,
        np.ones(1),
        np.array([variance]),
        np.array([[0.0, learned.drift]]),
        np.zeros((1, 2, 2)),
        np.array([[[1.0, 0.0], [0.0, 0.0]]]),
    )
