"""Beyond the trained horizon: sampled paths roll on, so that intervals keep growing.

A path takes the next H values, the trained leads, at one level of their quantiles and moves the state over
them, as though they had been observed; after them it draws another level. After j steps each path forecasts
its last trained lead; together they are the forecast of lead H + j. So errors add up once in H steps, not at
every one. The draws are one from each of equal strata, in random order (McKay, Beckman and Conover, 1979,
Technometrics 21(2)): few paths are then enough for a forecast that does not jump at the seam. None leaves
what the history makes thinkable: a lead learned across a break of the level may answer a little more than it
is given, and would grow without end.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from fracts.forecasts import QUANTILES, Forecast, interpolate_quantiles
from fracts.series import Panel, State

N_PATHS = 200  # an even number
_MIDDLES = (ndtri(QUANTILES)[1:] + ndtri(QUANTILES)[:-1]) / 2
_CELLS = np.diff(
    ndtr(np.concatenate([[-np.inf], _MIDDLES, [np.inf]]))
)  # probability that each quantile stands for

Read = Callable[[State], Forecast]  # all trained leads, quantiles at QUANTILES
Advance = Callable[[State, Panel], State]
Reach = Callable[[State, int], tuple[NDArray[np.float64], NDArray[np.float64]]]  # (series,) each


def extended(
    read: Read,
    advance: Advance,
    reach: Reach,
    state: State,
    trained: int,
    horizon: int,
    levels: NDArray[np.float64],
) -> Forecast:
    """Forecast of leads 1..horizon at `levels`: the `trained` ones as they are, later ones from paths.

    The draws have a seed of their own, alike for all series: the same state gives the same forecast.
    What a path takes so many steps ahead stays between the least and the most that `reach` says.
    Covariates known in advance are read from the `ahead` of `state`, (series, horizon, known); others keep
    their last value.

    Examples
    --------
    >>> walk = np.sqrt([1.0, 2.0])[:, None] * ndtri(QUANTILES)  # a random walk, trained for two leads
    >>> def read(state):
    ...     return Forecast(state["y"] + np.zeros(2), state["y"][..., None] + walk)
    >>> def advance(state, panel):
    ...     return {"y": panel.values, "time": panel.times}
    >>> def reach(state, steps):
    ...     return np.full(1, -100.0), np.full(1, 100.0)
    >>> start = {"y": np.zeros((1, 1)), "time": np.zeros(1)}
    >>> extended(read, advance, reach, start, 2, 3, np.array([0.5, 0.9])).quantiles.round(1) + 0.0
    array([[[0. , 1.3],
            [0. , 1.8],
            [0. , 2.2]]])
    """
    ahead = state.get("ahead", np.empty((len(state["time"]), horizon, 0)))
    now = read(state | {"ahead": ahead[:, :trained]})
    known = Forecast(now.mean[:, :horizon], interpolate_quantiles(now.quantiles[:, :horizon], levels))
    if horizon <= trained:
        return known
    means, quantiles = [known.mean], [known.quantiles]
    n_series = len(now.mean)
    draws = np.random.default_rng(0)
    paths = {name: np.repeat(array, N_PATHS, axis=0) for name, array in state.items()}
    ahead = np.repeat(ahead, N_PATHS, axis=0)
    last = read(paths | {"ahead": ahead[:, :trained]})
    for step in range(horizon - trained):
        if step % trained == 0:
            level = np.tile(_strata(draws), n_series)
            share = interpolate_quantiles(np.eye(len(QUANTILES)), level)  # (quantiles, paths)
            drawn = np.einsum("phq,qp->hp", last.quantiles, share)  # (trained, paths)
        row = ahead[:, step]
        if "covariates" in paths:  # those not known in advance stay as they were seen last
            row = np.concatenate([row, paths["covariates"][:, row.shape[1] :]], axis=1)
        times = paths["time"][:1] + 1.0
        least, most = (np.repeat(bound, N_PATHS) for bound in reach(state, step + 1))
        taken = np.clip(drawn[step % trained], least, most)
        paths = advance(paths, Panel(taken[:, None], times, row[:, None]))
        last = read(paths | {"ahead": ahead[:, step + 1 : step + 1 + trained]})
        means.append(last.mean[:, -1].reshape(n_series, N_PATHS).mean(1)[:, None])
        quantiles.append(_mixture(last.quantiles[:, -1].reshape(n_series, -1), levels)[:, None])
    return Forecast(np.concatenate(means, axis=1), np.concatenate(quantiles, axis=1))


def _strata(draws: np.random.Generator) -> NDArray[np.float64]:
    """A level for each path, one from each of equal strata; every path has another that mirrors it.

    So the negative of a series has the negative forecast.
    """
    low = (draws.permutation(N_PATHS // 2) + 0.5) / N_PATHS
    level = np.where(draws.random(low.size) < 0.5, low, 1 - low)
    return np.asarray(np.clip(np.concatenate([level, 1 - level]), QUANTILES[0], QUANTILES[-1]))


def _mixture(values: NDArray[np.float64], levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantiles (series, levels) of an equal mixture of paths, values (series, paths * quantiles)."""
    weights = np.tile(_CELLS, N_PATHS) / N_PATHS
    order = np.argsort(values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, 1)
    reached = np.cumsum(weights[order], axis=1) - weights[order] / 2
    return np.stack([np.interp(levels, at, row) for at, row in zip(reached, ranked, strict=True)])
