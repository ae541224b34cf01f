"""The linear memory over a single row, compiled by numba: the numbers of `fracts.recall`, in one call.

Compiled code is kept beside this file, or where `NUMBA_CACHE_DIR` says.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from fracts.density import LEAST, SHARE_ROUNDING
from fracts.fast import in_parts
from fracts.scaling import FINEST, ROUNDING, SMALLEST, Array

_PART = 1024  # series that a core takes at once


def moved(
    sums: Array, modes: Any, values: Array, kept: float, decay: Any, gain: Array
) -> tuple[Array, Any, Array]:
    """Sums (series, 4) and modes (series, 2, modes) after one row, and its values around the centre, in units
    of the scale (series,).

    values: (series,), NaN where missing.  kept: of the sums.  decay, gain: (modes,), of the modes.
    """
    n_series = len(values)
    found = np.empty(sums.shape), np.empty(modes.shape, modes.dtype), np.empty(n_series)

    def fill(start: int, stop: int) -> None:
        _moved(start, stop, sums, modes, values, kept, decay, gain, *found)

    in_parts(fill, n_series, part=_PART)
    return found


def replaced(slots: Array, values: Array, phase: int, kept: float) -> Array:
    """`SeasonSlots.step`: slots (series, phases + 1, 2) after one row of that phase."""
    after = slots.copy()
    _replaced(after, values, phase, kept)
    return after


def medians(sums: Array, modes: Any, even: Any, learned: Any, group: Any, said: Array) -> tuple[Array, Array]:
    """Medians (series, horizon) and scale (series,) of the linear path, in the units of the series.

    even: shares of timescales (series, timescales), and of which each mode is (modes,).  learned: weights
    (groups, modes, horizon) and errors (groups, horizon).  group: (series,).  said: by the anchor, (series,
    horizon), or (0, 0) for none.
    """
    found = np.empty((len(sums), learned[1].shape[1])), np.empty(len(sums))
    _medians(sums, modes, *even, *learned, group, said, *found)
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
    start: int, stop: int, sums: Any, modes: Any, values: Any, kept: float, decay: Any, gain: Any,
    out: Any, after: Any, u: Any,
) -> None:  # fmt: skip
    """The series from `start` to `stop`: their sums into `out`, their modes into `after`."""
    for at in range(start, stop):
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


@njit(cache=True, error_model="numpy")
def unbroken(share: Any, start: Any, values: Any, time: float, modes: Any, slowest: float) -> bool:
    """`Density.unbroken`; slowest: of the timescales.  values: (series,)."""
    last = share.shape[1] - 1
    for at in range(len(values)):
        due = -math.expm1((start[at] - time - 1) / slowest)
        if math.isnan(values[at]) or abs(modes[at, 1, last].real - due) >= SHARE_ROUNDING * due:
            return False
        for m in range(last + 1):
            if share[at, m] != 1.0:
                return False
    return True


@njit(cache=True, error_model="numpy")
def _replaced(slots: Any, values: Any, phase: int, kept: float) -> None:
    for at in range(len(values)):
        if not math.isnan(values[at]):
            slots[at, phase, 0] = kept * slots[at, phase, 0] + values[at]
            slots[at, phase, 1] = kept * slots[at, phase, 1] + 1.0
            slots[at, -1, 0], slots[at, -1, 1] = values[at], 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def _medians(
    sums: Any, modes: Any, share: Any, place: Any, turned: Any, errors: Any, group: Any, said: Any,
    out: Any, scales: Any,
) -> None:  # fmt: skip
    horizon = turned.shape[2]
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
        for k in range(horizon if len(said) else 0):
            if not math.isnan(said[at, k]):
                out[at, k] += said[at, k] - centre


@njit(cache=True, nogil=True, error_model="numpy")
def said(slots: Any, phase: int, horizon: int) -> Any:
    """`SeasonSlots.read`.  phase: of now."""
    out, season = np.empty((len(slots), horizon)), slots.shape[1] - 1
    for at in range(len(slots)):
        for k in range(horizon):
            slot = slots[at, (phase + 1 + k) % season]
            if slot[1] == 0:
                slot = slots[at, season]
            out[at, k] = slot[0] / slot[1] if slot[1] != 0 else math.nan
    return out
