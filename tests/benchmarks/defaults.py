"""What does `FracForecaster(24).fit(y)` cost and give on one series, beside simpler models?

    FRACTS_DATA=folder python tests/benchmarks/defaults.py [--data NAME ...] [--no-record]

Nothing is told but the horizon. Each series is cut after 150 to 10,000 values, as far as it goes; the models
are fitted on these and carried on over the next 500 (what there is of them). RMSSE over all 24 leads, of the
mean, as squared error is what all of them are fitted to; ARFIMA(1,d,1) and HAR where they apply, on series
without a season. At most 60 seconds are asked of the fit. A row a model goes to `defaults.csv`.
"""

import argparse
import time
import warnings

from accuracy_data import ROLLING, values, volatility
from record import record

from fracts import ARFIMA, HAR, FitWarning, FracForecaster, FracRidge, backtest

HORIZON, ROLLED, SECONDS = 24, 500, 60
LENGTHS = 150, 500, 1500, 5000, 10_000
SEASONAL = {
    "taylor": ROLLING["taylor"].read,
    "traffic_volume": ROLLING["traffic_volume"].read,
    "saugeen": lambda: values("saugeen_river_flow_daily.csv.gz", "flow"),
}
PLAIN = {
    "nile_minima": ROLLING["nile_minima"].read,
    "video_vbr": ROLLING["video_vbr"].read,
    "ethernet_traffic": ROLLING["ethernet_traffic"].read,
    "sp500_rv5": lambda: volatility()[0],
    "vix": ROLLING["vix"].read,
}


def models(name):
    found = {
        "FracForecaster": lambda: FracForecaster(HORIZON, random_state=0, device="cpu"),
        "FracRidge": lambda: FracRidge(HORIZON),
    }
    if name in PLAIN:
        found |= {"ARFIMA(1,d,1)": lambda: ARFIMA(HORIZON, p=1, q=1), "HAR": lambda: HAR(HORIZON)}
    return found


def run(name, y, n):
    """Rows of all models fitted on the first `n` values of `y`."""
    for model, make in models(name).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            start = time.perf_counter()
            make().fit(y[:n])
            seconds = time.perf_counter() - start
            tried = backtest({model: make()}, y[: n + ROLLED + HORIZON], start=n, point="mean").scores("lead")
        row = {"data": name, "n": n, "model": model, "seconds": round(seconds, 2)}
        scores = tried["rmsse"].to_numpy()
        yield row | {"rmsse_1": round(scores[0], 5), "rmsse_24": round((scores**2).mean() ** 0.5, 5)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=PLAIN | SEASONAL, default=list(PLAIN | SEASONAL))
    parser.add_argument("--no-record", action="store_true")
    asked = parser.parse_args()
    slowest = 0.0
    print(f"{'data':<18} {'n':>6} {'model':<16} {'1 step':>8} {'24 steps':>9} {'fit, s':>7}")
    for name in asked.data:
        y = (PLAIN | SEASONAL)[name]()
        for n in (n for n in LENGTHS if n + 2 * HORIZON <= y.size):
            rows = list(run(name, y, n))
            record("defaults", rows)
            for row in rows:
                figures = f"{row['rmsse_1']:>8.4f} {row['rmsse_24']:>9.4f} {row['seconds']:>7.1f}"
                print(f"{name:<18} {n:>6} {row['model']:<16} {figures}", flush=True)
                slowest = max(slowest, row["seconds"])
    print(f"the slowest fit took {slowest:.1f} s, {SECONDS} are asked")


if __name__ == "__main__":
    main()
