"""The network as one step in numpy: what `FracNetwork` does to a single row of each series.

One row costs torch its calls, not its arithmetic, and numpy's calls are cheaper. The mathematics is that of
mixer.py, encoder.py and heads.py, line by line. The weights are arrays that share the memory of the network's
own tensors: a change in place is seen at once, and a tensor put in the place of another one by its address.
"""

import math
from itertools import chain
from types import SimpleNamespace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from torch import nn

from fracts.mode_weights import BASIS, EXPONENTS
from fracts.network import FracNetwork
from fracts.series import State

Array = NDArray[np.floating]

_LOWEST = math.log(EXPONENTS[0])


def encode_row(
    network: FracNetwork, state: State, u: Array, time: Array, gap: Array, covariates: Array | None = None
) -> State:
    """The state after one row, in the dtype of the network; `state` itself is left as it was.

    Parameters
    ----------
    state : arrays as `as_arrays` writes them.
    u : (batch,), standardised, NaN where missing.
    time, gap : (batch,) or (1,), steps, float64.
    covariates : (batch, columns), where there are any.

    Notes
    -----
    Follows every change of the network's tensors, not the exchange of a module in it for another one.

    Examples
    --------
    >>> import torch
    >>> from fracts.encoder import FracEncoder
    >>> from fracts.heads import QuantileHead
    >>> from fracts.network import as_arrays
    >>> encoder = FracEncoder(8, 1, 2, 0, 4, (1.0, 100.0), torch.Generator())
    >>> head = QuantileHead(8, torch.tensor([0.1, 0.5, 0.9]), torch.zeros(1, 3, 3))
    >>> network = FracNetwork(encoder, head, np.empty(0))
    >>> state = encode_row(network, as_arrays(encoder.empty(1)), np.array([0.3]), np.zeros(1), np.zeros(1))
    >>> {name: array.shape for name, array in state.items()}
    {'layer_0_modes': (1, 2, 4, 4), 'layer_0_hold': (1, 2), 'features': (1, 8)}
    """
    weights = _mirrored(network)
    encoder = weights.encoder
    dtype = encoder.nothing.dtype
    seen = ~np.isnan(u)[:, None]
    angle = 2 * np.pi * np.remainder(time[:, None, None] * weights.frequencies[:, None], 1.0)
    row = _Row(seen, gap[:, None].astype(dtype), np.cos(angle).astype(dtype), np.sin(angle).astype(dtype))

    u = np.where(seen, u[:, None], 0.0).astype(dtype)
    size = np.abs(u)
    even = np.concatenate([np.log1p(size), 1 / (1 + u * u), np.exp(-size)], -1)
    x, gate = u @ encoder.embed.weight.T, _linear(encoder.even, even)
    if covariates is not None and covariates.shape[1]:
        beside = covariates.astype(dtype) @ encoder.beside.weight.T
        x, gate = x + beside[:, : x.shape[1]], gate + beside[:, x.shape[1] :]
    value = x = np.where(seen, x, encoder.nothing[0])
    gate = _silu(np.where(seen, gate, encoder.nothing[1]))
    after: State = {}
    for i, (mixer, (norm, widen, _, narrow)) in enumerate(zip(encoder.mixers, encoder.blocks, strict=True)):
        modes, hold = f"layer_{i}_modes", f"layer_{i}_hold"
        before = state[modes].astype(dtype, copy=False), state[hold].astype(dtype, copy=False)
        mixed, after[modes], after[hold] = _mix(mixer, value, gate, row, *before)
        x = x + mixed
        x = x + _linear(narrow, _silu(_linear(widen, _normed(norm, x))))
        value = gate = _normed(encoder.norm, x)
    return after | {"features": value}


def head_row(
    network: FracNetwork, features: Array, errors: NDArray[np.float64], ahead: Array | None = None
) -> NDArray[np.float64]:
    """Quantiles (batch, horizon, levels) in units of scale.

    features: (batch, width).  errors: (batch, horizon, levels), those of the linear path.  ahead: (batch,
    horizon, known), where covariates are known in advance.
    """
    head = _mirrored(network).head
    outputs = _linear(head.out, features).reshape(-1, 3, errors.shape[1])
    if ahead is not None and ahead.shape[-1]:
        traits = _silu(_linear(head.traits, ahead.astype(features.dtype)))
        weights = _linear(head.weigh, features).reshape(-1, 3, traits.shape[-1])
        outputs = outputs + weights @ traits.swapaxes(-1, -2)
    shift, below, above = outputs.astype(np.float64)[..., None].swapaxes(0, 1)  # (batch, horizon, 1) each
    centre = errors[..., head.median, None]
    stretch = np.exp(np.where(head.levels < 0.5, below, above))
    quantiles: NDArray[np.float64] = shift + centre + (errors - centre) * stretch
    return quantiles


def due_row(
    network: FracNetwork, features: Array, leads: NDArray[np.int64], known: Array
) -> NDArray[np.float64]:
    """Shift, and log stretches below and above, of a forecast of each of `leads`: (3, batch, leads).

    features: (batch, leads, width), of the rows they were made at.  known: (batch, numbers), what was known
    in advance of the one row that all are for.
    """
    head = _mirrored(network).head
    parts = leads - 1 + len(head.out.bias) // 3 * np.arange(3)[:, None]  # (3, leads)
    outputs = np.einsum("blw,plw->pbl", features, head.out.weight[parts]) + head.out.bias[parts][:, None]
    if known.shape[-1]:
        traits = _silu(_linear(head.traits, known.astype(features.dtype)))
        weights = _linear(head.weigh, features).reshape(*features.shape[:2], 3, -1)
        outputs += np.einsum("blpt,bt->pbl", weights, traits)
    moves: NDArray[np.float64] = outputs.astype(np.float64)
    return moves


