"""Fitted models as machines on arrays, so that a panel may have several kinds of them.

One idea: what a fitted model does once its numbers are known is the same for all: start a state, advance it,
forecast from it. A `Partition` shares the series out among machines of different kinds.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from fracts.base import Forecaster
from fracts.checks import group_of
from fracts.covariates import Covariates
from fracts.forecasts import Forecast
from fracts.records import record
from fracts.series import Panel, State
from fracts.timeline import Clock

Array = NDArray[np.float64]


class Machine(Protocol):
    """Fitted models of several series, run on arrays whose first axis is the series."""

    @classmethod
    def stack(cls, machines: Sequence[Any]) -> Self:
        """The machines of several series, all of this kind, as one."""

    def take(self, places: NDArray[np.int64]) -> Self:
        """The models at `places`, one for each."""

    def empty(self, origin: int) -> State:
        """The state before any row; time 0 is the step `origin` of the calendar."""

    def advance(self, state: State, panel: Panel) -> State:
        """The state after the rows of `panel`."""

    def forecast(self, state: State, horizon: int, levels: Array) -> Forecast:
        """The next `horizon` steps at ascending quantile `levels`."""


@record
@dataclass(frozen=True)
class Partition:
    """Machines that share out the series: `part` (series,) says which of `machines` each belongs to."""

    machines: tuple[Machine, ...]
    part: NDArray[np.int64]

    @classmethod
    def of(cls, machines: Sequence[Any]) -> Partition:
        """One machine for each series, those of a kind stacked."""
        kinds = list(dict.fromkeys(type(machine) for machine in machines))
        stacks = [kind.stack([m for m in machines if type(m) is kind]) for kind in kinds]
        return cls(tuple(stacks), np.array([kinds.index(type(m)) for m in machines], dtype=np.int64))

    def take(self, places: NDArray[np.int64]) -> Partition:
        """The models at `places`, one for each."""
        if len(places) == len(self.part) and (places == np.arange(len(places))).all():
            return self
        within = np.empty(len(self.part), dtype=np.int64)
        for k in range(len(self.machines)):
            within[self.part == k] = np.arange(np.count_nonzero(self.part == k))
        part = self.part[places]
        machines = [m.take(within[places[part == k]]) for k, m in enumerate(self.machines)]
        return Partition(tuple(machines), part)

    def empty(self, origin: int) -> State:
        """The state before any row."""
        return self._joined([machine.empty(origin) for machine in self.machines])

    def advance(self, state: State, panel: Panel) -> State:
        """The state after the rows of `panel`."""
        moved = []
        for k, machine in enumerate(self.machines):
            rows = self.part == k
            own = self._own(state, k)
            moved.append(machine.advance(own, Panel(panel.values[rows], panel.times)) if rows.any() else own)
        return self._joined(moved)

    def forecast(self, state: State, horizon: int, levels: Array) -> Forecast:
        """The next `horizon` steps at `levels`."""
        mean = np.empty((len(self.part), horizon))
        quantiles = np.empty((len(self.part), horizon, len(levels)))
        for k, machine in enumerate(self.machines):
            if (rows := self.part == k).any():
                said = machine.forecast(self._own(state, k), horizon, levels)
                mean[rows], quantiles[rows] = said.mean, said.quantiles
        return Forecast(mean, quantiles)

    def _own(self, state: State, k: int) -> State:
        """The rows and arrays of machine k in the state of all."""
        if len(self.machines) == 1:
            return state
        return {
            name.partition(":")[2]: array[self.part == k]
            for name, array in state.items()
            if name.startswith(f"{k}:")
        }

    def _joined(self, states: Sequence[State]) -> State:
        """States of the machines as one, rows of the others zero."""
        if len(states) == 1:
            return states[0]
        joined: State = {}
        for k, state in enumerate(states):
            for name, array in state.items():
                whole = np.zeros((len(self.part), *array.shape[1:]), dtype=array.dtype)
                whole[self.part == k] = array
                joined[f"{k}:{name}"] = whole
        return joined


@record
@dataclass(frozen=True)
class Inner:
    """A forecaster as a machine; it has learned from the series `ids`."""

    model: Any
    ids: tuple[Any, ...]
    clock: Clock

    @classmethod
    def fitted(cls, model: Forecaster, panel: Panel, clock: Clock, ids: Sequence[Any]) -> Inner:
        """A clone of `model`, fitted to `panel`; TypeError where it has covariates or a scale of its own."""
        for name in ("past_only", "transform", "lower"):
            if (value := getattr(model, name)) not in ((), None):
                raise TypeError(
                    f"{type(model).__name__} inside another model has {name}={value!r}, which it has only by "
                    "itself. Leave it out, or change the scale of y before fit."
                )
        fresh: Any = clone(model)
        given = set(vars(fresh))
        fresh.series_ids_, fresh._clock, fresh._covariates = list(ids), clock, Covariates()
        fresh._fit(panel, clock)
        fresh._learned = [name for name in vars(fresh) if name not in given]
        return cls(fresh, tuple(ids), clock)

    @classmethod
    def stack(cls, machines: Sequence[Inner]) -> Inner:
        return replace(machines[0], ids=tuple(name for machine in machines for name in machine.ids))

    def take(self, places: NDArray[np.int64]) -> Inner:
        return Inner(self.model, tuple(self.ids[place] for place in places), self.clock)

    def empty(self, origin: int) -> State:
        model = copy.copy(self.model)
        model.series_ids_ = list(self.ids)
        model._clock = replace(self.clock, origin=origin * self.clock.step)
        state: State = model._empty_state(len(self.ids))
        return state

    def advance(self, state: State, panel: Panel) -> State:
        moved: State = self.model._advance(state, panel)
        return moved

    def forecast(self, state: State, horizon: int, levels: Array) -> Forecast:
        nothing_ahead = np.empty((len(self.ids), max(horizon, self.model.horizon), 0))
        said: Forecast = self.model._forecast(state | {"ahead": nothing_ahead}, horizon, levels)
        return said


def origin_of(clock: Clock) -> int:
    """The step of the calendar that is time 0 of `clock`."""
    return clock.origin // clock.step


class OnMachine:
    """Mixin of forecasters whose fit leaves a machine: `_machine`, and `_fitted_ids` that it has models of.

    Goes before `Forecaster` among the bases.
    """

    series_ids_: list[Any]
    _clock: Clock
    _machine: Any
    _fitted_ids: list[Any]

    def _empty_state(self, n_series: int) -> State:
        places = range(n_series) if self.series_ids_ == self._fitted_ids else self._places_of_ids()
        group = np.array(list(places), dtype=np.int64)
        return {"group": group, **self._machine.take(group).empty(origin_of(self._clock))}

    def _places_of_ids(self) -> list[int]:
        if len(self._fitted_ids) == 1:
            return [0] * len(self.series_ids_)
        return [group_of(name, self._fitted_ids) for name in self.series_ids_]

    def _advance(self, state: State, panel: Panel) -> State:
        machine = self._machine.take(state["group"])
        return {"group": state["group"], **machine.advance(_without_group(state), panel)}

    def _forecast(self, state: State, horizon: int, quantiles: Array) -> Forecast:
        machine: Machine = self._machine.take(state["group"])
        return machine.forecast(_without_group(state), horizon, quantiles)


def _without_group(state: State) -> State:
    """The state of the machine alone: it has no covariates, and knows not whose model a series has."""
    return {name: array for name, array in state.items() if name not in ("group", "ahead")}
