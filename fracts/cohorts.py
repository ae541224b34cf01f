"""Cohorts: series that stand at the same time, and how a panel with ragged ends is passed over.

One idea: a model moves and reads all its series at one time. Where the series of a panel end at different
stamps they are split into cohorts of one time each; a state is a dict of arrays with the series first, so a
cohort's share of it is a selection, and is put back after the move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fracts.forecasts import Forecast
from fracts.series import Panel, State

Ints = NDArray[np.int64]


def together(counts: Ints) -> bool:
    """Whether all series stand at the same of `counts` (series,)."""
    return len(counts) == 1 or bool((counts == counts[0]).all())


def cohorts(counts: Ints) -> Iterator[tuple[int, Ints]]:
    """Each of the `counts` (series,) that occur, with the series that stand there."""
    for count in np.unique(counts):
        yield int(count), np.flatnonzero(counts == count)


def taken(state: State, series: Ints) -> State:
    """The share of `series` in `state`."""
    return {name: array[series] for name, array in state.items()}


def joined(parts: Sequence[tuple[Ints, State]]) -> State:
    """The state whose shares of some series each are `parts`."""
    order = np.argsort(np.concatenate([series for series, _ in parts]))
    return {name: np.concatenate([state[name] for _, state in parts])[order] for name in parts[0][1]}


def advanced(
    advance: Callable[[State, Panel], State], state: State, panel: Panel, now: Ints, begin: Ints, end: Ints
) -> State:
    """The state after the rows `begin` to `end` (series,) of each series, the end left out.

    now: (series,), the counts that the series stand at; equal ones have equal `begin`. A series whose `end`
    is its `begin` stays where it is. `advance` is the model's; `state` is left alone.
    """
    if together(now) and together(end) and end[0] > begin[0]:
        return advance(state, panel.part(int(begin[0]), int(end[0])))
    moved = {name: array.copy() for name, array in state.items()}
    for _, cohort in cohorts(now):
        start = int(begin[cohort[0]])
        for stop in np.unique(end[cohort]):
            alive = cohort[end[cohort] >= stop]
            if stop > start:
                after = advance(taken(moved, alive), panel.of(alive).part(start, int(stop)))
                for name, array in after.items():
                    moved[name] = _replaced(moved[name], alive, array)
                start = int(stop)
    return moved


def forecast(read: Callable[[State], Forecast], state: State, counts: Ints) -> Forecast:
    """The forecast `read` from `state`, every series from its own time; counts: (series,), of those times."""
    if together(counts):
        return read(state)
    parts = [(series, read(taken(state, series))) for _, series in cohorts(counts)]
    order = np.argsort(np.concatenate([series for series, _ in parts]))
    mean = np.concatenate([part.mean for _, part in parts])[order]
    quantiles = np.concatenate([part.quantiles for _, part in parts])[order]
    return Forecast(mean, quantiles)


def _replaced(whole: NDArray[np.generic], series: Ints, part: NDArray[np.generic]) -> NDArray[np.generic]:
    whole = whole.astype(part.dtype, copy=False)
    whole[series] = part
    return whole
