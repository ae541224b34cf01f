"""Scores of a backtest, summed up batch by batch, so that no forecast need be kept.

One idea: every score is a sum of losses over origins, by series and lead, and a division at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fracts.forecasts import Request

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

CRPS_LEVELS = np.arange(5, 100, 5) / 100  # quantiles whose losses make up a CRPS


class Batch(NamedTuple):
    """Forecasts of one model from some origins."""

    cutoffs: Ints  # (origins,), rows
    due: pd.Index[Any]  # (origins * horizon,), stamps
    truth: Array  # (series, origins, horizon)
    table: Array  # (series, origins, horizon, 1 + k)


@dataclass
class Sums:
    """Sums of losses over origins, (series, horizon) each, of forecasts of what was `wanted`."""

    wanted: Request
    sums: dict[str, Array] = field(default_factory=dict)

    def add(self, batch: Batch) -> None:
        """Add the losses of a batch; a true value that is NaN has none."""
        known = ~np.isnan(batch.truth)
        for name, loss in _losses(batch, self.wanted):
            self.sums[name] = self.sums.get(name, 0.0) + loss.sum(1, where=known)

    def means(self, by: str | None, step: Array, square_step: Array) -> pd.DataFrame:
        """Scores in the groups of `by`, a row each; those of a lead, or of all, are means over series.

        step, square_step: (series,), the mean absolute and the mean squared step of each history.
        """
        sums = {n: s if by == "lead" else s.sum(1, keepdims=True) for n, s in self.sums.items()}
        step, square_step = (np.where(s > 0, s, np.nan)[:, None] for s in (step, square_step))
        sizes, crps = sums.pop("size"), sums.pop("crps", None)
        count = np.where(sums["count"] > 0, sums.pop("count"), np.nan)
        means = {name: total / count for name, total in sums.items()}
        mae, mse = means.pop("absolute"), means.pop("square")
        told = {"mae": mae, "rmse": np.sqrt(mse), "mase": mae / step, "rmsse": np.sqrt(mse / square_step)}
        told |= {n: mean / step if n.startswith("width") else mean for n, mean in means.items()}
        if crps is not None:
            told["scaled_crps"] = crps / np.where(sizes > 0, sizes, np.nan)
        if by == "series":
            return pd.DataFrame({name: each[:, 0] for name, each in told.items()})
        return pd.DataFrame({name: pd.DataFrame(each).mean() for name, each in told.items()})


def _losses(batch: Batch, wanted: Request) -> Iterator[tuple[str, Array]]:
    """Name and losses (series, origins, horizon) of all that is summed up."""
    truth, point, told = batch.truth, batch.table[..., 0], batch.table[..., 1:]
    error, size = np.abs(truth - point), np.abs(truth)
    both = size + np.abs(point)
    yield "count", np.ones_like(truth)
    yield "size", size
    yield "absolute", error
    yield "square", error**2
    yield "smape", error / np.where(both > 0, both, 1.0)
    for at, suffix in enumerate(wanted.suffixes):
        if suffix.startswith("-lo"):  # quantiles ascend, so the other end mirrors this one
            lower, upper = told[..., at], told[..., -1 - at]
            yield f"coverage{suffix[3:]}", ((truth >= lower) & (truth <= upper)).astype(np.float64)
            yield f"width{suffix[3:]}", upper - lower
        elif suffix.startswith("_ql"):
            yield f"pinball_{suffix[3:]}", _pinball(truth - told[..., at], wanted.levels[at])
    if np.isin(CRPS_LEVELS, wanted.levels).all():
        places = np.searchsorted(wanted.levels, CRPS_LEVELS)
        losses = (
            _pinball(truth - told[..., at], level) for at, level in zip(places, CRPS_LEVELS, strict=True)
        )
        yield "crps", 2 * sum(losses, np.zeros_like(truth)) / CRPS_LEVELS.size


def _pinball(below: Array, level: float) -> Array:
    loss: Array = np.maximum(level * below, (level - 1) * below)
    return loss
