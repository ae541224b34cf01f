"""How densely a series was seen: what makes modes of gappy and of irregular series comparable.

One idea: a mode is a decayed sum, so after a gap, or where rows are sparse, it is small because little was
seen and not because the series was near its centre. The constant that goes through the same modes tells how
much was seen; its share of what a full history of the same length would have left evens the modes out, so
that they are local means. It is taken at the last value: what follows without one decays as it always does,
and what is left of the constant tells how long ago that was.
Of a full history it is 1, and nothing changes. (Local means of irregular samples: Nadaraya, 1964, Theory of
Probability and its Applications 9(1).)
"""

import math
from dataclasses import dataclass

import numpy as np

from fracts.bank import Complex, ModeBank
from fracts.scaling import Array
from fracts.series import Panel, State

LEAST = 0.1  # share below which a mode is left small: little was seen of what it stands for
SHARE_ROUNDING = 1e-9  # of the share of a full history
_NONE = 1e-8  # of a mode: what it lost since the last value, below which that is now
_EXACT = 500.0  # timescales, up to which what is left of a mode has all its digits
_ON_GRID = 1e-6  # steps, off whole and half ones


@dataclass(frozen=True)
class Density:
    """The share of each timescale of `bank` that was seen, up to the last value.

    The state holds `start` (series,), the time of the first value, NaN before it, and `share` (series,
    timescales).
    """

    bank: ModeBank

    def empty(self, n_series: int) -> State:
        """State before any value."""
        return {"start": np.full(n_series, np.nan), "share": np.zeros((n_series, self.bank.timescales.size))}

    def run(self, state: State, panel: Panel, modes: Complex) -> tuple[Array, State]:
        """Shares after every row of `panel` (series, rows, timescales), from its raw modes, and the state."""
        seen = ~np.isnan(panel.values)
        first = np.where(seen.any(1), panel.times[seen.argmax(1)], np.nan)
        start = np.where(np.isnan(state["start"]), first, state["start"])
        steps = np.where(seen, panel.times - start[:, None] + 1, 1.0)
        share = modes[:, :, 1, : self.bank.timescales.size].real / -np.expm1(
            -steps[..., None] / self.bank.timescales
        )
        share = np.where(np.abs(share - 1) < SHARE_ROUNDING, 1.0, share)
        share = np.concatenate([state["share"][:, None], share], axis=1)
        last = np.maximum.accumulate(np.where(seen, np.arange(1, seen.shape[1] + 1), 0), axis=1)
        shares = np.take_along_axis(share, last[..., None], axis=1)
        return shares, {"start": start, "share": shares[:, -1].copy()}

    def since(self, state: State) -> Array | None:
        """Steps from the last value of each series to the time of `state` (series,), 0 before any value; None
        where all have one there.

        The constant tells it, which has decayed in the modes since.
        """
        scales = self.bank.timescales
        own, share = state["modes"][:, 1, : scales.size].real, state["share"]
        if len(own) == 1 and _is_now(own, share, state, scales.item(0)):
            return None
        age = (state["time"] - state["start"] + 1)[:, None]  # NaN before any value
        with np.errstate(divide="ignore", invalid="ignore"):
            fastest = own[:, :1] / share[:, :1] + np.exp(-age / scales[:1])
            if not np.count_nonzero(np.abs(fastest - 1) > _NONE):
                return None
            steps = -scales * np.log(own / share + np.exp(-age / scales))
        # Of the modes that are not gone the fastest is the most exact.
        at = np.argmax(steps[:, -1:] < _EXACT * scales, axis=1)
        found = np.take_along_axis(steps, at[:, None], 1)[:, 0]
        halves = np.round(2 * found) / 2
        found = np.where(np.abs(found - halves) < _ON_GRID, halves, found)
        return np.clip(np.where(np.isnan(found), 0.0, found), 0.0, self._farthest)

    def since_rows(self, state: State, panel: Panel) -> Array | None:
        """`since` after every row of `panel` that follows `state`: (series, rows), or None."""
        seen = ~np.isnan(panel.values)
        if seen.all():
            return None
        before, steps = state["time"], self.since(state)
        before = np.where(np.isnan(state["start"]), np.nan, before if steps is None else before - steps)
        last = np.fmax.accumulate(np.where(seen, panel.times, np.nan), axis=1)
        return np.minimum(np.nan_to_num(panel.times - np.fmax(last, before[:, None])), self._farthest)

    @property
    def _farthest(self) -> float:
        """Steps after which all modes are gone."""
        return _EXACT * self.bank.timescales.item(-1)

    def unbroken(self, state: State, row: Panel, modes: Complex) -> bool:
        """Whether a single `row`, one step after the last, leaves a history full that was full: every series
        has a value in it, and there was no row without one just before, as the slowest mode would tell.

        modes: (series, 2, modes), after it.
        """
        if np.count_nonzero(np.isnan(row.values)) or not self.full(state["share"]):
            return False
        slowest = self.bank.timescales.size - 1
        if len(row.values) == 1:  # the same, in cheaper calls
            since = state["start"].item() - row.times.item() - 1
            due = -math.expm1(since / self.bank.timescales.item(slowest))
            return bool(abs(modes.item(0, 1, slowest).real - due) < SHARE_ROUNDING * due)
        seen = modes[:, 1, slowest].real
        dues = -np.expm1((state["start"] - row.times - 1) / self.bank.timescales[-1])
        return not np.count_nonzero(np.abs(seen - dues) >= SHARE_ROUNDING * dues)

    @staticmethod
    def full(share: Array) -> bool:
        """Whether all was seen, so that nothing is to be evened out."""
        return not np.count_nonzero(share != 1.0)

    def evened(self, modes: Complex, share: Array) -> Complex:
        """`modes` (..., 2, modes) over the `share` (..., timescales) that was seen of them."""
        if self.full(share):
            return modes
        even: Complex = modes * self.gain(share)[..., None, :]
        return even

    def gain(self, share: Array) -> Array:
        """What evens out each mode (..., modes) of which `share` (..., timescales) was seen."""
        gain: Array = ((1 + LEAST) / (share + LEAST))[..., self.bank.place]
        return gain


def _is_now(own: Array, share: Array, state: State, fastest: float) -> bool:
    """Whether a single series has a value at the time of `state`: the first test of `since`, in cheaper
    calls."""
    seen = share.item(0, 0)
    if not seen:
        return True
    age = state["time"].item(0) - state["start"].item(0) + 1
    return abs(own.item(0, 0) / seen + math.exp(-age / fastest) - 1) <= _NONE
