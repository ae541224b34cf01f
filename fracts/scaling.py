"""Causal centre and scale of a series: a decayed mean and standard deviation, carried as sums.

Each sum decays with real time and grows by observations, so a gap cut anywhere gives the same
average, a stream equals a batch, and nothing leaks from the future. The sums are of the distance
to the first value of the series (its origin): a series far from zero keeps its digits.
"""

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fracts.records import record

Array = NDArray[np.float64]
Numbers = TypeVar("Numbers", NDArray[np.float64], NDArray[np.complex128])

ROUNDING = 1e-7  # of the distance to the origin: a spread below it is rounding of the sum of squares
FINEST = 1e-14  # of the centre: values closer than that are one value
_FEW = 128  # numbers, that cost less than the calls that add them up
SMALLEST = 1e-300  # so that nothing is divided by 0


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
    kept = decay.reshape(len(states), *[1] * (states.ndim - decay.ndim), *decay.shape[1:])
    n_stretches, whole = math.isqrt(len(states)), 0
    if n_stretches > 1 and states[0].size <= _FEW:
        whole = len(states) // n_stretches * n_stretches
        _stretch_by_stretch(start, kept[:whole], states[:whole], n_stretches)
    before = states[whole - 1] if whole else start
    for state, keep in zip(states[whole:], kept[whole:], strict=True):
        state += keep * before
        before = state
    return states.swapaxes(0, 1)


def _stretch_by_stretch(start: Numbers, kept: Numbers, states: Numbers, n_stretches: int) -> None:
    """`decayed_sums` in place of the drive `states` (time, ...): stretches of time side by side from 0, then
    each from the end of the one before.

    Few numbers cost less than the calls that add them up; so there are fewer calls.
    """
    states = states.reshape(n_stretches, -1, *states.shape[1:])
    kept = kept.reshape(n_stretches, -1, *kept.shape[1:])
    for at in range(1, states.shape[1]):
        states[:, at] += kept[:, at] * states[:, at - 1]
    before = start
    for stretch, keep in zip(states, np.cumprod(kept, axis=1), strict=True):
        stretch += keep * before
        before = stretch[-1]


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

    def kept(self, step: float) -> float:
        """What the sums keep of themselves over a `step`."""
        return math.exp(-step / self.timescale)

    def step(self, sums: Array, values: Array, step: float) -> tuple[Array, Array]:
        """`run` over a single row: sums (series, 4), and inputs (series, 2): the distance of each value to
        its origin, 0 where missing, and 1 where seen.

        values: (series,).  step: from the row before.
        """
        if len(values) > 1:
            after = self.run(sums, values[:, None], np.array([step]))[:, 0]
            seen = ~np.isnan(values)
            return after, np.stack([np.where(seen, values - after[:, 3], 0.0), seen], axis=-1)
        # One by one: on so few numbers numpy's calls cost more than its arithmetic.
        weight, total, squares, origin = sums[0].tolist()
        kept, value, offset = self.kept(step), values.item(), 0.0
        known = not math.isnan(value)
        if known:
            origin = value if math.isnan(origin) else origin
            offset = value - origin
        weight, total, squares = (
            weight * kept + known,
            total * kept + offset,
            squares * kept + offset * offset,
        )
        return np.array([[weight, total, squares, origin]]), np.array([[offset, float(known)]])

    @staticmethod
    def origin(sums: Array) -> Array:
        """First value of each series (...), 0 before it."""
        return np.where(np.isnan(sums[..., 3]), 0.0, sums[..., 3])

    @staticmethod
    def read(sums: Array) -> tuple[Array, Array]:
        """Centre and scale from sums (..., 4): each (...), in the units of the series.

        The scale is never 0: that of a series that has not moved is too small to see beside its centre.
        """
        _, centre, scale = Scaler.centred(sums)
        return centre, scale

    @staticmethod
    def centred(sums: Array) -> tuple[Array, Array, Array]:
        """Distance of the centre to the origin, centre and scale from sums (..., 4): each (...)."""
        if sums.shape == (1, 4):
            told = np.array(_centred_one(*sums[0].tolist()))
            return told[:1], told[1:2], told[2:]
        weight, total, squares, origin = np.moveaxis(sums, -1, 0)
        offset = total / np.maximum(weight, SMALLEST)
        spread = np.sqrt(np.maximum(squares / np.maximum(weight, SMALLEST) - offset**2, 0.0))
        centre = np.where(np.isnan(origin), 0.0, origin + offset)
        floor = ROUNDING * np.abs(offset) + FINEST * np.abs(centre) + SMALLEST
        return offset, centre, np.maximum(spread, floor)


def _centred_one(weight: float, total: float, squares: float, origin: float) -> tuple[float, float, float]:
    """`Scaler.centred` of one series, without numpy's calls."""
    weight = max(weight, SMALLEST)
    offset = total / weight
    centre = 0.0 if math.isnan(origin) else origin + offset
    floor = ROUNDING * abs(offset) + FINEST * abs(centre) + SMALLEST
    return offset, centre, max(math.sqrt(max(squares / weight - offset * offset, 0.0)), floor)
