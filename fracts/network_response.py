"""What a past value weighs in the median by way of the network: the mean over typical rows.

The states of the network are linear in the series, but its controls hang on every value, so it answers an
impulse differently at every row. The answer is measured: a value is moved a little, and what that does to the
shift of the median is followed from row to row.
"""

import copy
import itertools

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fracts.encoder import EncoderState
from fracts.network import FracNetwork
from fracts.scaling import Array, Scaler
from fracts.series import Panel

Ints = NDArray[np.int64]

_ROWS = 8192  # kept of a history, of each series
_SERIES = 4  # kept of a panel
_FOLLOWED = 8192  # rows behind the impulses that are followed equally far
_SHORTEST = 32  # rows that impulses are followed for, where fewer than asked for
_MOST = 256  # impulses followed equally far
_PUSH = 1e-6  # units of scale; the rounding of float64 over it is far below any answer
_SEEN = 10  # values behind a centre and a scale worth an impulse


def typical_rows(panel: Panel) -> Panel:
    """The last rows of a few evenly spread series, a row a step: NaN, and covariates of 0, for none."""
    chosen = np.unique(np.linspace(0, len(panel.values) - 1, _SERIES).astype(np.int64))
    steps = np.rint(panel.times - panel.times[-1]).astype(np.int64)
    size = min(1 - int(steps[0]), _ROWS)
    inside = steps > -size
    values = np.full((chosen.size, size), np.nan)
    values[:, steps[inside] - 1] = panel.values[np.ix_(chosen, inside)]
    covariates = np.zeros((chosen.size, size, panel.covariates.shape[-1]))
    covariates[:, steps[inside] - 1] = panel.covariates[np.ix_(chosen, inside)]
    return Panel(values, panel.times[-1] + np.arange(1.0 - size, 1.0), covariates)


@torch.no_grad()
def network_response(network: FracNetwork, scaler: Scaler, rows: Panel, lags: Ints, lead: int) -> Array:
    """Derivative (lags,) of the shift of the median of `lead` by the value at each lag; the scale is fixed.

    The mean over impulses spread over `rows` but for their first quarter, more of them for shorter lags. NaN
    beyond half the rows, where no impulse was followed so far, and everywhere if there are too few values.
    Covariates known in advance stand at their mean.
    """
    network = copy.deepcopy(network).double()
    network.head.silence("stretch")
    if network.head.silent:
        return np.zeros(lags.size)
    sums = scaler.run(scaler.empty(len(rows.values)), rows.values, np.ones(rows.times.size))
    centre, scale = scaler.read(sums)
    u, weight = (rows.values - centre) / scale, sums[..., 0]
    ready = ~np.isnan(u) & (weight >= _SEEN)
    longest = rows.times.size // 2  # whatever the lags, or one would change the weight of another
    begins = _impulses(len(u), rows.times.size, longest)
    seen = Panel(u, rows.times, rows.covariates)
    states, still = _states_before(network, seen, [begin for begin, _ in begins], lead)

    total, count = np.zeros(longest), np.zeros(longest)
    for (begin, length), state in zip(begins, states, strict=True):
        window, part = slice(begin, begin + length), seen.part(begin, begin + length)
        # From its row on the value moves the centre too, and so every number that the network sees.
        moved = -np.exp(-np.arange(length) / scaler.timescale) / np.maximum(weight[:, window], 1.0)
        moved[:, 0] += 1.0
        pushed = Panel(part.values + _PUSH * moved, part.times, part.covariates)
        features, _ = _encode(network, pushed, state)
        answer = (network.head.shift_of(features, lead).numpy() - still[:, window]) / _PUSH
        answer[np.isnan(part.values)] = 0.0  # the linear path speaks alone there
        total[:length] += answer[ready[:, begin]].sum(0)
        count[:length] += ready[:, begin].sum()
    known = lags <= np.count_nonzero(count)
    response = np.full(lags.size, np.nan)
    response[known] = (total / np.maximum(count, 1))[lags[known] - 1]
    return response


def _impulses(n_series: int, n_rows: int, longest: int) -> list[tuple[int, int]]:
    """Row where each impulse begins, and for how many rows it is followed, in order of the rows."""
    found = set()
    for length in (longest // 4**k for k in range(8)):
        if length < min(longest, _SHORTEST):
            break
        count = np.clip(_FOLLOWED // (n_series * length), 2, _MOST)
        begins = np.linspace(max(1, n_rows // 4), n_rows - length, count)
        found |= {(int(begin), length) for begin in begins}
    return sorted(found)


def _states_before(
    network: FracNetwork, seen: Panel, begins: list[int], lead: int
) -> tuple[list[EncoderState], Array]:
    """State before each of the rows `begins`, ascending, and the shift (series, rows) at every row."""
    state, states, shifts = network.empty(len(seen.values)), [], []
    for begin, end in itertools.pairwise([0, *begins, seen.times.size]):
        if end > begin:
            features, state = _encode(network, seen.part(begin, end), state)
            shifts.append(network.head.shift_of(features, lead).numpy())
        states.append(state)
    return states[:-1], np.concatenate(shifts, axis=1)


def _encode(network: FracNetwork, seen: Panel, state: EncoderState) -> tuple[Tensor, EncoderState]:
    """Features (series, rows, width) of standardised rows a step apart, and the state after them."""
    clock = torch.from_numpy(seen.times).expand(seen.values.shape)
    u, covariates = torch.from_numpy(seen.values), torch.from_numpy(seen.covariates)
    return network.encode(u, clock, torch.ones_like(clock), state, covariates)
