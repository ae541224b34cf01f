"""Forecasts from many origins: a state carried over the rows that follow, and what is said on the way.

One idea: a model that reads a whole stretch of rows at once says the forecast of every row in it, so a pass
over a history costs the same whatever the number of origins. Any other model is moved from one to the next.
Forecasts come in batches of bounded size, in the order of the origins, with an axis of them after the series.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from fracts.forecasts import QUANTILES, Forecast, interpolate_quantiles
from fracts.series import Panel, State

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
# Of some origins, by their numbers: covariates known in advance, (series, origins, steps, known).
Ahead = Callable[[Ints], Array]
# What is said after some rows of a panel, where `Array` is known ahead of each, with series and rows in one
# axis; and the state after all rows.
Run = Callable[[State, Panel, Ints, Array], tuple[Forecast, State]]

ROWS_AT_ONCE = 16384  # of all series, in a pass over a history
_NUMBERS_AT_ONCE = 2**22  # in the quantiles of a batch of origins, and in what is known ahead of it
_ORIGINS_AT_ONCE = 256


def passed(
    read: Callable[[State], Forecast],
    run: Run,
    state: State,
    panel: Panel,
    origins: Ints,
    ahead: Ahead,
    horizon: int,
    levels: Array,
) -> Iterator[Forecast]:
    """Forecasts from `origins`, ascending numbers of rows of `panel` gone by, in one pass.

    `read` and `run` say all trained leads, at QUANTILES.

    Examples
    --------
    >>> def read(state):
    ...     return Forecast(state["y"], np.repeat(state["y"][..., None], len(QUANTILES), axis=-1))
    >>> def run(state, panel, rows, ahead):
    ...     said = panel.values[:, rows].reshape(-1, 1)
    ...     return read({"y": said}), {"y": panel.values[:, -1:]}
    >>> panel = Panel(np.array([[5.0, 6.0, 7.0]]), np.arange(3.0))
    >>> nothing = lambda at: np.empty((1, len(at), 1, 0))
    >>> level = np.array([0.5])
    >>> said = passed(read, run, {"y": np.array([[4.0]])}, panel, np.array([0, 1, 3]), nothing, 1, level)
    >>> [forecast.mean[0, :, 0] for forecast in said]
    [array([4.]), array([5., 7.])]
    """

    def asked(forecast: Forecast) -> Forecast:
        quantiles = interpolate_quantiles(forecast.quantiles[:, :horizon], levels)
        return Forecast(forecast.mean[:, :horizon], quantiles)

    def ran(seen: State, part: Panel, rows: Ints, known: Array) -> tuple[Forecast, State]:
        forecast, after = run(seen, part, rows, known)
        return asked(forecast), after

    return rolled(lambda seen: asked(read(seen)), ran, state, panel, origins, ahead)


def rolled(
    read: Callable[[State], Forecast], run: Run, state: State, panel: Panel, origins: Ints, ahead: Ahead
) -> Iterator[Forecast]:
    """`passed`, where `read` and `run` say the leads and levels that are asked for and no others."""
    n_series, known = len(panel.values), ahead(np.arange(1))
    if origins[0] == 0:
        yield _by_origin(read(state | {"ahead": known[:, 0]}), n_series)
    numbers = known.shape[2] * (len(QUANTILES) + known.shape[3])
    length = max(1, min(ROWS_AT_ONCE, _NUMBERS_AT_ONCE // numbers) // n_series)
    for start in range(0, int(origins[-1]), length):
        here = np.flatnonzero((origins > start) & (origins <= start + length))
        part = panel.part(start, start + length)
        forecast, state = run(state, part, origins[here] - start - 1, ahead(here))
        if here.size:
            yield _by_origin(forecast, n_series)


def walked(
    forecast: Callable[[State], Forecast],
    advance: Callable[[State, Panel], State],
    state: State,
    panel: Panel,
    origins: Ints,
    ahead: Ahead,
) -> Iterator[Forecast]:
    """`passed` for any `forecast` of a state, which is moved from origin to origin."""
    gone = 0
    for start in range(0, origins.size, _ORIGINS_AT_ONCE):
        here = np.arange(start, min(start + _ORIGINS_AT_ONCE, origins.size))
        known, said = ahead(here), []
        for turn, origin in enumerate(origins[here].tolist()):
            if origin > gone:
                state, gone = advance(state, panel.part(gone, origin)), origin
            said.append(forecast(state | {"ahead": known[:, turn]}))
        yield Forecast(np.stack([f.mean for f in said], 1), np.stack([f.quantiles for f in said], 1))


def _by_origin(forecast: Forecast, n_series: int) -> Forecast:
    """The forecast with origins and series apart."""
    mean = forecast.mean.reshape(n_series, -1, forecast.mean.shape[-1])
    return Forecast(mean, forecast.quantiles.reshape(*mean.shape, -1))
