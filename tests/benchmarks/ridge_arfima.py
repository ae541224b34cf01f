"""Does FracRidge(1), fitted once on 4,096 points of long memory, stay near the best forecast there is?

    python tests/benchmarks/ridge_arfima.py

ARFIMA(0, 0.4, 0), one series a seed, all in one panel with weights of their own, rolled on for 127,000 steps
by `learn_many` and `forecast`. The ratio is of its mean squared error to that of the exact predictor from the
whole past, on the same draw; beside it autoregressions fitted by least squares on the same 4,096 points.
"""

import time

import numpy as np
from record import record
from scipy.signal import lfilter

from fracts.datasets import arfima_one_step, make_arfima
from fracts.ridge import FracRidge

D, FITTED, ROLLED, SEEDS = 0.4, 4096, 127_000, range(5)
LIMIT = 1.04  # of the ratio, worst seed


def rolled_ridge(y):
    model = FracRidge(1, season_lengths=(), pooled=False).fit(y[:FITTED])
    out = np.empty((ROLLED, y.shape[1]))
    for step, row in enumerate(y[FITTED:]):
        out[step] = model.forecast(point="mean")[0]
        model.learn_many(row)
    return out


def rolled_autoregression(order):
    def forecasts(y):
        past = np.lib.stride_tricks.sliding_window_view(y[:FITTED], order + 1, axis=0)
        weights = [np.linalg.lstsq(x[:, :-1], x[:, -1], rcond=None)[0] for x in past.swapaxes(0, 1)]
        return np.column_stack(
            [
                lfilter(np.append(0.0, w[::-1]), 1.0, series)[FITTED:]
                for w, series in zip(weights, y.T, strict=True)
            ]
        )

    return forecasts


def last_value(y):
    return y[FITTED - 1 : -1]


y = np.column_stack([make_arfima(FITTED + ROLLED, D, random_state=seed) for seed in SEEDS])
truth = y[FITTED:]
best = np.mean(
    (np.column_stack([arfima_one_step(series, D) for series in y.T])[FITTED:] - truth) ** 2, axis=0
)
models = {
    "FracRidge": rolled_ridge,
    "AR(16)": rolled_autoregression(16),
    "AR(128)": rolled_autoregression(128),
    "last value": last_value,
}
rows = []
print(f"{'model':<12} {'mean ratio':>10} {'worst':>8} {'seconds':>8}")
for name, model in models.items():
    start = time.perf_counter()
    ratio = np.mean((model(y) - truth) ** 2, axis=0) / best
    seconds = time.perf_counter() - start
    print(f"{name:<12} {ratio.mean():>10.4f} {ratio.max():>8.4f} {seconds:>8.1f}")
    for seed, value in zip(SEEDS, ratio, strict=True):
        rows.append({"model": name, "seed": seed, "ratio": value, "seconds": round(seconds, 2)})
record("ridge_arfima", rows)
worst = max(row["ratio"] for row in rows if row["model"] == "FracRidge")
if worst > LIMIT:
    raise SystemExit(f"the worst ratio of FracRidge is {worst:.4f}, above {LIMIT}")
