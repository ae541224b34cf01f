"""What the kernels of the scan share: where a program stands, loads and stores, times within a tile, a move.

Times within a tile are sums of steps, never differences of clocks: a difference would lose the short steps
that follow a huge one. Exponents are in base 2, where the exponential is cheapest.
"""

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)
# About the middle of what exp(0) .. exp(110) spans. A power of 2 rounds nothing.
LOG2_CENTRE = tl.constexpr(80.0)
CENTRE = tl.constexpr(2.0**80)
ROOT = tl.constexpr(2.0**40)


@triton.jit
def place(N, H):
    # Segment, head and batch of this program; one long axis, as only the first may pass 65,535.
    i = tl.program_id(0).to(tl.int64)
    return i % N, (i // N) % H, i // (N * H)


@triton.jit
def length(i_n, T, SEGMENT: tl.constexpr):
    # Tokens of segment i_n.
    return tl.minimum(SEGMENT, T - i_n * SEGMENT).to(tl.int32)


@triton.jit
def tile(base, rest, stride, X: tl.constexpr, TILE: tl.constexpr, BX: tl.constexpr):
    # TILE rows, of which there are `rest`, of a matrix [., X] in float32, zeros outside.
    o_t, o_x = tl.arange(0, TILE)[:, None], tl.arange(0, BX)[None, :]
    # The interpreter knows bfloat16 only as bits: nothing but the load may see it.
    return tl.load(base + o_t * stride + o_x, mask=(o_t < rest) & (o_x < X), other=0.0).to(tl.float32)


@triton.jit
def put(base, b_x, m_t, stride, X: tl.constexpr, TILE: tl.constexpr, BX: tl.constexpr):
    # The rows m_t [TILE] of b_x.
    o_t, o_x = tl.arange(0, TILE)[:, None], tl.arange(0, BX)[None, :]
    tl.store(base + o_t * stride + o_x, b_x.to(base.dtype.element_ty), mask=m_t[:, None] & (o_x < X))


@triton.jit
def steps(base, rest, stride, TILE: tl.constexpr):
    # [TILE], time before each token; none before those that are not.
    o_i = tl.arange(0, TILE)
    return tl.load(base + o_i * stride, mask=o_i < rest, other=0.0)


@triton.jit
def to_end(base, rest, stride, TILE: tl.constexpr):
    # [TILE], time from each token to the last of the tile: the steps before the tokens that follow it.
    o_i = tl.arange(0, TILE)
    b_next = tl.load(base + (o_i + 1) * stride, mask=o_i + 1 < tl.minimum(rest, TILE), other=0.0)
    return tl.cumsum(b_next, 0, reverse=True)


@triton.jit
def between(b_step, TILE: tl.constexpr):
    # [TILE, TILE], time from each token (second axis) to each later one, 0 to the others.
    o_i = tl.arange(0, TILE)
    return tl.cumsum(tl.where(o_i[:, None] > o_i[None, :], b_step[:, None], 0.0), 0)


@triton.jit
def fade(b_time, b_rate):
    # [TILE, BM], decay over a time.
    return tl.exp2(-b_time[:, None] * (b_rate * LOG2E)[None, :])


@triton.jit
def since_start(b_clock, b_rate, EXACT: tl.constexpr):
    # [TILE, BM], CENTRE times the decay from the start of the tile. The sum of their exponents loses digits:
    # EXACT is a square instead, as the decay alone would underflow.
    if EXACT:
        half = tl.exp2(b_clock[:, None] * (b_rate * (-0.5 * LOG2E))[None, :]) * ROOT
        return half * half
    x = b_clock[:, None] * (b_rate * LOG2E)[None, :]
    return tl.exp2(-(x - LOG2_CENTRE))


@triton.jit
def to_start(b_clock, b_rate, b_decay, EXACT: tl.constexpr):
    # [TILE, BM], takes a write to the start of the tile; finite for far tokens too, whose decay ends at 0.
    if EXACT:
        return 1.0 / tl.maximum(b_decay, 1.0 / CENTRE)
    x = b_clock[:, None] * (b_rate * LOG2E)[None, :]
    return tl.exp2(tl.minimum(x - LOG2_CENTRE, LOG2_CENTRE))


@triton.jit
def far_tokens(b_clock, b_step, b_rate, EXACT: tl.constexpr):
    # [TILE], which are beyond the reach of the factors, told by what comes before them: as `far.far_tokens`.
    x = b_clock * tl.max(b_rate, 0)
    far = x > 110
    if EXACT:
        far = far | ((x > 16) & (b_clock > 43 * b_step))
    return far


@triton.jit
def product(a, b, KIND: tl.constexpr):
    # A matrix product of float32 operands rounded to KIND, summed in float32.
    return tl.dot(a.to(KIND), b.to(KIND), input_precision="ieee")


@triton.jit
def rounded(x, KIND: tl.constexpr):
    return x.to(KIND).to(tl.float32)


@triton.jit
def entry(b_x, m, BM: tl.constexpr):
    # Number m of [BM].
    return tl.sum(tl.where(tl.arange(0, BM) == m, b_x, 0.0), 0)


@triton.jit
def column(b_x, m, BM: tl.constexpr):
    # [TILE], column m of [TILE, BM].
    return tl.sum(tl.where((tl.arange(0, BM) == m)[None, :], b_x, 0.0), 1)


@triton.jit
def move(b_state, log_decay, b_written):
    # As `step.move`: near 1 a decay is kept as its distance to 1.
    whole = log_decay > -0.6931471805599453
    rest = tl.where(whole, expm1(log_decay), tl.exp2(log_decay * LOG2E))
    return tl.where(whole, b_state, 0.0) + (b_written + rest * b_state)


@triton.jit
def expm1(x):
    # exp(x) - 1 for x in [-0.7, 0]: the Taylor sum near 0, where the difference would lose its digits.
    x = tl.maximum(x, -1.0)
    near = x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6 * (1 + x / 7))))))
    return tl.where(x > -0.3, near, tl.exp2(x * LOG2E) - 1)


@triton.jit
def sigmoid(x):
    return 1.0 / (1.0 + tl.exp2(-x * LOG2E))
