"""The anchor: what was seen at the same phase of the season, for every lead.

One idea: a slot for each phase keeps a mean of the values seen there, each weighing exp(-1 / memory) of the
next one; with no memory it is the last value. So the state is one season whatever the length of the history,
and gaps and dropped rows move nothing. The phase of a time t is `floor(t) mod season_length`, in real time as
well; a season of 1 without memory is the last value itself. A slot never seen answers with the last value of
the series.

Moved slots say all as far off as the last value lay from what its own slot had said: the season keeps its
shape where the level is no longer that of the last seasons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fracts.records import record
from fracts.scaling import Array, decayed_sums

Ints = NDArray[np.int64]


@record
@dataclass(frozen=True)
class SeasonSlots:
    """Mean of the last values in each phase of a season of `season_length` steps, over about `memory` values.

    moved: whether what is said goes along with the last value. The state is one array `slots` (series,
    season_length + 1, 2) of weighted sums and weights; after the phases comes the last value, and where they
    are moved a slot more for how far it lay off. Everywhere `values` is (series, rows), NaN for no value,
    `times` is (rows,), in steps and increasing. What is said is NaN before the first value of a series.

    Examples
    --------
    >>> weekly = SeasonSlots(7)
    >>> slots = weekly.advance(weekly.empty(1), np.arange(10.0)[None], np.arange(10.0))
    >>> weekly.read(slots, now=9.0, horizon=5)
    array([[3., 4., 5., 6., 7.]])
    >>> moved = SeasonSlots(7, moved=True)
    >>> slots = moved.advance(moved.empty(1), np.arange(10.0)[None], np.arange(10.0))
    >>> moved.read(slots, now=9.0, horizon=5)
    array([[10., 11., 12., 13., 14.]])
    """

    season_length: int
    memory: float = 0.0
    moved: bool = False

    def empty(self, n_series: int) -> Array:
        """The slots before any row."""
        return np.zeros((n_series, self.season_length + 1 + self.moved, 2))

    def advance(self, slots: Array, values: Array, times: Array) -> Array:
        """The slots after the rows; rows without a value leave them as they were."""
        if times.size == 1:
            return self.step(slots, values[:, 0], times.item())
        rounds, phase = self._rounds(times)
        sums, last = self._sums(slots, values, rounds, phase)
        return self._ends(sums, last, self._off(slots, sums, values, rounds, phase))

    def step(self, slots: Array, values: Array, time: float) -> Array:
        """`advance` over a single row.  values: (series,)."""
        after, phase, last = slots.copy(), self.phase(time), self.season_length
        if len(values) == 1:  # the same, in cheaper calls
            one, own = values.item(), after[0]
            if not math.isnan(one):
                if self.moved:
                    before = own.item(phase, 1)
                    own[-1, 0], own[-1, 1] = one - own.item(phase, 0) / before if before else 0.0, 1.0
                own[phase, 0] = self.kept * own.item(phase, 0) + one
                own[phase, 1] = self.kept * own.item(phase, 1) + 1.0
                own[last, 0], own[last, 1] = one, 1.0
            return after
        seen = ~np.isnan(values)
        value = np.stack([values, np.ones(len(values))], axis=-1)[seen]
        if self.moved:
            off = np.nan_to_num(values[seen] - _level(slots[seen, phase]))
            after[seen, -1] = np.stack([off, np.ones(off.size)], axis=-1)
        after[seen, phase] = self.kept * slots[seen, phase] + value
        after[seen, last] = value
        return after

    def read(self, slots: Array, now: float, horizon: int) -> Array:
        """(series, horizon): the anchor of `now + 1` to `now + horizon`."""
        start = self.phase(now) + 1
        due = slots[:, _ring(self.season_length, horizon)[start : start + horizon]]
        weights = due[..., 1]
        if np.count_nonzero(weights) == weights.size:
            level: Array = due[..., 0] / weights
            return level + slots[:, -1:, 0] if self.moved else level
        level = _level(due) + slots[:, -1:, 0] if self.moved else _level(due)
        return _filled(level, _level(slots[:, self.season_length, None]))

    def run(self, slots: Array, values: Array, times: Array, leads: Ints) -> tuple[Array, Array]:
        """The slots after the rows, and what `read` says after each of them: (series, rows, leads).

        leads: of those from 1 on, in steps.
        """
        rounds, phase = self._rounds(times)
        sums, last = self._sums(slots, values, rounds, phase)
        ahead = (phase[:, None] + leads) % self.season_length
        # What lies later in the season than now was last seen in the round before.
        said = _level(sums)[:, rounds[:, None] + (ahead <= phase[:, None]), ahead]
        off = self._off(slots, sums, values, rounds, phase)
        if self.moved:
            said += off[:, 1:, None]
        return self._ends(sums, last, off), _filled(said, last[:, 1:, None])

    def before(self, slots: Array, values: Array, times: Array) -> Array:
        """(series, rows): what the slots say of each row before its value comes."""
        if times.size == 1:
            here = self.phase(times.item())
            level = _level(slots[:, here, None])
            level = level + slots[:, -1:, 0] if self.moved else level
            return _filled(level, _level(slots[:, self.season_length, None]))
        rounds, phase = self._rounds(times)
        sums, last = self._sums(slots, values, rounds, phase)
        said = _level(sums)[:, rounds, phase]
        said = said + self._off(slots, sums, values, rounds, phase)[:, :-1] if self.moved else said
        return _filled(said, last[:, :-1])

    def phase(self, time: float) -> int:
        """The place in the season of a `time`."""
        return math.floor(time) % self.season_length

    @property
    def kept(self) -> float:
        """What a slot keeps of its sums when a value comes."""
        return math.exp(-1.0 / self.memory) if self.memory else 0.0

    def _rounds(self, times: Array) -> tuple[Ints, Ints]:
        """Round and phase of each row; a round is of rows of one season, a phase once."""
        whole = np.floor(times).astype(np.int64)
        season, phase = np.divmod(whole, self.season_length)
        anew = (season[1:] > season[:-1]) | (whole[1:] == whole[:-1])
        return np.append(0, np.cumsum(anew)), phase

    def _sums(self, slots: Array, values: Array, rounds: Ints, phase: Ints) -> tuple[Array, Array]:
        """Slots before the first round and after each, and the last value, alike for the rows.

        Shapes (series, 1 + rounds, season_length, 2) and (series, 1 + rows).
        """
        table = np.full((len(values), rounds[-1] + 1, self.season_length), np.nan)
        table[:, rounds, phase] = values
        seen = ~np.isnan(table)
        decay = np.where(seen, self.kept, 1.0).swapaxes(0, 1)[..., None]
        start = slots[:, : self.season_length]
        sums = decayed_sums(start, decay, np.stack([np.where(seen, table, 0.0), seen], axis=-1))
        last = _last_seen(_level(slots[:, self.season_length]), values)
        return np.concatenate([start[:, None], sums], axis=1), last

    def _off(self, slots: Array, sums: Array, values: Array, rounds: Ints, phase: Ints) -> Array:
        """How far the last value lay from what its slot said, before the first row and after each: (series, 1
        + rows); 0 where that had said nothing, no numbers where nothing is moved."""
        if not self.moved:
            return np.empty((len(values), 0))
        off = np.where(np.isnan(values), np.nan, np.nan_to_num(values - _level(sums)[:, rounds, phase]))
        return _last_seen(slots[:, -1, 0], off)

    @staticmethod
    def _ends(sums: Array, *last: Array) -> Array:
        """The slots after the last row, of sums and of what was `last` beside them."""
        ends = [np.stack([np.nan_to_num(x[:, -1:]), ~np.isnan(x[:, -1:])], axis=-1) for x in last if x.size]
        return np.concatenate([sums[:, -1], *ends], axis=1)


@lru_cache
def _ring(season_length: int, horizon: int) -> Ints:
    """Phases from the first on, round and round: of `horizon` steps from any of them."""
    return np.arange(season_length + horizon) % season_length


def _level(slots: Array) -> Array:
    """Means that the slots (..., 2) hold; NaN where nothing was seen."""
    empty = slots[..., 1] == 0
    level: Array = np.where(empty, np.nan, slots[..., 0] / np.where(empty, 1.0, slots[..., 1]))
    return level


def _last_seen(start: Array, values: Array) -> Array:
    """The last value seen, before the first row and after each: (series, 1 + rows)."""
    known = np.column_stack([start, values])
    at = np.maximum.accumulate(np.where(np.isnan(known), 0, np.arange(known.shape[1])), axis=1)
    last: Array = np.take_along_axis(known, at, 1)
    return last


def _filled(said: Array, last: Array) -> Array:
    unseen = np.isnan(said)
    return np.where(unseen, last, said) if unseen.any() else said
