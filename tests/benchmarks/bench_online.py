"""How long from an observation to a forecast of 24 hours, after histories of a thousand to a million hours?

    python tests/benchmarks/bench_online.py
    python tests/benchmarks/bench_online.py --peer river-SNARIMAX=/path/to/env/bin/python --peer ...
    python tests/benchmarks/bench_online.py --only FracForecaster FracRidge --against ../another/checkout
    python tests/benchmarks/bench_online.py --many

One series; every contestant has a process, and a peer an environment of its own. They take turns, a few steps
each, so that whatever else the machine does meets all alike. Told are the median and the 99th percentile in
microseconds, beside a matrix-vector product of 64 x 64 in float32 in the same turns. A contestant whose start
or step takes too long is left out of the longer histories. `--against` has our own contestants of another
checkout of fracts take turns too, under its commit. With `--many` instead: observations a second of
10,000 series by `learn_many`, on two cores, and where there is a GPU also with the state there. Before
anything is timed the stream is checked against one pass.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from online_peers import CONTESTANTS, series, speaking
from record import record

HERE = Path(__file__).resolve().parents[2]
PEERS = Path("tests/benchmarks/online_peers.py")  # of a checkout
OURS = (
    "FracForecaster",
    "FracForecaster-numpy",
    "FracForecaster-speaking",
    "FracForecaster-speaking-numpy",
    "FracRidge",
    "FracRidge-numpy",
    "FracForecaster-pandas",
    "matvec-64",
)
HISTORIES = 1_000, 10_000, 100_000, 1_000_000
STEPS, TURN_SECONDS = 20, 0.5  # of a turn: as many steps as fit, at most
SLOWEST_START, SLOWEST_STEP = 600.0, 5.0  # seconds
MANY = 10_000


class Contestant:
    """A process that fits, steps and tells its times."""

    def __init__(self, name, python):
        self.name, self.taken, self.steps = name, [], 1
        peer, _, folder = name.partition("@")
        root = Path(folder or HERE).resolve()
        if folder:
            self.name = f"{peer}@{commit_of(root)}"
        environment = dict(os.environ)
        if peer in OURS:
            environment["PYTHONPATH"] = str(root)
        self.process = subprocess.Popen(
            [python, str(root / PEERS), peer],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, **asked):
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise ChildProcessError(f"{self.name} ended with {self.process.wait()}")
        return json.loads(answer)

    def warm_up(self):
        for _ in range(2):
            median = float(np.median(self.ask(steps=self.steps)["ns"])) / 1e9
            self.steps = int(np.clip(TURN_SECONDS / median, 1, STEPS))
        return median

    def turn(self):
        self.taken += self.ask(steps=self.steps)["ns"]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def commit_of(folder):
    told = ["git", "-C", str(folder), "describe", "--always", "--dirty=+"]
    return subprocess.run(told, capture_output=True, text=True, check=True).stdout.strip()


def check():
    """A stream says what one pass over its history says, or nothing is timed."""
    from fracts import FracForecaster, FracRidge

    y = series(3_000)
    for model in (
        speaking(FracForecaster(24, season_lengths=24, max_epochs=1, random_state=0).fit(y[:2_000])),
        FracRidge(24, season_lengths=24).fit(y[:2_000]),
    ):
        stream = model.apply(y[:2_000])
        for value in y[2_000:]:
            stream.learn_one(value)
        off = np.abs(stream.forecast() - model.apply(y).forecast()).max()
        if not off < 1e-4:
            raise SystemExit(f"the stream of {model} is {off:.1e} off one pass; nothing was timed")


def tell_one_series(pythons, histories, turns):
    print(f"{'history':>9} {'contestant':>28} {'start s':>8} {'median µs':>10} {'p99 µs':>9} {'steps':>6}")
    rows, too_slow = [], set()
    for n in histories:
        contestants, starts = [], {}
        for name, python in pythons.items():
            if name in too_slow:
                continue
            one = Contestant(name, python)
            try:
                starts[one.name] = one.ask(start=n)["seconds"]
                if one.warm_up() > SLOWEST_STEP or starts[one.name] > SLOWEST_START:
                    too_slow.add(name)
            except ChildProcessError as error:
                print(f"{n:>9} {name:>28} {error}")
                too_slow.add(name)
                continue
            contestants.append(one)
        for _ in range(turns):
            for one in contestants:
                one.turn()
        for one in contestants:
            one.end()
            median, late = (float(np.quantile(one.taken, q)) / 1e3 for q in (0.5, 0.99))
            start = starts[one.name]
            times = f"{start:>8.1f} {median:>10.1f} {late:>9.1f} {len(one.taken):>6}"
            print(f"{n:>9} {one.name:>28} {times}", flush=True)
            row = {"history": n, "contestant": one.name, "start_s": round(start, 2)}
            rows.append(
                row | {"median_us": round(median, 2), "p99_us": round(late, 2), "steps": len(one.taken)}
            )
    record("bench_online", [{"torch": version("torch")} | row for row in rows])


def many_series(n_series):
    """A panel (rows, series), and a history of a hundred of them to fit on."""
    y = np.stack([np.roll(series(800), -shift) for shift in range(100)], axis=1)
    panel = np.tile(y, (1, -(-n_series // 100)))[:, :n_series]
    history = y[:600].copy()  # shorter ones are smoothed besides, which no GPU does
    history[40:, 0] = np.nan  # too few values for coefficients of its own, so all series share theirs
    return panel, history


def seconds_a_row(learn, rows):
    begun = time.perf_counter()
    for row in rows:
        learn(row)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return (time.perf_counter() - begun) / len(rows)


def tell_many(n_series, rounds, compiled):
    """Observations a second of many series that share their weights."""
    from fracts import FracForecaster, FracRidge, fast

    if not compiled:
        fast.find_spec = lambda name: None

    panel, history = many_series(n_series)
    rows = []
    print(f"{'model':>23} {'series':>7} {'observations a second':>22}")
    for name, model in (
        ("FracForecaster", FracForecaster(24, season_lengths=24, random_state=0)),
        ("FracForecaster-speaking", FracForecaster(24, season_lengths=24, random_state=0)),
        ("FracRidge", FracRidge(24, season_lengths=24, pooled=True)),
    ):
        many = model.fit(history)
        many = (speaking(many) if name.endswith("speaking") else many).apply(panel[:48])
        if name.startswith("FracForecaster"):
            many.set_params(device="cpu")
        many.learn_many(panel[48])
        rate = n_series / seconds_a_row(many.learn_many, panel[49 : 49 + rounds])
        print(f"{name:>23} {n_series:>7} {rate:>22,.0f}", flush=True)
        rows.append(
            {
                "model": name,
                "compiled": compiled and fast.compiles(),
                "series": n_series,
                "rounds": rounds,
                "a_second": round(rate),
            }
        )
    record("bench_online_many", rows)


def tell_many_on_a_gpu(n_series, rounds):
    """The same of a network that speaks, stepped by the CPU and by a GPU: learned, learned and forecast each
    time, and the milliseconds until the state is back as arrays."""
    from fracts import FracForecaster, fast

    panel, history = many_series(n_series)
    gpu, rows = torch.cuda.get_device_name(), []
    print(f"{'season':>7} {'series':>7} {'on':>22} {'a second':>12} {'with a forecast':>16} {'state ms':>9}")
    for season in (24, None):
        lengths = () if season is None else season
        many = FracForecaster(24, season_lengths=lengths, random_state=0).fit(history)
        many = speaking(many).apply(panel[:48])
        for device in ("cpu", "cuda"):
            many.set_params(device=device)
            many.learn_many(panel[48]).forecast()
            if (many._fleet is None) != (device == "cpu"):
                raise SystemExit(f"{many} was not stepped on {device}; nothing was timed")
            rate = n_series / seconds_a_row(many.learn_many, panel[49 : 49 + rounds])
            told = n_series / seconds_a_row(lambda row: many.learn_many(row).forecast(), panel[49:54])  # noqa: B023
            many.learn_many(panel[54])
            begun = time.perf_counter()
            many.state_nbytes  # noqa: B018
            fetched = 1e3 * (time.perf_counter() - begun)
            on = gpu if device == "cuda" else f"CPU, {'numba' if fast.compiles() else 'numpy'}"
            print(
                f"{season or 'none':>7} {n_series:>7} {on:>22} {rate:>12,.0f} {told:>16,.0f} {fetched:>9.1f}"
            )
            row = {"torch": version("torch"), "on": on, "season": season or 0, "series": n_series}
            rates = {"a_second": round(rate), "with_a_forecast": round(told), "state_ms": round(fetched, 1)}
            rows.append(row | {"rounds": rounds} | rates)
    record("bench_online_gpu", rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--only", nargs="+", default=OURS, metavar="NAME", help="of our own contestants")
    parser.add_argument("--against", metavar="FOLDER", help="another checkout of fracts")
    parser.add_argument("--histories", nargs="+", type=int, default=HISTORIES)
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--many", action="store_true")
    parser.add_argument("--numpy", action="store_true", help="with --many: as where numba is not installed")
    parser.add_argument("--series", type=int, default=MANY)
    parser.add_argument("--no-record", action="store_true")
    arguments = parser.parse_args()
    ours = [*arguments.only, *(f"{name}@{arguments.against}" for name in arguments.only if arguments.against)]
    pythons = dict.fromkeys(ours, sys.executable) | dict(peer.split("=", 1) for peer in arguments.peer)
    if unknown := {name.partition("@")[0] for name in pythons} - set(CONTESTANTS):
        parser.error(f"no contestant is called {unknown}; there are {list(CONTESTANTS)}")
    check()
    if arguments.many:
        rounds = max(1, arguments.turns // 5)
        tell_many(arguments.series, rounds, not arguments.numpy)
        if torch.cuda.is_available():
            tell_many_on_a_gpu(arguments.series, rounds)
    else:
        tell_one_series(pythons, arguments.histories, arguments.turns)


if __name__ == "__main__":
    main()
