"""Series as models see them: numbers on one clock, and what is remembered of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from fracts.records import record

State = dict[str, NDArray[Any]]  # what a model remembers; every array has the series on its first axis


@record
@dataclass(frozen=True)
class Panel:
    """Series on one clock.

    Parameters
    ----------
    values : (series, rows), NaN where a series has no value.
    times : (rows,), strictly increasing, in base steps of the clock; 0 is the first row given to fit.
    covariates : (series, rows, columns), as `fracts.covariates` encodes them; by default no columns.

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
    covariates: NDArray[np.float64] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.covariates is None:
            object.__setattr__(self, "covariates", np.empty((*self.values.shape, 0)))

    def part(self, start: int, stop: int) -> Panel:
        """The rows `start` to `stop`."""
        rows = slice(start, stop)
        return Panel(self.values[:, rows], self.times[rows], self.covariates[:, rows])

    def reaching(self, start: int, stop: int, horizon: int) -> Panel:
        """The rows `start` to `stop`, and those up to `horizon` steps, and a half, after the last of them."""
        until = np.searchsorted(self.times, self.times[stop - 1] + horizon + 0.5)
        return self.part(start, int(until))

    def of(self, series: NDArray[np.int64]) -> Panel:
        """Some of the series."""
        return Panel(self.values[series], self.times, self.covariates[series])

    def rows_ahead(
        self, horizon: int, n_rows: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """(series, rows, horizon) each, or (1, rows, horizon) where alike for all series: the row nearest to
        1..horizon steps after each of the first `n_rows` (None: all), at most half a step away, and whether
        there is one."""
        due = self.times[:n_rows, None] + np.arange(1, horizon + 1)
        if (np.diff(self.times) < 1).any():  # several rows for a lead, of which some may have no value
            rows = np.stack([_nearest(self.times, row, due) for row in self.values])
        else:
            rows = np.searchsorted(self.times, due - 0.5)[None]
        row = np.minimum(rows, len(self.times) - 1)
        apart = self.times[row] - due
        return row, (rows < len(self.times)) & (apart >= -0.5) & (apart < 0.5)

    def ahead(self, horizon: int, n_rows: int | None = None) -> NDArray[np.float64]:
        """(series, rows, horizon): the value nearest to 1..horizon steps after each of the first `n_rows`
        (None: all), at most half a step away, or NaN; not to be written to."""
        if (np.diff(self.times) == 1).all():  # as many rows on: nothing to search for, nothing to copy
            padded = np.pad(self.values[:, 1:], ((0, 0), (0, horizon)), constant_values=np.nan)
            return sliding_window_view(padded, horizon, axis=1)[:, :n_rows]
        row, found = self.rows_ahead(horizon, n_rows)
        return np.where(found, self.values[np.arange(len(self.values))[:, None, None], row], np.nan)

    def covariates_ahead(self, horizon: int, n_known: int, n_rows: int | None = None) -> NDArray[np.float64]:
        """(series, rows, horizon, n_known): the first columns where `ahead` has its values, 0 for none."""
        row, found = self.rows_ahead(horizon, n_rows)
        known = self.covariates[..., :n_known][np.arange(len(self.values))[:, None, None], row]
        return np.where(found[..., None], known, 0.0)


def _nearest(
    times: NDArray[np.float64], values: NDArray[np.float64], due: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The row with a value nearest to each time of `due`, the earlier of two; the number of rows for none."""
    seen = np.flatnonzero(~np.isnan(values))
    known, rows = np.append(times[seen], np.inf), np.append(seen, len(times))
    after = np.searchsorted(known, due)
    before = np.maximum(after - 1, 0)
    nearest = np.where(np.abs(due - known[before]) <= known[after] - due, before, after)
    return np.asarray(rows[nearest])
