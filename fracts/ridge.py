"""`FracRidge`: linear forecasts from a bank of fractional memories, fitted in closed form."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fracts.base import Forecaster
from fracts.calibration import Calibration
from fracts.checks import (
    check_anchor,
    check_calibration,
    check_forgetting,
    check_memory,
    check_penalty,
    check_pooled,
)
from fracts.effect_fit import learned_effects
from fracts.fast import by_parts
from fracts.forecasts import Forecast
from fracts.inspection import Inspection
from fracts.linear import Reading
from fracts.linear_fit import fit_linear, is_pooled
from fracts.paths import extended
from fracts.recall import CENTRE_MEMORY, beside_smoothing, linear_memory
from fracts.recursive import Recursion, begun, learned_on
from fracts.scoring import Continuation
from fracts.seasons import chosen_season_lengths
from fracts.series import Panel, State
from fracts.timeline import Clock


class FracRidge(Calibration, Forecaster, Inspection):
    """Linear forecasts from a bank of fractional memories.

    Every lead is a ridge regression on exponential modes of geometrically spaced timescales, plain and at the
    frequencies of the seasons. The penalty is a prior in the manner of the theory, tau**-decay for the weight
    of a mode of timescale tau. Its decay (0.5 or 0.75; 0 or 0.25 at the frequency of a season), its strength
    and what to lean on (the centre of the series, its last value, a seasonal profile as it is or moved by the
    last value; without seasons also the forecasts of fractional noise of the orders .2 to .8) are not chosen
    once: the forecast is an average over them, at every lead by the errors of rolling origins in time, and
    where those of a lead are few by those of shorter leads as well.
    Several short series that share coefficients (fewer than 512 values in the usual one) lean on exponential
    smoothing as well, of each by the gains, the season and the trend that were right for it. A single series
    of up to 4,096 values leans on this, and without seasons one of any length on its last value, by the
    probability that nothing learned forecasts it better: by the marginal likelihood of its single steps and,
    at every lead, by held-out errors. What is held out
    are shares of the values seen, of each series where it has coefficients of its own or most end early, else
    of all together.

    Parameters
    ----------
    horizon : the longest lead fitted, in steps. Beyond it sampled paths roll on.
    n_modes : timescales of the grid, at least 2, the tail mode included (which has no part in a linear path).
    timescales : the shortest and the longest memory to represent, in steps.
    centre_memory : steps over which the mean and the spread of a series, that all is measured by, forget.
    season_lengths : "auto" (those that the calendar implies and the history shows three times; where it has
        none, as with integers, those after which the values repeat), an int, a tuple, or () for none, in
        steps.
    pooled : True: one set of coefficients for all series; False: one for each; "auto": one for each where
        held-out time prefers it, or is in doubt and their noise lies far apart.
    penalty : strength of the prior, as the number of observations that outweigh it; "auto" averages over
        several.
    anchor : what to lean on: the "centre" of a series, its "last" value, a profile of its "season"; "auto"
        averages over all, over fractional noise, and over exponential smoothing.
    forgetting : None, or what a row weighs beside the next one that `update(..., update_params=True)` learns
        from, above 0 and up to 1: the coefficients, of the best penalty and anchor alone, are then learned on
        by recursive least squares. Keeps a matrix of features by features for each lead, and for each series
        that has coefficients of its own.
    calibration : "held-out": intervals as wide as held-out errors ask for; "adaptive": they start there and
        learn from every value, each series for itself, by a conformal tracker (`fracts.conformal`).
    past_only : columns of `X` that are known up to now and not in advance, as measured weather is.
    lower : None, or a bound that no value lies below: forecasts, quantiles among them, are cut off there.
    transform : the scale to work on: None, "log", "log1p", "box-cox", "auto" (the logarithm of positive
        values where it comes nearer to them on held-out time, else None), or an increasing scikit-learn
        transformer of one column, fitted on the values of all series together. Median and quantiles are
        transformed exactly; `point="mean"` is integrated over the quantiles, since the mean of exp(x) lies
        above exp of the mean.

    Attributes
    ----------
    season_lengths_ : tuple of int.
    pooled_ : bool.
    penalty_ : the decay, seasonal_decay and strength that say most in the average, and the strength for what
        covariates tell beside their effects.
    covariates_ : list, the columns of `X`.

    Examples
    --------
    >>> y = np.sin(np.arange(200) * 2 * np.pi / 10)
    >>> FracRidge(3, season_lengths=10).fit(y).predict().round(2) + 0.0
    array([0.  , 0.59, 0.95])
    """

    _takes_covariates = True
    _historic = ("_recursion",)
    _recursion: Recursion | None = None

    def __init__(
        self,
        horizon: int,
        *,
        n_modes: int = 16,
        timescales: tuple[float, float] = (1.0, 131072.0),
        centre_memory: float = CENTRE_MEMORY,
        season_lengths: str | int | tuple[int, ...] = "auto",
        pooled: str | bool = "auto",
        penalty: str | float = "auto",
        anchor: str = "auto",
        forgetting: float | None = None,
        calibration: str = "held-out",
        past_only: tuple[Any, ...] = (),
        lower: float | None = None,
        transform: Any = None,
    ) -> None:
        self.horizon = horizon
        self.n_modes = n_modes
        self.timescales = timescales
        self.centre_memory = centre_memory
        self.season_lengths = season_lengths
        self.pooled = pooled
        self.penalty = penalty
        self.anchor = anchor
        self.forgetting = forgetting
        self.calibration = calibration
        self.past_only = past_only
        self.lower = lower
        self.transform = transform

    def _fit(self, panel: Panel, clock: Clock) -> None:
        check_memory(self.n_modes, self.timescales, self.centre_memory)
        check_forgetting(self.forgetting)
        check_pooled(self.pooled)
        check_calibration(self.calibration)
        strength = check_penalty(self.penalty)
        self.season_lengths_ = chosen_season_lengths(self.season_lengths, panel, clock)
        check_anchor(self.anchor, self.season_lengths_)
        memory = linear_memory(
            panel,
            self.horizon,
            self.n_modes,
            self.timescales,
            self.season_lengths_,
            self._covariates.n_known,
            self.anchor,
            self.centre_memory,
        )
        self.pooled_ = is_pooled(self.pooled, panel, memory)
        ids = self.series_ids_
        if self._covariates.n_known:
            self._effects, panel = learned_effects(panel, memory, ids, pooled=self.pooled_)
        memory = beside_smoothing(memory, panel, pooled=self.pooled_)
        self._path = fit_linear(
            panel, memory, ids, pooled=self.pooled_, strength=strength, averaged=self.forgetting is None
        )
        self._recursion = begun(self._path, panel, self.forgetting)
        self.penalty_ = self._path.penalty
        self._calibrate()

    def _learned_on(self, rows: Continuation) -> dict[str, Any]:
        if self._recursion is None:
            return super()._learned_on(rows)
        return learned_on(self._recursion, self._path, self._state, rows.whole(self._counts))

    def _empty_state(self, n_series: int) -> State:
        state = self._path.empty(self.series_ids_)
        return state if self._calibrator is None else state | self._calibrator.empty(state["group"])

    def _advance(self, state: State, panel: Panel) -> State:
        if panel.times.size == 1:
            return by_parts(self._advance_part, state, panel)
        return self._advance_part(state, panel)

    def _advance_part(self, state: State, panel: Panel) -> State:
        if self._calibrator is None:
            return self._path.advance(state, panel)
        reading, after = self._path.unaware(state, panel)
        no_features = np.empty((*panel.values.shape, 0))
        return after | self._after_errors(self._calibrator, state, panel, reading, no_features)[0]

    def _forecast(self, state: State, horizon: int, quantiles: NDArray[np.float64]) -> Forecast:
        return extended(
            self._read, self._path.advance, self._path.memory.reach, state, self.horizon, horizon, quantiles
        )

    def _median(self, state: State, horizon: int) -> NDArray[np.float64]:
        if horizon > self.horizon or self._calibrator is not None:
            return super()._median(state, horizon)
        return self._path.medians(state)[0][:, :horizon]

    def _run(
        self, state: State, panel: Panel, rows: NDArray[np.int64], ahead: NDArray[np.float64]
    ) -> tuple[Forecast, State]:
        reading, _, _, after = self._path.passed(state, panel, rows, ahead)
        seen: State = {k: state[k].repeat(rows.size) for k in ("group", "noise") if k in state}
        if self._calibrator is not None:
            unaware, _ = self._path.unaware(state, panel)
            no_features = np.empty((*panel.values.shape, 0))
            kept, told = self._after_errors(self._calibrator, state, panel, unaware, no_features, rows)
            after, seen = after | kept, seen | told
        return self._told(reading, seen), after

    def _read(self, state: State) -> Forecast:
        return self._told(self._path.read(state), state)

    def _told(self, reading: Reading, state: State) -> Forecast:
        leads, centre, scale, late = reading
        mean = centre[:, None] + scale[:, None] * leads
        return Forecast(mean, mean[..., None] + scale[:, None, None] * self._errors(state, late))

    def _network_kernel(self, lags: NDArray[np.int64], lead: int) -> NDArray[np.float64]:
        return np.zeros(lags.size)
