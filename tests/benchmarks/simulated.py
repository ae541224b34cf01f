"""Where does FracRidge do worse than a rule? Series whose law is known, beside simple models.

    python tests/benchmarks/simulated.py [--kinds NAME ...] [--seeds 12] [--no-record]

Each series is fitted once and forecast from its end: mean absolute error over all leads, and how many values
lie in the 90 % interval, mean over seeds. `break 20` steps its level by some seven standard deviations of the
noise 20 values before the end, `gap` ends in missing values. A row a kind and model goes to `simulated.csv`.
"""

import argparse
import warnings

import numpy as np
from record import record

from fracts import ETS, Drift, FitWarning, FracRidge, Mean, Naive

LENGTHS = (100, 12), (400, 30), (3000, 30)  # of the history, and the horizon


def ar(noise, weight):
    y = np.zeros(noise.size)
    for t in range(1, noise.size):
        y[t] = weight * y[t - 1] + noise[t]
    return y


def broken(noise, horizon, since):
    at = noise.size - horizon - since
    return 3 * noise + np.where(np.arange(noise.size) < at, 50.0, 70.0)


KINDS = {
    "white noise": lambda e, h: e,
    "AR(1), .9": lambda e, h: ar(e, 0.9),
    "AR(1), .98": lambda e, h: ar(e, 0.98),
    "random walk": lambda e, h: e.cumsum(),
    "walk and noise": lambda e, h: 0.3 * e[::-1].cumsum() + e,
    "line and noise": lambda e, h: 0.5 * np.arange(e.size) + 3 * e,
    "week and noise": lambda e, h: 3 * np.sin(2 * np.pi * np.arange(e.size) / 7) + e,
    "break 20": lambda e, h: broken(e, h, 20),
    "break 60": lambda e, h: broken(e, h, 60),
    "walk, gap of 20": lambda e, h: e.cumsum(),
}


def models(horizon):
    return {
        "FracRidge": FracRidge(horizon),
        "Naive": Naive(horizon),
        "Drift": Drift(horizon),
        "Mean": Mean(horizon),
        "ETS": ETS(horizon),
    }


def run(kind, n, horizon, seeds):
    """Rows of all models: mean absolute error and coverage."""
    errors, inside = {}, {}
    for seed in range(seeds):
        y = KINDS[kind](np.random.default_rng(seed).normal(size=n + horizon), horizon)
        history = np.where(np.arange(n) < n - 20, y[:n], np.nan) if "gap" in kind else y[:n]
        for name, model in models(horizon).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FitWarning)
                said, low, high = model.fit(history).forecast(level=90).T
            errors.setdefault(name, []).append(np.abs(said - y[n:]).mean())
            inside.setdefault(name, []).append(np.mean((low <= y[n:]) & (y[n:] <= high)))
    for name in errors:
        found = {"mae": round(np.mean(errors[name]), 4), "inside": round(np.mean(inside[name]), 4)}
        yield {"kind": kind, "n": n, "horizon": horizon, "seeds": seeds, "model": name} | found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--no-record", action="store_true")
    asked = parser.parse_args()
    names = list(models(1))
    print(f"{'':<18}{'n':>6}{'ahead':>6}" + "".join(f"{name:>16}" for name in names))
    for kind in asked.kinds:
        for n, horizon in LENGTHS:
            rows = list(run(kind, n, horizon, asked.seeds))
            record("simulated", rows)
            cells = "".join(f"{row['mae']:>9.2f} ({row['inside']:.2f})" for row in rows)
            print(f"{kind:<18}{n:>6}{horizon:>6}{cells}", flush=True)


if __name__ == "__main__":
    main()
