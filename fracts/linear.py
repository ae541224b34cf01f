"""The linear path: every lead a ridge regression on the mode bank, leaning on a seasonal anchor or on none.

The penalty and the anchor are chosen by rolling origins in time; the errors of those held-out forecasts
give the quantiles. Everything is read from a state of fixed size, so a stream equals a batch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from fracts.memory import mode_timescales
from fracts.profile import SeasonProfile
from fracts.bank import ModeBank
from fracts.checks import group_of
from fracts.forecasts import QUANTILES
from fracts.regression import Moments, Penalty
from fracts.scaling import Array, Scaler
from fracts.seasons import strongest_frequencies
from fracts.series import Panel, State

FOLDS = (0.4, 0.6, 0.8)  # shares of the training time: what follows each is forecast by what ends before it
PENALTIES = [Penalty(*p) for p in product((0.5, 0.75), (0.0, 0.25), 10.0 ** np.arange(-1, 5))]
PROFILE_MEMORY = 5.0  # seasons
MAX_FREQUENCIES = 12
_ROWS_A_FEATURE = 5  # observations of every series for each coefficient, to give each its own
_MIN_SEEN = 10  # values behind a centre and a scale worth regressing on
_MIN_HELD_OUT = 20  # held-out forecasts of a lead worth choosing by
_LONG = 4  # horizons in a history whose last horizon can be spared
_MAX_CHOOSING_LEADS = 6  # of leads with gaps in their targets: each needs a factorisation of its own


class Walk(NamedTuple):
    """What the rows of a block look like after each of them, in units of scale around the centre."""

    rows: slice
    features: Array  # (series, rows, features)
    anchors: Array  # (anchors, series, rows, horizon)
    centre: Array  # (series, rows)
    scale: Array  # (series, rows)
    state: State  # after the last row


@dataclass(frozen=True)
class LinearMemory:
    """The state of the linear path: decayed sums, modes, seasonal slots. `None` among the anchors is none."""

    bank: ModeBank
    scaler: Scaler
    anchors: tuple[SeasonProfile | None, ...]
    horizon: int

    def empty(self, n_series: int) -> State:
        """State before any row."""
        slots = {f"slots_{i}": a.empty(n_series) for i, a in enumerate(self.anchors) if a}
        time = {"time": np.full(n_series, np.nan)}
        return time | {"sums": self.scaler.empty(n_series), "modes": self.bank.empty(n_series)} | slots

    def walk(self, state: State, panel: Panel) -> Iterator[Walk]:
        """Pass over the rows of `panel` from `state`, a block at a time."""
        before = state["time"][0] if np.isfinite(state["time"][0]) else panel.times[0]
        steps = np.diff(panel.times, prepend=before)
        state = dict(state)
        for rows, modes in self.bank.run(state["modes"], panel.values, steps):
            values, times = panel.values[:, rows], panel.times[rows]
            sums = self.scaler.run(state["sums"], values, steps[rows])
            centre, scale = self.scaler.read(sums)
            reads = []
            for i, anchor in enumerate(self.anchors):
                if anchor:
                    state[f"slots_{i}"], read = anchor.run(state[f"slots_{i}"], values, times, self.horizon)
                    reads.append(_standard(read, centre, scale))
                else:
                    reads.append(np.zeros((*values.shape, self.horizon)))
            state |= {"modes": modes[:, -1], "sums": sums[:, -1], "time": np.full(len(values), times[-1])}
            features = self.bank.features(modes, centre, scale)
            yield Walk(rows, features, np.stack(reads), centre, scale, dict(state))

    def read(self, state: State) -> tuple[Array, Array, Array, Array]:
        """Features (series, features), anchors (anchors, series, horizon), centre and scale (series,)."""
        centre, scale = self.scaler.read(state["sums"])
        reads = [
            _standard(a.read(state[f"slots_{i}"], state["time"][0], self.horizon), centre, scale)
            if a
            else np.zeros((len(centre), self.horizon))
            for i, a in enumerate(self.anchors)
        ]
        return self.bank.features(state["modes"], centre, scale), np.stack(reads), centre, scale


def _standard(read: Array, centre: Array, scale: Array) -> Array:
    """Anchor forecasts around the centre in units of scale; a slot never seen says the centre."""
    return np.nan_to_num((read - centre[..., None]) / scale[..., None], nan=0.0)


@dataclass(frozen=True)
class LinearPath:
    """A fitted linear path. Groups of series share coefficients: one group (pooled) or one a series."""

    memory: LinearMemory  # with the chosen anchor alone
    coefficients: Array  # (groups, features, horizon)
    held_out: Array  # (groups, folds, features, horizon): fitted on what ends before each fold
    errors: Array  # (groups, horizon, quantiles): held-out errors in units of scale
    penalty: Penalty
    ids: tuple[Any, ...]  # of the series fitted

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
        *_, last = self.memory.walk(state, panel)
        return last.state

    def read(self, state: State) -> "Reading":
        """What the path says at the last row: leads (series, horizon)."""
        features, anchors, centre, scale = self.memory.read(state)
        return Reading(_leads(features, anchors[0], self.coefficients, state["group"]), centre, scale)

    def readings(self, state: State, panel: Panel) -> "Reading":
        """What the path says after each row of `panel`: leads (series, time, horizon)."""
        blocks = [
            Reading(
                _leads(w.features, w.anchors[0], self.coefficients, state["group"]), w.centre, w.scale
            )
            for w in self.memory.walk(state, panel)
        ]
        return Reading(*(np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)))

    def held_out_readings(self, panel: Panel) -> "Reading":
        """`readings` of the panel fitted, each fold by coefficients that never saw it; NaN before the first."""
        state = self.empty(self.ids)
        folds = fold_of(panel.times)
        blocks = []
        for w in self.memory.walk(state, panel):
            leads = np.full_like(w.anchors[0], np.nan)
            for fold in np.unique(folds[w.rows][folds[w.rows] > 0]):
                at = folds[w.rows] == fold
                trained = self.held_out[:, fold - 1]
                leads[:, at] = _leads(w.features[:, at], w.anchors[0][:, at], trained, state["group"])
            blocks.append(Reading(leads, w.centre, w.scale))
        return Reading(*(np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)))

    def spectrum(self, lead: int) -> pd.DataFrame:
        """Weight of every mode in the forecast of `lead`: series (None: all), period, timescale, weight."""
        bank = self.memory.bank
        w = self.coefficients[:, :, lead - 1]
        modulus = np.abs(w[:, : bank.tau.size]).astype(complex)
        modulus[:, bank.turning] = w[:, : bank.tau.size][:, bank.turning] + 1j * w[:, bank.tau.size :]
        weight = np.where(bank.frequency > 0, np.abs(modulus), w[:, : bank.tau.size])
        with np.errstate(divide="ignore"):
            period = 2 * np.pi / bank.frequency
        table = pd.DataFrame({"period": period, "timescale": bank.tau})
        names = self.ids if len(w) > 1 else [None]
        return pd.concat(
            [table.assign(series=name, weight=row) for name, row in zip(names, weight, strict=True)],
            ignore_index=True,
        )[["series", "period", "timescale", "weight"]]


def _leads(features: Array, anchor: Array, coefficients: Array, group: NDArray[np.int64]) -> Array:
    if len(coefficients) == 1:
        return anchor + features @ coefficients[0]
    return np.asarray(anchor + np.einsum("s...p,sph->s...h", features, coefficients[group]))


class Reading(NamedTuple):
    """Forecasts of the linear path, in units of scale around the centre."""

    leads: Array  # (series, ..., horizon)
    centre: Array  # (series, ...)
    scale: Array  # (series, ...)


def linear_memory(
    panel: Panel,
    horizon: int,
    n_modes: int,
    timescales: tuple[float, float],
    season_lengths: Sequence[int],
) -> LinearMemory:
    """The memory for `panel`: modes on the grid of `timescales`, at the frequencies that stand out in it."""
    finite = mode_timescales(*timescales, n_modes)[:-1]  # a raw accumulator would have no unit gain
    frequencies = strongest_frequencies(panel.values, panel.times, season_lengths, MAX_FREQUENCIES)
    lengths = [(1, 0.0), *product(season_lengths, (0.0, PROFILE_MEMORY))]
    profiles = [SeasonProfile(length, memory) for length, memory in lengths]
    return LinearMemory(ModeBank(finite, frequencies), Scaler(timescales[1]), (None, *profiles), horizon)


class _Origins(NamedTuple):
    """A block of origins of one fold whose last targets lie in one fold."""

    fold: int
    last_fold: int
    features: Array  # (series, origins, features)
    targets: Array  # (anchors, series, origins, horizon)


def fold_of(times: Array, lead: int = 0) -> NDArray[np.int64]:
    """The fold that lies `lead` steps after each row, 0 before the first."""
    ends = times[0] + np.array(FOLDS) * (times[-1] - times[0])
    return np.searchsorted(ends, times + lead, side="left")


def known_targets(panel: Panel, horizon: int) -> Array:
    """The next values after each row that a forecast may be learned from: (series, time, horizon), NaN for none.

    None where too few values stand behind the scale. A long history spares its last horizon: leads that end
    early would each need a factorisation of their own, for a handful of origins.
    """
    wanted = panel.ahead(horizon)
    if panel.times.size >= _LONG * horizon:
        wanted[:, panel.times + horizon > panel.times[-1]] = np.nan
    few = np.cumsum(~np.isnan(panel.values), axis=1) < min(_MIN_SEEN, panel.times.size / 4)
    wanted[few] = np.nan
    return wanted


def _origins(memory: LinearMemory, panel: Panel) -> Iterator[_Origins]:
    """All forecast origins of `panel`, with standardised targets around each anchor."""
    times = panel.times
    wanted = known_targets(panel, memory.horizon)
    folds, last_folds = fold_of(times), fold_of(times, memory.horizon)
    for walk in memory.walk(memory.empty(len(panel.values)), panel):
        standard = (wanted[:, walk.rows] - walk.centre[..., None]) / walk.scale[..., None]
        around = standard - walk.anchors
        here, there = folds[walk.rows], last_folds[walk.rows]
        for pair in sorted(set(zip(here.tolist(), there.tolist(), strict=True))):
            at = (here == pair[0]) & (there == pair[1])
            yield _Origins(*pair, walk.features[:, at], around[:, :, at])


def is_pooled(pooled: str | bool, panel: Panel, memory: LinearMemory) -> bool:
    """Whether all series share coefficients: as asked, or ("auto") where one is too short for its own."""
    if isinstance(pooled, bool):
        return pooled or len(panel.values) == 1
    shortest = int((~np.isnan(panel.values)).sum(1).min())
    return len(panel.values) == 1 or shortest < _ROWS_A_FEATURE * memory.bank.feature_tau.size


def fit_linear(panel: Panel, memory: LinearMemory, ids: Sequence[Any], *, pooled: bool) -> LinearPath:
    """Choose penalty and anchor by rolling origins, solve on all origins, keep the held-out errors."""
    n_groups = 1 if pooled else len(panel.values)
    moments: dict[tuple[int, int], list[Moments]] = {}
    n_features = memory.bank.feature_tau.size
    nothing = Moments.empty(n_features, len(memory.anchors), memory.horizon)
    for part in _origins(memory, panel):
        sums = moments.setdefault(
            (part.fold, part.last_fold),
            [Moments.empty(n_features, len(memory.anchors), memory.horizon) for _ in range(n_groups)],
        )
        for group, series in enumerate(_groups(len(panel.values), n_groups)):
            sums[group].add(
                part.features[series].reshape(-1, n_features),
                part.targets[:, series].reshape(len(memory.anchors), -1, memory.horizon),
            )

    def collect(group: int, chosen: Sequence[tuple[int, int]]) -> Moments:
        return Moments.total([moments[key][group] for key in chosen], nothing)

    folds = range(1, len(FOLDS) + 1)
    before = [[collect(g, [k for k in moments if k[1] < fold]) for fold in folds] for g in range(n_groups)]
    inside = [[collect(g, [k for k in moments if k[0] == fold]) for fold in folds] for g in range(n_groups)]
    anchor, penalty = _choose(before, inside, memory)
    weights = penalty.of(memory.bank)
    leads = range(memory.horizon)
    held_out = np.array([[m.solve(weights, leads)[anchor] for m in group] for group in before])
    coefficients = np.stack(
        [collect(g, list(moments)).solve(weights, leads)[anchor] for g in range(n_groups)]
    )
    memory = LinearMemory(memory.bank, memory.scaler, (memory.anchors[anchor],), memory.horizon)
    errors = _error_quantiles(panel, memory, held_out)
    return LinearPath(memory, coefficients, held_out, errors, penalty, tuple(ids))


def _groups(n_series: int, n_groups: int) -> list[slice]:
    return [slice(None)] if n_groups == 1 else [slice(s, s + 1) for s in range(n_series)]


def _choose(
    before: list[list[Moments]], inside: list[list[Moments]], memory: LinearMemory
) -> tuple[int, Penalty]:
    """Anchor and penalty of the least held-out error: product over leads of the error summed over folds and series."""
    counts = sum(m.count for group in inside for m in group)
    leads = [int(k) for k in np.flatnonzero(counts >= _MIN_HELD_OUT)]
    if any(m.missing for group in before for m in group) and len(leads) > _MAX_CHOOSING_LEADS:
        leads = [leads[i] for i in np.linspace(0, len(leads) - 1, _MAX_CHOOSING_LEADS).astype(int)]
    if not leads:
        return 0, Penalty(0.5, 0.0, 10.0)
    best, choice = np.inf, (0, PENALTIES[0])
    for penalty in PENALTIES:
        weights = penalty.of(memory.bank)
        error = np.zeros((len(memory.anchors), len(leads)))
        for trained, held_out in zip(before, inside, strict=True):
            for past, now in zip(trained, held_out, strict=True):
                error += now.squared_error(past.solve(weights, leads), leads)
        total = np.log(np.maximum(error, np.finfo(float).tiny)).sum(1)
        if total.min() < best:
            best, choice = float(total.min()), (int(total.argmin()), penalty)
    return choice


def _error_quantiles(panel: Panel, memory: LinearMemory, held_out: Array) -> Array:
    """Quantiles of the errors of the held-out forecasts: (groups, horizon, quantiles).

    held_out: (groups, folds, features, horizon). A lead with too few errors takes those of the lead
    before it, the first one a normal law of the series' own spread.
    """
    errors: list[list[Array]] = [[] for _ in held_out]
    for part in _origins(memory, panel):
        if part.fold == 0:
            continue
        for group, series in enumerate(_groups(len(panel.values), len(held_out))):
            error = part.targets[0, series] - part.features[series] @ held_out[group, part.fold - 1]
            errors[group].append(error.reshape(-1, memory.horizon))
    quantiles = np.empty((len(held_out), memory.horizon, len(QUANTILES)))
    for group, found in enumerate(errors):
        whole = np.concatenate(found)
        last = norm.ppf(QUANTILES)
        for lead in range(memory.horizon):
            seen = whole[~np.isnan(whole[:, lead]), lead]
            if seen.size >= _MIN_HELD_OUT:
                last = np.quantile(seen, QUANTILES, method="median_unbiased")
            quantiles[group, lead] = last
    return quantiles
