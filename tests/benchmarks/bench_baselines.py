"""Are the classical models as accurate as those of statsforecast and of R's forecast, and how fast?

    FRACTS_DATA=folder python tests/benchmarks/bench_baselines.py [--series 100] [--data "M3 Monthly"] \
        [--only ETS,Theta] [--validation]

M4 Hourly (48 steps ahead, season of 24) and M3 Monthly (18 ahead, 12), from `m4_hourly.csv.gz` and
`m3.csv.gz` in the folder; `--series` takes that many of each, evenly spread, in place of all, `--data` one of
the two sets, `--only` the models named and their peers. Every model is fitted to the training part and scored
on the rest (with `--validation` on the end of the training part, to choose by): MASE, sMAPE, and OWA, which
is their mean in units of Naive2 (Makridakis, Spiliotis and Assimakopoulos, 2020, International Journal of
Forecasting 36(1)).

A peer runs in an environment of its own and is left out where there is none. `STATSFORECAST_PYTHON` names the
Python of one with statsforecast; `Rscript` on the path is asked for the packages forecast and jsonlite. Times
are CPU seconds of fitting and forecasting alone, one process and one thread each; models and peers take
turns, a batch of series each, so that a busy machine slows all of them.
"""

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from record import record
from sklearn.base import clone

from fracts import ARFIMA, ARIMA, ETS, STL, Drift, Ensemble, FitWarning, Naive, SeasonalNaive, Theta

HERE = Path(__file__).parent
BATCH = 50  # series between two turns
SETS = {"M4 Hourly": (48, 24), "M3 Monthly": (18, 12)}  # horizon and season
COUNTERPARTS = {"ETS": "AutoETS", "Theta": "Theta", "ARIMA": "AutoARIMA"}
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def models(horizon, season):
    """Ours, by name."""
    options = {"season_length": season}
    return {
        "Naive": Naive(horizon),
        "SeasonalNaive": SeasonalNaive(horizon, **options),
        "Drift": Drift(horizon),
        "ETS": ETS(horizon, **options),
        "Theta": Theta(horizon, **options),
        "ARIMA": ARIMA(horizon, **options),
        "STL + ETS": STL(horizon, ETS(horizon, season_length=None), season_lengths=season),
        "STL + ARFIMA": STL(horizon, ARFIMA(horizon, p=1), season_lengths=season),
        "Median of the three": Ensemble(
            horizon,
            [ETS(horizon, **options), Theta(horizon, **options), ARIMA(horizon, **options)],
            how="median",
        ),
    }


def load(name):
    """Training parts and what came, as lists of arrays."""
    folder = Path(os.environ["FRACTS_DATA"])
    table = pd.read_csv(folder / ("m4_hourly.csv.gz" if name == "M4 Hourly" else "m3.csv.gz"))
    if name == "M3 Monthly":
        table = table[table["freq"] == "monthly"]
    ids = table["unique_id"].unique()
    count = min(int(asked("--series", len(ids))), len(ids))
    ids = ids[np.linspace(0, len(ids) - 1, count).astype(int)]
    parts = table[table["unique_id"].isin(ids)].groupby(["unique_id", "split"], sort=False)["y"]
    series = {key: values.to_numpy(dtype=float) for key, values in parts}
    histories, futures = ([series[name, part] for name in ids] for part in ("train", "test"))
    if "--validation" in sys.argv:
        horizon, _ = SETS[name]
        return [y[:-horizon] for y in histories], [y[-horizon:] for y in histories]
    return histories, futures


def asked(option, default):
    """What comes after `option` on the command line."""
    return sys.argv[sys.argv.index(option) + 1] if option in sys.argv else default


