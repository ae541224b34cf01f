"""A fixed seasonal profile around another model: taken off what comes in, put back on what goes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fracts.forecasts import Forecast
from fracts.records import record
from fracts.series import Panel, State

Array = NDArray[np.float64]


@record
@dataclass(frozen=True)
class Profiled:
    """A machine of the series without its seasons.

    Parameters
    ----------
    inner : the machine.
    profiles : one (series, season length) for each season; the first place is a multiple of the season length
        on the calendar, so another history finds its own. They add up.
    multiplicative : (series,), whether values are divided by their profile, of which there is one then.
    """

    inner: Any
    profiles: tuple[Array, ...]
    multiplicative: NDArray[np.bool_]

    @classmethod
    def stack(cls, machines: Sequence[Profiled]) -> Profiled:
        """The machines of several series as one."""
        inner = type(machines[0].inner).stack([machine.inner for machine in machines])
        profiles = zip(*(machine.profiles for machine in machines), strict=True)
        multiplicative = np.concatenate([machine.multiplicative for machine in machines])
        return cls(inner, tuple(np.concatenate(p) for p in profiles), multiplicative)

    def take(self, places: NDArray[np.int64]) -> Profiled:
        """The models at `places`, one for each."""
        profiles = tuple(profile[places] for profile in self.profiles)
        return Profiled(self.inner.take(places), profiles, self.multiplicative[places])

    def empty(self, origin: int) -> State:
        """The state before any row."""
        size = len(self.multiplicative)
        start = {"origin": np.full(size, origin), "now": np.full(size, np.nan)}
        return {**start, **{f"inner_{name}": array for name, array in self.inner.empty(origin).items()}}

    def advance(self, state: State, panel: Panel) -> State:
        """The state after the rows of `panel`."""
        moved = self.inner.advance(_inner(state), self.without(panel, state["origin"]))
        now = np.full_like(state["now"], panel.times[-1])
        return {
            "origin": state["origin"],
            "now": now,
            **{f"inner_{name}": array for name, array in moved.items()},
        }

    def without(self, panel: Panel, origin: NDArray[np.int64]) -> Panel:
        """`panel` with the seasons taken off."""
        season = self._at(origin, panel.times)
        factor = self.multiplicative[:, None]
        scaled = panel.values / np.where(factor, season, 1.0)
        return Panel(np.where(factor, scaled, panel.values - season), panel.times)

    def forecast(self, state: State, horizon: int, levels: Array) -> Forecast:
        """The next `horizon` steps at quantile `levels`."""
        said = self.inner.forecast(_inner(state), horizon, levels)
        times = state["now"][0] + np.arange(1.0, horizon + 1)
        season, factor = self._at(state["origin"], times), self.multiplicative[:, None]
        means = np.where(factor, said.mean * season, said.mean + season)
        wide = season[..., None]
        quantiles = np.where(factor[..., None], said.quantiles * wide, said.quantiles + wide)
        return Forecast(means, quantiles)

    def _at(self, origin: NDArray[np.int64], times: Array) -> Array:
        """(series, rows): the seasons at `times`."""
        steps = origin[:, None] + np.rint(times).astype(np.int64)
        rows = np.arange(len(origin))[:, None]
        total: Array = np.sum([profile[rows, steps % profile.shape[1]] for profile in self.profiles], axis=0)
        return total


def by_place(season: Array, length: int, origin: int) -> Array:
    """(length,): the last cycle of `season` (time,), which starts at `origin`, in order of the calendar."""
    profile = np.empty(length)
    steps = np.arange(len(season) - length, len(season))
    profile[(origin + steps) % length] = season[steps]
    return profile


def without_holes(values: Array) -> Array:
    """`values` (time,), holes on the straight line between their neighbours."""
    steps, known = np.arange(len(values)), ~np.isnan(values)
    return np.asarray(np.interp(steps, steps[known], values[known]))


def _inner(state: State) -> State:
    return {name.removeprefix("inner_"): array for name, array in state.items() if name.startswith("inner_")}
