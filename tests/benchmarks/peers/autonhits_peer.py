"""neuralforecast's AutoNHITS on a long table from stdin, forecasts to stdout; run by bench_search.py.

Needs an environment of its own with `pip install neuralforecast optuna`. The task has `table` (lists
unique_id, ds, y), `horizon`, `validation` and `test` (rows), `step` (rows between two forecasts), `journal`
(a file), `workers` (processes), `seed`, and how long the search goes on: until there were `trials` and
`seconds` are over, at most `limit` seconds of the clock unless null. The answer has `picks`: the best trial
so far, each time that there is a better one, with its forecasts of the test rows.
"""

import json
import logging
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import optuna
import pandas as pd
from neuralforecast import NeuralForecast
from neuralforecast.auto import AutoNHITS
from neuralforecast.common._base_auto import OptunaOptions
from neuralforecast.losses.pytorch import MAE
from neuralforecast.models import NHITS
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

SILENT = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}


def hush():
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def study_of(task, **options):
    return {
        "storage": JournalStorage(JournalFileBackend(task["journal"])),
        "study_name": "AutoNHITS",
        **options,
    }


def finished(study):
    """Trials that succeeded, in the order of their ends."""
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return sorted(trials, key=lambda trial: trial.datetime_complete)


def seconds_of(trials):
    return sum(trial.duration.total_seconds() for trial in trials)


def search(number, task):
    """Run trials of the study until the budget is spent."""
    hush()
    horizon, begin = task["horizon"], time.monotonic()
    default = AutoNHITS.get_default_config(horizon, "optuna")

    def stop(study, trial):
        trials = finished(study)
        spent = len(trials) >= task["trials"] and seconds_of(trials) >= task["seconds"]
        if spent or time.monotonic() - begin >= (task["limit"] or float("inf")):
            study.stop()

    model = AutoNHITS(
        horizon,
        config=lambda trial: {**default(trial), **SILENT},
        backend="optuna",
        search_alg=optuna.samplers.TPESampler(seed=task["seed"] + number),
        num_samples=10_000,
        callbacks=[stop],
        optuna_options=OptunaOptions(
            study_kwargs={"catch": (Exception,)},
            create_study_kwargs=study_of(task, load_if_exists=True),
        ),
    )
    table = pd.DataFrame(task["table"])
    history = table[table["ds"] <= table["ds"].max() - task["test"]]
    NeuralForecast([model], freq=1).fit(history, val_size=task["validation"])


def forecasts(number, task):
    """Of the test rows, by the parameters of trial `number`, fitted on all that comes before them."""
    hush()
    study = optuna.load_study(**study_of(task))
    params = next(trial for trial in study.trials if trial.number == number).user_attrs["ALL_PARAMS"]
    model = NHITS(**params, loss=MAE(), valid_loss=MAE())
    found = NeuralForecast([model], freq=1).cross_validation(
        pd.DataFrame(task["table"]),
        val_size=0,
        test_size=task["test"],
        n_windows=None,
        step_size=task["step"],
    )
    found = found.reset_index() if "unique_id" not in found.columns else found
    columns = {name: found[name].tolist() for name in ("unique_id", "ds", "cutoff")}
    return columns | {"forecast": found["NHITS"].tolist()}


def main():
    out, sys.stdout = sys.stdout, sys.stderr  # what is printed on the way is no part of the answer
    task = json.load(sys.stdin)
    with ProcessPoolExecutor(task["workers"], get_context("spawn")) as pool:
        for each in [pool.submit(search, number, task) for number in range(task["workers"])]:
            each.result()
        trials = finished(optuna.load_study(**study_of(task)))
        picks, told, best = [], [], float("inf")
        for at, trial in enumerate(trials):
            if trial.value < best:
                best = trial.value
                told.append(pool.submit(forecasts, trial.number, task))
                picks.append({"trials": at + 1, "seconds": seconds_of(trials[: at + 1])})
        answer = [pick | {"table": each.result()} for pick, each in zip(picks, told, strict=True)]
    json.dump({"picks": answer, "trials": len(trials), "seconds": seconds_of(trials)}, out)


if __name__ == "__main__":
    main()
