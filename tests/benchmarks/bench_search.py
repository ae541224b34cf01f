"""Is a search worth its time, and does the timescale that it chooses follow the memory of a series?

    FRACTS_DATA=folder python tests/benchmarks/bench_search.py [--data ETTh1] [--trials 30] [--ridge]
        [--who TPE,AutoNHITS] [--workers 1] [--seconds 300] [--studies folder] [--device cuda] [--out folder]
    python tests/benchmarks/bench_search.py --cuts [--rows 1048576] [--trials 20] [--modes 6]
        [--seed 0] [--workers 1] [--out folder]

The first compares, on a sample of 100 series of M4 Hourly, ETTh1 at 96 hours, the log realised variance of
the S&P 500 (22 days) and the log flow of the Saugeen (30 days), `FracForecaster` as it stands, after 30
trials of TPE (the best of them, and the simplest near it) and after 30 of random search, all validated on the
same origins; MASE on the test rows, which no trial sees, and seconds. `NEURALFORECAST_PYTHON` names the
Python of an environment with neuralforecast and optuna: its AutoNHITS has as many trials and at least as many
seconds, and a row for each trial that is better than those before it. `--ridge` searches `FracRidge`.

`--who` runs some of these alone, `--workers` that many processes on one study, whose seconds are added up;
`--seconds` ends a search by the clock; `--studies` keeps the studies in a folder, where a later run goes on
with them, by another `--seed` lest it draw the same at random. `--budget` is the time of AutoNHITS where TPE
is not run beside it.

With `--cuts` the series are power laws tempered at 64, 256 and 1,024 steps, drawn by `--seed`: MA weights of
(1 - B)^-0.45 times exp(-lag / cut). The longest timescale of the simplest and of the best trial of a search
of `FracRidge` is told beside the cut, and how much worse the best trial is in each decade of the longest
timescale: a flat row chooses by chance. Before that it is told how much squared error the best weights of a
bank leave over, in 1e-5 of the noise, at each end of the timescales, were the process known: what is far
below the standard error of a validation (2e-5 at 2^20 rows) no search can find.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
from optuna.distributions import FloatDistribution, IntDistribution
from record import RESULTS, record

from fracts import FitWarning, FracForecaster, FracRidge, FracSearch, backtest
from fracts.memory import mode_timescales
from fracts.parsimony import chosen

HERE = Path(__file__).parent
D, CUTS = 0.45, (64, 256, 1024)
M4_SERIES = 100


def option(name, default):
    return type(default)(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else default


def m4_hourly(folder):
    """A hundred series, evenly spread, that end together."""
    table = pd.read_csv(folder / "m4_hourly.csv.gz")
    ids = table["unique_id"].unique()
    table = table[table["unique_id"].isin(ids[np.linspace(0, len(ids) - 1, M4_SERIES).astype(int)])]
    end = table.groupby("unique_id")["ds"].transform("max")
    return table.assign(ds=table["ds"] - end)[["unique_id", "ds", "y"]].reset_index(drop=True)


def etth1(folder):
    """14,400 hours of seven channels, in units of the spread of the first 8,640."""
    table = pd.read_csv(folder / "ETTh1.csv.gz").drop(columns="date")[:14400]
    return long_table((table - table[:8640].mean()) / table[:8640].std(ddof=0))


def sp500(folder):
    return long_table(np.log(pd.read_csv(folder / "sp500_rv5_daily.csv.gz")[["rv5"]]))


def saugeen(folder):
    return long_table(np.log(pd.read_csv(folder / "saugeen_river_flow_daily.csv.gz")[["flow"]]))


def long_table(wide):
    rows = wide.reset_index(drop=True).rename_axis("ds").reset_index()
    return rows.melt("ds", var_name="unique_id", value_name="y")[["unique_id", "ds", "y"]]


SETS = {  # reader, horizon, rows of the test, rows between two forecasts of validation and test
    "M4 Hourly": (m4_hourly, 48, 48, 48),
    "ETTh1": (etth1, 96, 2880, 24),
    "sp500_rv5": (sp500, 22, 46 * 22, 22),
    "saugeen": (saugeen, 30, 122 * 30, 30),
}


def last_stamps(table, n_rows):
    return np.sort(table["ds"].unique())[-n_rows:]


def tested(model, table, first, step):
    """Test MASE of a model that is fitted on what comes before `first`, and seconds."""
    begin = time.perf_counter()
    scores = backtest({"it": model}, table, start=first, step=step).scores()
    return float(scores.loc["it", "mase"]), time.perf_counter() - begin


def worker(number, settings, model, history, n_trials, seconds, journal):
    """Table of the trials of a study, once it has `n_trials` or `seconds` are over."""
    warnings.simplefilter("ignore", FitWarning)
    search = FracSearch(
        model,
        n_trials=n_trials,
        timeout=seconds or None,
        storage=journal,
        refit=False,
        callback=lambda study, trial: len(study.get_trials(deepcopy=False)) >= n_trials,
        verbose=1 if number == 0 else 0,
        **settings,
    )
    return search.fit(history).cv_results_


def fullest(tables):
    """That of the worker who ended last."""
    return max((each.result() for each in tables), key=lambda table: table["trial"].size)


def ours(who, model, table, n_test, step, n_trials, journal):
    """Rows of the best and of the simplest trial of a search; seconds are those of all workers together."""
    first, n_workers = last_stamps(table, n_test)[0], option("--workers", 1)
    task = model, table[table["ds"] < first], n_trials, option("--seconds", 0.0), journal
    with ProcessPoolExecutor(n_workers, get_context("spawn")) as pool:
        tables = []
        for number in range(n_workers):
            seed = option("--seed", 0) + number
            sampler = optuna.samplers.RandomSampler(seed=seed) if who == "random" else None
            settings = {"step": step, "sampler": sampler, "random_state": 0}
            tables.append(pool.submit(worker, number, settings, *task))
        found = fullest(tables)
        picks = {name: chosen(found, model, name) for name in ("best", "simplest")}
        models = {
            at: type(model)(**model.get_params(deep=False) | found["params"][at]) for at in picks.values()
        }
        tests = {at: pool.submit(tested, each, table, first, step) for at, each in models.items()}
        rows = []
        for name, at in picks.items():
            mase, again = tests[at].result()
            told = {"mase": mase, "validation": -found["mean_test_score"][at], "trials": found["trial"].size}
            seconds = found["seconds"].sum() + again
            rows.append({"who": who if name == "best" else f"{who}, simplest", **told, "seconds": seconds})
    return rows


def peer(table, horizon, n_test, step, n_trials, seconds, journal):
    """Rows of AutoNHITS, in its own environment: its best trial so far each time that there is a better one.

    A row tells how many trials and seconds it took to find it. The search goes on until there were
    `n_trials` and `seconds` are over. No rows without an environment.
    """
    python = os.environ.get("NEURALFORECAST_PYTHON")
    if python is None:
        return []
    n_validation = max(1, (table["ds"].nunique() - n_test) // 5 // horizon) * horizon
    task = {
        "table": table.to_dict("list"),
        "horizon": horizon,
        "validation": n_validation,
        "test": n_test,
        "step": step,
        "trials": n_trials,
        "seconds": seconds,
        "limit": option("--seconds", 0.0) or None,
        "workers": option("--workers", 1),
        "seed": option("--seed", 0),
        "journal": journal,
    }
    with tempfile.TemporaryDirectory() as away:  # it writes logs where it runs
        done = subprocess.run(
            [python, str(HERE / "peers" / "autonhits_peer.py")],
            cwd=away,
            input=json.dumps(task),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    told = json.loads(done.stdout)
    history = table[table["ds"] < last_stamps(table, n_test)[0]]
    scale = history.groupby("unique_id")["y"].apply(lambda y: y.diff().abs().mean())
    rows = []
    for pick in told["picks"]:
        found = pd.DataFrame(pick["table"]).merge(table, on=["unique_id", "ds"])
        error = (found["y"] - found["forecast"]).abs().groupby(found["unique_id"]).mean()
        cost = {"trials": pick["trials"], "seconds": pick["seconds"]}
        rows.append({"who": "AutoNHITS", "mase": float((error / scale).mean()), "validation": np.nan, **cost})
    spent = {"trials": told["trials"], "seconds": told["seconds"]}
    return [*rows, rows[-1] | {"who": "AutoNHITS, in all"} | spent]


def worth():
    """Accuracy and seconds of every way to choose."""
    folder, n_trials = Path(os.environ["FRACTS_DATA"]), option("--trials", 30)
    parts = option("--who", "as it stands,TPE,random,AutoNHITS").split(",")
    studies = Path(option("--studies", tempfile.mkdtemp())).absolute()
    for name in option("--data", ",".join(SETS)).split(","):
        read, horizon, n_test, step = SETS[name]
        table = read(folder)
        model = FracForecaster(horizon, random_state=0, device=option("--device", "auto"))
        model = FracRidge(horizon) if "--ridge" in sys.argv else model
        rows = []
        for who in parts:
            journal = str(studies / f"{name}-{type(model).__name__}-{who}.log".replace(" ", "_"))
            if who == "as it stands":
                mase, seconds = tested(model, table, last_stamps(table, n_test)[0], step)
                told = {"validation": np.nan, "trials": 0, "seconds": seconds}
                rows.append({"who": who, "mase": mase, **told})
            elif who == "AutoNHITS":
                budget = next(
                    (row["seconds"] for row in rows if row["who"] == "TPE"), option("--budget", 0.0)
                )
                rows += peer(table, horizon, n_test, step, n_trials, budget, journal)
            else:
                rows += ours(who, model, table, n_test, step, n_trials, journal)
        print(f"\n{name}, {type(model).__name__}({horizon})")
        print(f"{'':<24} {'test MASE':>9} {'validation':>10} {'trials':>6} {'s':>8}")
        for row in rows:
            print(
                f"{row['who']:<24} {row['mase']:>9.4f} {row['validation']:>10.4f} {row['trials']:>6} "
                f"{row['seconds']:>8.1f}",
                flush=True,
            )
        told = {"data": name, "model": type(model).__name__, "horizon": horizon}
        workers = {"workers": option("--workers", 1)}
        if rows:
            record(
                "bench_search", [told | row | workers for row in rows], Path(option("--out", str(RESULTS)))
            )


def tempered(n, cut, seed):
    """A draw of (n,) values, the first n of 2n left out."""
    lag = np.arange(n, dtype=np.float64)
    weights = np.cumprod(np.append(1.0, (lag[1:] - 1 + D) / lag[1:])) * np.exp(-lag / cut)
    noise = np.fft.rfft(np.random.default_rng(seed).normal(size=2 * n))
    return np.fft.irfft(np.fft.rfft(weights, 2 * n) * noise, 2 * n)[n:]


def left_over(cut, longest, n_modes):
    """Squared error, above the noise's 1, of the best weights of a bank on an endless tempered power law.

    An integral over frequencies, from 1e-8 to half a turn a step.
    """
    log_frequency = np.linspace(np.log(1e-8), np.log(np.pi), 20_001)
    back = np.exp(-1j * np.exp(log_frequency))  # one step back in time
    ma = (1 - np.exp(-1 / cut) * back) ** -D
    weight = np.abs(ma) * np.sqrt(np.exp(log_frequency) * np.diff(log_frequency)[0] / np.pi)
    tau = mode_timescales(1.0, longest, n_modes)[:-1, None]
    modes = -np.expm1(-1 / tau) / (1 - np.exp(-1 / tau) * back) * weight
    wanted = (1 - 1 / ma) / back * weight
    both = [np.concatenate([each.real, each.imag], axis=-1) for each in (modes, wanted)]
    return np.sum((np.linalg.lstsq(both[0].T, both[1])[0] @ both[0] - both[1]) ** 2)


def follows(cut, table, model):
    """Row of a search's trials: the longest timescale chosen, beside the `cut`."""
    highs = np.array([params["timescales"][1] for params in table["params"]])
    losses, seconds = -table["mean_test_score"], table["seconds"].sum()
    simplest, best = chosen(table, model, "simplest"), chosen(table, model, "best")
    behind = pd.Series(1e5 * (losses / losses[best] - 1))
    by_decade = behind.groupby(np.floor(np.log10(highs)).astype(int)).min()
    told = ", ".join(f"10^{decade}: {loss:.1f}" for decade, loss in by_decade.items())
    n_modes = [params.get("n_modes", model.n_modes) for params in table["params"]]
    print(
        f"{cut:>6} {highs[simplest]:>9.0f} {highs[simplest] / cut:>7.2f} {n_modes[simplest]:>6} "
        f"{highs[best]:>9.0f} {seconds:>7.0f}  {told}",
        flush=True,
    )
    ends = {"cut": cut, "chosen": highs[simplest], "n_modes": n_modes[simplest], "best": highs[best]}
    return ends | {"trials": losses.size, "rmse": losses[simplest], "seconds": round(seconds, 1)}


