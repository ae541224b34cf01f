"""Quantiles of the errors to expect: those held out at fit, or thresholds that go on from there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fracts.checks import check_memory
from fracts.conformal import Calibrator, Due, Outlook, Said
from fracts.forecasts import Forecast
from fracts.lateness import errors_after
from fracts.linear import LinearPath, Reading
from fracts.passes import Ahead, passed
from fracts.scale_choice import logarithm_is_better
from fracts.scaling import Array
from fracts.seasons import chosen_season_lengths
from fracts.series import Panel, State
from fracts.timeline import Clock

_NO_ROWS = np.empty(0, dtype=np.int64)
_STILL = np.zeros((1, 1)), np.ones((1, 1)), np.ones((1, 1))


class Calibration:
    """Mixin of the models with a linear path, before `Forecaster`: it has a say in the state after a fit."""

    horizon: int
    n_modes: int
    timescales: tuple[float, float]
    centre_memory: float
    season_lengths: str | int | tuple[int, ...]
    transform: Any
    calibration: str
    _clock: Clock
    _read: Any
    _run: Any
    _path: LinearPath
    _calibrator: Calibrator | None = None

    def _chosen_transform(self, panel: Panel) -> Any:
        if not isinstance(self.transform, str) or self.transform != "auto":
            return self.transform
        memory = self.n_modes, self.timescales, self.centre_memory
        check_memory(*memory)
        seasons = chosen_season_lengths(self.season_lengths, panel, self._clock)
        pooled = getattr(self, "pooled", "auto")
        better = logarithm_is_better(panel, pooled, self.horizon, *memory, seasons)
        return "log" if better else None

    def _calibrate(self) -> None:
        """Begin with the held-out errors of the linear path."""
        if self.calibration == "adaptive":
            self._calibrator = Calibrator.of(self._path.errors)

    def _errors(self, state: State, late: NDArray[np.int64] | None) -> Array:
        """Quantiles of the errors to expect, in units of scale: (series, horizon, quantiles).

        late: (series,), steps since the last value, as a `Reading` has them.
        """
        errors = self._path.error_quantiles if self._calibrator is None else self._calibrator.errors
        if late is None:
            return errors(state)
        return errors_after(errors(state), late, self._path.memory.bank.rhythm(self.horizon))

    def _settled(self, state: State, panel: Panel) -> State:
        # The weights have seen this history, and say too little of errors: held-out forecasts do.
        if self._calibrator is None:
            return state
        held_out = self._path.held_out_readings(panel)
        tried = Panel(np.where(np.isnan(held_out.leads[..., 0]), np.nan, panel.values), panel.times)
        said = self._said(self._calibrator, state, held_out, np.empty((*panel.values.shape, 0)))
        learned, _ = self._calibrator.along(
            self._calibrator.empty(state["group"]),
            tried,
            said,
            lambda due, _: Outlook(due.median, due.scale, due.scale),
            _NO_ROWS,
        )
        return state | {name: learned[name] for name in self._calibrator.start(state["group"])}

    def _after_errors(
        self,
        calibrator: Calibrator,
        state: State,
        panel: Panel,
        reading: Reading,
        features: NDArray[np.floating],
        rows: NDArray[np.int64] = _NO_ROWS,
    ) -> tuple[State, State]:
        """What the calibrator keeps after all rows of `panel`, and what `_errors` needs after each of `rows`,
        ascending, as though each were a series.

        reading: of the linear path at every row, with nothing known ahead.  features: (series, rows, width),
        what a network reads.
        """
        group, n_known = state["group"], self._path.memory.covariates.n_known

        def complete(due: Due, covariates: Array) -> Outlook:
            known = covariates[:, :n_known]
            shift, below, above = self._moves(calibrator, due, known)
            if n_known:
                shift = shift + self._path.known_part(known, group, calibrator.leads)
            return Outlook(due.median + due.scale * shift, due.scale * below, due.scale * above)

        # Where there is no value the linear path speaks alone.
        spoken = np.where(np.isnan(panel.values)[..., None], np.nan, features)
        said = self._said(calibrator, state, reading, spoken)
        return calibrator.along(state, panel, said, complete, rows)

    @staticmethod
    def _said(calibrator: Calibrator, state: State, reading: Reading, features: NDArray[np.floating]) -> Said:
        leads = reading.leads + calibrator.centre[state["group"]][:, None]
        return Said(reading.centre[..., None] + reading.scale[..., None] * leads, reading.scale, features)

    def _moves(self, calibrator: Calibrator, due: Due, known: Array) -> tuple[Array, Array, Array]:
        """Of forecasts that are due, shifts of the median in units of scale, and factors of the errors below
        and above it: (series, leads) each, or 1 for all. `known` (series, numbers) was known in advance."""
        return _STILL

    def _roll(
        self,
        state: State,
        panel: Panel,
        origins: NDArray[np.int64],
        ahead: Ahead,
        horizon: int,
        quantiles: Array,
    ) -> Iterator[Forecast]:
        if horizon > self.horizon:  # paths move a state from each origin
            return super()._roll(state, panel, origins, ahead, horizon, quantiles)  # type: ignore[misc,no-any-return]
        return passed(self._read, self._run, state, panel, origins, ahead, horizon, quantiles)
