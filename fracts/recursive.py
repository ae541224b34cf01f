"""Recursive least squares: the coefficients of the linear path, learned on row by row.

One idea: all that a weighted ridge needs of its past is a triangular factor of the features and their
targets, one for each lead, since lead k learns from an origin only k steps later. A new row is rotated in
and the older ones are scaled down by the forgetting; the penalty stays outside, so it is never forgotten,
and is added when the coefficients are solved. Working on factors keeps the digits that their squares would
lose (Golub and Van Loan, 2013, Matrix Computations, 6.5; LAPACK's `tpqrt` does the rotations). Of several
values within half a step of a lead the first one teaches it: none is waited for.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dtpqrt

from fracts.folds import rows_unfit, standard_targets
from fracts.linear import LinearPath
from fracts.recall import Walk
from fracts.records import record
from fracts.scaling import Array
from fracts.series import Panel, State

_BLOCK = 32  # columns that are rotated at once


@record
@dataclass(frozen=True)
class Recent:
    """Rows of the last horizon, origins whose later targets are still to come; `fit` are those to learn from.

    known: the covariates known in advance, at these rows, and 0 for blended anchors.  seen: what the anchor
    of the series saw of them, and how far it lies from the others.
    """

    times: Array  # (rows,)
    values: Array  # (series, rows), NaN for none
    known: Array  # (series, rows, known)
    fit: NDArray[np.bool_]  # (series, rows)
    features: Array  # (series, rows, features)
    anchors: Array  # (series, rows, horizon)
    seen: Array  # (series, rows, horizon, known)
    centre: Array  # (series, rows)
    scale: Array  # (series, rows)

    @classmethod
    def none(cls, n_series: int, path: LinearPath) -> "Recent":
        """No rows yet."""
        memory, each = path.memory, np.empty((n_series, 0))
        n_known, horizon = memory.n_ahead, memory.horizon
        return cls(
            np.empty(0),
            each,
            np.empty((n_series, 0, n_known)),
            each.astype(bool),
            np.empty((n_series, 0, memory.n_features)),
            np.empty((n_series, 0, horizon)),
            np.empty((n_series, 0, horizon, n_known)),
            each,
            each,
        )

    def then(self, walk: Walk, panel: Panel, fit: NDArray[np.bool_], n_known: int) -> "Recent":
        """These rows and those of a block of `panel` after them."""
        told = panel.covariates_ahead(self.anchors.shape[-1], n_known)[:, walk.rows]
        known = panel.covariates[:, walk.rows, :n_known]
        n_blended = self.known.shape[-1] - n_known
        after = (
            panel.times[walk.rows],
            panel.values[:, walk.rows],
            _widened(known, n_blended),
            fit[:, walk.rows] & ~np.isnan(panel.values[:, walk.rows]),
            walk.features,
            walk.anchors[0],
            _widened(told, n_blended) - walk.ahead[0],
            walk.centre,
            walk.scale,
        )
        before = [getattr(self, field.name) for field in fields(self)]
        pairs = zip(before, after, strict=True)
        return Recent(*(np.concatenate(pair, axis=min(pair[0].ndim - 1, 1)) for pair in pairs))

    def since(self, time: float) -> "Recent":
        """Those from `time` on."""
        at = self.times >= time
        rows = (getattr(self, field.name) for field in fields(self))
        return Recent(*(array[at] if array.ndim == 1 else array[:, at] for array in rows))

    def targets(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """(series, rows, horizon) each: the first row with a value within half a step of each lead, and
        whether there is one."""
        due = self.times[:, None] + np.arange(1, self.anchors.shape[-1] + 1)
        rows = np.zeros((len(self.values), *due.shape), dtype=np.int64)
        found = np.zeros(rows.shape, dtype=bool)
        for series, values in enumerate(self.values):
            known = np.flatnonzero(~np.isnan(values))
            if known.size:
                times = self.times[known]
                first = np.searchsorted(times, due - 0.5)
                at = np.minimum(first, known.size - 1)
                rows[series], found[series] = known[at], (first < known.size) & (times[at] - due < 0.5)
        return rows, found


@record
@dataclass(frozen=True)
class Recursion:
    """What the coefficients were learned from, as triangular factors of (features, known ahead, target)."""

    forgetting: float
    factors: Array  # (groups, horizon, features + known + 1, the same)
    recent: Recent

    @classmethod
    def begin(cls, path: LinearPath, panel: Panel, forgetting: float) -> "Recursion":
        """After the history `panel` that `path` was fitted on, all of whose origins weigh alike."""
        groups, size, horizon = path.coefficients.shape
        factors = np.zeros((groups, horizon, size + 1, size + 1))
        started = cls(1.0, factors, Recent.none(len(panel.values), path))
        fit = np.arange(panel.times.size) >= rows_unfit(panel, path.memory.longest_season)[:, None]
        return replace(started._after(path, path.empty(path.ids), panel, fit), forgetting=forgetting)

    def after(self, path: LinearPath, state: State, panel: Panel) -> "Recursion":
        """After the rows of `panel`, which follow `state`; a row that teaches a lead ages what it knew."""
        return self._after(path, state, panel, np.ones(panel.values.shape, dtype=bool))

    def detached(self) -> "Recursion":
        """The same weights without the origins of one history, to go on with another."""
        return replace(self, recent=self.recent.since(np.inf))

    def solve(self, penalty: Array) -> Array:
        """Ridge coefficients (groups, features + known, horizon) under the penalty (features + known,)."""
        size = penalty.size
        prior = np.column_stack([np.diag(np.sqrt(penalty)), np.zeros(size)])
        out = np.empty((len(self.factors), size, self.factors.shape[1]))
        for group, leads in enumerate(self.factors):
            for lead, factor in enumerate(leads):
                whole = _rotated(factor, prior, trapezoid=size)
                out[group, :, lead] = solve_triangular(whole[:size, :size], whole[:size, size])
        return out

    def relearned(self, path: LinearPath) -> LinearPath:
        """`path` with the coefficients that these rows ask for."""
        return replace(path, coefficients=self.solve(path.memory.penalty(path.penalty)))

    def _after(self, path: LinearPath, state: State, panel: Panel, fit: NDArray[np.bool_]) -> "Recursion":
        group, factors, recent = state["group"], self.factors.copy(), self.recent
        counted = state.get("weight", np.ones(len(group)))  # older files have none
        if len(recent.values) != len(panel.values) or not recent.times.size:
            recent = Recent.none(len(panel.values), path)
        for walk in path.memory.walk(state, panel):
            n_old = recent.times.size
            recent = recent.then(walk, panel, fit, path.memory.covariates.n_known)
            rows, found = recent.targets()
            # What an old row had to teach it has taught.
            taught = found & recent.fit[..., None] & (rows >= n_old)
            each = np.arange(len(rows))[:, None, None]
            targets = standard_targets(recent.values[each, rows], recent.anchors, recent.centre, recent.scale)
            ahead = recent.known[each, rows] - recent.seen
            for one in range(len(factors)):
                at = np.flatnonzero(group == one) if len(factors) > 1 else np.arange(len(group))
                root = np.sqrt(counted[at])[:, None, None]
                lessons = root * recent.features[at], root[..., None] * ahead[at], root * targets[at]
                self._learn(factors[one], *lessons, rows[at], taught[at])
            recent = recent.since(recent.times[-1] - path.memory.horizon - 0.5)
        return replace(self, factors=factors, recent=recent)

    def _learn(
        self,
        factors: Array,
        features: Array,
        ahead: Array,
        targets: Array,
        rows: NDArray[np.int64],
        taught: NDArray[np.bool_],
    ) -> None:
        """Rotate into `factors` (horizon, ...) what the origins teach, in the order of the `rows` that do.

        features: (series, origins, features).  ahead: (series, origins, horizon, known).  targets, rows,
        taught: (series, origins, horizon).
        """
        for lead in range(len(factors)):
            series, origin = np.nonzero(taught[..., lead])
            if not origin.size:
                continue
            times, age = np.unique(rows[series, origin, lead], return_inverse=True)
            weight = self.forgetting ** (0.5 * (times.size - 1 - age))
            lesson = np.column_stack(
                [features[series, origin], ahead[series, origin, lead], targets[series, origin, lead]]
            )
            kept = self.forgetting ** (0.5 * times.size) * factors[lead]
            factors[lead] = _rotated(kept, weight[:, None] * lesson)


def begun(path: LinearPath, panel: Panel, forgetting: float | None) -> Recursion | None:
    """`Recursion.begin`, or None where nothing is to be learned on."""
    return None if forgetting is None else Recursion.begin(path, panel, float(forgetting))


def learned_on(recursion: Recursion, path: LinearPath, state: State, panel: Panel) -> dict[str, Any]:
    """The attributes of a model that learning from the rows of `panel`, which follow `state`, changes."""
    after = recursion.after(path, state, panel)
    return {"_recursion": after, "_path": after.relearned(path)}


def _widened(numbers: Array, n_more: int) -> Array:
    """`numbers` (..., n) with zeros after them."""
    return np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, n_more)])


def _rotated(factor: Array, rows: Array, trapezoid: int = 0) -> Array:
    """Triangular factor of `factor` and the `rows` below it, whose last `trapezoid` are upper trapezoidal."""
    whole, *_ = dtpqrt(trapezoid, min(_BLOCK, len(factor)), factor, rows)
    upper: Array = np.triu(whole)
    return upper
