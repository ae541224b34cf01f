"""How far a fit of many series has come: a bar that moves in a terminal or a notebook, lines in a log.

One idea: what is shown is a line of text, and the place says what becomes of the one before it. A terminal
writes over it; a notebook puts the new one in its place, so a saved one holds the last; a log keeps all, so
they are few.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from tqdm import tqdm

_UNIT = " series"
_PAUSES = {"notebook": 0.5, "log": 10.0}  # seconds between two lines


def shown(results: Iterable[Any], total: int) -> Iterator[Any]:
    """`results`, of which there are `total`, told of as they come."""
    if sys.stderr.isatty():
        return iter(tqdm(results, total=total, unit=_UNIT))
    if type(sys.stderr).__module__.startswith("ipykernel."):  # the output of a cell
        return _told(results, total, _in_cell(), _PAUSES["notebook"])
    return _told(results, total, partial(print, file=sys.stderr, flush=True), _PAUSES["log"])


def _in_cell() -> Callable[[str], None]:
    """What shows a line in a new output of the cell, in place of the last one."""
    from IPython.display import display

    output = display({"text/plain": ""}, raw=True, display_id=True)
    return lambda line: output.update({"text/plain": line}, raw=True)


def _told(results: Iterable[Any], total: int, tell: Callable[[str], None], pause: float) -> Iterator[Any]:
    start = said = time.monotonic()
    for count, result in enumerate(results, 1):
        yield result
        now = time.monotonic()
        if count == total or now - said >= pause:
            said = now
            tell(tqdm.format_meter(count, total, now - start, unit=_UNIT))
