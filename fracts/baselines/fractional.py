"""ARFIMA and its seasonal kin as a linear model of fixed size.

    (1 - ar B - ...) (1 - B)^d (1 - B^s)^D (y - mean) = (1 + ma B + ...) e,   |d|, |D|, |d + D| < 1/2

One idea: the weights of past values in the fractional difference, d Gamma(j - d) / (Gamma(1 - d) j!), are a
mixture of exponentials with weights of one sign, so the last value and 23 modes stand for all of the past.
They differ from each weight up to lag 131,072 by at most 3 in 100,000.
With B^s for B the modes count seasons, one set of them for each place in the season.

Sources: Hosking (1981), Biometrika 68(1); Porter-Hudak (1990), Journal of the American Statistical
Association 85 (the seasonal difference).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import gamma

from fracts.baselines.statespace import StateSpace
from fracts.positive_fit import positive_fit
from fracts.projection import fractional_weights
from fracts.records import record

Array = NDArray[np.float64]

N_MODES = 24
LONGEST = 131072  # lag to which the weights are kept
SEASONAL_MODES = 16
_FASTEST, _SLOWEST = 0.3, 6.0  # timescales of the grid, in units of lag 1 and of the longest lag
_OCTAVES = 40  # below half a turn a step, of the integral of a spectrum


@record
@dataclass(frozen=True)
class Process:
    """What an ARFIMA model is but for mean and variance: d, D with its season (1: none), ar (p,), ma (q,)."""

    d: float
    seasonal_d: float
    season_length: int
    ar: Array
    ma: Array

    def transfer(self, angle: Array) -> NDArray[np.complex128]:
        """Response of y to e at frequencies `angle` (n,), in radians per step."""
        back = np.exp(-1j * angle)
        short = np.polyval(np.append(self.ma[::-1], 1.0), back) / np.polyval(
            np.append(-self.ar[::-1], 1.0), back
        )
        response: NDArray[np.complex128] = short * (1 - back) ** -self.d
        if self.season_length > 1:
            response = response * (1 - back**self.season_length) ** -self.seasonal_d
        return response


@record
@dataclass(frozen=True)
class FractionalModes:
    """Weights of past values: `weights` * (1 - `keep`) * `keep`^(lag - 1), summed over modes, from lag 1 on.

    Both have shape (mode,). The first mode keeps nothing: it is the last value.

    Examples
    --------
    >>> modes = fractional_modes(0.4)
    >>> modes.kernel(np.array([1, 2, 3])).round(4)
    array([0.4  , 0.12 , 0.064])
    """

    keep: Array
    weights: Array

    def kernel(self, lags: NDArray[np.integer]) -> Array:
        """Weights of the values `lags` steps back."""
        weights: Array = self.keep ** (lags[..., None] - 1.0) @ (self.weights * (1 - self.keep))
        return weights


def fractional_modes(d: float, n_modes: int = N_MODES, longest: int = LONGEST) -> FractionalModes:
    """Modes of the fractional difference of order d, -1/2 < d < 1/2, good to the lag `longest`."""
    lags = np.unique(np.rint(np.geomspace(2, longest, 400)))
    timescales = np.geomspace(_FASTEST, _SLOWEST * longest, n_modes - 1)
    keep, rates = np.exp(-1 / timescales), 1 / timescales
    if d == 0:
        return FractionalModes(np.append(0.0, keep), np.zeros(n_modes))
    # The density of decay rates whose mixture the weights are: a Beta integral in exp(-rate).
    density = abs(d) * np.expm1(rates) ** d / (gamma(1 - d) * gamma(1 + d))
    guess = density * rates * -np.gradient(np.log(rates))
    fitted = (
        np.sign(d) * positive_fit(keep ** lags[:, None], np.abs(fractional_weights(d, lags)), guess) * keep
    )
    return FractionalModes(np.append(0.0, keep), np.append(d - fitted.sum(), fitted / (1 - keep)))


def fractional_space(process: Process, variance: float, differences: int) -> StateSpace:
    """`process` as a model of one series.

    Without differences its mean is a state, unknown at the start; with them the last levels are, and the mean
    of the differences is zero. The past before the first value has the stationary law of the process; with a
    seasonal D it is taken as zero.
    """
    body = _Body(process)
    inner, gain = _probed(body.step, body.size)
    spread = np.zeros((body.size, body.size)) if process.season_length > 1 else body.stationary()
    constants = max(differences, 1)
    size = constants + body.size
    transition, noise_gain, design = np.zeros((size, size)), np.zeros(size), np.zeros(size)
    design[constants:] = body.row
    transition[constants:, constants:], noise_gain[constants:] = inner, gain
    if differences == 0:
        design[0] = transition[0, 0] = 1.0
    for order in range(differences):
        # The difference of this order grows by all those of higher order, the last of which is the process.
        design[order] = 1.0
        transition[order, order:constants] = 1.0
        transition[order, constants:] = body.row
        noise_gain[order] = 1.0
    start_spread, diffuse = np.zeros((size, size)), np.zeros((size, size))
    start_spread[constants:, constants:] = spread
    diffuse[:constants, :constants] = np.eye(constants)
    return StateSpace(
        transition[None],
        design[None],
        np.outer(noise_gain, noise_gain)[None],
        noise_gain[None],
        np.ones(1),
        np.array([variance]),
        np.zeros((1, size)),
        start_spread[None],
        diffuse[None],
    )


class _Body:
    """The stationary part; its state is seasonal modes, modes, past differences (p,), past errors (q,)."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.modes = fractional_modes(process.d)
        seasons = process.season_length if process.season_length > 1 else 0
        self.seasonal = fractional_modes(process.seasonal_d, SEASONAL_MODES, LONGEST // process.season_length)
        ends = np.cumsum([0, seasons * SEASONAL_MODES, N_MODES, process.ar.size, process.ma.size])
        self.size = int(ends[-1])
        self._places = [slice(*pair) for pair in pairwise(ends)]
        self.row = _row(self._places, self.size, self)

    def step(self, state: Array, error: float) -> Array:
        """The state after one more error."""
        banks, modes, differences, errors = (state[place] for place in self._places)
        value = self.row @ state + error
        after = []
        if banks.size:
            due = banks[:SEASONAL_MODES]
            moved = self.seasonal.keep * due + (1 - self.seasonal.keep) * value
            value -= self.seasonal.weights @ due
            after.append(np.concatenate([banks[SEASONAL_MODES:], moved]))
        after.append(self.modes.keep * modes + (1 - self.modes.keep) * value)
        value -= self.modes.weights @ modes
        after += [np.append(value, differences)[: differences.size], np.append(error, errors)[: errors.size]]
        return np.concatenate(after)

    def stationary(self) -> Array:
        """Covariance of the state under the stationary law, in units of the error variance.

        The integral of its spectrum over frequency, with Gauss' nodes on every octave down to where the
        spectrum is a power, and that power below.
        """
        angle, weight = _nodes()
        back = np.exp(-1j * angle)
        response = self.process.transfer(angle)
        keep = self.modes.keep[:, None]
        by_mode = (1 - keep) * back / (1 - keep * back) * response
        past = back ** np.arange(1, self.process.ar.size + 1)[:, None]
        differenced = past * response * (1 - back) ** self.process.d
        errors = back ** np.arange(1, self.process.ma.size + 1)[:, None]
        filters = np.concatenate([by_mode, differenced, errors])
        covariance: Array = ((filters * weight) @ filters.conj().T).real / np.pi
        lowest, d = angle[0], self.process.d
        below = abs(self.process.transfer(angle[:1])[0]) ** 2 * lowest / ((1 - 2 * d) * np.pi)
        covariance[:N_MODES, :N_MODES] += below
        return covariance


def _row(places: Sequence[slice], size: int, body: _Body) -> Array:
    """What each state adds to the next value."""
    row = np.zeros(size)
    banks, modes, differences, errors = places
    if banks.stop:
        row[:SEASONAL_MODES] = body.seasonal.weights
    row[modes], row[differences], row[errors] = body.modes.weights, body.process.ar, body.process.ma
    return row


def _probed(step: Callable[[Array, float], Array], size: int) -> tuple[Array, Array]:
    """Matrix (size, size) and gain (size,) of a linear `step` of state and error."""
    columns = [step(unit, 0.0) for unit in np.eye(size)]
    return np.array(columns).reshape(size, size).T, step(np.zeros(size), 1.0)


def _nodes() -> tuple[Array, Array]:
    """Nodes and weights of an integral over frequencies from almost 0 to pi, finer where roots may lie."""
    edges = np.pi * np.concatenate([2.0 ** np.arange(-_OCTAVES, -6), np.arange(1, 65) / 64])
    at, share = np.polynomial.legendre.leggauss(16)
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + at)).ravel(), (half * share).ravel()
