"""Rolling origins in time: what is learned before a fold starts is tried on the origins inside it.

One idea: all forecast origins of a panel are sorted once by the fold that tries them and the fold of their
last target. Sums over such sorts are all that a choice needs, and what is learned for a fold holds no target
of its time or later.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fracts.cuts import FOLDS, Cuts
from fracts.grids import grids
from fracts.recall import LinearMemory
from fracts.regression import Moments
from fracts.scaling import Array
from fracts.series import Panel

CHOOSING_LEADS = 7  # by which penalties and anchors are weighed
_MIN_SEEN = 10  # values behind a centre and a scale worth regressing on
_LONG = 4  # horizons in a history whose last horizon can be spared
_COUNTED_ROWS = 256  # at once
_FARTHEST = 10.0  # scales from the centre: what lies farther off is counted there, lest it rule alone


class Origins(NamedTuple):
    """Origins of a block that are tried in `fold` and whose last targets lie in `last_fold`.

    An origin of one series stands beside those of the others at its time: NaN is no target of these.
    """

    series: NDArray[np.int64]  # (series,)
    fold: int
    last_fold: int
    features: Array  # (series, origins, features)
    targets: Array  # (anchors, series, origins, leads)
    ahead: Array  # (anchors, series, origins, kinds, known), as `LinearMemory.n_kinds` has them
    scale: Array  # (series, origins)


class Share(NamedTuple):
    """Series that are looked at together, and what an error of each counts."""

    panel: Panel
    weights: Array  # (series,)


class Targets:
    """The next values after the rows of a panel that a forecast may be learned from.

    None after a row without a value, so that leaving it out is the same, where too few values, or only equal
    ones, stand behind the scale, and before the anchors have seen a whole `season`. A series of long history
    spares its last horizon: leads that end early would each need a factorisation of their own, for a handful
    of origins.
    """

    def __init__(self, panel: Panel, horizon: int, season: int = 1) -> None:
        self.panel, self.horizon = panel, horizon
        self._begin = rows_unfit(panel, season)
        first, last = _ends_of_each(panel)
        spared = np.where(last - first >= _LONG * horizon, horizon, 0)
        self._end = np.searchsorted(panel.times, last - spared, side="right")  # (series,)

    def after(self, start: int, stop: int, leads: NDArray[np.int64]) -> Array:
        """(series, rows, leads) after the rows `start` to `stop`, NaN for none.  leads: from 0."""
        values, times = self.panel.values, self.panel.times
        until = int(np.searchsorted(times, times[stop - 1] + self.horizon + 1))
        part = self.panel.part(start, until)
        wanted = np.ascontiguousarray(part.ahead(self.horizon, stop - start)[..., leads])
        rows = np.arange(start, stop)
        silent = np.isnan(values[:, start:stop])
        wanted[silent | (rows < self._begin[:, None]) | (rows >= self._end[:, None])] = np.nan
        return wanted


def known_targets(panel: Panel, horizon: int, season: int = 1) -> Array:
    """`Targets` after every row of `panel`: (series, time, horizon)."""
    return Targets(panel, horizon, season).after(0, panel.times.size, np.arange(horizon))


def rows_unfit(panel: Panel, season: int = 1) -> NDArray[np.int64]:
    """Rows (series,) until a series has shown enough values, two different ones, and a whole `season`.

    Of a series of fewer than three seasons a third has to do.
    """
    values, seen = panel.values, ~np.isnan(panel.values)
    first = np.take_along_axis(values, seen.argmax(1)[:, None], 1)
    moved = np.logical_or.accumulate(seen & (values != first), axis=1)
    enough = np.cumsum(seen, axis=1) >= np.minimum(_MIN_SEEN, seen.sum(1, keepdims=True) / 4)
    first_time, last_time = _ends_of_each(panel)
    wait = np.minimum(season - 1, (last_time - first_time) / 3)
    settled = panel.times >= (first_time + wait)[:, None]
    return np.asarray(np.sum(~(enough & moved & settled), axis=1))


def _ends_of_each(panel: Panel) -> tuple[Array, Array]:
    """Times of the first and of the last value of each series: (series,) each."""
    seen = ~np.isnan(panel.values)
    return panel.times[seen.argmax(1)], panel.times[-1 - seen[:, ::-1].argmax(1)]


def origins(
    memory: LinearMemory, panel: Panel, leads: NDArray[np.int64], *, pooled: bool
) -> Iterator[Origins]:
    """All forecast origins of `panel`, with standardised targets around each anchor at `leads` (from 0).

    pooled: whether all series share coefficients.
    """
    cuts = Cuts.of(panel, pooled=pooled)
    for series, part in grids(panel, ~np.isnan(panel.values)):
        yield from _origins_of(memory, part, leads, series, cuts.of_series(series))


def _origins_of(
    memory: LinearMemory, panel: Panel, leads: NDArray[np.int64], series: NDArray[np.int64], cuts: Cuts
) -> Iterator[Origins]:
    """`origins` of a lot of `series`, in `panel` alone."""
    targets = Targets(panel, memory.horizon, memory.longest_season)
    kinds = leads[: memory.n_kinds(leads)]
    kind = np.arange(leads.size) % kinds.size
    for walk in memory.walk(memory.empty(len(panel.values)), panel, leads=kinds):
        wanted = targets.after(walk.rows.start, walk.rows.stop, leads)
        around = standard_targets(wanted, np.take(walk.anchors, kind, -1), walk.centre, walk.scale)
        times = panel.times[walk.rows]
        here, there = cuts.tried(times), cuts.reached(times + memory.horizon)
        pairs = here * (len(FOLDS) + 1) + there
        for pair in np.unique(pairs):
            fold, last_fold = divmod(int(pair), len(FOLDS) + 1)
            mine = pairs == pair
            rows = np.flatnonzero(mine.any(0))
            at = slice(int(rows[0]), int(rows[-1]) + 1)  # a copy of the rows would cost as much as their sums
            sorted_out = around[:, :, at]
            if not mine[:, at].all():
                sorted_out = np.where(mine[:, at, None], sorted_out, np.nan)
            seen = walk.features[:, at], sorted_out, walk.ahead[:, :, at], walk.scale[:, at]
            yield Origins(series, fold, last_fold, *seen)


def standard_targets(wanted: Array, anchors: Array, centre: Array, scale: Array) -> Array:
    """Targets (..., leads) in units of scale around `anchors`, each cut off far from the centre."""
    standard = np.clip((wanted - centre[..., None]) / scale[..., None], -_FARTHEST, _FARTHEST)
    around: Array = standard - np.clip(anchors, -_FARTHEST, _FARTHEST)
    return around


def last_scale(memory: LinearMemory, panel: Panel) -> Array:
    """The scale of each series after the last row of `panel`: (series,)."""
    steps = np.diff(panel.times, prepend=panel.times[0])
    sums = memory.scaler.run(memory.scaler.empty(len(panel.values)), panel.values, steps)
    return memory.scaler.read(sums[:, -1])[1]


def group_of_each(n_series: int, n_groups: int) -> NDArray[np.int64]:
    """The group (series,) of each of `n_series`, neighbours together."""
    return np.arange(n_series) * n_groups // n_series


def groups_of(part: Origins, group: NDArray[np.int64]) -> Iterator[tuple[int, slice]]:
    """Each group of series in `part`, and where it stands there.  group: of every series of the panel."""
    mine = group[part.series]
    for one in np.unique(mine).tolist():
        at = np.flatnonzero(mine == one)
        yield one, slice(int(at[0]), int(at[-1]) + 1)


@dataclass(frozen=True)
class FoldMoments:
    """Moments of all origins, apart by (fold, last fold), each a list with one for every group of series."""

    parts: dict[tuple[int, int], list[Moments]]
    nothing: Moments
    leads: NDArray[np.int64]  # from 0
    n_groups: int

    @classmethod
    def of(
        cls,
        memory: LinearMemory,
        share: Share,
        leads: NDArray[np.int64],
        n_groups: int,
        *,
        pooled: bool,
        in_units: bool = False,
    ) -> "FoldMoments":
        """One pass over `share`; series count by their weights.

        pooled: cut the series as those that share coefficients, whatever their groups.
        in_units: errors of an origin count in the units of its series, not in the scale that it had then.
        """
        n_bases, n_ahead = memory.n_bases, memory.n_ahead
        shape = memory.n_features, n_bases, leads.size, n_ahead, memory.n_kinds(leads)
        roots = np.sqrt(share.weights)[:, None, None]
        last = last_scale(memory, share.panel)[:, None] if in_units else None
        parts: dict[tuple[int, int], list[Moments]] = {}
        group = group_of_each(len(share.weights), n_groups)
        for part in origins(memory, share.panel, leads, pooled=pooled):
            key = part.fold, part.last_fold
            groups = parts.setdefault(key, [Moments.empty(*shape) for _ in range(n_groups)])
            root = roots[part.series]
            if last is not None:
                root = root * (part.scale / last[part.series])[..., None]
            features, targets = part.features * root, part.targets * root
            ahead = part.ahead * root[..., None]
            for one, series in groups_of(part, group):
                own = targets[:, series].reshape(n_bases, -1, leads.size)
                known = ahead[:, series].reshape(*own.shape[:2], *ahead.shape[-2:])
                groups[one].add(features[series].reshape(-1, shape[0]), own, known)
        return cls(parts, Moments.empty(*shape), leads, n_groups)

    def before(self, fold: int, group: int) -> Moments:
        """Of the origins all of whose targets lie before `fold`."""
        return self.nothing.plus(groups[group] for (_, last), groups in self.parts.items() if last < fold)

    def inside(self, fold: int, group: int) -> Moments:
        """Of the origins in `fold`."""
        return self.nothing.plus(groups[group] for (here, _), groups in self.parts.items() if here == fold)

    def whole(self, group: int) -> Moments:
        """Of all origins."""
        return self.nothing.plus(groups[group] for groups in self.parts.values())


def overlaps(panel: Panel, leads: NDArray[np.int64]) -> Array:
    """How many targets of each series share their steps with a target of each of `leads`, from 0, itself
    among them: (series, leads). Of a series seen at every step as many as the lead has steps."""
    first, last = _ends_of_each(panel)
    rows = (np.sum(~np.isnan(panel.values), axis=1) / (last - first + 1))[:, None]  # a step
    return np.asarray(np.maximum((1 + leads) * rows * np.minimum(rows, 1.0), 1.0))


def held_out_counts(memory: LinearMemory, panel: Panel, *, pooled: bool) -> tuple[NDArray[np.int64], bool]:
    """Number of held-out targets of each lead (horizon,), and whether any origin lacks one of its targets."""
    counts, holes = np.zeros(memory.horizon, dtype=np.int64), False
    cuts, leads = Cuts.of(panel, pooled=pooled), np.arange(memory.horizon)
    for series, part in grids(panel, ~np.isnan(panel.values)):
        own, targets = cuts.of_series(series), Targets(part, memory.horizon, memory.longest_season)
        for start in range(0, part.times.size, _COUNTED_ROWS):
            stop = min(start + _COUNTED_ROWS, part.times.size)
            known = ~np.isnan(targets.after(start, stop, leads))
            counts += known[own.tried(part.times[start:stop]) > 0].sum(0)
            holes |= bool((known.any(-1) & ~known.all(-1)).any())
    return counts, holes
