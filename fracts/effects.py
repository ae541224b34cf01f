"""What covariates known in advance do to a series at once: taken off its values, given back to its forecasts.

One idea: a model remembers what a series would have been without them, so it never takes a promotion of last
week for a level, and each step ahead gets the effect of its own covariates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fracts.forecasts import Forecast
from fracts.records import record
from fracts.scores import naive_scale
from fracts.series import Panel, State

Array = NDArray[np.float64]


@record
@dataclass(frozen=True)
class Effects:
    """Effects learned of the series `ids`, in the units of each.

    Attributes
    ----------
    own : (series, known), of one of each covariate.
    usual : (known,), in typical steps of the series, for series that were not fitted.
    """

    ids: tuple[Any, ...]
    own: Array
    usual: Array

    def of(self, ids: Sequence[Any], values: Array) -> State:
        """Those of the series `ids` with the history `values` (series, rows), as part of a state."""
        known = dict(zip(self.ids, self.own, strict=True))
        told = [
            known[name] if name in known else typical_step(row) * self.usual
            for name, row in zip(ids, values, strict=True)
        ]
        return {"effects": np.array(told)}


def typical_step(values: Array) -> float:
    """Root mean square of the steps of `values` (rows,), 0 where there is none."""
    return float(np.sqrt(np.nan_to_num(naive_scale(values, power=2))))


def freed(panel: Panel, effects: Array) -> Panel:
    """The `panel` without the `effects` (series, known) of its covariates.

    Examples
    --------
    >>> panel = Panel(np.array([[5.0, 8.0]]), np.arange(2.0), np.array([[[0.0], [1.0]]]))
    >>> freed(panel, np.array([[3.0]])).values
    array([[5., 5.]])
    """
    return replace(panel, values=panel.values - effect(effects, panel.covariates))


def moved(said: Forecast, effects: Array, ahead: Array) -> Forecast:
    """What is `said` (series, ..., steps) with the `effects` (series, known) of covariates `ahead` (series,
    ..., at least as many steps, known)."""
    shift = effect(effects, ahead[..., : said.mean.shape[-1], :])
    return Forecast(said.mean + shift, said.quantiles + shift[..., None])


def effect(effects: Array, covariates: Array) -> Array:
    """What `covariates` (series, ..., columns), the known ones first, add by `effects`: (series, ...)."""
    told: Array = np.einsum("s...k,sk->s...", covariates[..., : effects.shape[1]], effects)
    return told
