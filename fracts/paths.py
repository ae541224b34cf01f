"""Beyond the trained horizon: sampled paths roll on, so that intervals keep growing.

A path draws the next value from the forecast one step ahead and moves the state over it, as though it had
been observed. After j such steps each path forecasts its last trained lead H; together they are the forecast
of lead H + j.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from fracts.forecasts import QUANTILES, Forecast, interpolate_quantiles
from fracts.series import Panel, State

N_PATHS = 100
_CELLS = np.diff(
    ndtr(np.concatenate([[-np.inf], (ndtri(QUANTILES)[1:] + ndtri(QUANTILES)[:-1]) / 2, [np.inf]]))
)

Read = Callable[[State], Forecast]  # all trained leads, quantiles at QUANTILES
Advance = Callable[[State, Panel], State]


def extended(
    read: Read, advance: Advance, state: State, trained: int, horizon: int, levels: NDArray[np.float64]
) -> Forecast:
    """Forecast of leads 1..horizon at `levels`: the trained ones as they are, later ones from sampled paths.

    The draws have a seed of their own: the same state gives the same forecast.
    """
    now = read(state)
    known = Forecast(now.mean[:, :horizon], interpolate_quantiles(now.quantiles[:, :horizon], levels))
    if horizon <= trained:
        return known
    means, quantiles = [known.mean], [known.quantiles]
    n_series = len(now.mean)
    draws = np.random.default_rng(0)
    paths = {name: np.repeat(array, N_PATHS, axis=0) for name, array in state.items()}
    for _ in range(horizon - trained):
        ahead = read(paths).quantiles[:, 0]
        level = draws.uniform(QUANTILES[0], QUANTILES[-1], len(ahead))
        drawn = np.array([interpolate_quantiles(q, u)[0] for q, u in zip(ahead, level[:, None], strict=True)])
        paths = advance(paths, Panel(drawn[:, None], paths["time"][:1] + 1.0))
        last = read(paths)
        means.append(last.mean[:, -1].reshape(n_series, N_PATHS).mean(1)[:, None])
        quantiles.append(_mixture(last.quantiles[:, -1].reshape(n_series, -1), levels)[:, None])
    return Forecast(np.concatenate(means, axis=1), np.concatenate(quantiles, axis=1))


def _mixture(values: NDArray[np.float64], levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantiles (series, levels) of an equal mixture of paths, values (series, paths * quantiles)."""
    weights = np.tile(_CELLS, N_PATHS) / N_PATHS
    order = np.argsort(values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, 1)
    reached = np.cumsum(weights[order], axis=1) - weights[order] / 2
    return np.stack([np.interp(levels, at, row) for at, row in zip(reached, ranked, strict=True)])
