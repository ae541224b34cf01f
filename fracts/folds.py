"""Rolling origins in time: what is learned before a fold starts is tried on the origins inside it.

One idea: all forecast origins of a panel are sorted once by the fold that tries them and the fold of their
last target. Sums over such sorts are all that a choice needs, and what is learned for a fold holds no target
of its time or later.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fracts.cuts import FOLDS, Cuts
from fracts.grids import grids
from fracts.recall import LinearMemory
from fracts.regression import Moments, Penalty
from fracts.scaling import Array
from fracts.series import Panel

PENALTIES = [Penalty(*p) for p in product((0.5, 0.75), (0.0, 0.25), (0.1, 1.0, 10.0, 100.0, 1e3, 1e4))]
COVARIATE_STRENGTHS = (1.0, 100.0, 1e4, 1e6)
MIN_HELD_OUT = 20  # held-out forecasts of a lead worth choosing by
_MIN_SEEN = 10  # values behind a centre and a scale worth regressing on
_LONG = 4  # horizons in a history whose last horizon can be spared
_COUNTED_ROWS = 256  # at once
_FARTHEST = 10.0  # scales from the centre: what lies farther off is counted there, lest it rule alone
_ROUNDING = 1e-13  # of a sum of squares: an error below it is none


class Origins(NamedTuple):
    """Origins of a block that are tried in `fold` and whose last targets lie in `last_fold`.

    An origin of one series stands beside those of the others at its time: NaN is no target of these.
    """

    series: NDArray[np.int64]  # (series,)
    fold: int
    last_fold: int
    features: Array  # (series, origins, features)
    targets: Array  # (anchors, series, origins, leads)
    ahead: Array  # (anchors, series, origins, leads, known)


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
        seen = ~np.isnan(panel.values)
        first, last = panel.times[seen.argmax(1)], panel.times[-1 - seen[:, ::-1].argmax(1)]
        spared = np.where(last - first >= _LONG * horizon, horizon, 0)
        self._end = np.searchsorted(panel.times, last - spared, side="right")  # (series,)

    def after(self, start: int, stop: int) -> Array:
        """(series, rows, horizon) after the rows `start` to `stop`, NaN for none."""
        values, times = self.panel.values, self.panel.times
        until = int(np.searchsorted(times, times[stop - 1] + self.horizon + 1))
        wanted = self.panel.part(start, until).ahead(self.horizon)[:, : stop - start]
        rows = np.arange(start, stop)
        silent = np.isnan(values[:, start:stop])
        wanted[silent | (rows < self._begin[:, None]) | (rows >= self._end[:, None])] = np.nan
        return wanted


def known_targets(panel: Panel, horizon: int, season: int = 1) -> Array:
    """`Targets` after every row of `panel`: (series, time, horizon)."""
    return Targets(panel, horizon, season).after(0, panel.times.size)


def rows_unfit(panel: Panel, season: int = 1) -> NDArray[np.int64]:
    """Rows (series,) until a series has shown enough values, two different ones, and a whole `season`.

    Of a series of fewer than three seasons a third has to do.
    """
    values, seen = panel.values, ~np.isnan(panel.values)
    first = np.take_along_axis(values, seen.argmax(1)[:, None], 1)
    moved = np.logical_or.accumulate(seen & (values != first), axis=1)
    enough = np.cumsum(seen, axis=1) >= np.minimum(_MIN_SEEN, seen.sum(1, keepdims=True) / 4)
    first_time, last_time = panel.times[seen.argmax(1)], panel.times[-1 - seen[:, ::-1].argmax(1)]
    wait = np.minimum(season - 1, (last_time - first_time) / 3)
    settled = panel.times >= (first_time + wait)[:, None]
    return np.asarray(np.sum(~(enough & moved & settled), axis=1))


def origins(memory: LinearMemory, panel: Panel, leads: NDArray[np.int64], n_groups: int) -> Iterator[Origins]:
    """All forecast origins of `panel`, with standardised targets around each anchor at `leads` (from 0).

    n_groups: 1 where all series share coefficients, or one for each series.
    """
    cuts = Cuts.of(panel, n_groups)
    for series, part in grids(panel, ~np.isnan(panel.values)):
        yield from _origins_of(memory, part, leads, series, cuts.of_series(series))


def _origins_of(
    memory: LinearMemory, panel: Panel, leads: NDArray[np.int64], series: NDArray[np.int64], cuts: Cuts
) -> Iterator[Origins]:
    """`origins` of a lot of `series`, in `panel` alone."""
    targets = Targets(panel, memory.horizon, memory.longest_season)
    for walk in memory.walk(memory.empty(len(panel.values)), panel):
        wanted = targets.after(walk.rows.start, walk.rows.stop)[..., leads]
        around = standard_targets(wanted, walk.anchors[..., leads], walk.centre, walk.scale)
        times = panel.times[walk.rows]
        here, there = cuts.tried(times), cuts.reached(times + memory.horizon)
        pairs = here * (len(FOLDS) + 1) + there
        for pair in np.unique(pairs):
            fold, last_fold = divmod(int(pair), len(FOLDS) + 1)
            mine = pairs == pair
            at = mine.any(0)
            ahead = walk.ahead[:, :, at][..., leads, :]
            sorted_out = np.where(mine[:, at, None], around[:, :, at], np.nan)
            yield Origins(series, fold, last_fold, walk.features[:, at], sorted_out, ahead)


def standard_targets(wanted: Array, anchors: Array, centre: Array, scale: Array) -> Array:
    """Targets (..., leads) in units of scale around `anchors`, each cut off far from the centre."""
    standard = np.clip((wanted - centre[..., None]) / scale[..., None], -_FARTHEST, _FARTHEST)
    around: Array = standard - np.clip(anchors, -_FARTHEST, _FARTHEST)
    return around


def groups_of(part: Origins, n_groups: int) -> Iterator[tuple[int, slice]]:
    """Each group of series with coefficients of its own in `part`, and where it stands there."""
    if n_groups == 1:
        yield 0, slice(None)
        return
    for at, group in enumerate(part.series.tolist()):
        yield group, slice(at, at + 1)


@dataclass(frozen=True)
class FoldMoments:
    """Moments of all origins, apart by (fold, last fold), each a list with one for every group of series."""

    parts: dict[tuple[int, int], list[Moments]]
    nothing: Moments

    @classmethod
    def of(
        cls,
        memory: LinearMemory,
        share: Share,
        leads: NDArray[np.int64],
        n_groups: int,
        *,
        common: bool = False,
    ) -> "FoldMoments":
        """One pass over `share`; series count by their weights.

        common: cut all series at the same times, also where each is a group.
        """
        n_bases, n_ahead = memory.n_bases, memory.n_ahead
        shape = memory.n_features, n_bases, leads.size, n_ahead
        roots = np.sqrt(share.weights)[:, None, None]
        parts: dict[tuple[int, int], list[Moments]] = {}
        for part in origins(memory, share.panel, leads, 1 if common else n_groups):
            key = part.fold, part.last_fold
            groups = parts.setdefault(key, [Moments.empty(*shape) for _ in range(n_groups)])
            root = roots[part.series]
            features, targets = part.features * root, part.targets * root
            ahead = part.ahead * root[..., None]
            for group, series in groups_of(part, n_groups):
                own = targets[:, series].reshape(n_bases, -1, leads.size)
                known = ahead[:, series].reshape(*own.shape, n_ahead)
                groups[group].add(features[series].reshape(-1, shape[0]), own, known)
        return cls(parts, Moments.empty(*shape))

    def before(self, fold: int, group: int) -> Moments:
        """Of the origins all of whose targets lie before `fold`."""
        return self.nothing.plus(groups[group] for (_, last), groups in self.parts.items() if last < fold)

    def inside(self, fold: int, group: int) -> Moments:
        """Of the origins in `fold`."""
        return self.nothing.plus(groups[group] for (here, _), groups in self.parts.items() if here == fold)

    def whole(self, group: int) -> Moments:
        """Of all origins."""
        return self.nothing.plus(groups[group] for groups in self.parts.values())


def held_out_counts(memory: LinearMemory, panel: Panel, n_groups: int) -> tuple[NDArray[np.int64], bool]:
    """Number of held-out targets of each lead (horizon,), and whether any origin lacks one of its targets."""
    counts, holes = np.zeros(memory.horizon, dtype=np.int64), False
    cuts = Cuts.of(panel, n_groups)
    for series, part in grids(panel, ~np.isnan(panel.values)):
        own, targets = cuts.of_series(series), Targets(part, memory.horizon, memory.longest_season)
        for start in range(0, part.times.size, _COUNTED_ROWS):
            stop = min(start + _COUNTED_ROWS, part.times.size)
            known = ~np.isnan(targets.after(start, stop))
            counts += known[own.tried(part.times[start:stop]) > 0].sum(0)
            holes |= bool((known.any(-1) & ~known.all(-1)).any())
    return counts, holes


def noise_weights(memory: LinearMemory, panel: Panel, leads: NDArray[np.int64]) -> Array:
    """What an error of each series counts (series,): 1 over the mean square of what its best anchor leaves.

    So a series that is hard to tell does not rule those that are not, and a penalty is in units of the noise
    of each. The geometric mean of the weights is 1.
    """
    anchors, n_series = memory.of_the_past().of_anchors(), len(panel.values)
    if n_series == 1:
        return np.ones(1)
    square, count = np.zeros((len(anchors.anchors), n_series)), np.zeros(n_series)
    for part in origins(anchors, panel, leads, 1):
        square[:, part.series] += np.nansum(part.targets**2, axis=(2, 3))
        count[part.series] += np.sum(~np.isnan(part.targets[0]), axis=(1, 2))
    seen = (count > 0) & (square.min(0) > 0)
    if not seen.any():
        return np.ones(n_series)
    noise = np.full(n_series, np.nan)
    noise[seen] = square[:, seen].min(0) / count[seen]
    usual = np.nanmedian(noise)
    weights: Array = 1 / np.clip(np.where(seen, noise, usual), usual / _FARTHEST**2, None)
    return np.asarray(weights / np.exp(np.log(weights).mean()))


def choose(
    memory: LinearMemory,
    share: Share,
    leads: NDArray[np.int64],
    pooled: bool,
    penalties: Sequence[Penalty] = PENALTIES,
) -> tuple[int, Penalty]:
    """Anchor and penalty, one of `penalties`, of the least held-out error.

    The error is the product over `leads` of the squared error summed over folds and series.
    """
    # What is known ahead is left to the second round: each of its numbers costs as much as all the leads.
    anchor, penalty = _best(memory.of_the_past(), share, leads, pooled, penalties)
    if memory.covariates.n_columns:
        tried = [penalty._replace(covariates=strength) for strength in COVARIATE_STRENGTHS]
        anchor, penalty = _best(memory, share, leads, pooled, tried)
    return anchor, penalty


def shared_is_better(memory: LinearMemory, share: Share, leads: NDArray[np.int64]) -> bool:
    """Whether coefficients that all series of `share` learn together have less held-out error than own ones.

    Both are tried on the same origins, those after common cuts, at the best penalty and anchor of each.
    """
    groups, folds = range(len(share.weights)), range(1, len(FOLDS) + 1)
    moments = FoldMoments.of(memory, share, leads, len(groups), common=True)
    own, shared = np.zeros((2, len(PENALTIES), memory.n_bases, leads.size))
    for fold in folds:
        past = [moments.before(fold, g) for g in groups]
        together = past[0].plus(past[1:])
        taught = [together.solve(memory.penalty(penalty)) for penalty in PENALTIES]
        for g in groups:
            present = moments.inside(fold, g)
            own += _trials(memory, past[g], present, PENALTIES)
            shared += np.array([present.squared_error(b) for b in taught])
    return bool(np.log(shared).mean(-1).min() <= np.log(own).mean(-1).min())


def _best(
    memory: LinearMemory,
    share: Share,
    leads: NDArray[np.int64],
    pooled: bool,
    penalties: Sequence[Penalty],
) -> tuple[int, Penalty]:
    """`choose`, of these `penalties`."""
    errors = np.zeros((len(penalties), memory.n_bases, leads.size))
    n_groups = 1 if pooled else len(share.weights)
    moments = FoldMoments.of(memory, share, leads, n_groups)
    for fold, group in product(range(1, len(FOLDS) + 1), range(n_groups)):
        past, present = moments.before(fold, group), moments.inside(fold, group)
        errors += _trials(memory, past, present, penalties)
    total = np.log(errors).mean(-1)
    penalty, anchor = np.unravel_index(int(total.argmin()), total.shape)
    return int(anchor), penalties[int(penalty)]


def _trials(memory: LinearMemory, past: Moments, present: Moments, penalties: Sequence[Penalty]) -> Array:
    """Errors on `present` of what is learned from `past`: (penalties, anchors, leads), none of them 0."""
    errors = [present.squared_error(past.solve(memory.penalty(penalty))) for penalty in penalties]
    return floored(np.array(errors), present)


def floored(errors: Array, present: Moments) -> Array:
    """Summed squared `errors` (..., leads) on `present`, none of them 0."""
    floor = _ROUNDING * present.square.max(0) + np.finfo(float).tiny
    return np.asarray(np.maximum(errors, floor), dtype=np.float64)
