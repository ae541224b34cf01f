"""Storages in which no trial of a dead worker stays.

One idea: Optuna finds the trials of dead workers by a heartbeat, which its databases have and its journal has
not. Here the journal has one too: a stamp among the attributes of the trial. Clocks of the machines that
share a journal must agree to within the time after which a worker is taken for dead. In a database Optuna
overlooks a worker that died before its first sign of life; here it does not.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages._heartbeat import BaseHeartbeat
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import text

if TYPE_CHECKING:
    from optuna import Study

_BEAT = "fracts:heartbeat"
_WITHOUT_BEAT = text(
    "SELECT trials.trial_id FROM trials LEFT JOIN trial_heartbeats "
    "ON trials.trial_id = trial_heartbeats.trial_id "
    "WHERE trials.study_id = :study AND trials.state = 'RUNNING' AND trial_heartbeats.trial_id IS NULL"
)
_Callback = Callable[["Study", FrozenTrial], None]


class BeatingJournal(JournalStorage, BaseHeartbeat):
    """A journal file with a heartbeat.

    Parameters
    ----------
    path : of the file, which is made where there is none.
    interval : seconds between two signs of life.
    grace : seconds without one after which a worker is dead.
    on_stale : called with the study and each trial of a dead worker.
    """

    def __init__(self, path: str, interval: int, grace: int, on_stale: _Callback) -> None:
        super().__init__(JournalFileBackend(path))
        self._interval, self._grace, self._on_stale = interval, grace, on_stale

    def record_heartbeat(self, trial_id: int) -> None:
        """Put the stamp of now beside a running trial."""
        # Where another worker took this one for dead, who runs the trial is told when it ends.
        with contextlib.suppress(UpdateFinishedTrialError):
            self.set_trial_system_attr(trial_id, _BEAT, time.time())

    def get_heartbeat_interval(self) -> int:
        """Seconds between two signs of life."""
        return self._interval

    def get_heartbeat_stale_trial_callback(self) -> _Callback:
        """What is done with a trial of a dead worker, once it counts as failed."""
        return self._on_stale

    def _get_stale_trial_ids(self, study_id: int) -> list[int]:
        running = self.get_all_trials(study_id, deepcopy=False, states=(TrialState.RUNNING,))
        return [trial._trial_id for trial in running if time.time() - _last_beat(trial) > self._grace]


class BeatingDatabase(RDBStorage):
    """A database in which a trial that died before its first sign of life is found too.

    Parameters
    ----------
    url, engine_kwargs : as Optuna's `RDBStorage` takes them.
    interval, grace, on_stale : as `BeatingJournal` takes them.
    """

    def __init__(
        self, url: str, engine_kwargs: dict[str, Any], interval: int, grace: int, on_stale: _Callback
    ) -> None:
        super().__init__(
            url,
            engine_kwargs,
            heartbeat_interval=interval,
            grace_period=grace,
            heartbeat_stale_trial_callback=on_stale,
        )
        self._silent_since: dict[int, float] = {}  # trials without any sign of life, and when that was seen

    def _get_stale_trial_ids(self, study_id: int) -> list[int]:
        with self.engine.connect() as connection:
            silent = connection.execute(_WITHOUT_BEAT, {"study": study_id}).scalars().all()
        now = time.monotonic()
        self._silent_since = {trial: self._silent_since.get(trial, now) for trial in silent}
        grace = self.grace_period or 0
        never = [trial for trial, since in self._silent_since.items() if now - since > grace]
        return super()._get_stale_trial_ids(study_id) + never


def _last_beat(trial: FrozenTrial) -> float:
    """Seconds since the epoch; a trial that is tried again has the beat of the first try until it starts."""
    started = trial.datetime_start.timestamp() if trial.datetime_start else 0.0
    return max(started, float(trial.system_attrs.get(_BEAT, 0.0)))
