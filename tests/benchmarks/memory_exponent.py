"""How near is the exponent read from a model's weights to that of the series it was fitted on?

    python tests/benchmarks/memory_exponent.py

ARFIMA(0, d, 0) of 8,192 values, ten draws for each d, a seed of its own for every draw. Beside the models
the estimates that look at the lowest frequencies of the same series. Of each the mean absolute error, the
bias, the standard deviation over the draws, and the mean standard error that it tells.
"""

import time

import numpy as np
from record import record

from fracts import FracForecaster, FracRidge
from fracts.datasets import make_arfima
from fracts.memory import exact_local_whittle, gph_exponent, local_whittle

MEMORIES, DRAWS, ROWS = (0.1, 0.2, 0.3, 0.4), 10, 8192
LIMIT = 0.03  # of the mean absolute error of a model at every d

ESTIMATES = {
    "FracRidge": lambda y: FracRidge(1, season_lengths=()).fit(y).memory_exponent(),
    "FracForecaster": lambda y: FracForecaster(1, season_lengths=(), random_state=0).fit(y).memory_exponent(),
    "local Whittle": local_whittle,
    "exact local Whittle": exact_local_whittle,
    "GPH": gph_exponent,
}

rows, missed = [], []
print(f"{'d':>3} {'':<20}{'mean error':>11}{'bias':>9}{'spread':>9}{'told':>9}{'seconds':>9}")
for place, d in enumerate(MEMORIES):
    draws = [make_arfima(ROWS, d, random_state=DRAWS * place + draw) for draw in range(DRAWS)]
    mean_error = {}
    for name, estimate in ESTIMATES.items():
        start = time.perf_counter()
        found = np.array([estimate(y) for y in draws])
        seconds = (time.perf_counter() - start) / DRAWS
        error = found[:, 0] - d
        mean_error[name] = np.abs(error).mean()
        told = f"{mean_error[name]:>11.4f}{error.mean():>9.4f}{error.std(ddof=1):>9.4f}"
        print(f"{d:>3} {name:<20}{told}{found[:, 1].mean():>9.4f}{seconds:>9.2f}", flush=True)
        rows += [
            {"d": d, "estimate": name, "draw": draw, "found": value, "standard_error": told}
            for draw, (value, told) in enumerate(found.tolist())
        ]
    most = min(LIMIT, mean_error["local Whittle"])
    missed += [(d, name) for name in ("FracRidge", "FracForecaster") if mean_error[name] > most]
record("memory_exponent", rows)
if missed:
    raise SystemExit(f"above {LIMIT} or above local Whittle: {missed}")
