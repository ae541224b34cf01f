"""The linear memory over a single row, compiled by numba: the numbers of `fracts.recall`, in one call.

Compiled code is kept beside this file, or where `NUMBA_CACHE_DIR` says.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from fracts.fast import in_parts
from fracts.scaling import FINEST, ROUNDING, SMALLEST, Array

_PART = 1024  # series that a core takes at once


def moved(
    sums: Array, modes: Any, values: Array, kept: float, decay: Any, gain: Array
) -> tuple[Array, Any, Array, Array]:
    """Sums (series, 4) and modes (series, 2, modes) after one row, centre and scale (series,).

    values: (series,), NaN where missing.  kept: of the sums.  decay, gain: (modes,), of the modes.
    """
    n_series = len(values)
    found = np.empty_like(sums), np.empty_like(modes), np.empty(n_series), np.empty(n_series)

    def fill(start: int, stop: int) -> None:
        _moved(start, stop, sums, modes, values, kept, decay, gain, *found)

    in_parts(fill, n_series, part=_PART)
    return found


def medians(
    sums: Array, modes: Any, even: Array, turned: Any, errors: Array, group: Any, said: Array
) -> tuple[Array, Array]:
    """Medians (series, horizon) and scale (series,) of the linear path, in the units of the series.

    even: (series, modes), what evens out the modes, or (0, 0).  turned: (groups, modes, horizon).  errors:
    (groups, horizon).  group: (series,).  said: (series, horizon), of an anchor, or (0, 0).
    """
    found: tuple[Array, Array] = _medians(sums, modes, even, turned, errors, group, said)
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
    out: Any, after: Any, centres: Any, scales: Any,
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
        _, centres[at], scales[at] = _read(out[at])


@njit(cache=True, nogil=True, error_model="numpy")
def _medians(sums: Any, modes: Any, even: Any, turned: Any, errors: Any, group: Any, said: Any) -> Any:
    n_series, horizon = len(sums), turned.shape[2]
    out, scales = np.empty((n_series, horizon)), np.empty(n_series)
    for at in range(n_series):
        own = group[at] if len(turned) > 1 else 0
        offset, centre, scale = _read(sums[at])
        scales[at] = scale
        for k in range(horizon):
            out[at, k] = centre + scale * errors[own, k]
            if len(said) and not math.isnan(said[at, k]):
                out[at, k] += said[at, k] - centre
        for m in range(turned.shape[1]):
            mode = modes[at, 0, m] - offset * modes[at, 1, m]
            if len(even):
                mode *= even[at, m]
            for k in range(horizon):
                out[at, k] += mode.real * turned[own, m, k].real - mode.imag * turned[own, m, k].imag
    return out, scales
