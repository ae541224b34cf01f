"""The heavy-tail probe: which layer, trained at 512 steps, still knows the sign of a sum at 131,072?

    python examples/paper/heavy_tail.py                          # FRAC, one seed
    python examples/paper/heavy_tail.py --device cuda --compile --mixers mamba2 --seeds 0 1 2 3 4

Sparse events of +1 and -1; at every step the label is the sign of their sum, each weighted by a power of its
age (`fracts.datasets.make_heavy_tail`). One layer of about 200,000 parameters, 1,500 batches of 32 sequences
of 512 steps, then tested on 512 new sequences. Prints the accuracy over the last 64 steps at each length and
appends raw rows to `--out`. Beside the mixers stand two rules that learn nothing: the sign of the running
sum, and that of the best exponential average, its timescale picked in hindsight for every length.
"""

import argparse
import csv
import datetime
import platform
import subprocess
import time
from dataclasses import asdict
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import torch
from frac import Frac
from mixers import Attention, GatedDeltaNet, Mamba2, Mamba3
from probe import BATCH, FAVOURS, LAST, LENGTHS, TRAINED, WIDTH, Probe, Task, accuracies, n_parameters, train
from scipy.signal import lfilter

MIXERS = {
    "frac": (Frac, {"n_heads": 8, "n_modes": 16}),
    "attention": (Attention, {"n_heads": 4}),
    "mamba2": (Mamba2, {"n_heads": 4, "d_state": 64}),
    "mamba3": (Mamba3, {"n_heads": 4, "d_state": 64}),
    "gdn": (GatedDeltaNet, {"n_heads": 2, "head_dim": 48}),
}
SPLITS = {"test": 1, "validation": 2}  # seeds
LEARNED = ("favours", "learning_rate", "steps", "n_parameters", "seed", "seconds")  # columns of a row
TIMESCALES = np.geomspace(4, 4 * LENGTHS[-1], 35)  # of the exponential averages


def maker(name):
    """A function that makes the mixer with given favours."""
    kind, sizes = MIXERS[name]

    def make(favours, generator):
        if kind is Frac:
            return Frac(WIDTH, **sizes, generator=generator)
        gates = {"linear_value": "linear_value" in favours, "hard_gates": "hard_gates" in favours}
        return kind(WIDTH, **sizes, **gates, generator=generator)

    return make


@cache
def training_data(task, seed, steps):
    """Events and labels (steps * BATCH, TRAINED) of that seed."""
    return task.draw(steps * BATCH, TRAINED, (3, seed))


@cache
def held_out(task, n_sequences, split):
    """Events (sequences, longest) and the labels of the last steps (sequences, lengths, LAST)."""
    events, labels = task.draw(n_sequences, LENGTHS[-1], (SPLITS[split],))
    return events, torch.stack([labels[:, length - LAST : length] for length in LENGTHS], 1)


def trained(task, name, learning_rate, options):
    """A probe for each seed, trained from it on sequences of that seed."""
    models, data = [], []
    for seed in options.seeds:
        draws = torch.Generator().manual_seed(seed)
        model = Probe(task.events, maker(name), frozenset(favours(options)), draws)
        drawn = training_data(task, seed, options.steps)
        models.append(model.to(options.device))
        data.append(tuple(x.to(options.device) for x in drawn))
    sizes = {"learning_rate": learning_rate, "steps": options.steps, "compiled": options.compile}
    train(models, data, **sizes)
    return models


def rules(events, labels):
    """Accuracies of the rules that learn nothing: {name: one for each length}."""
    tables = {"running sum": _right(np.cumsum(events, 1, dtype=np.int64), labels)}
    averages = [_right(lfilter([1.0], [1.0, -np.exp(-1 / tau)], events), labels) for tau in TIMESCALES]
    tables["best exponential"] = np.max(averages, 0)
    return tables


def _right(sums, labels):
    said = np.stack([sums[:, length - LAST : length] for length in LENGTHS], 1) > 0
    return (((said == (labels > 0)) & (labels != 0)).sum((0, 2)) / (labels != 0).sum((0, 2))).tolist()


