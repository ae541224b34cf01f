"""Does exponential smoothing help short series that share coefficients, and where does it do harm?

    FRACTS_DATA=folder python tests/benchmarks/short_panels.py [--no-record]

FracRidge with and without it, 12 steps ahead: on simulated panels, 40 series of 110 steps and 60 of 48; and
on windows of 60, 120 and 300 values cut from the first three quarters of series of accuracy_data.py, a panel
a series and length. Mean absolute errors in units of the mean step of each series, and their ratio; above 1
smoothing does harm. Rows are appended to `short_panels.csv`.
"""

import warnings

import numpy as np
import pandas as pd
from accuracy_data import ROLLING, values, volatility
from record import record

import fracts.recall
from fracts import FitWarning, FracRidge

HORIZON, LENGTHS, MOST, FEWEST, SEEDS = 12, (60, 120, 300), 60, 4, 4
SHORT = fracts.recall._SHORT


def simulated(n_series, rows, season, seed):
    """Panels (series, rows) by name."""
    rng, t = np.random.default_rng(seed), np.arange(rows)
    noise = rng.normal(size=(n_series, rows))
    walk, half = noise.cumsum(1), n_series // 2
    seasons = 2 * rng.normal(size=(n_series, season))[:, t % season]
    lines = 0.3 * rng.normal(size=(n_series, 1)) * t
    return {
        "white noise": noise,
        "random walks": walk,
        "season and noise": seasons + noise,
        "season and walk": seasons + walk,
        "trend and noise": lines + noise,
        "trend and walk": lines + walk,
        "half trends, half noise": np.concatenate([lines[:half], 0 * lines[half:]]) + noise,
        "a step and noise": 5 * (t > rng.integers(rows // 4, rows, (n_series, 1))) + noise,
    }


def windows(y, length):
    """Stretches (series, length) of the first three quarters of `y`, none with a hole."""
    y = y[: int(0.75 * y.size)]
    starts = np.linspace(0, y.size - length, min(y.size // length, MOST)).astype(int)
    cut = np.stack([y[start : start + length] for start in starts]) if starts.size else np.empty((0, length))
    return cut[~np.isnan(cut).any(1)]


def error(panel, season_lengths, short):
    """Mean over series of the absolute error, in units of the mean step."""
    fracts.recall._SHORT = short
    history, future = panel[:, :-HORIZON], panel[:, -HORIZON:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        said = FracRidge(HORIZON, season_lengths=season_lengths).fit(pd.DataFrame(history.T)).predict()
    step = np.abs(np.diff(history, axis=1)).mean(1, keepdims=True)
    return (np.abs(future - said.to_numpy().T) / step).mean()


def panels():
    """Name, season lengths, and panels of a kind."""
    for n_series, rows, season in ((40, 110, 12), (60, 48, 4)):
        drawn = [simulated(n_series, rows + HORIZON, season, seed) for seed in range(SEEDS)]
        for name in drawn[0]:
            yield f"{name}, {n_series} x {rows}", (season,), [draw[name] for draw in drawn]
    logs = {
        "volatility": lambda: volatility()[0],
        "saugeen, log": lambda: values("saugeen_river_flow_daily.csv.gz", "flow", log=True),
    }
    sets = {name: (task.read, task.season_lengths) for name, task in ROLLING.items()}
    for name, (read, lengths) in (sets | {name: (read, ()) for name, read in logs.items()}).items():
        seasons = tuple(length for length in lengths if length <= 48)
        for rows in LENGTHS:
            cut = windows(read(), rows + HORIZON)
            if len(cut) >= FEWEST and rows >= 3 * max(seasons, default=1):
                yield f"{name}, {len(cut)} x {rows}", seasons, [cut]


def main():
    ratios = []
    print(f"{'panel':<38} {'without':>9} {'with':>9} {'ratio':>7}")
    for name, seasons, drawn in panels():
        without, beside = (np.mean([error(one, seasons, short) for one in drawn]) for short in (0, SHORT))
        print(f"{name:<38} {without:>9.4f} {beside:>9.4f} {beside / without:>7.3f}", flush=True)
        figures = {"without": round(without, 5), "with": round(beside, 5)}
        record("short_panels", [{"panel": name, **figures}])
        ratios += [beside / without] if len(drawn) == 1 else []
    print(f"windows of series, geometric mean of {len(ratios)} ratios: {np.exp(np.log(ratios).mean()):.4f}")


if __name__ == "__main__":
    main()
