"""How fast is the scan on a GPU, beside the scans of other layers and beside the memory it must move?

    python tests/benchmarks/bench_scan.py --peers FOLDER [--only WORDS] [--sizes 8x4096,256] [--out FOLDER]

bfloat16, width 1024 (16 heads of 64 channels), 16 modes. Microseconds of GPU time of a call, by replayed
CUDA graphs that take turns: median and quartiles; beside it the call from Python. The floor is what the
inputs, read once, and the outputs, written once, take at the bandwidth of a copy measured in the same run; a
gradient reads the inputs again, and writes as much. `peak` is memory above the inputs. `error` is the RMS
ratio to the float64 loop on the last tokens of the last series, of y, or the worst of c, b and v among
gradients. README.md says what FOLDER holds; what is not in it, or does not run, says so and is left out.
"""

import argparse
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import triton
from graph_timer import (
    CUDA,
    Recording,
    copy_bandwidth,
    eager_us,
    peak_bytes,
    record_graph,
    take_turns,
    told,
    wait,
)
from record import RESULTS, record
from scan_peers import SCANS, STEPS, Op, Tokens, draw, use_peers
from torch import Tensor
from tuning import WORKERS, Share, compile_apart, search

from fracts.kernels.scan_chunked import scan_chunked
from fracts.kernels.scan_reference import scan_reference

DEVICE = "cuda" if CUDA else "cpu"
DTYPE = torch.bfloat16 if CUDA else torch.float32
SIZES = "8x4096,2x16384,1x131072,1,256"  # batch x time of scans; sequences of a step
TINY = "1x40,3"
SETS = 16 if CUDA else 1  # states that a step goes through in turn: so many do not fit into a cache
CHECKED = 512  # tokens compared with the float64 loop
SHORT = 2**15  # tokens, up to which a graph holds several calls
# What is promised: how many times as long others take, and the most that ours takes of its floor.
LONGER = {
    ("forward, 8x4096", "fla chunk_gla, K=16"): 4.5,
    ("forward, 8x4096", "Mamba-2 SSD, N=128"): 3,
    ("forward, 8x4096", "Mamba-3 SISO, N=128"): 10,
    ("forward, 1x131072", "fla chunk_gla, K=16"): 8,
    ("forward and backward, 8x4096", "fla chunk_gla, K=16"): 4.5,
    ("forward and backward, 1x131072", "fla chunk_gla, K=16"): 6,
    ("step, 256 sequences", "fla fused_recurrent_gla, K=16"): 1.2,
}
FLOORS = {
    ("forward, 8x4096", "frac_scan"): 2.6,
    ("forward, 1x131072", "frac_scan"): 2.6,
    ("forward and backward, 8x4096", "frac_scan"): 3.5,
    ("forward and backward, 1x131072", "frac_scan"): 4.5,
    ("step, 256 sequences", "frac_step"): 1.6,
}
COMPILED = 4096  # tokens at most of a worker's series: the kernels are those of longer ones


@dataclass
class Entry:
    """What is known of an operation at a size before its replays are timed."""

    recording: Recording
    eager_us: float
    peak_mb: float
    bytes: int
    error: float | None
    note: str


class Truth:
    """Outputs and gradients of the float64 loop over the last tokens of the last series."""

    def __init__(self, tokens: Tokens) -> None:
        c, b, step, v = (x[-1:].double() for x in (tokens.c, tokens.b, tokens.step, tokens.v))
        rates, first = tokens.rates.double(), max(0, v.shape[1] - CHECKED)
        state = v.new_zeros(1, *rates.shape, v.shape[-1])
        if first:
            _, state = scan_chunked(*(x[:, :first] for x in (c, b, step)), rates, v[:, :first], state)
        self.inputs = [x[:, first:].clone().requires_grad_() for x in (c, b, v)]
        late_c, late_b, late_v = self.inputs
        self.y, _ = scan_reference(late_c, late_b, step[:, first:], rates, late_v, state)

    def off_output(self, y: Tensor) -> float:
        return off(y, self.y)

    def off_gradients(self, grads: tuple[Tensor, ...], grad_y: Tensor) -> float:
        last = grad_y[-1:, -self.y.shape[1] :].double()
        wanted = torch.autograd.grad(self.y, self.inputs, last, retain_graph=True)
        return max(off(got, want) for got, want in zip(grads[:3], wanted, strict=True))


def off(got: Tensor, want: Tensor) -> float:
    """RMS ratio, `got` cut to the last series and tokens."""
    got, want = got.detach()[-1:, -want.shape[1] :].double(), want.detach()
    return float((got - want).norm() / want.norm())


