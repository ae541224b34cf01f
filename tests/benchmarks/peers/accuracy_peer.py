"""Errors of statsforecast's automatic models at the rolling origins of accuracy.py; run once, recorded.

    FRACTS_DATA=folder ~/statsforecast/bin/python tests/benchmarks/peers/accuracy_peer.py [--data NAME]

In an environment with `pip install statsforecast`. Each model is fitted once, on the rows that ours are
fitted on, and carried on with its parameters fixed (`forward`), as ours are. What it is told: the shortest
season, if it has at most 52 steps (the automatic models hold one season, and ARIMA and ETS none so long as a
year of days). AutoARIMA sees the last 1,000 rows where there is a season, without which it takes hours.
Missing values are those before them. A row a model and origin is written: the absolute error one step ahead
and the mean over all steps, in units of the mean absolute step of what was fitted.
"""

import csv
import sys
import time
from pathlib import Path

import numpy as np
import statsforecast
from statsforecast.models import AutoARIMA, AutoETS, AutoTheta

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from accuracy_data import ROLLING, origins  # noqa: E402

MODELS = {"AutoETS": AutoETS, "AutoTheta": AutoTheta, "AutoARIMA": AutoARIMA}
LONGEST, ARIMA_ROWS = 52, 1000
FILE = HERE.parent / "results" / "accuracy_peers.csv"


def filled(y):
    at = np.maximum.accumulate(np.where(np.isnan(y), 0, np.arange(y.size)))
    return y[at]


def rolled(model, y, rows, horizon, keep):
    """Forecasts (origins, horizon) of `model`, fitted up to the first origin on the last `keep` rows."""
    model.fit(y[max(0, rows[0] + 1 - keep) : rows[0] + 1])
    return np.array([model.forward(y[max(0, t + 1 - keep) : t + 1], h=horizon)["mean"] for t in rows])


def errors(name, key):
    """Rows of the file."""
    task = ROLLING[name]
    (h,), raw = task.horizons, task.read()
    season = min([s for s in task.season_lengths if s <= LONGEST], default=1)
    rows = origins(raw.size, "test", h)
    keep = ARIMA_ROWS if key == "AutoARIMA" and season > 1 else raw.size
    start = time.perf_counter()
    said = rolled(MODELS[key](season_length=season), filled(raw), rows, h, keep)
    seconds = time.perf_counter() - start
    error = np.abs(raw[rows[:, None] + np.arange(1, h + 1)] - said)
    error /= np.nanmean(np.abs(np.diff(raw[: rows[0] + 1])))
    print(
        f"{name:<22} {key:<10} {np.nanmean(error[:, 0]):.4f} {np.nanmean(error):.4f} {seconds:.0f} s",
        flush=True,
    )
    who = {"data": name, "model": key, "version": statsforecast.__version__, "season": season}
    return [
        who | {"origin": row, "one": round(e[0], 5), "all": round(np.nanmean(e), 5)}
        for row, e in zip(rows.tolist(), error, strict=True)
    ]


def main():
    names = [sys.argv[sys.argv.index("--data") + 1]] if "--data" in sys.argv else list(ROLLING)
    for name in names:
        for key in MODELS:
            found = errors(name, key)
            fresh = not FILE.exists()
            with FILE.open("a", newline="") as file:
                writer = csv.DictWriter(file, found[0])
                if fresh:
                    writer.writeheader()
                writer.writerows(found)


if __name__ == "__main__":
    main()
