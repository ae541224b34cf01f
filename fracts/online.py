"""The network as one step in numpy: what `FracNetwork` does to a single row of each series.

One row costs torch its calls, not its arithmetic, and numpy's calls are cheaper. The mathematics is that of
mixer.py, encoder.py and heads.py; a `Plan` holds the weights as this step wants them, copied out of the
network at the end of fit. Matrices that read the same numbers stand side by side, and a norm's weights are
in the matrix that follows it.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor

from fracts.fast import compiled_network, compiles
from fracts.mode_weights import BASIS, KNOTS, LEAST
from fracts.network import FracNetwork
from fracts.series import State

Array = NDArray[np.floating]
Step = Callable[..., tuple[Sequence[Array], Sequence[Array], Array]]

_LOG_2 = math.log(2)
_SLOWEST = 1e-30  # rate that stands for 0 in a gain: expm1 of so small a number is that number


class Embedding(NamedTuple):
    """What makes tokens of values."""

    turns: NDArray[np.float64]  # (frequencies,), a step
    embed: Array  # (width,)
    even: Array  # (3, width)
    even_bias: Array  # (width,)
    nothing: Array  # (2, width)


class Layer(NamedTuple):
    """The weights of a layer.

    controls: those of step and of reading and writing order (whose signs are turned), rate, contents, and the
    output's gate, one beside the other.
    """

    controls: Array  # (width, controls + gates)
    controls_bias: Array  # (controls + gates,)
    values: Array  # (width, values)
    rates: Array  # (modes,), with a minus
    paces: Array  # (modes,), the same with a tiny number for 0
    scores: Array  # (2, basis + knots, modes)
    out: Array  # (gates, width)
    widen: Array  # (width, 2 * width)
    widen_bias: Array  # (2 * width,)
    narrow: Array  # (2 * width, width)
    narrow_bias: Array  # (width,)
    block_eps: Array  # ()
    eps: Array  # ()


class Plan(NamedTuple):
    """The weights of a network."""

    embedding: Embedding
    beside: Array  # (columns, 2 * width)
    stack: Layer  # of all, with an axis of layers first
    layers: tuple[Layer, ...]  # the same apart
    norm: Array  # (width,)
    head: Array  # (width, 3 * horizon)
    head_bias: Array  # (3 * horizon,)
    traits: Array  # (known, traits)
    traits_bias: Array  # (traits,)
    weigh: Array  # (width, 3 * traits)
    weigh_bias: Array  # (3 * traits,)
    levels: Array  # (levels,)
    median: int  # place among the levels


def plan_of(network: FracNetwork) -> Plan:
    """The weights of `network` as they are now.

    Examples
    --------
    >>> from fracts.encoder import FracEncoder
    >>> from fracts.heads import QuantileHead
    >>> encoder = FracEncoder(8, 1, 2, 0, 4, (1.0, 100.0), torch.Generator())
    >>> head = QuantileHead(8, torch.tensor([0.1, 0.5, 0.9]), torch.zeros(1, 3, 3))
    >>> plan_of(FracNetwork(encoder, head, np.empty(0))).layers[0].values.shape
    (8, 8)
    """
    encoder: Any = network.encoder
    head: Any = network.head
    width, nobody = encoder.nothing.shape[1], encoder.nothing.detach().new_zeros(0)
    with torch.no_grad():
        norms = [torch.ones_like(encoder.norm.weight)] + [encoder.norm.weight] * (len(encoder.mixers) - 1)
        parts = zip(encoder.mixers, encoder.blocks, norms, strict=True)
        layers = [_layer(mixer, block, norm, encoder.norm.eps) for mixer, block, norm in parts]
        stack = Layer(*(np.stack(arrays) for arrays in zip(*layers, strict=True)))
        return Plan(
            embedding=Embedding(
                turns=_array(network.frequencies.double()),
                embed=_array(encoder.embed.weight[:, 0]),
                even=_array(encoder.even.weight.T),
                even_bias=_array(encoder.even.bias),
                nothing=_array(encoder.nothing),
            ),
            beside=_array(nobody.view(0, 2 * width) if encoder.beside is None else encoder.beside.weight.T),
            stack=stack,
            layers=tuple(Layer(*arrays) for arrays in zip(*stack, strict=True)),
            norm=_array(encoder.norm.weight),
            head=_array(head.out.weight.T),
            head_bias=_array(head.out.bias),
            traits=_array(nobody.view(0, 0) if head.traits is None else head.traits.weight.T),
            traits_bias=_array(nobody if head.traits is None else head.traits.bias),
            weigh=_array(nobody.view(0, 0) if head.weigh is None else head.weigh.weight.T),
            weigh_bias=_array(nobody if head.weigh is None else head.weigh.bias),
            levels=_array(head.levels),
            median=int(head.median),
        )


def _layer(mixer: Any, block: Any, norm: Tensor, eps: float) -> Layer:
    """norm: (width,), the weights of the norm before the layer."""
    heads = mixer.n_heads + mixer.n_frequencies
    sign = torch.ones_like(mixer.controls.bias)
    sign[heads : 3 * heads] = -1.0
    first, widen, _, narrow = block
    return Layer(
        controls=_array((torch.cat([mixer.controls.weight * sign[:, None], mixer.gate.weight]) * norm).T),
        controls_bias=_array(torch.cat([mixer.controls.bias * sign, mixer.gate.bias])),
        values=_array((mixer.value.weight * norm).T),
        rates=_array(-mixer.rates),
        paces=_array(-mixer.rates.clamp(min=_SLOWEST)),
        scores=_array(mixer.scores),
        out=_array(mixer.out.weight.T * (2 * mixer.channels) ** 0.5),
        widen=_array((widen.weight * first.weight).T),
        widen_bias=_array(widen.bias),
        narrow=_array(narrow.weight.T),
        narrow_bias=_array(narrow.bias),
        block_eps=np.array(first.eps),
        eps=np.array(eps),
    )


def encode_row(
    plan: Plan, state: State, u: Array, time: float, gap: float, covariates: Array | None = None
) -> State:
    """The state after one row, in the dtype of the network; `state` itself is left as it was.

    Parameters
    ----------
    state : arrays as `as_arrays` writes them.
    u : (batch,), standardised, NaN where missing.
    time, gap : of the row, and since the row before, in steps.
    covariates : (batch, columns), where there are any.

    Examples
    --------
    >>> from fracts.encoder import FracEncoder
    >>> from fracts.heads import QuantileHead
    >>> from fracts.network import as_arrays
    >>> encoder = FracEncoder(8, 1, 2, 0, 4, (1.0, 100.0), torch.Generator())
    >>> head = QuantileHead(8, torch.tensor([0.1, 0.5, 0.9]), torch.zeros(1, 3, 3))
    >>> plan = plan_of(FracNetwork(encoder, head, np.empty(0)))
    >>> state = encode_row(plan, as_arrays(encoder.empty(1)), np.array([0.3]), 0.0, 0.0)
    >>> {name: array.shape for name, array in state.items()}
    {'features': (1, 8), 'layer_0_modes': (1, 2, 4, 4), 'layer_0_hold': (1, 2)}
    """
    dtype, beside, layers = plan.norm.dtype, plan.beside[:0], range(len(plan.layers))
    if covariates is not None and covariates.shape[1]:
        beside = covariates.astype(dtype) @ plan.beside
    before, holds = ([state[f"layer_{i}_{part}"] for i in layers] for part in ("modes", "hold"))
    if before[0].dtype != dtype:
        before, holds = ([array.astype(dtype) for array in arrays] for arrays in (before, holds))
    step: Step = compiled_network().network_row if compiles() else network_row
    modes, hold, features = step(plan, u, beside, time, gap, before, holds)
    after = {"features": features}
    for i in layers:
        after[f"layer_{i}_modes"], after[f"layer_{i}_hold"] = modes[i], hold[i]
    return after


def head_row(
    plan: Plan, features: Array, errors: NDArray[np.float64], ahead: Array | None = None
) -> NDArray[np.float64]:
    """Quantiles (batch, horizon, levels) in units of scale.

    features: (batch, width).  errors: (batch, horizon, levels), those of the linear path.  ahead: (batch,
    horizon, known), where covariates are known in advance.
    """
    outputs = _outputs(plan, features, ahead, parts=3).astype(np.float64)
    shift, below, above = outputs[..., None].swapaxes(0, 1)  # (batch, horizon, 1) each
    centre = errors[..., plan.median, None]
    stretch = np.exp(np.where(plan.levels < 0.5, below, above))
    quantiles: NDArray[np.float64] = shift + centre + (errors - centre) * stretch
    return quantiles


def shift_row(plan: Plan, features: Array, ahead: Array | None = None) -> Array:
    """What `head_row` moves the medians by: (batch, horizon), in units of scale."""
    return _outputs(plan, features, ahead, parts=1)[:, 0]


def due_row(plan: Plan, features: Array, leads: NDArray[np.int64], known: Array) -> NDArray[np.float64]:
    """Shift, and log stretches below and above, of a forecast of each of `leads`: (3, batch, leads).

    features: (batch, leads, width), of the rows they were made at.  known: (batch, numbers), what was known
    in advance of the one row that all are for.
    """
    parts = leads - 1 + plan.head_bias.size // 3 * np.arange(3)[:, None]  # (3, leads)
    outputs = np.einsum("blw,wpl->pbl", features, plan.head[:, parts]) + plan.head_bias[parts][:, None]
    if known.shape[-1]:
        traits = _silu(known.astype(features.dtype) @ plan.traits + plan.traits_bias)
        weights = (features @ plan.weigh + plan.weigh_bias).reshape(*features.shape[:2], 3, -1)
        outputs += np.einsum("blpt,bt->pbl", weights, traits)
    moves: NDArray[np.float64] = outputs.astype(np.float64)
    return moves


def _outputs(plan: Plan, features: Array, ahead: Array | None, parts: int) -> Array:
    """The first `parts` of shift, log stretch below and log stretch above: (batch, parts, horizon)."""
    horizon, n_traits = plan.head_bias.size // 3, plan.traits_bias.size
    outputs: Array = np.dot(features, plan.head[:, : parts * horizon])
    outputs += plan.head_bias[: parts * horizon]
    outputs = outputs.reshape(-1, parts, horizon)
    if ahead is not None and ahead.shape[-1]:
        traits = _silu(ahead.astype(features.dtype) @ plan.traits + plan.traits_bias)
        weights = features @ plan.weigh[:, : parts * n_traits] + plan.weigh_bias[: parts * n_traits]
        weights = weights.reshape(-1, parts, n_traits)
        outputs = outputs + weights @ traits.swapaxes(-1, -2)
    return outputs


def network_row(
    plan: Plan, u: Array, beside: Array, time: float, gap: float, before: list[Array], holds: list[Array]
) -> tuple[Sequence[Array], Sequence[Array], Array]:
    """Modes and hold of each layer, and features (batch, width), after a row.

    u: (batch,), NaN where missing.  beside: (batch, 2 * width), of covariates, or none.  before, holds: modes
    and hold of each layer.
    """
    x, gate, wave = _tokens(plan.embedding, u, beside, time)
    seen = _seen(u)
    if len(u) == 1:  # without an axis of series every call is cheaper
        x, gate, seen = x[0], gate[0], None if seen is None else seen[0]
        before, holds = [array[0] for array in before], [array[0] for array in holds]
    value, modes, hold = x, [], []
    for layer, *own in zip(plan.layers, before, holds, strict=True):
        mixed, after, after_hold = _mix(layer, value, gate, seen, gap, wave, *own)
        modes.append(after)
        hold.append(after_hold)
        x = x + mixed
        h = np.dot(x, layer.widen)
        h *= _shrink(x, layer.block_eps)
        h += layer.widen_bias
        x += np.dot(_silu(h), layer.narrow)
        x += layer.narrow_bias
        value = gate = x * _shrink(x, layer.eps)
    features = value * plan.norm
    if len(u) == 1:
        return [array[None] for array in modes], [array[None] for array in hold], features[None]
    return modes, hold, features


def _tokens(embedding: Embedding, u: Array, beside: Array, time: float) -> tuple[Array, Array, Array]:
    """What is written and what gates it, (batch, width) each, and the turns of the seasonal heads.

    beside: (batch, 2 * width), of covariates, or none.
    """
    dtype = embedding.embed.dtype
    if len(u) == 1:
        value = 0.0 if math.isnan(u.item()) else u.item()
        size = abs(value)
        even = np.array([[math.log1p(size), 1 / (1 + value * value), math.exp(-size)]], dtype)
        x = value * embedding.embed[None]
    else:
        values = np.where(np.isnan(u), 0.0, u).astype(dtype)[:, None]
        sizes = np.abs(values)
        even = np.concatenate([np.log1p(sizes), 1 / (1 + values * values), np.exp(-sizes)], -1)
        x = values * embedding.embed
    gate = np.dot(even, embedding.even)
    gate += embedding.even_bias
    if len(beside):
        x, gate = x + beside[:, : x.shape[1]], gate + beside[:, x.shape[1] :]
    if (seen := _seen(u)) is not None:
        x, gate = (np.where(seen[:, None], y, n) for y, n in zip((x, gate), embedding.nothing, strict=True))
    return x, _silu(gate), _wave(embedding.turns, time, dtype)


def _seen(u: Array) -> NDArray[np.bool_] | None:
    """Who has a value (batch,), None for all."""
    missing = np.isnan(u)
    return ~missing if np.count_nonzero(missing) else None


def _wave(turns: NDArray[np.float64], time: float, dtype: np.dtype[Any]) -> Array:
    """The seasonal heads at the time of the row, (frequencies, 2, 2): from along and across to now.

    The first column, cosine and sine, is also what a value is written with.
    """
    wave = np.empty((turns.size, 2, 2), dtype)
    if turns.size:
        angle = 2 * np.pi * np.remainder(time * turns, 1.0)
        wave[:, 0, 0], wave[:, 1, 0] = np.cos(angle), np.sin(angle)
        wave[:, 0, 1], wave[:, 1, 1] = wave[:, 1, 0], -wave[:, 0, 0]
    return wave


def _mix(
    layer: Layer, value: Array, gate: Array, seen: Any, gap: float, wave: Array, modes: Array, hold: Array
) -> tuple[Array, Array, Array]:
    """Outputs (..., width), and modes and hold after the row."""
    batch, (heads, _, both) = modes.shape[:-3], modes.shape[-3:]
    plain = heads - len(wave)
    raw = np.dot(gate, layer.controls)
    raw += layer.controls_bias
    soft = np.logaddexp(0, raw[..., : 3 * heads])
    step, rate = soft[..., :heads, None], np.exp(raw[..., 3 * heads : 4 * heads])[..., None]
    c, b = _weights(layer.scores, raw[..., 4 * heads :], soft[..., heads:], batch, heads)
    pace = rate * layer.paces
    gain = np.expm1(step * pace)
    gain /= pace
    b *= gain
    if seen is not None:
        b *= seen[..., None, None]

    flat = np.dot(value, layer.values)
    still = plain * both
    v = flat[..., :still].reshape(*batch, plain, both)
    if len(wave):
        swing = flat[..., still:].reshape(*batch, heads - plain, 1, both // 2)
        v = np.concatenate([v, (swing * wave[..., :1]).reshape(*batch, heads - plain, both)], -2)
    modes = _moved(modes, (gap * hold)[..., None] * layer.rates, b[..., None] * v[..., None, :])
    y = (c[..., None, :] @ modes)[..., 0, :]  # (..., heads, 2 * channels)
    if len(wave):
        turning = y[..., plain:, :].reshape(*batch, heads - plain, 2, both // 2)
        y[..., plain:, :] = (wave @ turning).reshape(*batch, heads - plain, both)
    size = np.einsum("...i,...i->...", y, y)
    size += both  # and the square root of it is in `out`
    y /= np.sqrt(size)[..., None]
    y = y.reshape(*batch, -1) * expit(raw[..., -heads * both :])
    pace_now = (step * rate)[..., 0]
    hold = pace_now if seen is None else np.where(seen[..., None], pace_now, hold)
    return np.dot(y, layer.out), modes, hold


def _weights(
    scores: Array, contents: Array, soft: Array, batch: tuple[int, ...], heads: int
) -> tuple[Array, Array]:
    """Weights of reading and of writing, (..., heads, modes) each, the gain of writing left out.

    contents: (..., 2 * heads * knots and more).  soft: (..., 2 * heads), softplus of minus the orders.
    """
    basis = np.empty((2, *batch, heads, BASIS + KNOTS), soft.dtype)
    log_exponent = np.maximum(_LOG_2 - soft, LEAST).reshape(*batch, 2, heads)
    log_exponent = log_exponent if not batch else log_exponent.swapaxes(0, 1)
    basis[..., 0] = 1.0
    basis[..., 1 : BASIS - 2] = np.expm1(log_exponent)[..., None]
    np.multiply.accumulate(basis[..., : BASIS - 2], axis=-1, out=basis[..., : BASIS - 2])
    basis[..., BASIS - 2] = log_exponent
    basis[..., BASIS - 1] = log_exponent * log_exponent
    content = contents[..., : 2 * heads * KNOTS].reshape(*batch, 2, heads, KNOTS)
    basis[..., BASIS:] = content if not batch else content.swapaxes(0, 1)
    score = basis.reshape(2, -1, BASIS + KNOTS) @ scores
    score -= np.maximum.reduce(score, -1, keepdims=True)
    np.exp(score, out=score)
    score /= np.add.reduce(score, -1, keepdims=True)
    c, b = score.reshape(2, *batch, heads, -1)
    return c, b


def _moved(modes: Array, log_decay: Array, written: Array) -> Array:
    """`modes` after a decay and a write, rounded as `fracts.kernels.step.move` rounds it."""
    rest = np.expm1(log_decay)
    fast = log_decay <= -_LOG_2
    np.exp(log_decay, out=rest, where=fast)
    moved: Array = rest[..., None] * modes
    moved += written
    moved += ~fast[..., None] * modes
    return moved


def _shrink(x: Array, eps: Array) -> Any:
    """One over the root mean square of x (..., width): (..., 1)."""
    if x.ndim == 1:
        return x.dtype.type(1 / math.sqrt(np.dot(x, x) / x.size + eps))
    size = np.einsum("...i,...i->...", x, x)
    size /= x.shape[-1]
    size += eps
    return (1 / np.sqrt(size))[..., None]


def _silu(x: Array) -> Array:
    return x * expit(x)


def _array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().cpu().contiguous().numpy().copy()
