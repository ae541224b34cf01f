"""Whether series are forecast better by their logarithms: told by held-out time.

One idea: what counts is how far the medians are off, on forecasts by weights that had not seen them. So the
linear path is fitted on both scales, in small, with coefficients shared on both or on none, as the values
have it, and both are asked the same: how far in the units of the series, and how far beside the values
themselves, which tells of the small ones what the first does not. Each series says by what share the one is
farther off than the other, the mean of both, and no odd one rules. In doubt the values stay as they are.
"""

import warnings

import numpy as np

from fracts.checks import FitWarning
from fracts.evidence import trimmed
from fracts.linear_fit import fit_linear, is_pooled
from fracts.recall import LinearMemory, beside_smoothing, linear_memory
from fracts.scaling import Array
from fracts.series import Panel

_HORIZON = 24  # steps ahead at most
_SERIES = 32  # at most
_GAIN = 0.01  # of the log error, which chance may give as well
_LARGEST = 600.0  # logarithm of a forecast that is a number still


def logarithm_is_better(
    panel: Panel,
    pooled: str | bool,
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
    >>> grown = Panel(np.exp(np.arange(600) / 100 + steps / 5), np.arange(600.0))
    >>> logarithm_is_better(grown, "auto", 2, 8, (1.0, 1024.0), 1024.0, ())
    True
    """
    if not (panel.values[~np.isnan(panel.values)] > 0).all():
        return False
    every = max(1, -(-len(panel.values) // _SERIES))
    some = Panel(panel.values[::every], panel.times)

    asked = min(horizon, _HORIZON), n_modes, timescales, season_lengths

    logarithms = Panel(np.log(some.values), some.times)
    memory, moved = (linear_memory(p, *asked, centre_memory=centre_memory) for p in (some, logarithms))
    shared = is_pooled(pooled, some, memory)
    by_logarithm, counts = _missed(logarithms, some, moved, shared)
    plain, _ = _missed(some, some, memory, shared)
    return bool(trimmed(by_logarithm - plain, counts).mean() < -_GAIN)


def _missed(moved: Panel, panel: Panel, memory: LinearMemory, pooled: bool) -> tuple[Array, Array]:
    """Log mean absolute held-out errors (series, leads), the mean of those in the units of `panel` and those
    beside its values, and how many there are.

    moved: the `panel`, or its logarithms.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # the fit to come says it again
        memory = beside_smoothing(memory, moved, pooled=pooled)
        path = fit_linear(moved, memory, range(len(moved.values)), pooled=pooled)
    leads, centre, scale, _ = path.held_out_readings(moved)
    said: Array = centre[..., None] + scale[..., None] * (leads + path.middle[:, None])
    said = said if moved is panel else np.exp(np.minimum(said, _LARGEST))
    truth = panel.ahead(leads.shape[-1])
    missed = np.abs(truth - said)
    counts = np.sum(~np.isnan(missed), axis=1)
    errors = missed, missed / (truth + np.abs(said))
    means = [np.nansum(error, axis=1) / np.maximum(counts, 1) for error in errors]
    return np.log(np.maximum(means, np.finfo(float).tiny)).mean(0), counts
