"""Several models side by side: one backtest, one table, one test of whether the best is the best.

One idea: all models forecast from the same origins, so their losses come in pairs, and the difference of each
pair tells more than two averages do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from fracts.base import Forecaster
from fracts.forecasts import Request, request
from fracts.rolling import Backtest, planned
from fracts.rolling_sums import CRPS_LEVELS
from fracts.scores import diebold_mariano


def compare(
    models: Forecaster | Mapping[str, Forecaster],
    y: Any,
    X: Any = None,
    *,
    horizon: int | None = None,
    start: Any = None,
    n_windows: int | None = None,
    step: int = 1,
    refit: bool | int = False,
    window: int | None = None,
    level: float | Iterable[float] = (80, 95),
) -> Comparison:
    """How `models` do on `y`, beside each other, from rolling origins.

    Parameters
    ----------
    models : a dict of forecasters by the name they are to have, or one. They are copied, and stay unfitted.
    y : (time,) or (time, series), any container that fit takes.
    X : covariates, as fit takes them, of all rows.
    horizon, start, n_windows, step, refit, window : as `backtest` takes them.
    level : percent of the intervals whose coverage and width are told.

    Returns
    -------
    A `Comparison`, with a `table`, a `frame` of all forecasts and the sources of a picture,
    `fracts.plots.plot_comparison`. Everything is computed here and held; where there is no room for all
    forecasts, `backtest(...).scores()` keeps none.

    Raises
    ------
    TypeError, ValueError : as `backtest`, and as `fit` and `update` of the models.

    Examples
    --------
    >>> from fracts.baselines import Mean, Naive
    >>> y = np.random.default_rng(0).normal(size=60).cumsum()
    >>> found = compare({"last": Naive(2), "mean": Mean(2)}, y, start=40, level=90)
    >>> found.table()[["mase", "rank", "dm_p"]].round(3)
            mase  rank   dm_p
    model
    last   1.905   1.0    NaN
    mean   8.156   2.0  0.001
    """
    tried = planned(models, y, X, horizon, start, n_windows, step, refit, window, _wanted(level))
    return Comparison(tried, tried.frame())


class Comparison:
    """What models said from the same origins, and how far off they were; `compare` makes it."""

    def __init__(self, tried: Backtest, frame: pd.DataFrame) -> None:
        self._tried, self._frame = tried, frame

    def __repr__(self) -> str:
        return str(self.table().to_string())

    def _repr_html_(self) -> str:
        return str(self.table()._repr_html_())  # type: ignore[operator]

    def table(self, by: str | None = None) -> pd.DataFrame:
        """Scores, times, ranks and tests, the best model first.

        Parameters
        ----------
        by : None for a row a model; "series" for a row a model and series.

        Returns
        -------
        DataFrame with the columns

        - `mase`, `rmsse`: errors in units of the mean absolute, and root mean square, step of the history
          before the first forecast; `smape`: mean of |error| / (|y| + |forecast|), from 0 to 1;
        - `scaled_crps`: twice the mean loss of the quantiles 0.05, 0.10 to 0.95, over the mean of |y|
          (Rangapuram et al., 2021, Proceedings of Machine Learning Research 139);
        - `coverage-80` and `width-80` for each level, the width in units of the mean absolute step;
        - `rank` by MASE, of each series, 1 the best and ties shared; of all, the mean of those;
        - `dm`, `dm_p`: the test of Diebold and Mariano whether the absolute errors are as large as those of
          the best (`fracts.scores.diebold_mariano`), NaN for the best itself. An origin is one pair of
          losses, the mean over its leads; of all, the mean over series of scaled ones;
        - `fit_seconds`, `predict_seconds`, in a row a model: of all fits, and of all updates and forecasts.

        Raises ValueError for another `by`.

        Examples
        --------
        >>> from fracts.baselines import Mean, Naive
        >>> y = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30.0) % 4})
        >>> table = compare({"last": Naive(1), "mean": Mean(1)}, y, start=20).table("series")
        >>> table["rank"].tolist(), table.index[0]
        ([1.0, 2.0, 1.0, 2.0], ('a', 'last'))
        """
        if by not in (None, "series"):
            raise ValueError(f"by must be None or 'series', got {by!r}.")
        each = self._tried.scores("series").drop(columns=["mae", "rmse"]).swaplevel()
        each["rank"] = each.groupby(level="unique_id", sort=False)["mase"].rank()
        if by == "series":
            groups = enumerate(each.groupby(level="unique_id", sort=False))
            return pd.concat([self._tested(group, at) for at, (_, group) in groups])
        table = self._tried.scores().drop(columns=["mae", "rmse"])
        table["rank"] = each["rank"].groupby(level="model").mean()
        table = self._tested(table, None)
        for at, column in enumerate(("fit_seconds", "predict_seconds")):
            table[column] = [self._tried.seconds[name][at] for name in table.index]
        return table

    def frame(self) -> pd.DataFrame:
        """All forecasts, a row for each series, origin and lead.

        Returns
        -------
        DataFrame with the columns `unique_id`, `ds`, `cutoff`, `y` and of each model its name and the ends of
        its intervals, `Naive-lo-80` and `Naive-hi-80`: what `utilsforecast.evaluation.evaluate` takes.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> compare(Naive(1), [1.0, 3.0, 2.0, 4.0], n_windows=2, level=80).frame().columns.tolist()
        ['unique_id', 'ds', 'cutoff', 'y', 'Naive', 'Naive-lo-80', 'Naive-hi-80']
        """
        return self._frame.copy()

    def _tested(self, scores: pd.DataFrame, series: int | None) -> pd.DataFrame:
        """Rows of models, of one series or of all, the best first, each tested against it."""
        scores = scores.sort_values("mase", kind="stable")
        losses = [self._losses(name) for name in scores.index.get_level_values("model")]
        pairs = [loss.mean() if series is None else loss.loc[series] for loss in losses]
        overlap = self._tried.overlap
        scores[["dm", "dm_p"]] = [diebold_mariano(loss, pairs[0], overlap) for loss in pairs]
        return scores

    def _losses(self, name: str) -> pd.DataFrame:
        """Mean scaled absolute error over the leads known, a row a series, a column an origin."""
        tried, scale = self._tried, self._tried.naive_scales(1)
        errors = (self._frame["y"] - self._frame[name]).abs().to_numpy()
        by_lead = errors.reshape(len(tried.cutoffs) * scale.size, tried.horizon)
        losses = pd.DataFrame(by_lead).mean(axis=1).to_numpy().reshape(-1, scale.size)
        return pd.DataFrame((losses / np.where(scale > 0, scale, np.nan)).T)


def _wanted(level: float | Iterable[float]) -> Request:
    """The intervals asked for, and the quantiles of a CRPS."""
    asked = request(level)
    named = dict(zip(asked.levels.round(12).tolist(), asked.suffixes, strict=True))
    levels = np.union1d(list(named), CRPS_LEVELS)
    return Request("median", levels, tuple(named.get(q, "") for q in levels.tolist()))
