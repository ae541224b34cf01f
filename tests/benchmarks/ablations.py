"""Which parts of the default FracForecaster earn their place?

    FRACTS_DATA=folder python tests/benchmarks/ablations.py [--data NAME ...] [--only NAME ...]
        [--part validation] [--seeds 1] [--no-record]

The forecaster with one part taken out, on a series with two seasons (electricity demand, half-hourly) and on
one without (network traffic) unless told others of `accuracy_rolling.py`: MASE one step ahead and over 24
steps, as `accuracy_rolling.py` has it, and the ratio to the default. Parts are judged on the validation;
`--part test` is what follows. A row a figure goes to `ablations.csv`.
"""

import argparse
import time
from contextlib import ExitStack, contextmanager, nullcontext
from unittest.mock import patch

import numpy as np
import torch
from accuracy_data import ROLLING
from accuracy_protocols import rolling
from record import record

from fracts import FracForecaster, linear_fit, recall
from fracts.mixer import FracMixer

SILENT = 1e12  # a penalty that leaves nothing of the modes
CERTAIN = 12.0  # raw, of an order next to 1
DATA = "ethernet_traffic", "taylor"


@contextmanager
def changed_mixers(change):
    """Every layer of a new network goes through `change` before it is trained."""
    usual = FracForecaster._new_network

    def changed(self, generator):
        network = usual(self, generator)
        with torch.no_grad():
            for part in network.modules():
                if isinstance(part, FracMixer):
                    change(part)
        return network

    with patch.object(FracForecaster, "_new_network", changed):
        yield


def of_order_one(mixer):
    heads = mixer.n_heads + mixer.n_frequencies
    orders = slice(heads, 3 * heads)
    mixer.controls.weight[orders] = 0.0
    mixer.controls.bias[orders] = CERTAIN


def without_prior(mixer):
    mixer.scores.zero_()


def with_penalties(**changed):
    """Every penalty tried, with something else about it."""
    others = [p._replace(**changed) for p in linear_fit.PENALTIES]
    return patch.object(linear_fit, "PENALTIES", list(dict.fromkeys(others)))


@contextmanager
def no_priors():
    """All timescales alike, in the penalty and in the network."""
    with ExitStack() as both:
        both.enter_context(with_penalties(decay=0.0, seasonal_decay=0.0))
        both.enter_context(changed_mixers(without_prior))
        yield


def no_fractional_noise(timescales, horizon):
    return np.empty((0, timescales.size, horizon))


PARTS = {
    "default": ({}, nullcontext),
    "no seasonal heads": ({}, lambda: patch.object(recall, "MAX_FREQUENCIES", 0)),
    "no anchor": ({"anchor": "centre"}, nullcontext),
    "no moved profile": ({}, lambda: patch.object(recall, "_SHORT_SEASON", np.inf)),
    "weak pull on one anchor": ({}, lambda: with_penalties(blend=1.0)),
    "no fractional noise": ({}, lambda: patch.object(recall, "fractional_forecasts", no_fractional_noise)),
    "no linear path": ({"penalty": SILENT}, nullcontext),
    "no deep path": ({"n_layers": 0}, nullcontext),
    "no priors": ({}, no_priors),
    "no prior in the network": ({}, lambda: changed_mixers(without_prior)),
    "a = 1": ({}, lambda: changed_mixers(of_order_one)),
    "8 modes": ({"n_modes": 8}, nullcontext),
    "32 modes": ({"n_modes": 32}, nullcontext),
}


def run(task, part, options, change, seed):
    """Figures of one forecaster, and seconds."""

    def make(h, seasons):
        return FracForecaster(h, season_lengths=seasons, random_state=seed, device="cpu", **options)

    start = time.perf_counter()
    with change():
        figures = rolling(task, make, part)
    return figures, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=ROLLING, default=DATA)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--part", choices=("validation", "test"), default="validation")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--no-record", action="store_true")
    asked = parser.parse_args()
    for data in asked.data:
        usual = None
        for name in asked.only:
            ran = [run(ROLLING[data], asked.part, *PARTS[name], seed) for seed in range(asked.seeds)]
            rows = [
                {"data": data, "part": asked.part, "without": name, "seed": seed, "figure": key}
                | {"value": round(float(value), 5), "seconds": round(seconds, 1)}
                for seed, (figures, seconds) in enumerate(ran)
                for key, value in figures.items()
            ]
            record("ablations", rows)
            mean = {key: np.mean([figures[key] for figures, _ in ran]) for key in ran[0][0]}
            usual = usual or mean
            told = " ".join(f"{mean[key]:>8.4f} {mean[key] / usual[key]:>6.3f}" for key in mean)
            print(f"{data:<22} {name:<24} {told} {sum(s for _, s in ran):>6.0f} s", flush=True)


if __name__ == "__main__":
    main()
