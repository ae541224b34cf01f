"""How does FracRidge forecast one short series, with no other to learn from? Beside the classical models.

    FRACTS_DATA=folder python tests/benchmarks/alone.py [--data NAME] [--every 5] [--validation] [--no-record]

Every fifth series of M3 Monthly or Quarterly is fitted by itself and forecast from its end; `--validation`
leaves the last horizon out, by which defaults are chosen. `macro` are economic series that come with
statsmodels, forecast from ten origins each in their last 40 %. MASE of the median, how many values lie in the
90 % interval, and its interval score (Gneiting and Raftery, 2007) in the units of MASE, mean over series.
"""

import argparse
import time
import warnings

import numpy as np
from accuracy_data import TASKS
from record import record

from fracts import ETS, FitWarning, FracRidge, Naive, SeasonalNaive, Theta

LEVEL = 0.9
ORIGINS, SHARE = 10, 0.6


def competition(name, every, validation):
    """Histories and what came, of every so many series."""
    task = TASKS[name]
    known, came = task.read()
    after = dict(iter(came.groupby("unique_id")["y"]))
    for name, history in list(known.groupby("unique_id", sort=False)["y"])[::every]:
        y, horizon = history.to_numpy(float), task.horizons[0]
        yield (y[:-horizon], y[-horizon:]) if validation else (y, after[name].to_numpy(float))


def macro():
    """Histories and what came of quarterly series of economies."""
    import statsmodels.api as sm

    tables = [
        sm.datasets.macrodata.load_pandas().data.iloc[:, 2:],
        sm.datasets.danish_data.load_pandas().data,
    ]
    for table in tables:
        for column in table.select_dtypes("float"):
            y, horizon = table[column].dropna().to_numpy(), 8
            for at in np.unique(np.linspace(SHARE * y.size, y.size - horizon, ORIGINS).astype(int)):
                yield y[:at], y[at : at + horizon]


def models(horizon, season):
    """By name."""
    seasons = (season,) if season > 1 else ()
    told = season if season > 1 else None
    return {
        "FracRidge": FracRidge(horizon, season_lengths=seasons),
        "ETS": ETS(horizon, season_length=told),
        "Theta": Theta(horizon, season_length=told),
        "SeasonalNaive" if seasons else "Naive": SeasonalNaive(horizon, season_length=season)
        if seasons
        else Naive(horizon),
    }


def scores(model, y, came, season):
    """MASE, share inside, interval score of one forecast, and the seconds it took."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        said, low, high = model.fit(y).forecast(level=100 * LEVEL).T
    seconds = time.perf_counter() - start
    unit = np.abs(y[season:] - y[:-season]).mean()
    beyond = np.maximum(low - came, 0) + np.maximum(came - high, 0)
    score = (high - low + 2 / (1 - LEVEL) * beyond).mean() / unit
    inside = np.mean((low <= came) & (came <= high))
    return np.abs(said - came).mean() / unit, inside, score, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=["m3_monthly", "m3_quarterly", "macro"], default="m3_monthly")
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--validation", action="store_true")
    parser.add_argument("--no-record", action="store_true")
    asked = parser.parse_args()
    season = {"m3_monthly": 12, "m3_quarterly": 4, "macro": 1}[asked.data]
    tried = macro() if asked.data == "macro" else competition(asked.data, asked.every, asked.validation)
    found = {}
    for y, came in tried:
        for name, model in models(came.size, season).items():
            found.setdefault(name, []).append(scores(model, y, came, season))
    part = "validation" if asked.validation else "test"
    print(f"{asked.data}, {part:<16}{'n':>6}{'MASE':>8}{'inside':>8}{'score':>8}{'s':>8}")
    rows = []
    for name, each in found.items():
        mase, inside, score, seconds = np.mean(each, axis=0).round(4)
        figures = {"n": len(each), "mase": mase, "inside": inside, "score": score, "seconds": seconds}
        rows.append({"data": asked.data, "part": part, "model": name} | figures)
        print(f"{name:<28}{len(each):>6}{mase:>8.3f}{inside:>8.3f}{score:>8.3f}{seconds:>8.3f}")
    record("alone", rows)


if __name__ == "__main__":
    main()
