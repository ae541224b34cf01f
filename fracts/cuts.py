"""Where the history of a panel is cut into folds: one learns from what ends before a fold.

One idea: folds are shares of the values seen, never of the calendar, so an outage, a late series or series
far apart take no fold for themselves. Series with coefficients of their own are cut each at its own times.
Series that share coefficients and end together are cut at common times: what one of them saw after a cut (a
shock that met all) must not help to forecast another before it. Where most end earlier than the last one
does, common cuts would hold out the late years of long series alone: there each is cut at its own times too.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fracts.scaling import Array
from fracts.series import Panel

FOLDS = (0.4, 0.6, 0.8)  # shares of the values: what follows each is forecast by what ends before it


@dataclass(frozen=True)
class Cuts:
    """Times at which the folds of each series begin.

    Parameters
    ----------
    ends : (series, folds): fold k is what follows the k-th of them, up to the next.
    begin : (series,): no origin up to this time is tried, as a series must have shown a share of itself.

    Examples
    --------
    >>> gap = np.append(np.arange(6.0), np.arange(100.0, 105.0))  # 11 values on both sides of an outage
    >>> Cuts.of(Panel(np.ones((1, 11)), gap), pooled=True).reached(gap)
    array([[0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3]])
    """

    ends: Array
    begin: Array

    @classmethod
    def of(cls, panel: Panel, *, pooled: bool) -> Self:
        """The cuts of `panel`, whose series share coefficients or not."""
        own = np.stack([_ends(row[None], panel.times) for row in panel.values])
        ends = np.broadcast_to(common_ends(panel), own.shape) if pooled and _end_together(panel) else own
        return cls(ends, own[:, 0])

    def of_series(self, series: NDArray[np.int64]) -> Self:
        """Those of some of the series."""
        return type(self)(self.ends[series], self.begin[series])

    def reached(self, times: Array) -> NDArray[np.int64]:
        """The fold (series, times) that each time lies in, 0 before the first."""
        return np.asarray((self.ends[..., None] < times).sum(1), dtype=np.int64)

    def tried(self, times: Array) -> NDArray[np.int64]:
        """The fold (series, times) that tries a forecast made at each time, 0 for none."""
        return np.where(times > self.begin[:, None], self.reached(times), 0)


def common_ends(panel: Panel) -> Array:
    """Times (folds,) before which the shares of all values lie."""
    return _ends(panel.values, panel.times)


def _end_together(panel: Panel) -> bool:
    """Whether half of the series are seen up to the last row that any is."""
    seen = ~np.isnan(panel.values)
    return bool(2 * seen[:, np.flatnonzero(seen.any(0))[-1]].sum() >= len(seen))


def _ends(values: Array, times: Array) -> Array:
    """Times (folds,) before which the shares of the `values` (series, rows) lie."""
    seen = (~np.isnan(values)).sum(0)
    rows = np.flatnonzero(seen)
    before = np.cumsum(seen[rows]) - seen[rows]
    ends: Array = np.interp(np.array(FOLDS) * before[-1], before, times[rows])
    return ends
