"""The linear memory over a single row, compiled by numba: the numbers of `fracts.recall`, in one call.

Compiled code is kept beside this file, or where `NUMBA_CACHE_DIR` says.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from fracts.compiled_arithmetic import INNER
from fracts.density import LEAST, SHARE_ROUNDING
from fracts.fast import in_parts
from fracts.scaling import FINEST, ROUNDING, SMALLEST, Array
from fracts.series import State

_PART = 1024  # series that a core takes at once


def moved(memory: Any, state: State, values: Array, time: float, step: float) -> tuple[State, Array, bool]:
    """What one row changes in the `state` of a `LinearMemory`, its values (series, 1) around the centre, in
    units of the scale, and whether all is `Density.unbroken`.

    Smoothers are left out.  values: (series,), NaN where missing.  step: from the row before.
    """
    bank, before, n_series = memory.bank, state["modes"], len(values)
    sums, modes = np.empty((n_series, 4)), np.empty(before.shape, before.dtype)
    times, u = np.empty(n_series), np.empty((n_series, 1))
    after = {name: state[name].copy() for name, _ in memory.seasonal}
    slots = tuple(after.values()) or (sums[None],)  # compiled code takes no empty tuple
    moves = values, time, step, memory.scaler.kept(step), bank.decay(step), memory.slots_kept, memory.phases
    own = state["sums"], before, state["share"], state["start"], bank.gain, bank.timescales.item(-1)

    def fill(begin: int, stop: int) -> bool:
        return bool(_moved(begin, stop, *moves, *own, times, sums, modes, slots, u))

    full = in_parts(fill, n_series, part=_PART)
    after["time"], after["sums"], after["modes"] = times, sums, modes
    return after, u, all(full)


def medians(
    own: tuple[Any, ...],
    slots: tuple[Array, ...],
    time: float,
    phases: Any,
    place: Any,
    learned: tuple[Any, ...],
) -> tuple[Array, Array]:
    """Medians (series, horizon) and scale (series,) of the linear path, in the units of the series.

    own: sums, modes, share of the density, and group.  slots: of the anchors that are not the centre.
    phases: of each of them.  place: (modes,), of the timescale of each.  learned: weights (groups, modes,
    horizon), errors (groups, horizon), and weights of the slots (anchors, groups, horizon).
    """
    sums, horizon = own[0], learned[1].shape[1]
    found = np.empty((len(sums), horizon)), np.empty(len(sums))
    _medians(*own, slots or (sums[None],), time, phases, place, *learned, *found)
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _read(sums: Any) -> Any:
    """`Scaler.centred` of one series."""
    weight, origin = max(sums[0], SMALLEST), sums[3]
    offset = sums[1] / weight
    centre = 0.0 if math.isnan(origin) else origin + offset
    floor = ROUNDING * abs(offset) + FINEST * abs(centre) + SMALLEST
    return offset, centre, max(math.sqrt(max(sums[2] / weight - offset * offset, 0.0)), floor)


@njit(cache=True, nogil=True, error_model="numpy")
def _moved(
    begin: int, stop: int, values: Any, time: float, step: float, kept: float, decay: Any, slots_kept: Any,
    phases: Any, sums: Any, modes: Any, share: Any, start: Any, gain: Any, slowest: float,
    now: Any, out: Any, after: Any, slots: Any, u: Any,
) -> bool:  # fmt: skip
    """The series from `begin` to `stop`: their time into `now`, their sums into `out`, their modes into
    `after`, and `slots` as they were before are moved themselves."""
    last, full = share.shape[1] - 1, step == 1.0
    for at in range(begin, stop):
        value, origin = values[at], sums[at, 3]
        seen = 0.0 if math.isnan(value) else 1.0
        offset = 0.0
        if seen:
            origin = value if math.isnan(origin) else origin
            offset = value - origin
        out[at, 0] = sums[at, 0] * kept + seen
        out[at, 1] = sums[at, 1] * kept + offset
        out[at, 2] = sums[at, 2] * kept + offset * offset
        out[at, 3] = origin
        for m in range(gain.size):
            after[at, 0, m] = modes[at, 0, m] * decay[m] + offset * gain[m]
            after[at, 1, m] = modes[at, 1, m] * decay[m] + seen * gain[m]
        _, centre, scale = _read(out[at])
        now[at], u[at, 0] = time, (value - centre) / scale
        if full:
            due = -math.expm1((start[at] - time - 1) / slowest)
            full = seen == 1.0 and abs(after[at, 1, last].real - due) < SHARE_ROUNDING * due
            for m in range(last + 1):
                full = full and share[at, m] == 1.0
    for i in range(slots_kept.size):
        _replaced(slots[i], begin, stop, values, time, slots_kept[i], phases[i])
    return full


@njit(**INNER)
def _replaced(
    slots: Any, begin: int, stop: int, values: Any, time: float, kept: float, season: int
) -> None:  # fmt: skip
    """`SeasonSlots.step`."""
    phase, moved = np.int64(math.floor(time)) % season, slots.shape[1] - 1 > season
    for at in range(begin, stop):
        if not math.isnan(values[at]):
            if moved:
                weight = slots[at, phase, 1]
                slots[at, -1, 0] = values[at] - slots[at, phase, 0] / weight if weight != 0 else 0.0
                slots[at, -1, 1] = 1.0
            slots[at, phase, 0] = kept * slots[at, phase, 0] + values[at]
            slots[at, phase, 1] = kept * slots[at, phase, 1] + 1.0
            slots[at, season, 0], slots[at, season, 1] = values[at], 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def _medians(
    sums: Any, modes: Any, share: Any, group: Any, slots: Any, time: float, phases: Any, place: Any,
    turned: Any, errors: Any, leaning: Any, out: Any, scales: Any,
) -> None:  # fmt: skip
    for at in range(len(sums)):
        own = group[at] if len(turned) > 1 else 0
        offset, centre, scale = _read(sums[at])
        scales[at] = scale
        for k in range(out.shape[1]):
            out[at, k] = centre + scale * errors[own, k]
        for m in range(turned.shape[1]):
            mode = (modes[at, 0, m] - offset * modes[at, 1, m]) * (
                (1 + LEAST) / (share[at, place[m]] + LEAST)
            )
            for k in range(out.shape[1]):
                out[at, k] += mode.real * turned[own, m, k].real - mode.imag * turned[own, m, k].imag
        if not math.isnan(sums[at, 3]):  # else nothing was seen: all anchors are the centre
            for i in range(len(leaning)):
                _leant(slots[i], at, time, phases[i], leaning[i, own], centre, out[at])


@njit(**INNER)
def _leant(
    slots: Any, at: int, time: float, season: int, weights: Any, centre: float, out: Any
) -> None:  # fmt: skip
    """Add what the slots of a series that was seen say around the centre, at its weight: of
    `SeasonSlots.read`."""
    phase: Any = np.int64(math.floor(time)) % season
    off = slots[at, -1, 0] if slots.shape[1] - 1 > season else 0.0
    for k in range(out.size):
        phase = phase + 1 if phase + 1 < season else 0
        if slots[at, phase, 1] != 0:
            out[k] += weights[k] * (slots[at, phase, 0] / slots[at, phase, 1] + off - centre)
        else:
            out[k] += weights[k] * (slots[at, season, 0] / slots[at, season, 1] - centre)
