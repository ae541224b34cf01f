"""Gated DeltaNet: a decaying memory in which a write replaces what its key held."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fracts.mixer import linear
from mixers.chunks import delta_advance, delta_scan
from mixers.gates import fraction, positive, step_bias
from mixers.short_conv import ShortConv

RATES = 0.0, 16.0  # of decay at the start, drawn uniformly from between


class GatedDeltaState(NamedTuple):
    """What the convolution and the memory keep."""

    recent: Tensor  # (batch, steps, channels), inputs of the convolution
    memory: Tensor  # (batch, heads, head_dim, channels)


class Written(NamedTuple):
    """What the scan takes, (batch, time, heads, ...)."""

    query: Tensor
    key: Tensor
    value: Tensor
    log_decay: Tensor
    write: Tensor


class GatedDeltaNet(nn.Module):
    """Gated DeltaNet (Yang, Kautz and Hatamizadeh 2024, arXiv 2412.06464).

        decayed = exp(-rate * step[t]) * memory[t-1]
        memory[t] = decayed + write[t] * key[t] (value[t] - key[t] decayed)^T

    Parameters
    ----------
    width : features of a token.
    n_heads : heads. The published layer has n_heads * head_dim = 0.75 * width.
    head_dim : features of a key.
    expand_v : value features over key features.
    linear_value : values pass neither the convolution nor SiLU.
    hard_gates : steps and write strengths can be zero.
    generator : of the initial weights.
    """

    def __init__(
        self,
        width: int,
        *,
        n_heads: int,
        head_dim: int,
        expand_v: int = 2,
        linear_value: bool,
        hard_gates: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.n_heads, self.head_dim = n_heads, head_dim
        self.linear_value, self.hard_gates = linear_value, hard_gates
        keys, values = 2 * n_heads * head_dim, n_heads * head_dim * expand_v
        self.sizes = [values, keys, n_heads, n_heads]  # output gate, queries and keys, steps, write strengths
        self.value = linear(width, values, generator, bias=False)
        self.gates = linear(width, sum(self.sizes), generator, bias=False)
        self.conv = ShortConv(keys + (0 if linear_value else values), generator, bias=False)
        self.step_bias = step_bias(n_heads, generator)
        self.log_rate = nn.Parameter(torch.empty(n_heads).uniform_(*RATES, generator=generator).log())
        self.norm = nn.RMSNorm(head_dim * expand_v, eps=1e-5)
        self.out = linear(values, width, generator, bias=False)

    def forward(
        self, value: Tensor, gate: Tensor, state: GatedDeltaState | None = None
    ) -> tuple[Tensor, GatedDeltaState]:
        """Outputs (batch, time, width) and the state after the last token."""
        state = state or self._empty(len(value))
        written, z, recent = self._written(value, gate, state.recent)
        y, memory = delta_scan(*written, state.memory)
        return self.out(self.norm(y).flatten(2) * F.silu(z)), GatedDeltaState(recent, memory)

    def absorb(self, value: Tensor, gate: Tensor, state: GatedDeltaState | None = None) -> GatedDeltaState:
        """The state after the last token."""
        state = state or self._empty(len(value))
        written, _, recent = self._written(value, gate, state.recent)
        _, key, values, log_decay, write = written
        return GatedDeltaState(recent, delta_advance(key, values, log_decay, write, state.memory))

    def _empty(self, batch: int) -> GatedDeltaState:
        channels = self.sizes[0] // self.n_heads
        memory = self.step_bias.new_zeros(batch, self.n_heads, self.head_dim, channels)
        return GatedDeltaState(self.conv.empty(batch), memory)

    def _written(self, value: Tensor, gate: Tensor, recent: Tensor) -> tuple[Written, Tensor, Tensor]:
        """What the scan takes, the output gate, and the inputs that the convolution keeps."""
        z, query_key, step, write = self.gates(gate).split(self.sizes, -1)
        values = self.value(value)
        if self.linear_value:
            query_key, recent = self.conv(query_key, recent)
        else:
            both, recent = self.conv(torch.cat([values, query_key], -1), recent)
            values, query_key = both.split(self.sizes[:2], -1)
        query, key = query_key.unflatten(-1, (2, self.n_heads, self.head_dim)).unbind(2)
        values = values.unflatten(-1, (self.n_heads, -1))
        log_decay = -self.log_rate.exp() * positive(step, self.step_bias, self.hard_gates)
        query = _unit(query) * self.head_dim**-0.5
        return Written(query, _unit(key), values, log_decay, fraction(write, self.hard_gates)), z, recent


def _unit(x: Tensor) -> Tensor:
    """Over its length, save near zero, where the gradient stays bounded."""
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)
