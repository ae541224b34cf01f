"""The scan of `scan_reference.py` on a GPU: three launches forward, four for the gradient.

One idea: time is cut into segments that many programs work on at once, and a segment into tiles. The first
launch tells what each segment writes into the state, the second carries the state from segment to segment,
the third reads; the gradient does the same from the end. Within a tile tokens see each other through one
small matrix product of what reads and what writes, each taken to the start of the tile; the few tokens too
far from it, told by what came before them, have an exponential of their own for every pair, in a launch
that ends at once where there are none. So the host has nothing to choose, and what comes later never changes
the rounding of what came before. README.md has the mathematics.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from fracts.kernels.scan_triton_backward import ask_segments, reads_back, writes_back
from fracts.kernels.scan_triton_forward import carry, read_segments, write_segments

MANY = 16  # segments that the carry takes at once


class Program(NamedTuple):
    """How a kernel runs."""

    tile: int  # tokens
    warps: int
    stages: int  # of its loop
    registers: int | None = None  # of a thread at most; None: as many as it asks for


class Launch(NamedTuple):
    """How the scan runs."""

    segment: int  # tokens
    write: Program  # write_segments, ask_segments
    read: Program
    back: Program  # reads_back, writes_back
    far: Program  # those with read, reads_back and writes_back that are for far tokens


# Of an H200, by tests/benchmarks/tune_scan.py; the best of (M, P) = (16, 64) serves all. Far tokens take four
# warps: with one, and 32 modes, Triton 3.6 gives wrong numbers for them.
_FLOAT32 = Program(16, 4, 2)
LAUNCHES = {
    torch.float32: Launch(256, _FLOAT32, _FLOAT32, _FLOAT32, _FLOAT32),
    torch.bfloat16: Launch(
        512, Program(64, 1, 2), Program(16, 1, 3, 168), Program(16, 1, 4), Program(16, 4, 2)
    ),
}


def scan_triton(
    c: Tensor, b: Tensor, step: Tensor, rates: Tensor, v: Tensor, initial_state: Tensor
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, H, P] and final state [B, H, M, P]; arguments as in `frac_scan`, all but float64.

    c, b and v may have any strides as long as the last axis is contiguous; otherwise they are copied.
    """
    y, final_state, _, _, _ = _scan(c, b, step, rates, v, initial_state)
    return y, final_state


