"""The weights of a network as its single step wants them, copied out of torch.

Matrices that read the same numbers stand side by side, and a norm's weights are in the matrix that follows.
"""

from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fracts.network import FracNetwork, layer_names

Array = NDArray[np.floating]

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
    output's gate, one beside the other.  values: those of a seasonal head twice, for cosine and sine.
    """

    controls: Array  # (width, controls + gates)
    controls_bias: Array  # (controls + gates,)
    values: Array  # (width, heads * 2 * channels)
    both: Array  # (width, controls + gates + values), for what is written and gated by the same
    both_bias: Array
    rates: NDArray[np.float64]  # (modes,), with a minus
    paces: NDArray[np.float64]  # (modes,), the same with a tiny number for 0
    scores: NDArray[np.float64]  # (2, basis + knots, modes)
    out: Array  # (gates, width)
    widen: Array  # (width, 2 * width)
    widen_bias: Array  # (2 * width,)
    narrow: Array  # (2 * width, width)
    narrow_bias: Array  # (width,)
    block_eps: float
    eps: float


class Encoding(NamedTuple):
    """The weights of an encoder."""

    embedding: Embedding
    beside: Array  # (columns, 2 * width)
    layers: tuple[Layer, ...]
    packed: Array  # all of these, as compiled code takes them
    names: tuple[str, ...]  # of its arrays in a state
    norm: Array  # (width,)


class Plan(NamedTuple):
    """The weights of a network; features are those of its encoders side by side."""

    encoders: tuple[Encoding, ...]
    head: Array  # (features, 3 * horizon)
    shift: Array  # (features, horizon), its first part
    head_bias: Array  # (3 * horizon,)
    share: Array  # (3, horizon), of what traits add
    least: Array  # (3, horizon), what the head says stays above
    most: Array  # (3, horizon), and below
    traits: Array  # (known, traits)
    traits_bias: Array  # (traits,)
    weigh: Array  # (features, 3 * traits)
    weigh_bias: Array  # (3 * traits,)
    levels: Array  # (levels,)
    median: int  # place among the levels

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the arrays of all encoders in a state."""
        return tuple(chain(*(encoder.names for encoder in self.encoders)))

    @property
    def turns(self) -> NDArray[np.float64]:
        """Of the seasonal heads, a step."""
        return self.encoders[0].embedding.turns

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the weights."""
        return self.encoders[0].norm.dtype


def plan_of(network: FracNetwork) -> Plan:
    """The weights of `network` as they are now.

    Examples
    --------
    >>> from fracts.encoder import FracEncoder
    >>> from fracts.heads import QuantileHead
    >>> encoder = FracEncoder(8, 1, 2, 0, 4, (1.0, 100.0), torch.Generator())
    >>> head = QuantileHead(8, torch.tensor([0.1, 0.5, 0.9]), torch.zeros(1, 3, 3))
    >>> plan_of(FracNetwork([encoder], head, np.empty(0))).encoders[0].layers[0].values.shape
    (8, 8)
    """
    head: Any = network.head
    nobody = head.out.bias.detach().new_zeros(0)
    with torch.no_grad():
        share, horizon = head.share.flatten(), head.share.shape[1]
        weight = head.out.weight.T * share
        turns = _array(network.frequencies.double())
        return Plan(
            encoders=tuple(_encoding(one, turns, place) for place, one in enumerate(network.encoders)),
            head=_array(weight),
            shift=_array(weight[:, :horizon]),
            head_bias=_array(head.out.bias * share + head.level.flatten()),
            share=_array(head.share),
            least=_array(head.least),
            most=_array(head.most),
            traits=_array(nobody.view(0, 0) if head.traits is None else head.traits.weight.T),
            traits_bias=_array(nobody if head.traits is None else head.traits.bias),
            weigh=_array(nobody.view(0, 0) if head.weigh is None else head.weigh.weight.T),
            weigh_bias=_array(nobody if head.weigh is None else head.weigh.bias),
            levels=_array(head.levels),
            median=int(head.median),
        )


def _encoding(encoder: Any, turns: NDArray[np.float64], place: int) -> Encoding:
    """The weights of the encoder that stands at `place` among those of its network."""
    n_layers, width = len(encoder.mixers), encoder.nothing.shape[1]
    norms = [torch.ones_like(encoder.norm.weight)] + [encoder.norm.weight] * (n_layers - 1)
    parts = zip(encoder.mixers, encoder.blocks, norms, strict=True)
    layers = [_layer(mixer, block, norm, encoder.norm.eps) for mixer, block, norm in parts]
    embedding = Embedding(
        turns=turns,
        embed=_array(encoder.embed.weight[:, 0]),
        even=_array(encoder.even.weight.T),
        even_bias=_array(encoder.even.bias),
        nothing=_array(encoder.nothing),
    )
    norm = _array(encoder.norm.weight)
    names = map(layer_names, range(place * n_layers, (place + 1) * n_layers))
    nobody = encoder.nothing.new_zeros(0, 2 * width)
    return Encoding(
        embedding=embedding,
        beside=_array(nobody if encoder.beside is None else encoder.beside.weight.T),
        layers=tuple(layers),
        packed=_packed(embedding, norm, layers),
        names=tuple(chain(*zip(*names, strict=True))),
        norm=norm,
    )


def _layer(mixer: Any, block: Any, norm: Tensor, eps: float) -> Layer:
    """norm: (width,), the weights of the norm before the layer."""
    heads, plain = mixer.n_heads + mixer.n_frequencies, 2 * mixer.n_heads * mixer.channels
    sign = torch.ones_like(mixer.controls.bias)
    sign[heads : 3 * heads] = -1.0
    first, widen, _, narrow = block
    controls = (torch.cat([mixer.controls.weight * sign[:, None], mixer.gate.weight]) * norm).T
    bias = torch.cat([mixer.controls.bias * sign, mixer.gate.bias])
    still, swing = (mixer.value.weight * norm).T.tensor_split([plain], dim=1)
    twice = swing.unflatten(1, (mixer.n_frequencies, 1, mixer.channels)).expand(-1, -1, 2, -1).flatten(1)
    values = torch.cat([still, twice], 1)
    return Layer(
        controls=_array(controls),
        controls_bias=_array(bias),
        values=_array(values),
        both=_array(torch.cat([controls, values], 1)),
        both_bias=_array(torch.cat([bias, bias.new_zeros(values.shape[1])])),
        rates=_array(-mixer.rates.double()),
        paces=_array(-mixer.rates.double().clamp(min=_SLOWEST)),
        scores=_array(mixer.scores.double()),
        out=_array(mixer.out.weight.T * (2 * mixer.channels) ** 0.5),
        widen=_array((widen.weight * first.weight).T),
        widen_bias=_array(widen.bias),
        narrow=_array(narrow.weight.T),
        narrow_bias=_array(narrow.bias),
        block_eps=first.eps,
        eps=eps,
    )


def _packed(embedding: Embedding, norm: Array, layers: list[Layer]) -> Array:
    """The weights one after the other, as `fracts.compiled_network` takes them apart again.

    One array is handed to compiled code sooner than many.
    """
    left_out = {"turns", "both", "both_bias"}
    parts = [embedding._asdict() | {"norm": norm}, *(layer._asdict() for layer in layers)]
    arrays = [array for part in parts for name, array in part.items() if name not in left_out]
    return np.concatenate([np.ravel(array) for array in arrays]).astype(norm.dtype)


def _array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().cpu().contiguous().numpy().copy()
