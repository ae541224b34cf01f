"""What does a whole FRAC layer cost on a GPU, beside other layers, and a training step of a small network?

    python tests/benchmarks/bench_layer.py --peers FOLDER [--only WORDS] [--sizes 8x4096] [--out FOLDER]

Layers of width 1024 in bfloat16 autocast, 16 heads of 64 channels, weights in float32: projections, gates,
scan and norm. Microseconds of GPU time forward, and forward and backward (input and weights), by replayed
CUDA graphs that take turns, memory above weights and input, and then where the GPU's time goes, by the
outermost operation that launched it. Last a training step of FracForecaster's network at width 64, batch 64
x 700: loss, gradient, clipping and AdamW, as called from Python, as a CUDA graph, and with `--compile` by
torch.compile; the same with no kernel of ours, and by FracForecaster's own training loop.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
import triton
from graph_timer import CUDA, Recording, eager_us, peak_bytes, record_graph, take_turns, told, wait
from record import RESULTS, record
from scan_peers import use_peers
from torch import Tensor, nn
from torch.autograd import DeviceType
from tuning import WORKERS, Share, compile_apart, search

from fracts import mixer
from fracts.encoder import FracEncoder
from fracts.forecasts import QUANTILES
from fracts.heads import QuantileHead, pinball
from fracts.kernels.scan_chunked import scan_chunked
from fracts.mixer import FracMixer, Tokens
from fracts.network import FracNetwork
from fracts.training import train
from fracts.windows import RandomWindows, Rest

DEVICE = "cuda" if CUDA else "cpu"
WIDTH, HEADS, MODES, TIMESCALES = (1024, 16, 16, (1.0, 131072.0)) if CUDA else (64, 2, 16, (1.0, 131072.0))
SIZES = "8x4096" if CUDA else "1x20"  # batch x time
PROFILED, SHOWN = 3, 10  # passes under the profiler; parts of the table
SMALL_WIDTH, LAYERS, PLAIN, FREQUENCIES, HORIZON = 64, 2, 4, 4, 24
BATCH, LENGTH = (64, 700) if CUDA else (2, 30)
FIRST, EPOCHS = (2, 12) if CUDA else (1, 2)
NAIVE = 1, 2  # epochs, of what takes seconds a step


def frac() -> tuple[nn.Module, Callable]:
    layer = FracMixer(WIDTH, HEADS, 0, MODES, TIMESCALES, torch.Generator().manual_seed(0))

    def run(layer: nn.Module, x: Tensor) -> Tensor:
        batch, time = x.shape[:2]
        seen = torch.ones(batch, time, dtype=torch.bool, device=x.device)
        tokens = Tokens(seen, torch.ones(batch, time, device=x.device), x.new_empty(batch, time, 0, 2))
        return layer(x, x, tokens, layer.empty(batch))[0]

    return layer, run


def gla() -> tuple[nn.Module, Callable]:
    from fla.layers.gla import GatedLinearAttention

    layer = GatedLinearAttention(hidden_size=WIDTH, num_heads=HEADS, expand_k=MODES * HEADS / WIDTH)
    return layer, lambda layer, x: layer(x)[0]


def mamba2(expand: int) -> Callable[[], tuple[nn.Module, Callable]]:
    def make() -> tuple[nn.Module, Callable]:
        from mamba_ssm.modules.mamba2 import Mamba2

        # The other path wants a CUDA extension for its convolution.
        return Mamba2(WIDTH, expand=expand, use_mem_eff_path=False), lambda layer, x: layer(x)

    return make


LAYERS_OF = {
    "FracMixer": frac,
    "fla GatedLinearAttention, K=16": gla,
    "Mamba-2, N=128, equal width": mamba2(1),
    "Mamba-2, N=128, expand 2": mamba2(2),
}


def passes(
    layer: nn.Module, run: Callable, x: Tensor, dtype: torch.dtype
) -> tuple[Callable[[], Tensor], Callable[[], object]]:
    """Forward, and forward and backward."""
    grad_y, wanted = torch.randn_like(x), [x, *layer.parameters()]

    def output() -> Tensor:
        # Without its cache autocast can be captured.
        with torch.autocast(DEVICE, dtype, enabled=dtype != torch.float32, cache_enabled=False):
            return run(layer, x)

    def both() -> object:
        y = output()
        return torch.autograd.grad(y, wanted, grad_y.to(y.dtype))

    return torch.no_grad()(output), both


def recorded(name: str, make: Callable, x: Tensor, dtype: torch.dtype) -> tuple[dict, dict]:
    """Of both passes what is known before replays are timed, and where the time goes."""
    layer, run = make()
    calls = passes(layer.to(DEVICE), run, x, dtype)
    entries, profiles = {}, {}
    for what, call in zip(("forward", "forward and backward"), calls, strict=True):
        recording = record_graph(call)
        if dtype == torch.float32:
            recording.note = f"float32; {recording.note}".rstrip("; ")
        entries[f"{what}: {name}"] = recording, eager_us(call), peak_bytes(call) / 2**20
        profiles[f"{what}: {name}"] = profiled(call)
    return entries, profiles


def bench_layers(batch: int, time: int, chosen: dict[str, Callable]) -> list[dict]:
    entries: dict[str, tuple[Recording, float, float]] = {}
    profiles: dict[str, Counter[str]] = {}
    x = torch.randn(batch, time, WIDTH, device=DEVICE, requires_grad=True)
    for name, make in chosen.items():
        for dtype in (torch.bfloat16, torch.float32):
            try:
                found = recorded(name, make, x, dtype)
            except Exception as error:
                print(f"{name} does not run in {dtype}: {told(error)}")
                continue
            entries |= found[0]
            profiles |= found[1]
            break
    take_turns([recording for recording, _, _ in entries.values()])
    print(f"\n{f'layer, {batch}x{time}':<56}{'us':>10}{'quartiles':>20}{'peak MB':>9}{'Python us':>11}")
    rows = []
    for name, (recording, eager, peak) in entries.items():
        us, (low, high) = recording.median(), recording.quartiles()
        print(
            f"{name:<56}{us:>10.0f}{f'{low:.0f} .. {high:.0f}':>20}{peak:>9.0f}{eager:>11.0f}"
            f"  {recording.note}"
        )
        rows.append(
            {
                "what": name,
                "batch": batch,
                "time": time,
                "us": us,
                "low_us": low,
                "high_us": high,
                "peak_mb": peak,
                "eager_us": eager,
                "note": recording.note,
            }
        )
    for name, spent in profiles.items():
        whole = sum(spent.values())
        print(f"\n{name}: {whole:.0f} us of the {'GPU' if CUDA else 'processor'} in the profile")
        for part, us in spent.most_common(SHOWN):
            print(f"  {part[:70]:<70}{us:>9.0f} us{100 * us / whole:>6.1f} %")
    print(end="", flush=True)
    return rows


def compile_share(size: tuple[int, ...], chosen: dict[str, Callable], share: Share) -> dict[str, str]:
    """Run each layer once with a worker's share of configurations; what failed, by name."""
    failed = {}
    x = torch.randn(*size, WIDTH, device=DEVICE, requires_grad=True)
    for name, make in chosen.items():
        try:
            layer, run = make()
            for call in passes(layer.to(DEVICE), run, x, torch.bfloat16):
                call()
            wait()
        except Exception as error:
            failed[name] = told(error)
        share.forget()
    return failed


