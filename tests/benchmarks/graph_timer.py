"""Time on the GPU of calls that take turns, by replayed CUDA graphs.

A call is warmed up, watched for waits on the host, and captured. Replays are timed by events, the calls one
after the other in every round, so that a drift of the clocks meets all alike. What cannot be captured is
timed as called from Python, and says why. Without a GPU all of it runs by the wall clock: that tries a
script out, and gives no figures.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

CUDA = torch.cuda.is_available()
ROUNDS, LEAST = (40, 5) if CUDA else (2, 2)
AHEAD = 2_000_000  # cycles that the GPU idles at the start of a round, so that the host is never waited for


@dataclass
class Recording:
    """A call, how it is run, and the microseconds that one call took in each round."""

    run: Callable[[], object]
    calls: int  # in one run
    of: Callable[[], object]  # the call, kept alive with all that its graph reads
    note: str = ""  # why it is no graph
    us: list[float] = field(default_factory=list)

    def median(self) -> float:
        return statistics.median(self.us)

    def quartiles(self) -> tuple[float, float]:
        first, _, third = statistics.quantiles(self.us, n=4, method="inclusive")
        return first, third


def record_graph(call: Callable[[], object], calls: int = 1, safe: bool = False) -> Recording:
    """`calls` calls in one graph; eager calls and a note where there can be none. safe: known not to wait for
    the GPU while captured."""

    def eagerly() -> None:
        for _ in range(calls):
            call()

    call()  # compiles and tunes
    if not CUDA:
        return Recording(eagerly, calls, call, "no GPU, wall clock")
    reason = "" if safe else _waits(call)
    if reason:
        return Recording(eagerly, calls, call, f"eager: {reason}")
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            eagerly()
    except RuntimeError as error:
        return Recording(eagerly, calls, call, f"eager: no capture, {told(error)}")
    return Recording(graph.replay, calls, call)


def _waits(call: Callable[[], object]) -> str:
    """Why the call cannot be captured, if it waits for the GPU: found out without a broken capture."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        call()
    except RuntimeError as error:
        return told(error)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return ""


def take_turns(recordings: list[Recording], seconds: float = 0.5) -> None:
    """Run all in rounds; one that has used up its seconds sits the others out, after a few rounds."""
    for _ in range(ROUNDS):
        due = [x for x in recordings if len(x.us) < LEAST or sum(x.us) * x.calls < 1e6 * seconds]
        for recording, ms in zip(due, _round([x.run for x in due]), strict=True):
            recording.us.append(1e3 * ms / recording.calls)


def _round(runs: list[Callable[[], object]]) -> list[float]:
    """Milliseconds of each run."""
    if not CUDA:
        return [1e3 * _seconds(run) for run in runs]
    marks = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in runs]
    torch.cuda._sleep(AHEAD)
    for run, (start, end) in zip(runs, marks, strict=True):
        start.record()
        run()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in marks]


def eager_us(call: Callable[[], object], calls: int = LEAST - 1) -> float:
    """Microseconds of a call from Python, of a few in a row."""

    def several() -> None:
        for _ in range(calls):
            call()

    return 1e6 * _seconds(several) / calls


def _seconds(run: Callable[[], object]) -> float:
    wait()
    start = time.perf_counter()
    run()
    wait()
    return time.perf_counter() - start


def wait() -> None:
    if CUDA:
        torch.cuda.synchronize()


def peak_bytes(call: Callable[[], object]) -> int:
    """Memory of a call at its peak, above what was there before; 0 without a GPU."""
    if not CUDA:
        return 0
    wait()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    wait()
    return torch.cuda.max_memory_allocated() - before


def copy_bandwidth() -> float:
    """Bytes read and written per second by a copy that does not fit into any cache."""
    source = torch.rand(2**29 if CUDA else 2**22, device="cuda" if CUDA else "cpu")
    target = torch.empty_like(source)
    copy = record_graph(lambda: target.copy_(source))
    take_turns([copy])
    return 2 * source.nbytes / (1e-6 * copy.median())


def told(error: BaseException) -> str:
    """The first line of an error, not too long for a table."""
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:120]
