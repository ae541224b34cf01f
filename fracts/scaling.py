"""Causal centre and scale of a series: a decayed mean and standard deviation, carried as sums.

Each sum decays with real time and grows by observations, so a gap cut anywhere gives the same
average, a stream equals a batch, and nothing leaks from the future. The sums are of the distance
to the first observation: a series far from zero keeps its digits.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SPREAD_FLOOR = 1e-7  # of the size of the values: below it float64 sums of squares are rounding


def decayed_sums(
    start: NDArray[np.inexact], decay: NDArray[np.inexact], drive: NDArray[np.inexact]
) -> NDArray[np.inexact]:
    """Every state of `z[t] = decay[t] * z[t-1] + drive[t]`.

    start: (series, ...).  decay: (time, ...).  drive: (series, time, ...).
    Returns (series, time, ...).
    """
    states = np.empty_like(drive)
    z = start
    for t in range(drive.shape[1]):
        z = decay[t] * z + drive[:, t]
        states[:, t] = z
    return states


@dataclass(frozen=True)
class Scaler:
    """Decayed mean and standard deviation with the memory `timescale`, in steps."""

    timescale: float

    def empty(self, n_series: int) -> Array:
        """Sums before any value: (series, 4): weight, sum, sum of squares, first value."""
        return np.column_stack([np.zeros((n_series, 3)), np.full(n_series, np.nan)])

    def run(self, sums: Array, values: Array, steps: Array) -> Array:
        """Sums after every row: (series, time, 4).

        values: (series, time), NaN where missing.  steps: (time,), the first from the row before.
        """
        seen = ~np.isnan(values)
        first = np.where(seen.any(1), np.take_along_axis(values, seen.argmax(1)[:, None], 1)[:, 0], np.nan)
        origin = np.where(np.isnan(sums[:, 3]), first, sums[:, 3])
        offset = np.where(seen, values - origin[:, None], 0.0)
        drive = np.stack([seen.astype(float), offset, offset**2], axis=-1)
        decay = np.exp(-steps / self.timescale)[:, None]
        run = decayed_sums(sums[:, :3], decay, drive)
        return np.concatenate([run, np.broadcast_to(origin[:, None, None], (*values.shape, 1))], axis=-1)

    @staticmethod
    def read(sums: Array) -> tuple[Array, Array]:
        """Centre and scale from sums (..., 4): each (...), in the units of the series.

        The scale of a series that has not moved yet is 1: nothing divided by it is anything but 0.
        """
        weight, total, squares, origin = np.moveaxis(sums, -1, 0)
        weight = np.maximum(weight, np.finfo(float).tiny)
        offset = total / weight
        spread = np.sqrt(np.maximum(squares / weight - offset**2, 0.0))
        centre = np.where(np.isnan(origin), 0.0, origin + offset)
        moved = spread > _SPREAD_FLOOR * np.abs(offset) + 1e-14 * np.abs(centre)
        return centre, np.where(moved, spread, 1.0)
