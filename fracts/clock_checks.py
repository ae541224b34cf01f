"""Checks of what is declared of a clock: errors before a step is taken for another unit."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fracts.checks import LARGEST_EXACT


def check_one_grid(freq: object, base_step: object) -> None:
    """ValueError for a grid and real time at once."""
    if freq is not None and base_step is not None:
        raise ValueError(
            f"freq={freq!r} and base_step={base_step!r} came together; the first says that stamps lie on a "
            "grid, the second that they do not. Give one of them."
        )


def check_step_of_dates(base_step: object) -> None:
    """TypeError for a bare number, whose unit would be guessed."""
    if isinstance(base_step, Real) and not isinstance(base_step, np.timedelta64):
        raise TypeError(
            f"base_step={base_step!r} is a number, but the stamps are dates: a step needs a unit. Give a "
            "timedelta or a text, as base_step='1h'."
        )


def check_minutes(freq: Any, index: pd.DatetimeIndex) -> None:
    """ValueError for polars' minutes where months may be meant: rows are typically a day apart or more."""
    if not str(freq).endswith("m") or len(index) < 2:
        return
    apart = pd.Timedelta(np.median(np.diff(index.as_unit("s").asi8)), unit="s")
    if apart >= pd.Timedelta("1D"):
        raise ValueError(
            f"freq={freq!r} means minutes, but the rows are typically {apart} apart. Write '1mo' for "
            "months, or '1min' for minutes that are meant."
        )


def check_span(index: pd.Index[Any], counts: NDArray[np.int64], origin: int, step: int) -> None:
    """ValueError for a stamp so many steps from the first that float64 would skip some; counts: (rows,)."""
    first, last = int(counts.min()), int(counts.max())
    if max(last - origin, origin - first) > LARGEST_EXACT * step:
        row = int(np.argmax(counts) if last - origin > origin - first else np.argmin(counts))
        raise ValueError(
            f"the stamp {index[row]} (row {row}) lies more than {LARGEST_EXACT} steps of {step} from the "
            "first row, more than float64 can count. Leave such rows out, or give stamps in a longer unit."
        )