def cuts():
    """The timescale chosen beside the cut."""
    n, n_trials, n_workers, rows = option("--rows", 2**20), option("--trials", 20), option("--workers", 1), []
    seed = option("--seed", 0)
    shares = (1 / 16, 1 / 8, 1 / 4, 1, 8, 64)
    print("left over, 1e-5 of the noise, at a longest timescale of")
    print(f"{'cut':>6} {'modes':>6} " + " ".join(f"{f'{share:g} cuts':>11}" for share in shares))
    for cut, n_modes in product(CUTS, (6, 8, 16)):
        left = [1e5 * left_over(cut, cut * share, n_modes) for share in shares]
        print(f"{cut:>6} {n_modes:>6} " + " ".join(f"{each:>11.2f}" for each in left))
    fixed = option("--modes", 0)
    space = {"timescales_high": FloatDistribution(16, 2.0**20, log=True)}
    space |= {} if fixed else {"n_modes": IntDistribution(4, 16)}
    modes = {"n_modes": fixed} if fixed else {}
    model = FracRidge(1, season_lengths=(), anchor="centre", penalty=1.0, **modes)
    settings = {"space": space, "step": 1, "metric": "rmse", "random_state": seed}
    print(
        f"{'cut':>6} {'simplest':>9} {'ratio':>7} {'modes':>6} {'best':>9} {'s':>7}  "
        "loss above the best, 1e-5, by decade"
    )
    with ProcessPoolExecutor(n_workers * len(CUTS), get_context("spawn")) as pool:
        studies = tempfile.mkdtemp()
        searches = {}
        for cut in CUTS:
            task = settings, model, tempered(n, cut, seed), n_trials, 0.0, f"{studies}/{cut}.log"
            searches[cut] = [pool.submit(worker, 1, *task) for _ in range(n_workers)]
        for cut, tables in searches.items():
            asked = {"rows": n, "seed": seed, "modes": fixed or "4 to 16"}
            rows.append(asked | follows(cut, fullest(tables), model) | {"workers": n_workers})
    record("bench_search_cuts", rows, Path(option("--out", str(RESULTS))))
    far = [row for row in rows if not 1 / 8 <= row["chosen"] / row["cut"] <= 8]
    if far:
        raise SystemExit(f"the chosen timescale is more than a factor of 8 from the cut: {far}")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        cuts() if "--cuts" in sys.argv else worth()
