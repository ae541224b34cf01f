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

from fracts.bank import Complex
from fracts.checks import FitWarning, group_of
from fracts.cuts import FOLDS, Cuts
from fracts.fast import compiled_memory, compiles
from fracts.folds import MIN_HELD_OUT, PENALTIES, FoldMoments, choose, groups_of, held_out_counts, origins
from fracts.forecasts import MEDIAN_AT, QUANTILES
from fracts.recall import LinearMemory
from fracts.records import record
from fracts.regression import Penalty
from fracts.scaling import Array
from fracts.series import Panel, State

UNTRIED = 0, Penalty(0.5, 0.0, 10.0)  # anchor and penalty where no held-out forecast tells
_ROWS_A_FEATURE = 5  # observations of every series for each coefficient, to give each its own
_CHOOSING_LEADS = 6  # by which penalty and anchor are chosen
_LEADS_AT_ONCE = 32  # solved where each has a matrix of its own: of holes, of covariates
_NO_SLOTS = np.empty((0, 0, 0))  # of the centre, which is no anchor
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

    memory: LinearMemory  # with the chosen anchor alone
    coefficients: Array  # (groups, features + known, horizon)
    held_out: Array  # (groups, folds, features + known, horizon): learned from what ends before each fold
    errors: Array  # (groups, horizon, quantiles): held-out errors in units of scale
    penalty: Penalty
    ids: tuple[Any, ...]  # of the series fitted
    counts: NDArray[np.int64]  # (groups,), values that each group learned from

    turned: Complex = field(init=False, repr=False)  # (groups, modes, horizon): leads are real parts

    middle: Array = field(init=False, repr=False)  # (groups, horizon), medians of the errors

    def __post_init__(self) -> None:
        bank = self.memory.bank
        real, imaginary = np.split(self.mode_coefficients, [bank.tau.size], axis=1)
        turned = real.astype(complex)
        turned[:, bank.turning] -= 1j * imaginary
        object.__setattr__(self, "turned", turned)
        object.__setattr__(self, "middle", np.ascontiguousarray(self.errors[..., MEDIAN_AT]))

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
        return self.memory.empty(len(ids)) | {"group": groups}

    def advance(self, state: State, panel: Panel) -> State:
        """State after the rows of `panel`."""
        return self.memory.advance(state, panel)[0]

    def read(self, state: State) -> Reading:
        """What the path says at the last row: leads (series, horizon)."""
        if not self.memory.covariates.n_columns:
            modes, anchors, centre, scale = self.memory.view(state)
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
            bank, anchor, slots, phase = self.memory.bank, self.memory.anchors[0], _NO_SLOTS, 0
            if anchor:
                slots, phase = state["slots_0"], anchor.phase(state["time"].item(0))
            seen = state["sums"], state["modes"], (state["share"], bank.place)
            learned = (self.turned, self.middle), state["group"]
            found: tuple[Array, Array] = compiled_memory().medians(*seen, *learned, slots, phase)
            return found
        modes, anchors, centre, scale = self.memory.view(state)
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
        weights = self.coefficients[:, self.memory.n_features :, leads - 1]
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

        The anchor comes first, as the mode it is: of weight 1, at the period of its season.
        """
        bank, anchor = self.memory.bank, self.memory.anchors[0]
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
        if anchor:
            period = anchor.season_length if anchor.season_length > 1 else np.inf
            row = {"period": period, "timescale": anchor.memory * anchor.season_length, "weight": 1.0}
            tables = [pd.concat([pd.DataFrame([{"series": t["series"][0], **row}]), t]) for t in tables]
        return pd.concat(tables, ignore_index=True)[["series", "period", "timescale", "weight"]]


def is_pooled(pooled: str | bool, panel: Panel, memory: LinearMemory) -> bool:
    """Whether all series share coefficients: as asked, or ("auto") where one is too short for its own."""
    if isinstance(pooled, bool):
        return pooled or len(panel.values) == 1
    shortest = int((~np.isnan(panel.values)).sum(1).min())
    size = memory.n_features + memory.covariates.n_known
    return len(panel.values) == 1 or shortest < _ROWS_A_FEATURE * size


def fit_linear(
    panel: Panel, memory: LinearMemory, ids: Sequence[Any], *, pooled: bool, strength: float | None = None
) -> LinearPath:
    """Choose penalty and anchor by rolling origins, solve on all origins, keep the held-out errors.

    strength: of the penalty, None to choose it.
    Warns (FitWarning) where the history is too short for a single held-out forecast.
    """
    n_groups, values = 1 if pooled else len(panel.values), (~np.isnan(panel.values)).sum(1)
    counts, holes = held_out_counts(panel, memory.horizon, n_groups)
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
        shares = [panel] if pooled else _shares(panel, memory)
        tried = np.flatnonzero(counts >= MIN_HELD_OUT)
        spread = np.linspace(0, tried.size - 1, min(tried.size, _CHOOSING_LEADS)).astype(int)
        penalties = _of_strength(PENALTIES, strength)
        if tried.size:
            anchor, penalty = choose(memory, shares, tried[spread], pooled, penalties)
        else:
            anchor, (penalty,) = UNTRIED[0], _of_strength([UNTRIED[1]], strength)
        memory = memory.leaning_on(anchor)
        leads = np.arange(memory.horizon)
        in_parts = holes or memory.covariates.n_known
        batches = np.array_split(leads, -(-leads.size // _LEADS_AT_ONCE)) if in_parts else [leads]
        solved = [_solve(memory, share, memory.penalty(penalty), batches, pooled) for share in shares]
        coefficients, held_out, errors = (np.concatenate(parts) for parts in zip(*solved, strict=True))
    seen = values.sum(keepdims=True) if pooled else values
    return LinearPath(memory, coefficients, held_out, errors, penalty, tuple(ids), seen)


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


def _shares(panel: Panel, memory: LinearMemory) -> list[Panel]:
    """The series, as many at once as there is room for matrices of their own."""
    known = memory.covariates.n_known
    tied = len(memory.anchors) * _CHOOSING_LEADS * known * (memory.n_features + known)
    size = (memory.n_features**2 + tied) * 2 * (len(FOLDS) + 1)
    n_shares = min(-(-len(panel.values) * size // _SHARE_NUMBERS), len(panel.values))
    parts = np.array_split(np.arange(len(panel.values)), n_shares)
    return [Panel(panel.values[part], panel.times, panel.covariates[part]) for part in parts]


def _solve(
    memory: LinearMemory, panel: Panel, weights: Array, batches: Sequence[NDArray[np.int64]], pooled: bool
) -> tuple[Array, Array, Array]:
    """Coefficients, held-out coefficients and quantiles of the errors, as a `LinearPath` has them."""
    n_groups = 1 if pooled else len(panel.values)
    folds, groups = range(1, len(FOLDS) + 1), range(n_groups)
    final, tried = [], []
    for leads in batches:
        moments = FoldMoments.of(memory, panel, leads, n_groups)
        final.append([moments.whole(g).solve(weights)[0] for g in groups])
        tried.append([[moments.before(f, g).solve(weights)[0] for f in folds] for g in groups])
    held_out = np.concatenate(tried, axis=-1)
    errors = _held_out_errors(memory, panel, held_out)
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
