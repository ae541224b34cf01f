"""The network of `FracForecaster`: encoders side by side and a head, and its state as numpy arrays."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fracts.encoder import FARTHEST, EncoderState, FracEncoder
from fracts.heads import QuantileHead
from fracts.mixer import MixerState, Tokens
from fracts.series import State

_LATER = "least", "most", "share", "level"  # of the head, which older files have not


class FracNetwork(nn.Module):
    """Quantiles of every lead at every row, around what it is added to and in units of scale.

    encoders: alike, each of which reads the series on its own; the head has the features of all.
    frequencies: (frequencies,), radians per step, of the seasonal heads.
    """

    frequencies: Tensor

    def __init__(
        self, encoders: Sequence[FracEncoder], head: QuantileHead, frequencies: NDArray[np.float64]
    ) -> None:
        super().__init__()
        self.encoders, self.head = nn.ModuleList(encoders), head
        self.register_buffer("frequencies", torch.from_numpy(frequencies / (2 * np.pi)))  # turns a step

    @classmethod
    def mean_of(cls, networks: "Sequence[FracNetwork]") -> "FracNetwork":
        """The `networks` as one, whose shift and log stretches are the mean of theirs; one stays as it is."""
        if len(networks) == 1:
            return networks[0]
        encoders = [network.encoders[0] for network in networks]
        whole = cls(encoders, QuantileHead.mean_of([n.head for n in networks]), np.empty(0))  # type: ignore[arg-type]
        whole.frequencies = networks[0].frequencies
        return whole.eval()

    @property
    def dtype(self) -> torch.dtype:
        """That of the weights."""
        return self.encoders[0].nothing.dtype  # type: ignore[return-value]

    def empty(self, batch: int) -> EncoderState:
        """The state before any row: layers and features of one encoder after the other."""
        return _side_by_side([encoder.empty(batch) for encoder in self.encoders])  # type: ignore[operator]

    def forward(
        self,
        u: Tensor,
        times: Tensor,
        gap: Tensor,
        group: Tensor,
        covariates: Tensor | None = None,
        ahead: Tensor | None = None,
        noise: Tensor | None = None,
    ) -> tuple[Tensor, EncoderState]:
        """Quantiles (batch, time, horizon, levels) from the first row on, and the state after the last.

        ahead: (batch, time, horizon, known), where covariates are known in advance.  group, noise: (batch,).
        """
        features, state = self.features(u, times, gap, covariates)
        return self.head(features, group, ahead, noise), state

    def features(
        self, u: Tensor, times: Tensor, gap: Tensor, covariates: Tensor | None = None
    ) -> tuple[Tensor, EncoderState]:
        """`encode` from the first row on."""
        return self.encode(u, times, gap, self.empty(len(u)), covariates)

    def encode(
        self, u: Tensor, times: Tensor, gap: Tensor, state: EncoderState, covariates: Tensor | None = None
    ) -> tuple[Tensor, EncoderState]:
        """Features (batch, time, width) and the state after the last row.

        u: (batch, time), standardised, NaN where missing.  times, gap: (batch, time), steps, float64.
        covariates: (batch, time, columns), where there are any.
        """
        dtype, n_layers = self.dtype, len(state.layers) // len(self.encoders)
        observed = ~u.isnan()
        # The phase is taken in float64: a float32 loses it after 10^5 steps.
        angle = 2 * np.pi * torch.remainder(times[..., None] * self.frequencies.double(), 1.0)
        wave = torch.stack([angle.cos(), angle.sin()], -1).to(dtype)
        tokens = Tokens(observed, gap.to(dtype), wave)
        beside = None if covariates is None else covariates.clamp(-FARTHEST, FARTHEST).to(dtype)
        values, features, after = torch.where(observed, u, 0.0).to(dtype), [], []
        for i, encoder in enumerate(self.encoders):
            own = EncoderState(state.layers[i * n_layers : (i + 1) * n_layers], state.features)
            token, own = encoder(values, tokens, own, beside)
            features.append(token)
            after.append(own)
        return torch.cat(features, -1), _side_by_side(after)


def _side_by_side(states: Sequence[EncoderState]) -> EncoderState:
    layers = tuple(layer for state in states for layer in state.layers)
    return EncoderState(layers, torch.cat([state.features for state in states], -1))


@contextmanager
def one_thread() -> Iterator[None]:
    """A second thread gains little on matrices of this size, and waits ten times as long for busy cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def layer_names(i: int) -> tuple[str, str, str]:
    """Names that the arrays of layer `i` have in a state: modes, hold, and the tail mode in float64."""
    return f"layer_{i}_modes", f"layer_{i}_hold", f"layer_{i}_tail"


def as_arrays(state: EncoderState) -> State:
    """The state as numpy arrays of their own memory, series first.

    The tail mode, the last one, forgets nothing: it stands there once more in float64, for single rows.
    """
    tensors = {"features": state.features}
    for i, layer in enumerate(state.layers):
        parts = layer.modes, layer.hold, layer.modes[..., -1, :].double()
        tensors |= dict(zip(layer_names(i), parts, strict=True))
    return {name: tensor.numpy().copy() for name, tensor in tensors.items()}


def held_now(arrays: State, n_layers: int, *, silent: bool) -> State:
    """The state of a file as it is held now: the first files of format 1 lack the tail modes, and those from
    before a silent network was left out have its state."""
    if silent:
        names = {"features", *(name for i in range(n_layers) for name in layer_names(i))}
        return {name: array for name, array in arrays.items() if name not in names}
    missing = [names for names in map(layer_names, range(n_layers)) if names[2] not in arrays]
    return arrays | {tail: arrays[modes][..., -1, :].astype(np.float64) for modes, _, tail in missing}


def as_state(arrays: State, n_layers: int, dtype: torch.dtype) -> EncoderState:
    """The state that `as_arrays` wrote, in the `dtype` of the network."""

    def tensor(name: str) -> Tensor:
        return torch.from_numpy(arrays[name]).to(dtype)

    layers = tuple(MixerState(tensor(f"layer_{i}_modes"), tensor(f"layer_{i}_hold")) for i in range(n_layers))
    return EncoderState(layers, tensor("features"))


def as_weights(network: FracNetwork) -> State:
    """All tensors of the network as numpy arrays, at the names they have there."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in network.state_dict().items()}


def load_weights(network: FracNetwork, weights: State) -> None:
    """Put in place what `as_weights` gave; ValueError unless all fit, in one of float32 and float64.

    The first files of format 1 have no range that the head stays within, and no share of what it says; their
    one encoder has no number.
    """
    weights = {re.sub(r"^encoder\.", "encoders.0.", name): array for name, array in weights.items()}
    dtypes = {weights[name].dtype for name, _ in network.named_parameters() if name in weights}
    if dtypes == {np.dtype(np.float64)}:
        network.double()
    expected = as_weights(network)
    weights = {f"head.{name}": expected[f"head.{name}"] for name in _LATER} | weights
    for name in sorted(expected.keys() | weights.keys()):
        here, there = (w[name] if name in w else np.empty(0) for w in (expected, weights))
        if here.shape != there.shape or here.dtype != there.dtype:
            raise ValueError(
                f"the weights {name} are {there.dtype} of shape {there.shape}; the parameters ask for "
                f"{here.dtype} of shape {here.shape}. Leave parameters as they were at fit."
            )
    network.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
