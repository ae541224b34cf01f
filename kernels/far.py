"""Chunks with tokens too far from their start for what grows and what decays to be kept apart in floats.

Here every pair of tokens has its own exponential, of the time between the two: exact for any steps, and
dearer by the length of a chunk.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

_CACHED = 2**18  # numbers of a table worked on at once


def far_tokens(clock: Tensor, step: Tensor, rates: Tensor) -> Tensor:
    """Which tokens are far, told by what comes before them; all but rates [H, M] are [N, B, H, C, 1].

    Beyond 110 the factors would leave the range of float32. Before that, the exponent x = clock * rate is
    rounded by 6e-8 x: harmless up to 16, and later too if the token before has decayed enough, for whatever
    the rate, x * exp(-step * rate) is at most clock / (e * step).
    """
    x = clock * rates.amax(-1)[:, None, None]
    return (x > 16) & ((x > 110) | (clock > 43 * step))


class FarGradients(NamedTuple):
    """Gradients of the tokens in far chunks, and their share in those of the rates."""

    c: Tensor  # [F, C, M]
    b: Tensor  # [F, C, M]
    v: Tensor  # [F, C, P]
    clock: Tensor  # [F, C, 1]
    rates: Tensor  # [H, M]


class FarChunks(NamedTuple):
    """F of the chunks [N, B, H]."""

    place: tuple[Tensor, ...]  # index along N, B and H, [F] each
    far: Tensor  # [F, C, 1], the tokens that are
    c: Tensor  # [F, C, M]
    b: Tensor  # [F, C, M]
    step: Tensor  # [F, C, 1]
    v: Tensor  # [F, C, P]
    rates: Tensor  # [H, M]

    @classmethod
    def of(
        cls, far: Tensor, c: Tensor, b: Tensor, step: Tensor, v: Tensor, rates: Tensor
    ) -> "FarChunks | None":
        """Those with a far token, of all that are given [n, B, H, C, .]."""
        place = far.any(-2).squeeze(-1).nonzero(as_tuple=True)
        if not len(place[0]):
            return None
        return cls(place, far[place], c[place], b[place], step[place], v[place], rates)

    def see(self, seen: Tensor) -> None:
        """Set what far tokens see in [n, B, H, C, C]; others must not depend on what comes later."""
        for at, decay in self._tables():
            exact = decay.mul_(self.c[at][:, :, None]).mul_(self.b[at][:, None]).sum(-1).tril_()
            place = tuple(x[at] for x in self.place)
            seen[place] = torch.where(self.far[at], exact, seen[place])

    def write(self, written: Tensor) -> None:
        """Set what these chunks add to the state in [n, B, H, M, P]."""
        written[self.place] = (self.b * self._to_end()).mT @ self.v

    def gradients(self, dy: Tensor, seen: Tensor, start: Tensor, after: Tensor) -> FarGradients:
        """By those of the outputs, dy, and of the states after each chunk; all [n, B, H, ., .]."""
        dy, seen, start, after = (x[self.place] for x in (dy, seen, start, after))
        since, to_end, rates = self._since(), self._to_end(), self._rates()
        grad_c, grad_b = (dy @ start.mT).mul_(since), (self.v @ after.mT).mul_(to_end)
        grad_v = seen.mT @ dy + (self.b * to_end) @ after
        grad_seen = (dy @ self.v.mT).tril_()
        # Of the log decay from the start of the chunk, and to its end.
        log_since, log_end = self.c * grad_c, self.b * grad_b
        log_since[:, -1] += torch.linalg.vecdot(after, start) * since[:, -1]
        grad_clock = (log_since * -rates).sum(-1)
        grad_rates = -(log_since * self._clock()).sum(1)  # [F, M]
        for at, decay in self._tables():
            log_decay = decay.mul_(grad_seen[at][..., None]).mul_(self.c[at][:, :, None])
            grad_b[at] += log_decay.sum(1)
            log_decay.mul_(self.b[at][:, None])[:, -1] += log_end[at]
            grad_rates[at] -= (log_decay * self._elapsed(at)[..., None]).sum((1, 2))
            pairs = (log_decay * -rates[at][:, None]).sum(-1)  # of the time between two tokens
            grad_clock[at] += pairs.sum(2) - pairs.sum(1)
        for at, decay in self._tables():
            grad_c[at] += decay.mul_(grad_seen[at][..., None]).mul_(self.b[at][:, None]).sum(2)
        by_head = torch.zeros_like(self.rates).index_add_(0, self.place[2], grad_rates)
        return FarGradients(grad_c, grad_b, grad_v, grad_clock[..., None], by_head)

    def _tables(self) -> Iterator[tuple[slice, Tensor]]:
        """Decays from token to token [., C, C, M], of a few chunks at a time."""
        n_chunks, chunk, n_modes = self.c.shape
        width = max(1, _CACHED // (chunk * chunk * n_modes))
        for start in range(0, n_chunks, width):
            at = slice(start, start + width)
            yield at, (self._elapsed(at)[..., None] * -self._rates()[at][:, None]).exp_()

    def _elapsed(self, at: slice) -> Tensor:
        """Time from token to token [., C, C], 0 to the future, whose true exponential would overflow."""
        # Summed from token to token: a difference of clocks would lose short steps after a huge one.
        steps = self.step[at].double()
        return steps.expand(-1, -1, steps.shape[1]).tril(-1).cumsum(1).to(self.step.dtype)

    def _clock(self) -> Tensor:
        return self.step.double().cumsum(1).to(self.step.dtype)

    def _since(self) -> Tensor:
        return (self._clock() * -self._rates()).exp_()

    def _to_end(self) -> Tensor:
        return (self._elapsed(slice(None))[:, -1, :, None] * -self._rates()).exp_()

    def _rates(self) -> Tensor:
        return self.rates[self.place[2]][:, None]  # [F, 1, M]
