"""The anchor: the last value, or the value one season ago, for every lead.

One idea: a slot for each phase of the season keeps the last value seen there, so the memory is one season
whatever the length of the history. The phase of a time t is `floor(t mod season_length)`, in real time as
well; a season of 1 is the last value itself. A slot never seen answers with the last value of the series.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SeasonSlots:
    """Last value in each phase of a season of `season_length` steps.

    The state is one array `slots` (series, season_length + 1), NaN where nothing was seen; its last column is
    the last value whatever the phase. Everywhere `values` is (series, rows), NaN for no value, `times` is
    (rows,).

    Examples
    --------
    >>> weekly = SeasonSlots(7)
    >>> slots = weekly.advance(weekly.empty(1), np.arange(10.0)[None], np.arange(10.0))
    >>> weekly.read(slots, now=9.0, horizon=5)
    array([[3., 4., 5., 6., 7.]])
    """

    season_length: int

    def empty(self, n_series: int) -> Array:
        """The slots before any row."""
        return np.full((n_series, self.season_length + 1), np.nan)

    def advance(self, slots: Array, values: Array, times: Array) -> Array:
        """The slots after the rows; rows without a value leave them as they were."""
        slots = slots.copy()
        series, rows = np.nonzero(~np.isnan(values))
        # Rows ascend within a series, and of several values written to one slot the last one stays.
        for slot in (self._phase(times)[rows], -1):
            slots[series, slot] = values[series, rows]
        return slots

    def read(self, slots: Array, now: float, horizon: int) -> Array:
        """(series, horizon): the anchor of `now + 1` to `now + horizon`."""
        return _read(slots, self._phase(now + np.arange(1.0, horizon + 1)))

    def run(self, slots: Array, values: Array, times: Array, horizon: int) -> tuple[Array, Array]:
        """The slots after the rows, and what `read` says after each of them: (series, rows, horizon)."""
        ahead = self._phase(times[:, None] + np.arange(1, horizon + 1))  # (rows, horizon)
        after = self._each(slots, values, times)
        next(after)
        reads = np.empty((*values.shape, horizon))
        for row, now in enumerate(after):
            reads[:, row] = _read(now, ahead[row])
        return self.advance(slots, values, times), reads

    def before(self, slots: Array, values: Array, times: Array) -> Array:
        """(series, rows): what the slots say of each row before its value comes."""
        phases = self._phase(times)[:, None]
        said = np.empty_like(values)
        for row, now in zip(range(len(times)), self._each(slots, values, times), strict=False):
            said[:, row] = _read(now, phases[row])[:, 0]
        return said

    def _each(self, slots: Array, values: Array, times: Array) -> Iterator[Array]:
        """The slots before the first row and after each, in one array that the next turn writes over."""
        slots = slots.copy()
        yield slots
        for phase, value in zip(self._phase(times), values.T, strict=True):
            seen = ~np.isnan(value)
            slots[seen, phase] = slots[seen, -1] = value[seen]
            yield slots

    def _phase(self, times: Array) -> NDArray[np.int64]:
        return np.floor(times % self.season_length).astype(np.int64)


def _read(slots: Array, phases: NDArray[np.int64]) -> Array:
    asked = slots[:, phases]
    return np.where(np.isnan(asked), slots[:, -1:], asked)
