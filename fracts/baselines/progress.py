"""How far a fit of many series has come, on stderr: a bar that moves, or lines in a log.

One idea: a terminal and a notebook write over the line that they show, a file does not. No widget is used in
notebooks: in a saved one it stays at its start.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from tqdm import tqdm

_UNIT = " series"
_PAUSE = 10.0  # seconds between two lines


def shown(results: Iterable[Any], total: int) -> Iterator[Any]:
    """`results`, of which there are `total`, told of as they come."""
    if sys.stderr.isatty() or _in_notebook():
        return iter(tqdm(results, total=total, unit=_UNIT))
    return _in_lines(results, total)


def _in_notebook() -> bool:
    """Whether stderr is the output of a cell."""
    return type(sys.stderr).__module__.startswith("ipykernel.")


def _in_lines(results: Iterable[Any], total: int) -> Iterator[Any]:
    start = said = time.monotonic()
    for count, result in enumerate(results, 1):
        yield result
        now = time.monotonic()
        if count == total or now - said >= _PAUSE:
            said = now
            print(tqdm.format_meter(count, total, now - start, unit=_UNIT), file=sys.stderr, flush=True)
