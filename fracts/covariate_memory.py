"""What the linear path remembers of covariates, and what it reads from them.

One idea: a covariate matters by how it differs from what the memory of the series already contains. A column
known in advance enters at the time forecast, less what the anchor of the series saw of it; every column
enters as it was seen last and through a few plain modes. A row without a value of the series is no row here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fracts.anchor import SeasonSlots
from fracts.records import record
from fracts.scaling import Array, decayed_sums
from fracts.series import Panel, State

N_MODES = 2  # that every column goes through


@record
@dataclass(frozen=True)
class CovariateMemory:
    """The state of `n_columns` covariates, the first `n_known` of them known in advance.

    timescales: (modes,), steps, of the modes that every column goes through.  anchors: those of the series,
    None for its centre.
    """

    n_columns: int
    n_known: int
    timescales: Array
    anchors: tuple[SeasonSlots | None, ...]
    horizon: int

    @property
    def n_features(self) -> int:
        """Numbers read of the past of all columns."""
        return self.n_columns * (1 + self.timescales.size)

    @property
    def feature_tau(self) -> Array:
        """(features,), steps: the timescale of each; 1 for what was seen last."""
        return np.repeat(np.append(1.0, self.timescales), self.n_columns)

    def leaning_on(self, anchor: int) -> CovariateMemory:
        """The same memory with one of its anchors alone."""
        return replace(self, anchors=(self.anchors[anchor],))

    def empty(self, n_series: int) -> State:
        """State before any row; nothing where there is no column."""
        if not self.n_columns:
            return {}
        state = {
            "covariates": np.zeros((n_series, self.n_columns)),
            "covariate_modes": np.zeros((n_series, self.n_columns, self.timescales.size)),
        }
        for name, anchor in self._slots():
            slots = anchor.empty(n_series * self.n_known)
            state[name] = slots.reshape(n_series, self.n_known, *slots.shape[1:])
        return state

    def advance(self, state: State, part: Panel, steps: Array) -> State:
        """State after the rows of `part`; steps: (rows,), the first from the row before."""
        if not self.n_columns:
            return {}
        last, modes = self._run(state, part, steps)
        known = self._known(part)
        slots = {
            name: anchor.advance(_flat(state[name]), known, part.times).reshape(state[name].shape)
            for name, anchor in self._slots()
        }
        return slots | {"covariates": last[:, -1].copy(), "covariate_modes": modes[:, -1].copy()}

    def walk(
        self, state: State, part: Panel, steps: Array, leads: NDArray[np.int64]
    ) -> tuple[State, Array, Array]:
        """State after the rows, features (series, rows, features) and `said` (anchors, series, rows, leads,
        known): what each anchor of the series saw of the columns known in advance.

        leads: of those from 1 on, in steps.
        """
        n_series, n_rows = part.values.shape
        said = np.zeros((len(self.anchors), n_series, n_rows, leads.size, self.n_known))
        if not self.n_columns:
            return {}, np.empty((n_series, n_rows, 0)), said
        last, modes = self._run(state, part, steps)
        after = {"covariates": last[:, -1].copy(), "covariate_modes": modes[:, -1].copy()}
        known = self._known(part)
        for i, (name, anchor) in self._numbered():
            slots, seen = anchor.run(_flat(state[name]), known, part.times, leads)
            after[name] = slots.reshape(state[name].shape)
            seen = seen.reshape(n_series, self.n_known, n_rows, leads.size)
            said[i] = np.nan_to_num(np.moveaxis(seen, 1, -1))
        return after, _features(last, modes), said

    def read(self, state: State) -> tuple[Array, Array]:
        """Features (series, features), and the columns known in advance at every lead less what each anchor
        saw of them: (anchors, series, horizon, known)."""
        n_series = len(state["time"])
        if not self.n_columns:
            return np.empty((n_series, 0)), np.empty((len(self.anchors), n_series, self.horizon, 0))
        said = np.zeros((len(self.anchors), n_series, self.horizon, self.n_known))
        for i, (name, anchor) in self._numbered():
            seen = anchor.read(_flat(state[name]), state["time"][0], self.horizon)
            seen = seen.reshape(n_series, self.n_known, self.horizon)
            said[i] = np.nan_to_num(np.moveaxis(seen, 1, -1))
        return _features(state["covariates"], state["covariate_modes"]), state["ahead"] - said

    def _slots(self) -> list[tuple[str, SeasonSlots]]:
        return [slots for _, slots in self._numbered()]

    def _numbered(self) -> list[tuple[int, tuple[str, SeasonSlots]]]:
        if not self.n_known:
            return []
        return [(i, (f"covariate_slots_{i}", anchor)) for i, anchor in enumerate(self.anchors) if anchor]

    def _known(self, part: Panel) -> Array:
        """Columns known in advance, (series * known, rows), NaN where the series has no value."""
        known = np.where(np.isnan(part.values)[..., None], np.nan, part.covariates[..., : self.n_known])
        return np.moveaxis(known, -1, 1).reshape(-1, part.times.size)

    def _run(self, state: State, part: Panel, steps: Array) -> tuple[Array, Array]:
        """What was seen last (series, rows, columns), and modes (series, rows, columns, modes)."""
        seen = ~np.isnan(part.values)
        rows = np.concatenate([state["covariates"][:, None], part.covariates], axis=1)
        at = np.maximum.accumulate(np.where(seen, np.arange(1, seen.shape[1] + 1), 0), axis=1)
        last = np.take_along_axis(rows, at[..., None], 1)
        drive = np.where(seen[..., None], part.covariates, 0.0)[..., None] * -np.expm1(-1 / self.timescales)
        decay = np.exp(-steps[:, None] / self.timescales)
        return last, decayed_sums(state["covariate_modes"], decay[:, None], drive)


def _features(last: Array, modes: Array) -> Array:
    """(..., features): what was seen last, then mode by mode."""
    by_mode = np.moveaxis(modes, -1, -2)
    return np.concatenate([last, by_mode.reshape(*last.shape[:-1], -1)], axis=-1)


def _flat(slots: Array) -> Array:
    return slots.reshape(-1, *slots.shape[2:])
