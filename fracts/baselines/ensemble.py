"""Several models as one: the mean, the median or a weighted mean of what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fracts.base import Forecaster
from fracts.baselines.machines import Inner, origin_of
from fracts.baselines.stacking import stacked
from fracts.forecasts import Forecast
from fracts.series import Panel, State
from fracts.timeline import Clock

Array = NDArray[np.float64]

_WAYS = ("mean", "median", "weighted")


class Ensemble(Forecaster):
    """The mean, the median or a weighted mean of several forecasters.

    Parameters
    ----------
    horizon : steps that `predict` gives unless told otherwise.
    models : forecasters, such as `[ETS(24), Theta(24)]`; they are cloned.
    how : "mean" or "median" of the models, or "weighted": the mean with the weights that would have been best
        on the last fifth of the history.

    Attributes
    ----------
    models_ : the models, with what they have learned.
    weights_ : (models,), not negative and of sum 1, the same for all series; None for the median.

    Notes
    -----
    Quantiles are combined at each level (Vincent's way: Lichtendahl, Grushka-Cockayne and Winkler, 2013,
    Management Science 59), so they cross as little as those of the models, and the point "mean" is the mean
    or the median of the models' means.

    "weighted" fits the models twice: to the first four fifths of the values, which leave the last fifth to be
    forecast, from 200 origins at most and at all leads up to `horizon`; and to all. The weights have the
    least squared error of the medians, each series in units of its mean absolute step: stacking (Breiman,
    1996, Machine Learning 24) with weights of sum 1 (Granger and Ramanathan, 1984, Journal of Forecasting
    3(2)). A history too short for that has equal weights, and a FitWarning.

    Examples
    --------
    >>> from fracts.baselines import Mean, Naive
    >>> Ensemble(2, [Naive(2), Mean(2)]).fit([1.0, 2.0, 6.0]).predict()
    array([4.5, 4.5])
    >>> y = np.random.default_rng(0).normal(size=200).cumsum()
    >>> Ensemble(1, [Naive(1), Mean(1)], how="weighted").fit(y).weights_.round(2)
    array([0.84, 0.16])
    """

    def __init__(self, horizon: int, models: Sequence[Forecaster], *, how: str = "mean") -> None:
        self.horizon = horizon
        self.models = models
        self.how = how

    @property
    def models_(self) -> list[Forecaster]:
        """The fitted models; NotFittedError before fit."""
        self._check_fitted()
        return [member.model for member in self._members]

    def _fit(self, panel: Panel, clock: Clock) -> None:
        if self.how not in _WAYS:
            raise ValueError(f"how must be 'mean', 'median' or 'weighted', got {self.how!r}.")
        if not isinstance(self.models, list | tuple) or not self.models:
            raise TypeError(f"models must be a list of forecasters, got {self.models!r}.")
        for model in self.models:
            if not isinstance(model, Forecaster):
                raise TypeError(f"models must hold forecasters such as Naive(24), got {model!r}.")
        self.weights_ = self._learned_weights(panel, clock)
        self._members = [Inner.fitted(model, panel, clock, self.series_ids_) for model in self.models]

    def _learned_weights(self, panel: Panel, clock: Clock) -> Array | None:
        if self.how == "median":
            return None
        if self.how == "mean":
            return np.full(len(self.models), 1 / len(self.models))
        return stacked(self.models, panel, clock, self.series_ids_, self.horizon)

    def _empty_state(self, n_series: int) -> State:
        ids, origin = tuple(self.series_ids_), origin_of(self._clock)
        return _joined([replace(member, ids=ids).empty(origin) for member in self._members])

    def _advance(self, state: State, panel: Panel) -> State:
        return _joined([member.advance(_part(state, k), panel) for k, member in enumerate(self._members)])

    def _forecast(self, state: State, horizon: int, quantiles: NDArray[np.float64]) -> Forecast:
        said = [
            member.forecast(_part(state, k), horizon, quantiles) for k, member in enumerate(self._members)
        ]
        mean = self._combined(np.stack([forecast.mean for forecast in said]))
        return Forecast(mean, self._combined(np.stack([forecast.quantiles for forecast in said])))

    def _combined(self, said: Array) -> Array:
        """What the ensemble says where its models say `said` (models, ...)."""
        if self.weights_ is None:
            return np.asarray(np.median(said, axis=0))
        return np.tensordot(self.weights_, said, axes=1)


def _joined(states: Sequence[State]) -> State:
    return {f"{k}:{name}": array for k, state in enumerate(states) for name, array in state.items()}


def _part(state: State, k: int) -> State:
    prefix = f"{k}:"
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