def profiled(call: Callable[[], object]) -> Counter[str]:
    """Microseconds a pass on the GPU (without one on the processor), by outermost operation."""
    kinds = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[kinds.CPU, *([kinds.CUDA] if CUDA else [])]) as profile:
        for _ in range(PROFILED):
            call()
        wait()
    spent: Counter[str] = Counter()
    for event in profile.events():
        if event.device_type == DeviceType.CPU and event.cpu_parent is None:
            us = event.device_time_total if CUDA else event.cpu_time_total
            spent[event.name.removeprefix("autograd::engine::evaluate_function: ")] += us / PROFILED
    return spent


class Training:
    """A training step of the default forecaster's network on one batch of long windows."""

    def __init__(self, compiled: bool = False) -> None:
        draws = torch.Generator().manual_seed(0)
        encoder = FracEncoder(SMALL_WIDTH, LAYERS, PLAIN, FREQUENCIES, MODES, TIMESCALES, draws)
        errors = torch.randn(1, HORIZON, QUANTILES.size, generator=draws).sort(-1).values
        head = QuantileHead(SMALL_WIDTH, torch.from_numpy(QUANTILES), errors)
        frequencies = 2 * np.pi * np.arange(1, FREQUENCIES + 1) / 24
        self.network = FracNetwork([encoder], head, frequencies).to(DEVICE)
        self.weights = list(self.network.parameters())
        self.optimiser = torch.optim.AdamW(self.weights, 2e-3, weight_decay=0.01, capturable=CUDA)
        u = torch.randn(BATCH, LENGTH, dtype=torch.float64, generator=draws)
        u[torch.rand(BATCH, LENGTH, generator=draws) < 0.05] = torch.nan
        times = torch.arange(LENGTH, dtype=torch.float64).expand(BATCH, -1)
        rest = torch.randn(BATCH, LENGTH, HORIZON, generator=draws)
        window = u, times, torch.ones_like(u), torch.zeros(BATCH, dtype=torch.int64), rest
        self.window = [x.contiguous().to(DEVICE) for x in window]
        self.loss = torch.compile(self._loss) if compiled else self._loss

    def _loss(self, *window: Tensor) -> Tensor:
        *seen, rest = window
        quantiles, _ = self.network(*seen)
        return pinball(quantiles, rest, self.network.head.levels).mean()

    def learn(self) -> None:
        # No accumulation: it would run on the stream of the first pass, which a capture does not allow.
        grads = torch.autograd.grad(self.loss(*self.window), self.weights, materialize_grads=True)
        for weight, grad in zip(self.weights, grads, strict=True):
            weight.grad = grad
        nn.utils.clip_grad_norm_(self.weights, 1.0)
        self.optimiser.step()


