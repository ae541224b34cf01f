"""Is FracRidge better than HAR on realised volatility?

    FRACTS_DATA=folder python tests/benchmarks/ridge_volatility.py

`sp500_rv5_daily.csv.gz` in the folder: log of the 5-minute realised variance of the S&P 500, days as
consecutive rows. Expanding window from 3,000 days, parameters anew every 66 days, 2,057 origins (2011-12-19
to 2020-02-28); the target is the mean of the next 1, 5, 22 days. HAR is least squares on the means of the
last 1, 5, 22 days (Corsi, 2009, Journal of Financial Econometrics 7(2)).
"""

import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from record import record

from fracts.ridge import FracRidge

FIRST, EVERY, SPANS = 3000, 66, (1, 5, 22)
LIMITS = {1: 0.654, 5: 0.575, 22: 0.614}  # RMSE that FracRidge may not exceed


def backward_means(y):
    """Means of the last 1, 5, 22 days, and 1: (days, 4), NaN at the start."""
    return np.column_stack([*(pd.Series(y).rolling(span).mean() for span in SPANS), np.ones(y.size)])


def har(y, origins):
    """HAR forecasts at `origins`, each span a regression of its own: (origins, spans)."""
    x, out = backward_means(y), np.empty((origins.size, len(SPANS)))
    for start in range(0, origins.size, EVERY):
        now = origins[start]
        for k, span in enumerate(SPANS):
            rows = np.arange(max(SPANS) - 1, now - span + 1)
            weights = np.linalg.lstsq(x[rows], x[rows + span, k], rcond=None)[0]
            out[start : start + EVERY, k] = x[origins[start : start + EVERY]] @ weights
    return out


def ridge(y, origins):
    """FracRidge forecasts at `origins`, the mean over the leads of each span: (origins, spans)."""
    out = np.empty((origins.size, len(SPANS)))
    for i, now in enumerate(origins):
        if i % EVERY == 0:
            model = FracRidge(max(SPANS), season_lengths=()).fit(y[: now + 1])
        else:
            model.learn_one(y[now])
        leads = model.forecast(point="mean")
        out[i] = [leads[:span].mean() for span in SPANS]
    return out


def last_value(y, origins):
    return np.repeat(y[origins, None], len(SPANS), axis=1)


table = pd.read_csv(Path(os.environ["FRACTS_DATA"]) / "sp500_rv5_daily.csv.gz")
y = np.log(table["rv5"].to_numpy())
origins = np.arange(FIRST, y.size - max(SPANS))
means = backward_means(y)
truth = np.column_stack([means[origins + span, k] for k, span in enumerate(SPANS)])

print(f"{origins.size} origins, {table['date'][origins[0]]} to {table['date'][origins[-1]]}")
print(f"{'model':<10} {'h':>3} {'RMSE':>7} {'MAE':>7} {'seconds':>8}")
rows = []
for name, model in (("FracRidge", ridge), ("HAR", har), ("last value", last_value)):
    start = time.perf_counter()
    errors = model(y, origins) - truth
    seconds = time.perf_counter() - start
    for span, error in zip(SPANS, errors.T, strict=True):
        rmse, mae = np.sqrt(np.mean(error**2)), np.abs(error).mean()
        print(f"{name:<10} {span:>3} {rmse:>7.4f} {mae:>7.4f} {seconds:>8.1f}")
        rows.append({"model": name, "h": span, "rmse": rmse, "mae": mae, "seconds": round(seconds, 2)})
record("ridge_volatility", rows)
missed = [row for row in rows if row["model"] == "FracRidge" and row["rmse"] > LIMITS[row["h"]]]
if missed:
    raise SystemExit(f"FracRidge is worse than {LIMITS}: {missed}")