def forward(op: Op) -> Callable[[], Tensor]:
    @torch.no_grad()
    def call() -> Tensor:
        return op.run(*op.inputs)

    return call


def both(op: Op, grad_y: Tensor) -> Callable[[], tuple[Tensor, ...]]:
    def call() -> tuple[Tensor, ...]:
        return torch.autograd.grad(op.run(*op.inputs), op.inputs, grad_y)

    return call


def moved(*tensors: Tensor) -> int:
    """Bytes that these take in memory, an expanded axis once."""
    return sum(
        x.element_size() * max(1, x[tuple(slice(None) if s else 0 for s in x.stride())].numel())
        for x in tensors
    )


def entry(call: Callable[[], object], calls: int, size: int, error: float | None, op: Op) -> Entry:
    recording = record_graph(call, calls, op.safe)
    note = "; ".join(filter(None, (op.note, recording.note)))
    return Entry(recording, eager_us(call), peak_bytes(call) / 2**20, size, error, note)


def forward_entry(op: Op, calls: int, truth: Truth) -> Entry:
    call = forward(op)
    y = call()
    error = truth.off_output(y) if op.exact else None
    return entry(call, calls, moved(*op.inputs, y), error, op._replace(note=""))


def both_entry(op: Op, calls: int, truth: Truth) -> Entry:
    y = forward(op)()
    grad_y = torch.randn_like(y)
    call, size = both(op, grad_y), moved(*op.inputs, y, *op.inputs, grad_y, *op.inputs)
    error = truth.off_gradients(call(), grad_y) if op.exact else None
    return entry(call, calls, size, error, op)


def step_entry(tokens: list[Tokens], maker: Callable[[Tokens], Op]) -> Entry:
    ops = [maker(each) for each in tokens]
    turns = itertools.cycle([forward(op) for op in ops])
    y, state = next(turns)(), max(ops[0].inputs, key=torch.numel)
    return entry(lambda: next(turns)(), SETS, moved(*ops[0].inputs, y, state), None, ops[0])


def tell(what: str, entries: dict[str, Entry], failed: dict[str, str], ours: str, bandwidth: float) -> list:
    """Time the entries in turns, print the table, and give its rows."""
    take_turns([each.recording for each in entries.values()])
    first = entries[ours].recording.median() if ours in entries else float("nan")
    print(
        f"\n{what:<38}{'us':>10}{'quartiles':>20}{'x ours':>8}{'floor us':>9}{'x floor':>8}"
        f"{'peak MB':>9}{'error':>9}{'Python us':>11}"
    )
    rows = []
    for name, each in entries.items():
        us, (low, high) = each.recording.median(), each.recording.quartiles()
        floor = 1e6 * each.bytes / bandwidth
        error = "" if each.error is None else f"{each.error:.1e}"
        print(
            f"{name:<38}{us:>10.1f}{f'{low:.1f} .. {high:.1f}':>20}{us / first:>8.2f}{floor:>9.1f}"
            f"{us / floor:>8.2f}{each.peak_mb:>9.1f}{error:>9}{each.eager_us:>11.0f}  {each.note}"
        )
        row = {"what": what, "op": name, "us": us, "low_us": low, "high_us": high, "times_ours": us / first}
        row |= {"rounds": len(each.recording.us), "bytes": each.bytes, "times_floor": us / floor}
        row |= {"peak_mb": each.peak_mb, "error": each.error, "eager_us": each.eager_us, "note": each.note}
        rows.append(row)
    for name, reason in failed.items():
        print(f"{name:<38}  left out: {reason}")
    print(end="", flush=True)
    return rows


def each(makers: dict[str, Callable], make: Callable) -> tuple[dict, dict[str, str]]:
    """What `make` gives for every maker, and why it gave nothing."""
    done, failed = {}, {}
    for name, maker in makers.items():
        try:
            done[name] = make(maker)
        except Exception as error:
            failed[name] = told(error)
    return done, failed


def bench(size: list[int], makers: dict[str, Callable], bandwidth: float) -> list:
    """Rows of the tables of one size."""
    ours, name = next(iter(makers)), "x".join(map(str, size))
    if len(size) == 1:
        tokens = [draw(*size, 1, DTYPE, DEVICE) for _ in range(SETS)]
        entries, failed = each(makers, lambda maker: step_entry(tokens, maker))
        return tell(f"step, {name} sequences", entries, failed, ours, bandwidth)
    tokens = draw(*size, DTYPE, DEVICE)
    truth, calls, rows = Truth(tokens), 4 if CUDA and size[0] * size[1] <= SHORT else 1, []
    ops, without = each(makers, lambda maker: maker(tokens))
    for what, make in (("forward", forward_entry), ("forward and backward", both_entry)):
        entries, failed = each(ops, lambda op, make=make: make(op, calls, truth))
        rows += tell(f"{what}, {name}", entries, without | failed, ours, bandwidth)
    return rows


