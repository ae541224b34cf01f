"""Workers share a study: one that is killed loses its trial to another, one told to end finishes it first."""

import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import optuna
import psycopg
import pytest
from optuna.trial import TrialState
from sqlalchemy.engine import make_url

from fracts.heartbeat import BeatingJournal
from fracts.studies import open_storage

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

WORKER = """
import sys, time
import numpy as np
from optuna.trial import Trial
from fracts import FracSearch, WindowAverage

storage, n_trials, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])

def space(trial):
    if isinstance(trial, Trial):  # and not the same choice told again for the table
        print("trial", trial.number, flush=True)
        time.sleep(seconds)
        print("slept", trial.number, flush=True)
    return {"window": trial.suggest_int("window", 1, 1000)}

y = np.random.default_rng(0).normal(size=200)
FracSearch(WindowAverage(2, 5), space, storage=storage, n_trials=n_trials, heartbeat=2, refit=False).fit(y)
"""


class Worker:
    """A process that runs trials of some length."""

    def __init__(self, storage, n_trials, seconds):
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(storage), str(n_trials), str(seconds)],
            stdout=subprocess.PIPE,
            text=True,
        )

    def trial(self):
        """The number of the next trial, once it runs."""
        while True:
            what, number = self.process.stdout.readline().split()
            if what == "trial":
                return int(number)

    def kill(self):
        """The numbers of the trials begun since and surely not ended: none or one."""
        self.process.kill()
        self.process.wait()
        with self.process.stdout:
            told = [line.split() for line in self.process.stdout]
        return [int(number) for what, number in told[-1:] if what == "trial"]

    def finish(self):
        told, _ = self.process.communicate(timeout=240)
        assert self.process.returncode == 0
        return [int(line.split()[1]) for line in told.splitlines() if line.startswith("trial")]


def trials_of(storage):
    opened = open_storage(storage, 1)
    trials = optuna.load_study(study_name="fracts", storage=opened).trials
    if isinstance(opened, optuna.storages.RDBStorage):
        opened.engine.dispose()
    return trials


def states(trials):
    return [trial.state.name for trial in trials]


@pytest.mark.slow
def test_a_killed_worker_loses_only_its_trial_which_another_runs_again(tmp_path):
    storage = tmp_path / "study.log"
    victim = Worker(storage, 9, 60)
    lost = victim.trial()
    victim.kill()
    survivor = Worker(storage, 5, 2.0)
    survivor.finish()
    trials = trials_of(storage)
    again = [t for t in trials if t.system_attrs.get("failed_trial") == lost]
    assert trials[lost].state == TrialState.FAIL and len(again) == 1
    assert again[0].state == TrialState.COMPLETE
    assert sorted(states(trials)) == ["COMPLETE"] * 5 + ["FAIL"]


def shared_by_four_with_kills(storage):
    """Four workers, three of them killed in a trial and started again."""
    workers = [Worker(storage, 15, 1.0) for _ in range(4)]
    lost = []
    for at in range(3):
        workers[at].trial()
        time.sleep(1.5)
        lost += workers[at].kill()
        workers[at] = Worker(storage, 15, 1.0)
    run = [number for worker in workers for number in worker.finish()]
    assert len(run) == len(set(run)), "two workers had one trial"
    trials = trials_of(storage)
    failed = {t.number for t in trials if t.state == TrialState.FAIL}
    retried = [number for t in trials for number in t.system_attrs.get("retry_history", [])]
    assert lost, "no worker was killed in a trial"
    assert failed == set(retried) >= set(lost), "a trial was lost, or tried again in vain"
    assert set(states(trials)) == {"COMPLETE", "FAIL"} and states(trials).count("COMPLETE") >= 55
    drawn = [t.params["window"] for t in trials if t.state == TrialState.COMPLETE]
    assert len(set(drawn)) > len(drawn) / 2


@pytest.mark.slow
def test_four_workers_share_a_journal_file_through_kills(tmp_path):
    shared_by_four_with_kills(tmp_path / "study.log")


@pytest.mark.slow
@pytest.mark.skipif("FRACTS_TEST_POSTGRES" not in os.environ, reason="needs FRACTS_TEST_POSTGRES, an URL")
def test_four_workers_share_a_postgresql_server_through_kills():
    url = make_url(os.environ["FRACTS_TEST_POSTGRES"])
    base = f"fracts_{secrets.token_hex(6)}"
    server = psycopg.connect(url.set(drivername="postgresql").render_as_string(False), autocommit=True)
    with server:
        server.execute(f"CREATE DATABASE {base}")
        try:
            shared_by_four_with_kills(url.set(database=base).render_as_string(False))
        finally:
            server.execute(f"DROP DATABASE {base} WITH (FORCE)")


@pytest.fixture
def running(tmp_path):
    """A study with one running trial, as two workers see it."""
    storages = [open_storage(tmp_path / "study.log", 1) for _ in range(2)]
    study = optuna.create_study(storage=storages[0], study_name="fracts")
    other = optuna.load_study(storage=storages[1], study_name="fracts")
    trial = storages[0].create_new_trial(study._study_id)
    return study, other, trial


