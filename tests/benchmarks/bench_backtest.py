"""How long does a backtest from 100,000 origins take, and does its memory grow with the origins?

    python tests/benchmarks/bench_backtest.py

Seconds of `backtest(model, y, start=5000).scores()` on two threads, the fit on 5,000 hours among them, and
the peak memory of its process, for 1 to 100,000 origins of an hourly ARFIMA with a daily season, a process
each; beside them what an origin adds to the backtest from one. Before anything is timed the forecasts from
200 origins are checked against a loop of `update` and `forecast`.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import torch
from record import record

from fracts import FracForecaster, FracRidge, Naive, backtest
from fracts.datasets import make_arfima

HORIZON, DAY, HISTORY = 24, 24, 5000
ORIGINS = 1, 1000, 10_000, 100_000
MODELS = {
    "FracForecaster": lambda: FracForecaster(HORIZON, random_state=0),
    "FracRidge": lambda: FracRidge(HORIZON),
    "Naive": lambda: Naive(HORIZON),
}


def series(n_origins):
    n = HISTORY + n_origins + HORIZON - 1
    hours = pd.date_range("2000-01-01", periods=n, freq="h")
    wave = 2 * np.sin(2 * np.pi * np.arange(n) / DAY)
    return pd.Series(wave + make_arfima(max(ORIGINS) + HISTORY + HORIZON, 0.3, random_state=0)[:n], hours)


def measure(name, n_origins):
    """Seconds, and megabytes at the peak."""
    y = series(n_origins)
    start = time.perf_counter()
    tried = backtest(MODELS[name](), y, start=HISTORY)
    mase = float(tried.scores().loc[name, "mase"])
    seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if len(tried.cutoffs) != n_origins:
        raise SystemExit(f"{len(tried.cutoffs)} origins instead of {n_origins}")
    return {"seconds": seconds, "peak_mb": peak, "mase": mase}


def check():
    """A pass and a loop agree, or nothing is timed."""
    y = series(200)
    for name, make in MODELS.items():
        found = backtest(make(), y, start=HISTORY).frame()[name].to_numpy().reshape(200, HORIZON)
        model, looped = make().fit(y[:HISTORY]), []
        for turn in range(200):
            looped.append(model.forecast())
            model.update(y[HISTORY + turn : HISTORY + turn + 1])
        if not np.abs(found - looped).max() < 1e-5 * np.abs(looped).max():
            raise SystemExit(f"{name}: a pass and a loop differ; nothing was timed")


def child(name, n_origins):
    command = [sys.executable, __file__, "--child", name, str(n_origins)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-record", action="store_true")
    parser.add_argument("--child", nargs=2)
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    if arguments.child:
        name, n_origins = arguments.child
        print(json.dumps(measure(name, int(n_origins))))
        return
    check()
    print(f"{'model':>15} {'origins':>8} {'s':>7} {'µs an origin':>13} {'MB':>7} {'MB more':>8}")
    rows = []
    for name in MODELS:
        alone = {}
        for n_origins in ORIGINS:
            row = {"torch": torch.__version__, "model": name, "origins": n_origins}
            row |= {key: round(value, 4) for key, value in child(name, n_origins).items()}
            alone = alone or row
            each = 1e6 * (row["seconds"] - alone["seconds"]) / max(1, n_origins - 1)
            more = row["peak_mb"] - alone["peak_mb"]
            print(
                f"{name:>15} {n_origins:>8} {row['seconds']:>7.1f} {each:>13.1f} {row['peak_mb']:>7.0f}"
                f" {more:>8.0f}",
                flush=True,
            )
            rows.append(row)
    record("bench_backtest", rows)


if __name__ == "__main__":
    main()