def ours(model, histories):
    """Forecasts and CPU seconds of one of our models."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        # Once before the clock starts: what is imported at its first use is not what is measured.
        clone(model).fit(histories[0][-100:])
        start = time.process_time()
        forecasts = [model.fit(y).predict() for y in histories]
    return forecasts, time.process_time() - start


def peer(command, model, histories, horizon, season):
    """Forecasts and CPU seconds that a peer in another process tells of itself."""
    task = {"model": model, "horizon": horizon, "season": season, "series": [y.tolist() for y in histories]}
    done = subprocess.run(
        command,
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | ONE_THREAD,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    return [np.array(forecast, dtype=float) for forecast in told["forecasts"]], told["seconds"]


def peers():
    """Commands of the peers there are."""
    found = {}
    if python := os.environ.get("STATSFORECAST_PYTHON"):
        found["statsforecast"] = [python, str(HERE / "peers" / "statsforecast_peer.py")]
    question = ["Rscript", "-e", "library(forecast); library(jsonlite)"]
    try:
        if subprocess.run(question, capture_output=True, check=False).returncode == 0:
            found["R forecast"] = ["Rscript", str(HERE / "peers" / "forecast_peer.R")]
    except FileNotFoundError:
        pass
    return found


def naive2(y, horizon, season):
    """The last value, seasonally adjusted by ratios where a test at 90 % finds a season."""
    from statsmodels.tsa.seasonal import seasonal_decompose
    from statsmodels.tsa.stattools import acf

    correlation = acf(y, nlags=season, fft=True)[1:]
    limit = 1.645 * np.sqrt((1 + 2 * np.sum(correlation[:-1] ** 2)) / len(y))
    factors = np.ones(season)
    if len(y) >= 2 * season and abs(correlation[-1]) > limit and y.min() > 0:
        factors = seasonal_decompose(y, model="mul", period=season).seasonal[:season]
    steps = np.arange(len(y), len(y) + horizon)
    return y[-1] / factors[(len(y) - 1) % season] * factors[steps % season]


def scores(forecasts, futures, histories, season):
    """Mean MASE and sMAPE over the series."""
    mase, smape = [], []
    for forecast, future, y in zip(forecasts, futures, histories, strict=True):
        error = np.abs(future - forecast)
        mase.append(error.mean() / np.abs(y[season:] - y[:-season]).mean())
        smape.append(200 * np.mean(error / (np.abs(future) + np.abs(forecast))))
    return np.mean(mase), np.mean(smape)


def main():
    rows = []
    for name in asked("--data", ",".join(SETS)).split(","):
        horizon, season = SETS[name]
        histories, futures = load(name)
        ours_all = models(horizon, season)
        wanted = asked("--only", ",".join(ours_all)).split(",")
        runs = {("fracts", key): [[], 0.0] for key in ours_all if key in wanted}
        runs |= {(who, key): [[], 0.0] for who in peers() for key in COUNTERPARTS if key in wanted}
        for at in range(0, len(histories), BATCH):
            batch = histories[at : at + BATCH]
            for (who, key), run in runs.items():
                if who == "fracts":
                    said, seconds = ours(ours_all[key], batch)
                else:
                    said, seconds = peer(peers()[who], COUNTERPARTS[key], batch, horizon, season)
                run[0] += said
                run[1] += seconds
        base = scores([naive2(y, horizon, season) for y in histories], futures, histories, season)
        print(f"\n{name}: {len(histories)} series; Naive2 MASE {base[0]:.3f}, sMAPE {base[1]:.2f}")
        print(f"{'who':<14} {'model':<20} {'MASE':>7} {'sMAPE':>7} {'OWA':>6} {'CPU s each':>11}")
        for (who, key), (said, seconds) in runs.items():
            mase, smape = scores(said, futures, histories, season)
            owa = (mase / base[0] + smape / base[1]) / 2
            each = seconds / len(histories)
            print(f"{who:<14} {key:<20} {mase:>7.3f} {smape:>7.2f} {owa:>6.3f} {each:>11.3f}")
            rows.append(
                {
                    "data": name,
                    "part": "validation" if "--validation" in sys.argv else "test",
                    "n_series": len(histories),
                    "who": who,
                    "model": key,
                    "mase": mase,
                    "smape": smape,
                }
                | {"owa": owa, "cpu_seconds_a_series": round(each, 4)}
            )
    record("bench_baselines", rows)


if __name__ == "__main__":
    main()
