"""Studies: where trials are kept, who may join, and what runs them one by one.

One idea: workers know each other by the study alone. A trial whose worker gives no sign of life is given to
another; a study says what it searches, so that no worker mixes in another task.
"""

from __future__ import annotations

import contextlib
import logging
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import optuna
from optuna import Study
from optuna.exceptions import ExperimentalWarning, UpdateFinishedTrialError
from optuna.pruners import BasePruner, MedianPruner
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, RetryHeartbeatStaleTrialCallback
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

from fracts.heartbeat import BeatingDatabase, BeatingJournal
from fracts.samplers import NumberedSampler
from fracts.study_checks import check_journal, check_study, check_url

log = logging.getLogger("fracts")

NAME = "fracts"  # of a study in a storage that others share, unless told otherwise
_TASK = "fracts:task"
_TRANSFERRED = 5  # best settings of another study
_TRIES = 3  # more of a trial whose worker died
_SILENT_BEATS = 4  # missed, after which a worker is dead
_ATTEMPTS = 4  # to open a database
_LOCKED = 60  # seconds to wait for an SQLite file

Callback = Callable[[Study, FrozenTrial], Any]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Optuna says nothing: what is worth saying is said here."""
    logger = logging.getLogger("optuna")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            yield
    finally:
        logger.setLevel(level)


def open_storage(storage: Any, heartbeat: int) -> BaseStorage | None:
    """The storage that `storage` names: None, a path (a journal file), an URL, or what Optuna takes.

    heartbeat: seconds between two signs of life.  Raises TypeError for anything else, OSError or ImportError
    where it cannot be opened, ValueError for a file or an URL that holds no study.
    """
    if storage is None or isinstance(storage, BaseStorage):
        return storage
    if not isinstance(storage, str | Path):
        raise TypeError(
            f"storage came as {type(storage).__name__}; None, the path of a journal file, an URL such as "
            "'sqlite:///study.db', or an Optuna storage is needed."
        )
    grace, again = _SILENT_BEATS * heartbeat, RetryHeartbeatStaleTrialCallback(max_retry=_TRIES)
    if "://" not in str(storage):
        check_journal(Path(storage))
        return BeatingJournal(str(storage), heartbeat, grace, again)
    url = check_url(str(storage))
    waiting = {"connect_args": {"timeout": _LOCKED}} if url.get_backend_name() == "sqlite" else {}
    for attempt in range(_ATTEMPTS):
        # Workers that come first to a new database at once stand in each other's way making its tables.
        time.sleep(attempt)
        try:
            return BeatingDatabase(str(storage), waiting, heartbeat, grace, again)
        except (IntegrityError, OperationalError, ProgrammingError) as error:
            last = error
    raise ConnectionError(f"the database {url} cannot be opened: {last.orig}") from last


def open_study(
    storage: BaseStorage | None,
    name: str | None,
    sampler: BaseSampler | None,
    pruner: BasePruner | None,
    seed: int,
) -> Study:
    """The study `name` in `storage`, made where there is none; TypeError for what Optuna does not take."""
    check_study(name, sampler, pruner)
    return optuna.create_study(
        storage=storage,
        study_name=NAME if name is None and storage is not None else name,
        direction="minimize",
        sampler=NumberedSampler(seed) if sampler is None else sampler,
        pruner=MedianPruner(n_startup_trials=5, n_warmup_steps=1) if pruner is None else pruner,
        load_if_exists=True,
    )


def join(study: Study, task: Mapping[str, Any]) -> None:
    """Take part in `study`; ValueError where it is of another task."""
    known = study.user_attrs.get(_TASK)
    if known is None:
        study.set_user_attr(_TASK, dict(task))
        return
    for name, value in task.items():
        if known.get(name) != value:
            raise ValueError(
                f"the study {study.study_name!r} was begun with {name}={known.get(name)!r}, and now "
                f"{name}={value!r} came. Scores would not compare: give this search a study of another name."
            )


def best_settings(other: Any, storage: BaseStorage | None) -> list[dict[str, Any]]:
    """What the best trials of the study `other` drew, the best first; none for None.

    Raises TypeError unless a study or a name, ValueError for a name that `storage` does not have.
    """
    if other is None:
        return []
    if isinstance(other, str):
        names = [] if storage is None else optuna.get_all_study_names(storage)
        if other not in names or storage is None:
            raise ValueError(
                f"from_study={other!r} is not in the storage, which has {names}. Give one of these, or the "
                "study itself."
            )
        other = optuna.load_study(study_name=other, storage=storage)
    if not isinstance(other, Study):
        raise TypeError(f"from_study must be a study or the name of one, got {other!r}.")
    done = other.get_trials(states=(TrialState.COMPLETE,))
    return [trial.params for trial in sorted(done, key=lambda trial: trial.values[0])[:_TRANSFERRED]]


def line_up(study: Study, start: dict[str, Any] | None, settings: list[dict[str, Any]]) -> None:
    """Queue `settings` that `study` has not had, and `start` before all where it is new."""
    if start is not None and not study.get_trials(deepcopy=False):
        settings = [start, *settings]
    for each in settings:
        study.enqueue_trial(each, skip_if_exists=True)


def run_trials(
    study: Study,
    objective: Callable[[optuna.Trial], float],
    n_trials: int | None,
    timeout: float | None,
    callback: Callback | None,
) -> int:
    """Run trials until there were `n_trials`, `timeout` seconds are over, or `callback` returns True.

    Returns how many were run. A trial that fails is one of them.
    """
    begin, done = time.monotonic(), 0
    while n_trials is None or done < n_trials:
        if timeout is not None and time.monotonic() - begin >= timeout:
            break
        current = _Current(objective)
        try:
            study.optimize(current, n_trials=1, catch=(Exception,))
        except (ValueError, UpdateFinishedTrialError, AssertionError):
            # Another worker that takes this one for dead ends its trial first, which Optuna stumbles over.
            if current.number < 0 or _trial(study, current.number).state != TrialState.FAIL:
                raise
        done += 1
        trial = _trial(study, current.number)
        if trial.state == TrialState.FAIL:
            lost = "it gave no sign of life in time, and another worker has it now"
            log.warning("trial %d failed: %s", trial.number, trial.user_attrs.get("error", lost))
        if callback is not None and callback(study, trial):
            break
    return done


class _Current:
    """An objective that remembers the number of its trial."""

    def __init__(self, objective: Callable[[optuna.Trial], float]) -> None:
        self._objective = objective
        self.number = -1

    def __call__(self, trial: optuna.Trial) -> float:
        self.number = trial.number
        return self._objective(trial)


def _trial(study: Study, number: int) -> FrozenTrial:
    return study.get_trials(deepcopy=False)[number]
