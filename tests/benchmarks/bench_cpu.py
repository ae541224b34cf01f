"""Is one FRAC layer as fast on two CPU cores as an LSTM, much faster than attention, and linear in time?

    python tests/benchmarks/bench_cpu.py [--memory]

Milliseconds of forward and backward, width 64, float32, two threads, median and minimum of rounds in which
the three take turns. Each size has a process of its own, so that none inherits memory from another.
Attention is left out at 131,072, where its mask alone would need 69 GB. With `--memory` instead: time and
peak memory of a forward and backward pass over ever longer series, each in a process of its own. Before
anything is timed the layer is checked against its own numpy step.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

import numpy as np
import torch
from record import record
from torch import nn

from fracts.encoder import FracEncoder
from fracts.heads import QuantileHead
from fracts.mixer import FracMixer, Tokens
from fracts.network import FracNetwork, as_arrays
from fracts.online import encode_row
from fracts.plan import plan_of

WIDTH, HEADS, MODES, TIMESCALES = 64, 4, 16, (1.0, 131072.0)
SIZES = (32, 512), (8, 2048), (1, 8192), (1, 131072)  # batch, time
LONG = [2**k for k in range(14, 21)]
SECONDS = 20.0  # of rounds at each size
LONGEST_ATTENTION = 8192


def frac(batch, length):
    layer = FracMixer(WIDTH, HEADS, 0, MODES, TIMESCALES, torch.Generator().manual_seed(0))
    tokens = Tokens(
        torch.ones(batch, length, dtype=torch.bool),
        torch.ones(batch, length),
        torch.empty(batch, length, 0, 2),
    )
    state = layer.empty(batch)
    return lambda x: layer(x, x, tokens, state)[0]


def lstm(batch, length):
    layer = nn.LSTM(WIDTH, WIDTH, batch_first=True)
    return lambda x: layer(x)[0]


def attention(batch, length):
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(length)
    return lambda x: layer(x, src_mask=mask, is_causal=True)


def timed(layer, x, weights):
    start = time.perf_counter()
    (layer(x) * weights).sum().backward()
    return 1e3 * (time.perf_counter() - start)


def draw(batch, length):
    torch.manual_seed(0)
    return torch.randn(batch, length, WIDTH, requires_grad=True), torch.randn(batch, length, WIDTH)


def measure(batch, length):
    """Milliseconds of each layer, in rounds."""
    makers = [frac, lstm] + [attention] * (length <= LONGEST_ATTENTION)
    layers = {maker.__name__: maker(batch, length) for maker in makers}
    x, weights = draw(batch, length)
    for layer in layers.values():
        timed(layer, x, weights)
    taken = {name: [] for name in layers}
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(taken["frac"]) < 3:
        for name, layer in layers.items():
            taken[name].append(timed(layer, x, weights))
    return taken


def pass_over(length):
    """Milliseconds, the least of three passes, and megabytes at the peak above those before them."""
    layer, (x, weights) = frac(1, length), draw(1, length)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    taken = min(timed(layer, x, weights) for _ in range(3))
    return taken, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def check():
    """The torch pass and the numpy step agree over 200 rows, or nothing is timed."""
    encoder = FracEncoder(WIDTH, 1, HEADS, 0, MODES, TIMESCALES, torch.Generator().manual_seed(0))
    network = FracNetwork(
        [encoder], QuantileHead(WIDTH, torch.tensor([0.5]), torch.zeros(1, 1, 1)), np.empty(0)
    )
    u = np.random.default_rng(0).normal(size=200)
    times, state, plan = np.arange(200.0), as_arrays(encoder.empty(1)), plan_of(network)
    for value, at in zip(u, times, strict=True):
        state = encode_row(plan, state, np.array([value]), at, 1.0)
    rows = (torch.from_numpy(x)[None] for x in (u, times, np.ones(200)))
    with torch.no_grad():
        batch = as_arrays(network.encode(*rows, encoder.empty(1))[1])
    off = np.abs(batch["features"] - state["features"]).max() / np.abs(state["features"]).max()
    if not off < 1e-5:
        raise SystemExit(f"the pass and the step differ by {off:.1e}; nothing was timed")


def child(*arguments):
    command = [sys.executable, __file__, "--child", *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def tell_speed():
    print(f"{'batch x time':>12} {'layer':>10} {'median ms':>10} {'min ms':>8} {'rounds':>7} {'x frac':>7}")
    rows = []
    for batch, length in SIZES:
        taken = child(batch, length)
        ours = statistics.median(taken["frac"])
        for name, each in taken.items():
            row = {"layer": name, "batch": batch, "time": length, "rounds": len(each)}
            row |= {"median_ms": round(statistics.median(each), 2), "min_ms": round(min(each), 2)}
            rows.append({"torch": torch.__version__} | row)
            print(
                f"{f'{batch} x {length}':>12} {name:>10} {row['median_ms']:>10.1f} {row['min_ms']:>8.1f}"
                f" {len(each):>7} {row['median_ms'] / ours:>7.2f}",
                flush=True,
            )
    record("bench_cpu", rows)


def tell_memory():
    print(f"{'time':>8} {'ms':>8} {'us a token':>11} {'MB':>7} {'KB a token':>11}")
    rows = []
    for length in LONG:
        taken, size = child(length)
        each = 1e3 * taken / length, 1024 * size / length
        print(f"{length:>8} {taken:>8.0f} {each[0]:>11.2f} {size:>7.0f} {each[1]:>11.2f}", flush=True)
        row = {"time": length, "ms": round(taken, 1), "peak_mb": round(size, 1)}
        rows.append({"torch": torch.__version__} | row)
    record("bench_cpu_memory", rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--no-record", action="store_true")
    parser.add_argument("--child", nargs="+", type=int)
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    if arguments.child:
        size = arguments.child
        print(json.dumps(measure(*size) if len(size) == 2 else pass_over(*size)))
        return
    check()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, one layer of width {WIDTH}")
    (tell_memory if arguments.memory else tell_speed)()


if __name__ == "__main__":
    main()
