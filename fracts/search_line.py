"""The line that a search shows while it runs: trials done, the best loss so far, the time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial


class Line:
    """A bar of trials, told of each trial as it ends."""

    def __init__(self, bar: Any, metric: str, timeout: float | None) -> None:
        self._bar, self._metric = bar, metric
        self._end = None if timeout is None else time.monotonic() + timeout

    def then(self, callback: Callable[[Study, FrozenTrial], Any] | None) -> Callable[..., bool]:
        """A callback that moves the bar, and then says what `callback` says."""

        def told(study: Study, trial: FrozenTrial) -> bool:
            self._move(study)
            return callback is not None and callback(study, trial) is True

        return told

    def _move(self, study: Study) -> None:
        told = []
        with suppress(ValueError):  # none has succeeded yet
            best = study.best_trial
            told.append(f"best {self._metric} {best.value:.4g} (trial {best.number})")
        if self._end is not None:
            left = max(0.0, self._end - time.monotonic())
            told.append(f"no new trial after {tqdm.format_interval(left)}")
        self._bar.set_postfix_str(", ".join(told), refresh=False)
        self._bar.update()


@contextmanager
def line(n_trials: int | None, timeout: float | None, metric: str, *, shown: bool) -> Iterator[Line]:
    """A `Line` on standard error, if `shown`, of a search that ends with `n_trials` or after `timeout`."""
    with tqdm(total=n_trials, desc="search", unit=" trial", disable=not shown) as bar:
        yield Line(bar, metric, timeout)
