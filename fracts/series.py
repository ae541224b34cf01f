"""Series as models see them: numbers on one clock, and what is remembered of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

State = dict[str, NDArray[Any]]  # what a model remembers; every array has the series on its first axis


@dataclass(frozen=True)
class Panel:
    """Series on one clock.

    Parameters
    ----------
    values : (series, rows), NaN where a series has no value.
    times : (rows,), strictly increasing, in base steps of the clock; 0 is the first row given to fit.

    Examples
    --------
    >>> panel = Panel(np.array([[1.0, 2.0, 4.0]]), np.array([0.0, 1.0, 3.0]))
    >>> panel.ahead(2)
    array([[[ 2., nan],
            [nan,  4.],
            [nan, nan]]])
    """

    values: NDArray[np.float64]
    times: NDArray[np.float64]

    def part(self, start: int, stop: int) -> Panel:
        """The rows `start` to `stop`."""
        return Panel(self.values[:, start:stop], self.times[start:stop])

    def of(self, series: NDArray[np.int64]) -> Panel:
        """Some of the series."""
        return Panel(self.values[series], self.times)

    def ahead(self, horizon: int) -> NDArray[np.float64]:
        """(series, rows, horizon): the value nearest to 1..horizon steps after each row, at most half a step
        away, or NaN."""
        due = self.times[:, None] + np.arange(1, horizon + 1)  # (rows, horizon)
        if (np.diff(self.times) < 1).any():  # several rows for a lead, of which some may have no value
            return np.stack([_nearest(self.times, row, due) for row in self.values])
        row = np.searchsorted(self.times, due - 0.5)
        nearest = np.minimum(row, len(self.times) - 1)
        found = (row < len(self.times)) & (self.times[nearest] < due + 0.5)
        return np.where(found, self.values[:, nearest], np.nan)


def _nearest(
    times: NDArray[np.float64], values: NDArray[np.float64], due: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The value nearest to each time of `due`, the earlier of two, NaN farther than half a step away."""
    seen = ~np.isnan(values)
    times, values = np.append(times[seen], np.inf), np.append(values[seen], np.nan)
    after = np.searchsorted(times, due)
    before = np.maximum(after - 1, 0)
    nearest = np.where(np.abs(due - times[before]) <= times[after] - due, before, after)
    apart = times[nearest] - due
    return np.where((apart >= -0.5) & (apart < 0.5), values[nearest], np.nan)
