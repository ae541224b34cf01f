"""One FRAC layer: fractional memories whose step, order and decay rate are set by the token.

Per head, a bank of exponential modes is written and read with weights that make its kernel a power law
(the log-timescale prior): half the exponent on either side, since exponents add. A seasonal head runs the
same scan on values modulated by the cosine and the sine of its frequency, which makes its kernel that power
law times a cosine.

A token without a value reads and does nothing else: it writes nothing, and the memory goes on decaying with
the controls of the last observed token. So passing it or leaving it out is the same.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fracts.kernels import frac_scan
from fracts.memory import mode_timescales, power_law_weights

EXPONENTS = np.geomspace(0.02, 2.0, 33)  # of the table that read and write weights are interpolated in


class Tokens(NamedTuple):
    """Where the rows of a batch stand in time."""

    observed: Tensor  # (batch, time), bool
    gap: Tensor  # (batch, time), steps since the row before
    wave: Tensor  # (batch, time, frequencies, 2), cosine and sine of each frequency


class MixerState(NamedTuple):
    """What a layer remembers: its modes, and the decay that goes on until the next observed token."""

    modes: Tensor  # (batch, heads, modes, 2 * channels)
    hold: Tensor  # (batch, heads), decay a step at timescale 1


class FracMixer(nn.Module):
    """Fractional memory over `width` features: `n_heads` plain heads and one for each of `n_frequencies`.

    Parameters
    ----------
    width : features of a token, a multiple of 2 * n_heads.
    timescales : the shortest and the longest memory to represent, in steps.
    n_modes : modes of each head, the tail mode included.
    generator : of the initial weights.
    """

    rates: Tensor
    unit_gain: Tensor
    log_weights: Tensor

    def __init__(
        self,
        width: int,
        n_heads: int,
        n_frequencies: int,
        n_modes: int,
        timescales: tuple[float, float],
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.n_heads, self.n_frequencies, self.n_modes = n_heads, n_frequencies, n_modes
        self.channels = width // (2 * n_heads)
        heads = n_heads + n_frequencies
        self.value = linear(width, (2 * n_heads + n_frequencies) * self.channels, generator, bias=False)
        self.controls = linear(width, heads * (4 + 2 * n_modes), generator, scale=0.1)
        self.gate = linear(width, heads * 2 * self.channels, generator)
        self.out = linear(heads * 2 * self.channels, width, generator, bias=False)
        tau, log_weights = _prior(n_modes, timescales)
        unit_gain = np.append(-np.expm1(-1 / tau[:-1]) * tau[:-1], 1.0)
        self.register_buffer("rates", torch.from_numpy(1 / tau).float())
        self.register_buffer("unit_gain", torch.from_numpy(unit_gain).float())
        self.register_buffer("log_weights", torch.from_numpy(log_weights).float())
        with torch.no_grad():
            order = torch.linspace(-2.0, 2.0, heads)  # memories from long to short, one a head
            start = torch.stack([torch.full_like(order, 0.5413), order, order, torch.zeros_like(order)])
            self.controls.bias[: 4 * heads] = start.flatten()

    def empty(self, batch: int) -> MixerState:
        """The state before any token."""
        heads = self.n_heads + self.n_frequencies
        modes = self.rates.new_zeros(batch, heads, self.n_modes, 2 * self.channels)
        return MixerState(modes, self.rates.new_ones(batch, heads))

    def forward(
        self, value: Tensor, gate: Tensor, tokens: Tokens, state: MixerState
    ) -> tuple[Tensor, MixerState]:
        """Outputs (batch, time, width) and the state after the last token.

        value: (batch, time, width), what is written, by a linear map without bias.
        gate: (batch, time, width), what sets the controls.
        """
        heads = self.n_heads + self.n_frequencies
        controls = self.controls(gate)
        step, read, write, rate = controls[..., : 4 * heads].unflatten(-1, (4, heads)).unbind(-2)
        content = controls[..., 4 * heads :].unflatten(-1, (2, heads, self.n_modes))
        step, rate = F.softplus(step), torch.exp(rate)  # 1 at the start
        c = torch.softmax(self._half_prior(read) + content[..., 0, :, :], -1)
        b = torch.softmax(self._half_prior(write) - self.unit_gain.log() + content[..., 1, :, :], -1)
        b = b * self._gain(step, rate) * tokens.observed[..., None, None]
        decay, hold = _held(step * rate, tokens.observed, state.hold)

        values = self.value(value)
        n_plain = 2 * self.n_heads * self.channels
        plain = values[..., :n_plain].unflatten(-1, (self.n_heads, 2 * self.channels))
        seasonal = values[..., n_plain:].unflatten(-1, (self.n_frequencies, self.channels))
        cos, sin = tokens.wave[..., 0, None], tokens.wave[..., 1, None]  # (batch, time, frequencies, 1)
        v = torch.cat([plain, torch.cat([seasonal * cos, seasonal * sin], -1)], -2)
        rates = self.rates.expand(heads, -1)
        y, modes = frac_scan(c, b, tokens.gap[..., None] * decay, rates, v, state.modes)

        along, across = y[..., self.n_heads :, :].chunk(2, -1)
        now = torch.cat([cos * along + sin * across, sin * along - cos * across], -1)
        y = torch.cat([y[..., : self.n_heads, :], now], -2).flatten(-2)
        # Odd and linear for small outputs; long sums of a slow memory stay bounded.
        y = y * torch.rsqrt(1 + y.square().mean(-1, keepdim=True))
        return self.out(y * torch.sigmoid(self.gate(gate))), MixerState(modes, hold)

    def _half_prior(self, order: Tensor) -> Tensor:
        """Half the log weight of each mode for the exponent 2 * sigmoid(order): (..., modes)."""
        log_exponent = (2 * torch.sigmoid(order)).clamp(EXPONENTS[0], EXPONENTS[-1]).log()
        place = (log_exponent - np.log(EXPONENTS[0])) / np.log(EXPONENTS[1] / EXPONENTS[0])
        left = place.detach().long().clamp(max=len(EXPONENTS) - 2)
        share = (place - left)[..., None]
        return 0.5 * torch.lerp(self.log_weights[left], self.log_weights[left + 1], share)

    def _gain(self, step: Tensor, rate: Tensor) -> Tensor:
        """Zero-order hold of one base step: (..., modes)."""
        slow, tail = self.rates[:-1], step[..., None]
        pace = rate[..., None] * slow
        return torch.cat([-torch.expm1(-tail * pace) / pace, tail], -1)


def _held(pace: Tensor, observed: Tensor, hold: Tensor) -> tuple[Tensor, Tensor]:
    """Decay a step in force before each token and after the last: that of the last observed token."""
    at = torch.arange(1, observed.shape[1] + 1, device=pace.device)
    last = torch.cummax(torch.where(observed, at, 0), 1).values  # 0: none in this batch yet
    both = torch.cat([hold[:, None], pace], 1)
    index = F.pad(last, (1, 0))[..., None].expand(-1, -1, pace.shape[-1])
    after = both.gather(1, index)
    return after[:, :-1], after[:, -1]


@lru_cache
def _prior(n_modes: int, timescales: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Timescales (modes,), and log weights (exponents, modes) of the power laws."""
    tau = mode_timescales(*timescales, n_modes)
    weights = np.stack([power_law_weights(tau, g, *timescales) for g in EXPONENTS])
    return tau, np.log(weights)


def linear(
    inputs: int, outputs: int, generator: torch.Generator, *, scale: float = 1.0, bias: bool = True
) -> nn.Linear:
    """A linear map with weights of variance scale^2 / inputs from `generator`, bias zero."""
    # Made without memory first: nn.Linear would draw its weights from torch's global state.
    layer = nn.Linear(inputs, outputs, bias=bias, device="meta").to_empty(device="cpu")
    with torch.no_grad():
        layer.weight.normal_(0.0, scale * inputs**-0.5, generator=generator)
        if bias:
            layer.bias.zero_()
    return layer
