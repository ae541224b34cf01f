"""The gradient's kernels: what segments ask of the state before them, then the gradients of what reads and of
what writes. In between, `scan_triton_forward.carry` runs from the end.

The gradient of a step is that of all log decays over it: what every pair of tokens before and after it, and
the state that passes it, have to do with each other. It is a sum from the end, over what each token writes
less what it reads, so both kernels must give a pair the same number to the last bit: hence they round what
reads and what writes before they multiply by it.
"""

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
    rounded,
    since_start,
    steps,
    tile,
    to_end,
    to_start,
)  # fmt: skip


@triton.jit
def ask_segments(
    c, step, rates, dy, asked,
    scB, scT, scH, sdB, sdT, sdH, syB, syT, syH,
    T, H, N, M: tl.constexpr, P: tl.constexpr,
    BP: tl.constexpr, BM: tl.constexpr, TILE: tl.constexpr, SEGMENT: tl.constexpr,
):  # fmt: skip
    # What the outputs of a segment ask of the state before it.
    i_n, i_h, i_b = place(N, H)
    kind: tl.constexpr = dy.dtype.element_ty
    o_m = tl.arange(0, BM)
    b_rate = tl.load(rates + i_h * M + o_m, mask=o_m < M, other=0.0)
    b_asked = tl.zeros([BM, BP], tl.float32)
    tokens = length(i_n, T, SEGMENT)
    last = (tokens - 1) // TILE
    i_t = i_n * SEGMENT + last * TILE
    c += i_b * scB + i_h * scH + i_t * scT
    step += i_b * sdB + i_h * sdH + i_t * sdT
    dy += i_b * syB + i_h * syH + i_t * syT
    for back in range(0, last + 1):
        rest = tokens - (last - back) * TILE
        b_step = steps(step, rest, sdT, TILE)
        b_read = tile(c, rest, scT, M, TILE, BM) * fade(tl.cumsum(b_step, 0), b_rate)
        b_new = product(tl.trans(b_read), tile(dy, rest, syT, P, TILE, BP), kind)
        b_asked = move(b_asked, -tl.sum(b_step, 0) * b_rate[:, None], b_new)
        c -= TILE * scT
        step -= TILE * sdT
        dy -= TILE * syT
    put(asked + ((i_b * H + i_h) * N + i_n) * M * P, b_asked, o_m < M, P, P, BM, BP)


