"""The linear path: every lead a ridge regression on the mode bank, leaning on anchors or on the centre.

Everything is read from a state of fixed size, so a stream equals a batch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fracts.anchor import SeasonSlots
from fracts.bank import Complex
from fracts.checks import group_of
from fracts.cuts import Cuts
from fracts.fast import compiled_memory, compiles
from fracts.forecasts import MEDIAN_AT
from fracts.lateness import features_revived, kinds, leads_after, state_revived, turned_after, whole
from fracts.recall import LinearMemory
from fracts.records import record
from fracts.regression import Penalty
from fracts.scaling import Array
from fracts.series import Panel, State
from fracts.smoothing import Smoothers


class Reading(NamedTuple):
    """Forecasts of the linear path, in units of scale around the centre."""

    leads: Array  # (series, ..., horizon)
    centre: Array  # (series, ...)
    scale: Array  # (series, ...)
    late: NDArray[np.int64] | None = None  # (series, ...), whole steps since the last value; None: all 0


class Pass(NamedTuple):
    """What the linear path says at some rows of a panel, and what it knows after all of them."""

    reading: Reading  # at those rows, as though each were a series
    centre: Array  # (series, rows), at all rows
    scale: Array
    state: State


@record
@dataclass(frozen=True)
class LinearPath:
    """A fitted linear path. Groups of series share coefficients: one group (pooled) or one a series."""

    memory: LinearMemory  # with the chosen anchor, alone or with the others beside it
    coefficients: Array  # (groups, features + ahead, horizon)
    held_out: Array  # (groups, folds, features + ahead, horizon): learned from what ends before each fold
    errors: Array  # (groups, horizon, quantiles): held-out errors in units of scale and noise
    penalty: Penalty
    ids: tuple[Any, ...]  # of the series fitted
    counts: NDArray[np.int64]  # (groups,), values that each group learned from
    weights: Array = field(default_factory=lambda: np.empty(0))  # (series,), what errors count; none: 1
    noise: Array = field(default_factory=lambda: np.empty(0))  # (series,), size of the errors; none: 1
    share: Array = field(default_factory=lambda: np.empty(0))  # (horizon,), of a network beside it; none: 0
    alone: Array = field(default_factory=lambda: np.empty(0))  # (horizon,), of what is not learned; none: 0

    heard: Array = field(init=False, repr=False)  # as `coefficients`, what is said beside that network

    turned: Complex = field(init=False, repr=False)  # (groups, modes, horizon): leads are real parts

    middle: Array = field(init=False, repr=False)  # (groups, horizon), medians of the errors

    blend: Array = field(init=False, repr=False)  # (groups, horizon, other anchors), weights of each

    leaning: Array = field(init=False, repr=False)  # (anchors that have slots, groups, horizon), the same

    leaning_apart: tuple[Array, Array] = field(init=False, repr=False)  # of seasons, and of smoothers

    def __post_init__(self) -> None:
        bank, size = self.memory.bank, self.memory.n_features + self.memory.covariates.n_known
        heard = self.coefficients
        if self.share.any():  # on its share the anchors are left, blended as usual among the groups
            usual = np.zeros_like(heard[:1])
            usual[:, size:] = heard[:, size:].mean(0)
            heard = (1 - self.share) * heard + self.share * usual
        object.__setattr__(self, "heard", heard)
        real, imaginary = np.split(self.mode_coefficients, [bank.tau.size], axis=1)
        turned = real.astype(complex)
        turned[:, bank.turning] -= 1j * imaginary
        object.__setattr__(self, "turned", turned)
        object.__setattr__(self, "middle", np.ascontiguousarray(self.errors[..., MEDIAN_AT]))
        blend = heard[:, size:]
        object.__setattr__(self, "blend", np.ascontiguousarray(blend.swapaxes(1, 2)))
        weights = np.stack([1 - self.blend.sum(-1), *np.moveaxis(self.blend, -1, 0)])
        has_slots = [anchor is not None for anchor in self.memory.anchors]
        leaning = weights[has_slots]
        smooth = np.array([isinstance(anchor, Smoothers) for _, anchor in self.memory.slotted], dtype=bool)
        object.__setattr__(self, "leaning", leaning)
        object.__setattr__(self, "leaning_apart", (leaning[~smooth], leaning[smooth]))

    @property
    def mode_coefficients(self) -> Array:
        """(groups, features, horizon), those of the series' own modes."""
        return self.heard[:, : self.memory.bank.feature_tau.size]

    def empty(self, ids: Sequence[Any]) -> State:
        """State of the series `ids` before any row.

        Raises ValueError for a series that was not fitted, where every series has coefficients of its own.
        """
        if len(self.coefficients) == 1:
            groups = np.zeros(len(ids), dtype=np.int64)
        else:
            groups = np.array([group_of(name, self.ids) for name in ids])
        own = {"weight": self._of_each(self.weights, ids), "noise": self._of_each(self.noise, ids)}
        return self.memory.empty(len(ids)) | {"group": groups} | own

    def error_quantiles(self, state: State) -> Array:
        """Quantiles of the errors to expect, in units of scale: (series, horizon, quantiles)."""
        expected: Array = self.errors[state["group"]]
        return expected * state["noise"][:, None, None] if "noise" in state else expected  # older files: none

    def _of_each(self, numbers: Array, ids: Sequence[Any]) -> Array:
        """Those of the `numbers` of the series fitted that are of `ids`, 1 for any other: (series,)."""
        known = dict(zip(self.ids, numbers.tolist(), strict=False))
        return np.array([known.get(name, 1.0) for name in ids])

    def advance(self, state: State, panel: Panel) -> State:
        """State after the rows of `panel`."""
        return self.memory.advance(state, panel)[0]

    def read(self, state: State) -> Reading:
        """What the path says at the last row: leads (series, horizon)."""
        said = self._read(state)
        if (since := self.memory.density.since(state)) is None:
            return said
        leads = said.leads.copy()
        for series, path, own in self._late(state, since):
            leads[series] = path._read(own).leads
        return said._replace(leads=leads, late=whole(since))

    def _read(self, state: State) -> Reading:
        """`read`, where all series have a value at the last row."""
        if not self.memory.covariates.n_columns:
            leads, centre, scale = self._around(state)
            return Reading(leads / scale[:, None], centre, scale)
        features, anchors, ahead, centre, scale = self.memory.read(state)
        leads = _leads(features, anchors[0], ahead[0], self.heard, state["group"])
        return Reading(leads, centre, scale)

    def medians(self, state: State) -> tuple[Array, Array]:
        """Medians (series, horizon) in the units of the series, the held-out errors added, and the scale."""
        medians, scale = self._medians(state)
        if (since := self.memory.density.since(state)) is not None:
            for series, path, own in self._late(state, since):
                medians[series] = path._medians(own)[0]
        return medians, scale

    def _medians(self, state: State) -> tuple[Array, Array]:
        """`medians`, where all series have a value at the last row."""
        if self.memory.covariates.n_columns:
            leads, centre, scale, _ = self._read(state)
            return centre[:, None] + scale[:, None] * (leads + self._errors(state["group"])), scale
        if compiles():
            own = state["sums"], state["modes"], state["share"], state["group"]
            slots, now = self.memory.slots(state), state["time"].item(0)
            learned = self.turned, self.middle, self.leaning_apart[0]
            found: tuple[Array, Array]
            places = self.memory.phases, self.memory.bank.place
            found = compiled_memory().medians(own, slots, now, *places, learned)
            if self.memory.smoothed:
                found[0][:] += self._smoothed(state, now)
            return found
        medians, centre, scale = self._around(state)
        medians += centre[:, None] + scale[:, None] * self._errors(state["group"])
        return medians, scale

    def _late(self, state: State, since: Array) -> Iterator[tuple[NDArray[np.int64], "LinearPath", State]]:
        """Series that have no value at the last row, but `since` (series,) steps before, those together that
        are equally late: the path that says their forecasts, and the state that it reads."""
        names = {*self.memory.empty(0), "group", "ahead"} & state.keys()
        late = kinds(since, self.memory.horizon, self.memory.bank.rhythm(self.memory.horizon))
        for steps in np.unique(late[since > 0]).tolist():
            series = np.flatnonzero((since > 0) & (late == steps))
            own = state_revived(self.memory, {name: state[name][series] for name in names}, since[series])
            path, group = self._after(steps, own["group"])
            yield series, path, own | {"group": group}

    def _after(self, late: int, group: NDArray[np.int64]) -> tuple["LinearPath", NDArray[np.int64]]:
        """The path of series of each `group`, so many `late` steps after their last value, and their groups
        in it; a network then has no share."""
        if self.share.any():
            return replace(self, share=np.empty(0))._after(late, group)
        groups, group = np.unique(group, return_inverse=True)
        bank, horizon = self.memory.bank, self.memory.horizon
        leads = leads_after(np.array(late), horizon, bank.rhythm(horizon)) - 1
        turned = turned_after(self.turned[groups], late, bank)
        modes = np.concatenate([turned.real, -turned.imag[:, bank.turning]], axis=1)
        rest = self.coefficients[groups, modes.shape[1] :][..., leads]
        learned = np.concatenate([modes, rest], axis=1), self.errors[groups][:, leads]
        return replace(self, coefficients=learned[0], errors=learned[1]), group

    def _around(self, state: State) -> tuple[Array, Array, Array]:
        """Leads (series, horizon) around the centre, in the units of the series; centre and scale."""
        modes, said, centre, scale = self.memory.view(state)
        one, group = len(self.turned) == 1, state["group"]
        leads: Array = (
            np.dot(modes, self.turned[0]).real if one else (modes[:, None] @ self.turned[group])[:, 0].real
        )
        said *= self.leaning if one else self.leaning[:, group]
        leads += np.add.reduce(said, 0)
        return leads, centre, scale

    def _smoothed(self, state: State, now: float) -> Array:
        """What smoothers say around the centre (series, horizon), as loud as they are heard."""
        centre, _ = self.memory.scaler.read(state["sums"])
        total = np.zeros((len(centre), self.memory.horizon))
        for (name, smoothers), weights in zip(self.memory.smoothed, self.leaning_apart[1], strict=True):
            said = smoothers.read(state[name], now, self.memory.horizon) - centre[:, None]
            total += np.nan_to_num(said) * (weights if len(weights) == 1 else weights[state["group"]])
        return total

    def _errors(self, group: NDArray[np.int64]) -> Array:
        """Medians (series or 1, horizon) of the held-out errors."""
        return self.middle if len(self.middle) == 1 else self.middle[group]

    def passed(self, state: State, panel: Panel, rows: NDArray[np.int64], ahead: Array) -> Pass:
        """What the path says after each of `rows` of `panel`, ascending.

        ahead: (series, len(rows), horizon, known), covariates known in advance after each of them.
        """
        n_series, n_rows = panel.values.shape
        told = np.zeros((n_series, n_rows, *ahead.shape[2:]))
        told[:, rows] = ahead
        leads, spreads = [np.empty((n_series, 0, self.memory.horizon))], []
        since = self.memory.density.since_rows(state, panel)
        for w in self.memory.walk(state, panel, told):
            at = rows[(rows >= w.rows.start) & (rows < w.rows.stop)] - w.rows.start
            seen = w.features[:, at], w.anchors[0][:, at], w.ahead[0][:, at]
            leads.append(_leads(*seen, self.heard, state["group"]))
            if since is not None:
                self._put_late(leads[-1], since[:, w.rows][:, at], *seen, state["group"])
            spreads.append((w.centre, w.scale))
            state = w.state
        centre, scale = (np.concatenate(parts, axis=1) for parts in zip(*spreads, strict=True))
        said = np.concatenate(leads, axis=1).reshape(-1, self.memory.horizon)
        late = None if since is None else whole(since[:, rows].ravel())
        reading = Reading(said, centre[:, rows].ravel(), scale[:, rows].ravel(), late)
        return Pass(reading, centre, scale, state)

    def _put_late(
        self,
        said: Array,
        since: Array,
        features: Array,
        anchor: Array,
        ahead: Array,
        group: NDArray[np.int64],
    ) -> None:
        """Put into `said` (series, rows, horizon) the forecasts at rows without a value, `since` (series,
        rows) the last one."""
        late = kinds(since, self.memory.horizon, self.memory.bank.rhythm(self.memory.horizon))
        for steps in np.unique(late[since > 0]).tolist():
            at = (since > 0) & (late == steps)
            path, own = self._after(steps, group[np.nonzero(at)[0]])
            seen = features_revived(self.memory, features[at], since[at])
            said[at] = _leads(seen, anchor[at], ahead[at], path.coefficients, own)

    def unaware(self, state: State, panel: Panel) -> tuple[Reading, State]:
        """What the path says after each row of `panel` with nothing known ahead, leads (series, rows,
        horizon), and the state after the last."""
        n_series, n_rows = panel.values.shape
        nothing = np.zeros((n_series, n_rows, self.memory.horizon, self.memory.covariates.n_known))
        if n_rows == 1:
            after = self.advance(state, panel)
            leads, centre, scale, _ = self.read(after | {"ahead": nothing[:, 0]})
            return Reading(leads[:, None], centre[:, None], scale[:, None]), after
        said = self.passed(state, panel, np.arange(n_rows), nothing)
        leads = said.reading.leads.reshape(n_series, n_rows, -1)
        return Reading(leads, said.centre, said.scale), said.state

    def known_part(self, covariates: Array, group: NDArray[np.int64], leads: NDArray[np.int64]) -> Array:
        """What `covariates` (series, known), known in advance, add to each of `leads`: (series, leads)."""
        known = slice(self.memory.n_features, self.memory.n_features + covariates.shape[-1])
        weights = self.heard[:, known, leads - 1]
        own = weights[:1] if len(weights) == 1 else weights[group]
        part: Array = (covariates[:, None] @ own)[:, 0]
        return part

    def held_out_readings(self, panel: Panel) -> Reading:
        """`readings` of the panel fitted, each fold by weights that never saw it; NaN before the first."""
        state = self.empty(self.ids)
        cuts = Cuts.of(panel, pooled=len(self.coefficients) == 1)
        blocks = []
        for w in self.memory.walk(state, panel):
            leads = np.full_like(w.anchors[0], np.nan)
            folds = cuts.tried(panel.times[w.rows])
            for fold in np.unique(folds[folds > 0]):
                mine = folds == fold
                at = mine.any(0)
                learned = self.held_out[:, fold - 1]
                seen = w.features[:, at], w.anchors[0][:, at], w.ahead[0][:, at]
                said = _leads(*seen, learned, state["group"])
                leads[:, at] = np.where(mine[:, at, None], said, leads[:, at])
            blocks.append((leads, w.centre, w.scale))
        return Reading(*(np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)))

    def spectrum(self, lead: int) -> pd.DataFrame:
        """Weight of every mode in the forecast of `lead`: series (None: all), period, timescale, weight.

        The anchors come first, as the modes they are, each at the period of its season: one alone has weight
        1, and several share it. That of exponential smoothing is of many timescales: NaN.
        """
        bank = self.memory.bank
        of_modes = self.mode_coefficients[:, :, lead - 1]
        real, imaginary = np.split(of_modes, [bank.tau.size], axis=1)
        weights = real.copy()
        weights[:, bank.frequency > 0] = np.abs(real[:, bank.frequency > 0])
        weights[:, bank.turning] = np.hypot(real[:, bank.turning], imaginary)
        with np.errstate(divide="ignore"):
            modes = pd.DataFrame({"period": 2 * np.pi / bank.frequency, "timescale": bank.tau})
        names = self.ids if len(weights) > 1 else [None]
        tables = [
            modes.assign(series=pd.Series([name] * len(modes), dtype=object), weight=row)
            for name, row in zip(names, weights, strict=True)
        ]
        blend = self.blend[:, lead - 1]
        weights_of = np.column_stack([1 - blend.sum(1), blend])  # of each anchor
        leant_on = [
            {
                "period": a.season_length if a.season_length > 1 else np.inf,
                "timescale": a.memory * a.season_length if isinstance(a, SeasonSlots) else np.nan,
                "at": at,
            }
            for at, a in enumerate(self.memory.anchors)
            if a
        ]
        if leant_on:
            first = pd.DataFrame(leant_on)
            tables = [
                pd.concat([first.assign(series=t["series"].iloc[: len(first)], weight=row[first["at"]]), t])
                for t, row in zip(tables, weights_of, strict=True)
            ]
        return pd.concat(tables, ignore_index=True)[["series", "period", "timescale", "weight"]]


def _leads(
    features: Array, anchor: Array, ahead: Array, coefficients: Array, group: NDArray[np.int64]
) -> Array:
    """Forecasts (series, ..., horizon) from features (series, ..., features) of series of each `group`, and
    from covariates `ahead` (series, ..., horizon, known)."""
    own, n = coefficients[:1] if len(coefficients) == 1 else coefficients[group], features.shape[-1]
    fitted = features.reshape(len(group), -1, n) @ own[:, :n]
    leads: Array = anchor + fitted.reshape(anchor.shape)
    if ahead.shape[-1]:
        weights = own[:, n:].swapaxes(1, 2)  # (series or 1, horizon, known)
        by_row = ahead.reshape(len(group), -1, *ahead.shape[-2:])
        leads += (by_row * weights[:, None]).sum(-1).reshape(anchor.shape)
    return leads
