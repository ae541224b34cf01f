"""Causal centre and scale of a series: a decayed mean and standard deviation, carried as sums.

Each sum decays with real time and grows by observations, so a gap cut anywhere gives the same
average, a stream equals a batch, and nothing leaks from the future. The sums are of the distance
to the first value of the series (its origin): a series far from zero keeps its digits.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fracts.records import record

Array = NDArray[np.float64]
Numbers = TypeVar("Numbers", NDArray[np.float64], NDArray[np.complex128])

_ROUNDING = 1e-7  # of the distance to the origin: a spread below it is rounding of the sum of squares
_FINEST = 1e-14  # of the centre: values closer than that are one value
_SMALLEST = 1e-300  # so that nothing is divided by 0


def decayed_sums(start: Numbers, decay: Numbers, drive: Numbers) -> Numbers:
    """Every state of `z[t] = decay[t] * z[t-1] + drive[t]`.

    Parameters
    ----------
    start : (series, ...).
    decay : (time, ...), or (time, series, ...).
    drive : (series, time, ...).

    Returns
    -------
    (series, time, ...).

    Examples
    --------
    >>> decayed_sums(np.zeros(1), np.full(3, 0.5), np.ones((1, 3)))
    array([[1.  , 1.5 , 1.75]])
    """
    states = np.array(drive.swapaxes(0, 1), order="C")
    before = start
    for state, kept in zip(states, decay, strict=True):
        state += kept * before
        before = state
    return states.swapaxes(0, 1)


@record
@dataclass(frozen=True)
class Scaler:
    """Decayed mean and standard deviation with the memory `timescale`, in steps.

    Sums are arrays (..., 4): weight, sum, sum of squares, origin (NaN before the first value).

    Examples
    --------
    >>> scaler = Scaler(1e6)
    >>> sums = scaler.run(scaler.empty(1), np.array([[1.0, np.nan, 3.0]]), np.ones(3))
    >>> centre, scale = scaler.read(sums[:, -1])
    >>> centre.round(3), scale.round(3)
    (array([2.]), array([1.]))
    """

    timescale: float

    def empty(self, n_series: int) -> Array:
        """Sums before any value: (series, 4)."""
        return np.column_stack([np.zeros((n_series, 3)), np.full(n_series, np.nan)])

    def run(self, sums: Array, values: Array, steps: Array) -> Array:
        """Sums after every row: (series, time, 4).

        values: (series, time), NaN where missing.  steps: (time,), the first from the row before.
        """
        seen = ~np.isnan(values)
        first = np.take_along_axis(values, seen.argmax(1)[:, None], 1)[:, 0]
        origin = np.where(np.isnan(sums[:, 3]), first, sums[:, 3])
        offset = np.where(seen, values - origin[:, None], 0.0)
        drive = np.stack([seen.astype(float), offset, offset**2], axis=-1)
        run = decayed_sums(sums[:, :3], np.exp(-steps / self.timescale)[:, None], drive)
        begun = np.logical_or.accumulate(seen, axis=1) | ~np.isnan(sums[:, 3:])
        return np.concatenate([run, np.where(begun, origin[:, None], np.nan)[..., None]], axis=-1)

    @staticmethod
    def origin(sums: Array) -> Array:
        """First value of each series (...), 0 before it."""
        return np.where(np.isnan(sums[..., 3]), 0.0, sums[..., 3])

    @staticmethod
    def read(sums: Array) -> tuple[Array, Array]:
        """Centre and scale from sums (..., 4): each (...), in the units of the series.

        The scale is never 0: that of a series that has not moved is too small to see beside its centre.
        """
        weight, total, squares, origin = np.moveaxis(sums, -1, 0)
        weight = np.maximum(weight, _SMALLEST)
        offset = total / weight
        spread = np.sqrt(np.maximum(squares / weight - offset**2, 0.0))
        centre = np.where(np.isnan(origin), 0.0, origin + offset)
        floor = _ROUNDING * np.abs(offset) + _FINEST * np.abs(centre) + _SMALLEST
        return centre, np.maximum(spread, floor)
