"""The line that a search shows while it runs: trials done, the best loss so far, the time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial


class Line:
    """A bar of trials, told of each trial as it ends."""

    def __init__(self, bar: Any, metric: str) -> None:
        self._bar, self._metric = bar, metric

    def then(self, callback: Callable[[Study, FrozenTrial], Any] | None) -> Callable[..., bool]:
        """A callback that moves the bar, and then says what `callback` says."""

        def told(study: Study, trial: FrozenTrial) -> bool:
            self._move(study)
            return callback is not None and callback(study, trial) is True

        return told

    def _move(self, study: Study) -> None:
        try:
            best = study.best_trial
        except ValueError:  # none has succeeded yet
            self._bar.update()
            return
        self._bar.set_postfix_str(
            f"best {self._metric} {best.value:.4g} (trial {best.number})", refresh=False
        )
        self._bar.update()


@contextmanager
def line(n_trials: int | None, metric: str, *, shown: bool) -> Iterator[Line]:
    """A `Line` on standard error, if `shown`."""
    with tqdm(total=n_trials, desc="search", unit="trial", disable=not shown) as bar:
        yield Line(bar, metric)
