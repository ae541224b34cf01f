"""Mamba-2: a matrix memory whose decay and write strength are one step size a head."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fracts.mixer import linear
from mixers.chunks import advance, scan
from mixers.gates import head_dim, positive, step_bias
from mixers.short_conv import ShortConv

RATES = 1.0, 16.0  # of decay at the start, drawn uniformly from between


class Mamba2State(NamedTuple):
    """What the convolution and the memory keep."""

    recent: Tensor  # (batch, steps, channels), inputs of the convolution
    memory: Tensor  # (batch, heads, d_state, channels)


class Written(NamedTuple):
    """What the scan takes, (batch, time, heads, ...)."""

    query: Tensor  # one for all heads
    key: Tensor  # one for all heads
    value: Tensor
    step: Tensor
    log_decay: Tensor


class Mamba2(nn.Module):
    """Mamba-2 (Dao and Gu 2024, arXiv 2405.21060), one group of keys and queries.

        memory[t] = exp(-rate * step[t]) * memory[t-1] + step[t] * key[t] value[t]^T

    Parameters
    ----------
    width : features of a token.
    n_heads : heads, a divisor of expand * width.
    d_state : features of a key.
    expand : value features over token features.
    linear_value : values pass neither the convolution nor SiLU.
    hard_gates : steps can be zero; then nothing is written and nothing decays.
    generator : of the initial weights.
    """

    def __init__(
        self,
        width: int,
        *,
        n_heads: int,
        d_state: int,
        expand: int = 2,
        linear_value: bool,
        hard_gates: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        inner = expand * width
        self.n_heads, self.d_state, self.head_dim = n_heads, d_state, head_dim(inner, n_heads)
        self.linear_value, self.hard_gates = linear_value, hard_gates
        self.value = linear(width, inner, generator, bias=False)
        self.gates = linear(width, inner + 2 * d_state + n_heads, generator, bias=False)
        self.conv = ShortConv(2 * d_state + (0 if linear_value else inner), generator, bias=True)
        self.step_bias = step_bias(n_heads, generator)
        self.log_rate = nn.Parameter(torch.empty(n_heads).uniform_(*RATES, generator=generator).log())
        self.skip = nn.Parameter(torch.ones(n_heads))
        self.norm = nn.RMSNorm(inner, eps=1e-5)
        self.out = linear(inner, width, generator, bias=False)

    def forward(
        self, value: Tensor, gate: Tensor, state: Mamba2State | None = None
    ) -> tuple[Tensor, Mamba2State]:
        """Outputs (batch, time, width) and the state after the last token."""
        state = state or self._empty(len(value))
        written, z, recent = self._written(value, gate, state.recent)
        query, key, values, step, log_decay = written
        y, memory = scan(query, key, values, log_decay, step, step, state.memory)
        y = (y + self.skip[:, None] * values).flatten(2)
        return self.out(self.norm(y * F.silu(z))), Mamba2State(recent, memory)

    def absorb(self, value: Tensor, gate: Tensor, state: Mamba2State | None = None) -> Mamba2State:
        """The state after the last token."""
        state = state or self._empty(len(value))
        written, _, recent = self._written(value, gate, state.recent)
        memory = advance(written.key, written.value, written.log_decay, written.step, state.memory)
        return Mamba2State(recent, memory)

    def _empty(self, batch: int) -> Mamba2State:
        memory = self.skip.new_zeros(batch, self.n_heads, self.d_state, self.head_dim)
        return Mamba2State(self.conv.empty(batch), memory)

    def _written(self, value: Tensor, gate: Tensor, recent: Tensor) -> tuple[Written, Tensor, Tensor]:
        """What the scan takes, the output gate, and the inputs that the convolution keeps."""
        inner, keys = self.value.out_features, 2 * self.d_state
        z, query_key, step = self.gates(gate).split([inner, keys, self.n_heads], -1)
        values = self.value(value)
        if self.linear_value:
            query_key, recent = self.conv(query_key, recent)
        else:
            both, recent = self.conv(torch.cat([values, query_key], -1), recent)
            values, query_key = both.split([inner, keys], -1)
        query, key = query_key.unflatten(-1, (2, 1, self.d_state)).unbind(2)
        values = values.unflatten(-1, (self.n_heads, self.head_dim))
        step = positive(step, self.step_bias, self.hard_gates)
        return Written(query, key, values, step, -self.log_rate.exp() * step), z, recent