@torch.library.custom_op("fracts::scan", mutates_args=())
def _scan(
    c: Tensor, b: Tensor, step: Tensor, rates: Tensor, v: Tensor, initial_state: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Outputs, final state; of each segment the state before it, its time, whether it has far tokens."""
    c, b, v, rates, initial_state = (
        _dense(c),
        _dense(b),
        _dense(v),
        rates.contiguous(),
        initial_state.contiguous(),
    )
    sizes = _Sizes(c, v)
    y, final_state, states, elapsed, far = sizes.outputs(v)
    write = sizes.launch(sizes.how.write)
    write_segments[sizes.programs](b, step, rates, v, states, elapsed, *_strides(b, step, v), **write)
    carry[sizes.rows](rates, elapsed, initial_state, states, final_state, **sizes.carry, BACK=False)
    strides = _strides(c, b, step, v, y)
    for program, part in ((sizes.how.read, False), (sizes.how.far, True)):
        how = sizes.launch(program)
        read_segments[sizes.programs](c, b, step, rates, v, states, y, far, *strides, **how, FAR=part)
    return y, final_state, states, elapsed, far


@_scan.register_fake
def _(
    c: Tensor, b: Tensor, step: Tensor, rates: Tensor, v: Tensor, initial_state: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    return _Sizes(c, v).outputs(v)


@torch.library.custom_op("fracts::scan_back", mutates_args=())
def _scan_back(
    grad_y: Tensor,
    grad_state: Tensor,
    c: Tensor,
    b: Tensor,
    step: Tensor,
    rates: Tensor,
    v: Tensor,
    states: Tensor,
    elapsed: Tensor,
    far: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of what `_scan` is given, in its order."""
    c, b, v, dy, rates = _dense(c), _dense(b), _dense(v), _dense(grad_y), rates.contiguous()
    sizes = _Sizes(c, v)
    grad_c, grad_b, grad_step, _, grad_v, grad_initial = sizes.gradients(c, b, step, rates, v, grad_state)
    after = torch.empty_like(states)
    drates, passed, through = sizes.parts(states)
    ask = sizes.launch(sizes.how.write)
    ask_segments[sizes.programs](c, step, rates, dy, after, *_strides(c, step, dy), **ask)
    carry[sizes.rows](rates, elapsed, grad_state.contiguous(), after, grad_initial, **sizes.carry, BACK=True)
    inputs, strides = (c, b, step, rates, v, dy), _strides(c, b, step, v, dy)
    reading, writing, parts = (grad_c, grad_step), (grad_b, grad_step, grad_v), (drates, passed, through)
    launches = (sizes.launch(sizes.how.back), False), (sizes.launch(sizes.how.far), True)
    for how, part in launches:
        reads_back[sizes.programs](
            *inputs, states, after, far, *reading, *parts, *strides, *_strides(*reading), **how, FAR=part
        )
    for how, part in launches:
        writes_back[sizes.programs](
            *inputs, after, far, *writing, *parts, *strides, *_strides(*writing), **how, FAR=part
        )
    return grad_c, grad_b, grad_step, drates.sum((0, 2)), grad_v, grad_initial


@_scan_back.register_fake
def _(
    grad_y: Tensor,
    grad_state: Tensor,
    c: Tensor,
    b: Tensor,
    step: Tensor,
    rates: Tensor,
    v: Tensor,
    states: Tensor,
    elapsed: Tensor,
    far: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    return _Sizes(c, v).gradients(c, b, step, rates, v, grad_state)


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    c, b, step, rates, v, _ = inputs
    ctx.save_for_backward(c, b, step, rates, v, *output[2:])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad_y: Tensor | None, grad_state: Tensor | None, *_: None) -> tuple[Tensor, ...]:
    v, states = ctx.saved_tensors[4:6]
    if grad_y is None:
        grad_y = torch.zeros_like(v)
    if grad_state is None:
        grad_state = torch.zeros_like(states[:, :, 0])
    gradients: tuple[Tensor, ...] = _scan_back(grad_y, grad_state, *ctx.saved_tensors)
    return gradients


_scan.register_autograd(_backward, setup_context=_keep)


class _Sizes:
    """Shapes of the launches and of what they fill."""

    def __init__(self, c: Tensor, v: Tensor) -> None:
        self.batch, self.time, self.heads, self.modes = c.shape
        self.width = v.shape[-1]
        self.how = LAUNCHES[v.dtype]
        self.segments = -(-self.time // self.how.segment)

    @property
    def programs(self) -> tuple[int]:
        """Of the launches over segments."""
        return (self.batch * self.heads * self.segments,)

    @property
    def rows(self) -> tuple[int]:
        """Programs of the carry."""
        return (self.batch * self.heads * self.modes,)

    @property
    def carry(self) -> dict[str, int]:
        """Sizes that the carry is given."""
        sizes = {"H": self.heads, "N": self.segments, "M": self.modes, "P": self.width}
        return sizes | {"BP": _padded(self.width), "MANY": MANY, "num_warps": 1}

    def launch(self, program: Program) -> dict[str, int | None]:
        """Sizes that the other kernels are given."""
        sizes = {"T": self.time, "H": self.heads, "N": self.segments, "M": self.modes, "P": self.width}
        sizes |= {"BP": _padded(self.width), "BM": _padded(self.modes), "SEGMENT": self.how.segment}
        how = {"num_warps": program.warps, "num_stages": program.stages, "maxnreg": program.registers}
        return {**sizes, "TILE": program.tile, **how}

    def outputs(self, v: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Memory for those of `_scan`."""
        rows = self.batch, self.heads
        new = torch.empty((), dtype=torch.float32, device=v.device).new_empty
        y = v.new_empty(self.batch, self.time, self.heads, self.width)
        states, elapsed = new(*rows, self.segments, self.modes, self.width), new(*rows, self.segments)
        return (
            y,
            new(*rows, self.modes, self.width),
            states,
            elapsed,
            torch.empty_like(elapsed, dtype=torch.int32),
        )

    def gradients(
        self, c: Tensor, b: Tensor, step: Tensor, rates: Tensor, v: Tensor, state: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Memory for those of `_scan_back`."""
        each = (x.new_empty(x.shape) for x in (c, b, step, rates, v, state))
        grad_c, grad_b, grad_step, grad_rates, grad_v, grad_state = each
        return grad_c, grad_b, grad_step, grad_rates, grad_v, grad_state

    def parts(self, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Memory, segment by segment, for the gradient of the rates, for what passes from tile to tile, and
        for what passes to the next segment."""
        shape = self.batch, self.heads, self.segments
        tiles = self.how.segment // self.how.back.tile
        each, passed = (*shape, self.modes), (*shape, tiles, self.modes)
        return states.new_empty(each), states.new_empty(passed), states.new_empty(each)


def _padded(size: int) -> int:
    """What a matrix product takes: a power of two, from 16."""
    return max(16, 1 << (size - 1).bit_length())


def _dense(x: Tensor) -> Tensor:
    """`x` with a contiguous last axis, and strides that a tile can step over in int32."""
    return x if x.stride(-1) == 1 and x.stride(1) < 2**24 else x.contiguous()


def _strides(*tensors: Tensor) -> list[int]:
    """Of batch, time and heads, a tensor after the other."""
    return [stride for x in tensors for stride in x.stride()[:3]]
