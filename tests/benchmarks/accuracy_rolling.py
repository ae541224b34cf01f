"""Does FracForecaster beat the classical models, ours and statsforecast's, on single series it rolls through?

    FRACTS_DATA=folder python tests/benchmarks/accuracy_rolling.py [--data NAME ...] [--models NAME ...]
        [--out FOLDER]
    python tests/benchmarks/accuracy_rolling.py --table

Nine series, fitted on the first 75 %, carried on over the rest without a new fit, all models alike; errors at
the same 400 origins, one step ahead and over the next 24. Rivals of statsforecast are those of
`peers/accuracy_peer.py`, whose rows are in `results/accuracy_peers.csv`. A row a model and horizon goes to
`accuracy_rolling.csv`. `--table` sets ours beside the best rival of each: the ratio of the mean errors, and a
95 % interval of the moving block bootstrap (Kuensch, 1989, Annals of Statistics 17(3)) over origins.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from accuracy import models
from accuracy_data import ROLLING
from accuracy_protocols import rolling_errors
from record import RESULTS, record

from fracts import ARFIMA, ARIMA, ETS, HAR, FitWarning, Mean, Naive, SeasonalNaive, Theta

LONGEST = 52  # steps of a season that a classical model is told
ARIMA_ROWS = 2000  # of a history with a season, beyond which ARIMA takes hours
DRAWS = 2000


def rivals(task, n_rows):
    """Our classical models, by name, as functions of a horizon and season lengths."""
    season = min([s for s in task.season_lengths if s <= LONGEST], default=None)
    found = {
        "Naive": lambda h, _: Naive(h),
        "Mean": lambda h, _: Mean(h),
        "ETS": lambda h, _: ETS(h, season_length=season),
        "Theta": lambda h, _: Theta(h, season_length=season),
        "ARFIMA(1,d,1)": lambda h, _: ARFIMA(h, p=1, q=1),
        "HAR": lambda h, _: HAR(h),
    }
    for length in task.season_lengths:
        found[f"SeasonalNaive {length}"] = lambda h, _, s=length: SeasonalNaive(h, season_length=s)
    if season is None or n_rows <= ARIMA_ROWS:
        found["ARIMA"] = lambda h, _: ARIMA(h, season_length=season)
    return found


def run(name, wanted, seeds, device):
    """Rows of one model after another on a data set, with the errors at each origin as text."""
    task = ROLLING[name]
    ours = {"FracRidge": (models(device, 0)["FracRidge"], 0)}
    for seed in range(seeds):
        ours[f"FracForecaster, seed {seed}"] = models(device, seed)["FracForecaster"], seed
    others = {key: (make, 0) for key, make in rivals(task, task.read().size).items()}
    for key, (make, seed) in (ours | others).items():
        if wanted and key not in wanted:
            continue
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FitWarning)
                errors = rolling_errors(task, make, "test")
        except (ValueError, TypeError, RuntimeError) as error:
            print(f"{name} {key}: left out, {error}", flush=True)
            continue
        seconds, rows = time.perf_counter() - start, []
        for horizon, error in ((1, errors[:, 0]), (errors.shape[1], np.nanmean(errors, axis=1))):
            told = " ".join(f"{e:.5g}" for e in error)
            row = {
                "data": name,
                "model": key,
                "seed": seed,
                "horizon": horizon,
                "mase": round(np.nanmean(error), 5),
            }
            rows.append(row | {"seconds": round(seconds, 1), "errors": told})
        print(
            f"{name:<22} {key:<24} {np.nanmean(errors[:, 0]):.4f} {np.nanmean(errors):.4f} {seconds:.0f} s",
            flush=True,
        )
        yield rows


def bootstrapped(ours, best, seed=0):
    """95 % interval of the ratio of mean errors, blocks of origins drawn for both at once."""
    n = len(ours)
    length = max(1, round(n ** (1 / 3) * 2))
    starts = np.random.default_rng(seed).integers(0, n - length + 1, (DRAWS, -(-n // length)))
    at = (starts[..., None] + np.arange(length)).reshape(DRAWS, -1)[:, :n]
    return np.quantile(np.nanmean(ours[at], axis=1) / np.nanmean(best[at], axis=1), [0.025, 0.975])


def all_errors(folder):
    """{(data, horizon): {model: errors}} of the last run of each."""
    found = {}
    for row in pd.read_csv(folder / "accuracy_rolling.csv").itertuples():
        found.setdefault((row.data, row.horizon), {})[row.model] = np.array(row.errors.split(), dtype=float)
    peers = pd.read_csv(RESULTS / "accuracy_peers.csv")
    for (data, model), rows in peers.groupby(["data", "model"]):
        for horizon, column in ((1, "one"), (24, "all")):
            if (data, horizon) in found:
                found[data, horizon][f"statsforecast {model}"] = rows[column].to_numpy()
    return found


def table(folder):
    """The ratio of ours to the best rival, data set by data set."""
    print(
        f"{'data':<22} {'h':>3} {'best rival':<28} {'MASE':>7} | {'model':<24} {'MASE':>7} {'ratio':>6} "
        f"{'95 %':>15}"
    )
    wins, worst = {1: 0, 24: 0}, 0.0
    found = all_errors(folder)
    for data in ROLLING:
        for horizon in (1, 24):
            errors = found.get((data, horizon), {})
            means = {model: np.nanmean(error) for model, error in errors.items()}
            others = {model: mean for model, mean in means.items() if not model.startswith("Frac")}
            if not others:
                continue
            best = min(others, key=others.get)
            for model in means:
                if model.startswith("Frac"):
                    ratio = means[model] / means[best]
                    low, high = bootstrapped(errors[model], errors[best])
                    print(
                        f"{data:<22} {horizon:>3} {best:<28} {means[best]:>7.4f} | {model:<24} "
                        f"{means[model]:>7.4f} {ratio:>6.3f} {low:>7.3f} {high:>7.3f}"
                    )
                    if model == "FracForecaster, seed 0":
                        wins[horizon] += ratio < 1
                        worst = max(worst, ratio)
    print(
        f"FracForecaster is ahead on {wins[1]} and {wins[24]} of {len(ROLLING)}, its worst ratio {worst:.3f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=ROLLING, default=list(ROLLING))
    parser.add_argument("--models", nargs="+")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=type(RESULTS), default=RESULTS)
    parser.add_argument("--no-record", action="store_true")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if not asked.table:
        for name in asked.data:
            for rows in run(name, asked.models, asked.seeds, asked.device):
                record("accuracy_rolling", rows, asked.out)
    table(asked.out)


if __name__ == "__main__":
    main()
