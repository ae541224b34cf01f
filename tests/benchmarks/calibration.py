"""Do intervals hold what they say, from held-out errors alone and with a tracker that learns on the way?

    FRACTS_DATA=folder python tests/benchmarks/calibration.py [--data NAME] [--network]

One fit on the first rows, then every later row is an origin of 24 leads, and the state is carried on. A
table of one step ahead: the least and the greatest coverage of any 500 steps in a row after the first
200, less the level, in points; the share of finite intervals; the mean interval score (Gneiting and
Raftery, 2007) and that of held-out errors alone. A table of all leads: coverage in each third of the
horizon and of the worst lead, in points above the level. `--network` has FracForecaster in place of
FracRidge, on the volatility alone unless `--data` names another. Fails where a figure of the tracker is
beyond its limit.

The level break is an autoregression of .6 with steps of 1, whose level rises by 8 and whose steps double
after three quarters; volatility is in logarithms.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from record import record

from fracts import FracForecaster, FracRidge, backtest

HORIZON, LEVELS = 24, (80, 95)
SPAN, BEFORE = 500, 200  # steps of a running coverage, and those before the first
LIMITS = {"running": 5.0, "finite": 95.0, "score": 1.0, "lead": 2.0, "third": 3.0}
SEED = 7


def read(name, column):
    return pd.read_csv(Path(os.environ["FRACTS_DATA"]) / name)[column].to_numpy(np.float64)


def level_break():
    steps = np.random.default_rng(SEED).normal(size=6000)
    steps[4500:] *= 2
    y = np.zeros(6000)
    for t in range(1, 6000):
        y[t] = 0.6 * y[t - 1] + steps[t]
    y[4500:] += 8
    return y


DATA = {  # values, rows fitted, seasons
    "sp500_rv5": (lambda: np.log(read("sp500_rv5_daily.csv.gz", "rv5")), 2500, ()),
    "vix_daily": (lambda: read("vix_daily.csv", "vix_daily"), 2500, ()),
    "log vix_daily": (lambda: np.log(read("vix_daily.csv", "vix_daily")), 2500, ()),
    "traffic_volume_hourly": (
        lambda: read("traffic_volume_hourly.csv.gz", "traffic_volume"),
        11000,
        (24, 168),
    ),
    "nyc_taxi_half_hourly": (lambda: read("nyc_taxi_half_hourly.csv.gz", "passengers"), 5000, (48, 336)),
    "level break": (level_break, 3000, ()),
}


def model(seasons, calibration):
    if "--network" in sys.argv:
        return FracForecaster(HORIZON, season_lengths=seasons, calibration=calibration, random_state=SEED)
    return FracRidge(HORIZON, season_lengths=seasons, calibration=calibration)


def forecasts(y, n_fitted, seasons):
    """Truths (origins, leads), and for each calibration the ends of its intervals, {level: (low, high)}."""
    tried = backtest(
        {name: model(seasons, name) for name in ("held-out", "adaptive")}, y, start=n_fitted, level=LEVELS
    )
    frame = tried.frame()

    def ends(column):
        return frame[column].to_numpy().reshape(-1, HORIZON)

    intervals = {
        name: {level: (ends(f"{name}-lo-{level}"), ends(f"{name}-hi-{level}")) for level in LEVELS}
        for name in ("held-out", "adaptive")
    }
    return ends("y"), intervals


def figures(truth, low, high, level):
    """The columns of both tables."""
    known = ~np.isnan(truth)
    inside = np.where(known, (low <= truth) & (truth <= high), np.nan)
    above = 100 * (inside - level / 100)
    missed = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    score = np.where(known, high - low + missed / ((1 - level / 100) / 2), np.nan)
    one = above[known[:, 0], 0][BEFORE:]
    running = np.convolve(one, np.full(SPAN, 1 / SPAN), "valid")
    by_lead = np.nanmean(above, axis=0)
    return {
        "least": running.min(),
        "greatest": running.max(),
        "finite": 100 * np.isfinite(high - low).mean(),
        "score": np.nanmean(score[:, 0]),
        "score_all": np.nanmean(score),
        **{f"third_{i + 1}": np.nanmean(part) for i, part in enumerate(np.array_split(above, 3, axis=1))},
        "worst_lead": by_lead[np.abs(by_lead).argmax()],
    }


def beyond(row, raw):
    """Which limits a row of the tracker breaks."""
    broken = {
        "running": max(-row["least"], row["greatest"]) > LIMITS["running"],
        "finite": row["finite"] < LIMITS["finite"],
        "score": row["score"] > LIMITS["score"] * raw["score"],
        "lead": abs(row["worst_lead"]) > LIMITS["lead"],
        "third": max(abs(row[f"third_{i}"]) for i in (1, 2, 3)) > LIMITS["third"],
    }
    return [name for name, is_so in broken.items() if is_so]


chosen = [sys.argv[sys.argv.index("--data") + 1]] if "--data" in sys.argv else list(DATA)
if "--network" in sys.argv and "--data" not in sys.argv:
    chosen = ["sp500_rv5"]
rows = []
print(f"{'':<46}|{'one step ahead':^38}|{'points above the level, all leads':^38}")
print(
    f"{'data':<22} {'calibration':<11} {'level':>5} {'n':>5}|{'least':>7} {'most':>6} {'finite':>7} "
    f"{'score':>8} {'/ raw':>6} |{'thirds of the horizon':^22} {'worst':>7} {'/ raw':>6}"
)
for name in chosen:
    values, n_fitted, seasons = DATA[name]
    start = time.perf_counter()
    truth, intervals = forecasts(values(), n_fitted, seasons)
    seconds = time.perf_counter() - start
    for level in LEVELS:
        raw = figures(truth, *intervals["held-out"][level], level)
        for calibration, by_level in intervals.items():
            row = figures(truth, *by_level[level], level)
            thirds = " ".join(f"{row[f'third_{i}']:>+6.1f}" for i in (1, 2, 3))
            broken = beyond(row, raw) if calibration == "adaptive" else []
            print(
                f"{name:<22} {calibration:<11} {level:>5} {len(truth):>5}|{row['least']:>+7.1f} "
                f"{row['greatest']:>+6.1f} {row['finite']:>7.1f} {row['score']:>8.3g} "
                f"{row['score'] / raw['score']:>6.3f} |{thirds:^22} {row['worst_lead']:>+7.1f} "
                f"{row['score_all'] / raw['score_all']:>6.3f} {' '.join(broken)}",
                flush=True,
            )
            kind = type(model(seasons, calibration)).__name__
            what = {"model": kind, "data": name, "calibration": calibration, "level": level, "seed": SEED}
            told = {key: round(float(value), 5) for key, value in row.items()}
            rows.append(
                {**what, "origins": len(truth), **told, "beyond": " ".join(broken), "seconds": seconds}
            )
record("calibration", rows)
if missed := [(row["data"], row["level"], row["beyond"]) for row in rows if row["beyond"]]:
    raise SystemExit(f"beyond {LIMITS}: {missed}")
