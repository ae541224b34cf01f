"""Row grids: series of a panel that have few rows in common are passed over apart, each lot on its own rows.

One idea: a row without a value moves nothing but the clock, so it can be left out. A pass over a panel costs
its rows times its series; where these lie far apart, or have stamps of their own, almost all of it is empty.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fracts.series import Panel

Ints = NDArray[np.int64]
_ROW = 8  # what a pass spends on a row whatever its series, in units of a row of one series
_LOT = 500  # the same, on a lot


def grids(panel: Panel, needed: NDArray[np.bool_]) -> Iterator[tuple[Ints, Panel]]:
    """Lots of series (series,), and the panel of each: all there is, or the rows that one of the lot needs.

    needed: (series, rows).

    Examples
    --------
    >>> nan = np.nan
    >>> values = np.full((2, 2000), nan)
    >>> values[0, :999], values[1, 1000:] = 1.0, 2.0
    >>> panel = Panel(values, np.arange(2000.0))
    >>> [(series, part.values.shape) for series, part in grids(panel, ~np.isnan(values))]
    [(array([0]), (1, 999)), (array([1]), (1, 1000))]
    """
    lots = _lots(needed)
    if len(lots) == 1:
        yield np.arange(len(panel.values)), panel
        return
    for series in lots:
        rows = np.flatnonzero(needed[series].any(0))
        at = np.ix_(series, rows)
        yield series, Panel(panel.values[at], panel.times[rows], panel.covariates[at])


def _lots(needed: NDArray[np.bool_]) -> list[Ints]:
    """Series that cost less together than apart, each lot in ascending order.

    Tried in the order in which they begin, each beside the lot before it.
    """
    counts = needed.sum(1)
    first, *others = np.lexsort((counts, needed.argmax(1))).tolist()
    lots, rows, size = [[first]], needed[first], int(counts[first])
    for series in others:
        both, lot = rows | needed[series], len(lots[-1])
        together, own = int(both.sum()), int(counts[series])
        if together * (_ROW + lot + 1) <= size * (_ROW + lot) + own * (_ROW + 1) + _LOT:
            lots[-1].append(series)
            rows, size = both, together
        else:
            lots.append([series])
            rows, size = needed[series], own
    return [np.sort(lot) for lot in lots]
