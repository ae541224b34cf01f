"""What makes single rows fast: compiled code where numba is installed, and the cores for many series.

One idea: each step of a single row is written twice, in numpy and compiled (`compiled_memory`,
`compiled_smoothing`, `compiled_network`), and what calls it asks here which to take. The numbers are the
same. Many series are stepped in parts of one size, so that they are the same on any number of cores as well.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fracts.series import Panel, State

PART = 64  # series stepped at once

Told = TypeVar("Told")


@lru_cache
def compiles() -> bool:
    """Whether single rows are stepped by compiled code."""
    return find_spec("numba") is not None


@lru_cache
def compiled_memory() -> Any:
    """The room of that name, imported at the first step."""
    return import_module("fracts.compiled_memory")


@lru_cache
def compiled_smoothing() -> Any:
    """The room of that name, imported at the first row."""
    return import_module("fracts.compiled_smoothing")


@lru_cache
def compiled_network() -> Any:
    """The room of that name, imported at the first step."""
    return import_module("fracts.compiled_network")


def of_each_kind(arrays: Sequence[NDArray[Any]]) -> tuple[tuple[NDArray[Any], ...], ...]:
    """The `arrays` of all layers, modes first, then holds, then tails: of each kind those of all layers."""
    n = len(arrays) // 3
    return tuple(arrays[:n]), tuple(arrays[n : 2 * n]), tuple(arrays[2 * n :])


def by_parts(step: Callable[[State, Panel], State], state: State, panel: Panel) -> State:
    """`step` of all series, which have nothing to do with each other, a part of them at a time.

    Compiled code is handed all of them: it takes the cores itself, where its loops are.
    """
    n_series = len(panel.values)
    if n_series <= PART or compiles():
        return step(state, panel)

    def stepped(start: int, stop: int) -> State:
        part = slice(start, stop)
        own = {name: array[part] for name, array in state.items()}
        return step(own, Panel(panel.values[part], panel.times, panel.covariates[part]))

    first = stepped(0, PART)
    whole = {name: np.empty((n_series, *array.shape[1:]), array.dtype) for name, array in first.items()}

    def keep(start: int, arrays: State) -> None:
        for name, array in arrays.items():
            whole[name][start : start + PART] = array

    keep(0, first)
    in_parts(lambda start, stop: keep(start, stepped(start, stop)), n_series, begin=PART)
    return whole


def in_parts(fill: Callable[[int, int], Told], n_series: int, begin: int = 0, part: int = PART) -> list[Told]:
    """`fill` for the series from one number up to another, `part` of them at once, until all from `begin` are
    filled, and what it says of each part."""
    if n_series - begin <= part:
        return [fill(begin, n_series)]
    with ThreadPoolExecutor(_cores()) as pool:
        return list(pool.map(lambda at: fill(at, min(at + part, n_series)), range(begin, n_series, part)))


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
