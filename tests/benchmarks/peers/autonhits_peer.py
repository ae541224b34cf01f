"""neuralforecast's AutoNHITS on a long table from stdin, forecasts to stdout; run by bench_search.py.

Needs an environment of its own with `pip install neuralforecast optuna`. The task has `table` (lists
unique_id, ds, y), `horizon`, `validation` and `test` (rows), `step` (rows between two forecasts), `trials`,
and `seconds`, which may be null.
"""

import json
import logging
import sys
import time
import warnings

import optuna
import pandas as pd
from neuralforecast import NeuralForecast
from neuralforecast.auto import AutoNHITS

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
optuna.logging.set_verbosity(optuna.logging.ERROR)

out, sys.stdout = sys.stdout, sys.stderr  # what is printed on the way is no part of the answer
task = json.load(sys.stdin)
model = AutoNHITS(
    task["horizon"],
    backend="optuna",
    search_alg=optuna.samplers.TPESampler(seed=0),
    num_samples=task["trials"],
    time_budget=task["seconds"],
)
start = time.perf_counter()
found = NeuralForecast([model], freq=1).cross_validation(
    pd.DataFrame(task["table"]),
    val_size=task["validation"],
    test_size=task["test"],
    n_windows=None,
    step_size=task["step"],
)
seconds = time.perf_counter() - start
found = found.reset_index() if "unique_id" not in found.columns else found
columns = {name: found[name].tolist() for name in ("unique_id", "ds", "cutoff")}
columns["forecast"] = found["AutoNHITS"].tolist()
json.dump({"table": columns, "seconds": seconds, "trials": len(model.results.trials)}, out)
