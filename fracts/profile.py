"""Seasonal profile: a mean of the values seen at each phase of a season, decaying with the seasons gone by.

Slots are addressed by time, so gaps and dropped rows move nothing. With no memory a slot is the last value.
"""

from dataclasses import dataclass

import numpy as np

from fracts.scaling import Array


@dataclass(frozen=True)
class SeasonProfile:
    """Slots of a season of `season_length` steps; means decay by exp(-1 / memory) a season (0: the last value)."""

    season_length: int
    memory: float

    def empty(self, n_series: int) -> Array:
        """Slots before any value: (series, season_length, 3): weighted sum, weight, season of the last value."""
        return np.zeros((n_series, self.season_length, 3))

    def run(self, slots: Array, values: Array, times: Array, horizon: int) -> tuple[Array, Array]:
        """Slots after the last row, and what they say after each row: (series, time, horizon).

        values: (series, time), NaN where missing.  times: (time,), in steps.
        """
        slots = slots.copy()
        season, phase = np.divmod(np.floor(times).astype(int), self.season_length)
        ahead = (phase[:, None] + np.arange(1, horizon + 1)) % self.season_length
        level = _level(slots)
        seen = ~np.isnan(values)
        reads = np.empty((*values.shape, horizon))
        for t in range(times.size):
            here = seen[:, t]
            slot = slots[here, phase[t]]
            kept = np.exp((slot[:, 2] - season[t]) / self.memory) if self.memory else 0.0
            slot[:, 0] = kept * slot[:, 0] + values[here, t]
            slot[:, 1] = kept * slot[:, 1] + 1.0
            slot[:, 2] = season[t]
            slots[here, phase[t]] = slot
            level[here, phase[t]] = slot[:, 0] / slot[:, 1]
            reads[:, t] = level[:, ahead[t]]
        return slots, reads

    def read(self, slots: Array, now: float, horizon: int) -> Array:
        """Value of the slot of each lead 1..horizon after `now`: (series, horizon); NaN where never seen."""
        phases = (int(np.floor(now)) + np.arange(1, horizon + 1)) % self.season_length
        return _level(slots[:, phases])


def _level(slots: Array) -> Array:
    """Means that the slots (..., 3) hold; NaN where nothing was seen."""
    return np.where(slots[..., 1] > 0, slots[..., 0], np.nan) / np.where(
        slots[..., 1] > 0, slots[..., 1], 1.0
    )
