"""Several models as one: the mean or the median of what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fracts.base import Forecaster
from fracts.baselines.machines import Inner, origin_of
from fracts.forecasts import Forecast
from fracts.series import Panel, State
from fracts.timeline import Clock

_COMBINED: dict[str, Any] = {"mean": np.mean, "median": np.median}


class Ensemble(Forecaster):
    """The mean or the median of several forecasters.

    Parameters
    ----------
    horizon : steps that `predict` gives unless told otherwise.
    models : forecasters, such as `[ETS(24), Theta(24)]`; they are cloned.
    how : "mean" or "median" of the models.

    Attributes
    ----------
    models_ : the models, with what they have learned.

    Notes
    -----
    Quantiles are combined at each level (Vincent's way: Lichtendahl, Grushka-Cockayne and Winkler, 2013,
    Management Science 59), so they cross as little as those of the models, and the point "mean" is the mean
    or the median of the models' means.

    Examples
    --------
    >>> from fracts.baselines import Mean, Naive
    >>> Ensemble(2, [Naive(2), Mean(2)]).fit([1.0, 2.0, 6.0]).predict()
    array([4.5, 4.5])
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
        if self.how not in _COMBINED:
            raise ValueError(f"how must be 'mean' or 'median', got {self.how!r}.")
        if not isinstance(self.models, list | tuple) or not self.models:
            raise TypeError(f"models must be a list of forecasters, got {self.models!r}.")
        for model in self.models:
            if not isinstance(model, Forecaster):
                raise TypeError(f"models must hold forecasters such as Naive(24), got {model!r}.")
        self._members = [Inner.fitted(model, panel, clock, self.series_ids_) for model in self.models]

    def _empty_state(self, n_series: int) -> State:
        ids, origin = tuple(self.series_ids_), origin_of(self._clock)
        return _joined([replace(member, ids=ids).empty(origin) for member in self._members])

    def _advance(self, state: State, panel: Panel) -> State:
        return _joined([member.advance(_part(state, k), panel) for k, member in enumerate(self._members)])

    def _forecast(self, state: State, horizon: int, quantiles: NDArray[np.float64]) -> Forecast:
        said = [
            member.forecast(_part(state, k), horizon, quantiles) for k, member in enumerate(self._members)
        ]
        combined = _COMBINED[self.how]
        mean = combined([forecast.mean for forecast in said], axis=0)
        return Forecast(mean, combined([forecast.quantiles for forecast in said], axis=0))


def _joined(states: Sequence[State]) -> State:
    return {f"{k}:{name}": array for k, state in enumerate(states) for name, array in state.items()}


def _part(state: State, k: int) -> State:
    prefix = f"{k}:"
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
