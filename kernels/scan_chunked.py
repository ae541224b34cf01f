"""The scan of `scan_reference.py`, a chunk of time per loop turn, in torch on any device.

Within a chunk the tokens see each other through one small matrix, the product of what reads and what writes,
each taken to the start of the chunk; from chunk to chunk only the state is carried. The mathematics, of the
gradient too, is in README.md. A few chunks are worked on at a time, so that whatever is neither input nor
output stays in a processor's cache; the gradient computes it again instead of keeping it.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from fracts.kernels.far import FarChunks, far_tokens
from fracts.kernels.step import split_decay

_CACHED = 2**18  # numbers of a tensor worked on at once
_CENTRE = 2.0**80  # about the middle of exp(0) and exp(110); a power of 2 rounds nothing


def scan_chunked(
    c: Tensor,
    b: Tensor,
    step: Tensor,
    rates: Tensor,
    v: Tensor,
    initial_state: Tensor,
    chunk: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, H, P] and final state [B, H, M, P]; arguments as in `frac_scan`, chunk in tokens.

    By default the chunk is as long as the rates let it be.

    Examples
    --------
    >>> ones = torch.ones(1, 3, 1, 1)
    >>> y, state = scan_chunked(ones, ones, ones[..., 0], torch.zeros(1, 1), ones, torch.zeros(1, 1, 1, 1))
    >>> y.flatten()
    tensor([1., 2., 3.])
    """
    chunk = chunk or _chunk_for(rates)
    y, state = _ChunkedScan.apply(c, b, step, rates, v, initial_state, chunk)  # type: ignore[no-untyped-call]
    return y, state


class _ChunkedScan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, c: Tensor, b: Tensor, step: Tensor, rates: Tensor, v: Tensor, state: Tensor, chunk: int
    ) -> tuple[Tensor, Tensor]:
        tokens = _Tokens.of(c, b, step, rates, v, chunk)
        states = v.new_empty(len(tokens.v) + 1, *state.shape)  # before each chunk, and after the last
        states[0] = state
        y, in_chunks = _empty_like(tokens.v)
        for at in tokens.slices():
            part = tokens.part(at)
            _carry(states[at.start : at.stop + 1], part.log_whole, part.written())
            in_chunks[at] = _add_product(part.seen() @ part.v, part.read, states[at], 1 / _CENTRE)
        ctx.save_for_backward(c, b, step, rates, v, states)
        ctx.chunk = chunk
        return y[:, : v.shape[1]], states[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor, grad_state: Tensor) -> tuple[Tensor | None, ...]:
        c, b, step, rates, v, states = ctx.saved_tensors
        tokens = _Tokens.of(c, b, step, rates, v, ctx.chunk)
        dy = _in_chunks(grad_y, ctx.chunk)
        inputs = tokens.c, tokens.b, tokens.step, tokens.v
        grads, in_chunks = zip(*(_empty_like(x) for x in inputs), strict=True)
        grad_rates = torch.zeros_like(rates)
        for at in reversed(list(tokens.slices())):
            part, out = tokens.part(at), _Gradients(*(x[at] for x in in_chunks))
            grad_state = part.gradients(
                dy[at].contiguous(),
                states[at.start : at.stop + 1],
                grad_state,
                out,
                grad_rates if ctx.needs_input_grad[3] else None,
            )
        grad_c, grad_b, grad_step, grad_v = (x[:, : v.shape[1]] for x in grads)
        return grad_c, grad_b, grad_step[..., 0], grad_rates, grad_v, grad_state, None


