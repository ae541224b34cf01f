"""The scan of `scan_reference.py`, a chunk of time per loop turn, in torch on any device.

Within a chunk the tokens see each other through one small matrix; from chunk to chunk only the state is
carried. The mathematics is in README.md. The gradient is autograd's.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from fracts.kernels.step import move, split_decay


def scan_chunked(
    c: Tensor, b: Tensor, step: Tensor, rates: Tensor, v: Tensor, initial_state: Tensor, chunk: int = 8
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, H, P] and final state [B, H, M, P]; arguments as in `frac_scan`, chunk in tokens.

    Examples
    --------
    >>> ones = torch.ones(1, 3, 1, 1)
    >>> y, state = scan_chunked(ones, ones, ones[..., 0], torch.zeros(1, 1), ones, torch.zeros(1, 1, 1, 1))
    >>> y.flatten()
    tensor([1., 2., 3.])
    """
    length = v.shape[1]
    c, b, v, step = (_in_chunks(x, chunk) for x in (c, b, v, step[..., None]))  # [N, B, H, C, .]
    slowness = -rates[:, None]  # [H, 1, M], against the token axis

    step = step.double()
    clock = step.cumsum(-2).to(v.dtype)  # [N, B, H, C, 1], from the start of the chunk
    # Summed from token to token: a difference of clocks would lose short steps after a huge one. Pairs with
    # the future stay at zero, so that exponential and gradient are finite there too.
    elapsed = step.expand(*step.shape[:-1], chunk).tril(-1).cumsum(-2).to(v.dtype)  # [N, B, H, C, C]
    decay = torch.exp(elapsed[..., None] * slowness[:, None])  # [N, B, H, C, C, M]
    seen = (decay * b[..., None, :, :] * c[..., :, None, :]).sum(-1).tril()  # [N, B, H, C, C]
    written = (b * decay[..., -1, :, :]).mT @ v  # [N, B, H, M, P]

    start, final_state = _carry(initial_state, clock[..., -1, :] * -rates, written)
    y = seen @ v + (c * torch.exp(clock * slowness)) @ start  # [N, B, H, C, P]
    return y.permute(1, 0, 3, 2, 4).flatten(1, 2)[:, :length], final_state


def _in_chunks(x: Tensor, chunk: int) -> Tensor:
    """[B, T, H, .] as [N, B, H, C, .]; the last chunk is filled with zeros, which write and decay nothing."""
    n_chunks = -(-x.shape[1] // chunk)
    padded = F.pad(x, (0, 0, 0, 0, 0, n_chunks * chunk - x.shape[1]))
    return padded.reshape(x.shape[0], n_chunks, chunk, *x.shape[2:]).permute(1, 0, 3, 2, 4)


def _carry(state: Tensor, log_decay: Tensor, written: Tensor) -> tuple[Tensor, Tensor]:
    """State before each chunk [N, B, H, M, P] and after the last; log_decay [N, B, H, M] of whole chunks."""
    whole, rest = split_decay(log_decay[..., None])
    states = [state]
    for each in zip(whole.unbind(), rest.unbind(), written.unbind(), strict=True):
        states.append(move(states[-1], *each))
    return torch.stack(states)[:-1], states[-1]
