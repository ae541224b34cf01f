"""FRAC behind the interface of the mixers."""

import torch
from torch import Tensor, nn

from fracts.mixer import FracMixer, MixerState, Tokens

TIMESCALES = (1.0, 131072.0)


class Frac(nn.Module):
    """The layer of `fracts`, plain heads alone, every step observed and one apart.

    Its value path is linear and without bias, and its gates are what they are: the favours change the
    features it is given, not the layer.
    """

    def __init__(self, width: int, *, n_heads: int, n_modes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.mixer = FracMixer(width, n_heads, 0, n_modes, TIMESCALES, generator)

    def forward(
        self, value: Tensor, gate: Tensor, state: MixerState | None = None
    ) -> tuple[Tensor, MixerState]:
        """Outputs (batch, time, width) and the state after the last step."""
        shape, device = value.shape[:2], value.device
        tokens = Tokens(
            torch.ones(shape, dtype=torch.bool, device=device),
            torch.ones(shape, device=device),
            torch.zeros(*shape, 0, 2, device=device),
        )
        y, after = self.mixer(value, gate, tokens, state or self.mixer.empty(len(value)))
        return y, after

    def absorb(self, value: Tensor, gate: Tensor, state: MixerState | None = None) -> MixerState:
        """The state after the last step."""
        return self(value, gate, state)[1]