def compile_share(sizes: list[list[int]], only: str, share: Share) -> dict[str, str]:
    """Run everything once, on short series, with a worker's share of configurations; what failed, by name."""
    failed: dict[str, str] = {}
    for batch, *length in {tuple(min(n, COMPILED) for n in size) for size in sizes}:
        tokens = draw(batch, *(length or (1,)), DTYPE, DEVICE)

        def run(maker: Callable, tokens: Tokens = tokens, scan: bool = bool(length)) -> None:
            op = maker(tokens)
            y = forward(op)()
            if scan:
                both(op, torch.randn_like(y))()
            wait()
            share.forget()

        makers = list(chosen(SCANS if length else STEPS, only).items())
        turn = share.number % len(makers)  # that not all compile the same kernel at a time
        for name, reason in each(dict(makers[turn:] + makers[:turn]), run)[1].items():
            failed[name] = reason
            if fatal(reason):
                return failed  # nothing ran after it
    return failed


def fatal(reason: str) -> bool:
    """Whether it leaves a process without a GPU, as a bad address does."""
    return "CUDA error" in reason or "Error [CUDA]" in reason


def chosen(ops: dict[str, Callable], words: str) -> dict[str, Callable]:
    """Ours, which is the first, and those whose name holds one of the words."""
    ours = next(iter(ops))
    return {k: v for k, v in ops.items() if k == ours or any(word in k for word in words.split(","))}


def missed(rows: list[dict]) -> list[str]:
    """What was promised and is not so in these rows."""
    told_of = []
    for row in rows:
        key = row["what"], row["op"]
        if key in LONGER and not row["times_ours"] >= LONGER[key]:  # nor where ours did not run
            told_of.append(f"{key}: {row['times_ours']:.2f} times ours, {LONGER[key]} promised")
        if key in FLOORS and row["times_floor"] > FLOORS[key]:
            told_of.append(f"{key}: {row['times_floor']:.2f} times its floor, {FLOORS[key]} promised")
    return told_of


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", type=Path, help="folder with fla and mamba_ssm")
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--smoke", action="store_const", const=TINY, dest="sizes", help="tiny sizes")
    parser.add_argument("--only", default="", help="parts of the names of the peers to run, by commas")
    parser.add_argument("--configs", type=int, default=16, help="at most, of each kernel of a peer; 0: all")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--compile-seconds", type=float, default=120.0)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV")
    parser.add_argument("--no-record", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    given, start = arguments(), time.perf_counter()
    if given.peers:
        use_peers(given.peers)
    search(given.configs)
    sizes = [[int(n) for n in size.split("x")] for size in given.sizes.split(",")]
    if given.worker:
        share = Share(*map(int, given.worker.split("/")))
        print(json.dumps(compile_share(sizes, given.only, share)))
        return
    failed = compile_apart(given.workers, given.compile_seconds) if given.workers else {}
    print(f"compiled by {given.workers} workers in {time.perf_counter() - start:.0f} s")
    bandwidth = copy_bandwidth()
    gpu = torch.cuda.get_device_name() if CUDA else "none"
    versions = f"torch {torch.__version__}, triton {triton.__version__}"
    print(f"GPU {gpu}, {versions}, {DTYPE}, copy {bandwidth / 1e12:.2f} TB/s")
    short = []
    for size in sizes:
        makers = chosen(SCANS if len(size) == 2 else STEPS, given.only)
        for name in [n for n in makers if fatal(failed.get(n, ""))]:
            print(f"{name} is left out, a worker had: {failed[name]}")
            del makers[name]
        rows = bench(size, makers, bandwidth)
        told_of = {
            "gpu": gpu,
            "torch": torch.__version__,
            "triton": triton.__version__,
            "copy_bytes_per_s": bandwidth,
        }
        if rows:
            record("bench_scan", [told_of | row for row in rows], given.out)
        short += missed(rows) if CUDA else []
    print(f"{time.perf_counter() - start:.0f} s in all")
    if short:
        raise SystemExit("\n".join(short))


if __name__ == "__main__":
    main()
