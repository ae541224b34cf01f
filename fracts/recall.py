"""What the linear path remembers of a series: decayed sums, modes and seasonal slots, all of fixed size.

One idea: whatever a forecast needs is read from this state, so a stream equals a batch and nothing leaks. It
is read as features and anchors, both around the causal centre in units of the causal scale.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fracts.anchor import SeasonSlots
from fracts.bank import Complex, ModeBank
from fracts.covariate_memory import N_MODES, CovariateMemory
from fracts.density import Density
from fracts.fast import compiled_memory, compiles
from fracts.fractional_prior import fractional_forecasts
from fracts.memory import mode_timescales
from fracts.records import record
from fracts.regression import Penalty
from fracts.scaling import Array, Scaler
from fracts.seasons import strongest_frequencies
from fracts.series import Panel, State
from fracts.smoothing import DRIFTS, Smoothers

PROFILE_MEMORY = 5.0  # seasons
_SHORT_SEASON = 12  # steps, below which the modes at its frequencies tell its shape at any level
_LONG_SEASON = 1000  # steps, above which a state holds one profile
MAX_FREQUENCIES = 12
CENTRE_MEMORY = 131072.0  # steps
_FAR = 5.0  # units of scale
_SHORT = 512  # values of the usual series, below which those that share coefficients are smoothed
_SMOOTHED_SEASON = 64  # steps, above which a season is not smoothed, at thirty numbers a step
_BLOCK_ROWS = 4096  # whose states are held at once
_BLOCK_NUMBERS = 2**20  # in those states

Anchor = SeasonSlots | Smoothers


class Walk(NamedTuple):
    """What the rows of a block look like after each of them, in units of scale around the centre."""

    rows: slice
    features: Array  # (series, rows, features)
    anchors: Array  # (anchors, series, rows, leads), one where they are blended
    # Covariates less what each anchor saw of them, then the other anchors less the first, where blended.
    ahead: Array  # (anchors, series, rows, leads, ahead)
    centre: Array  # (series, rows)
    scale: Array  # (series, rows)
    state: State  # after the last row


@record
@dataclass(frozen=True)
class LinearMemory:
    """The state of the linear path and how it is read. `None` among the anchors is the centre itself.

    The modes are of the distance to the first value: a series far from zero keeps its digits. Blended anchors
    are one: the first, and how far the others lie from it as numbers known ahead of every lead.
    """

    bank: ModeBank
    scaler: Scaler
    anchors: tuple[Anchor | None, ...]
    horizon: int
    covariates: CovariateMemory
    blended: bool = False

    # Anchors that have slots, by the name of these in a state: all, those of seasons, and those that smooth;
    # what the slots of seasons keep when a value comes, and how many are of phases.
    slotted: tuple[tuple[str, Anchor], ...] = field(init=False, repr=False)
    seasonal: tuple[tuple[str, SeasonSlots], ...] = field(init=False, repr=False)
    smoothed: tuple[tuple[str, Smoothers], ...] = field(init=False, repr=False)
    slots_kept: Array = field(init=False, repr=False)
    phases: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        slotted = tuple((f"slots_{i}", anchor) for i, anchor in enumerate(self.anchors) if anchor)
        object.__setattr__(self, "slotted", slotted)
        smoothed = tuple((name, anchor) for name, anchor in slotted if isinstance(anchor, Smoothers))
        object.__setattr__(self, "smoothed", smoothed)
        seasonal = tuple((name, anchor) for name, anchor in slotted if isinstance(anchor, SeasonSlots))
        object.__setattr__(self, "seasonal", seasonal)
        object.__setattr__(self, "slots_kept", np.array([anchor.kept for _, anchor in seasonal]))
        phases = np.array([anchor.season_length for _, anchor in seasonal], dtype=np.int64)
        object.__setattr__(self, "phases", phases)

    @property
    def n_bases(self) -> int:
        """Anchors that a forecast may lean on."""
        return 1 if self.blended else len(self.anchors)

    @property
    def n_ahead(self) -> int:
        """Numbers known ahead of each lead: covariates, then blended anchors."""
        return self.covariates.n_known + self.n_blended

    @property
    def n_blended(self) -> int:
        """Anchors beside the first, where these are blended."""
        return len(self.anchors) - self.n_bases

    @property
    def n_alone(self) -> int:
        """Of the `prior_means`, the first ones, those that are also tried with the blend as it is there."""
        return 1 + self.n_blended if self.blended else 0

    def prior_means(self, leads: NDArray[np.int64]) -> Array | None:
        """Prior means (means, features + ahead, leads) to average over at `leads`, from 0, where anchors are
        blended: none of them, each alone, and without seasons fractional noise; else None, for 0."""
        if not self.blended:
            return None
        orders = np.empty((0, self.bank.timescales.size, leads.size))
        if self.anchors[0] is None and not self.bank.frequencies.size:
            orders = fractional_forecasts(self.bank.timescales, self.horizon)[..., leads]
        size = self.n_features + self.n_ahead
        means = np.zeros((1 + self.n_blended + len(orders), size, leads.size))
        at = np.arange(self.n_blended)
        means[1 + at, size - self.n_blended + at] = 1.0
        means[1 + self.n_blended :, : self.bank.timescales.size] = orders
        return means

    def reach(self, state: State, steps: int) -> tuple[Array, Array]:
        """Values (series,) that hardly any is below or above after so many `steps`: five times the scale from
        the centre, and as far again for every history as long as that seen; a line ends 1.7 from there."""
        centre, scale = self.scaler.read(state["sums"])
        far = _FAR * scale * (1 + steps / np.maximum(state["sums"][..., 0], 1.0))
        return centre - far, centre + far

    def n_kinds(self, leads: NDArray[np.int64]) -> int:
        """After how many `leads`, ascending from 0, the anchors and all that is known ahead come back: after
        a common season of the anchors, where the leads leave none out."""
        unlike = self.covariates.n_known or self.smoothed or (np.diff(leads) != 1).any()
        season = leads.size if unlike else math.lcm(*(anchor.season_length for _, anchor in self.seasonal))
        return min(season, leads.size)

    @property
    def longest_season(self) -> int:
        """Steps until every anchor has seen a season."""
        return max(anchor.season_length if anchor else 1 for anchor in self.anchors)

    @property
    def n_features(self) -> int:
        """Numbers read of the past of a series, those of its covariates among them."""
        return self.bank.feature_tau.size + self.covariates.n_features

    def penalty(self, penalty: Penalty) -> Array:
        """Penalty on the square of each coefficient: (features + ahead,)."""
        past = penalty.covariates * self.covariates.feature_tau ** (2 * penalty.decay)
        ahead = np.full(self.covariates.n_known, penalty.covariates)
        blend = np.full(self.n_blended, penalty.blend)
        return np.concatenate([penalty.of(self.bank), past, ahead, blend])

    def of_the_past(self) -> "LinearMemory":
        """The same memory, where no covariate is known in advance."""
        return replace(self, covariates=replace(self.covariates, n_known=0))

    @cached_property
    def density(self) -> Density:
        """How densely the series were seen."""
        return Density(self.bank)

    def alone(self, horizon: int) -> "LinearMemory":
        """The same memory, without covariates, for forecasts of `horizon` steps."""
        beside = replace(self.covariates, n_columns=0, n_known=0, horizon=horizon)
        return replace(self, horizon=horizon, covariates=beside)

    def of_anchors(self) -> "LinearMemory":
        """The same memory with one mode, for its anchors alone."""
        return replace(self, bank=ModeBank(self.bank.timescales[:1], np.empty(0)))

    def leaning_on(self, anchor: int) -> "LinearMemory":
        """The same memory with one of its anchors alone."""
        return replace(self, anchors=(self.anchors[anchor],), covariates=self.covariates.leaning_on(anchor))

    def blending(self, anchor: int = 0) -> "LinearMemory":
        """The same memory leaning on one of its anchors, with the others beside it, where there are any."""
        others = [a for i, a in enumerate(self.anchors) if a and i != anchor]
        alone = self.leaning_on(anchor)
        return replace(alone, anchors=(*alone.anchors, *others), blended=True) if others else alone

    def empty(self, n_series: int) -> State:
        """State before any row."""
        slots = {k: a.empty(n_series) for k, a in self.slotted}
        time = {"time": np.full(n_series, np.nan)}
        own = {"sums": self.scaler.empty(n_series), "modes": self.bank.empty(n_series)}
        seen = self.density.empty(n_series) | self.covariates.empty(n_series)
        return time | own | seen | slots

    def advance(self, state: State, panel: Panel) -> tuple[State, Array]:
        """State after the rows of `panel`, and its values around the centre, in units of the scale (series,
        rows), as they are then; `state` is left alone."""
        if panel.times.size == 1:
            return self._step(state, panel)
        blocks = []
        for rows in self._blocks(panel, 0):
            part = panel.part(rows.start, rows.stop)
            slots = {k: a.advance(state[k], part.values, part.times) for k, a in self.slotted}
            steps = self._steps(state, part)
            _, sums, after = self._block(state, part, steps)
            state = state | after | slots | self.covariates.advance(state, part, steps)
            blocks.append(sums)
        centre, scale = self.scaler.read(np.concatenate(blocks, axis=1))
        return state, (panel.values - centre) / scale

    def walk(
        self,
        state: State,
        panel: Panel,
        ahead: Array | None = None,
        leads: NDArray[np.int64] | None = None,
    ) -> Iterator[Walk]:
        """Pass over the rows of `panel` from `state`, a block at a time.

        ahead: (series, rows, horizon, known), covariates known in advance after each row; None for those of
        the rows that follow in `panel`.  leads: to look at, from 0; None for all.
        """
        at = np.arange(self.horizon) if leads is None else leads
        for rows in self._blocks(panel, at.size):
            part = panel.part(rows.start, rows.stop)
            steps = self._steps(state, part)
            modes, sums, after = self._block(state, part, steps)
            ran = {k: a.run(state[k], part.values, part.times, 1 + at) for k, a in self.slotted}
            covariates, past, seen = self.covariates.walk(state, part, steps, 1 + at)
            state = state | after | {k: slots for k, (slots, _) in ran.items()} | covariates
            view = self._view(modes, sums, {k: said for k, (_, said) in ran.items()}, at.size)
            told = self._known_ahead(panel, rows) if ahead is None else ahead[:, rows]
            yield Walk(rows, *self._with(view, past, told[..., at, :] - seen), state)

    def read(self, state: State) -> tuple[Array, Array, Array, Array, Array]:
        """Features (series, features), anchors (anchors, series, horizon), covariates ahead (anchors, series,
        horizon, known), centre and scale (series,).

        Where covariates are known in advance the state holds them as `ahead`, (series, horizon, known).
        """
        said = {k: a.read(state[k], state["time"][0], self.horizon) for k, a in self.slotted}
        return self._with(
            self._view(self.evened(state), state["sums"], said, self.horizon), *self.covariates.read(state)
        )

    def view(self, state: State) -> tuple[Complex, Array, Array, Array]:
        """Evened modes (series, modes) and what each anchor that has slots says (anchors, series, horizon),
        around the centre and in the units of the series; centre and scale (series,)."""
        offset, centre, scale = self.scaler.centred(state["sums"])
        raw: Complex = state["modes"]
        modes = raw[:, 0] - offset[:, None] * raw[:, 1]
        if not self.density.full(state["share"]):
            modes *= self.density.gain(state["share"])
        said, now = np.empty((len(self.slotted), len(centre), self.horizon)), state["time"].item(0)
        for i, (name, anchor) in enumerate(self.slotted):
            said[i] = anchor.read(state[name], now, self.horizon)
        said -= centre[:, None]
        if np.count_nonzero(np.isnan(state["sums"][:, 3])):
            said = np.nan_to_num(said)
        return modes, said, centre, scale

    def slots(self, state: State) -> tuple[Array, ...]:
        """Those of the anchors that are neither the centre nor smooth."""
        return tuple([state[name] for name, _ in self.seasonal])

    def evened(self, state: State) -> Complex:
        """The modes of `state` as local means, however densely the series were seen."""
        return self.density.evened(state["modes"], state["share"])

    def _step(self, state: State, row: Panel) -> tuple[State, Array]:
        """`advance` over a single row."""
        values, time, before = row.values[:, 0], row.times.item(), state["time"].item(0)
        step = 0.0 if math.isnan(before) else time - before
        if compiles():
            after, u, full = compiled_memory().moved(self, state, values, time, step)
            after |= {name: smoothers.step(state[name], values, time) for name, smoothers in self.smoothed}
        else:
            sums, inputs = self.scaler.step(state["sums"], values, step)
            modes = self.bank.step(state["modes"], inputs, step)
            centre, scale = self.scaler.read(sums)
            u = ((values - centre) / scale)[:, None]
            full = step == 1.0 and self.density.unbroken(state, row, modes)
            after = {name: anchor.step(state[name], values, time) for name, anchor in self.slotted}
            after |= {"time": row.times.repeat(len(values)), "sums": sums, "modes": modes}
        if not full:
            after |= self.density.run(state, row, after["modes"][:, None])[1]
        if self.covariates.n_columns:
            after |= self.covariates.advance(state, row, np.array([step]))
        return state | after, u

    def _blocks(self, panel: Panel, n_leads: int) -> Iterator[slice]:
        n_series, n_rows = panel.values.shape
        of_a_lead = len(self.anchors) + self.n_bases * self.n_ahead
        numbers = 2 * self.bank.tau.size + n_leads * of_a_lead
        length = int(np.clip(_BLOCK_NUMBERS // (n_series * numbers), 1, _BLOCK_ROWS))
        return (slice(start, min(start + length, n_rows)) for start in range(0, n_rows, length))

    @staticmethod
    def _steps(state: State, part: Panel) -> Array:
        before = part.times[0] if np.isnan(state["time"][0]) else state["time"][0]
        return np.diff(part.times, prepend=before)

    def _known_ahead(self, panel: Panel, rows: slice) -> Array:
        """Covariates known in advance after the rows of `panel`: (series, rows, horizon, known)."""
        n_known = self.covariates.n_known
        if not n_known:
            return np.empty((len(panel.values), rows.stop - rows.start, self.horizon, 0))
        near = panel.reaching(rows.start, rows.stop, self.horizon)
        return near.covariates_ahead(self.horizon, n_known, rows.stop - rows.start)

    def _block(self, state: State, part: Panel, steps: Array) -> tuple[Complex, Array, State]:
        """Evened modes and sums after each row of `part`, and the state after the last but for the slots."""
        sums = self.scaler.run(state["sums"], part.values, steps)
        modes = self.bank.run(state["modes"], part.values - self.scaler.origin(sums[:, -1:]), steps)
        time = np.full(len(part.values), part.times[-1])
        share, seen = self.density.run(state, part, modes)
        # Copies: a view would keep the block alive.
        after = {"time": time, "sums": sums[:, -1].copy(), "modes": modes[:, -1].copy()} | seen
        return self.density.evened(modes, share), sums, after

    def _with(
        self, view: tuple[Array, Array, Array, Array], past: Array, ahead: Array
    ) -> tuple[Array, Array, Array, Array, Array]:
        """A view of the series and that of its covariates."""
        features, anchors, centre, scale = view
        if self.blended:
            apart = np.moveaxis(anchors[1:] - anchors[:1], 0, -1)
            ahead, anchors = np.concatenate([ahead, apart[None]], axis=-1), anchors[:1]
        return np.concatenate([features, past], axis=-1), anchors, ahead, centre, scale

    def _view(
        self, modes: Complex, sums: Array, said: dict[str, Array], n_leads: int
    ) -> tuple[Array, Array, Array, Array]:
        """Features, anchors (first axis), centre and scale at the rows of `modes` and `sums`."""
        centre, scale = self.scaler.read(sums)
        features = self.bank.features(modes, centre - self.scaler.origin(sums), scale)
        anchors = np.zeros((len(self.anchors), *centre.shape, n_leads))
        for i, name in enumerate(f"slots_{i}" for i in range(len(self.anchors))):
            if name in said:
                np.subtract(said[name], centre[..., None], out=anchors[i])
                anchors[i] /= scale[..., None]
        if not np.isfinite(anchors).all():  # before any value a slot says the centre
            anchors = np.nan_to_num(anchors)
        return features, anchors, centre, scale


def linear_memory(
    panel: Panel,
    horizon: int,
    n_modes: int,
    timescales: tuple[float, float],
    season_lengths: Sequence[int],
    n_known: int = 0,
    anchor: str = "auto",
    centre_memory: float = CENTRE_MEMORY,
) -> LinearMemory:
    """The memory for `panel`: modes on the grid of `timescales`, at the frequencies that stand out in it.

    n_known: of its covariates, the first ones, that are known in advance.  anchor: the kind to lean on,
    "centre", "last" or "season", or "auto" for all.  centre_memory: steps, of centre and scale.
    """
    finite = mode_timescales(*timescales, n_modes)[:-1]  # a raw accumulator would have no unit gain
    frequencies = strongest_frequencies(panel.values, panel.times, season_lengths, MAX_FREQUENCIES)
    seasonal = tuple(chain(*(_profiles(length) for length in season_lengths)))
    kinds: dict[str, tuple[SeasonSlots | None, ...]]
    kinds = {"centre": (None,), "last": (SeasonSlots(1),), "season": seasonal}
    anchors = kinds.get(anchor) or sum(kinds.values(), ())
    spread = np.unique(np.linspace(0, finite.size - 1, N_MODES + 2).astype(int)[1:-1])
    covariates = CovariateMemory(panel.covariates.shape[-1], n_known, finite[spread], anchors, horizon)
    return LinearMemory(ModeBank(finite, frequencies), Scaler(centre_memory), anchors, horizon, covariates)


def beside_smoothing(memory: LinearMemory, panel: Panel, *, pooled: bool) -> LinearMemory:
    """`memory` with exponential smoothing among its anchors, where short series share their coefficients.

    Only beside all other anchors, and not with covariates: what is heard by its errors cannot tell what it
    saw of these.
    """
    values, all_anchors = (~np.isnan(panel.values)).sum(1), None in memory.anchors[:-1]
    short = pooled and len(values) > 1 and np.median(values) < _SHORT
    return with_smoothing(memory) if short and all_anchors and not memory.covariates.n_columns else memory


def with_smoothing(memory: LinearMemory) -> LinearMemory:
    """`memory` with exponential smoothing as its last anchors, of the seasons of the others."""
    seasons = dict.fromkeys(a.season_length for a in memory.anchors if a and a.season_length > 1)
    lengths = tuple(length for length in seasons if length <= _SMOOTHED_SEASON)
    smoothers = tuple(Smoothers(lengths, drifts) for drifts in DRIFTS)
    covariates = replace(memory.covariates, anchors=(*memory.covariates.anchors, *[None for _ in smoothers]))
    return replace(memory, anchors=(*memory.anchors, *smoothers), covariates=covariates)


def _profiles(season_length: int) -> tuple[SeasonSlots, ...]:
    """The last value in each phase of a season, a mean of the last ones, and that moved by the last value; of
    a short season the first two, of a long one the mean alone."""
    last, mean = SeasonSlots(season_length), SeasonSlots(season_length, PROFILE_MEMORY)
    if season_length > _LONG_SEASON:
        return (mean,)
    return (last, mean) if season_length < _SHORT_SEASON else (last, mean, replace(mean, moved=True))
