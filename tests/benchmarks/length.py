"""How much does a longer history help, given at prediction to weights that stay?

    FRACTS_DATA=folder python tests/benchmarks/length.py [--data NAME ...] [--no-record]

FracRidge is fitted once on the first part of a series; at each later origin the same weights are given the
last 512, 2,048, ... values alone, and all. Squared error of the next value, and of the mean of the next 256
and 1,024, over that with 512 values, paired on the same origins; the error of the ratio is the standard error
of the paired differences, over blocks of ten origins. On ARFIMA(0, 0.4, 0) of 200,000 steps, mean of the
draws, the best linear forecast from as many values stands beside it, on the same draws. A row a draw, span
and length goes to `length.csv`.
"""

import argparse

import numpy as np
from accuracy_data import ROLLING, volatility
from record import record
from scipy.linalg import solve_toeplitz
from scipy.special import gammaln

from fracts import FracRidge
from fracts.datasets import arfima_one_step, make_arfima

D, STEPS, FITTED, DRAWS = 0.4, 200_000, 32_768, 3
LENGTHS = 512, 2048, 8192, 32_768
LONGEST_EXACT = 8192  # beyond it the equations take minutes, for next to nothing
ORIGINS, BLOCK = 240, 10


def autocovariances(n):
    """Of ARFIMA(0, D, 0), lags 0 to n - 1, up to a constant."""
    lag = np.arange(n)
    return np.exp(gammaln(lag + D) - gammaln(lag + 1 - D) + gammaln(1 - D) - gammaln(D))


def exact_weights(n, span):
    """Of the last `n` values, the latest first, in the best forecast of the mean of the next `span`."""
    gamma = autocovariances(n + span)
    sums = np.concatenate([[0.0], np.cumsum(gamma)])
    return solve_toeplitz(gamma[:n], (sums[span + 1 :] - sums[1 : n + 1])[:n] / span)


def by_length(model, y, origins, spans):
    """Forecasts {length: (origins, spans)} of means over `spans`."""
    said = {}
    for n in [n for n in LENGTHS if n < origins[0]]:
        model_there = model.apply(y[origins - n + np.arange(n)[:, None]])
        leads = model_there.forecast(point="mean")
        said[n] = np.column_stack([leads[:span].mean(0) for span in spans])
    whole, rows = model.apply(y[: origins[0]]), []
    for at, following in zip(origins, [*origins[1:], None], strict=True):
        leads = whole.forecast(point="mean")
        rows.append([leads[:span].mean() for span in spans])
        if following:
            whole.update(y[at:following])
    said["all"] = np.array(rows)
    return said


def compared(errors):
    """{length: (ratio to the shortest, standard error)} of squared `errors` {length: (origins,)}."""
    first = errors[LENGTHS[0]]
    found = {}
    for n, error in errors.items():
        blocks = (error - first)[: len(first) // BLOCK * BLOCK].reshape(-1, BLOCK).mean(1)
        found[n] = error.mean() / first.mean(), blocks.std(ddof=1) / len(blocks) ** 0.5 / first.mean()
    return found


def tried(name, seed, y, fitted, spans, exact=False):
    """Rows of one series."""
    model = FracRidge(max(spans), season_lengths=()).fit(y[:fitted])
    begin = max(fitted, 1 + max(n for n in LENGTHS if n <= fitted))
    origins = np.linspace(begin, y.size - max(spans), ORIGINS).astype(int)
    said, sums = by_length(model, y, origins, spans), np.append(0.0, np.cumsum(y))
    best = arfima_one_step(y, D)[origins] if exact else None
    for i, span in enumerate(spans):
        truth = (sums[origins + span] - sums[origins]) / span
        groups = {"FracRidge": {n: (at[:, i] - truth) ** 2 for n, at in said.items()}}
        if exact:
            windows = {n: exact_weights(n, span) for n in LENGTHS if n <= LONGEST_EXACT}
            there = {n: (y[origins[:, None] - 1 - np.arange(n)] @ w - truth) ** 2 for n, w in windows.items()}
            groups["exact"] = there | ({"all": (best - truth) ** 2} if span == 1 else {})
        for model_name, errors in groups.items():
            for n, (ratio, error) in compared(errors).items():
                row = {"data": name, "seed": seed, "model": model_name, "span": span, "length": n}
                yield row | {"mse": errors[n].mean(), "ratio": round(ratio, 5), "error": round(error, 5)}


def series():
    """{name: (draws, rows fitted, whether the law is known)}."""
    return {
        "arfima": (lambda: [make_arfima(STEPS, D, random_state=s) for s in range(DRAWS)], FITTED, True),
        "ethernet_traffic": (lambda: [ROLLING["ethernet_traffic"].read()], 2400, False),
        "sp500_rv5": (lambda: [volatility()[0]], 3000, False),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=series(), default=list(series()))
    parser.add_argument("--no-record", action="store_true")
    asked = parser.parse_args()
    print(
        f"{'data':<18} {'draw':>4} {'model':<10} {'span':>5} {'length':>7} {'MSE':>9} {'ratio':>7} {'+-':>6}"
    )
    for name in asked.data:
        draws, fitted, exact = series()[name]
        for seed, y in enumerate(draws()):
            rows = list(tried(name, seed, y, fitted, (1, 256, 1024) if exact else (1, 256), exact))
            record("length", rows)
            for r in rows:
                told = f"{r['mse']:>9.4f} {r['ratio']:>7.4f} {r['error']:>6.4f}"
                print(
                    f"{name:<18} {seed:>4} {r['model']:<10} {r['span']:>5} {r['length']:>7} {told}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