class _Tokens(NamedTuple):
    """The inputs in chunks."""

    c: Tensor  # [N, B, H, C, M]
    b: Tensor
    step: Tensor  # [N, B, H, C, 1]
    clock: Tensor  # [N, B, H, C, 1], time from the start of the chunk
    far: Tensor | None  # [N, B, H, C, 1], tokens beyond the reach of the factors; None if there are none
    rates: Tensor  # [H, M]
    v: Tensor  # [N, B, H, C, P]

    @classmethod
    def of(cls, c: Tensor, b: Tensor, step: Tensor, rates: Tensor, v: Tensor, chunk: int) -> "_Tokens":
        c, b, step, v = (_in_chunks(x, chunk) for x in (c, b, step[..., None], v))
        clock = _clock(step)
        far = far_tokens(clock, step, rates)
        return cls(c, b, step, clock, far if far.any() else None, rates, v)

    def slices(self) -> Iterator[slice]:
        """Chunks, few enough at a time that their tensors stay in a processor's cache."""
        n_chunks = len(self.v)
        size = max(self.v[:1].numel(), self.c[:1].numel(), 1)
        width = max(1, (_CACHED if self.v.device.type == "cpu" else _CACHED << 8) // size)
        return (slice(start, min(start + width, n_chunks)) for start in range(0, n_chunks, width))

    def part(self, at: slice) -> "_Part":
        # Base 2, where the exponential is cheapest; of half the exponent, or it would underflow.
        half = self.rates * (-0.5 * math.log2(math.e))
        decay = (self.clock[at] * half[:, None]).exp2_().mul_(_CENTRE**0.5).square_()
        read = torch.mul(self.c[at], decay, out=torch.empty_like(decay))
        write = torch.div(self.b[at], decay, out=torch.empty_like(decay))
        far = None
        if self.far is not None:
            here = self.far[at], self.c[at], self.b[at], self.step[at], self.v[at]
            far = FarChunks.of(*here, self.rates)
        return _Part(decay, read, write, self.clock[at], self.rates, self.v[at].contiguous(), far)


class _Part(NamedTuple):
    """Some of the chunks. `read` and `write` are c and b brought to the start of the chunk."""

    decay: Tensor  # [n, B, H, C, M], from the start of the chunk, times _CENTRE
    read: Tensor  # c * decay
    write: Tensor  # b / decay
    clock: Tensor  # [n, B, H, C, 1]
    rates: Tensor  # [H, M]
    v: Tensor  # [n, B, H, C, P]
    far: FarChunks | None

    @property
    def log_whole(self) -> Tensor:
        """Log decay of each chunk [n, B, H, M]."""
        return self.clock[..., -1, :] * -self.rates

    def seen(self) -> Tensor:
        """What each token sees of the others of its chunk, [n, B, H, C, C]."""
        seen = (self.read @ self.write.mT).tril_()
        if self.far:
            self.far.see(seen)
        return seen

    def written(self) -> Tensor:
        """What each chunk adds to the state by its end, [n, B, H, M, P]."""
        written = (self.write.mT @ self.v).mul_(self.decay[..., -1, :, None])
        if self.far:
            self.far.write(written)
        return written

    def gradients(
        self, dy: Tensor, states: Tensor, grad_state: Tensor, out: "_Gradients", grad_rates: Tensor | None
    ) -> Tensor:
        """The gradient of the state before the first chunk; fills `out`, and adds to `grad_rates` if given.

        dy: [n, B, H, C, P].  states: [n + 1, B, H, M, P], before each chunk and after the last.
        grad_state: [B, H, M, P], of the state after the last one.
        """
        grad_start = _product(self.read.mT, dy, 1 / _CENTRE)
        after, grad_state = _carry_back(grad_state, self.log_whole, grad_start)  # [n, B, H, M, P]
        start, seen, grad_seen = states[:-1], self.seen(), (dy @ self.v.mT).tril_()
        faded = after * self.decay[..., -1, :, None]
        out.v.copy_(_add_product(seen.mT @ dy, self.write, faded))

        # Of the log decay of the chunk: all of the state at its end has gone through it.
        whole = torch.linalg.vecdot(after, states[1:])  # [n, B, H, M]
        grad_write = _add_product(self.v @ faded.mT, grad_seen.mT, self.read)
        grad_read = _add_product(grad_seen @ self.write, dy, start.mT, 1 / _CENTRE)
        # Of the exponent: it makes grow what writes and decay what reads.
        exponent = (grad_write * self.write).addcmul_(grad_read, self.read, value=-1)
        exponent[..., -1, :] -= whole
        torch.mul(grad_read, self.decay, out=out.c)
        torch.div(grad_write, self.decay, out=out.b)
        if self.far:
            exact = self.far.gradients(dy, seen, start, after)
            out.c[self.far.place], out.b[self.far.place], out.v[self.far.place] = exact.c, exact.b, exact.v
            exponent[self.far.place] = 0.0
        if grad_rates is not None:
            grad_rates += (exponent * self.clock).sum((0, 1, 3))
            if self.far:
                grad_rates += exact.rates
        grad_clock = exponent.mul_(self.rates[:, None]).sum(-1, keepdim=True)
        if self.far:
            grad_clock[self.far.place] = exact.clock
        out.step.copy_(grad_clock.flip(-2).cumsum(-2).flip(-2))
        return grad_state


class _Gradients(NamedTuple):
    """Memory for those of the tokens, in chunks like them."""

    c: Tensor
    b: Tensor
    step: Tensor
    v: Tensor


def _chunk_for(rates: Tensor) -> int:
    """16, 8 or 4 tokens: the most that steps of about 1 leave in reach of the factors.

    Told by the rates alone: if it were by the steps, what comes later would change the rounding of before.
    """
    return next((chunk for chunk in (16, 8) if chunk * rates.max() <= 64), 4)


def _clock(step: Tensor) -> Tensor:
    """Time from the start of the chunk, summed in float64."""
    return step.double().cumsum(-2).to(step.dtype)


def _in_chunks(x: Tensor, chunk: int) -> Tensor:
    """[B, T, H, .] as [N, B, H, C, .]; the last chunk is filled with zeros, which write and decay nothing."""
    n_chunks = -(-x.shape[1] // chunk)
    if n_chunks * chunk > x.shape[1]:
        x = F.pad(x, (0, 0, 0, 0, 0, n_chunks * chunk - x.shape[1]))
    return x.reshape(len(x), n_chunks, chunk, *x.shape[2:]).permute(1, 0, 3, 2, 4)


def _empty_like(x: Tensor) -> tuple[Tensor, Tensor]:
    """Memory for tokens [B, T, H, .], and the same memory in chunks like x [N, B, H, C, .]."""
    n_chunks, batch, heads, chunk, width = x.shape
    tokens = x.new_empty(batch, n_chunks * chunk, heads, width)
    return tokens, _in_chunks(tokens, chunk)


def _product(x: Tensor, y: Tensor, alpha: float) -> Tensor:
    """`alpha * x @ y`; the first three axes are alike."""
    shape = *x.shape[:-1], y.shape[-1]
    empty = x.new_empty(1, 1, 1)
    return torch.baddbmm(empty, x.flatten(0, 2), y.flatten(0, 2), beta=0, alpha=alpha).view(shape)


def _add_product(total: Tensor, x: Tensor, y: Tensor, alpha: float = 1.0) -> Tensor:
    """`total += alpha * x @ y`, in place; the first three axes are alike."""
    total.flatten(0, 2).baddbmm_(x.flatten(0, 2), y.flatten(0, 2), alpha=alpha)
    return total


def _carry(states: Tensor, log_decay: Tensor, written: Tensor) -> None:
    """Fill states[1:] from states[0]: [n + 1, B, H, M, P]; log_decay [n, B, H, M] of whole chunks."""
    whole, rest = split_decay(log_decay[..., None])
    before = states.unbind()
    for n, each in enumerate(
        zip(whole.to(rest.dtype).unbind(), rest.unbind(), written.unbind(), strict=True)
    ):
        _move(before[n], *each, out=before[n + 1])


def _carry_back(grad: Tensor, log_decay: Tensor, grad_start: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the state after each chunk [n, B, H, M, P], and of the one before the first."""
    grads = torch.empty_like(grad_start)
    whole, rest = split_decay(log_decay[..., None])
    whole = whole.to(rest.dtype)
    after = [*grads.unbind(), grad]
    first = torch.empty_like(grad)
    after[-2].copy_(grad)
    for n in reversed(range(len(grads))):
        _move(after[n], whole[n], rest[n], grad_start[n], out=after[n - 1] if n else first)
    return grads, first


def _move(state: Tensor, whole: Tensor, rest: Tensor, written: Tensor, out: Tensor) -> None:
    # As `step.move`: the two small terms first.
    torch.addcmul(written, rest, state, out=out).addcmul_(whole, state)
