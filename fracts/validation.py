"""The validation of a search: one number for an estimator, from rolling origins at the end of a history.

One idea: every trial is fitted on the rows before the first forecast, carried on over the rest, and scored by
`backtest` on the same origins, in units that do not depend on what was searched. So scores of trials compare,
and what is fitted has seen nothing of what it is scored on.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from fracts import storage
from fracts.base import Forecaster
from fracts.checks import FitWarning, check_positive_integer
from fracts.forecasts import request
from fracts.names import Names
from fracts.reading import read
from fracts.rolling import Backtest, backtest
from fracts.rolling_sums import Sums
from fracts.seasons import chosen_season_lengths
from fracts.series import Panel
from fracts.timeline import learn_clock

SPLITS = "fracts:splits"  # what a trial keeps its losses on the splits as

_SQUARED = ("rmse", "rmsse")  # least for the mean
_CRPS_QUANTILES = tuple(np.arange(1, 20) / 20)
_SHARE = 5  # of the rows, one in five is forecast unless told otherwise
_MOST_SPLITS = 30  # enough to tell a standard error by, and few enough to keep with every trial


class Losses(NamedTuple):
    """How far off a model is, in units of the metric: on all windows, and on each split of them."""

    whole: float
    splits: list[float]


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

    @property
    def n_splits(self) -> int:
        """In how many runs of consecutive windows losses are told apart."""
        return min(self.n_windows, _MOST_SPLITS)

    def losses(self, model: Forecaster) -> Losses:
        """How far off `model` is; ValueError where that is no number on the whole."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # the fit of the best says it again
            tried = backtest(
                {"it": model}, self.y, self.X, n_windows=self.n_windows, step=self.step, **self._wanted
            )
            parts = self._sums_of_splits(tried)
            whole = self._loss(tried.scores().loc["it"])
        if np.isnan(whole):
            raise ValueError(
                f"the {self.metric} is NaN: there is no value to forecast, or no series moved before the "
                "first forecast, so that errors have no scale. Try metric='mae', or other windows."
            )
        scales = tried.naive_scales(1), tried.naive_scales(2)
        return Losses(whole, [self._loss(part.means(None, *scales).loc[0]) for part in parts])

    @property
    def _wanted(self) -> dict[str, Any]:
        """What is asked of a model, as `backtest` takes it."""
        point = "mean" if self.metric in _SQUARED else "median"
        return {"point": point, "quantiles": _quantiles(self.metric) or None}

    def _sums_of_splits(self, tried: Backtest) -> list[Sums]:
        """Sums of the losses of each split, from one pass over all forecasts."""
        splits = np.array_split(tried.cutoffs, self.n_splits)
        parts = [Sums(request(**self._wanted)) for _ in splits]
        for batch in tried.batches("it"):
            for part, cutoffs in zip(parts, splits, strict=True):
                mine = (batch.cutoffs >= cutoffs[0]) & (batch.cutoffs <= cutoffs[-1])
                if mine.any():
                    truth, table = batch.truth[:, mine], batch.table[:, mine]
                    part.add(batch._replace(truth=truth, table=table))
        return parts

    def _loss(self, scores: Any) -> float:
        """The metric in a row of scores."""
        if self.metric != "crps":
            return float(scores[self.metric])
        return 2 * float(np.mean([scores[name] for name in scores.index if name.startswith("pinball")]))


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
