"""The fractional scan, written the slow and obvious way.

    H_t = exp(-step_t * rates) H_{t-1} + b_t v_t^T,    y_t = c_t^T H_t

One token at a time, in float64 whatever comes in. Every faster version in this room must agree with this one.
"""

import torch
from torch import Tensor


def scan_reference(
    c: Tensor, b: Tensor, step: Tensor, rates: Tensor, v: Tensor, initial_state: Tensor
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, H, P] and final state [B, H, M, P] in float64; arguments as in `frac_scan`.

    Examples
    --------
    >>> ones = torch.ones(1, 3, 1, 1)
    >>> y, state = scan_reference(ones, ones, ones[..., 0], torch.zeros(1, 1), ones, torch.zeros(1, 1, 1, 1))
    >>> y.flatten()
    tensor([1., 2., 3.], dtype=torch.float64)
    """
    c, b, step, rates, v, state = (x.double() for x in (c, b, step, rates, v, initial_state))
    outputs = []
    for c_t, b_t, step_t, v_t in zip(c.unbind(1), b.unbind(1), step.unbind(1), v.unbind(1), strict=True):
        decay = torch.exp(-step_t[..., None] * rates)  # [B, H, M]
        state = decay[..., None] * state + b_t[..., None] * v_t[..., None, :]
        outputs.append((c_t[..., None] * state).sum(-2))
    return torch.stack(outputs, dim=1), state
