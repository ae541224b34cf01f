"""The linear mode bank: what a series looks like to exponentials of many timescales and frequencies.

Mode (m, f) obeys `z <- exp((-1/tau_m + i w_f) dt) z + (1 - exp(-1/tau_m)) y`: the gain is that of one
base step whatever the gap was, so a row without a value only moves the clock. A second channel
carries the constant 1 through the same modes; a centre and a scale chosen when the bank is read
then act as though they had been taken off every value. At a frequency a mode is the causal filter
`exp(-t/tau) exp(iwt)`, the response relative to now, so a linear forecast continues a season by itself
(Gegenbauer processes: Gray, Zhang and Woodward, 1989, Journal of Time Series Analysis 10(3)).
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fracts.records import record
from fracts.scaling import Array, decayed_sums

Complex = NDArray[np.complex128]


@record
@dataclass(frozen=True)
class ModeBank:
    """Modes of finite `timescales` (steps), plain and at angular `frequencies` (radians a step, above 0).

    Attributes
    ----------
    tau, frequency : (modes,), of each mode. One that fades within a radian of its season is left out.
    feature_tau, feature_frequency : (features,), of each real number read from the modes.

    Examples
    --------
    >>> bank = ModeBank(np.array([1.0, 10.0]), np.array([2 * np.pi / 12]))
    >>> bank.tau  # at a season of 12 the faster mode tells nothing new
    array([ 1., 10., 10.])
    >>> states = bank.run(bank.empty(1), np.ones((1, 500)), np.ones(500))
    >>> bank.features(states[:, -1], np.zeros(1), np.ones(1)).round(2)
    array([[1.  , 1.  , 0.08, 0.17]])
    """

    timescales: Array
    frequencies: Array
    tau: Array = field(init=False, repr=False)
    frequency: Array = field(init=False, repr=False)
    turning: NDArray[np.bool_] = field(init=False, repr=False)
    feature_tau: Array = field(init=False, repr=False)
    feature_frequency: Array = field(init=False, repr=False)
    place: NDArray[np.int64] = field(init=False, repr=False)  # (modes,), of its timescale in `timescales`
    gain: Array = field(init=False, repr=False)  # (modes,), of one base step
    drift: Complex = field(init=False, repr=False)  # (modes,), log decay a step
    decay_of_one: Complex = field(init=False, repr=False)  # (modes,), over one step

    def __post_init__(self) -> None:
        tau, w = np.meshgrid(self.timescales, np.append(0.0, self.frequencies))
        # A mode that fades within a radian of its season tells what the plain modes tell already.
        keep = (w == 0) | (tau * w >= 1.0)
        tau, w = tau[keep], w[keep]
        # At half a turn a step the imaginary part is always 0.
        turning = (w > 0) & (w < np.pi - 1e-9)
        object.__setattr__(self, "tau", tau)
        object.__setattr__(self, "frequency", w)
        object.__setattr__(self, "turning", turning)
        object.__setattr__(self, "feature_tau", np.append(tau, tau[turning]))
        object.__setattr__(self, "feature_frequency", np.append(w, w[turning]))
        object.__setattr__(self, "place", np.searchsorted(self.timescales, tau))
        object.__setattr__(self, "gain", -np.expm1(-1.0 / tau))
        object.__setattr__(self, "drift", -1.0 / tau + 1j * w)
        object.__setattr__(self, "decay_of_one", np.exp(self.drift))

    def rhythm(self, most: int) -> int:
        """Of 1 to `most` whole steps the fewest after which most of the frequencies come back."""
        steps = np.arange(1, most + 1)
        backs = np.cos(steps[:, None] * self.frequencies) > 1 - 1e-9
        return int(steps[backs.sum(1).argmax()])

    def empty(self, n_series: int) -> Complex:
        """State before any value: (series, 2, modes); channel 0 is of the values, 1 of the constant."""
        return np.zeros((n_series, 2, self.tau.size), dtype=complex)

    def run(self, state: Complex, values: Array, steps: Array) -> Complex:
        """States after every row: (series, time, 2, modes).

        values: (series, time), NaN where missing.  steps: (time,), the first from the row before.
        """
        seen = ~np.isnan(values)
        inputs = np.stack([np.where(seen, values, 0.0), seen], axis=-1)
        drive = inputs[..., None] * self.gain.astype(complex)
        decay = np.exp(steps[:, None] * self.drift)
        return decayed_sums(state, decay[:, None], drive)

    def decay(self, step: float) -> Complex:
        """What the modes (modes,) keep of themselves over a `step`."""
        return self.decay_of_one if step == 1.0 else np.exp(step * self.drift)

    def step(self, state: Complex, inputs: Array, step: float) -> Complex:
        """`run` over a single row: (series, 2, modes).

        inputs: (series, 2), the value, 0 where missing, and 1 where seen.  step: from the row before.
        """
        after: Complex = state * self.decay(step)
        real = after.real
        real += inputs[..., None] * self.gain
        return after

    def features(self, state: Complex, centre: Array, scale: Array) -> Array:
        """Centred and scaled modes as `parts`: (..., features).

        state: (..., 2, modes).  centre, scale: (...).
        """
        return self.parts((state[..., 0, :] - centre[..., None] * state[..., 1, :]) / scale[..., None])

    def parts(self, modes: Complex) -> Array:
        """Real parts of modes (..., modes), then imaginary parts of what turns: (..., features)."""
        return np.concatenate([modes.real, modes.imag[..., self.turning]], axis=-1)
