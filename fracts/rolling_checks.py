"""Checks of a backtest: which rows it starts from, how often it fits anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fracts.checks import check_positive_integer


def check_refit(refit: object) -> int:
    """Origins between two fits, 0 for the first fit alone; ValueError unless a bool or a count.

    Examples
    --------
    >>> check_refit(False), check_refit(True), check_refit(30)
    (0, 1, 30)
    """
    return int(refit) if isinstance(refit, bool) else check_positive_integer(refit, "refit")


def check_cutoffs(
    index: pd.Index[Any], times: NDArray[np.float64], horizon: int, start: Any, n_windows: Any, step: int
) -> NDArray[np.int64]:
    """Rows of the cutoffs, ascending: every `step`-th whose whole horizon lies within `times` (rows,).

    Raises ValueError unless one of `start` and `n_windows` is given and leaves at least one row of history
    and one forecast.
    """
    if (start is None) == (n_windows is None):
        raise ValueError(
            f"start={start!r} and n_windows={n_windows!r} came. Give one of them: the first row to forecast, "
            "or how many forecasts to end with."
        )
    last = int(np.searchsorted(times, times[-1] - horizon + 0.5, side="right")) - 1
    if last < 0:
        raise ValueError(
            f"y has {len(times)} rows, which hold no forecast of {horizon} steps after a row of history. "
            "Give more rows or a shorter horizon."
        )
    if n_windows is None:
        first = _row(index, start) - 1
        if not 0 <= first <= last:
            raise ValueError(
                f"start={start!r} leaves {max(first + 1, 0)} rows of history and {len(index) - first - 1} to "
                f"forecast. Give one from {index[1]} to {index[last + 1]} for a forecast of {horizon} steps."
            )
        return np.arange(first, last + 1, step)
    first = last - step * (check_positive_integer(n_windows, "n_windows") - 1)
    if first < 0:
        raise ValueError(
            f"n_windows={n_windows} forecasts of {horizon} steps, {step} rows apart, need "
            f"{len(times) - first} rows; y has {len(times)}. Ask for at most {last // step + 1}."
        )
    return np.arange(first, last + 1, step)


def _row(index: pd.Index[Any], start: Any) -> int:
    if isinstance(start, int) and not pd.api.types.is_integer_dtype(index.dtype):
        return start
    return int(index.slice_indexer(start).start)