def report(row, accuracy, out):
    """Print a line; append one row for each length."""
    print(f"{row['mixer']:<17} {row['seed']:>4} " + " ".join(f"{100 * a:7.2f}" for a in accuracy), flush=True)
    rows = [{**row, "length": n, "accuracy": round(a, 5)} for n, a in zip(LENGTHS, accuracy, strict=True)]
    write_rows(rows, out)


def write_rows(rows, out):
    """Append rows (dicts of the same keys) to the CSV `out`; None: nowhere."""
    if out:
        fresh = not out.exists()
        with out.open("a", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            if fresh:
                writer.writeheader()
            writer.writerows(rows)


def origin(options):
    """What tells two runs apart."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"], capture_output=True, text=True, check=False
    )
    chip = torch.cuda.get_device_name() if options.device == "cuda" else platform.machine()
    return {
        "date": datetime.date.today().isoformat(),
        "commit": options.commit or told.stdout.strip(),
        "chip": chip,
        "torch": torch.__version__,
    }


def main():
    options = parsed()
    torch.backends.cuda.matmul.allow_tf32 = False
    for exponent in options.exponents:
        task = Task(options.events, exponent, options.probability)
        events, labels = held_out(task, options.sequences, options.split)
        known = {**origin(options), "split": options.split, **asdict(task)}
        print(f"{task}, {options.split}\n{'':<22} " + " ".join(f"{length:7d}" for length in LENGTHS))
        if options.rules:
            for name, accuracy in rules(events.numpy(), labels.numpy()).items():
                report({**known, "mixer": name} | dict.fromkeys(LEARNED, ""), accuracy, options.out)
        events, labels = events.to(options.device), labels.to(options.device)
        for name, rate in product(options.mixers, options.learning_rates):
            start = time.perf_counter()
            models = trained(task, name, rate, options)
            seconds = round((time.perf_counter() - start) / len(models), 1)
            for seed, model in zip(options.seeds, models, strict=True):
                start = time.perf_counter()
                accuracy = accuracies(model, events, labels, LENGTHS, compiled=options.compile)
                learned = [" ".join(favours(options)), rate, options.steps, n_parameters(model), seed]
                row = {**known, "mixer": name, **dict(zip(LEARNED, [*learned, seconds], strict=True))}
                report(row, accuracy, options.out)
            memory = f", {torch.cuda.max_memory_allocated() / 2**20:.0f} MB at most" * (
                options.device == "cuda"
            )
            tested = time.perf_counter() - start
            print(f"{'':<22} {seconds} s a seed to train, {tested:.1f} s to test at all lengths{memory}")


def favours(options):
    """Those asked for that such events can have."""
    useless = "centred_values" if options.events == "signed" else "even_gates"
    return [favour for favour in options.favours if favour != useless]


def parsed():
    parser = new_parser(__doc__)
    parser.add_argument("--events", choices=["signed", "tokens"], default="signed")
    parser.add_argument("--exponents", type=float, nargs="*", default=[0.3])
    parser.add_argument("--probability", type=float, default=0.05, help="of an event at a step")
    parser.add_argument("--mixers", nargs="*", choices=MIXERS, default=["frac"])
    parser.add_argument("--favours", nargs="*", choices=FAVOURS, default=FAVOURS[:3])
    parser.add_argument("--learning-rates", type=float, nargs="*", default=[4e-3])
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--split", choices=SPLITS, default="test")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--rules", action="store_true", help="also the rules that learn nothing")
    return checked(parser)


def new_parser(description):
    """A parser with the options that every script has."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--sequences", type=int, default=512, help="of the probe's test")
    parser.add_argument("--device", default="cpu", help="for the probe")
    parser.add_argument("--commit", default="", help="of the code, where git cannot tell")
    parser.add_argument("--out", type=Path, help="CSV that raw rows are appended to")
    return parser


def checked(parser):
    """The options given; those that would fail after a long run fail now."""
    options = parser.parse_args()
    if options.out and not options.out.parent.is_dir():
        parser.error(f"--out: there is no folder {options.out.parent}")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: torch finds no GPU")
    return options


if __name__ == "__main__":
    main()
