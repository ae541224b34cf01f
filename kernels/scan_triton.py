"""The scan of `scan_reference.py` on a GPU, in float32: three launches each way, exact for any steps.

One idea: time is cut into segments that many programs work on at once, and a segment into tiles of 16
tokens. The first launch tells what each segment writes into the state, the second carries the state from
segment to segment, the third reads; the gradient does the same from the end. Inside a tile every pair of
tokens has its own exponential, of the time between the two, which is a sum of steps with nothing subtracted.
README.md has the mathematics.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

TILE = 16  # tokens; a matrix product needs 16 of everything
SEGMENT = 256  # tokens


def scan_triton(
    c: Tensor, b: Tensor, step: Tensor, rates: Tensor, v: Tensor, initial_state: Tensor
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, H, P] and final state [B, H, M, P]; arguments as in `frac_scan`.

    c, b and v may have any strides as long as the last axis is contiguous; otherwise they are copied.
    """
    c, b, v = (_dense(x) for x in (c, b, v))
    y, state = _TritonScan.apply(c, b, step, rates.contiguous(), v, initial_state.contiguous())
    return y, state


class _TritonScan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, c: Tensor, b: Tensor, step: Tensor, rates: Tensor, v: Tensor, initial_state: Tensor
    ) -> tuple[Tensor, Tensor]:
        sizes = _Sizes(c, v)
        states, elapsed = sizes.empty(v, "segments", "M", "P"), sizes.empty(v, "segments")
        y, final_state = v.new_empty(v.shape), torch.empty_like(initial_state)
        _write_segments[sizes.programs](
            b, step, rates, v, states, elapsed, *_strides(b, step, v), **sizes.tiles
        )
        _carry_segments[sizes.rows](rates, elapsed, initial_state, states, final_state, **sizes.modes)
        strides = _strides(c, b, step, v, y)
        _read_segments[sizes.programs](c, b, step, rates, v, states, y, *strides, **sizes.tiles)
        ctx.save_for_backward(c, b, step, rates, v, states, elapsed)
        return y, final_state

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor, grad_state: Tensor) -> tuple[Tensor, ...]:
        c, b, step, rates, v, states, elapsed = ctx.saved_tensors
        grad_y, grad_state = _dense(grad_y), grad_state.contiguous()
        sizes = _Sizes(c, v)
        after, grad_initial = torch.empty_like(states), torch.empty_like(grad_state)
        grad_c, grad_b, grad_step, grad_v = (x.new_empty(x.shape) for x in (c, b, step, v))
        grad_rates, asked = sizes.empty(v, "segments", "M"), sizes.empty(v, "segments", "tiles", "M")
        strides = _strides(c, step, grad_y)
        _write_back[sizes.programs](c, step, rates, grad_y, after, *strides, **sizes.tiles)
        _carry_back[sizes.rows](rates, elapsed, grad_state, after, grad_initial, **sizes.modes)
        inputs = c, b, step, rates, v, grad_y, states, after, elapsed
        outputs = grad_c, grad_b, grad_step, grad_v
        strides = _strides(c, b, step, v, grad_y, *outputs)
        _read_back[sizes.programs](*inputs, *outputs, grad_rates, asked, *strides, **sizes.tiles)
        return grad_c, grad_b, grad_step, grad_rates.sum((0, 2)), grad_v, grad_initial


