"""Many series on a GPU: their state stays there from row to row, and comes back when it is asked for.

One idea: a fleet goes on from one state of numpy arrays, which the estimator keeps. While that very dict is
there the fleet is the truth; where another has taken its place the fleet is behind, and starts from that one
before its next row. So no door but the fast one has to know of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fracts.cohorts import together
from fracts.conformal import Calibrator
from fracts.fleet_step import MemoryStep, NetworkStep, Row, told_of
from fracts.linear import LinearPath
from fracts.plan import Plan
from fracts.recall import LinearMemory
from fracts.rulers import Counts
from fracts.series import Panel, State

# A GPU takes less time for a row of 200 than 16 cores do; from here on so much less that making a fleet pays
# within some hundred rows, even where each is forecast from.
LEAST_SERIES = 1000
_ROOM = 4  # times the state, which itself and all that a row computes take up less than


class Fleet:
    """The state of series that stand at the same time, on a `device`, without covariates.

    plan: the weights of the network, None for none.  state: to go on from, as the models keep it. What torch
    is told of the precision of float32 products when a fleet is made holds for it: with TF32 digits are lost.
    """

    def __init__(
        self, memory: LinearMemory, plan: Plan | None, state: State, device: torch.device | str
    ) -> None:
        self.memory, self.plan = memory, plan
        self.device = torch.device(device)
        self._turns = np.empty(0) if plan is None else plan.turns
        self._steps = MemoryStep(memory, self.device), plan and NetworkStep(plan, self.device)
        self._kinds = _kinds(memory, plan)
        self._tensors = {
            name: torch.from_numpy(np.empty(0, dtype)).new_empty(state[name].shape, device=self.device)
            for name, dtype in self._kinds.items()
        }
        like_all = told_of(memory, self._turns, 0.0, 0.0)
        on_gpu = self.device.type == "cuda"
        self._given = torch.zeros(like_all.size + len(state["time"]), dtype=torch.float64, pin_memory=on_gpu)
        self._numbers = self._given.to(self.device)
        sizes = memory.bank.tau.size, self._turns.size, len(memory.seasonal)
        self._row = Row.of(self._numbers, *sizes)
        self._stream = torch.cuda.Stream(self.device) if on_gpu else None
        self._taken = torch.cuda.Event() if on_gpu else None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._read: State | None = None
        if on_gpu:
            self._capture(state)
        self.load(state)

    def _capture(self, state: State) -> None:
        """Record a row once; what it moves in being tried is loaded anew."""
        self.load(state)
        with self._here():
            self._move()
        torch.cuda.synchronize(self.device)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=self._stream, capture_error_mode="thread_local"):
            self._move()

    @contextmanager
    def _here(self) -> Iterator[None]:
        """On the stream of this fleet, and without gradients."""
        with torch.no_grad(), torch.cuda.stream(self._stream):
            yield

    @torch.no_grad()
    def _move(self) -> None:
        memory, network = self._steps
        u = memory(self._tensors, self._row)
        if network is not None:
            network(self._tensors, self._row, u)

    def load(self, state: State) -> None:
        """Go on from `state`."""
        self._start, self._moved, self._read = {}, False, None  # of no state, should this break off
        with self._here():
            for name, tensor in self._tensors.items():
                tensor.copy_(torch.tensor(state[name]))
        self._start, self._time = state, state["time"].item(0)

    def step(self, values: NDArray[np.float64], time: float) -> None:
        """Move on by a row of `values` (series,), NaN where missing, at a `time` in steps."""
        gap = 0.0 if math.isnan(self._time) else time - self._time
        told = told_of(self.memory, self._turns, time, gap)
        if self._taken is not None:
            self._taken.synchronize()  # the row before has left
        given = self._given.numpy()
        given[: told.size], given[told.size :] = told, values
        with self._here():
            self._numbers.copy_(self._given, non_blocking=True)
            if self._taken is None or self._graph is None:
                self._move()
            else:
                self._taken.record()
                self._graph.replay()
        self._time, self._moved, self._read = time, True, None

    def fits(self, memory: LinearMemory, plan: Plan | None, device: torch.device, n_series: int) -> bool:
        """Whether this is one of so many series, for these weights, there."""
        own = self.memory is memory and self.plan is plan and self.device == device
        return own and len(self._row.values) == n_series

    def goes_on_from(self, state: State) -> bool:
        """Whether `state` is the one that was gone on from."""
        return self._start is state

    def moved_on_from(self, state: State) -> bool:
        """Whether that, and a row has come since."""
        return self._start is state and self._moved

    def fetched(self) -> State:
        """The state after the last row, which is gone on from."""
        if self._moved:
            self._start, self._moved = self._start | self._arrays(self._tensors), False
        return self._start

    def readable(self) -> State:
        """As much of it as a forecast reads: not the memories of the layers, which are most of it."""
        layers = () if self.plan is None else self.plan.names
        if self._read is None:
            moved = self._arrays(self._tensors.keys() - layers) if self._moved else {}
            self._read = {k: moved.get(k, array) for k, array in self._start.items() if k not in layers}
        return self._read

    def _arrays(self, names: Iterable[str]) -> State:
        """Arrays of `names`, of their own memory, and of the time."""
        arrays: State = {"time": np.full_like(self._start["time"], self._time)}
        with self._here():
            for name in names:
                arrays[name] = np.empty(tuple(self._tensors[name].shape), self._kinds[name])
                torch.from_numpy(arrays[name]).copy_(self._tensors[name])
        return arrays


def _kinds(memory: LinearMemory, plan: Plan | None) -> dict[str, np.dtype[Any]]:
    """The dtypes of what a row moves, but for the time."""
    double = np.dtype(np.float64)
    kinds: dict[str, np.dtype[Any]] = dict.fromkeys(
        ["sums", "start", "share", *(name for name, _ in memory.seasonal)], double
    )
    kinds["modes"] = np.dtype(np.complex128)
    for name in () if plan is None else (*plan.names, "features"):
        kinds[name] = double if plan is None or name.endswith("_tail") else plan.dtype
    return kinds


def device_of(asked: str) -> str:
    """The device that the parameter `device` asks for; ValueError for a GPU that is not there."""
    if asked == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if asked.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(f"device={asked!r}, but torch finds no CUDA GPU. Use device='cpu' or device='auto'.")
    return asked


def gpu_of(asked: str) -> torch.device | None:
    """The GPU that the parameter `device` asks for, where there is one."""
    if asked == "cpu" or not torch.cuda.is_available():
        return None
    return torch.device("cuda" if asked == "auto" else asked)


def has_room(device: torch.device, state: State) -> bool:
    """Whether the series of `state` can be stepped there."""
    if device.type == "cpu":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return _ROOM * sum(array.nbytes for array in state.values()) < free


class OnDevice:
    """Mixin of models whose many series a GPU steps, before `Forecaster`: it has a say in their state."""

    device: str
    horizon: int
    _path: LinearPath
    _plan: Plan | None
    _calibrator: Calibrator | None
    _counts: Counts
    _fleet: Fleet | None = None

    @property
    def _state(self) -> State:
        if "_state" not in vars(self):
            raise AttributeError("_state")
        state: State = vars(self)["_state"]
        if self._fleet is not None and self._fleet.moved_on_from(state):
            state = vars(self)["_state"] = self._fleet.fetched()
        return state

    @_state.setter
    def _state(self, state: State) -> None:
        vars(self)["_state"] = state

    @_state.deleter
    def _state(self) -> None:
        del vars(self)["_state"]
        vars(self).pop("_fleet", None)

    def __getstate__(self) -> dict[str, Any]:
        own = {"_state": self._state} if "_state" in vars(self) else {}
        return {name: value for name, value in vars(self).items() if name != "_fleet"} | own

    def _at_hand(self, steps: int) -> State:
        if self._fleet is None or steps > self.horizon:  # paths move a state
            return self._state
        ahead = self._fleet.moved_on_from(vars(self)["_state"])
        return self._fleet.readable() if ahead else self._state

    def _follow(self, row: Panel, counts: Counts) -> None:
        if len(counts) < LEAST_SERIES or (fleet := self._fleet_for(row, counts)) is None:
            super()._follow(row, counts)  # type: ignore[misc]
            return
        fleet.step(row.values[:, 0], row.times.item())
        self._counts = counts

    def _fleet_for(self, row: Panel, counts: Counts) -> Fleet | None:
        """The fleet, where the series stand now, that steps a `row` to `counts`; None where the CPU does:
        with covariates, adaptive intervals or smoothing, and for series at different times."""
        device = gpu_of(self.device)
        if device is None or self._calibrator is not None or row.covariates.size or not together(counts):
            return None
        if self._path.memory.smoothed:
            return None
        model = self._path.memory, self._plan, device, len(counts)
        if self._fleet is None or not self._fleet.fits(*model):
            state, self._fleet = self._state, None
            if not has_room(device, state):
                return None
            self._fleet = Fleet(*model[:2], state, device)
        elif not self._fleet.goes_on_from(vars(self)["_state"]):
            self._fleet.load(vars(self)["_state"])
        return self._fleet
