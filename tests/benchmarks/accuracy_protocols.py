"""How accuracy.py tries a model: one function for each kind of data set.

Each takes a task of accuracy_data.py, `make` (a function of a horizon and season lengths that returns a new
model) and the part to score on, "test" or "validation", which lies before the test part and after all that is
fitted then. It returns figures {name: value}; less is better.
"""

import numpy as np
import pandas as pd
from accuracy_data import origins

from fracts import backtest

BATCH = 32  # windows of ETTh1, the last incomplete batch of which is dropped
TRAIN, VALIDATION, TEST = 8640, 2880, 2880  # hours of ETTh1
FIRST, EVERY, SPANS = 3000, 66, (1, 5, 22)  # days of the volatility
NAIVE2 = {24: (18.383, 2.395)}  # sMAPE and MASE on M4 Hourly
REPEATED = 7  # days of the step that errors of the river are told in


def channels(task, make, part):
    """ETTh1: fitted on the training hours, every window of the part by the mean; MSE and MAE."""
    y = task.read()
    figures = {}
    for h in task.horizons:
        if part == "test":
            known = TRAIN + VALIDATION
            n_windows = (TEST - h + 1) // BATCH * BATCH
        else:
            known = TRAIN
            n_windows = VALIDATION - h + 1
        model = make(h, task.season_lengths).fit(y[:TRAIN])
        squares = absolutes = 0.0
        model = model.apply(y[:known])
        for at in range(n_windows):
            error = model.forecast(point="mean") - y[known + at : known + at + h]
            squares += np.mean(error**2) / n_windows
            absolutes += np.abs(error).mean() / n_windows
            model.learn_many(y[known + at])
        figures |= {f"MSE {h}": squares, f"MAE {h}": absolutes}
    for error in ("MSE", "MAE"):
        figures[f"{error} mean"] = np.mean([figures[f"{error} {h}"] for h in task.horizons])
    return figures


def volatility(task, make, part):
    """Expanding window from 3,000 days, parameters anew every 66; RMSE of the mean over each span."""
    y, told = task.read()
    origins = np.arange(FIRST, y.size - max(SPANS)) if part == "test" else np.arange(1500, FIRST - 22)
    out = np.empty((origins.size, len(SPANS)))
    for i, now in enumerate(origins):
        if i % EVERY == 0:
            model = make(max(SPANS), ())
            X = told[: now + 1, None] if model.past_only else None
            model.fit(y[: now + 1], X)
        elif model.past_only:
            model.learn_one(y[now], told[now : now + 1])
        else:
            model.learn_one(y[now])
        leads = model.forecast(point="mean")
        out[i] = [leads[:span].mean() for span in SPANS]
    truth = np.column_stack([y[origins[:, None] + np.arange(1, span + 1)].mean(1) for span in SPANS])
    rmse = np.sqrt(np.mean((out - truth) ** 2, axis=0))
    return {f"RMSE {span}": error for span, error in zip(SPANS, rmse, strict=True)}


def tail(task, make, part):
    """The last values of a single series, from one origin; validation is the mean of origins before."""
    y, (h,) = task.read(), task.horizons
    scale = np.abs(y[REPEATED:-h] - y[: -REPEATED - h]).mean()
    if part == "test":
        said = make(h, task.season_lengths).fit(y[:-h]).predict()
        return {"MASE": np.abs(y[-h:] - said).mean() / scale}
    tried = backtest({"it": make(h, task.season_lengths)}, y[:-h], start=y.size - h - 3650, step=10)
    return {"MASE": tried.scores().loc["it", "mae"] / scale}


def panel(task, make, part):
    """Many series, each from the end of its training part; mean over series."""
    history, future = task.read()
    (h,), season = task.horizons, task.season_lengths[0]
    if part == "validation":
        from_end = history.groupby("unique_id", sort=False).cumcount(ascending=False)
        history, future = history[from_end >= h], history[from_end < h]
    said = make(h, task.season_lengths).fit(history).predict()
    name = said.columns[-1]
    both = future.merge(said, on=["unique_id", "ds"], validate="one_to_one")
    error = (both["y"] - both[name]).abs()
    by_series = pd.DataFrame(
        {"id": both["unique_id"], "error": error, "share": 200 * error / (both["y"].abs() + both[name].abs())}
    )
    mean = by_series.groupby("id").mean()
    scale = history.groupby("unique_id")["y"].agg(lambda y: y.diff(season).abs().mean())
    figures = {"sMAPE": mean["share"].mean(), "MASE": (mean["error"] / scale).mean()}
    if season in NAIVE2:
        smape, mase = NAIVE2[season]
        figures["OWA"] = (figures["sMAPE"] / smape + figures["MASE"] / mase) / 2
    return figures


def rolling_errors(task, make, part):
    """Absolute errors (origins, leads) of a model fitted once and carried on, in units of the mean step."""
    y, (h,) = task.read(), task.horizons
    rows = origins(y.size, part, h)
    tried = backtest({"it": make(h, task.season_lengths)}, y[: rows[-1] + h + 1], start=int(rows[0]) + 1)
    said = np.concatenate([batch.table[0, :, :, 0] for batch in tried.batches("it")])
    truth = y[rows[:, None] + np.arange(1, h + 1)]
    return np.abs(truth - said[rows - rows[0]]) / np.nanmean(np.abs(np.diff(y[: rows[0] + 1])))


def rolling(task, make, part):
    """MASE one step ahead, and over all steps up to the horizon."""
    errors = rolling_errors(task, make, part)
    return {"MASE 1": np.nanmean(errors[:, 0]), f"MASE {errors.shape[1]}": np.nanmean(errors)}


PROTOCOLS = {
    "channels": channels,
    "volatility": volatility,
    "tail": tail,
    "panel": panel,
    "rolling": rolling,
}
