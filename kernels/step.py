"""One step of the scan, and how a state is moved without losing a slow mode's decay.

Just below 1 float32 moves by 6e-8, so `exp(-1e-5)` may lose 0.3 % of its distance to 1. Hence a decay is kept
in two numbers, the nearer of 0 and 1 and the small rest: near 1 the rest is `expm1`; near 0, where `expm1`
would leave the rounding of a large past behind, it is `exp` itself.
"""

import math

import torch
from torch import Tensor


def split_decay(log_decay: Tensor) -> tuple[Tensor, Tensor]:
    """`exp(log_decay)` as (whole, rest): whole is 0 or 1 (boolean), whole + rest is the decay.

    Examples
    --------
    >>> split_decay(torch.tensor([-1e-9, -100.0]))
    (tensor([ True, False]), tensor([-1.0000e-09,  3.7835e-44]))
    """
    whole = log_decay > -math.log(2)
    return whole, torch.where(whole, torch.expm1(log_decay), torch.exp(log_decay))


def move(state: Tensor, whole: Tensor, rest: Tensor, written: Tensor) -> Tensor:
    """The state after one decay and one write; whole and rest from `split_decay`, broadcast to the state.

    Examples
    --------
    >>> whole, rest = split_decay(torch.tensor([0.0, -100.0]))
    >>> move(torch.tensor([5.0, 5.0]), whole, rest, torch.tensor([1.0, 1.0]))
    tensor([6., 1.])
    """
    # The two small terms first: one rounding at the size of the state instead of two.
    return whole * state + torch.addcmul(written, rest, state)


def scan_step(
    c: Tensor, b: Tensor, step: Tensor, rates: Tensor, v: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Output [B, H, P] and new state [B, H, M, P] of one token; arguments as in `frac_step`.

    Examples
    --------
    >>> one = torch.ones(1, 1, 1)
    >>> y, state = scan_step(one, one, one[..., 0], torch.zeros(1, 1), one, torch.ones(1, 1, 1, 1))
    >>> y.item()
    2.0
    """
    whole, rest = split_decay(-step[..., None] * rates)  # [B, H, M]
    state = move(state, whole[..., None], rest[..., None], b[..., None] * v[..., None, :])
    return (c[..., None, :] @ state).squeeze(-2), state
