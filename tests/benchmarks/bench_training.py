"""How long does a default FracForecaster train, and on what is the time spent?

    python tests/benchmarks/bench_training.py

Two threads. One series of 10,000 hours (the packaged road traffic, horizon 24), and 400 hourly series of 700
steps (long memory and a daily season, one network). The profile is Python's own: seconds inside the named
parts, each without what stands in a row of its own.
"""

import cProfile
import pstats
import time

import numpy as np
import pandas as pd
import torch
from record import record

from fracts import FracForecaster
from fracts.datasets import load_traffic_volume, make_arfima

HORIZON, THREADS, REPEATS = 24, 2, 3
# Parts of a fit by the function that holds them; a part inside another is taken out of the outer one.
PARTS = {
    "season lengths, frequencies": [("seasons.py", "chosen_season_lengths"), ("recall.py", "linear_memory")],
    "linear path": [("linear_fit.py", "fit_linear")],
    "what it leaves over": [("windows.py", "of")],
    "held-out loss": [("training.py", "_record"), ("network_share.py", "settle")],
    "drawing windows": [("windows.py", "__iter__")],
    "network, forward": [("training.py", "training_step")],
    "network, backward": [("_tensor.py", "backward")],
    "optimiser": [("adamw.py", "step"), ("adam.py", "step")],
    "last pass over the history": [("forecaster.py", "_advance")],
}
INSIDE = {"optimiser": ["network, forward", "network, backward"]}  # Lightning runs the step as a closure


def traffic():
    return load_traffic_volume().iloc[:10_000]


def many():
    hours = pd.date_range("2020-01-01", periods=700, freq="h")
    noise = make_arfima(700, 0.3, n_series=400, random_state=0)
    daily = np.sin(2 * np.pi * np.arange(700) / 24)[:, None] * np.linspace(0.5, 3, 400)
    return pd.DataFrame(noise + daily, index=hours)


def seconds_by_part(profile):
    stats = pstats.Stats(profile).stats
    spent = {
        part: sum(
            cumulative
            for (file, _, name), (_, _, _, cumulative, _) in stats.items()
            if any(file.endswith(end) and name == function for end, function in functions)
        )
        for part, functions in PARTS.items()
    }
    for outer, inner in INSIDE.items():
        spent[outer] -= sum(spent[part] for part in inner)
    return spent


torch.set_num_threads(THREADS)
rows = []
for name, y in (("1 x 10,000", traffic()), ("400 x 700", many())):
    took = []
    for _ in range(REPEATS):
        model = FracForecaster(HORIZON, device="cpu", random_state=0)
        start = time.perf_counter()
        model.fit(y)
        took.append(time.perf_counter() - start)
    profile = cProfile.Profile()
    profile.runcall(FracForecaster(HORIZON, device="cpu", random_state=0).fit, y)
    total = pstats.Stats(profile).total_tt
    spent = seconds_by_part(profile)
    spent["Lightning and the rest"] = total - sum(spent.values())
    thousands, whole = y.size / 1000, float(np.median(took))
    print(
        f"\n{name}: {whole:.1f} s (median of {REPEATS}), {whole / thousands:.3f} s a thousand steps, "
        f"{model.history_[-1].epoch} epochs"
    )
    for part, seconds in spent.items():
        print(f"  {part:<28} {seconds:7.2f} s {100 * seconds / total:5.1f} %")
        rows.append({"data": name, "part": part, "seconds": round(seconds, 3)})
    rows.append({"data": name, "part": "whole, without a profile", "seconds": round(whole, 3)})
record("bench_training", rows)
