"""Gaps: where the rows of a series are not one base step apart, and what is said of them.

One idea: a gap is a longer step and needs no filling, so by default it is only reported, on the logger
`fracts`; who wants a full grid asks for an error.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from fracts.rulers import Counts
from fracts.timeline import Clock

log = logging.getLogger("fracts")


def check_on_gaps(on_gaps: object) -> None:
    """ValueError unless "decay" or "error"."""
    if on_gaps not in ("decay", "error"):
        raise ValueError(f"on_gaps must be 'decay' or 'error', got {on_gaps!r}.")


def tell_gaps(
    clock: Clock, before: Counts, after: Counts, series: Counts, ids: Sequence[Any], on_gaps: str
) -> None:
    """One record of how many gaps there are and where the first is; ValueError where `on_gaps` asks for it.

    before, after, series: (pairs,), the counts of rows that follow each other in a series, and which one.
    """
    gaps = np.flatnonzero(after - before != clock.step)
    if not gaps.size:
        return
    first, apart = gaps[0], np.unique(series[gaps]).size
    between = f"from {clock.stamp(before[first])} to {clock.stamp(after[first])}"
    steps = (after[first] - before[first]) / clock.step
    grid = f"every {clock.freq or clock.step}" if clock.whole else "on no calendar grid"
    told = (
        f"{gaps.size} gaps in {apart} of {len(ids)} series, whose stamps are {grid}; the first: series "
        f"{ids[series[first]]!r}, {between}, {steps:g} steps"
    )
    if on_gaps == "error":
        raise ValueError(
            f"{told}. Every step needs a row where on_gaps='error': write NaN into those that lack one, as "
            "`y.asfreq(...)` does, or let the memory decay over them with on_gaps='decay'."
        )
    log.info("%s", told)
