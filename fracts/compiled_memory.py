"""The linear memory over a single row, compiled by numba: the numbers of `fracts.recall`, in one call.

Compiled code is kept beside this file, or where `NUMBA_CACHE_DIR` says.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from fracts.compiled_arithmetic import INNER
from fracts.density import LEAST, SHARE_ROUNDING
from fracts.fast import in_parts
from fracts.scaling import FINEST, ROUNDING, SMALLEST, Array

_PART = 1024  # series that a core takes at once


class Row(NamedTuple):
    """A row of some series, and what it does to what is remembered."""

    values: Array  # (series,), NaN where missing
    time: float
    step: float  # from the row before
    kept: float  # of the sums
    decay: Any  # (modes,), of the modes
    slots_kept: Array  # (anchors,), of the slots
    phases: Any  # (anchors,), of the slots


def moved(
    row: Row, own: tuple[Any, ...], slots: tuple[Array, ...], gain: Array, slowest: float
) -> tuple[Array, Any, tuple[Array, ...], Array, bool]:
    """Sums (series, 4), modes (series, 2, modes) and slots after one row, its values around the centre, in
    units of the scale (series,), and whether all is `Density.unbroken`.

    own: sums, modes, and share and start of the density.  slots: of each anchor, (series, phases + 1, 2).
    gain: (modes,), of the modes.  slowest: of the timescales.
    """
    sums, modes, share, start = own
    n_series, after = len(sums), tuple([array.copy() for array in slots])
    found = np.empty(sums.shape), np.empty(modes.shape, modes.dtype), np.empty(n_series)
    places, full = after or (sums[None],), []  # compiled code takes no empty tuple

    def fill(begin: int, stop: int) -> None:
        full.append(
            _moved(begin, stop, *row, sums, modes, share, start, gain, slowest, *found[:2], places, found[2])
        )

    in_parts(fill, n_series, part=_PART)
    return found[0], found[1], after, found[2], all(full)


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
    horizon), errors (groups, horizon), and weights of the anchors beside the first (groups, horizon, others).
    """
    sums, horizon = own[0], learned[1].shape[1]
    found, leant_on = (np.empty((len(sums), horizon)), np.empty(len(sums))), len(slots)
    _medians(*own, slots or (sums[None],), leant_on, time, phases, place, *learned, *found)
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
    out: Any, after: Any, slots: Any, u: Any,
) -> bool:  # fmt: skip
    """The series from `begin` to `stop`: their sums into `out`, their modes into `after`, and `slots` as they
    were before are moved themselves."""
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
        u[at] = (value - centre) / scale
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
    sums: Any, modes: Any, share: Any, group: Any, slots: Any, leant_on: int, time: float, phases: Any,
    place: Any, turned: Any, errors: Any, blend: Any, out: Any, scales: Any,
) -> None:  # fmt: skip
    horizon, others = blend.shape[1:]
    base, around = np.empty(horizon), np.empty(horizon)
    for at in range(len(sums)):
        own = group[at] if len(turned) > 1 else 0
        offset, centre, scale = _read(sums[at])
        scales[at] = scale
        for k in range(horizon):
            out[at, k] = centre + scale * errors[own, k]
        for m in range(turned.shape[1]):
            mode = (modes[at, 0, m] - offset * modes[at, 1, m]) * (
                (1 + LEAST) / (share[at, place[m]] + LEAST)
            )
            for k in range(horizon):
                out[at, k] += mode.real * turned[own, m, k].real - mode.imag * turned[own, m, k].imag
        if not leant_on or math.isnan(sums[at, 3]):  # nothing was seen: all anchors are the centre
            continue
        base[:] = centre
        if leant_on > others:
            _said(slots[0], at, time, phases[0], base)
        around[:] = base
        for i in range(others):
            j = leant_on - others + i
            _blended(slots[j], at, time, phases[j], blend, own, i, base, around)
        for k in range(horizon):
            out[at, k] += around[k] - centre


@njit(**INNER)
def _said(slots: Any, at: int, time: float, season: int, out: Any) -> None:
    """`SeasonSlots.read` of one series that was seen."""
    phase: Any = np.int64(math.floor(time)) % season
    off = slots[at, -1, 0] if slots.shape[1] - 1 > season else 0.0
    for k in range(out.size):
        phase = phase + 1 if phase + 1 < season else 0
        if slots[at, phase, 1] != 0:
            out[k] = slots[at, phase, 0] / slots[at, phase, 1] + off
        else:
            out[k] = slots[at, season, 0] / slots[at, season, 1]


@njit(**INNER)
def _blended(
    slots: Any, at: int, time: float, season: int, blend: Any, own: int, i: int, base: Any, around: Any
) -> None:  # fmt: skip
    """Pull `around` from `base` towards what the slots say, as `blend` has it."""
    said = np.empty(base.size)
    _said(slots, at, time, season, said)
    for k in range(base.size):
        around[k] += blend[own, k, i] * (said[k] - base[k])
