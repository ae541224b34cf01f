"""Is one recipe of the linear path better than another? Many short histories, all before the test parts.

    FRACTS_DATA=folder python tests/benchmarks/cuts.py [--missing SHARE] [--beside COMMIT] [--no-record]

FracRidge is fitted on the first 60 to 4,000 values of 22 series and carried on over the next 500, 24 leads
ahead, as far as all lies in the first 75 % of the series: by this defaults are chosen, never by a test part.
Mean pinball loss and mean absolute error over all leads, coverage of the 90 % interval. A row
a cut goes to `cuts.csv`. `--missing` hides a share of the values at random. `--beside` tells the ratios to
the rows that a commit left there: the geometric mean with its standard error, the mean without six cuts at
either end, and those of each length.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd
from accuracy_data import ROLLING, values, volatility
from record import RESULTS, record

from fracts import FracRidge, backtest
from fracts.forecasts import QUANTILES

HORIZON, ROLLED, SHARE = 24, 500, 0.75
LENGTHS = 60, 150, 250, 500, 1000, 2000, 4000
LEFT_OUT = 6  # cuts at either end
FILES = {
    "sunspots": "sunspots_monthly.csv",
    "treering": "treering.csv",
    "taxis": "nyc_taxi_half_hourly.csv.gz",
    "heart_rate": "heart_rate.csv",
    "heart_nn": "heart_nn_intervals.csv",
    "exchange_rate": "exchange_rate.csv.gz",
    "etf_vix": "cboe_etf_vix_daily.csv",
    "dem2gbp": "dem2gbp_daily_returns.csv",
    "co2": "co2_weekly.csv",
}


def series():
    """Values by name."""
    found = {name: task.read() for name, task in ROLLING.items()}
    found |= {
        "sp500_rv5": volatility()[0],
        "saugeen": values("saugeen_river_flow_daily.csv.gz", "flow"),
    }
    for name, file in FILES.items():
        table = pd.read_csv(Path(os.environ["FRACTS_DATA"]) / file)
        found[name] = table.select_dtypes("number").iloc[:, -1].to_numpy(float)
    return found | {f"etth1_{column}": values("ETTh1.csv.gz", column)[:14400] for column in ("OT", "HUFL")}


def tried(y, n):
    """Pinball loss, mean absolute error and coverage of what was forecast after the first `n` values."""
    rolled = backtest(
        {"it": FracRidge(HORIZON)}, y[: n + ROLLED + HORIZON], start=n, quantiles=QUANTILES.tolist()
    ).frame()
    truth = rolled["y"].to_numpy()
    told = rolled[[name for name in rolled if "_ql" in name]].to_numpy()
    error = truth[:, None] - told
    low, high = (told[:, np.abs(QUANTILES - level).argmin()] for level in (0.05, 0.95))
    known = ~np.isnan(truth)
    return {
        "pinball": np.nanmean(QUANTILES * error + np.maximum(-error, 0)),
        "mae": np.nanmean(np.abs(truth - rolled["it"])),
        "inside": np.mean((low <= truth)[known] & (truth <= high)[known]),
    }


def beside(rows, commit, missing):
    """Print the ratios of `rows` to those of a commit with as much `missing`."""
    before = pd.read_csv(RESULTS / "cuts.csv", dtype={"commit": str})
    before = before.query("commit == @commit and missing == @missing")
    before = before.drop_duplicates(["data", "n"], keep="last").set_index(["data", "n"])
    now = pd.DataFrame(rows).set_index(["data", "n"])
    for figure in ("pinball", "mae"):
        log = np.log(now[figure] / before[figure]).dropna().sort_values()
        middle = np.exp(log.iloc[LEFT_OUT:-LEFT_OUT].mean())
        print(
            f"{figure:<8} {np.exp(log.mean()):.4f} +- {log.sem():.4f} of {commit}, "
            f"{middle:.4f} without {LEFT_OUT} at either end, {len(log)} cuts"
        )
        of_lengths = np.exp(log.groupby("n").mean())
        print("  by length: " + ", ".join(f"{n} {ratio:.3f}" for n, ratio in of_lengths.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--missing", type=float, default=0.0)
    parser.add_argument("--beside")
    parser.add_argument("--no-record", action="store_true")
    asked = parser.parse_args()
    rows = []
    for name, y in series().items():
        y = np.where(np.random.default_rng(0).random(y.size) < asked.missing, np.nan, y)
        for n in LENGTHS:
            if n + ROLLED + HORIZON <= SHARE * y.size:
                figures = {key: float(f"{value:.6g}") for key, value in tried(y, n).items()}
                rows.append({"data": name, "n": n, "missing": asked.missing} | figures)
                print(
                    f"{name:<22} {n:>5}" + "".join(f" {value:>10.4g}" for value in figures.values()),
                    flush=True,
                )
    record("cuts", rows)
    if asked.beside:
        beside(rows, asked.beside, asked.missing)


if __name__ == "__main__":
    main()
