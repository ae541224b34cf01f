"""Every series its own model: fitted one by one, in parallel if wanted, and what fails is said and replaced.

One idea: fitting a series gives a machine (a model with numbers in it that runs on arrays), or a reason why
not. Machines of one kind are stacked into one; a series without has that of the fallback. So a panel is one
`Partition` of machines, and the hooks of every such estimator are the same few lines.
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from fracts.base import Forecaster
from fracts.checks import FitWarning, group_of
from fracts.forecasts import Forecast
from fracts.series import Panel, State
from fracts.timeline import Clock

Array = NDArray[np.float64]

_NAMED = 3  # series that a warning names


class Machine(Protocol):
    """Fitted models of several series, run on arrays whose first axis is the series."""

    def take(self, places: NDArray[np.int64]) -> Self:
        """The models at `places`, one for each."""

    def empty(self) -> State:
        """The state before any row."""

    def advance(self, state: State, panel: Panel) -> State:
        """The state after the rows of `panel`."""

    def forecast(self, state: State, horizon: int, levels: Array) -> Forecast:
        """The next `horizon` steps at ascending quantile `levels`."""


class Unfit(ValueError):
    """Why a series cannot have the model asked for; the fallback takes it over."""


@dataclass(frozen=True)
class Fitted:
    """A series' machine, what it learned, and why to distrust it ("" where nothing speaks against it)."""

    machine: Any
    learned: Any
    remark: str = ""


class EachSeries:
    """Mixin of forecasters that fit every series on its own: they fill `_fitter` and `_stack`.

    Goes before `Forecaster` among the bases.
    """

    horizon: int
    series_ids_: list[Any]
    n_jobs: int | None
    progress: bool
    fallback: Forecaster | None

    def _fitter(self, clock: Clock, n_steps: int) -> Callable[[Array], Fitted]:
        """What fits one series (steps,), its first and last value known; picklable. Raises `Unfit`."""
        raise NotImplementedError

    def _stack(self, machines: Sequence[Any]) -> Machine:
        """The machines of several series as one."""
        raise NotImplementedError

    def _fit(self, panel: Panel, clock: Clock) -> None:
        _check_options(self.n_jobs, self.progress, self.fallback)
        values = on_every_step(panel, clock, type(self).__name__)
        found = _fit_all(self._fitter(clock, values.shape[1]), values, self.n_jobs, self.progress)
        names = self.series_ids_
        self.failures_ = {n: f for n, f in zip(names, found, strict=True) if isinstance(f, str)}
        self._fitted_ids = list(names)
        self._learned_by_series = [None if isinstance(f, str) else f.learned for f in found]
        own = np.array([not isinstance(f, str) for f in found])
        parts: list[Machine] = []
        if own.any():
            parts.append(self._stack([f.machine for f in found if not isinstance(f, str)]))
        if not own.all():
            parts.append(_Standby.fitted(self._substitute(), panel, clock, own, names))
        self._machine = Partition(tuple(parts), np.where(own, 0, len(parts) - 1))
        remarks = {
            n: f.remark for n, f in zip(names, found, strict=True) if not isinstance(f, str) and f.remark
        }
        _warn(type(self).__name__, self.failures_, remarks, type(self._substitute()).__name__)

    def _learned_of_series(self) -> dict[Any, Any]:
        """What was learned, by series, of those that were fitted."""
        pairs = zip(self._fitted_ids, self._learned_by_series, strict=True)
        return {name: learned for name, learned in pairs if learned is not None}

    def _substitute(self) -> Forecaster:
        from fracts.baselines.naive import Naive

        return Naive(self.horizon) if self.fallback is None else clone(self.fallback)

    def _empty_state(self, n_series: int) -> State:
        places = range(n_series) if self.series_ids_ == self._fitted_ids else self._places_of_ids()
        group = np.array(list(places), dtype=np.int64)
        return {"group": group, **self._machine.take(group).empty()}

    def _places_of_ids(self) -> list[int]:
        if len(self._fitted_ids) == 1:
            return [0] * len(self.series_ids_)
        return [group_of(name, self._fitted_ids) for name in self.series_ids_]

    def _advance(self, state: State, panel: Panel) -> State:
        machine = self._machine.take(state["group"])
        return {"group": state["group"], **machine.advance(_without_group(state), panel)}

    def _forecast(self, state: State, horizon: int, quantiles: Array) -> Forecast:
        return self._machine.take(state["group"]).forecast(_without_group(state), horizon, quantiles)