@contextmanager
def naive() -> Iterator[None]:
    """While it lasts every operation is torch's own, launched from Python."""
    kept = mixer.by_triton, mixer.scan, torch.cuda.make_graphed_callables
    mixer.by_triton, mixer.scan = (lambda v: False), scan_chunked
    torch.cuda.make_graphed_callables = lambda module, window: module
    try:
        yield
    finally:
        mixer.by_triton, mixer.scan, torch.cuda.make_graphed_callables = kept


def fitted_us(first_epochs: int, epochs: int) -> float:
    """Microseconds of a training step of `FracForecaster`, by Lightning, batches and held-out loss in it."""
    draws = np.random.default_rng(0)
    u = draws.standard_normal((400, LENGTH))
    rest = (0.5 * u[..., None] + draws.standard_normal((*u.shape, HORIZON))).astype(np.float32)
    beyond = np.full((1, LENGTH, HORIZON), LENGTH)
    group, nothing = np.zeros(len(u), np.int64), np.zeros((len(u), LENGTH + 1, 0), np.float32)
    seen = Rest(
        u, np.arange(LENGTH + HORIZON + 1.0), group, rest, nothing, 0, beyond, np.ones(len(u), np.float32)
    )
    taken = []
    for limit in (1, first_epochs, epochs):  # the very first compiles, the first of each captures
        network = Training().network
        batches = RandomWindows(seen, 0, LENGTH, LENGTH, BATCH, 0)
        held_out = [seen.window(np.arange(4), np.zeros(4, np.int64), LENGTH)]
        start = time.perf_counter()
        history = train(
            network,
            batches,
            held_out,
            max_epochs=limit,
            learning_rate=1e-4,
            device=DEVICE,
            trainer=None,
            verbose=0,
        )
        taken.append((time.perf_counter() - start, history[-1].epoch))
    _, (first, few), (whole, many) = taken
    return 1e6 * (whole - first) / (batches.n_batches * (many - few))


def bench_training(compiled: bool) -> list[dict]:
    print(f"\n{f'training step, width {SMALL_WIDTH}, {BATCH}x{LENGTH}':<56}{'steps/s':>10}{'us':>10}")
    rows = []

    def tell(name: str, us: float, note: str = "") -> None:
        print(f"{name:<56}{1e6 / us:>10.1f}{us:>10.0f}  {note}", flush=True)
        rows.append({"what": name, "batch": BATCH, "time": LENGTH, "us": us, "note": note})

    tell("FracForecaster's own training", fitted_us(FIRST, EPOCHS))
    for name, compile_it in (("FracNetwork", False), ("FracNetwork, torch.compile", True)):
        if compile_it and not compiled:
            continue
        try:
            training = Training(compile_it)
            training.learn()
            tell(f"{name}, from Python", eager_us(training.learn, 10 if CUDA else 1))
            recording = record_graph(training.learn)
            take_turns([recording])
            tell(f"{name}, CUDA graph", recording.median(), recording.note)
        except Exception as error:
            print(f"{name:<56}  left out: {told(error)}", flush=True)
    with naive():  # takes long
        training = Training()
        training.learn()
        tell("all in torch, from Python", eager_us(training.learn, 1))
        tell("FracForecaster's own training, all in torch", fitted_us(*NAIVE))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", type=Path, help="folder with fla and mamba_ssm")
    parser.add_argument("--only", default="", help="parts of the names of the layers to run, by commas")
    parser.add_argument("--configs", type=int, default=8, help="at most, of each kernel of a peer; 0: all")
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--compile-seconds", type=float, default=60.0)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--compile", action="store_true", help="torch.compile too, which takes minutes")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV")
    parser.add_argument("--no-record", action="store_true")
    given, start = parser.parse_args(), time.perf_counter()
    if given.peers:
        use_peers(given.peers)
    search(given.configs)
    sizes = [tuple(int(n) for n in size.split("x")) for size in given.sizes.split(",")]
    words = given.only.split(",")
    chosen = {name: make for name, make in LAYERS_OF.items() if any(word in name for word in words)}
    if given.worker:
        share = Share(*map(int, given.worker.split("/")))
        print(json.dumps({k: v for size in sizes for k, v in compile_share(size, chosen, share).items()}))
        return
    failed = compile_apart(given.workers, given.compile_seconds) if given.workers else {}
    print(f"compiled by {given.workers} workers in {time.perf_counter() - start:.0f} s", *failed.items())
    gpu = torch.cuda.get_device_name() if CUDA else "none"
    print(f"GPU {gpu}, torch {torch.__version__}, triton {triton.__version__}")
    told_of = {"gpu": gpu, "torch": torch.__version__, "triton": triton.__version__}
    for size in sizes:
        rows = bench_layers(*size, chosen)
        if rows:
            record("bench_layer", [told_of | row for row in rows], given.out)
    rows = bench_training(given.compile)
    record("bench_layer_training", [told_of | row for row in rows], given.out)
    print(f"{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
