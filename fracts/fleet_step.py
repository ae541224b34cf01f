"""One row of many series in torch, on whatever device their state is on.

One idea: tensors are moved in place and nothing branches on a number, so that a GPU can replay a row as a
CUDA graph. What is alike for all series is computed by the numpy code and comes in with the values. The
mathematics is that of recall.py and online.py.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from fracts.anchor import SeasonSlots
from fracts.density import SHARE_ROUNDING
from fracts.kernels.scan import step_in_place
from fracts.mode_weights import BASIS, KNOTS, LEAST
from fracts.online import wave_at
from fracts.plan import Encoding, Layer, Plan
from fracts.recall import LinearMemory
from fracts.scaling import FINEST, ROUNDING, SMALLEST, Array

_LOG_2 = math.log(2)
_EXACT = 40.0  # above it softplus is its argument in float64 too

Tensors = Mapping[str, Tensor]


class Row(NamedTuple):
    """A row of all series, views of one tensor in float64."""

    decay: Tensor  # (modes, 2), of the mode bank: real and imaginary part
    waves: Tensor  # (frequencies, 2), cosine and sine of the seasonal heads
    phases: Tensor  # (anchors with slots,)
    time: Tensor  # (1,)
    gap: Tensor  # (1,), since the row before
    kept: Tensor  # (1,), what the sums keep of themselves
    values: Tensor  # (series,), NaN where missing

    @classmethod
    def of(cls, numbers: Tensor, n_modes: int, n_frequencies: int, n_slotted: int) -> "Row":
        """The views of `numbers`, which begins with `told_of`."""
        sizes = [2 * n_modes, 2 * n_frequencies, n_slotted, 1, 1, 1]
        decay, waves, *rest = numbers.split([*sizes, len(numbers) - sum(sizes)])
        return cls(decay.view(-1, 2), waves.view(-1, 2), *rest)


def told_of(memory: LinearMemory, turns: Array, time: float, gap: float) -> Array:
    """What is alike for all series in a row, as `Row` has it; turns: (frequencies,) of the seasonal heads."""
    decay = np.ascontiguousarray(memory.bank.decay(gap)).view(np.float64)
    waves = wave_at(turns, time)[:, 0].ravel() if turns.size else np.empty(0)
    phases = [anchor.phase(time) for _, anchor in memory.seasonal]
    return np.concatenate([decay, waves, [*phases, time, gap, memory.scaler.kept(gap)]])


class MemoryStep:
    """`LinearMemory.advance` over a single row, of series without covariates."""

    def __init__(self, memory: LinearMemory, device: torch.device) -> None:
        self.slotted = memory.seasonal
        self.gain = torch.tensor(memory.bank.gain, device=device)
        self.timescales = torch.tensor(memory.bank.timescales, device=device)

    def __call__(self, state: Tensors, row: Row) -> Tensor:
        """Values (series,) around the centre, in units of the scale; `state` is moved."""
        seen = ~row.values.isnan()
        offset = _summed(state["sums"], row, seen)
        modes = state["modes"]
        modes.mul_(torch.view_as_complex(row.decay))
        real = torch.view_as_real(modes)[..., 0]
        real.add_(torch.stack([offset, seen.double()], -1)[..., None] * self.gain)
        self._share(state, row, seen, real[:, 1, : self.timescales.numel()])
        for i, (name, anchor) in enumerate(self.slotted):
            _replace(state[name], anchor, row.phases[i : i + 1].long(), row.values, seen)
        return _standardised(state["sums"], row.values)

    def _share(self, state: Tensors, row: Row, seen: Tensor, modes: Tensor) -> None:
        """`Density.run`; modes: (series, timescales), of the constant."""
        start, share = state["start"], state["share"]
        start.copy_(torch.where(start.isnan() & seen, row.time, start))
        steps = row.time - start + 1
        now = modes / -torch.expm1(-steps[:, None] / self.timescales)
        now = torch.where((now - 1).abs() < SHARE_ROUNDING, 1.0, now)
        share.copy_(torch.where(seen[:, None], now, share))


def _summed(sums: Tensor, row: Row, seen: Tensor) -> Tensor:
    """`Scaler.step`: the distance of each value to its origin, 0 where missing."""
    origin = torch.where(seen & sums[:, 3].isnan(), row.values, sums[:, 3])
    offset = torch.where(seen, row.values - origin, 0.0)
    sums[:, :3] = sums[:, :3] * row.kept + torch.stack([seen.double(), offset, offset.square()], -1)
    sums[:, 3] = origin
    return offset


def _standardised(sums: Tensor, values: Tensor) -> Tensor:
    """By `Scaler.read`."""
    weight, origin = sums[:, 0].clamp(min=SMALLEST), sums[:, 3]
    offset = sums[:, 1] / weight
    spread = (sums[:, 2] / weight - offset.square()).clamp(min=0.0).sqrt()
    centre = torch.where(origin.isnan(), 0.0, origin + offset)
    floor = ROUNDING * offset.abs() + FINEST * centre.abs() + SMALLEST
    return (values - centre) / torch.maximum(spread, floor)


def _replace(slots: Tensor, anchor: SeasonSlots, phase: Tensor, values: Tensor, seen: Tensor) -> None:
    """`SeasonSlots.step`; phase: (1,)."""
    one, last = torch.ones_like(values), anchor.season_length
    value, before = torch.stack([values, one], -1), slots.index_select(1, phase)[:, 0]
    if anchor.moved:
        empty = before[:, 1] == 0
        off = torch.where(empty, 0.0, values - before[:, 0] / before[:, 1])
        slots[:, -1] = torch.where(seen[:, None], torch.stack([off, one], -1), slots[:, -1])
    after = torch.where(seen[:, None], anchor.kept * before + value, before)
    slots.index_copy_(1, phase, after[:, None])
    slots[:, last] = torch.where(seen[:, None], value, slots[:, last])


class NetworkStep:
    """`online.encode_row` without covariates."""

    def __init__(self, plan: Plan, device: torch.device) -> None:
        self.encoders = [_EncoderStep(encoder, device) for encoder in plan.encoders]

    def __call__(self, state: Tensors, row: Row, u: Tensor) -> None:
        """Move `state` by standardised values `u` (series,), NaN where missing."""
        features = [encoder(state, row, u) for encoder in self.encoders]
        state["features"].copy_(features[0] if len(features) == 1 else torch.cat(features, -1))


class _EncoderStep:
    """`online.network_row`, in place but for the features, which it returns."""

    def __init__(self, encoder: Encoding, device: torch.device) -> None:
        self.embedding: Any = _on(device, encoder.embedding)
        self.layers = [_layer_on(device, layer) for layer in encoder.layers]
        n_layers = len(self.layers)
        self.names = [encoder.names[i::n_layers] for i in range(n_layers)]
        self.norm = torch.tensor(encoder.norm, device=device)
        self.powers = torch.arange(BASIS - 2, dtype=torch.float64, device=device)

    def __call__(self, state: Tensors, row: Row, u: Tensor) -> Tensor:
        seen = ~u.isnan()
        x, gate = self._tokens(u, seen)
        value = x
        for layer, names in zip(self.layers, self.names, strict=True):
            x = x + self._mix(layer, value, gate, seen, row, *(state[name] for name in names))
            h = torch.addcmul(layer.widen_bias, x @ layer.widen, _shrink(x, layer.block_eps))
            x = x + torch.addmm(layer.narrow_bias, F.silu(h), layer.narrow)
            value = gate = x * _shrink(x, layer.eps)
        return value * self.norm

    def _tokens(self, u: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
        own = self.embedding
        value = torch.where(seen, u, 0.0).to(own.embed.dtype)[:, None]
        size = value.abs()
        even = torch.cat([size.log1p(), 1 / (1 + value.square()), (-size).exp()], -1)
        x, gate = value * own.embed, torch.addmm(own.even_bias, even, own.even)
        x, gate = (torch.where(seen[:, None], y, n) for y, n in zip((x, gate), own.nothing, strict=True))
        return x, F.silu(gate)

    def _mix(
        self, layer: Any, value: Tensor, gate: Tensor, seen: Tensor, row: Row,
        modes: Tensor, hold: Tensor, tail: Tensor,
    ) -> Tensor:  # fmt: skip
        """`online._mix`: outputs (series, width)."""
        heads, both = tail.shape[1:]
        raw, v = _projected(layer, value, gate)
        controls, gates = raw.tensor_split([heads * (4 + 2 * KNOTS)], dim=-1)
        read, write, pace = self._weights(layer, controls.double(), heads)
        write = write * seen[:, None, None]
        v, waves = v.reshape(-1, heads, both), row.waves.to(v.dtype)
        plain = heads - len(waves)
        v[:, plain:].unflatten(-1, (2, -1)).mul_(waves[..., None])
        held = (row.gap * hold).to(v.dtype)
        y = step_in_place(read.to(v.dtype), write.to(v.dtype), held, layer.rates, v, modes)
        tail.addcmul_(write[..., -1:], v.double())
        modes[..., -1, :] = tail
        hold.copy_(torch.where(seen[:, None], pace.to(hold.dtype), hold))
        _turn(y[:, plain:].unflatten(-1, (2, -1)), waves)
        y = y * torch.rsqrt(y.square().sum(-1, keepdim=True) + both)
        mixed: Tensor = (y.flatten(1) * gates.sigmoid()) @ layer.out
        return mixed

    def _weights(self, layer: Any, controls: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
        """Weights of reading and of writing (series, heads, modes), and decay a step (series, heads)."""
        soft = F.softplus(controls[:, : 3 * heads], threshold=_EXACT)
        step, rate = soft[:, :heads], controls[:, 3 * heads : 4 * heads].exp()
        log_exponent = (_LOG_2 - soft[:, heads:]).clamp(min=LEAST).unflatten(-1, (2, heads, 1)).movedim(1, 0)
        content = controls[:, 4 * heads :].unflatten(-1, (2, heads, KNOTS)).movedim(1, 0)
        powers = log_exponent.expm1().pow(self.powers)
        basis = torch.cat([powers, log_exponent, log_exponent.square(), content], -1)
        scores = basis.flatten(1, 2) @ layer.scores  # (2, series * heads, modes)
        read, write = scores.softmax(-1).unflatten(1, (-1, heads))
        paces = rate[..., None] * layer.paces
        gain = torch.expm1(step[..., None] * paces) / paces
        return read, write * gain, step * rate


def _projected(layer: Any, value: Tensor, gate: Tensor) -> tuple[Tensor, Tensor]:
    """Controls and gates beside each other, and what is written."""
    if value is gate:
        raw = torch.addmm(layer.both_bias, gate, layer.both)
        controls, values = raw.tensor_split([layer.controls_bias.numel()], dim=-1)
        return controls, values
    return torch.addmm(layer.controls_bias, gate, layer.controls), value @ layer.values


def _turn(y: Tensor, waves: Tensor) -> None:
    """What seasonal heads read (series, frequencies, 2, channels), from along and across to now."""
    cos, sin = waves[:, :1], waves[:, 1:]
    along, across = y.unbind(-2)
    y.copy_(torch.stack([cos * along + sin * across, sin * along - cos * across], -2))


def _shrink(x: Tensor, eps: float) -> Tensor:
    """One over the root mean square of x (..., width): (..., 1)."""
    return torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


def _on(device: torch.device, part: Any) -> Any:
    """A `part` of a plan, its arrays as tensors."""
    arrays = [torch.tensor(x, device=device) if isinstance(x, np.ndarray) else x for x in part]
    return type(part)(*arrays)


def _layer_on(device: torch.device, layer: Layer) -> Any:
    """The same of a layer, with rates (heads, modes) as the scan takes them."""
    part = _on(device, layer)
    heads = (part.controls_bias.numel() - part.values.shape[1]) // (4 + 2 * KNOTS)
    return part._replace(rates=(-part.rates).to(part.out.dtype).repeat(heads, 1))
