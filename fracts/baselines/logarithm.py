"""A model of the logarithm: multiplicative errors and seasons, from a linear Gaussian one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fracts.baselines.statespace import StateSpace
from fracts.forecasts import Forecast
from fracts.records import record
from fracts.series import Panel, State

Array = NDArray[np.float64]


@record
@dataclass(frozen=True)
class Logarithm:
    """`space` for the logarithm of the series, which counts as `floor` (series,) where it is lower."""

    space: StateSpace
    floor: Array

    @classmethod
    def stack(cls, machines: Sequence[Logarithm]) -> Logarithm:
        """The machines of several series as one."""
        floors = np.concatenate([machine.floor for machine in machines])
        return cls(StateSpace.stack([machine.space for machine in machines]), floors)

    def take(self, places: NDArray[np.int64]) -> Logarithm:
        """The models at `places`, one for each."""
        return Logarithm(self.space.take(places), self.floor[places])

    def empty(self, origin: int) -> State:
        """The state before any row."""
        return self.space.empty(origin)

    def advance(self, state: State, panel: Panel) -> State:
        """The state after the rows of `panel`."""
        return self.space.advance(
            state, Panel(np.log(np.maximum(panel.values, self.floor[:, None])), panel.times)
        )

    def forecast(self, state: State, horizon: int, levels: Array) -> Forecast:
        """The next `horizon` steps, log-normal, at quantile `levels`."""
        means, spreads = self.space.moments(state, horizon)
        quantiles = np.exp(means[..., None] + spreads[..., None] * ndtri(levels))
        return Forecast(np.exp(means + spreads**2 / 2), quantiles)
