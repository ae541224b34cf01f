"""Mamba-3 with one input and one output a head: a memory that turns, fed by the trapezoidal rule."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fracts.mixer import linear
from mixers.chunks import advance, scan
from mixers.gates import head_dim, positive, step_bias
from mixers.rotary import rotate

SLOWEST = 1e-4  # rate of decay, as published


class Mamba3State(NamedTuple):
    """The memory, how far it has turned, and the write that the next step completes."""

    angle: Tensor  # (batch, heads, pairs)
    key: Tensor  # (batch, heads, d_state), turned
    value: Tensor  # (batch, heads, channels)
    memory: Tensor  # (batch, heads, d_state, channels)


class Written(NamedTuple):
    """What the scan takes, (batch, time, heads, ...)."""

    query: Tensor
    key: Tensor
    value: Tensor
    log_decay: Tensor
    early: Tensor  # share of a step that writes the token before
    late: Tensor  # share of a step that writes its own token


class Mamba3(nn.Module):
    """Mamba-3, single input, single output (Lahoti et al. 2026, arXiv 2603.15569), one group of keys.

        memory[t] = a[t] * (memory[t-1] + early[t] * key[t-1] value[t-1]^T) + late[t] * key[t] value[t]^T
        a[t] = exp(-rate[t] * step[t]),   early[t] + late[t] = step[t]

    Keys and queries are normalised, biased a head, and turned by the angle summed over the steps, which makes
    the memory complex. Half of the key features turn. The gated output has no norm, the published default.

    Parameters
    ----------
    width : features of a token.
    n_heads : heads, a divisor of expand * width.
    d_state : features of a key, a multiple of 4.
    expand : value features over token features.
    linear_value : without effect, the value path is linear and without bias as published.
    hard_gates : steps and rates can be zero.
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
        if d_state % 4:
            raise ValueError(
                f"d_state is {d_state}; half of it has to turn in pairs: choose a multiple of 4."
            )
        inner = expand * width
        self.n_heads, self.d_state, self.head_dim = n_heads, d_state, head_dim(inner, n_heads)
        self.hard_gates = hard_gates
        self.sizes = [inner, 2 * d_state, d_state // 4, 3 * n_heads]  # output gate, keys, angles, scalars
        self.value = linear(width, inner, generator, bias=False)
        self.gates = linear(width, sum(self.sizes), generator, bias=False)
        self.step_bias = step_bias(n_heads, generator)
        self.query_norm, self.key_norm = nn.RMSNorm(d_state, eps=1e-5), nn.RMSNorm(d_state, eps=1e-5)
        self.query_bias = nn.Parameter(torch.ones(n_heads, d_state))
        self.key_bias = nn.Parameter(torch.ones(n_heads, d_state))
        self.skip = nn.Parameter(torch.ones(n_heads))
        self.out = linear(inner, width, generator, bias=False)

    def forward(
        self, value: Tensor, gate: Tensor, state: Mamba3State | None = None
    ) -> tuple[Tensor, Mamba3State]:
        """Outputs (batch, time, width) and the state after the last token."""
        state = state or self._empty(len(value))
        written, z, angle = self._written(value, gate, state.angle)
        query, key, values, log_decay, early, late = written
        y, memory = scan(query, key, values, log_decay, _write(early, late), late, _completed(state, early))
        y = (y + self.skip[:, None] * values).flatten(2)
        return self.out(y * F.silu(z)), Mamba3State(angle, key[:, -1], values[:, -1], memory)

    def absorb(self, value: Tensor, gate: Tensor, state: Mamba3State | None = None) -> Mamba3State:
        """The state after the last token."""
        state = state or self._empty(len(value))
        written, _, angle = self._written(value, gate, state.angle)
        _, key, values, log_decay, early, late = written
        memory = advance(key, values, log_decay, _write(early, late), _completed(state, early))
        return Mamba3State(angle, key[:, -1], values[:, -1], memory)

    def _empty(self, batch: int) -> Mamba3State:
        def zeros(*shape: int) -> Tensor:
            return self.skip.new_zeros(batch, self.n_heads, *shape)

        pairs = self.sizes[2]
        return Mamba3State(
            zeros(pairs), zeros(self.d_state), zeros(self.head_dim), zeros(self.d_state, self.head_dim)
        )

    def _written(self, value: Tensor, gate: Tensor, angle: Tensor) -> tuple[Written, Tensor, Tensor]:
        """What the scan takes, the output gate, and the angle after the last token."""
        z, query_key, turn, scalars = self.gates(gate).split(self.sizes, -1)
        step, rate, late = scalars.unflatten(-1, (3, self.n_heads)).unbind(-2)
        step = positive(step, self.step_bias, self.hard_gates)
        rate = positive(rate, torch.zeros_like(self.step_bias), self.hard_gates)
        if not self.hard_gates:
            rate = rate.clamp(min=SLOWEST)
        late = torch.sigmoid(late) * step

        turns = torch.tanh(turn)[..., None, :] * torch.pi * step[..., None]
        # In double precision: the sum runs over the whole pass.
        angles = torch.remainder(angle[:, None] + turns.double().cumsum(1), 2 * torch.pi).to(turn.dtype)
        query, key = query_key.unflatten(-1, (2, 1, self.d_state)).unbind(2)
        query = rotate(self.query_norm(query) + self.query_bias, angles)
        key = rotate(self.key_norm(key) + self.key_bias, angles)
        values = self.value(value).unflatten(-1, (self.n_heads, self.head_dim))
        return Written(query, key, values, -rate * step, step - late, late), z, angles[:, -1]


def _write(early: Tensor, late: Tensor) -> Tensor:
    """Strength of each write as later steps see it: the next step completes it, the next pass the last."""
    return late + F.pad(early[:, 1:], (0, 0, 0, 1))


def _completed(state: Mamba3State, early: Tensor) -> Tensor:
    """The memory with the last write of the pass before, completed by the first step of this one."""
    return state.memory + early[:, 0, :, None, None] * state.key[..., None] * state.value[..., None, :]
