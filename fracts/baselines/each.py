"""Every series its own model: fitted one by one, in parallel if wanted, and what fails is said and replaced.

One idea: fitting a series gives a machine, or a reason why not; a series without has that of the fallback. So
the panel is one `Partition` of machines, and the hooks of every such estimator are the same few lines.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from threadpoolctl import ThreadpoolController

from fracts.base import Forecaster
from fracts.baselines.machines import Inner, Partition
from fracts.baselines.progress import shown
from fracts.checks import FitWarning
from fracts.series import Panel
from fracts.timeline import Clock

Array = NDArray[np.float64]

_NAMED = 3  # series that a warning names


class Unfit(ValueError):
    """Why a series cannot have the model asked for; the fallback takes it over."""


@dataclass(frozen=True)
class Fitted:
    """A series' machine, what it learned, and why to distrust it ("" where nothing speaks against it)."""

    machine: Any
    learned: Any
    remark: str = ""


class EachSeries(ABC):
    """Mixin of forecasters that fit every series on its own: they fill `_fitter`.

    Goes before `OnMachine` and `Forecaster` among the bases.
    """

    horizon: int
    series_ids_: list[Any]
    n_jobs: int | None
    progress: bool
    fallback: Forecaster | None

    @abstractmethod
    def _fitter(self, clock: Clock, n_steps: int) -> Callable[[Array, int], Fitted]:
        """What fits a series (steps,), cut to its first and last value, and the step of the first; picklable.

        It raises `Unfit`.
        """

    def _fit(self, panel: Panel, clock: Clock) -> None:
        _check_options(self.n_jobs, self.progress, self.fallback)
        values = on_every_step(panel, clock, type(self).__name__)
        found = _fit_all(self._fitter(clock, values.shape[1]), values, self.n_jobs, self.progress)
        names = self.series_ids_
        self.failures_ = {n: f for n, f in zip(names, found, strict=True) if isinstance(f, str)}
        self._fitted_ids = list(names)
        self._learned_by_series = [None if isinstance(f, str) else f.learned for f in found]
        machines = [None if isinstance(f, str) else f.machine for f in found]
        if self.failures_:
            failed = [place for place, machine in enumerate(machines) if machine is None]
            share = Panel(panel.values[failed], panel.times)
            standby = Inner.fitted(self._substitute(), share, clock, list(self.failures_))
            for row, place in enumerate(failed):
                machines[place] = standby.take(np.array([row]))
        self._machine = Partition.of(machines)
        remarks = {
            n: f.remark for n, f in zip(names, found, strict=True) if not isinstance(f, str) and f.remark
        }
        _warn(type(self).__name__, self.failures_, remarks, type(self._substitute()).__name__)

    def _learned_of_series(self) -> dict[Any, Any]:
        """What was learned, by series, of those that were fitted; NotFittedError before fit."""
        if not hasattr(self, "_learned_by_series"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit first.")
        pairs = zip(self._fitted_ids, self._learned_by_series, strict=True)
        return {name: learned for name, learned in pairs if learned is not None}

    def _substitute(self) -> Forecaster:
        from fracts.baselines.naive import Naive

        return Naive(self.horizon) if self.fallback is None else self.fallback


def on_every_step(panel: Panel, clock: Clock, model: str) -> Array:
    """(series, steps): the values of `panel` at whole steps from its first row, NaN where there is no row.

    Raises ValueError in real time, where rows lie between the steps.
    """
    if not clock.whole:
        raise ValueError(
            f"{model} counts steps, and these stamps lie on no grid. Put the series on one, as "
            "`y.resample('h').mean()` does, or use FracRidge or FracForecaster, which take real time."
        )
    steps = np.rint(panel.times - panel.times[0]).astype(np.int64)
    values = np.full((len(panel.values), int(steps[-1]) + 1), np.nan)
    values[:, steps] = panel.values
    return values


def _check_options(n_jobs: object, progress: object, fallback: object) -> None:
    """ValueError or TypeError unless the options that all such estimators share make sense."""
    if not (
        n_jobs is None or (isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool) and n_jobs != 0)
    ):
        raise ValueError(f"n_jobs must be None (1), a number of processes or -1 for all, got {n_jobs!r}.")
    if not isinstance(progress, bool):
        raise ValueError(f"progress must be True (a bar) or False, got {progress!r}.")
    if not (fallback is None or isinstance(fallback, Forecaster)):
        raise TypeError(
            f"fallback must be None (Naive) or a forecaster, got a {type(fallback).__name__}. "
            "Give an estimator such as SeasonalNaive(24), not its class."
        )


def _fit_all(
    fitter: Callable[[Array, int], Fitted], values: Array, n_jobs: int | None, progress: bool
) -> list[Fitted | str]:
    """What `fitter` makes of each series, or the reason why it could not."""
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=1):
        results = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(_try)(fitter, row) for row in values)
        return list(shown(results, len(values)) if progress else results)


def _try(fitter: Callable[[Array, int], Fitted], row: Array) -> Fitted | str:
    known = np.flatnonzero(~np.isnan(row))
    try:
        with _libraries().limit(limits=1, user_api="blas"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the optimisers; what counts comes back as a remark
            return fitter(row[known[0] : known[-1] + 1], int(known[0]))
    except Unfit as reason:
        return str(reason)
    except (ArithmeticError, ValueError, np.linalg.LinAlgError, IndexError) as fault:
        return f"the fit broke off with {type(fault).__name__}: {fault}"


@cache
def _libraries() -> ThreadpoolController:
    """Those that the process has loaded; to look for them takes longer than many a fit."""
    return ThreadpoolController()


def _warn(model: str, failures: dict[Any, str], remarks: dict[Any, str], substitute: str) -> None:
    """One FitWarning for all series that failed or should be distrusted."""
    said = []
    if failures:
        said.append(f"{_counted(failures)}; {substitute} forecasts in its place")
    if remarks:
        said.append(_counted(remarks))
    if said:
        warnings.warn(f"{model}: {'. '.join(said)}.", FitWarning, stacklevel=5)  # the line that called `fit`


def _counted(reasons: dict[Any, str]) -> str:
    named = "; ".join(f"series {name!r}: {reason}" for name, reason in list(reasons.items())[:_NAMED])
    more = len(reasons) - _NAMED
    return f"{named}; and {more} more series" if more > 0 else named
