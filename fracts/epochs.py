"""The epochs of a training, told to whoever watches.

One idea: who compares many fits stands far above the training of one, behind copies of the estimator. A
context variable hands its question down, so that no estimator has a parameter for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Watcher = Callable[[int, float], None]

_watcher: ContextVar[Watcher | None] = ContextVar("fracts_epochs", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Have `watcher(epoch, held_out_loss)` called after each epoch of a training in this context.

    Epoch 0 is what the training starts from. What `watcher` raises ends the training and comes out of `fit`.

    Examples
    --------
    >>> with watching(print):
    ...     tell(3, 0.25)
    3 0.25
    >>> tell(4, 0.2)
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def tell(epoch: int, held_out_loss: float) -> None:
    """Tell an epoch to the watcher, if there is one."""
    if (watcher := _watcher.get()) is not None:
        watcher(epoch, held_out_loss)
