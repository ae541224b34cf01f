"""The linear mode bank: what a series looks like to exponentials of many timescales and frequencies.

Mode (m, f) obeys `z <- exp((-1/tau_m + i w_f) dt) z + (1 - exp(-1/tau_m)) y`: the gain is that of one
base step whatever the gap was, so a row without a value only moves the clock. A second channel
carries the constant 1 through the same modes; a centre and a scale chosen when the bank is read
then act as though they had been taken off every value.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fracts.scaling import Array, decayed_sums

Complex = NDArray[np.complex128]

_BLOCK = 256  # rows whose states are held at once


@dataclass(frozen=True)
class ModeBank:
    """Modes of finite `timescales` (steps), plain and at angular `frequencies` (radians a step, above 0)."""

    timescales: Array
    frequencies: Array
    poles: Complex = field(init=False, repr=False)
    tau: Array = field(init=False, repr=False)
    frequency: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        tau, w = np.meshgrid(self.timescales, np.append(0.0, self.frequencies))
        # A mode that fades within a radian of its season tells what the plain modes tell already.
        keep = (w == 0) | (tau * w >= 1.0)
        object.__setattr__(self, "tau", tau[keep])
        object.__setattr__(self, "frequency", w[keep])
        object.__setattr__(self, "poles", -1.0 / self.tau + 1j * self.frequency)

    @property
    def turning(self) -> NDArray[np.bool_]:
        """Modes with an imaginary part of their own (at half a turn a step it is always 0)."""
        return (self.frequency > 0) & (self.frequency < np.pi - 1e-9)

    @property
    def feature_tau(self) -> Array:
        """Timescale of each feature."""
        return np.append(self.tau, self.tau[self.turning])

    @property
    def feature_frequency(self) -> Array:
        """Angular frequency of each feature."""
        return np.append(self.frequency, self.frequency[self.turning])

    def empty(self, n_series: int) -> Complex:
        """State before any value: (series, 2, modes); channel 0 is of the values, 1 of the constant."""
        return np.zeros((n_series, 2, self.poles.size), dtype=complex)

    def run(self, state: Complex, values: Array, steps: Array) -> Iterator[tuple[slice, Complex]]:
        """States after every row, a block of rows at a time: (rows, (series, rows, 2, modes)).

        values: (series, time), NaN where missing.  steps: (time,), the first from the row before.
        """
        gain = -np.expm1(-1.0 / self.tau)
        for start in range(0, values.shape[1], _BLOCK):
            rows = slice(start, min(start + _BLOCK, values.shape[1]))
            seen = ~np.isnan(values[:, rows])
            drive = np.stack([np.where(seen, values[:, rows], 0.0), seen.astype(float)], axis=-1)
            decay = np.exp(steps[rows, None] * self.poles)
            states = decayed_sums(state, decay[:, None], (drive[..., None] * gain).astype(complex))
            state = states[:, -1]
            yield rows, states

    def features(self, state: Complex, centre: Array, scale: Array) -> Array:
        """Centred and scaled modes: (..., features); real parts, then imaginary parts of what turns.

        state: (..., 2, modes).  centre, scale: (...).
        """
        z = (state[..., 0, :] - centre[..., None] * state[..., 1, :]) / scale[..., None]
        return np.concatenate([z.real, z.imag[..., self.turning]], axis=-1)
