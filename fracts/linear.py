"""The linear path: every lead a ridge regression on the mode bank, leaning on a seasonal anchor or on none.

The penalty and the anchor are chosen by rolling origins in time; the errors of those held-out forecasts
give the quantiles. Everything is read from a state of fixed size, so a stream equals a batch.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri
from threadpoolctl import threadpool_limits

from fracts.averaging import Mixture, mixed
from fracts.bank import Complex
from fracts.checks import FitWarning, group_of
from fracts.cuts import FOLDS, Cuts
from fracts.fast import compiled_memory, compiles
from fracts.folds import (
    MIN_HELD_OUT,
    PENALTIES,
    FoldMoments,
    Share,
    choose,
    groups_of,
    held_out_counts,
    noise_weights,
    origins,
    shared_is_better,
)
from fracts.forecasts import MEDIAN_AT, QUANTILES
from fracts.recall import LinearMemory
from fracts.records import record
from fracts.regression import Penalty
from fracts.scaling import Array
from fracts.series import Panel, State

UNTRIED = 0, Penalty(0.5, 0.0, 10.0)  # anchor and penalty where no held-out forecast tells
_ROWS_A_FEATURE = 2  # observations of every series for each coefficient, to try its own
_MOST_NUMBERS = 2**26  # in coefficients of their own
_TRIED = 64  # series by which that, and the penalties of own coefficients, are tried
_MOST_PENALTIES, _SOLVED = 8, 2**13  # in an average; in those of all series and leads
_CHOOSING_LEADS = 7  # by which penalties and anchors are weighed
_LEADS_AT_ONCE = 32  # solved where each has a matrix of its own: of holes, of covariates
_TIED_NUMBERS = 2**21  # of leads that share a matrix and are solved at once
_SHARE_NUMBERS = 2**25  # in the matrices of the series solved at once


class Reading(NamedTuple):
    """Forecasts of the linear path, in units of scale around the centre."""

    leads: Array  # (series, ..., horizon)
    centre: Array  # (series, ...)
    scale: Array  # (series, ...)


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
    errors: Array  # (groups, horizon, quantiles): held-out errors in units of scale
    penalty: Penalty
    ids: tuple[Any, ...]  # of the series fitted
    counts: NDArray[np.int64]  # (groups,), values that each group learned from
    weights: Array = field(default_factory=lambda: np.empty(0))  # (series,), what errors count; none: 1

    turned: Complex = field(init=False, repr=False)  # (groups, modes, horizon): leads are real parts

    middle: Array = field(init=False, repr=False)  # (groups, horizon), medians of the errors

    blend: Array = field(init=False, repr=False)  # (groups, horizon, other anchors), weights of each

    def __post_init__(self) -> None:
        bank = self.memory.bank
        real, imaginary = np.split(self.mode_coefficients, [bank.tau.size], axis=1)
        turned = real.astype(complex)
        turned[:, bank.turning] -= 1j * imaginary
        object.__setattr__(self, "turned", turned)
        object.__setattr__(self, "middle", np.ascontiguousarray(self.errors[..., MEDIAN_AT]))
        blend = self.coefficients[:, self.memory.n_features + self.memory.covariates.n_known :]
        object.__setattr__(self, "blend", np.ascontiguousarray(blend.swapaxes(1, 2)))

    @property
    def mode_coefficients(self) -> Array:
        """(groups, features, horizon), those of the series' own modes."""
        return self.coefficients[:, : self.memory.bank.feature_tau.size]

    def empty(self, ids: Sequence[Any]) -> State:
        """State of the series `ids` before any row.

        Raises ValueError for a series that was not fitted, where every series has coefficients of its own.
        """
        if len(self.coefficients) == 1:
            groups = np.zeros(len(ids), dtype=np.int64)
        else:
            groups = np.array([group_of(name, self.ids) for name in ids])
        known = dict(zip(self.ids, self.weights.tolist(), strict=False))
        weight = np.array([known.get(name, 1.0) for name in ids])
        return self.memory.empty(len(ids)) | {"group": groups, "weight": weight}

    def advance(self, state: State, panel: Panel) -> State:
        """State after the rows of `panel`."""
        return self.memory.advance(state, panel)[0]

    def read(self, state: State) -> Reading:
        """What the path says at the last row: leads (series, horizon)."""
        if not self.memory.covariates.n_columns:
            modes, anchors, centre, scale = self.memory.view(state, self._blend(state["group"]))
            leads = self._fitted(modes, state["group"]) / scale[:, None]
            return Reading(leads if anchors is None else leads + anchors, centre, scale)
        features, anchors, ahead, centre, scale = self.memory.read(state)
        leads = _leads(features, anchors[0], ahead[0], self.coefficients, state["group"])
        return Reading(leads, centre, scale)

    def medians(self, state: State) -> tuple[Array, Array]:
        """Medians (series, horizon) in the units of the series, the held-out errors added, and the scale."""
        if self.memory.covariates.n_columns:
            leads, centre, scale = self.read(state)
            return centre[:, None] + scale[:, None] * (leads + self._errors(state["group"])), scale
        if compiles():
            seen = state["sums"], state["modes"], self.memory.evening(state)
            learned = self.turned, self.middle, state["group"]
            said = self.memory.said(state, self._blend(state["group"]))
            found: tuple[Array, Array] = compiled_memory().medians(*seen, *learned, said)
            return found
        modes, anchors, centre, scale = self.memory.view(state, self._blend(state["group"]))
        medians, errors = self._fitted(modes, state["group"]), self._errors(state["group"])
        medians += centre[:, None]
        medians += scale[:, None] * (errors if anchors is None else errors + anchors)
        return medians, scale

    def _fitted(self, modes: Complex, group: NDArray[np.int64]) -> Array:
        """What the `modes` (series, modes) around the centre say of every lead, (series, horizon)."""
        if len(self.turned) == 1:
            fitted: Array = np.dot(modes, self.turned[0]).real
            return fitted
        return np.asarray((modes[:, None] @ self.turned[group])[:, 0].real)

    def _blend(self, group: NDArray[np.int64]) -> Array:
        """Weights (series or 1, horizon, other anchors) of the anchors beside the first."""
        return self.blend if len(self.blend) == 1 else self.blend[group]

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
        for w in self.memory.walk(state, panel, told):
            at = rows[(rows >= w.rows.start) & (rows < w.rows.stop)] - w.rows.start
            seen = w.features[:, at], w.anchors[0][:, at], w.ahead[0][:, at]
            leads.append(_leads(*seen, self.coefficients, state["group"]))
            spreads.append((w.centre, w.scale))
            state = w.state
        centre, scale = (np.concatenate(parts, axis=1) for parts in zip(*spreads, strict=True))
        said = np.concatenate(leads, axis=1).reshape(-1, self.memory.horizon)
        return Pass(Reading(said, centre[:, rows].ravel(), scale[:, rows].ravel()), centre, scale, state)

    def unaware(self, state: State, panel: Panel) -> tuple[Reading, State]:
        """What the path says after each row of `panel` with nothing known ahead, leads (series, rows,
        horizon), and the state after the last."""
        n_series, n_rows = panel.values.shape
        nothing = np.zeros((n_series, n_rows, self.memory.horizon, self.memory.covariates.n_known))
        if n_rows == 1:
            after = self.advance(state, panel)
            leads, centre, scale = self.read(after | {"ahead": nothing[:, 0]})
            return Reading(leads[:, None], centre[:, None], scale[:, None]), after
        said = self.passed(state, panel, np.arange(n_rows), nothing)
        leads = said.reading.leads.reshape(n_series, n_rows, -1)
        return Reading(leads, said.centre, said.scale), said.state

    def known_part(self, covariates: Array, group: NDArray[np.int64], leads: NDArray[np.int64]) -> Array:
        """What `covariates` (series, known), known in advance, add to each of `leads`: (series, leads)."""
        known = slice(self.memory.n_features, self.memory.n_features + covariates.shape[-1])
        weights = self.coefficients[:, known, leads - 1]
        own = weights[:1] if len(weights) == 1 else weights[group]
        part: Array = (covariates[:, None] @ own)[:, 0]
        return part

    def held_out_readings(self, panel: Panel) -> Reading:
        """`readings` of the panel fitted, each fold by weights that never saw it; NaN before the first."""
        state = self.empty(self.ids)
        cuts = Cuts.of(panel, len(self.coefficients))
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
            blocks.append(Reading(leads, w.centre, w.scale))
        return Reading(*(np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)))

    def spectrum(self, lead: int) -> pd.DataFrame:
        """Weight of every mode in the forecast of `lead`: series (None: all), period, timescale, weight.

        The anchors come first, as the modes they are, each at the period of its season: one alone has weight
        1, and several share it.
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
                "timescale": a.memory * a.season_length,
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


def is_pooled(pooled: str | bool, panel: Panel, memory: LinearMemory) -> bool:
    """Whether all series share coefficients: as asked, or ("auto") as held-out time has it.

    They do where one is too short for its own, or where there are too many to keep.
    """
    if isinstance(pooled, bool):
        return pooled or len(panel.values) == 1
    shortest = int((~np.isnan(panel.values)).sum(1).min())
    size = memory.n_features + memory.covariates.n_known
    if len(panel.values) == 1 or shortest < _ROWS_A_FEATURE * size:
        return True
    if len(panel.values) * size * memory.horizon * (1 + len(FOLDS)) > _MOST_NUMBERS:
        return True
    counts, _ = held_out_counts(memory, panel, 1)
    leads = _choosing_leads(counts)
    if not leads.size:
        return True
    with threadpool_limits(1, user_api="blas"):
        whole = Share(panel, noise_weights(memory, panel, leads))
        return shared_is_better(memory.of_the_past(), _sample(whole, memory), leads)


def fit_linear(
    panel: Panel,
    memory: LinearMemory,
    ids: Sequence[Any],
    *,
    pooled: bool,
    strength: float | None = None,
    averaged: bool = True,
) -> LinearPath:
    """Weigh penalties and anchors by rolling origins, solve on all origins, keep the held-out errors.

    strength: of the penalty, None to weigh several.  averaged: False for the best penalty and anchor alone.
    Warns (FitWarning) where the history is too short for a single held-out forecast.
    """
    n_groups, values = 1 if pooled else len(panel.values), (~np.isnan(panel.values)).sum(1)
    counts, holes = held_out_counts(memory, panel, n_groups)
    if not counts.any() and _moves(panel):
        warnings.warn(
            f"the longest history, of {values.max()} rows, holds no forecast of {memory.horizon} steps to "
            "try a penalty on, so one was assumed, and a normal law for the intervals. Give a longer history "
            "or a shorter horizon.",
            FitWarning,
            stacklevel=5,  # the line that called `fit`
        )
    # A second thread gains nothing on matrices of this size, and waits long where the cores are busy.
    with threadpool_limits(1, user_api="blas"):
        tried = _choosing_leads(counts)
        whole = Share(panel, noise_weights(memory, panel, tried))
        shares = [whole] if pooled else _shares(whole, memory)
        if tried.size:
            looked_at = whole if pooled else _sample(whole, memory)
            penalties = _of_strength(PENALTIES, strength)
            n_groups = 1 if pooled else len(panel.values)
            mixture = _mixture(memory, looked_at, tried, counts, n_groups, penalties, averaged)
        else:
            anchor, (penalty,) = UNTRIED[0], _of_strength([UNTRIED[1]], strength)
            mixture = Mixture.of_one(memory.leaning_on(anchor), penalty)
        leads = np.arange(memory.horizon)
        at_once = _leads_at_once(mixture.memory, max(len(share.weights) for share in shares), holes)
        batches = np.array_split(leads, -(-leads.size // at_once))
        solved = [_solve(mixture, share, batches, pooled) for share in shares]
        coefficients, held_out, errors = (np.concatenate(parts) for parts in zip(*solved, strict=True))
    seen = values.sum(keepdims=True) if pooled else values
    weights = whole.weights
    return LinearPath(mixture.memory, coefficients, held_out, errors, mixture.best, tuple(ids), seen, weights)


def _mixture(
    memory: LinearMemory,
    share: Share,
    leads: NDArray[np.int64],
    counts: NDArray[np.int64],
    n_groups: int,
    penalties: Sequence[Penalty],
    averaged: bool,
) -> Mixture:
    """What the path is to be the average of; beside covariates one anchor, which saw them."""
    pooled = n_groups == 1
    if not averaged:
        anchor, penalty = choose(memory, share, leads, pooled, penalties)
        return Mixture.of_one(memory.leaning_on(anchor), penalty)
    if memory.covariates.n_columns:
        anchor, penalty = choose(memory, share, leads, pooled, penalties)
        memory = memory.leaning_on(anchor)
        penalties = [p._replace(covariates=penalty.covariates) for p in penalties]
    if not memory.bank.frequencies.size:
        penalties = list(dict.fromkeys(p._replace(seasonal_decay=0.0) for p in penalties))
    most = int(np.clip(_SOLVED // (n_groups * memory.horizon), 2, _MOST_PENALTIES))
    return mixed(memory.blending(), share, leads, counts, pooled, penalties, most)


def _leads_at_once(memory: LinearMemory, n_series: int, holes: bool) -> int:
    """Leads to solve in one pass: many where they share matrices, few where each has its own."""
    if holes or memory.covariates.n_known:
        return _LEADS_AT_ONCE
    tied = n_series * memory.n_features * max(memory.n_ahead, 1)
    return max(_LEADS_AT_ONCE, _TIED_NUMBERS // tied)


def _choosing_leads(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """A few leads, from 0, of those of enough held-out targets `counts` (horizon,), denser the nearer."""
    tried = np.flatnonzero(counts >= MIN_HELD_OUT)
    if not tried.size:
        return tried
    spread: NDArray[np.int64] = np.geomspace(1, tried.size, _CHOOSING_LEADS).round().astype(np.int64)
    return np.asarray(tried[np.unique(spread) - 1])


def _of_strength(penalties: Sequence[Penalty], strength: float | None) -> list[Penalty]:
    """The `penalties` with another `strength`, or as they are for None."""
    if strength is None:
        return list(penalties)
    return list(dict.fromkeys(penalty._replace(strength=strength) for penalty in penalties))


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


def _moves(panel: Panel) -> bool:
    return bool((np.nanmax(panel.values, axis=1) > np.nanmin(panel.values, axis=1)).any())


def _shares(whole: Share, memory: LinearMemory) -> list[Share]:
    """The series, as many at once as there is room for matrices of their own."""
    n_series = len(whole.weights)
    n_shares = min(-(-n_series * _numbers(memory) // _SHARE_NUMBERS), n_series)
    return [_some(whole, part) for part in np.array_split(np.arange(n_series), n_shares)]


def _sample(whole: Share, memory: LinearMemory) -> Share:
    """Evenly spread series, as many as there is room for matrices of their own, at most a fixed number."""
    n_series = len(whole.weights)
    most = max(1, min(_TRIED, _SHARE_NUMBERS // _numbers(memory), n_series))
    return _some(whole, np.unique(np.linspace(0, n_series - 1, most).astype(np.int64)))


def _some(whole: Share, series: NDArray[np.int64]) -> Share:
    panel = whole.panel
    part = Panel(panel.values[series], panel.times, panel.covariates[series])
    return Share(part, whole.weights[series])


def _numbers(memory: LinearMemory) -> int:
    """In the matrices of a series, about."""
    beside = memory.covariates.n_known + len(memory.anchors)
    tied = len(memory.anchors) * _CHOOSING_LEADS * beside * (memory.n_features + beside)
    return int((memory.n_features**2 + tied) * 2 * (len(FOLDS) + 1))


def _solve(
    mixture: Mixture, share: Share, batches: Sequence[NDArray[np.int64]], pooled: bool
) -> tuple[Array, Array, Array]:
    """Coefficients, held-out coefficients and quantiles of the errors, as a `LinearPath` has them."""
    n_groups = 1 if pooled else len(share.weights)
    folds, groups = range(1, len(FOLDS) + 1), range(n_groups)
    final, tried = [], []
    for leads in batches:
        moments = FoldMoments.of(mixture.memory, share, leads, n_groups)
        final.append([mixture.solve(moments.whole(g), leads) for g in groups])
        tried.append([[mixture.solve(moments.before(f, g), leads) for f in folds] for g in groups])
    held_out = np.concatenate(tried, axis=-1)
    errors = _held_out_errors(mixture.memory, share.panel, held_out)
    return np.concatenate(final, axis=-1), held_out, np.stack([_error_quantiles(e) for e in errors])


def _held_out_errors(memory: LinearMemory, panel: Panel, held_out: Array) -> list[Array]:
    """Errors of the held-out forecasts of each group: (origins, horizon), NaN where unknown."""
    errors: list[list[Array]] = [[np.empty((0, memory.horizon))] for _ in held_out]
    for part in origins(memory, panel, np.arange(memory.horizon), len(held_out)):
        if part.fold == 0:
            continue
        for group, series in groups_of(part, len(held_out)):
            learned, n = held_out[group, part.fold - 1], part.features.shape[-1]
            error = part.targets[0, series] - part.features[series] @ learned[:n]
            error -= (part.ahead[0, series] * learned[n:].T).sum(-1)
            errors[group].append(error.reshape(-1, memory.horizon))
    return [np.concatenate(found) for found in errors]


def _error_quantiles(errors: Array) -> Array:
    """Quantiles of `errors` (origins, horizon) at each lead: (horizon, quantiles).

    A lead with too few errors takes those of the lead before it, the first one a normal law of the series'
    own spread.
    """
    quantiles, last = [], ndtri(QUANTILES)
    for lead in errors.T:
        seen = lead[~np.isnan(lead)]
        if seen.size >= MIN_HELD_OUT:
            last = np.quantile(seen, QUANTILES, method="median_unbiased")
        quantiles.append(last)
    return np.array(quantiles)
