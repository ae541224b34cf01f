"""The forward kernels of the scan: what segments write, the state carried over them, what tokens read."""

import triton
import triton.language as tl

from fracts.kernels.scan_triton_tile import (
    CENTRE,
    LOG2E,
    between,
    column,
    entry,
    fade,
    far_tokens,
    length,
    move,
    place,
    product,
    put,
    since_start,
    steps,
    tile,
    to_end,
    to_start,
)  # fmt: skip


@triton.jit
def write_segments(
    b, step, rates, v, states, elapsed,
    sbB, sbT, sbH, sdB, sdT, sdH, svB, svT, svH,
    T, H, N, M: tl.constexpr, P: tl.constexpr,
    BP: tl.constexpr, BM: tl.constexpr, TILE: tl.constexpr, SEGMENT: tl.constexpr,
):  # fmt: skip
    # What a segment writes into an empty state, and how long it lasts.
    i_n, i_h, i_b = place(N, H)
    kind: tl.constexpr = v.dtype.element_ty
    o_m = tl.arange(0, BM)
    b_rate = tl.load(rates + i_h * M + o_m, mask=o_m < M, other=0.0)  # [BM]
    b_state = tl.zeros([BM, BP], tl.float32)
    after = 0.0
    tokens = length(i_n, T, SEGMENT)
    last = (tokens - 1) // TILE
    i_t = i_n * SEGMENT + last * TILE
    b += i_b * sbB + i_h * sbH + i_t * sbT
    step += i_b * sdB + i_h * sdH + i_t * sdT
    v += i_b * svB + i_h * svH + i_t * svT
    for back in range(0, last + 1):
        rest = tokens - (last - back) * TILE
        b_write = tile(b, rest, sbT, M, TILE, BM) * fade(after + to_end(step, rest, sdT, TILE), b_rate)
        b_state += product(tl.trans(b_write), tile(v, rest, svT, P, TILE, BP), kind)
        after += tl.sum(steps(step, rest, sdT, TILE), 0)
        b -= TILE * sbT
        step -= TILE * sdT
        v -= TILE * svT
    at = (i_b * H + i_h) * N + i_n
    tl.store(elapsed + at, after)
    put(states + at * M * P, b_state, o_m < M, P, P, BM, BP)


@triton.jit
def carry(
    rates, elapsed, first_state, states, last_state,
    H, N, M: tl.constexpr, P: tl.constexpr,
    BP: tl.constexpr, MANY: tl.constexpr, BACK: tl.constexpr,
):  # fmt: skip
    # One mode of one head, MANY segments at once: what each wrote becomes the state before it. BACK runs from
    # the last segment to the first: what each asks of the state before it becomes the gradient after it.
    i = tl.program_id(0).to(tl.int64)
    i_m, i_bh = i % M, i // M
    o_p, o_i = tl.arange(0, BP), tl.arange(0, MANY)
    rate = tl.load(rates + (i_bh % H) * M + i_m)
    b_state = tl.load(first_state + i * P + o_p, mask=o_p < P, other=0.0)  # [BP]
    elapsed += i_bh * N
    states += i_bh * N * M * P + i_m * P
    for start in range(0, N, MANY):
        o_n = start + o_i
        inside = o_n < N
        at, before, after = o_n, o_n - 1, o_n + 1
        if BACK:
            at, before, after = N - 1 - o_n, N - o_n, N - 2 - o_n
        p_state = states + at[:, None].to(tl.int64) * M * P + o_p[None, :]
        m_state = inside[:, None] & (o_p < P)[None, :]
        b_written = tl.load(p_state, mask=m_state, other=0.0)  # [MANY, BP]
        whole = tl.sum(tl.load(elapsed + at, mask=inside, other=0.0), 0)
        b_before = tl.load(elapsed + before, mask=inside & (o_i > 0), other=0.0)  # [MANY]
        b_after = tl.load(elapsed + after, mask=(o_n + 1 < N) & (o_i < MANY - 1), other=0.0)
        # From the end of each (second axis) to the start of each later one.
        b_apart = tl.cumsum(tl.where(o_i[:, None] > o_i[None, :] + 1, b_before[:, None], 0.0), 0)
        decay = tl.where(o_i[:, None] > o_i[None, :], tl.exp2(-b_apart * (rate * LOG2E)), 0.0)
        b_here = tl.zeros([MANY, BP], tl.float32) + b_state[None, :]
        b_here = move(b_here, -tl.cumsum(b_before, 0)[:, None] * rate, product(decay, b_written, tl.float32))
        tl.store(p_state, b_here, mask=m_state)
        b_left = tl.exp2(-tl.cumsum(b_after, 0, reverse=True) * (rate * LOG2E))
        b_state = move(b_state, -whole * rate, tl.sum(b_left[:, None] * b_written, 0))
    tl.store(last_state + i * P + o_p, b_state, mask=o_p < P)