class _Sizes:
    """Shapes of a launch."""

    def __init__(self, c: Tensor, v: Tensor) -> None:
        batch, time, heads, modes = c.shape
        width, segments = v.shape[-1], triton.cdiv(time, SEGMENT)
        self.shape = {"segments": (batch, heads, segments), "M": (modes,), "P": (width,)}
        self.shape |= {"tiles": (SEGMENT // TILE,)}
        self.programs, self.rows = (batch * heads * segments,), (batch * heads * modes,)
        sizes = {"T": time, "H": heads, "N": segments, "M": modes, "P": width}
        padded = max(16, triton.next_power_of_2(width))
        self.modes = {**sizes, "BP": padded}
        self.tiles = {**self.modes, "BM": max(16, triton.next_power_of_2(modes)), "TILE": TILE}
        self.tiles |= {"SEGMENT": SEGMENT}

    def empty(self, like: Tensor, *axes: str) -> Tensor:
        return like.new_empty([size for axis in axes for size in self.shape[axis]])


def _dense(x: Tensor) -> Tensor:
    """`x` with a contiguous last axis."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _strides(*tensors: Tensor) -> list[int]:
    """Of batch, time and heads, a tensor after the other."""
    return [stride for x in tensors for stride in x.stride()[:3]]


@triton.jit
def _write_segments(
    b, step, rates, v, states, elapsed,
    sbB, sbT, sbH, sdB, sdT, sdH, svB, svT, svH,
    T, H, N, M, P,
    BP: tl.constexpr, BM: tl.constexpr, TILE: tl.constexpr, SEGMENT: tl.constexpr,
):  # fmt: skip
    # What a segment writes into an empty state, and how long it lasts.
    i_n, i_h, i_b = _place(N, H)
    o_m, o_p = tl.arange(0, BM), tl.arange(0, BP)
    p_rate = rates + i_h * M + o_m
    b_rate = tl.load(p_rate, mask=o_m < M, other=0.0)  # [BM]
    b_state = tl.zeros([BM, BP], tl.float32)
    total = 0.0
    for start in range(0, tl.minimum(SEGMENT, T - i_n * SEGMENT), TILE):
        o_t = i_n * SEGMENT + start + tl.arange(0, TILE)
        m_t = o_t < T
        b_step = tl.load(step + i_b * sdB + o_t * sdT + i_h * sdH, mask=m_t, other=0.0)  # [TILE]
        b_b = _tile(b + i_b * sbB + i_h * sbH, o_t, sbT, o_m, T, M)  # [TILE, BM]
        b_v = _tile(v + i_b * svB + i_h * svH, o_t, svT, o_p, T, P)  # [TILE, BP]
        whole = tl.sum(b_step, 0)
        b_state = _moved(b_state, b_rate, b_b, b_v, b_step, whole, TILE)
        total += whole
    at = (i_b * H + i_h) * N + i_n
    tl.store(elapsed + at, total)
    _put(states + at * M * P, b_state, o_m, P, o_p, M, P)


@triton.jit
def _carry_segments(
    rates, elapsed, initial_state, states, final_state,
    T, H, N, M, P,
    BP: tl.constexpr,
):  # fmt: skip
    # One mode of one head, over the segments: what they wrote becomes the state before them.
    i = tl.program_id(0).to(tl.int64)
    i_m, i_bh = i % M, i // M
    o_p = tl.arange(0, BP)
    m_p = o_p < P
    rate = tl.load(rates + (i_bh % H) * M + i_m)
    b_state = tl.load(initial_state + i * P + o_p, mask=m_p, other=0.0)
    for i_n in range(0, N):
        p_state = states + ((i_bh * N + i_n) * M + i_m) * P + o_p
        b_written = tl.load(p_state, mask=m_p, other=0.0)
        tl.store(p_state, b_state, mask=m_p)
        b_state = _move(b_state, -tl.load(elapsed + i_bh * N + i_n) * rate, b_written)
    tl.store(final_state + i * P + o_p, b_state, mask=m_p)


@triton.jit
def _read_segments(
    c, b, step, rates, v, states, y,
    scB, scT, scH, sbB, sbT, sbH, sdB, sdT, sdH, svB, svT, svH, syB, syT, syH,
    T, H, N, M, P,
    BP: tl.constexpr, BM: tl.constexpr, TILE: tl.constexpr, SEGMENT: tl.constexpr,
):  # fmt: skip
    i_n, i_h, i_b = _place(N, H)
    o_m, o_p, o_i = tl.arange(0, BM), tl.arange(0, BP), tl.arange(0, TILE)
    b_rate = tl.load(rates + i_h * M + o_m, mask=o_m < M, other=0.0)
    b_state = _tile(states + ((i_b * H + i_h) * N + i_n) * M * P, o_m, P, o_p, M, P)  # [BM, BP]
    later = o_i[:, None] > o_i[None, :]
    for start in range(0, tl.minimum(SEGMENT, T - i_n * SEGMENT), TILE):
        o_t = i_n * SEGMENT + start + o_i
        b_step = tl.load(step + i_b * sdB + o_t * sdT + i_h * sdH, mask=o_t < T, other=0.0)  # [TILE]
        b_c = _tile(c + i_b * scB + i_h * scH, o_t, scT, o_m, T, M)  # [TILE, BM]
        b_b = _tile(b + i_b * sbB + i_h * sbH, o_t, sbT, o_m, T, M)
        b_v = _tile(v + i_b * svB + i_h * svH, o_t, svT, o_p, T, P)  # [TILE, BP]
        decay = _decay(b_step, b_rate, TILE)
        b_seen = tl.sum(decay * b_c[:, None, :] * b_b[None, :, :], 2)
        b_seen = tl.where(later | (o_i[:, None] == o_i[None, :]), b_seen, 0.0)
        b_read = b_c * tl.exp(-tl.cumsum(b_step, 0)[:, None] * b_rate[None, :])
        b_y = tl.dot(b_seen, b_v, input_precision="ieee") + tl.dot(b_read, b_state, input_precision="ieee")
        _put(y + i_b * syB + i_h * syH, b_y, o_t, syT, o_p, T, P)
        b_state = _moved(b_state, b_rate, b_b, b_v, b_step, tl.sum(b_step, 0), TILE)


@triton.jit
def _write_back(
    c, step, rates, dy, after,
    scB, scT, scH, sdB, sdT, sdH, syB, syT, syH,
    T, H, N, M, P,
    BP: tl.constexpr, BM: tl.constexpr, TILE: tl.constexpr, SEGMENT: tl.constexpr,
):  # fmt: skip
    # What the outputs of a segment ask of the state before it.
    i_n, i_h, i_b = _place(N, H)
    o_m, o_p = tl.arange(0, BM), tl.arange(0, BP)
    b_rate = tl.load(rates + i_h * M + o_m, mask=o_m < M, other=0.0)
    b_grad = tl.zeros([BM, BP], tl.float32)
    last = _last_tile(T - i_n * SEGMENT, TILE, SEGMENT)
    for back in range(0, last + 1, TILE):
        o_t = i_n * SEGMENT + last - back + tl.arange(0, TILE)
        b_step = tl.load(step + i_b * sdB + o_t * sdT + i_h * sdH, mask=o_t < T, other=0.0)
        b_c = _tile(c + i_b * scB + i_h * scH, o_t, scT, o_m, T, M)
        b_dy = _tile(dy + i_b * syB + i_h * syH, o_t, syT, o_p, T, P)
        b_grad = _moved_back(b_grad, b_rate, b_c, b_dy, b_step)
    _put(after + ((i_b * H + i_h) * N + i_n) * M * P, b_grad, o_m, P, o_p, M, P)


@triton.jit
def _carry_back(
    rates, elapsed, grad_state, after, grad_initial,
    T, H, N, M, P,
    BP: tl.constexpr,
):  # fmt: skip
    # What segments ask of the state before them becomes the gradient of the state after them.
    i = tl.program_id(0).to(tl.int64)
    i_m, i_bh = i % M, i // M
    o_p = tl.arange(0, BP)
    m_p = o_p < P
    rate = tl.load(rates + (i_bh % H) * M + i_m)
    b_grad = tl.load(grad_state + i * P + o_p, mask=m_p, other=0.0)
    for back in range(0, N):
        i_n = N - 1 - back
        p_after = after + ((i_bh * N + i_n) * M + i_m) * P + o_p
        b_asked = tl.load(p_after, mask=m_p, other=0.0)
        tl.store(p_after, b_grad, mask=m_p)
        b_grad = _move(b_grad, -tl.load(elapsed + i_bh * N + i_n) * rate, b_asked)
    tl.store(grad_initial + i * P + o_p, b_grad, mask=m_p)


@triton.jit
def _read_back(
    c, b, step, rates, v, dy, states, after, elapsed, dc, db, dstep, dv, drates, asked,
    scB, scT, scH, sbB, sbT, sbH, sdB, sdT, sdH, svB, svT, svH, syB, syT, syH,
    tcB, tcT, tcH, tbB, tbT, tbH, tdB, tdT, tdH, tvB, tvT, tvH,
    T, H, N, M, P,
    BP: tl.constexpr, BM: tl.constexpr, TILE: tl.constexpr, SEGMENT: tl.constexpr,
):  # fmt: skip
    i_n, i_h, i_b = _place(N, H)
    o_m, o_p, o_i = tl.arange(0, BM), tl.arange(0, BP), tl.arange(0, TILE)
    b_rate = tl.load(rates + i_h * M + o_m, mask=o_m < M, other=0.0)
    at = (i_b * H + i_h) * N + i_n
    later, now = o_i[:, None] > o_i[None, :], o_i[:, None] == o_i[None, :]
    p_dstep = dstep + i_b * tdB + i_h * tdH
    p_asked = asked + at * (SEGMENT // TILE) * M
    # Onwards with the state: gradients of c, and what time does to reading, kept in the place of dstep.
    b_state = _tile(states + at * M * P, o_m, P, o_p, M, P)
    b_drate = tl.zeros([BM], tl.float32)
    for start in range(0, tl.minimum(SEGMENT, T - i_n * SEGMENT), TILE):
        o_t = i_n * SEGMENT + start + o_i
        b_step = tl.load(step + i_b * sdB + o_t * sdT + i_h * sdH, mask=o_t < T, other=0.0)
        b_c = _tile(c + i_b * scB + i_h * scH, o_t, scT, o_m, T, M)
        b_b = _tile(b + i_b * sbB + i_h * sbH, o_t, sbT, o_m, T, M)
        b_v = _tile(v + i_b * svB + i_h * svH, o_t, svT, o_p, T, P)
        b_dy = _tile(dy + i_b * syB + i_h * syH, o_t, syT, o_p, T, P)
        b_dseen = tl.dot(b_dy, tl.trans(b_v), input_precision="ieee")  # [TILE, TILE]
        between = _between(b_step, TILE)
        decay = tl.exp(-between[:, :, None] * b_rate[None, None, :])
        near = tl.where(later, b_dseen, 0.0)[:, :, None] * decay * b_b[None, :, :]  # [TILE, TILE, BM]
        b_clock = tl.cumsum(b_step, 0)
        b_since = tl.exp(-b_clock[:, None] * b_rate[None, :])
        b_far = b_since * tl.dot(b_dy, tl.trans(b_state), input_precision="ieee")  # [TILE, BM]
        b_drate -= tl.sum(b_c * tl.sum(near * between[:, :, None], 1), 0)
        b_drate -= tl.sum(b_clock[:, None] * b_c * b_far, 0)
        tl.store(p_asked + start // TILE * M + o_m, tl.sum(b_c * b_far, 0), mask=o_m < M)
        b_dc = tl.sum(near, 1) + b_far
        # A token's own write knows no time.
        tl.store(p_dstep + o_t * tdT, tl.sum(b_c * b_dc * b_rate[None, :], 1), mask=o_t < T)
        own = tl.sum(tl.where(now, b_dseen, 0.0), 1)
        _put(dc + i_b * tcB + i_h * tcH, b_dc + own[:, None] * b_b, o_t, tcT, o_m, T, M)
        b_state = _moved(b_state, b_rate, b_b, b_v, b_step, tl.sum(b_step, 0), TILE)
    # Back with the gradient of the state: those of b and v, and of the steps by sums from the end.
    b_grad = _tile(after + at * M * P, o_m, P, o_p, M, P)
    through = tl.sum(b_grad * b_state, 1)  # [BM], of the log decay that the whole state goes through
    rest = -tl.sum(through * b_rate, 0)
    last = _last_tile(T - i_n * SEGMENT, TILE, SEGMENT)
    for back in range(0, last + 1, TILE):
        o_t = i_n * SEGMENT + last - back + o_i
        b_step = tl.load(step + i_b * sdB + o_t * sdT + i_h * sdH, mask=o_t < T, other=0.0)
        b_c = _tile(c + i_b * scB + i_h * scH, o_t, scT, o_m, T, M)
        b_b = _tile(b + i_b * sbB + i_h * sbH, o_t, sbT, o_m, T, M)
        b_v = _tile(v + i_b * svB + i_h * svH, o_t, svT, o_p, T, P)
        b_dy = _tile(dy + i_b * syB + i_h * syH, o_t, syT, o_p, T, P)
        b_dseen = tl.dot(b_dy, tl.trans(b_v), input_precision="ieee")
        decay = _decay(b_step, b_rate, TILE)
        near = tl.where(later, b_dseen, 0.0)[:, :, None] * decay * b_c[:, None, :]
        b_left = _to_end(b_step, TILE)
        b_to_end = tl.exp(-b_left[:, None] * b_rate[None, :])
        b_far = b_to_end * tl.dot(b_v, tl.trans(b_grad), input_precision="ieee")
        b_drate -= tl.sum(b_left[:, None] * b_b * b_far, 0)
        whole = tl.sum(b_step, 0)
        # What passes the tile is a difference: of a mode that forgets within it only rounding is left.
        through = tl.where(whole * b_rate > 30, 0.0, through - tl.sum(b_b * b_far, 0))
        b_drate -= whole * through
        i_tile = (last - back) // TILE
        through += tl.load(p_asked + i_tile * M + o_m, mask=o_m < M, other=0.0)
        b_db = tl.sum(near, 0) + b_far
        by_time = tl.sum(b_b * b_db * b_rate[None, :], 1)  # [TILE]
        change = by_time - tl.load(p_dstep + o_t * tdT, mask=o_t < T, other=0.0)
        from_here = tl.sum(tl.where(later | now, change[:, None], 0.0), 0)
        tl.store(p_dstep + o_t * tdT, rest + from_here, mask=o_t < T)
        rest += tl.sum(change, 0)
        own = tl.sum(tl.where(now, b_dseen, 0.0), 1)
        _put(db + i_b * tbB + i_h * tbH, b_db + own[:, None] * b_c, o_t, tbT, o_m, T, M)
        b_seen = tl.sum(decay * b_c[:, None, :] * b_b[None, :, :], 2)
        b_seen = tl.where(later | now, b_seen, 0.0)
        b_dv = tl.dot(tl.trans(b_seen), b_dy, input_precision="ieee")
        b_dv += tl.dot(b_b * b_to_end, b_grad, input_precision="ieee")
        _put(dv + i_b * tvB + i_h * tvH, b_dv, o_t, tvT, o_p, T, P)
        b_grad = _moved_back(b_grad, b_rate, b_c, b_dy, b_step)
    tl.store(drates + at * M + o_m, b_drate, mask=o_m < M)


@triton.jit
def _place(N, H):
    # Segment, head and batch of this program; one long axis, as only the first may pass 65,535.
    i = tl.program_id(0).to(tl.int64)
    return i % N, (i // N) % H, i // (N * H)


@triton.jit
def _last_tile(rest, TILE: tl.constexpr, SEGMENT: tl.constexpr):
    # First token of the last tile of a segment, of which `rest` tokens or more are left.
    return (tl.minimum(SEGMENT, rest) - 1) // TILE * TILE


@triton.jit
def _tile(base, o_t, stride, o_x, T, X):
    # Rows o_t, columns o_x of a matrix [T, X], zeros outside.
    inside = (o_t[:, None] < T) & (o_x[None, :] < X)
    return tl.load(base + o_t[:, None] * stride + o_x[None, :], mask=inside, other=0.0)


@triton.jit
def _put(base, b_x, o_t, stride, o_x, T, X):
    inside = (o_t[:, None] < T) & (o_x[None, :] < X)
    tl.store(base + o_t[:, None] * stride + o_x[None, :], b_x, mask=inside)


@triton.jit
def _between(b_step, TILE: tl.constexpr):
    # [TILE, TILE], time from each token (second axis) to each later one, 0 to the others.
    o_i = tl.arange(0, TILE)
    # Summed from token to token: a difference of clocks would lose short steps after a huge one.
    return tl.cumsum(tl.where(o_i[:, None] > o_i[None, :], b_step[:, None], 0.0), 0)


@triton.jit
def _decay(b_step, b_rate, TILE: tl.constexpr):
    # [TILE, TILE, BM] from each token to each later one, 1 to the others.
    return tl.exp(-_between(b_step, TILE)[:, :, None] * b_rate[None, None, :])


@triton.jit
def _to_end(b_step, TILE: tl.constexpr):
    # [TILE], time from each token to the last.
    o_i = tl.arange(0, TILE)
    return tl.sum(tl.where(o_i[:, None] > o_i[None, :], b_step[:, None], 0.0), 0)


@triton.jit
def _moved(b_state, b_rate, b_b, b_v, b_step, whole, TILE: tl.constexpr):
    # The state [BM, BP] after a tile.
    b_write = b_b * tl.exp(-_to_end(b_step, TILE)[:, None] * b_rate[None, :])
    b_written = tl.dot(tl.trans(b_write), b_v, input_precision="ieee")
    return _move(b_state, -whole * b_rate[:, None], b_written)


@triton.jit
def _moved_back(b_grad, b_rate, b_c, b_dy, b_step):
    # The gradient of the state [BM, BP] before a tile.
    b_read = b_c * tl.exp(-tl.cumsum(b_step, 0)[:, None] * b_rate[None, :])
    b_asked = tl.dot(tl.trans(b_read), b_dy, input_precision="ieee")
    return _move(b_grad, -tl.sum(b_step, 0) * b_rate[:, None], b_asked)


@triton.jit
def _move(b_state, log_decay, b_written):
    # As `step.move`: near 1 a decay is kept as its distance to 1.
    whole = log_decay > -0.6931471805599453
    rest = tl.where(whole, _expm1(log_decay), tl.exp(log_decay))
    return tl.where(whole, b_state, 0.0) + (b_written + rest * b_state)


@triton.jit
def _expm1(x):
    # exp(x) - 1 for x in [-0.7, 0]: the Taylor sum near 0, where the difference would lose its digits.
    x = tl.maximum(x, -1.0)
    near = x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6 * (1 + x / 7))))))
    return tl.where(x > -0.3, near, tl.exp(x) - 1)
