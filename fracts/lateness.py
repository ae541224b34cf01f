"""Forecasts at rows without a value: those of the last value, so many steps further on.

One idea: such a row moves the clock only, so lead k after g of them is lead k + g of the last value. The
modes are read as they were there, with the coefficients and the errors of the later lead. Beyond the horizon
its last lead goes on, or the last one at the same place of a season that it holds: what turns, turns with the
clock, and the errors grow as they did from the middle of the horizon to its end, up to the spread of the
series. A horizon of one step tells of no growth; there they grow as those of a random walk.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fracts.bank import Complex, ModeBank
from fracts.forecasts import MEDIAN_AT, QUANTILES
from fracts.recall import LinearMemory
from fracts.scaling import Array
from fracts.series import State

Ints = NDArray[np.int64]
Numbers = TypeVar("Numbers", NDArray[np.float64], NDArray[np.complex128])

_GONE = 500.0  # timescales, after which a mode cannot be told from nothing
_CELLS = np.diff(np.concatenate([[0.0], (QUANTILES[1:] + QUANTILES[:-1]) / 2, [1.0]]))
_SPREAD = 1.25  # standard deviation over mean size, of a normal law
_OF_WALK, _FASTEST = 0.5, 1.0  # powers of the lead that errors grow by
_SMALLEST = 1e-12  # of the scale of the series: errors below it are none


def whole(since: Array) -> Ints:
    """Whole steps `since` the last value."""
    return np.rint(since).astype(np.int64)


def kinds(since: Array, horizon: int, rhythm: int) -> Ints:
    """The fewest whole steps after which `leads_after` are those `since` (...) the last value."""
    late = whole(since)
    return np.asarray(np.where(late > horizon, horizon + (late - horizon) % rhythm, late))


def leads_after(late: Ints, horizon: int, rhythm: int) -> Ints:
    """The lead, from 1, that each of 1..horizon is after so many `late` (...) steps: (..., horizon).

    One beyond the horizon is the last that is whole rhythms away.

    Examples
    --------
    >>> leads_after(np.array([0, 1, 3]), horizon=4, rhythm=2)
    array([[1, 2, 3, 4],
           [2, 3, 4, 3],
           [4, 3, 4, 3]])
    """
    leads = np.arange(1, horizon + 1) + late[..., None]
    return np.asarray(np.where(leads > horizon, horizon - (horizon - leads) % rhythm, leads))


def revived(modes: Numbers, since: Array, tau: Array, frequency: Array) -> Numbers:
    """`modes` (..., modes), of timescales `tau` and angular `frequency`, as large as they were `since` (...)
    steps ago. One that is gone is taken for the next slower one of its frequency."""
    ages = since[..., None] / tau
    alive: Numbers = modes * np.exp(np.minimum(ages, _GONE))
    gone = ages > _GONE
    for at in np.flatnonzero(gone.reshape(-1, tau.size).any(0))[::-1].tolist():
        if at + 1 < tau.size and frequency[at + 1] == frequency[at] and tau[at + 1] > tau[at]:
            alive[..., at] = np.where(gone[..., at], alive[..., at + 1], alive[..., at])
    return alive


def state_revived(memory: LinearMemory, state: State, since: Array) -> State:
    """`state` with all modes `revived`; since: (series,)."""
    bank, taus = memory.bank, memory.covariates.timescales
    modes = revived(state["modes"], since[:, None], bank.tau, bank.frequency)
    if not memory.covariates.n_columns:
        return state | {"modes": modes}
    beside = revived(state["covariate_modes"], since[:, None], taus, np.zeros_like(taus))
    return state | {"modes": modes, "covariate_modes": beside}


def features_revived(memory: LinearMemory, features: Array, since: Array) -> Array:
    """The same of `features` (rows, features), which hold a covariate's last value as it was.

    since: (rows,).
    """
    bank, taus, n = memory.bank, memory.covariates.timescales, memory.covariates.n_columns
    own, last, by_mode = np.split(features, [bank.feature_tau.size, bank.feature_tau.size + n], axis=1)
    own = revived(own, since, bank.feature_tau, bank.feature_frequency)
    modes = np.moveaxis(by_mode.reshape(len(features), taus.size, n), 1, 2)
    beside = np.moveaxis(revived(modes, since[:, None], taus, np.zeros_like(taus)), 2, 1)
    return np.concatenate([own, last, beside.reshape(by_mode.shape)], axis=1)


def turned_after(turned: Complex, late: int, bank: ModeBank) -> Complex:
    """Weights (groups, modes, horizon) of modes that have turned for so many `late` steps."""
    horizon = turned.shape[-1]
    leads = leads_after(np.array(late), horizon, bank.rhythm(horizon))
    behind = np.arange(1, horizon + 1) - leads
    later: Complex = turned[..., leads - 1] * np.exp(1j * bank.frequency[:, None] * behind)
    return later


def errors_after(errors: Array, late: Ints, rhythm: int) -> Array:
    """Quantiles of `errors` (series, horizon, quantiles), in units of scale, `late` (series,) steps after
    the last value."""
    told, some = errors.copy(), late > 0
    told[some] = _errors_after(errors[some], late[some], rhythm)
    return told


def _errors_after(errors: Array, late: Ints, rhythm: int) -> Array:
    """`errors_after` of series of which none has a value now."""
    horizon = errors.shape[1]
    leads = leads_after(late, horizon, rhythm)
    later = np.take_along_axis(errors, leads[..., None] - 1, 1)
    far = (np.arange(1, horizon + 1) + late[:, None]) / leads
    median = later[..., [MEDIAN_AT]]
    return np.asarray(median + (later - median) * _growth(errors, far)[..., None])


def _growth(errors: Array, far: Array) -> Array:
    """How many times as large errors are `far` (series, leads) times as far ahead, beyond the horizon."""
    horizon = errors.shape[1]
    middle = (horizon + 1) // 2
    ends = errors[:, [middle - 1, horizon - 1]]
    half, last = np.maximum(np.abs(ends - ends[..., [MEDIAN_AT]]) @ _CELLS, _SMALLEST).T
    power = np.full(len(errors), _OF_WALK)
    if horizon > 1:
        power = np.clip(np.log(last / half) / np.log(horizon / middle), 0.0, _FASTEST)
    most = np.maximum(1 / (_SPREAD * last), 1.0)
    return np.asarray(np.minimum(far ** power[:, None], most[:, None]))