@triton.jit
def read_segments(
    c, b, step, rates, v, states, y, far,
    scB, scT, scH, sbB, sbT, sbH, sdB, sdT, sdH, svB, svT, svH, syB, syT, syH,
    T, H, N, M: tl.constexpr, P: tl.constexpr,
    BP: tl.constexpr, BM: tl.constexpr, TILE: tl.constexpr, SEGMENT: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    # Without FAR all outputs, right where a token is not far, and `far`, whether a segment has tokens that
    # are. With FAR the outputs of those.
    i_n, i_h, i_b = place(N, H)
    at = (i_b * H + i_h) * N + i_n
    if FAR:  # noqa: SIM102
        if tl.load(far + at) == 0:
            return
    kind: tl.constexpr = v.dtype.element_ty
    o_m, o_i, i_t = tl.arange(0, BM), tl.arange(0, TILE), i_n * SEGMENT
    b_rate = tl.load(rates + i_h * M + o_m, mask=o_m < M, other=0.0)
    b_state = tile(states + at * M * P, M, P, P, BM, BP)  # [BM, BP]
    b_any = tl.zeros([TILE], tl.int32)
    c += i_b * scB + i_h * scH + i_t * scT
    b += i_b * sbB + i_h * sbH + i_t * sbT
    step += i_b * sdB + i_h * sdH + i_t * sdT
    v += i_b * svB + i_h * svH + i_t * svT
    y += i_b * syB + i_h * syH + i_t * syT
    tokens = length(i_n, T, SEGMENT)
    for start in range(0, tokens, TILE):
        rest = tokens - start
        b_step = steps(step, rest, sdT, TILE)  # [TILE]
        b_c, b_b = tile(c, rest, scT, M, TILE, BM), tile(b, rest, sbT, M, TILE, BM)  # [TILE, BM]
        b_v = tile(v, rest, svT, P, TILE, BP)  # [TILE, BP]
        b_clock = tl.cumsum(b_step, 0)
        b_decay = since_start(b_clock, b_rate, kind == tl.float32)
        b_far = far_tokens(b_clock, b_step, b_rate, kind == tl.float32)
        if FAR:
            asked = b_far & (o_i < rest)
            b_seen = tl.zeros([TILE, TILE], tl.float32)
            if tl.max(asked.to(tl.int32), 0) > 0:
                b_seen = _seen_far(b_c, b_b, b_step, b_rate, M, TILE, BM)
        else:
            asked = o_i < rest
            b_any = b_any | b_far.to(tl.int32)
            b_write = b_b * to_start(b_clock, b_rate, b_decay, kind == tl.float32)
            b_seen = product(b_c * b_decay, tl.trans(b_write), kind)
        b_seen = tl.where(o_i[:, None] >= o_i[None, :], b_seen, 0.0)
        b_y = product(b_seen, b_v, kind) + product(b_c * b_decay * (1.0 / CENTRE), b_state, kind)
        put(y, b_y, asked, syT, P, TILE, BP)
        b_last = b_b * fade(to_end(step, rest, sdT, TILE), b_rate)
        whole = tl.sum(b_step, 0)
        b_state = move(b_state, -whole * b_rate[:, None], product(tl.trans(b_last), b_v, kind))
        c += TILE * scT
        b += TILE * sbT
        step += TILE * sdT
        v += TILE * svT
        y += TILE * syT
    if not FAR:
        tl.store(far + at, tl.max(b_any, 0))


@triton.jit
def _seen_far(b_c, b_b, b_step, b_rate, M: tl.constexpr, TILE: tl.constexpr, BM: tl.constexpr):
    # [TILE, TILE], what each token sees of those before it and of itself: an exponential for every pair.
    elapsed = between(b_step, TILE)
    b_seen = tl.zeros([TILE, TILE], tl.float32)
    for m in range(0, M):
        decay = tl.exp2(-elapsed * (entry(b_rate, m, BM) * LOG2E))
        b_seen += column(b_c, m, BM)[:, None] * column(b_b, m, BM)[None, :] * decay
    return b_seen
