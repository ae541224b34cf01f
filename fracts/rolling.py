"""Rolling origins: what models would have forecast, row by row, had they stood there.

One idea: a model fitted once is carried over the rows that follow in one pass, which says the forecast from
every row on the way; fitting anew begins another pass. The forecasts come by in batches and are summed into
scores or gathered into a frame, so scores need no more memory for a million origins than for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from fracts.base import Forecaster
from fracts.checks import check_positive_integer
from fracts.forecasts import Request, request
from fracts.names import Names
from fracts.reading import read
from fracts.rolling_checks import check_cutoffs, check_refit
from fracts.rolling_sums import Batch, Sums
from fracts.scores import naive_scale
from fracts.series import Panel
from fracts.timeline import learn_clock

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def backtest(
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
    level: float | Iterable[float] | None = None,
    quantiles: float | Iterable[float] | None = None,
    point: str = "median",
) -> Backtest:
    """Forecasts of `models` from every `step`-th row of `y`, each from what was known there.

    Parameters
    ----------
    models : a forecaster, or a dict of them by the name they are to have. They are copied, and stay unfitted.
    y : (time,) or (time, series), any container that fit takes. All series are forecast from the same stamps,
        those of a long frame that ended before too.
    X : covariates, as fit takes them, of all rows; every origin is told the true ones known in advance.
    horizon : steps; None for the one that all models have.
    start : stamp of the first row forecast; an int among dates counts rows of history. The history before it
        is what is fitted first.
    n_windows : instead of `start`, how many forecasts to end with. The last one ends with `y`.
    step : rows from one origin to the next.
    refit : False: fit once, on the history before the first forecast, and carry the state on. An int k: fit
        a fresh copy at every k-th origin, on what is known there. True is 1.
    window : rows of history that each fit sees, the last ones known; None for all of them.
    level, quantiles, point : as `predict` takes them.

    Returns
    -------
    A `Backtest`: nothing is computed before it is asked for its `scores` or its `frame`.

    Raises
    ------
    TypeError : a model is no forecaster; `y` is of a kind that is not read.
    ValueError : `start` and `n_windows` come both or not at all, or leave no history or no forecast; models
        differ in their horizons and none is given; a number is out of range.

    Examples
    --------
    >>> from fracts.baselines import Mean, Naive
    >>> y = pd.Series([1.0, 3.0, 2.0, 4.0, 6.0], pd.period_range("2024-01", periods=5, freq="M"), name="load")
    >>> tried = backtest({"last": Naive(1), "mean": Mean(1)}, y, start="2024-04")
    >>> tried.scores()[["mae", "rmse"]].loc["last"].tolist()
    [2.0, 2.0]
    >>> tried.frame()
      unique_id       ds   cutoff    y  last  mean
    0      load  2024-04  2024-03  4.0   2.0   2.0
    1      load  2024-05  2024-04  6.0   4.0   2.5
    """
    wanted = request(level, quantiles, point)
    return planned(models, y, X, horizon, start, n_windows, step, refit, window, wanted)


def planned(
    models: Any,
    y: Any,
    X: Any,
    horizon: int | None,
    start: Any,
    n_windows: int | None,
    step: int,
    refit: bool | int,
    window: int | None,
    wanted: Request,
) -> Backtest:
    """`backtest` of what is `wanted`."""
    named = _named(models)
    steps = _horizon(named, horizon)
    reading = read(y, Names())
    index = reading.index
    clock = learn_clock(index, None, None, reading.neighbours)
    check_positive_integer(step, "step")
    times = clock.times(clock.counts(index))
    cutoffs = check_cutoffs(index, times, steps, start, n_windows, step)
    every = check_refit(refit)
    ids = ["y" if name is None else name for name in reading.layout.ids]
    labels = ids if reading.layout.labelled else [f"y{name}" for name in ids]  # columns of X are counted too
    columns = pd.Index(labels, dtype=object, tupleize_cols=False)
    table = pd.DataFrame(reading.values.T, index=index, columns=columns)
    if X is not None and not reading.layout.labelled:
        X = pd.DataFrame(X, index=index[: len(X)])
    rows = None if window is None else check_positive_integer(window, "window")
    return Backtest(named, table, ids, times, X, steps, cutoffs, every, rows, wanted)


class Backtest:
    """Forecasts from rolling origins, made when they are asked for; `backtest` makes it."""

    def __init__(
        self,
        models: dict[str, Forecaster],
        table: pd.DataFrame,
        ids: list[Any],
        times: Array,
        X: Any,
        horizon: int,
        cutoffs: Ints,
        every: int,
        window: int | None,
        wanted: Request,
    ) -> None:
        self.models, self.horizon, self.cutoffs = models, horizon, cutoffs
        self._table, self._ids, self._times, self._X, self._every, self._window = (
            table,
            ids,
            times,
            X,
            every,
            window,
        )
        self._wanted = wanted
        self.seconds: dict[str, tuple[float, float]] = {}
        self._sums: dict[str, Sums] = {}

    def __repr__(self) -> str:
        ahead = f"{self.horizon} steps ahead from each of {self.cutoffs.size} rows"
        return f"<Backtest of {', '.join(self.models)}, {ahead}: ask it for .scores() or .frame()>"

    def frame(self) -> pd.DataFrame:
        """All forecasts, a row for each series, origin and lead.

        Returns
        -------
        DataFrame with the columns `unique_id`, `ds` (the stamp forecast), `cutoff` (the last row known), `y`
        (the true value, NaN for none), then of each model its name and, with `level` or `quantiles`, those
        with their endings. It grows with the origins; scores are kept on the way, so ask for them afterwards.

        Raises
        ------
        TypeError, ValueError : as `fit` and `update` of the models.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> backtest(Naive(2), [1.0, 3.0, 2.0, 4.0], n_windows=1, level=50).frame().round(2)
          unique_id  ds  cutoff    y  Naive  Naive-lo-50  Naive-hi-50
        0         0   2       1  2.0    3.0          3.0          3.0
        1         0   3       1  4.0    3.0          3.0          3.0
        """
        columns: dict[str, Any] = {}
        named = [0, *(1 + at for at, suffix in enumerate(self._wanted.suffixes) if suffix)]
        for name in self.models:
            batches = [b._replace(table=b.table[..., named]) for b in self.batches(name)]
            if not columns:
                columns = self._keys(batches)
            told = np.concatenate([b.table for b in batches], axis=1)  # (series, origins, horizon, named)
            for at, suffix in enumerate(("", *filter(None, self._wanted.suffixes))):
                columns[f"{name}{suffix}"] = told[..., at].swapaxes(0, 1).ravel()
        return pd.DataFrame(columns)

    def scores(self, by: str | None = None) -> pd.DataFrame:
        """How far off the models were. The forecasts are summed up as they come, and not kept.

        Parameters
        ----------
        by : None for a row a model; "series" or "lead" for one for each of these besides.

        Returns
        -------
        DataFrame with the columns `mae` and `rmse` (units of the series), `mase` and `rmsse` (in units of the
        mean absolute, and root mean square, step of the history before the first forecast), `smape` (mean of
        |error| / (|y| + |forecast|), 0 to 1), `coverage-90` and `width-90` (in units of the mean absolute
        step) for each level, `pinball_0.1` for each quantile: of each series over its origins and leads, mean
        over series. A series without a value, or whose history never moved, is left out where it must be.

        Raises
        ------
        TypeError, ValueError : as `fit` and `update` of the models; another `by`.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> tried = backtest(Naive(2), [1.0, 3.0, 2.0, 4.0, 3.0], start=2)
        >>> tried.scores("lead").loc["Naive", "mase"].tolist()
        [0.75, 0.5]
        """
        if by not in (None, "series", "lead"):
            raise ValueError(f"by must be None, 'series' or 'lead', got {by!r}.")
        for name in self.models:
            if name not in self._sums:
                for _ in self.batches(name):
                    pass
        scales = self.naive_scales(1), self.naive_scales(2)
        told = {name: self._sums[name].means(by, *scales) for name in self.models}
        groups: dict[str | None, Any] = {
            None: None,
            "series": pd.Index(self._ids, name="unique_id"),
            "lead": pd.Index(np.arange(1, self.horizon + 1), name="lead"),
        }
        if by is None:
            return pd.DataFrame({name: means.loc[0] for name, means in told.items()}).T.rename_axis("model")
        return pd.concat({name: means.set_axis(groups[by]) for name, means in told.items()}, names=["model"])

    @property
    def overlap(self) -> int:
        """How many forecasts in a row, at most, share a time: the horizon, in origins."""
        times = self._times[self.cutoffs]
        return int((np.searchsorted(times, times + self.horizon) - np.arange(times.size)).max())

    def naive_scales(self, power: int) -> Array:
        """(series,): the mean |step| ** `power` of the history before the first forecast."""
        history = self._table.to_numpy()[: self.cutoffs[0] + 1].T
        return np.array([naive_scale(row, power) for row in history])

    def batches(self, name: str) -> Iterator[Batch]:
        """All forecasts of a model, which are summed up, and timed, once all have come by."""
        sums, seconds = Sums(self._wanted), {"fit": 0.0, "all": 0.0}
        every = self._every or len(self.cutoffs)
        for first in range(0, len(self.cutoffs), every):
            cutoffs = self.cutoffs[first : first + every]
            try:
                for batch in _timed(self._segment(self.models[name], cutoffs, seconds), seconds):
                    sums.add(batch)
                    yield batch
            except (TypeError, ValueError) as error:
                error.add_note(f"In the backtest of {name!r}, fitted up to {self._table.index[cutoffs[0]]}.")
                raise
        self._sums[name], self.seconds[name] = sums, (seconds["fit"], seconds["all"] - seconds["fit"])

    def _segment(self, model: Forecaster, cutoffs: Ints, seconds: dict[str, float]) -> Iterator[Batch]:
        """Forecasts from the rows `cutoffs` of a copy fitted up to the first of them."""
        fitted_to = int(cutoffs[0])
        begin = 0 if self._window is None else max(0, fitted_to + 1 - self._window)
        history, now = self._table.iloc[begin : fitted_to + 1], perf_counter()
        fitted = clone(model).fit(history, self._X)
        seconds["fit"] += perf_counter() - now
        until = np.searchsorted(self._times, self._times[cutoffs[-1]] + self.horizon + 1)
        future = fitted._continuation(self._table.iloc[fitted_to + 1 : until], self._X)
        truth = Panel(
            np.pad(future.values, ((0, 0), (1, 0)), constant_values=np.nan),
            np.append(fitted._clock.times(fitted._counts[:1]), future.panel.times),
        )
        counts = fitted._clock.counts(self._table.index[cutoffs])
        ahead, start = fitted._ahead_of(self._X, self.horizon, counts), 0
        for forecast in fitted._answers(
            fitted._state,
            future.panel,
            cutoffs - fitted_to,
            ahead,
            self.horizon,
            self._wanted.asked,
            mean=self._wanted.point == "mean",
        ):
            here = slice(start, start + forecast.mean.shape[1])
            due = fitted._clock.future(counts[here], self.horizon)
            true = _truth(truth, cutoffs[here] - fitted_to, self.horizon)
            yield Batch(cutoffs[here], due, true, self._wanted.table(forecast))
            start = here.stop

    def _keys(self, batches: list[Batch]) -> dict[str, Any]:
        ids, leads = self._ids, self.horizon
        cutoffs = np.concatenate([b.cutoffs for b in batches])
        due = batches[0].due.append([b.due for b in batches[1:]])
        shape = (len(cutoffs), len(ids), leads)
        place = np.broadcast_to(np.arange(len(due)).reshape(-1, 1, leads), shape).ravel()
        return {
            "unique_id": pd.Index(ids, tupleize_cols=False).take(
                np.broadcast_to(np.arange(len(ids))[:, None], shape).ravel()
            ),
            "ds": due.take(place),
            "cutoff": self._table.index.take(np.repeat(cutoffs, len(ids) * leads)),
            "y": np.concatenate([b.truth for b in batches], axis=1).swapaxes(0, 1).ravel(),
        }


def _timed(batches: Iterator[Batch], seconds: dict[str, float]) -> Iterator[Batch]:
    """The batches, their making counted in `seconds`."""
    while True:
        now = perf_counter()
        batch = next(batches, None)
        seconds["all"] += perf_counter() - now
        if batch is None:
            return
        yield batch


def _truth(known: Panel, origins: Ints, horizon: int) -> Array:
    """(series, origins, horizon): the values after the rows `origins` of `known`, NaN for none."""
    first = int(origins[0])
    return known.reaching(first, int(origins[-1]) + 1, horizon).ahead(horizon)[:, origins - first]


def _named(models: Any) -> dict[str, Forecaster]:
    named = {type(models).__name__: models} if isinstance(models, Forecaster) else models
    if not isinstance(named, Mapping) or not named:
        raise TypeError(
            f"models came as {type(models).__name__}; a forecaster or a dict of them by name is needed. "
            "Write `{'ridge': FracRidge(24)}`."
        )
    for name, model in named.items():
        if not isinstance(model, Forecaster):
            raise TypeError(f"models[{name!r}] is a {type(model).__name__}; a forecaster is needed.")
    return {str(name): clone(model) for name, model in named.items()}


def _horizon(models: Mapping[str, Forecaster], horizon: int | None) -> int:
    horizons = {name: model.horizon for name, model in models.items()}
    if horizon is None and len(set(horizons.values())) > 1:
        raise ValueError(f"the models have different horizons, {horizons}. Give horizon=, in steps.")
    return check_positive_integer(next(iter(horizons.values())) if horizon is None else horizon, "horizon")
