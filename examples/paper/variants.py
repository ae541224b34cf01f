"""FRAC with one part taken out or put back: what the ablations compare.

One idea: a variant is the layer of `fracts` with some of its buffers set otherwise, so that all else is the
product's own code.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from fracts.memory import mode_timescales, power_law_weights
from fracts.mixer import FracMixer, linear
from fracts.mode_weights import BASIS, EXPONENTS, exponent_basis

TIMESCALES = (1.0, 131072.0)
NEVER = -30.0  # log weight of a mode that takes no part


def one_order(mixer: FracMixer) -> None:
    """a = 1: reading and writing have the same exponent, the largest, for every token."""
    heads = mixer.n_heads + mixer.n_frequencies
    orders = slice(heads, 3 * heads)
    with torch.no_grad():
        mixer.controls.weight[orders] = 0.0
        mixer.controls.bias[orders] = -NEVER
    free = torch.ones(len(mixer.controls.weight))
    free[orders] = 0.0
    mixer.register_buffer("free", free)
    mixer.controls.weight.register_hook(lambda grad: grad * mixer.free[:, None])
    mixer.controls.bias.register_hook(lambda grad: grad * mixer.free)


def no_write_prior(mixer: FracMixer) -> None:
    mixer.scores[1, :BASIS] = 0.0


def free_timescales(mixer: FracMixer) -> None:
    """No priors, and rates that are learned."""
    mixer.scores[:, :BASIS] = 0.0
    rates = mixer.rates
    del mixer.rates
    mixer.rates = nn.Parameter(rates)
    parametrize.register_parametrization(mixer, "rates", _Positive())


class _Positive(nn.Module):
    """Rates from their logarithms; the tail mode keeps its rate of 0."""

    def forward(self, logs: Tensor) -> Tensor:
        return torch.cat([logs[:-1].exp(), torch.zeros_like(logs[-1:])])

    def right_inverse(self, rates: Tensor) -> Tensor:
        return torch.cat([rates[:-1].log(), torch.zeros_like(rates[-1:])])


def no_tail_mode(mixer: FracMixer) -> None:
    mixer.scores[:, 0, -1] = NEVER


def asymptotic_weights(mixer: FracMixer) -> None:
    """Half of tau^-g on either side, without a tail mode, which has no such weight."""
    half = 0.5 * mixer.rates[:-1].log()
    log_gain = mixer.scores[0, 0] - mixer.scores[1, 0]
    mixer.scores[:, :BASIS] = 0.0
    # The basis begins with 1 and g - 1, so g times the half is both of them times it.
    mixer.scores[:, :2, :-1] = half
    mixer.scores[1, 0] -= log_gain
    no_tail_mode(mixer)


def uniform_grid(mixer: FracMixer) -> None:
    """Timescales evenly spaced, not geometrically, between the same ends, with the best weights for them."""
    grid = mode_timescales(*TIMESCALES, mixer.n_modes)[:-1]
    tau = np.append(np.linspace(grid[0], grid[-1], grid.size), np.inf)
    exponents = np.geomspace(*EXPONENTS, 65)
    log_weights = np.log([power_law_weights(tau, g, *TIMESCALES) for g in exponents])
    basis = exponent_basis(torch.from_numpy(np.log(exponents))).numpy().T
    half = 0.5 * np.linalg.lstsq(basis, log_weights)[0]
    unit_gain = np.append(-np.expm1(-1 / tau[:-1]) * tau[:-1], 1.0)
    mixer.rates.copy_(torch.from_numpy(1 / tau))
    mixer.scores[:, :BASIS] = torch.from_numpy(half)
    mixer.scores[1, 0] -= torch.from_numpy(np.log(unit_gain)).float()


def content_of_every_mode(mixer: FracMixer) -> None:
    """A content for each mode, also for those slower than the training windows."""
    heads, draws = mixer.n_heads + mixer.n_frequencies, torch.Generator().manual_seed(0)
    start = mixer.controls.bias[: 4 * heads].detach()
    n_rows = heads * (4 + 2 * mixer.n_modes)
    mixer.controls = linear(mixer.controls.in_features, n_rows, draws, scale=0.1)
    with torch.no_grad():
        mixer.controls.bias[: 4 * heads] = start
    own = torch.eye(mixer.n_modes).expand(2, -1, -1)
    mixer.scores = torch.cat([mixer.scores[:, :BASIS], own], 1)


def no_content(mixer: FracMixer) -> None:
    """Reading and writing follow the prior of the exponent alone."""
    mixer.scores[:, BASIS:] = 0.0


CHANGES: dict[str, Callable[[FracMixer], None]] = {
    "a = 1": one_order,
    "no write prior": no_write_prior,
    "no priors, free timescales": free_timescales,
    "asymptotic weights, no tail mode": asymptotic_weights,
    "no tail mode": no_tail_mode,
    "uniform grid": uniform_grid,
    "a content term for every mode": content_of_every_mode,
    "no content terms": no_content,
}
SIZES = {"M = 8": 8, "M = 32": 32}
