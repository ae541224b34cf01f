"""What a token reads and writes with, from its raw controls, in one launch each way on a GPU.

The mathematics is that of `fracts.mode_weights`, whose functions say what comes out. There each power of the
exponent is a pass over memory; here a program keeps its rows in registers, from the controls to the weights,
and the gradient computes them again.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from fracts.kernels.scan_triton_tile import LOG2E, expm1, sigmoid

ROWS = 32  # tokens' heads of a program
POWERS = 7  # of the basis: 1 and the powers of the exponent less 1; then its logarithm and the square of that
LOG_2 = tl.constexpr(0.6931471805599453)


def weights_triton(
    controls: Tensor, scores: Tensor, rates: Tensor, observed: Tensor, least: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """Weights of reading and of writing (batch, time, heads, modes) in `dtype`, and decay a step at timescale
    1, (batch, time, heads).

    controls: (batch, time, heads * (4 + 2 * knots)): step, order of reading, order of writing and rate, raw,
    of all heads each, then the contents.  scores: (2, basis + knots, modes), of `mode_scores`.  rates:
    (modes,), the last one 0.  observed: (batch, time).  least: the smallest log exponent.
    """
    c, b, pace = _weights(controls, scores, rates, observed, least, dtype)
    return c, b, pace


@torch.library.custom_op("fracts::weights", mutates_args=())
def _weights(
    controls: Tensor, scores: Tensor, rates: Tensor, observed: Tensor, least: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    c, b, pace = _empty(controls, scores, dtype)
    sizes, grid = _sizes(controls, scores)
    given = controls.contiguous(), scores.contiguous(), rates.contiguous(), observed.contiguous()
    _forward[grid](*given, c, b, pace, least, **sizes)
    return c, b, pace


@_weights.register_fake
def _(
    controls: Tensor, scores: Tensor, rates: Tensor, observed: Tensor, least: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    return _empty(controls, scores, dtype)


@torch.library.custom_op("fracts::weights_back", mutates_args=())
def _weights_back(
    grad_c: Tensor,
    grad_b: Tensor,
    grad_pace: Tensor,
    controls: Tensor,
    scores: Tensor,
    rates: Tensor,
    observed: Tensor,
    least: float,
) -> Tensor:
    """Gradient of the controls."""
    out = torch.empty(controls.shape, dtype=controls.dtype, device=controls.device)
    sizes, grid = _sizes(controls, scores)
    given = controls.contiguous(), scores.contiguous(), rates.contiguous(), observed.contiguous()
    gradients = grad_c.contiguous(), grad_b.contiguous(), grad_pace.contiguous()
    _backward[grid](*given, *gradients, out, least, **sizes)
    return out


@_weights_back.register_fake
def _(
    grad_c: Tensor,
    grad_b: Tensor,
    grad_pace: Tensor,
    controls: Tensor,
    scores: Tensor,
    rates: Tensor,
    observed: Tensor,
    least: float,
) -> Tensor:
    return torch.empty(controls.shape, dtype=controls.dtype, device=controls.device)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *given, ctx.least, _ = inputs
    ctx.save_for_backward(*given)


def _backward_of(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
    return _weights_back(*gradients, *ctx.saved_tensors, ctx.least), None, None, None, None, None


_weights.register_autograd(_backward_of, setup_context=_keep)


def _heads(controls: Tensor, scores: Tensor) -> int:
    knots = scores.shape[1] - POWERS - 2
    return controls.shape[-1] // (4 + 2 * knots)


def _empty(controls: Tensor, scores: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    shape = *controls.shape[:-1], _heads(controls, scores)
    c, b = (controls.new_empty(*shape, scores.shape[-1], dtype=dtype) for _ in range(2))
    return c, b, controls.new_empty(shape, dtype=torch.float32)


def _sizes(controls: Tensor, scores: Tensor) -> tuple[dict[str, int], tuple[int]]:
    heads, modes = _heads(controls, scores), scores.shape[-1]
    rows = controls[..., 0].numel() * heads
    sizes = {"rows": rows, "H": heads, "M": modes, "KNOTS": scores.shape[1] - POWERS - 2, "POWERS": POWERS}
    return {**sizes, "BM": triton.next_power_of_2(modes), "ROWS": ROWS}, (triton.cdiv(rows, ROWS),)


@triton.jit
def _raw(controls, n, at, m_row, H: tl.constexpr, KNOTS: tl.constexpr):
    return tl.load(controls + n * (H * (4 + 2 * KNOTS)) + at, mask=m_row, other=0.0).to(tl.float32)


@triton.jit
def _softplus(x):
    return tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp2(-tl.abs(x) * LOG2E))


@triton.jit
def _log_exponent(order, least):
    return tl.maximum(-_softplus(-order) + LOG_2, least)


@triton.jit
def _softmax(
    controls, scores, n, h, m_row, order, least, first,
    H: tl.constexpr, M: tl.constexpr, KNOTS: tl.constexpr, POWERS: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    # Weights [ROWS, BM], and what the log weights change by with the log exponent. first: place of contents.
    o_m = tl.arange(0, BM)
    inside = o_m < M
    log = _log_exponent(order, least)
    less = tl.exp2(log * LOG2E) - 1.0
    power, slope_power = tl.full(log.shape, 1.0, tl.float32), tl.zeros(log.shape, tl.float32)
    score = tl.zeros([log.shape[0], BM], tl.float32)
    slope = tl.zeros([log.shape[0], BM], tl.float32)
    for k in tl.static_range(POWERS):
        row = tl.load(scores + k * M + o_m, mask=inside, other=0.0)
        score += power[:, None] * row[None, :]
        slope += slope_power[:, None] * row[None, :]
        slope_power = (k + 1) * power * (less + 1.0)
        power *= less
    row = tl.load(scores + POWERS * M + o_m, mask=inside, other=0.0)
    score += log[:, None] * row[None, :]
    slope += row[None, :]
    row = tl.load(scores + (POWERS + 1) * M + o_m, mask=inside, other=0.0)
    score += (log * log)[:, None] * row[None, :]
    slope += (2 * log)[:, None] * row[None, :]
    for j in tl.static_range(KNOTS):
        row = tl.load(scores + (POWERS + 2 + j) * M + o_m, mask=inside, other=0.0)
        content = _raw(controls, n, first + h * KNOTS + j, m_row, H, KNOTS)
        score += content[:, None] * row[None, :]
    score = tl.where(inside[None, :], score, float("-inf"))
    share = tl.exp2((score - tl.max(score, 1)[:, None]) * LOG2E)
    return share / tl.sum(share, 1)[:, None], slope


@triton.jit
def _gain(step, rate, rates, M: tl.constexpr, BM: tl.constexpr):
    # Of each mode over one base step [ROWS, BM], and what is left of it after that step.
    o_m = tl.arange(0, BM)
    pace = rate[:, None] * tl.load(rates + o_m, mask=o_m < M, other=0.0)[None, :]
    log_decay = -step[:, None] * pace
    lost = tl.where(log_decay > -0.6931471805599453, -expm1(log_decay), 1.0 - tl.exp2(log_decay * LOG2E))
    return tl.where(pace > 0, lost / tl.where(pace > 0, pace, 1.0), step[:, None]), 1.0 - lost


@triton.jit
def _forward(
    controls, scores, rates, observed, c, b, pace, least,
    rows, H: tl.constexpr, M: tl.constexpr, KNOTS: tl.constexpr, POWERS: tl.constexpr,
    BM: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)  # token and head
    m_row, n, h = i < rows, i // H, i % H
    o_m = tl.arange(0, BM)
    m_out = m_row[:, None] & (o_m < M)[None, :]
    p_out = i[:, None] * M + o_m[None, :]
    step = _softplus(_raw(controls, n, h, m_row, H, KNOTS))
    rate = tl.exp2(_raw(controls, n, 3 * H + h, m_row, H, KNOTS) * LOG2E)
    tl.store(pace + i, step * rate, mask=m_row)
    order = _raw(controls, n, H + h, m_row, H, KNOTS)
    read, _ = _softmax(controls, scores, n, h, m_row, order, least, 4 * H, H, M, KNOTS, POWERS, BM)
    tl.store(c + p_out, read.to(c.dtype.element_ty), mask=m_out)
    order = _raw(controls, n, 2 * H + h, m_row, H, KNOTS)
    scores += (POWERS + 2 + KNOTS) * M
    write, _ = _softmax(controls, scores, n, h, m_row, order, least, (4 + KNOTS) * H, H, M, KNOTS, POWERS, BM)
    gain, _ = _gain(step, rate, rates, M, BM)
    seen = tl.load(observed + n, mask=m_row, other=0).to(tl.float32)
    tl.store(b + p_out, (write * gain * seen[:, None]).to(b.dtype.element_ty), mask=m_out)


@triton.jit
def _backward(
    controls, scores, rates, observed, grad_c, grad_b, grad_pace, out, least,
    rows, H: tl.constexpr, M: tl.constexpr, KNOTS: tl.constexpr, POWERS: tl.constexpr,
    BM: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    m_row, n, h = i < rows, i // H, i % H
    o_m = tl.arange(0, BM)
    m_in = m_row[:, None] & (o_m < M)[None, :]
    p_in = i[:, None] * M + o_m[None, :]
    p_out = out + n * (H * (4 + 2 * KNOTS)) + h
    raw_step = _raw(controls, n, h, m_row, H, KNOTS)
    step, rate = _softplus(raw_step), tl.exp2(_raw(controls, n, 3 * H + h, m_row, H, KNOTS) * LOG2E)
    b_dc = tl.load(grad_c + p_in, mask=m_in, other=0.0).to(tl.float32)
    _softmax_back(controls, scores, b_dc, out, n, h, m_row, H + h, least, 4 * H, H, M, KNOTS, POWERS, BM)
    scores += (POWERS + 2 + KNOTS) * M
    seen = tl.load(observed + n, mask=m_row, other=0).to(tl.float32)
    b_db = tl.load(grad_b + p_in, mask=m_in, other=0.0).to(tl.float32) * seen[:, None]
    gain, left = _gain(step, rate, rates, M, BM)
    write = _softmax_back(
        controls, scores, b_db * gain, out, n, h, m_row, 2 * H + h, least, (4 + KNOTS) * H,
        H, M, KNOTS, POWERS, BM,
    )  # fmt: skip
    b_dpace = tl.load(grad_pace + i, mask=m_row, other=0.0)
    by_step = tl.sum(b_db * write * left, 1) + b_dpace * rate
    by_rate = tl.sum(b_db * write * (step[:, None] * left - gain), 1) + b_dpace * step * rate
    kind: tl.constexpr = out.dtype.element_ty
    tl.store(p_out, (by_step * sigmoid(raw_step)).to(kind), mask=m_row)
    tl.store(p_out + 3 * H, by_rate.to(kind), mask=m_row)


@triton.jit
def _softmax_back(
    controls, scores, by_weight, out, n, h, m_row, at, least, first,
    H: tl.constexpr, M: tl.constexpr, KNOTS: tl.constexpr, POWERS: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    # The weights; stores the gradients of their order, which is at `at`, and of their contents.
    kind: tl.constexpr = out.dtype.element_ty
    o_m = tl.arange(0, BM)
    order = _raw(controls, n, at, m_row, H, KNOTS)
    weights, slope = _softmax(controls, scores, n, h, m_row, order, least, first, H, M, KNOTS, POWERS, BM)
    share = by_weight * weights
    share -= weights * tl.sum(share, 1)[:, None]
    by_order = tl.where(-_softplus(-order) + LOG_2 > least, tl.sum(share * slope, 1) * sigmoid(-order), 0.0)
    p_out = out + n * (H * (4 + 2 * KNOTS))
    tl.store(p_out + at, by_order.to(kind), mask=m_row)
    for j in tl.static_range(KNOTS):
        row = tl.load(scores + (POWERS + 2 + j) * M + o_m, mask=o_m < M, other=0.0)
        tl.store(p_out + first + h * KNOTS + j, tl.sum(share * row[None, :], 1).to(kind), mask=m_row)
    return weights