@triton.jit
def reads_back(
    c, b, step, rates, v, dy, states, after, far, dc, dstep, drates, passed, through,
    scB, scT, scH, sbB, sbT, sbH, sdB, sdT, sdH, svB, svT, svH, syB, syT, syH, tcB, tcT, tcH, tdB, tdT, tdH,
    T, H, N, M: tl.constexpr, P: tl.constexpr,
    BP: tl.constexpr, BM: tl.constexpr, TILE: tl.constexpr, SEGMENT: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    # Onwards with the state: the gradient of c; what time does to reading, left in dstep; for each tile what
    # its outputs ask of the logarithm of the state before it, and at the end, in `through`, what all that
    # comes later does. FAR: of the segments with far tokens.
    i_n, i_h, i_b = place(N, H)
    at = (i_b * H + i_h) * N + i_n
    if (tl.load(far + at) > 0) != FAR:
        return
    kind: tl.constexpr = v.dtype.element_ty
    o_m, o_i, i_t = tl.arange(0, BM), tl.arange(0, TILE), i_n * SEGMENT
    b_rate = tl.load(rates + i_h * M + o_m, mask=o_m < M, other=0.0)
    b_state = tile(states + at * M * P, M, P, P, BM, BP)
    b_new = tl.zeros([BM, BP], tl.float32)
    b_drate, by_clock = tl.zeros([BM], tl.float32), tl.zeros([TILE, BM], tl.float32)
    passed += at * (SEGMENT // TILE) * M
    c += i_b * scB + i_h * scH + i_t * scT
    b += i_b * sbB + i_h * sbH + i_t * sbT
    step += i_b * sdB + i_h * sdH + i_t * sdT
    v += i_b * svB + i_h * svH + i_t * svT
    dy += i_b * syB + i_h * syH + i_t * syT
    dc += i_b * tcB + i_h * tcH + i_t * tcT
    dstep += i_b * tdB + i_h * tdH + i_t * tdT
    tokens = length(i_n, T, SEGMENT)
    for start in range(0, tokens, TILE):
        rest = tokens - start
        b_step = steps(step, rest, sdT, TILE)
        b_c, b_b = tile(c, rest, scT, M, TILE, BM), tile(b, rest, sbT, M, TILE, BM)
        b_v, b_dy = tile(v, rest, svT, P, TILE, BP), tile(dy, rest, syT, P, TILE, BP)
        b_clock = tl.cumsum(b_step, 0)
        b_decay = since_start(b_clock, b_rate, kind == tl.float32)
        b_read = rounded(b_c * b_decay, kind)
        b_dseen = product(b_dy, tl.trans(b_v), kind)  # [TILE, TILE]
        # A token's own write knows no time: it is left out of all that has to do with time.
        own = tl.sum(tl.where(o_i[:, None] == o_i[None, :], b_dseen, 0.0), 1)
        b_dseen = tl.where(o_i[:, None] > o_i[None, :], b_dseen, 0.0)
        b_old = product(b_dy, tl.trans(b_state), kind) * (1.0 / CENTRE)  # [TILE, BM]
        by_old = b_read * b_old  # of the log decay from the start of the tile
        tl.store(passed + o_m, tl.sum(by_old, 0), mask=o_m < M)
        exact = False
        if FAR:
            exact = tl.max(far_tokens(b_clock, b_step, b_rate, kind == tl.float32).to(tl.int32), 0) > 0
        if exact:
            b_near, by_time = _near_reads(b_dseen, b_c, b_b, b_step, b_rate, M, TILE, BM)
            b_dc = b_near + b_decay * b_old
            by_log = b_c * b_near + by_old
            b_drate -= by_time
            by_clock += b_clock[:, None] * by_old
        else:
            b_write = b_b * to_start(b_clock, b_rate, b_decay, kind == tl.float32)
            b_near = product(b_dseen, b_write, kind) + b_old
            b_dc = b_decay * b_near
            by_log = b_read * b_near
            by_clock += b_clock[:, None] * by_log
        tl.store(dstep + o_i * tdT, tl.sum(by_log * b_rate[None, :], 1), mask=o_i < rest)
        put(dc, b_dc + own[:, None] * b_b, o_i < rest, tcT, M, TILE, BM)
        b_last = b_b * fade(to_end(step, rest, sdT, TILE), b_rate)
        whole = tl.sum(b_step, 0)
        b_new = product(tl.trans(b_last), b_v, kind)
        b_state = move(b_state, -whole * b_rate[:, None], b_new)
        passed += M
        c += TILE * scT
        b += TILE * sbT
        step += TILE * sdT
        v += TILE * svT
        dy += TILE * syT
        dc += TILE * tcT
        dstep += TILE * tdT
    tl.store(drates + at * M + o_m, b_drate - tl.sum(by_clock, 0), mask=o_m < M)
    # `writes_back` takes away what its first tile wrote, times the gradient as a product rounds it.
    b_after = tile(after + at * M * P, M, P, P, BM, BP)
    b_lost = b_after - rounded(b_after, kind)
    tl.store(through + at * M + o_m, tl.sum(b_after * b_state - b_lost * b_new, 1), mask=o_m < M)


@triton.jit
def _near_reads(
    b_dseen, b_c, b_b, b_step, b_rate, M: tl.constexpr, TILE: tl.constexpr, BM: tl.constexpr
):  # fmt: skip
    # Gradient of c by the tokens of its tile [TILE, BM], and minus that of the rates [BM], pair by pair.
    o_m, elapsed = tl.arange(0, BM), between(b_step, TILE)
    b_dc, by_time = tl.zeros([TILE, BM], tl.float32), tl.zeros([BM], tl.float32)
    for m in range(0, M):
        pairs = b_dseen * tl.exp2(-elapsed * (entry(b_rate, m, BM) * LOG2E)) * column(b_b, m, BM)[None, :]
        b_dc += tl.where((o_m == m)[None, :], tl.sum(pairs, 1)[:, None], 0.0)
        by_time += tl.where(o_m == m, tl.sum(tl.sum(pairs * elapsed, 1) * column(b_c, m, BM), 0), 0.0)
    return b_dc, by_time


@triton.jit
def writes_back(
    c, b, step, rates, v, dy, after, far, db, dstep, dv, drates, passed, through,
    scB, scT, scH, sbB, sbT, sbH, sdB, sdT, sdH, svB, svT, svH, syB, syT, syH,
    tbB, tbT, tbH, tdB, tdT, tdH, tvB, tvT, tvH,
    T, H, N, M: tl.constexpr, P: tl.constexpr,
    BP: tl.constexpr, BM: tl.constexpr, TILE: tl.constexpr, SEGMENT: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    # Back with the gradient of the state: those of b and v, of the steps by sums from the end, of the rates.
    i_n, i_h, i_b = place(N, H)
    at = (i_b * H + i_h) * N + i_n
    if (tl.load(far + at) > 0) != FAR:
        return
    kind: tl.constexpr = v.dtype.element_ty
    # What passes a tile is a difference: of a mode that forgets within it only rounding is left.
    forgotten: tl.constexpr = 16 if kind == tl.float32 else 9
    o_m, o_i = tl.arange(0, BM), tl.arange(0, TILE)
    b_rate = tl.load(rates + i_h * M + o_m, mask=o_m < M, other=0.0)
    b_grad = tile(after + at * M * P, M, P, P, BM, BP)
    # Of the log decay of all of the state, past the end of the tile.
    b_through = tl.load(through + at * M + o_m, mask=o_m < M, other=0.0)
    b_drate = tl.load(drates + at * M + o_m, mask=o_m < M, other=0.0)
    by_clock = tl.zeros([TILE, BM], tl.float32)
    tokens = length(i_n, T, SEGMENT)
    last = (tokens - 1) // TILE
    i_t = i_n * SEGMENT + last * TILE
    passed += (at * (SEGMENT // TILE) + last) * M
    c += i_b * scB + i_h * scH + i_t * scT
    b += i_b * sbB + i_h * sbH + i_t * sbT
    step += i_b * sdB + i_h * sdH + i_t * sdT
    v += i_b * svB + i_h * svH + i_t * svT
    dy += i_b * syB + i_h * syH + i_t * syT
    db += i_b * tbB + i_h * tbH + i_t * tbT
    dstep += i_b * tdB + i_h * tdH + i_t * tdT
    dv += i_b * tvB + i_h * tvH + i_t * tvT
    for back in range(0, last + 1):
        rest = tokens - (last - back) * TILE
        b_step = steps(step, rest, sdT, TILE)
        b_c, b_b = tile(c, rest, scT, M, TILE, BM), tile(b, rest, sbT, M, TILE, BM)
        b_v, b_dy = tile(v, rest, svT, P, TILE, BP), tile(dy, rest, syT, P, TILE, BP)
        b_clock, whole = tl.cumsum(b_step, 0), tl.sum(b_step, 0)
        b_decay = since_start(b_clock, b_rate, kind == tl.float32)
        b_read = b_c * b_decay
        # Transposed by making them so: [written by, seen by].
        b_dseen = product(b_v, tl.trans(b_dy), kind)
        own = tl.sum(tl.where(o_i[:, None] == o_i[None, :], b_dseen, 0.0), 1)
        b_dseen = tl.where(o_i[:, None] < o_i[None, :], b_dseen, 0.0)
        exact = False
        if FAR:
            exact = tl.max(far_tokens(b_clock, b_step, b_rate, kind == tl.float32).to(tl.int32), 0) > 0
        if exact:
            b_near, b_seen = _near_writes(b_dseen, b_c, b_b, b_step, b_rate, M, TILE, BM)
            by_log = b_b * b_near
        else:
            b_grow = to_start(b_clock, b_rate, b_decay, kind == tl.float32)
            b_write = b_b * b_grow
            b_near = product(b_dseen, b_read, kind)
            by_log = rounded(b_write, kind) * b_near
            b_near *= b_grow
            by_clock += b_clock[:, None] * by_log
            b_seen = product(b_write, tl.trans(b_read), kind)
        b_seen = tl.where(o_i[:, None] <= o_i[None, :], b_seen, 0.0)
        b_left = to_end(step, rest, sdT, TILE)
        b_fade = fade(b_left, b_rate)
        # Said anew for each tile: a running sum would keep the rounding of what has long been forgotten.
        later = -tl.sum(b_through * b_rate, 0)
        b_new = product(b_v, tl.trans(b_grad), kind)  # [TILE, BM]
        by_new = rounded(b_b * b_fade, kind) * b_new
        by_clock -= b_left[:, None] * by_new
        b_through = tl.where(whole * b_rate > forgotten, 0.0, b_through - tl.sum(by_new, 0))
        b_drate -= whole * b_through
        b_through += tl.load(passed + o_m, mask=o_m < M, other=0.0)
        p_dstep = dstep + o_i * tdT
        change = tl.sum((by_log + by_new) * b_rate[None, :], 1) - tl.load(p_dstep, mask=o_i < rest, other=0.0)
        tl.store(p_dstep, later + tl.cumsum(change, 0, reverse=True), mask=o_i < rest)
        put(db, b_near + b_fade * b_new + own[:, None] * b_c, o_i < rest, tbT, M, TILE, BM)
        b_dv = product(b_seen, b_dy, kind) + product(b_b * b_fade, b_grad, kind)
        put(dv, b_dv, o_i < rest, tvT, P, TILE, BP)
        b_asked = product(tl.trans(b_read * (1.0 / CENTRE)), b_dy, kind)
        b_grad = move(b_grad, -whole * b_rate[:, None], b_asked)
        passed -= M
        c -= TILE * scT
        b -= TILE * sbT
        step -= TILE * sdT
        v -= TILE * svT
        dy -= TILE * syT
        db -= TILE * tbT
        dstep -= TILE * tdT
        dv -= TILE * tvT
    tl.store(drates + at * M + o_m, b_drate + tl.sum(by_clock, 0), mask=o_m < M)


@triton.jit
def _near_writes(
    b_dseen, b_c, b_b, b_step, b_rate, M: tl.constexpr, TILE: tl.constexpr, BM: tl.constexpr
):  # fmt: skip
    # Gradient of b by the tokens of its tile [TILE, BM], and what they see [TILE, TILE], pair by pair.
    o_m, elapsed = tl.arange(0, BM), tl.trans(between(b_step, TILE))
    b_db, b_seen = tl.zeros([TILE, BM], tl.float32), tl.zeros([TILE, TILE], tl.float32)
    for m in range(0, M):
        pairs = tl.exp2(-elapsed * (entry(b_rate, m, BM) * LOG2E)) * column(b_c, m, BM)[None, :]
        b_db += tl.where((o_m == m)[None, :], tl.sum(pairs * b_dseen, 1)[:, None], 0.0)
        b_seen += pairs * column(b_b, m, BM)[:, None]
    return b_db, b_seen
