"""Causal attention over everything seen, with rotary positions."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention.bias import causal_lower_right

from fracts.mixer import linear
from mixers.gates import head_dim
from mixers.rotary import rotate

BASE = 10_000.0  # the slowest pair of features turns once in about 2 pi BASE steps


class Past(NamedTuple):
    """Rotated keys and values of all steps so far, (batch, heads, time, channels)."""

    keys: Tensor
    values: Tensor


class Attention(nn.Module):
    """Causal multi-head attention (Vaswani et al. 2017, arXiv 1706.03762), positions by rotation.

    Parameters
    ----------
    width : features of a token, an even number a head.
    n_heads : heads.
    linear_value : without effect, the value path is linear and without bias as published.
    hard_gates : without effect, there are no gates and no decay.
    generator : of the initial weights.
    """

    def __init__(
        self, width: int, *, n_heads: int, linear_value: bool, hard_gates: bool, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.n_heads = n_heads
        pairs, odd = divmod(head_dim(width, n_heads), 2)
        if odd:
            raise ValueError(
                f"A head of {2 * pairs + 1} features cannot turn in pairs: choose another n_heads."
            )
        self.value = linear(width, width, generator, bias=False)
        self.query_key = linear(width, 2 * width, generator, bias=False)
        self.out = linear(width, width, generator, bias=False)

    def forward(self, value: Tensor, gate: Tensor, state: Past | None = None) -> tuple[Tensor, Past]:
        """Outputs (batch, time, width), and keys and values of all steps so far."""
        query, past = self._append(value, gate, state)
        causal = causal_lower_right(query.shape[2], past.keys.shape[2])
        y = F.scaled_dot_product_attention(query, past.keys, past.values, attn_mask=causal)
        return self.out(y.transpose(1, 2).flatten(2)), past

    def absorb(self, value: Tensor, gate: Tensor, state: Past | None = None) -> Past:
        """Keys and values of all steps so far."""
        return self._append(value, gate, state)[1]

    def _append(self, value: Tensor, gate: Tensor, state: Past | None) -> tuple[Tensor, Past]:
        query, key = self.query_key(gate).unflatten(-1, (2, self.n_heads, -1)).permute(2, 0, 3, 1, 4)
        values = self.value(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        start = 0 if state is None else state.keys.shape[2]
        pairs = query.shape[-1] // 2
        # In double precision: at step 100,000 a single-precision angle is off by up to 0.004.
        at = torch.arange(start, start + value.shape[1], dtype=torch.float64, device=value.device)
        frequency = BASE ** (-torch.arange(pairs, dtype=torch.float64, device=value.device) / pairs)
        angle = torch.remainder(at[:, None] * frequency, 2 * torch.pi).to(value.dtype)
        query, key = rotate(query, angle), rotate(key, angle)
        if state is None:
            return query, Past(key, values)
        return query, Past(torch.cat([state.keys, key], 2), torch.cat([state.values, values], 2))
