"""The scan of `scan_reference.py`, a chunk of time per loop turn, in torch on any device.

Within a chunk the tokens see each other through one small matrix; from chunk to chunk only the state is
carried. The mathematics, of the gradient too, is in README.md. The gradient is written out: it computes the
decays again instead of keeping them, and works on them in place.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from fracts.kernels.step import move, split_decay

_CACHED = 2**18  # numbers in a table worked on at once


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
    y, state = _ChunkedScan.apply(c, b, step, rates, v, initial_state, chunk)  # type: ignore[no-untyped-call]
    return y, state


class _ChunkedScan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, c: Tensor, b: Tensor, step: Tensor, rates: Tensor, v: Tensor, state: Tensor, chunk: int
    ) -> tuple[Tensor, Tensor]:
        time = _Time.of(step, chunk, v.dtype)
        cc, bb, vv = (_in_chunks(x, chunk) for x in (c, b, v))  # [N, B, H, C, .]
        seen = torch.empty_like(time.elapsed)  # [N, B, H, C, C]
        for at in _slices(seen, rates):
            decay = time.decay(rates, at)
            decay.mul_(bb[at][..., None, :, :]).mul_(cc[at][..., :, None, :])
            torch.sum(decay, -1, out=seen[at])
        seen.tril_()
        written = (bb * time.to_end(rates)).mT @ vv  # [N, B, H, M, P]
        start, final_state = _carry(state, time.clock[..., -1, :] * -rates, written)
        y = seen @ vv + (cc * time.since_start(rates)) @ start  # [N, B, H, C, P]
        ctx.save_for_backward(c, b, step, rates, v, seen, start)
        ctx.chunk = chunk
        return _in_time(y, v.shape[1]), final_state

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor, grad_state: Tensor) -> tuple[Tensor | None, ...]:
        c, b, step, rates, v, seen, start = ctx.saved_tensors
        time = _Time.of(step, ctx.chunk, v.dtype)
        cc, bb, vv, dy = (_in_chunks(x, ctx.chunk) for x in (c, b, v, grad_y))
        since, to_end = time.since_start(rates), time.to_end(rates)
        read = cc * since
        log_whole = time.clock[..., -1, :] * -rates  # [N, B, H, M]
        after, grad_initial = _carry_back(grad_state, log_whole, read.mT @ dy)
        grad_v = seen.mT @ dy + (bb * to_end) @ after
        grad_read = dy @ start.mT  # of c * since, [N, B, H, C, M]
        grad_written = vv @ after.mT  # of b * to_end, [N, B, H, C, M]
        grad_seen = (dy @ vv.mT).tril_()  # [N, B, H, C, C]

        grad_c, grad_b = grad_read * since, grad_written * to_end
        # Of the log decay from the start of the chunk, to its end, and of the whole chunk.
        log_since, log_end = grad_read * read, grad_written * bb * to_end
        log_chunk = (after * start).sum(-1) * log_whole.exp()
        grad_elapsed = torch.empty_like(time.elapsed)
        grad_rates = torch.zeros_like(rates)
        for at in _slices(seen, rates):
            decay = time.decay(rates, at)
            table = grad_seen[at][..., None] * decay  # [., B, H, C, C, M]
            log_decay = torch.mul(table, cc[at][..., :, None, :], out=decay)
            grad_b[at] += log_decay.sum(-3)
            log_decay.mul_(bb[at][..., None, :, :])[..., -1, :, :] += log_end[at]
            grad_c[at] += table.mul_(bb[at][..., None, :, :]).sum(-2)
            if ctx.needs_input_grad[3]:
                grad_rates -= torch.mul(log_decay, time.elapsed[at][..., None], out=table).sum((0, 1, 3, 4))
            torch.sum(log_decay.mul_(-rates[:, None, None]), -1, out=grad_elapsed[at])
        if ctx.needs_input_grad[3]:
            grad_rates -= (log_since * time.clock).sum((0, 1, 3))
            grad_rates -= (log_chunk * time.clock[..., -1, :]).sum((0, 1))

        grad_clock = (log_since * -rates[:, None]).sum(-1, keepdim=True)  # [N, B, H, C, 1]
        grad_clock[..., -1, :] += (log_chunk * -rates).sum(-1, keepdim=True)
        grad_step = _sum_from_here(grad_elapsed).tril_(-1).sum(-1, keepdim=True) + _sum_from_here(grad_clock)
        grad_c, grad_b, grad_step, grad_v = (
            _in_time(x, v.shape[1]) for x in (grad_c, grad_b, grad_step, grad_v)
        )
        return grad_c, grad_b, grad_step[..., 0], grad_rates, grad_v, grad_initial, None


def _slices(seen: Tensor, rates: Tensor) -> Iterator[slice]:
    """Chunks, few enough at a time that their table [., B, H, C, C, M] stays in a processor's cache."""
    n_chunks = seen.shape[0]
    size = seen[:1].numel() * rates.shape[-1]
    width = max(1, (_CACHED if seen.device.type == "cpu" else _CACHED << 8) // max(size, 1))
    return (slice(start, start + width) for start in range(0, n_chunks, width))


class _Time(NamedTuple):
    """Elapsed time in a chunk, summed in float64."""

    clock: Tensor  # [N, B, H, C, 1], from the start of the chunk
    elapsed: Tensor  # [N, B, H, C, C], from token to token, 0 to the future

    @classmethod
    def of(cls, step: Tensor, chunk: int, dtype: torch.dtype) -> "_Time":
        steps = _in_chunks(step[..., None], chunk).double()
        # Summed from token to token: a difference of clocks would lose short steps after a huge one. Pairs
        # with the future stay at zero, so that the exponential is finite there too.
        elapsed = steps.expand(*steps.shape[:-1], chunk).tril(-1).cumsum(-2)
        return cls(steps.cumsum(-2).to(dtype), elapsed.to(dtype))

    def decay(self, rates: Tensor, at: slice) -> Tensor:
        """[., B, H, C, C, M], from token to token of the chunks `at`."""
        return (self.elapsed[at][..., None] * -rates[:, None, None]).exp_()

    def to_end(self, rates: Tensor) -> Tensor:
        """[N, B, H, C, M], to the end of the chunk."""
        return (self.elapsed[..., -1, :, None] * -rates[:, None]).exp_()

    def since_start(self, rates: Tensor) -> Tensor:
        """[N, B, H, C, M], from the start of the chunk."""
        return (self.clock * -rates[:, None]).exp_()


def _in_chunks(x: Tensor, chunk: int) -> Tensor:
    """[B, T, H, .] as [N, B, H, C, .]; the last chunk is filled with zeros, which write and decay nothing."""
    n_chunks = -(-x.shape[1] // chunk)
    padded = F.pad(x, (0, 0, 0, 0, 0, n_chunks * chunk - x.shape[1]))
    return padded.reshape(x.shape[0], n_chunks, chunk, *x.shape[2:]).permute(1, 0, 3, 2, 4)


def _in_time(x: Tensor, length: int) -> Tensor:
    """[N, B, H, C, .] as [B, T, H, .]."""
    return x.permute(1, 0, 3, 2, 4).flatten(1, 2)[:, :length]


def _sum_from_here(x: Tensor) -> Tensor:
    """Sums over the tokens (axis -2) from each to the last of its chunk."""
    return x.flip(-2).cumsum(-2).flip(-2)


def _carry(state: Tensor, log_decay: Tensor, written: Tensor) -> tuple[Tensor, Tensor]:
    """State before each chunk [N, B, H, M, P] and after the last; log_decay [N, B, H, M] of whole chunks."""
    whole, rest = split_decay(log_decay[..., None])
    states = [state]
    for each in zip(whole.unbind(), rest.unbind(), written.unbind(), strict=True):
        states.append(move(states[-1], *each))
    return torch.stack(states)[:-1], states[-1]


def _carry_back(grad: Tensor, log_decay: Tensor, grad_start: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the state after each chunk [N, B, H, M, P], and of the one before the first."""
    whole, rest = split_decay(log_decay[..., None])
    grads = [grad]
    for n in reversed(range(len(grad_start))):
        grads.append(move(grads[-1], whole[n], rest[n], grad_start[n]))
    return torch.stack(grads[-2::-1]) if len(grads) > 1 else grad_start, grads[-1]
