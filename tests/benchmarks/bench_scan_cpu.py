"""How fast is the chunked scan on a CPU, beside the loop that defines it?

    python tests/benchmarks/bench_scan_cpu.py

Prints median milliseconds of float32 inputs, forward and forward with backward; the loop computes in float64.
Each size is checked against the loop before it is timed.
"""

import statistics
import time

import torch

from fracts.kernels import frac_scan
from fracts.kernels.scan_reference import scan_reference

SIZES = (1, 512), (8, 256), (8, 512)  # batch, time
HEADS, MODES, CHANNELS = 12, 16, 16
REPEATS = 5


def tokens(batch, length):
    torch.manual_seed(0)
    c, b = torch.randn(2, batch, length, HEADS, MODES)
    step, v = torch.rand(batch, length, HEADS), torch.randn(batch, length, HEADS, CHANNELS)
    rates = (0.5 ** torch.arange(MODES)).repeat(HEADS, 1)
    return [x.requires_grad_() for x in (c, b, step, rates, v, torch.zeros(batch, HEADS, MODES, CHANNELS))]


@torch.no_grad()
def forward(scan, inputs):
    return scan(*inputs)[0]


def with_backward(scan, inputs):
    return torch.autograd.grad(scan(*inputs)[0].square().sum(), inputs)


def milliseconds(run, scan, inputs):
    run(scan, inputs)
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run(scan, inputs)
        taken.append(1e3 * (time.perf_counter() - start))
    return statistics.median(taken)


print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {HEADS=} {MODES=} {CHANNELS=}")
print(f"{'batch':>5} {'time':>5} | {'loop ms':>8} {'+ backward':>10} | {'scan ms':>8} {'+ backward':>10}")
for batch, length in SIZES:
    inputs = tokens(batch, length)
    truth = forward(scan_reference, inputs)
    error = ((forward(frac_scan, inputs) - truth).norm() / truth.norm()).item()
    if not error <= 2e-6:
        raise SystemExit(f"batch {batch}, time {length}: the scan is {error:.1e} off; nothing was timed")
    loop, loop_back = (milliseconds(run, scan_reference, inputs) for run in (forward, with_backward))
    scan, scan_back = (milliseconds(run, frac_scan, inputs) for run in (forward, with_backward))
    print(f"{batch:>5} {length:>5} | {loop:>8.1f} {loop_back:>10.1f} | {scan:>8.1f} {scan_back:>10.1f}")