@dataclass(frozen=True)
class Partition:
    """Machines that share out the series: `part` (series,) says which of `machines` each belongs to."""

    machines: tuple[Machine, ...]
    part: NDArray[np.int64]

    def take(self, places: NDArray[np.int64]) -> Partition:
        """The models at `places`, one for each."""
        if len(places) == len(self.part) and (places == np.arange(len(places))).all():
            return self
        within = np.empty(len(self.part), dtype=np.int64)
        for k in range(len(self.machines)):
            within[self.part == k] = np.arange(np.count_nonzero(self.part == k))
        part = self.part[places]
        machines = [m.take(within[places[part == k]]) for k, m in enumerate(self.machines)]
        return Partition(tuple(machines), part)

    def empty(self) -> State:
        """The state before any row."""
        return self._joined([machine.empty() for machine in self.machines])

    def advance(self, state: State, panel: Panel) -> State:
        """The state after the rows of `panel`."""
        moved = []
        for k, machine in enumerate(self.machines):
            rows = self.part == k
            own = self._own(state, k)
            moved.append(machine.advance(own, Panel(panel.values[rows], panel.times)) if rows.any() else own)
        return self._joined(moved)

    def forecast(self, state: State, horizon: int, levels: Array) -> Forecast:
        """The next `horizon` steps at `levels`."""
        mean = np.empty((len(self.part), horizon))
        quantiles = np.empty((len(self.part), horizon, len(levels)))
        for k, machine in enumerate(self.machines):
            if (rows := self.part == k).any():
                said = machine.forecast(self._own(state, k), horizon, levels)
                mean[rows], quantiles[rows] = said.mean, said.quantiles
        return Forecast(mean, quantiles)

    def _own(self, state: State, k: int) -> State:
        """The rows and arrays of machine k in the state of all."""
        if len(self.machines) == 1:
            return state
        return {
            name.partition(":")[2]: array[self.part == k]
            for name, array in state.items()
            if name.startswith(f"{k}:")
        }

    def _joined(self, states: Sequence[State]) -> State:
        """States of the machines as one, rows of the others zero."""
        if len(states) == 1:
            return states[0]
        joined: State = {}
        for k, state in enumerate(states):
            for name, array in state.items():
                whole = np.zeros((len(self.part), *array.shape[1:]), dtype=array.dtype)
                whole[self.part == k] = array
                joined[f"{k}:{name}"] = whole
        return joined


@dataclass(frozen=True)
class _Standby:
    """The fallback as a machine."""

    model: Any

    @classmethod
    def fitted(
        cls, model: Any, panel: Panel, clock: Clock, own: NDArray[np.bool_], names: Sequence[Any]
    ) -> _Standby:
        """`model` fitted to the series that are not their `own`."""
        model.series_ids_ = [name for name, has in zip(names, own, strict=True) if not has]
        model._fit(Panel(panel.values[~own], panel.times), clock)
        return cls(model)

    def take(self, places: NDArray[np.int64]) -> _Standby:
        model = copy.copy(self.model)
        model.series_ids_ = [self.model.series_ids_[place] for place in places]
        return _Standby(model)

    def empty(self) -> State:
        state: State = self.model._empty_state(len(self.model.series_ids_))
        return state

    def advance(self, state: State, panel: Panel) -> State:
        moved: State = self.model._advance(state, panel)
        return moved

    def forecast(self, state: State, horizon: int, levels: Array) -> Forecast:
        said: Forecast = self.model._forecast(state, horizon, levels)
        return said


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
        raise ValueError(f"progress must be True (a bar on stderr) or False, got {progress!r}.")
    if not (fallback is None or isinstance(fallback, Forecaster)):
        raise TypeError(
            f"fallback must be None (Naive) or a forecaster, got a {type(fallback).__name__}. "
            "Give an estimator such as SeasonalNaive(24), not its class."
        )


def _fit_all(
    fitter: Callable[[Array], Fitted], values: Array, n_jobs: int | None, progress: bool
) -> list[Fitted | str]:
    """What `fitter` makes of each series, or the reason why it could not."""
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=1):
        results = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(_try)(fitter, row) for row in values)
        return list(_shown(results, len(values), progress))


def _try(fitter: Callable[[Array], Fitted], row: Array) -> Fitted | str:
    known = np.flatnonzero(~np.isnan(row))
    try:
        with threadpool_limits(1, user_api="blas"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the optimisers; what counts comes back as a remark
            return fitter(row[known[0] : known[-1] + 1])
    except Unfit as reason:
        return str(reason)
    except (ArithmeticError, ValueError, np.linalg.LinAlgError, IndexError) as fault:
        return f"the fit broke off with {type(fault).__name__}: {fault}"


def _shown(results: Any, total: int, progress: bool) -> Any:
    """`results` with a bar on stderr: a widget in notebooks, a line now and then in logs."""
    if not progress:
        return results
    from tqdm.auto import tqdm

    return tqdm(results, total=total, unit="series", mininterval=0.1 if sys.stderr.isatty() else 10.0)


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


def _without_group(state: State) -> State:
    return {name: array for name, array in state.items() if name != "group"}
