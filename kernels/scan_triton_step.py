"""One token on a GPU: one launch, the state in place if asked."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from fracts.kernels.scan_triton_tile import move


def step_triton(
    c: Tensor, b: Tensor, step: Tensor, rates: Tensor, v: Tensor, state: Tensor, out: Tensor
) -> tuple[Tensor, Tensor]:
    """Output [B, H, P] and `out`, the state after the token; arguments as in `frac_step`."""
    c, b, step, rates, v, state = (x.contiguous() for x in (c, b, step, rates, v, state))
    (batch, heads, modes), width = c.shape, v.shape[-1]
    y, moved = torch.empty_like(v), out if out.is_contiguous() else torch.empty_like(state)
    padded = triton.next_power_of_2(modes), triton.next_power_of_2(width)
    _step[(batch * heads,)](c, b, step, rates, v, state, moved, y, heads, modes, width, *padded, num_warps=1)
    return y, moved if moved is out else out.copy_(moved)


@triton.jit
def _step(
    c, b, step, rates, v, state, moved, y,
    H, M: tl.constexpr, P: tl.constexpr, BM: tl.constexpr, BP: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64)  # sequence and head
    o_m, o_p = tl.arange(0, BM), tl.arange(0, BP)
    m_m, m_p = o_m < M, o_p < P
    at = i * M * P + o_m[:, None] * P + o_p[None, :]
    inside = m_m[:, None] & m_p[None, :]
    b_state = tl.load(state + at, mask=inside, other=0.0)  # [BM, BP]
    b_rate = tl.load(rates + (i % H) * M + o_m, mask=m_m, other=0.0)  # [BM]
    b_c = tl.load(c + i * M + o_m, mask=m_m, other=0.0).to(tl.float32)
    b_b = tl.load(b + i * M + o_m, mask=m_m, other=0.0).to(tl.float32)
    b_v = tl.load(v + i * P + o_p, mask=m_p, other=0.0).to(tl.float32)  # [BP]
    b_state = move(b_state, -tl.load(step + i) * b_rate[:, None], b_b[:, None] * b_v[None, :])
    tl.store(moved + at, b_state, mask=inside)
    tl.store(y + i * P + o_p, tl.sum(b_c[:, None] * b_state, 0).to(y.dtype.element_ty), mask=m_p)
