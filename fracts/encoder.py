"""The stack: FRAC layers and feed-forward blocks over the rows of a series.

The first layer keeps the signed memory: what it writes is linear and odd in the observation, without a
bias, and what gates it is even, so that where nothing happens nothing adds up. Covariates stand beside the
observation: linear and without a bias both in what is written and in what gates it.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fracts.mixer import FracMixer, MixerState, Tokens, linear

FARTHEST = 10.0  # standard deviations that a covariate is seen off: far beyond, the controls overflow
_EVEN = 3  # even features of an observation


class EncoderState(NamedTuple):
    """States of the layers, and the features of the last row."""

    layers: tuple[MixerState, ...]
    features: Tensor  # (batch, width)


class FracEncoder(nn.Module):
    """Features (batch, time, width) of standardised observations; causal.

    Parameters are those of `FracMixer`, `n_layers`, and `n_covariates` numbers beside each observation.
    """

    def __init__(
        self,
        width: int,
        n_layers: int,
        n_heads: int,
        n_frequencies: int,
        n_modes: int,
        timescales: tuple[float, float],
        generator: torch.Generator,
        window: float = 512.0,
        n_covariates: int = 0,
    ) -> None:
        super().__init__()
        self.embed = linear(1, width, generator, bias=False)
        self.even = linear(_EVEN, width, generator)
        # Stand in for the value and its even features where a row holds none.
        self.nothing = nn.Parameter(torch.zeros(2, width))
        self.mixers = nn.ModuleList(
            FracMixer(width, n_heads, n_frequencies, n_modes, timescales, generator, window)
            for _ in range(n_layers)
        )
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.RMSNorm(width, eps=1e-6),
                linear(width, 2 * width, generator),
                nn.SiLU(),
                linear(2 * width, width, generator, scale=0.5),
            )
            for _ in range(n_layers)
        )
        self.norm = nn.RMSNorm(width, eps=1e-6)
        self.beside = linear(n_covariates, 2 * width, generator, bias=False) if n_covariates else None

    def empty(self, batch: int) -> EncoderState:
        """The state before any row."""
        layers = tuple(mixer.empty(batch) for mixer in self.mixers)  # type: ignore[operator]
        return EncoderState(layers, self.nothing.new_zeros(batch, self.nothing.shape[1]))

    def forward(
        self, u: Tensor, tokens: Tokens, state: EncoderState, covariates: Tensor | None = None
    ) -> tuple[Tensor, EncoderState]:
        """Features of every row and the state after the last.

        u: (batch, time), covariates: (batch, time, n_covariates), anything where unobserved.
        """
        seen = tokens.observed[..., None]
        u = u[..., None]
        size = u.abs()
        even = torch.cat([torch.log1p(size), 1 / (1 + u.square()), torch.exp(-size)], -1)
        x, gate = self.embed(u), self.even(even)
        if self.beside is not None:
            to_value, to_gate = self.beside(covariates).chunk(2, -1)
            x, gate = x + to_value, gate + to_gate
        x = torch.where(seen, x, self.nothing[0])
        gate = F.silu(torch.where(seen, gate, self.nothing[1]))
        value, states = x, []
        for mixer, block, before in zip(self.mixers, self.blocks, state.layers, strict=True):
            mixed, after = mixer(value, gate, tokens, before)
            x = x + mixed
            x = x + block(x)
            value = gate = self.norm(x)
            states.append(after)
        return value, EncoderState(tuple(states), value[:, -1])
