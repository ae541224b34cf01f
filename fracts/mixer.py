"""One FRAC layer: fractional memories whose step, order and decay rate are set by the token.

Per head, a bank of exponential modes is written and read with weights that make its kernel a power law
(the log-timescale prior): half the exponent on either side, since exponents add. A seasonal head runs the
same scan on values modulated by the cosine and the sine of its frequency, which makes its kernel that power
law times a cosine.

A token without a value reads and does nothing else: it writes nothing, and the memory goes on decaying with
the controls of the last observed token. So passing it or leaving it out is the same.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from fracts.kernels.scan import by_triton, scan
from fracts.memory import mode_timescales
from fracts.mode_weights import KNOTS, LEAST, mode_scores, read_weights, write_weights


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
    window : steps, the longest lag that training sees.
    """

    rates: Tensor
    scores: Tensor

    def __init__(
        self,
        width: int,
        n_heads: int,
        n_frequencies: int,
        n_modes: int,
        timescales: tuple[float, float],
        generator: torch.Generator,
        window: float = 512.0,
    ) -> None:
        super().__init__()
        self.n_heads, self.n_frequencies, self.n_modes = n_heads, n_frequencies, n_modes
        self.channels = width // (2 * n_heads)
        heads = n_heads + n_frequencies
        self.value = linear(width, (2 * n_heads + n_frequencies) * self.channels, generator, bias=False)
        self.controls = linear(width, heads * (4 + 2 * KNOTS), generator, scale=0.1)
        self.gate = linear(width, heads * 2 * self.channels, generator)
        self.out = linear(heads * 2 * self.channels, width, generator, bias=False)
        tau = mode_timescales(*timescales, n_modes)
        scores = mode_scores(tuple(tau), timescales, window)
        self.register_buffer("rates", torch.from_numpy(1 / tau).float())
        self.register_buffer("scores", torch.from_numpy(scores).float())
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
        value, gate = _in_autocast(value, gate)
        v = self._values(value, tokens.wave)
        raw = self.controls(gate)
        with torch.autocast(v.device.type, enabled=False):  # times and weights keep their digits
            c, b, pace = self._weights(raw.to(self.rates.dtype), tokens.observed, v.dtype)
            decay, hold = _held(pace, tokens.observed, state.hold)
            usual = self._usual_decay()
            steps, rates = tokens.gap[..., None] * (decay / usual), usual[:, None] * self.rates
            y, modes = scan(c, b, steps, rates, v, state.modes)
        y = self._to_now(y, tokens.wave)
        y = _gated(y, self.gate(gate).view_as(y))
        return self.out(y.flatten(-2)), MixerState(modes, hold)

    def _weights(self, raw: Tensor, observed: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """Weights of reading and of writing (batch, time, heads, modes) in `dtype`, and decay a step at
        timescale 1, (batch, time, heads); raw: the controls."""
        if by_triton(raw):
            from fracts.kernels.scan_triton_weights import weights_triton

            return weights_triton(raw, self.scores, self.rates, observed, LEAST, dtype)
        step, read, write, rate, to_read, to_write = self._apart(raw)
        step, rate = F.softplus(step), torch.exp(rate)  # 1 at the start
        c = read_weights(to_read, read, self.scores[0])
        b = write_weights(to_write, write, self.scores[1], step, rate, self.rates, observed)
        return c.to(dtype), b.to(dtype), step * rate

    def _apart(self, controls: Tensor) -> tuple[Tensor, ...]:
        """Step, order of reading, order of writing and rate, raw, (batch, time, heads) each; contents of
        reading and of writing, (batch, time, heads, knots)."""
        heads = self.n_heads + self.n_frequencies
        # Each in memory of its own: torch is slow on numbers that lie apart.
        raw = torch.unflatten(controls[..., : 4 * heads], -1, (4, heads)).movedim(-2, 0).contiguous()
        contents = torch.unflatten(controls[..., 4 * heads :], -1, (2, heads, -1)).movedim(-3, 0).contiguous()
        return *raw.unbind(), *contents.unbind()

    def _usual_decay(self) -> Tensor:
        """Decay a step of each head (heads,), about: the scan is fastest in steps of about 1."""
        step, _, _, rate = self.controls.bias.detach()[: 4 * (self.n_heads + self.n_frequencies)].view(4, -1)
        return (F.softplus(step) * torch.exp(rate)).clamp(1e-3, 1e3)

    def _values(self, value: Tensor, wave: Tensor) -> Tensor:
        """What is written, (batch, time, heads, 2 * channels): at its frequency in a seasonal head."""
        values = self.value(value)
        if not self.n_frequencies:
            plain: Tensor = values.view(*values.shape[:-1], self.n_heads, -1)
            return plain
        n_plain = 2 * self.n_heads * self.channels
        plain = values[..., :n_plain].unflatten(-1, (self.n_heads, 2 * self.channels))
        seasonal = values[..., n_plain:].unflatten(-1, (self.n_frequencies, self.channels))
        cos, sin = wave.to(values.dtype)[..., None].unbind(-2)  # (batch, time, frequencies, 1) each
        return torch.cat([plain, torch.cat([seasonal * cos, seasonal * sin], -1)], -2)

    def _to_now(self, y: Tensor, wave: Tensor) -> Tensor:
        """The seasonal heads of what was read, (batch, time, heads, 2 * channels), relative to now."""
        if not self.n_frequencies:
            return y
        along, across = y[..., self.n_heads :, :].chunk(2, -1)
        cos, sin = wave.to(y.dtype)[..., None].unbind(-2)
        now = torch.cat([cos * along + sin * across, sin * along - cos * across], -1)
        return torch.cat([y[..., : self.n_heads, :], now], -2)


def _in_autocast(value: Tensor, gate: Tensor) -> tuple[Tensor, Tensor]:
    """Both in the dtype that autocast would give each product of them, once for all products."""
    kind = value.device.type
    if not torch.is_autocast_enabled(kind):
        return value, gate
    rounded = gate.to(torch.get_autocast_dtype(kind))
    return rounded if value is gate else value.to(rounded.dtype), rounded


def _gated(y: Tensor, gate: Tensor) -> Tensor:
    if by_triton(y):
        from fracts.kernels.scan_triton_gate import gated_triton

        return gated_triton(y, gate)
    out: Tensor = _Gated.apply(y, gate)  # type: ignore[no-untyped-call]
    return out


class _Gated(torch.autograd.Function):
    """What was read, (..., channels), bounded and gated: y / sqrt(1 + mean(y^2)) * sigmoid(gate).

    Odd and linear for small y; long sums of a slow memory stay bounded. Each head for itself: else the
    longest memories, which go on growing after any training window, would silence the others.
    """

    @staticmethod
    def forward(ctx: Any, y: Tensor, gate: Tensor) -> Tensor:
        shrink = torch.linalg.vecdot(y, y).div_(y.shape[-1]).add_(1).rsqrt_()[..., None]
        ctx.save_for_backward(y, gate, shrink)
        return torch.sigmoid(gate).mul_(y).mul_(shrink)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        y, gate, shrink = ctx.saved_tensors
        opened = torch.sigmoid(gate)
        grad_y = (grad * opened).mul_(shrink)
        both = grad_y * y  # of log y as of log sigmoid(gate)
        size = both.sum(-1, keepdim=True) * shrink.square() / y.shape[-1]
        return grad_y.addcmul_(y, size, value=-1), both.addcmul_(both, opened, value=-1)


def _held(pace: Tensor, observed: Tensor, hold: Tensor) -> tuple[Tensor, Tensor]:
    """Decay a step in force before each token and after the last: that of the last observed token."""
    at = torch.arange(1, observed.shape[1] + 1, device=pace.device)
    last = torch.cummax(torch.where(observed, at, 0), 1).values  # 0: none in this batch yet
    both = torch.cat([hold[:, None], pace], 1)
    index = F.pad(last, (1, 0))[..., None].expand(-1, -1, pace.shape[-1])
    after = both.gather(1, index)
    return after[:, :-1], after[:, -1]


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
