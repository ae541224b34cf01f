"""FRAC behind the interface of the mixers."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fracts.mixer import FracMixer, MixerState, Tokens

TIMESCALES = (1.0, 131072.0)


class FracState(NamedTuple):
    """What the layer remembers, and how many steps it has seen."""

    memory: MixerState
    steps: int


class Frac(nn.Module):
    """The layer of `fracts`, every step observed and one apart.

    Its value path is linear and without bias, and its gates are what they are: the favours change the
    features it is given, not the layer.

    Parameters
    ----------
    width : features of a token.
    n_heads : plain heads.
    n_modes : modes of a head, the tail mode included.
    periods : steps, each with a seasonal head.
    change : None, or a function that changes the layer once it is made.
    generator : of the initial weights.
    """

    periods: Tensor

    def __init__(
        self,
        width: int,
        *,
        n_heads: int,
        n_modes: int,
        periods: tuple[float, ...] = (),
        change: Callable[[FracMixer], None] | None = None,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.register_buffer("periods", torch.tensor(periods, dtype=torch.float64))
        self.mixer = FracMixer(width, n_heads, len(periods), n_modes, TIMESCALES, generator)
        if change:
            change(self.mixer)

    def forward(
        self, value: Tensor, gate: Tensor, state: FracState | None = None
    ) -> tuple[Tensor, FracState]:
        """Outputs (batch, time, width) and the state after the last step."""
        before, start = state or FracState(self.mixer.empty(len(value)), 0)
        stop = start + value.shape[1]
        y, after = self.mixer(value, gate, self._tokens(value, start, stop), before)
        return y, FracState(after, stop)

    def absorb(self, value: Tensor, gate: Tensor, state: FracState | None = None) -> FracState:
        """The state after the last step."""
        return self(value, gate, state)[1]

    def _tokens(self, value: Tensor, start: int, stop: int) -> Tokens:
        shape, device = value.shape[:2], value.device
        steps = torch.arange(start, stop, dtype=torch.float64, device=device)
        angle = 2 * math.pi * torch.remainder(steps[:, None] / self.periods, 1.0)
        wave = torch.stack([angle.cos(), angle.sin()], -1).to(value.dtype)
        return Tokens(
            torch.ones(shape, dtype=torch.bool, device=device),
            torch.ones(shape, dtype=value.dtype, device=device),
            wave.expand(shape[0], -1, -1, -1),
        )
