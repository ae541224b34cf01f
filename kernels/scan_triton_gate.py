"""What a layer's heads read, bounded and gated, in one launch each way on a GPU.

The mathematics is that of `fracts.mixer._Gated`, whose passes over memory are as many as its operations; here
a row is read once, and the gradient computes it again.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from fracts.kernels.scan_triton_tile import sigmoid

NUMBERS = 2048  # of a program


def gated_triton(y: Tensor, gate: Tensor) -> Tensor:
    """y / sqrt(1 + mean(y^2)) * sigmoid(gate), means over the last axis, in the dtype of y.

    y, gate: (..., channels), of one shape.
    """
    out: Tensor = _gated(y, gate)
    return out


@torch.library.custom_op("fracts::gated", mutates_args=())
def _gated(y: Tensor, gate: Tensor) -> Tensor:
    out = torch.empty(y.shape, dtype=y.dtype, device=y.device)
    sizes, grid = _sizes(y)
    _forward[grid](y.contiguous(), gate.contiguous(), out, **sizes)
    return out


@_gated.register_fake
def _(y: Tensor, gate: Tensor) -> Tensor:
    return torch.empty(y.shape, dtype=y.dtype, device=y.device)


@torch.library.custom_op("fracts::gated_back", mutates_args=())
def _gated_back(grad: Tensor, y: Tensor, gate: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of y and gate."""
    grad_y, grad_gate = _like(grad, y, gate)
    sizes, grid = _sizes(y)
    _backward[grid](grad.contiguous(), y.contiguous(), gate.contiguous(), grad_y, grad_gate, **sizes)
    return grad_y, grad_gate


@_gated_back.register_fake
def _like(grad: Tensor, y: Tensor, gate: Tensor) -> tuple[Tensor, Tensor]:
    new = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (y, gate))
    return next(new), next(new)


def _keep(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward_of(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
    both: tuple[Tensor, Tensor] = _gated_back(grad, *ctx.saved_tensors)
    return both


_gated.register_autograd(_backward_of, setup_context=_keep)


def _sizes(y: Tensor) -> tuple[dict[str, int], tuple[int]]:
    channels = y.shape[-1]
    block = triton.next_power_of_2(channels)
    rows, a_program = y.numel() // channels, max(1, NUMBERS // block)
    return {"rows": rows, "P": channels, "BP": block, "ROWS": a_program}, (triton.cdiv(rows, a_program),)


@triton.jit
def _row(x, i, rows, P: tl.constexpr, BP: tl.constexpr):
    o_p = tl.arange(0, BP)
    inside = (i < rows)[:, None] & (o_p < P)[None, :]
    return tl.load(x + i[:, None] * P + o_p[None, :], mask=inside, other=0.0).to(tl.float32)


@triton.jit
def _put(x, b_x, i, rows, P: tl.constexpr, BP: tl.constexpr):
    o_p = tl.arange(0, BP)
    inside = (i < rows)[:, None] & (o_p < P)[None, :]
    tl.store(x + i[:, None] * P + o_p[None, :], b_x.to(x.dtype.element_ty), mask=inside)


@triton.jit
def _forward(y, gate, out, rows, P: tl.constexpr, BP: tl.constexpr, ROWS: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    b_y = _row(y, i, rows, P, BP)
    shrink = 1.0 / tl.sqrt(1.0 + tl.sum(b_y * b_y, 1) * (1.0 / P))
    _put(out, sigmoid(_row(gate, i, rows, P, BP)) * b_y * shrink[:, None], i, rows, P, BP)


@triton.jit
def _backward(
    grad, y, gate, grad_y, grad_gate, rows, P: tl.constexpr, BP: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    b_y, b_open = _row(y, i, rows, P, BP), sigmoid(_row(gate, i, rows, P, BP))
    shrink = 1.0 / tl.sqrt(1.0 + tl.sum(b_y * b_y, 1) * (1.0 / P))
    b_dy = _row(grad, i, rows, P, BP) * b_open * shrink[:, None]
    both = b_dy * b_y  # of log y as of log sigmoid(gate)
    size = tl.sum(both, 1) * shrink * shrink * (1.0 / P)
    _put(grad_y, b_dy - b_y * size[:, None], i, rows, P, BP)
    _put(grad_gate, both * (1.0 - b_open), i, rows, P, BP)
