"""The validation of a search: one number for an estimator, from rolling origins at the end of a history.

One idea: every trial is fitted on the rows before the first forecast, carried on over the rest, and scored by
`backtest` on the same origins, in units that do not depend on what was searched. So scores of trials compare,
and what is fitted has seen nothing of what it is scored on.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fracts import storage
from fracts.base import Forecaster
from fracts.checks import FitWarning, check_positive_integer
from fracts.names import Names
from fracts.reading import read
from fracts.rolling import backtest
from fracts.seasons import chosen_season_lengths
from fracts.series import Panel
from fracts.timeline import learn_clock

_SQUARED = ("rmse", "rmsse")  # least for the mean
_CRPS_QUANTILES = tuple(np.arange(1, 20) / 20)
_SHARE = 5  # of the rows, one in five is forecast unless told otherwise


@dataclass(frozen=True)
class Validation:
    """How trials are scored.

    Parameters
    ----------
    y, X : the history, as `backtest` takes it.
    n_windows, step : forecasts, and rows from one to the next.
    metric : as `FracSearch` takes it.
    season_lengths : those that the estimator finds in what it is fitted on.
    digest : of the data.
    """

    y: Any
    X: Any
    n_windows: int
    step: int
    metric: str
    season_lengths: tuple[int, ...]
    digest: str

    @classmethod
    def of(
        cls, estimator: Forecaster, y: Any, X: Any, n_windows: int | None, step: int | None, metric: str
    ) -> Self:
        """The validation of `estimator` on `y`; errors are those of `backtest`."""
        reading = read(y, Names())
        stride = check_positive_integer(estimator.horizon if step is None else step, "step")
        count = max(1, len(reading.index) // _SHARE // stride) if n_windows is None else n_windows
        cutoffs = backtest(estimator, y, X, n_windows=count, step=stride).cutoffs
        known = int(cutoffs[0]) + 1
        clock = learn_clock(reading.index, None, None, reading.neighbours)
        counts = clock.counts(reading.index)
        times = clock.times(counts)[:known]
        asked = getattr(estimator, "season_lengths", ())
        seasons = chosen_season_lengths(asked, Panel(reading.values[:, :known], times), clock)
        data = {"values": reading.values, "counts": counts, "begin": str(reading.index[0])}
        digest = storage.fingerprint(data)[:16]
        return cls(y, X, count, stride, metric, seasons, digest)

    def task(self, estimator: Forecaster) -> dict[str, Any]:
        """What trials must have in common for their losses to compare."""
        return {
            "estimator": type(estimator).__name__,
            "horizon": estimator.horizon,
            "metric": self.metric,
            "n_windows": self.n_windows,
            "step": self.step,
            "digest of the data": self.digest,
        }

    def loss(self, model: Forecaster) -> float:
        """How far off `model` is, in units of the metric; ValueError where that is no number."""
        wanted: dict[str, Any] = {"point": "mean" if self.metric in _SQUARED else "median"}
        if quantiles := _quantiles(self.metric):
            wanted["quantiles"] = quantiles
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # the fit of the best says it again
            tried = backtest(
                {"it": model}, self.y, self.X, n_windows=self.n_windows, step=self.step, **wanted
            )
            row: Any = tried.scores().loc["it"]
            scores = {str(name): float(score) for name, score in zip(row.index, row.to_numpy(), strict=True)}
        if quantiles:
            pinball = float(np.mean([scores[name] for name in scores if name.startswith("pinball")]))
            loss = 2 * pinball if self.metric == "crps" else pinball
        else:
            loss = scores[self.metric]
        if np.isnan(loss):
            raise ValueError(
                f"the {self.metric} is NaN: there is no value to forecast, or no series moved before the "
                "first forecast, so that errors have no scale. Try metric='mae', or other windows."
            )
        return loss


def check_metric(metric: object) -> str:
    """`metric` as a name; ValueError unless it is one.

    Examples
    --------
    >>> check_metric("mase"), check_metric("pinball_0.9")
    ('mase', 'pinball_0.9')
    """
    if isinstance(metric, str):
        if metric in ("mae", "rmse", "mase", "rmsse", "crps"):
            return metric
        if metric.startswith("pinball_") and 0 < _level(metric) < 1:
            return metric
    raise ValueError(
        f"metric must be 'mase', 'rmsse', 'mae', 'rmse', 'crps' or a quantile such as 'pinball_0.9', got "
        f"{metric!r}."
    )


def _quantiles(metric: str) -> tuple[float, ...]:
    if metric == "crps":
        return _CRPS_QUANTILES
    return (_level(metric),) if metric.startswith("pinball_") else ()


def _level(metric: str) -> float:
    try:
        return float(metric.removeprefix("pinball_"))
    except ValueError:
        return float("nan")
