"""How accurate are FracRidge and FracForecaster where figures of others are public?

    FRACTS_DATA=folder python tests/benchmarks/accuracy.py --data NAME [--models NAME ...] [--horizons H ...]
        [--seeds 3] [--device auto] [--transform auto] [--validation] [--out FOLDER] [--no-record]

Every model is told the horizon and the lengths of the seasons, and to choose its scale itself
(`transform="auto"`, or that of `--transform`); nothing else is set by hand for a data set. `--validation`
scores on what lies before the test part; by it defaults are chosen. Rows are appended to `accuracy.csv` in
`--out` (`results` unless given), a row a figure. Memory is the peak of the process.
"""

import argparse
import resource
import time
from dataclasses import replace
from functools import partial

from accuracy_data import TASKS
from accuracy_protocols import PROTOCOLS
from record import RESULTS, record

from fracts import FracForecaster, FracRidge


def models(device, seed, transform="auto"):
    """Functions of a horizon and season lengths, by name."""

    def ridge(h, seasons, **options):
        return FracRidge(h, season_lengths=seasons, transform=transform, **options)

    def network(h, seasons, **options):
        return FracForecaster(
            h, season_lengths=seasons, transform=transform, device=device, random_state=seed, **options
        )

    return {
        "FracRidge": ridge,
        "FracForecaster": network,
        # Trained for long, in large batches: of many series, and on a GPU.
        **{f"FracForecaster, {n} networks": partial(network, n_networks=n, **LONG) for n in (1, 2, 4)},
        "FracForecaster, linear path": lambda h, seasons: network(h, seasons, n_layers=0),
        "FracRidge, return of the day": lambda h, seasons: ridge(h, seasons, past_only=(0,)),
    }


DEFAULT = ["FracRidge", "FracForecaster", "FracForecaster, linear path"]
LONG = {"batch_size": 64, "max_epochs": 120, "learning_rate": 5e-3}
RANDOM = {"FracForecaster", *(f"FracForecaster, {n} networks" for n in (1, 2, 4))}  # rows differ by seed


def run(task, make, part):
    """Figures, seconds and MB."""
    start = time.perf_counter()
    figures = PROTOCOLS[task.kind](task, make, part)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures, time.perf_counter() - start, peak


def line(name, figures, columns, told=""):
    cells = " ".join(f"{figures[c]:>9.4f}" if c in figures else f"{'':>9}" for c in columns)
    print(f"{name:<34} {cells} {told}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=TASKS, required=True)
    parser.add_argument("--models", nargs="+", default=DEFAULT)
    parser.add_argument("--horizons", nargs="+", type=int)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--transform", default="auto")
    parser.add_argument("--validation", action="store_true")
    parser.add_argument("--out", type=type(RESULTS), default=RESULTS)
    parser.add_argument("--no-record", action="store_true")
    asked = parser.parse_args()
    task, part = TASKS[asked.data], "validation" if asked.validation else "test"
    if asked.horizons:
        task = replace(task, horizons=tuple(asked.horizons))
    columns = []
    for name in asked.models:
        for seed in range(asked.seeds if name in RANDOM else 1):
            figures, seconds, peak = run(task, models(asked.device, seed, asked.transform)[name], part)
            if not columns:
                columns = list(figures)
                print(f"{asked.data}, {part:<{33 - len(asked.data)}}" + "".join(f"{c:>10}" for c in columns))
            line(
                f"{name}, seed {seed}" if name in RANDOM else name,
                figures,
                columns,
                f"{seconds:.1f} s, {peak:.0f} MB",
            )
            what = {
                "data": asked.data,
                "part": part,
                "model": name,
                "seed": seed,
                "transform": asked.transform,
            }
            cost = {"seconds": round(seconds, 2), "peak_mb": round(peak)}
            rows = [what | {"figure": c, "value": round(float(v), 5)} | cost for c, v in figures.items()]
            record("accuracy", rows, asked.out)
    if part == "test":
        for name, figures in task.published.items():
            line(f"{name} (published)", figures, columns)
        line("asked of ours", task.asked, columns)


if __name__ == "__main__":
    main()