def test_a_trial_with_a_beat_lately_is_alive_and_one_without_is_dead(running, monkeypatch):
    study, other, trial = running
    now = time.time()
    study._storage.record_heartbeat(trial)
    monkeypatch.setattr("fracts.heartbeat.time.time", lambda: now + 3.9)
    assert other._storage._get_stale_trial_ids(study._study_id) == []
    study._storage.record_heartbeat(trial)
    monkeypatch.setattr("fracts.heartbeat.time.time", lambda: now + 7.7)
    assert other._storage._get_stale_trial_ids(study._study_id) == []
    monkeypatch.setattr("fracts.heartbeat.time.time", lambda: now + 8.1)
    assert other._storage._get_stale_trial_ids(study._study_id) == [trial]


def test_a_trial_is_tried_again_three_times_and_each_try_has_time_of_its_own(running, monkeypatch):
    study, other, _ = running
    now = time.time()
    for k in range(1, 6):
        monkeypatch.setattr("fracts.heartbeat.time.time", lambda k=k: now + 1000 * k)
        optuna.storages.fail_stale_trials(other)
        waiting = [t for t in other.trials if t.state == TrialState.WAITING]
        if not waiting:
            break
        assert other._storage.set_trial_state_values(waiting[0]._trial_id, TrialState.RUNNING)
        monkeypatch.undo()
        assert other._storage._get_stale_trial_ids(study._study_id) == []
    assert states(other.trials) == ["FAIL"] * 4


def test_a_beat_of_a_trial_that_was_given_away_is_no_error(running):
    study, other, trial = running
    other._storage.set_trial_state_values(trial, TrialState.FAIL)
    study._storage.record_heartbeat(trial)


def test_a_worker_wrongly_taken_for_dead_goes_on_with_its_next_trial(tmp_path, caplog):
    import numpy as np

    from fracts import FracSearch, WindowAverage

    storage = tmp_path / "study.log"

    def space(trial):
        if trial.number == 1:
            open_storage(storage, 1).set_trial_state_values(trial._trial_id, TrialState.FAIL)
        return {"window": 2 + trial.number}

    FracSearch(WindowAverage(2, 5), space, storage=storage, n_trials=3).fit(np.arange(50.0) % 7)
    assert states(trials_of(storage)) == ["COMPLETE", "FAIL", "COMPLETE"]
    assert "trial 1 failed: it gave no sign of life in time" in caplog.text


def test_a_worker_of_a_database_that_died_before_its_first_sign_of_life_is_found(tmp_path, monkeypatch):
    storage = open_storage(f"sqlite:///{tmp_path}/study.db", 1)
    study = optuna.create_study(storage=storage, study_name="fracts")
    now = time.monotonic()
    dead, alive = (storage.create_new_trial(study._study_id) for _ in range(2))
    storage.record_heartbeat(alive)
    for seconds, found in ((0, []), (3.9, []), (4.1, [dead])):
        monkeypatch.setattr("fracts.heartbeat.time.monotonic", lambda seconds=seconds: now + seconds)
        assert storage._get_stale_trial_ids(study._study_id) == found
    storage.set_trial_state_values(dead, TrialState.FAIL)
    assert storage._get_stale_trial_ids(study._study_id) == []
    storage.engine.dispose()


def test_storages_that_are_named_beat(tmp_path):
    for storage in (tmp_path / "study.log", f"sqlite:///{tmp_path}/study.db"):
        opened = open_storage(storage, 7)
        assert opened.get_heartbeat_interval() == 7
    assert isinstance(open_storage(str(tmp_path / "study.log"), 7), BeatingJournal)


COMMAND = [sys.executable, "-m", "fracts", "search", "--horizon", "2", "--model", "FracRidge"]


@pytest.fixture
def data(tmp_path):
    rows = "\n".join(f"2024-01-{1 + k // 24:02d} {k % 24:02d}:00,{(k * k) % 7}.5" for k in range(480))
    path = tmp_path / "data.csv"
    path.write_text("ds,load\n" + rows)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_a_worker_ends_after_its_trial_and_goes_on_when_started_again(number, data, tmp_path):
    storage = tmp_path / "study.log"
    command = [*COMMAND, "--data", str(data), "--storage", str(storage), "--timeout", "200", "--quiet"]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not storage.exists() or storage.read_text().count('"op_code":4') < 2:  # two trials begun
        assert worker.poll() is None
        time.sleep(0.05)
    worker.send_signal(number)
    out, error = worker.communicate(timeout=60)
    assert worker.returncode == 0
    assert "ending after this trial" in error and "best mase" in out
    before = trials_of(storage)
    assert set(states(before)) == {"COMPLETE"} and len(before) >= 2
    again = [*COMMAND, "--data", str(data), "--storage", str(storage), "--trials", "2", "--quiet"]
    subprocess.run(again, check=True, capture_output=True)
    assert len(trials_of(storage)) == len(before) + 2


def test_a_worker_writes_the_best_where_it_is_told_to(data, tmp_path):
    from fracts import FracRidge

    target = tmp_path / "model.safetensors"
    told = subprocess.run(
        [*COMMAND, "--data", str(data), "--trials", "2", "--leave-out", "5", "--save", str(target)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "best mase" in told.stdout and f"saved as {target}" in told.stdout and "2/2" in told.stderr
    model = FracRidge.load(Path(target))
    assert str(model.cutoff_) == "2024-01-20 18:00:00" and model.series_ids_ == ["load"]
