"""The network as one step in numpy: what `FracNetwork` does to a single row of each series.

One row costs torch its calls, not its arithmetic, and numpy's calls are cheaper. The mathematics is that of
mixer.py, encoder.py and heads.py; plan.py has the weights as this step wants them.
"""

import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fracts.encoder import FARTHEST
from fracts.fast import compiled_network, compiles, of_each_kind
from fracts.mode_weights import BASIS, KNOTS, LEAST
from fracts.plan import Embedding, Encoding, Layer, Plan
from fracts.series import State

Array = NDArray[np.floating]
Memory = tuple[Array, Array, Array]  # of a layer, as `fracts.network.as_arrays` writes it: modes, hold, tail
Memories = Sequence[Array]  # the same of all layers: their modes, then their hold, then their tails
Step = Callable[..., tuple[Memories, Array]]

_LOG_2 = math.log(2)


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
    >>> import torch
    >>> from fracts.network import FracNetwork, as_arrays
    >>> from fracts.plan import plan_of
    >>> encoder = FracEncoder(8, 1, 2, 0, 4, (1.0, 100.0), torch.Generator())
    >>> head = QuantileHead(8, torch.tensor([0.1, 0.5, 0.9]), torch.zeros(1, 3, 3))
    >>> plan = plan_of(FracNetwork([encoder], head, np.empty(0)))
    >>> state = encode_row(plan, as_arrays(encoder.empty(1)), np.array([0.3]), 0.0, 0.0)
    >>> {name: array.shape for name, array in state.items()}
    {'layer_0_modes': (1, 2, 4, 4), 'layer_0_hold': (1, 2), 'layer_0_tail': (1, 2, 4), 'features': (1, 8)}
    """
    after: State = {}
    features = []
    for encoder in plan.encoders:
        dtype, beside = encoder.norm.dtype, encoder.beside[:0]
        if covariates is not None and covariates.shape[1]:
            beside = covariates.clip(-FARTHEST, FARTHEST).astype(dtype) @ encoder.beside
        before = [state[name] for name in encoder.names]
        if before[0].dtype != dtype:
            modes, hold, tail = of_each_kind(before)
            before = [*(x.astype(dtype) for x in modes), *(x.astype(dtype) for x in hold), *tail]
        step: Step = compiled_network().network_row if compiles() else network_row
        moved, own = step(encoder, u, beside, time, gap, before)
        after |= zip(encoder.names, moved, strict=True)
        features.append(own)
    after["features"] = features[0] if len(features) == 1 else np.concatenate(features, -1)
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


def shift_medians(
    plan: Plan, features: Array, ahead: Array, medians: NDArray[np.float64], scale: NDArray[np.float64]
) -> None:
    """Move `medians` (series, horizon), of series of some `scale` (series,), by `shift_row`."""
    if compiles() and not ahead.shape[-1]:
        compiled_network().shift(medians, scale, features, plan.shift, plan.head_bias, plan.least, plan.most)
    else:
        medians += scale[:, None] * shift_row(plan, features, ahead)


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
        outputs += plan.share[:, None, leads - 1] * np.einsum("blpt,bt->pbl", weights, traits)
    least, most = plan.least[:, None, leads - 1], plan.most[:, None, leads - 1]
    moves: NDArray[np.float64] = np.clip(outputs, least, most).astype(np.float64)
    return moves


def _outputs(plan: Plan, features: Array, ahead: Array | None, parts: int) -> Array:
    """The first `parts` of shift, log stretch below and log stretch above: (batch, parts, horizon)."""
    horizon, n_traits = plan.head_bias.size // 3, plan.traits_bias.size
    outputs: Array = np.dot(features, plan.shift if parts == 1 else plan.head)
    outputs += plan.head_bias[: parts * horizon]
    outputs = outputs.reshape(-1, parts, horizon)
    if ahead is not None and ahead.shape[-1]:
        traits = _silu(ahead.astype(features.dtype) @ plan.traits + plan.traits_bias)
        weights = features @ plan.weigh[:, : parts * n_traits] + plan.weigh_bias[: parts * n_traits]
        weights = weights.reshape(-1, parts, n_traits)
        outputs = outputs + plan.share[:parts] * (weights @ traits.swapaxes(-1, -2))
    return np.clip(outputs, plan.least[:parts], plan.most[:parts], out=outputs)


def network_row(
    encoder: Encoding, u: Array, beside: Array, time: float, gap: float, before: Memories
) -> tuple[Memories, Array]:
    """State of all layers, and features (batch, width), after a row.

    u: (batch,), NaN where missing.  beside: (batch, 2 * width), of covariates, or none.  before: the state of
    all layers.
    """
    x, gate, wave = _tokens(encoder.embedding, u, beside, time)
    seen = _seen(u)
    own_of = list(zip(*of_each_kind(before), strict=True))
    if len(u) == 1:  # without an axis of series every call is cheaper
        x, gate, seen = x[0], gate[0], None if seen is None else seen[0]
        own_of = [(modes[0], hold[0], tail[0]) for modes, hold, tail in own_of]
    value, after = x, []
    for layer, own in zip(encoder.layers, own_of, strict=True):
        mixed, memory = _mix(layer, value, gate, seen, gap, wave, own)
        after.append(memory)
        x = x + mixed
        h = np.dot(x, layer.widen)
        h *= _shrink(x, layer.block_eps)
        h += layer.widen_bias
        x += np.dot(_silu(h), layer.narrow)
        x += layer.narrow_bias
        value = gate = x * _shrink(x, layer.eps)
    features = value * encoder.norm
    if len(u) == 1:
        after, features = (
            [(modes[None], hold[None], tail[None]) for modes, hold, tail in after],
            features[None],
        )
    return list(chain(*zip(*after, strict=True))), features


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
    return x, _silu(gate), wave_at(embedding.turns, time)


def _seen(u: Array) -> NDArray[np.bool_] | None:
    """Who has a value (batch,), None for all."""
    missing = np.isnan(u)
    return ~missing if np.count_nonzero(missing) else None


def wave_at(turns: NDArray[np.float64], time: float) -> NDArray[np.float64]:
    """The seasonal heads at the time of the row, (frequencies, 2, 2): from along and across to now.

    The first column, cosine and sine, is also what a value is written with.
    """
    angles = [2 * math.pi * (time * turn % 1.0) for turn in turns.tolist()]
    waves = [(math.cos(angle), math.sin(angle)) for angle in angles]
    return np.array([((cos, sin), (sin, -cos)) for cos, sin in waves])


def _mix(
    layer: Layer, value: Array, gate: Array, seen: Any, gap: float, wave: Array, before: Memory
) -> tuple[Array, Memory]:
    """Outputs (..., width), and the state after the row.

    All but the weights is in float64; of the state the tail mode is kept so as well: it forgets nothing, and
    what rounding takes from it would add up.
    """
    modes, hold, tail = before
    batch, (heads, _, both) = modes.shape[:-3], modes.shape[-3:]
    dtype, n_controls, plain = value.dtype, layer.controls_bias.size, heads - len(wave)
    if value is gate:
        raw = np.dot(gate, layer.both)
        raw += layer.both_bias
        raw = raw.astype(np.float64)
        v = raw[..., n_controls:].reshape(*batch, heads, both)
    else:
        raw = np.dot(gate, layer.controls)
        raw += layer.controls_bias
        raw = raw.astype(np.float64)
        v = np.dot(value, layer.values).astype(np.float64).reshape(*batch, heads, both)
    soft = np.logaddexp(0, raw[..., : 3 * heads])
    step, rate = soft[..., :heads], np.exp(raw[..., 3 * heads : 4 * heads])
    weights = _weights(layer.scores, raw[..., 4 * heads :], soft[..., heads:], batch, heads)
    pace = rate[..., None] * layer.paces
    gain = np.expm1(step[..., None] * pace)
    gain /= pace
    gain *= weights[1]
    if seen is not None:
        gain *= seen[..., None, None]
    if len(wave):
        swing = v[..., plain:, :].reshape(*batch, heads - plain, 2, -1)
        swing *= wave[..., :1]

    moved = modes.astype(np.float64)
    moved[..., -1, :] = tail
    held = hold if gap == 1.0 else gap * hold
    moved *= np.exp(held[..., None] * layer.rates)[..., None]
    moved += gain[..., None] * v[..., None, :]
    y = (weights[0][..., None, :] @ moved)[..., 0, :]  # (..., heads, 2 * channels)
    if len(wave):
        turning = y[..., plain:, :].reshape(*batch, heads - plain, 2, -1)
        turning[:] = wave @ turning
    size = np.add.reduce(y * y, -1, keepdims=True)
    size += both  # and the square root of it is in `out`
    y /= np.sqrt(size, out=size)
    y = y.reshape(*batch, -1).astype(dtype)
    y *= expit(raw[..., n_controls - heads * both : n_controls])
    now = (step * rate).astype(dtype)
    hold = now if seen is None else np.where(seen[..., None], now, hold)
    return np.dot(y, layer.out), (moved.astype(dtype), hold, moved[..., -1, :].copy())


def _weights(
    scores: Array, contents: Array, soft: Array, batch: tuple[int, ...], heads: int
) -> NDArray[np.float64]:
    """Weights of reading and of writing, (2, ..., heads, modes), the gain of writing left out.

    contents: (..., 2 * heads * knots and more).  soft: (..., 2 * heads), softplus of minus the orders.
    """
    basis = np.empty((2, *batch, heads, BASIS + KNOTS))
    log_exponent = np.maximum(_LOG_2 - soft, LEAST).reshape(*batch, 2, heads, 1)
    content = contents[..., : 2 * heads * KNOTS].reshape(*batch, 2, heads, KNOTS)
    if batch:
        log_exponent, content = log_exponent.swapaxes(0, 1), content.swapaxes(0, 1)
    powers, logs = basis[..., : BASIS - 2], basis[..., BASIS - 2 : BASIS]
    powers[...] = np.expm1(log_exponent)
    powers[..., 0] = 1.0
    np.multiply.accumulate(powers, axis=-1, out=powers)
    logs[...] = log_exponent
    logs[..., 1:] *= log_exponent
    basis[..., BASIS:] = content
    weights = basis.reshape(2, -1, BASIS + KNOTS) @ scores
    weights -= np.maximum.reduce(weights, -1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= np.add.reduce(weights, -1, keepdims=True)
    return weights.reshape(2, *batch, heads, -1)


def _shrink(x: Array, eps: float) -> Any:
    """One over the root mean square of x (..., width): (..., 1)."""
    if x.ndim == 1:
        return 1 / math.sqrt(np.dot(x, x).item() / x.size + eps)
    size = np.einsum("...i,...i->...", x, x)
    size /= x.shape[-1]
    size += eps
    return (1 / np.sqrt(size))[..., None]


def _silu(x: Array) -> Array:
    return x * expit(x)
