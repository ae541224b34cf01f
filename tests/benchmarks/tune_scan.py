"""Which launches are fastest on this GPU, kernel by kernel? The table `LAUNCHES` of the scan comes from here.

    python tests/benchmarks/tune_scan.py --size 8x4096 --modes 16 --width 64

Every kernel is compiled by many processes at once and then timed alone, over the candidates below, on tokens
as a layer makes them. A candidate that spills or fails says so and is left out.
"""

import argparse
import multiprocessing
import os
from functools import partial
from pathlib import Path

import torch
from graph_timer import CUDA, record_graph, take_turns, told
from record import RESULTS, record

from fracts.kernels import scan_triton as room
from fracts.kernels.scan_triton import Launch, Program
from fracts.memory import mode_timescales

SEGMENTS = 256, 512, 1024
WRITES = [
    Program(*x)
    for x in [(32, 1, 2), (32, 1, 3), (64, 1, 2), (64, 1, 3), (64, 2, 2), (128, 2, 2), (128, 4, 2)]
]
READS = [
    Program(16, warps, stages, registers)
    for warps in (1, 2)
    for stages in (2, 3, 4)
    for registers in (None, 200, 168, 128)
]
KERNELS = {"write": WRITES, "ask": WRITES, "read": READS, "reads back": READS, "writes back": READS}
HEADS = 16


class Setting:
    """Tokens, and memory for all that the kernels fill."""

    def __init__(
        self, batch: int, time: int, modes: int, width: int, dtype: torch.dtype, segment: int
    ) -> None:
        random = torch.Generator("cuda").manual_seed(0)

        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=random, device="cuda")

        self.c, self.b = (normal(batch, time, HEADS, modes).softmax(-1).to(dtype) for _ in range(2))
        self.step = 0.5 + torch.rand(batch, time, HEADS, generator=random, device="cuda")
        rates = torch.tensor(1 / mode_timescales(1.0, 131072.0, modes), device="cuda").float()
        self.rates = rates.expand(HEADS, modes).contiguous()
        self.v, self.dy = (normal(batch, time, HEADS, width).to(dtype) for _ in range(2))
        self.segment = segment

    def call(self, kernel: str, program: Program) -> None:
        """One launch of `kernel`."""
        c, b, step, rates, v, dy = self.c, self.b, self.step, self.rates, self.v, self.dy
        room.LAUNCHES[v.dtype] = Launch(self.segment, program, program, program, program)
        sizes, strides = room._Sizes(c, v), room._strides
        if not hasattr(self, "outputs") or self.tile != program.tile:
            self.tile, self.outputs = program.tile, sizes.outputs(v)
            self.outputs[2].normal_()
            self.outputs[4].zero_()
            self.parts = sizes.parts(self.outputs[2])
        y, _, states, elapsed, far = self.outputs
        how, at = sizes.launch(program), sizes.programs
        if kernel == "write":
            room.write_segments[at](b, step, rates, v, states, elapsed, *strides(b, step, v), **how)
        elif kernel == "ask":
            room.ask_segments[at](c, step, rates, dy, states, *strides(c, step, dy), **how)
        elif kernel == "read":
            room.read_segments[at](
                c, b, step, rates, v, states, y, far, *strides(c, b, step, v, y), **how, FAR=False
            )
        else:
            known, places = (c, b, step, rates, v, dy), strides(c, b, step, v, dy)
            if kernel == "reads back":
                out = torch.empty_like(c), torch.empty_like(step)
                known += (states, states)
            else:
                out = tuple(torch.empty_like(x) for x in (b, step, v))
                known += (states,)
            kernels = {"reads back": room.reads_back, "writes back": room.writes_back}
            kernels[kernel][at](*known, far, *out, *self.parts, *places, *strides(*out), **how, FAR=False)


def compile_one(job: tuple) -> str:
    """Why a candidate cannot run; empty if it can."""
    modes, width, dtype, segment, kernel, program = job
    try:
        Setting(1, 2 * segment, modes, width, dtype, segment).call(kernel, program)
        torch.cuda.synchronize()
    except Exception as error:
        return f"{kernel} {tuple(program)}: {told(error)}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", default="8x4096", help="batch x time")
    parser.add_argument("--modes", type=int, default=16)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="bfloat16")
    parser.add_argument("--kernels", nargs="*", choices=KERNELS, default=list(KERNELS))
    parser.add_argument("--segments", nargs="*", type=int, default=SEGMENTS)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV")
    options = parser.parse_args()
    if not CUDA:
        parser.error("torch finds no GPU, and there is nothing to tune without one")
    batch, time = map(int, options.size.split("x"))
    dtype = getattr(torch, options.dtype)
    jobs = [
        (options.modes, options.width, dtype, segment, kernel, program)
        for kernel in options.kernels
        for segment in options.segments
        for program in KERNELS[kernel]
    ]
    with multiprocessing.get_context("spawn").Pool(max(1, (os.cpu_count() or 2) - 1)) as pool:
        failures = pool.map(compile_one, jobs, chunksize=1)
    rows = []
    for segment in options.segments:
        setting = Setting(batch, time, options.modes, options.width, dtype, segment)
        for job, failure in zip(jobs, failures, strict=True):
            _, _, _, at, kernel, program = job
            if at != segment:
                continue
            if failure:
                print(failure)
                continue
            timed = record_graph(partial(setting.call, kernel, program), 5)
            take_turns([timed], seconds=0.05)
            rows.append(
                {"kernel": kernel, "segment": segment, **program._asdict(), "us": round(timed.median(), 1)}
            )
    for kernel in options.kernels:
        print(f"\n{kernel}, {options.size}, M = {options.modes}, P = {options.width}, {options.dtype}")
        for row in sorted((row for row in rows if row["kernel"] == kernel), key=lambda row: row["us"])[:8]:
            print(
                f"  {row['us']:8.1f} us  segment {row['segment']}  {[row[name] for name in Program._fields]}"
            )
    sizes = {"size": options.size, "modes": options.modes, "width": options.width, "dtype": options.dtype}
    record("tune_scan", [{**sizes, **row} for row in rows], options.out)


if __name__ == "__main__":
    main()
