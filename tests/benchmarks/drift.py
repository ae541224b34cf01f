"""When does it pay to learn on? Two laws that change, and one that does not.

    python tests/benchmarks/drift.py

Root mean squared error, one step ahead, over 6,000 values after a history of 3,000, mean over five seeds, in
units of the noise: a perfect forecast has 1. Beside `FracRidge` as fitted once, with learning on at several
forgettings in pieces of 250 values, and fitted anew at each piece on all values so far.
"""

import copy
import sys

import numpy as np
from record import record

from fracts import FracRidge, backtest

HISTORY, LATER, PIECE, SEEDS = 3_000, 6_000, 250, 5
FORGETTINGS = 0.99, 0.997, 0.999, 1.0


def steady(rng, n):
    """An AR(1) whose coefficient stays .6."""
    return autoregression(np.full(n, 0.6), rng)


def broken(rng, n):
    """The coefficient falls from .9 to -.5 a third of the way after the history."""
    return autoregression(np.where(np.arange(n) < HISTORY + LATER // 3, 0.9, -0.5), rng)


def wandering(rng, n):
    """The coefficient swings between -.3 and .9 once in 4,000 values."""
    return autoregression(0.3 + 0.6 * np.cos(2 * np.pi * np.arange(n) / 4_000), rng)


def autoregression(coefficient, rng):
    noise, y = rng.normal(size=coefficient.size), np.zeros(coefficient.size)
    for t in range(1, y.size):
        y[t] = coefficient[t] * y[t - 1] + noise[t]
    return y


def learning(y, forgetting):
    """RMSE of a model that takes each piece in after it was forecast."""
    model, squares = FracRidge(1, season_lengths=(), forgetting=forgetting).fit(y[:HISTORY]), []
    for start in range(HISTORY, y.size, PIECE):
        piece, stream = y[start : start + PIECE], copy.copy(model)
        for value in piece.tolist():
            squares.append((value - stream.forecast()[0]) ** 2)
            stream.learn_one(value)
        model.update(piece, update_params=forgetting is not None)
    return float(np.sqrt(np.mean(squares)))


def refitted(y):
    tried = backtest(FracRidge(1, season_lengths=()), y, start=HISTORY, refit=PIECE)
    return float(tried.scores()["rmse"].iloc[0])


def main():
    seeds = 1 if "--smoke" in sys.argv else SEEDS
    names = ["fitted once", *(f"forgetting {f:g}" for f in FORGETTINGS), "fitted anew"]
    print(f"{'law':>10} " + " ".join(f"{name:>16}" for name in names))
    rows = []
    for law in (steady, broken, wandering):
        told = []
        for seed in range(seeds):
            y = law(np.random.default_rng(seed), HISTORY + LATER)
            told.append([learning(y, None), *(learning(y, f) for f in FORGETTINGS), refitted(y)])
        means = np.mean(told, axis=0)
        print(f"{law.__name__:>10} " + " ".join(f"{mean:>16.3f}" for mean in means), flush=True)
        rows += [
            {"law": law.__name__, "model": name, "seed": seed, "rmse": round(value, 4)}
            for seed, values in enumerate(told)
            for name, value in zip(names, values, strict=True)
        ]
    if "--smoke" not in sys.argv:
        record("drift", rows)


if __name__ == "__main__":
    main()