class _Row(NamedTuple):
    """Where the row stands in time: the counterpart of `Tokens`."""

    seen: NDArray[np.bool_]  # (batch, 1)
    gap: Array  # (batch or 1, 1)
    cos: Array  # (batch or 1, frequencies, 1)
    sin: Array


def _mix(
    mixer: SimpleNamespace, value: Array, gate: Array, row: _Row, modes: Array, hold: Array
) -> tuple[Array, Array, Array]:
    """Outputs (batch, width), and modes and hold after the row."""
    batch, plain, seasonal, channels = len(value), mixer.n_heads, mixer.n_frequencies, mixer.channels
    heads = plain + seasonal
    controls = _linear(mixer.controls, gate)
    step = np.logaddexp(0, controls[:, :heads])
    order = controls[:, heads : 3 * heads].reshape(batch, 2, heads)  # of reading, of writing
    rate = np.exp(controls[:, 3 * heads : 4 * heads])
    content = controls[:, 4 * heads :].reshape(batch, 2, heads, -1)
    score = np.concatenate([_basis(order), content], -1) @ mixer.scores
    c, b = _softmax(score).swapaxes(0, 1)  # (batch, heads, modes) each
    b = b * _gain(mixer.rates, step, rate) * row.seen[..., None]

    v = value @ mixer.value.weight.T
    still = v[:, : 2 * plain * channels].reshape(batch, plain, 2 * channels)
    swing = v[:, 2 * plain * channels :].reshape(batch, seasonal, channels)
    v = np.concatenate([still, np.concatenate([swing * row.cos, swing * row.sin], -1)], -2)
    modes = _moved(modes, (row.gap * hold)[..., None] * mixer.rates, b[..., None] * v[..., None, :])
    y = (c[..., None, :] @ modes)[..., 0, :]  # (batch, heads, 2 * channels)

    along, across = y[:, plain:, :channels], y[:, plain:, channels:]
    now = np.concatenate([row.cos * along + row.sin * across, row.sin * along - row.cos * across], -1)
    y = np.concatenate([y[:, :plain], now], -2)
    y = (y / np.sqrt(1 + _mean_square(y))).reshape(batch, -1)
    mixed: Array = (y * expit(_linear(mixer.gate, gate))) @ mixer.out.weight.T
    return mixed, modes, np.where(row.seen, step * rate, hold)


def _moved(modes: Array, fade: Array, written: Array) -> Array:
    """`modes` after a decay by `exp(-fade)` and a write, rounded as `fracts.kernels.step.move` rounds it."""
    whole = fade < math.log(2)
    rest = np.where(whole, np.expm1(-fade), np.exp(-fade))
    moved: Array = whole[..., None] * modes + (rest[..., None] * modes + written)
    return moved


def _basis(order: Array) -> Array:
    """The basis of `fracts.mode_weights.exponent_basis` for the exponent 2 * sigmoid(order): (..., basis)."""
    log_exponent = np.maximum(math.log(2) - np.logaddexp(0, -order), _LOWEST)
    basis = np.empty((*order.shape, BASIS), order.dtype)
    basis[..., : BASIS - 2] = np.expm1(log_exponent)[..., None] ** np.arange(BASIS - 2)
    basis[..., -2] = log_exponent
    basis[..., -1] = log_exponent**2
    return basis


def _gain(rates: Array, step: Array, rate: Array) -> Array:
    tail = step[..., None]
    pace = rate[..., None] * rates[:-1]
    return np.concatenate([-np.expm1(-tail * pace) / pace, tail], -1)


def _linear(layer: SimpleNamespace, x: Array) -> Array:
    y: Array = x @ layer.weight.T
    y += layer.bias
    return y


def _normed(norm: SimpleNamespace, x: Array) -> Array:
    normed: Array = x / np.sqrt(_mean_square(x) + norm.eps) * norm.weight
    return normed


def _mean_square(x: Array) -> Array:
    mean: Array = np.einsum("...i,...i->...", x, x)[..., None] / x.shape[-1]
    return mean


def _softmax(score: Array) -> Array:
    weight: Array = np.exp(score - score.max(-1, keepdims=True))
    weight /= weight.sum(-1, keepdims=True)
    return weight


def _silu(x: Array) -> Array:
    return x * expit(x)


class _Mirror:
    """A network's tensors as arrays that share their memory, at the names they have there."""

    def __init__(self, network: FracNetwork) -> None:
        self.owners = [o for module in network.modules() for o in (module._parameters, module._buffers)]
        self.tree = _tree(network)
        self.known = self.addresses()

    def addresses(self) -> list[int]:
        """Where the network's tensors lie now: never where a lost one lay, whose array keeps its memory."""
        return [tensor.data_ptr() for owner in self.owners for tensor in owner.values() if tensor is not None]


_MIRRORS: WeakKeyDictionary[FracNetwork, _Mirror] = WeakKeyDictionary()


def _mirrored(network: FracNetwork) -> Any:
    mirror = _MIRRORS.get(network)
    if mirror is None or mirror.addresses() != mirror.known:
        mirror = _MIRRORS[network] = _Mirror(network)
    return mirror.tree


def _tree(module: nn.Module) -> Any:
    children = {name: _tree(child) for name, child in module.named_children()}
    if isinstance(module, nn.ModuleList | nn.Sequential):
        return list(children.values())
    tensors = chain(module.named_parameters(recurse=False), module.named_buffers(recurse=False))
    arrays = {name: tensor.detach().numpy() for name, tensor in tensors}
    numbers = {name: x for name, x in vars(module).items() if isinstance(x, int | float)}
    return SimpleNamespace(**numbers, **arrays, **children)
