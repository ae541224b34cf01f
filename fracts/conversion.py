"""Behind the door: a history becomes a panel and a state, a state a table of numbers.

One idea: what a model does is in four hooks on plain arrays, at the head of the class; all else here stands
around them. Whatever changes an estimator is assigned last, once all is checked and computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from fracts.checks import check_positive_integer, check_some_value
from fracts.cohorts import advanced, forecast, joined, taken, together
from fracts.covariate_reading import Places
from fracts.covariates import Covariates, learn_covariates
from fracts.effects import Effects, effect, freed, moved
from fracts.forecasts import QUANTILES, Forecast, Request
from fracts.gaps import tell_gaps
from fracts.grids import grids
from fracts.layouts import Layout
from fracts.names import Names
from fracts.passes import Ahead, walked
from fracts.reading import Reading, read
from fracts.rulers import Counts
from fracts.scores import naive_scale
from fracts.scoring import Continuation
from fracts.series import Panel, State
from fracts.timeline import Clock, learn_clock
from fracts.transforms import Scale, learn_scale

_HALF = np.array([0.5])


class Conversion(ABC):
    """Mixin of `Forecaster`: containers in, tables of numbers out."""

    horizon: int
    past_only: Sequence[Any]
    lower: float | None
    transform: Any
    series_ids_: list[Any]
    freq_: str | None
    covariates_: list[Any]
    _names: Names
    _on_gaps: str
    _layout: Layout
    _clock: Clock
    _scale: NDArray[np.float64]
    _covariates: Covariates
    _transform: Scale
    _effects: Effects | None = None  # of what is known in advance, that the model does not see
    _state: State
    _counts: Counts  # (series,), of the last row of each

    @abstractmethod
    def _fit(self, panel: Panel, clock: Clock) -> None:
        """Learn the weights, attributes ending in `_`, from a panel that may hold NaN."""

    @abstractmethod
    def _empty_state(self, n_series: int) -> State:
        """The state before any row."""

    @abstractmethod
    def _advance(self, state: State, panel: Panel) -> State:
        """The state after the rows of `panel`, knowing the time of the last; `state` is left alone."""

    @abstractmethod
    def _forecast(self, state: State, horizon: int, quantiles: NDArray[np.float64]) -> Forecast:
        """The next `horizon` steps seen from the last row of `state`, at ascending levels `quantiles`.

        `state` holds the covariates known in advance besides, as `ahead` (series, at least `self.horizon` and
        `horizon` steps, numbers).
        """

    def _settled(self, state: State, panel: Panel) -> State:
        """The state to go on from after the history `panel` that was fitted."""
        return state

    def _median(self, state: State, horizon: int) -> NDArray[np.float64]:
        """Medians (series, horizon) of `_forecast`. A model overrides this where they alone are faster."""
        return self._forecast(state, horizon, _HALF).quantiles[..., 0]

    def _at_hand(self, steps: int) -> State:
        """The state, as far as a forecast of so many `steps` reads it."""
        return self._state

    def _learned_on(self, rows: Continuation) -> dict[str, Any]:
        """The attributes that learning from `rows`, which follow the state, changes."""
        raise ValueError(
            f"update_params=True, but this {type(self).__name__} does not learn on. Make it with "
            "`forgetting=`, if it has that parameter, or `fit` it again."
        )

    def _roll(
        self,
        state: State,
        panel: Panel,
        origins: NDArray[np.int64],
        ahead: Ahead,
        horizon: int,
        quantiles: NDArray[np.float64],
    ) -> Iterator[Forecast]:
        """`_forecast` from `origins`, ascending numbers of rows of `panel` gone by from `state`.

        In batches, with an axis of origins after that of series. `ahead` is of every origin what `_forecast`
        has in its state. A model overrides this where it reads many rows at once.
        """
        return walked(
            lambda seen: self._forecast(seen, horizon, quantiles), self._advance, state, panel, origins, ahead
        )

    def _learn(self, reading: Reading, X: Any, freq: str | int | None, base_step: Any) -> None:
        check_positive_integer(self.horizon, "horizon")
        clock = learn_clock(reading.index, freq, base_step, reading.neighbours)
        values = reading.values
        counts = self._enter(reading, clock)
        self._covariates = learn_covariates(X, self.past_only, self._places(values, counts))
        self.covariates_ = list(self._covariates.names)
        scale = self._chosen_transform(Panel(values, self._clock.times(counts)))
        self._transform = learn_scale(scale, self.lower, values, self._places(values, counts).told)
        panel = self._panel(values, counts, X)
        self._fit(panel, self._clock)
        self._start(panel, reading)
        self._state = self._settled(self._state, self._freed(self._state, panel))

    def _chosen_transform(self, panel: Panel) -> Any:
        """The transform to work with on `panel`, which holds the values as they came."""
        return self.transform

    def _enter(self, reading: Reading, clock: Clock) -> Counts:
        """The rows of a history on `clock`, once everything known of it is taken down."""
        ids = reading.layout.ids
        check_some_value(reading.values, ids)
        counts = clock.counts(reading.index)
        series, before, after = reading.pairs(counts)
        tell_gaps(clock, before, after, series, ids, self._on_gaps)
        self._layout, self._clock, self._counts = reading.layout, clock, counts[reading.last]
        self._scale = np.array([naive_scale(row, power=2) for row in reading.values])
        self.series_ids_, self.freq_ = ids, clock.freq
        return counts

    def _places(self, values: NDArray[np.float64], counts: Counts) -> Places:
        """Where covariates are wanted: at `counts` (rows,) or (series, rows), where `values` has one."""
        every = np.broadcast_to(counts, values.shape)
        needed = ~np.isnan(values)
        return Places(self.series_ids_, every, self._clock, needed, self._names, self._layout.labelled)

    def _panel(self, values: NDArray[np.float64], counts: Counts, X: Any) -> Panel:
        """Values (series, rows) on the scale of the model, with their covariates."""
        places = self._places(values, counts)
        covariates = self._covariates.history(X, places)
        moved = self._transform.forward(values, places.told)
        return Panel(moved, self._clock.times(counts), covariates)

    def _start(self, panel: Panel, reading: Reading) -> None:
        needed = ~np.isnan(panel.values)
        needed[np.arange(len(needed)), reading.last] = True  # it is forecast from there, value or not
        empty, parts = self._empty_state(len(panel.values)), []
        if self._effects is not None:
            empty |= self._effects.of(self.series_ids_, panel.values)
        panel = self._freed(empty, panel)
        for series, part in grids(panel, needed):
            start = np.zeros(len(series), dtype=np.int64)
            end = np.searchsorted(part.times, panel.times[reading.last[series]], side="right")
            after = advanced(self._advance, taken(empty, series), part, start, start, end)
            parts.append((series, after))
        self._state = joined(parts)

    def _continuation(self, y: Any, X: Any) -> Continuation:
        """The rows of `y`, checked to follow the cutoffs."""
        self._check_fitted()
        given = read(y, self._names, start=int(self._counts[0]) + 1)
        places = self._layout.places(given.layout)
        counts = self._clock.counts(given.index)
        known = self._counts[places]
        if (early := np.flatnonzero(counts[given.first] <= known)).size:
            at = early[0]
            raise ValueError(
                f"series {given.layout.ids[at]!r}: y starts at {given.index[given.first[at]]}, but rows up "
                f"to {self._clock.stamp(known[at])} are known. Stamps must come after the cutoff: leave the "
                "earlier rows out, or start anew with `apply` or `fit`."
            )
        series, before, after = given.pairs(counts, known)
        tell_gaps(self._clock, before, after, series, given.layout.ids, self._on_gaps)
        values = np.full((len(self._counts), len(counts)), np.nan)
        values[places] = given.values
        begin = np.searchsorted(counts, self._counts, side="right")
        if self._layout.apart:
            end, ends = begin.copy(), self._counts.copy()
            end[places], ends[places] = given.last + 1, counts[given.last]
        else:
            end, ends = np.full_like(begin, len(counts)), np.full_like(self._counts, counts[-1])
        panel = self._freed(self._state, self._panel(values, counts, X))
        return Continuation(panel, values, begin, end, ends)

    def _learn_row(self, row: NDArray[np.float64], x: Any) -> None:
        """Move on by one step with the values `row` (series,)."""
        counts = self._clock.after(self._counts)
        values, covariates = row[:, None], np.empty((len(row), 1, 0))
        if x is not None or self.covariates_ or not self._transform.plain:
            places = self._places(values, counts[:, None])
            covariates = self._covariates.row(x, places)[:, None]
            values = self._transform.forward(values, places.told)
        self._follow(Panel(values, self._clock.times(counts[:1]), covariates), counts)

    def _follow(self, row: Panel, counts: Counts) -> None:
        """Move on to `counts` (series,) with the values of a `row`, on the scale of the model."""
        one = self._freed(self._state, row)
        if together(counts):
            state = self._advance(self._state, one)
        else:
            at, begin = np.unique(counts, return_inverse=True)
            each = (np.repeat(array, at.size, axis=1) for array in (one.values, one.covariates))
            panel = Panel(next(each), self._clock.times(at), next(each))
            state = advanced(self._advance, self._state, panel, counts, begin, begin + 1)
        self._state, self._counts = state, counts

    def _table(self, horizon: int | None, X: Any, wanted: Request) -> NDArray[np.float64]:
        self._check_fitted()
        steps = check_positive_integer(self.horizon if horizon is None else horizon, "horizon")
        state = self._at_hand(steps) | {"ahead": self._ahead(X, steps, self._counts)}
        if wanted.plain and together(self._counts):
            return self._points(state, steps)[..., None]
        mean = wanted.point == "mean"
        return wanted.table(
            forecast(lambda part: self._answer(part, steps, wanted.asked, mean=mean), state, self._counts)
        )

    def _ahead(self, X: Any, steps: int, cutoffs: Counts) -> NDArray[np.float64]:
        """Covariates known in advance (series, steps, numbers), 0 from `steps` to the horizon trained for."""
        if X is None and not self._covariates.known:
            return np.empty((len(cutoffs), max(steps, self.horizon), 0))
        counts = self._clock.ahead(cutoffs, steps)
        ahead = self._covariates.ahead(X, self._places(np.zeros(counts.shape), counts))
        return np.pad(ahead, ((0, 0), (0, max(0, self.horizon - steps)), (0, 0)))

    def _ahead_of(self, X: Any, steps: int, cutoffs: Counts) -> Ahead:
        """`_ahead` of some of `cutoffs` (origins,), at which all series stand; X is read once."""
        n_series, horizon = len(self._counts), max(steps, self.horizon)
        if X is None and not self._covariates.known:
            return lambda at: np.empty((n_series, len(at), horizon, 0))
        due = self._clock.ahead(cutoffs, steps)
        every = np.unique(due)
        known = self._covariates.ahead(X, self._places(np.zeros((n_series, every.size)), every))

        def ahead(at: NDArray[np.int64]) -> NDArray[np.float64]:
            found = known[:, np.searchsorted(every, due[at])]
            return np.pad(found, ((0, 0), (0, 0), (0, horizon - steps), (0, 0)))

        return ahead

    def _answer(
        self, state: State, steps: int, levels: NDArray[np.float64], *, mean: bool = False
    ) -> Forecast:
        """`_forecast` in the units of the series; its mean is right only if asked for."""
        asked = self._asked(levels, mean=mean)
        said = self._with_effects(self._forecast(state, steps, asked), state, state["ahead"])
        return self._in_units(said, asked, levels, mean=mean)

    def _points(self, state: State, steps: int) -> NDArray[np.float64]:
        """`_median` in the units of the series."""
        medians = self._median(state, steps)
        if "effects" in state:
            medians = medians + effect(state["effects"], state["ahead"][:, :steps])
        return medians if self._transform.plain else self._transform.back(medians)

    def _answers(
        self,
        state: State,
        panel: Panel,
        origins: NDArray[np.int64],
        ahead: Ahead,
        steps: int,
        levels: NDArray[np.float64],
        *,
        mean: bool = False,
    ) -> Iterator[Forecast]:
        """`_roll` in the units of the series; its means are right only if asked for."""
        asked = self._asked(levels, mean=mean)
        told = 0
        for found in self._roll(state, panel, origins, ahead, steps, asked):
            here = np.arange(told, told := told + found.mean.shape[1])
            yield self._in_units(self._with_effects(found, state, ahead(here)), asked, levels, mean=mean)

    def _freed(self, state: State, panel: Panel) -> Panel:
        """The `panel` as the model sees it: without the effects that `state` tells of."""
        return freed(panel, state["effects"]) if "effects" in state else panel

    def _with_effects(self, said: Forecast, state: State, ahead: NDArray[np.float64]) -> Forecast:
        """What the model `said` with the effects of what is known `ahead`."""
        return moved(said, state["effects"], ahead) if "effects" in state else said

    def _asked(self, levels: NDArray[np.float64], *, mean: bool) -> NDArray[np.float64]:
        """Levels to ask the model for: those wanted, and what a mean in other units is made of."""
        return np.union1d(levels, QUANTILES) if mean and not self._transform.plain else levels

    def _in_units(
        self, found: Forecast, asked: NDArray[np.float64], levels: NDArray[np.float64], *, mean: bool
    ) -> Forecast:
        """A forecast at the levels `asked`, of any shape, as one at `levels` in the units of the series."""
        if self._transform.plain:
            return found
        quantiles = self._transform.back(found.quantiles[..., np.isin(asked, levels)])
        if not mean:
            return Forecast(quantiles[..., 0], quantiles)
        return Forecast(self._transform.mean(found.quantiles[..., np.isin(asked, QUANTILES)]), quantiles)

    def _medians(
        self, state: State, panel: Panel, origins: NDArray[np.int64], ahead: Ahead
    ) -> Iterator[NDArray[np.float64]]:
        for said in self._answers(state, panel, origins, ahead, self.horizon, np.array([0.5])):
            yield said.quantiles[..., 0]

    def _check_fitted(self) -> None:
        if not hasattr(self, "_counts"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit first.")
