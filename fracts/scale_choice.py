"""Whether series are forecast better by their logarithms: told by held-out time.

One idea: what counts is how far the medians are off in the units of the series, on forecasts by weights that
had not seen them. So the linear path is fitted on both scales, in small, and both are asked the same.
"""

import warnings

import numpy as np

from fracts.checks import FitWarning
from fracts.linear_fit import fit_linear
from fracts.recall import LinearMemory, linear_memory
from fracts.scaling import Array
from fracts.series import Panel

_HORIZON = 24  # steps ahead at most
_SERIES = 64  # at most


def logarithm_is_better(
    panel: Panel,
    horizon: int,
    n_modes: int,
    timescales: tuple[float, float],
    centre_memory: float,
    season_lengths: tuple[int, ...],
) -> bool:
    """Whether held-out medians come nearer to the values of `panel`, all positive, by their logarithms.

    Examples
    --------
    >>> steps = np.random.default_rng(0).normal(size=(1, 600))
    >>> grown = Panel(np.exp(steps.cumsum(1) / 5), np.arange(600.0))
    >>> logarithm_is_better(grown, 2, 8, (1.0, 1024.0), 1024.0, ())
    True
    """
    if not (panel.values[~np.isnan(panel.values)] > 0).all():
        return False
    every = max(1, -(-len(panel.values) // _SERIES))
    some = Panel(panel.values[::every], panel.times)

    def error(moved: Panel) -> float:
        asked = min(horizon, _HORIZON), n_modes, timescales, season_lengths
        return _error(moved, some, linear_memory(moved, *asked, centre_memory=centre_memory))

    return error(Panel(np.log(some.values), some.times)) < error(some)


def _error(moved: Panel, panel: Panel, memory: LinearMemory) -> float:
    """Geometric mean over leads of the mean absolute held-out error, each series in units of its spread.

    moved: the `panel`, or its logarithms.  NaN where nothing is held out.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # the fit to come says it again
        path = fit_linear(moved, memory, range(len(moved.values)), pooled=True)
    leads, centre, scale = path.held_out_readings(moved)
    said: Array = centre[..., None] + scale[..., None] * (leads + path.middle[0])
    spread = np.nanstd(panel.values, axis=1)[:, None, None]
    missed = np.abs(panel.ahead(leads.shape[-1]) - (said if moved is panel else np.exp(said)))
    seen = ~np.isnan(missed) & (spread > 0)
    sums = np.where(seen, missed / np.where(spread > 0, spread, 1.0), 0.0).sum((0, 1))
    counts = seen.sum((0, 1))
    known = (counts > 0) & (sums > 0)
    return float(np.exp(np.log(sums[known] / counts[known]).mean())) if known.any() else float("nan")
