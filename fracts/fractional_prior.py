"""What a bank of modes would forecast of a series, were it fractional noise of a given order.

One idea: a power law needs one number where a ridge on modes needs many, so a history too short for these can
still tell that; and where the series is no such noise, its coefficients are learned around these.
"""

from functools import lru_cache

import numpy as np

from fracts.scaling import Array

ORDERS = 0.2, 0.4, 0.6, 0.8  # of integration; at 0 the centre is the forecast, at 1 the last value
_SLOWEST, _FREQUENCIES = 1e-6, 400  # radians a step, on a geometric grid up to half a turn
_RANK = 1e-5  # of the largest singular value: what tells the modes apart less is left alone


def fractional_forecasts(timescales: Array, horizon: int) -> Array:
    """Weights of modes of unit gain in the best linear forecast of fractional noise around its mean.

    Least squares over the spectrum `|1 - exp(-iw)|^(-2 order)` (Granger and Joyeux, 1980, Journal of Time
    Series Analysis 1(1)) from a frequency on below which no history shows whether it is stationary.

    Parameters
    ----------
    timescales : (timescales,), in steps.
    horizon : leads, in steps.

    Returns
    -------
    (orders, timescales, horizon), for each of `ORDERS`.

    Examples
    --------
    >>> weights = fractional_forecasts(np.array([0.5, 4.0, 32.0]), 8)
    >>> weights[0, :, 0].sum() < weights[-1, :, 0].sum() < 1.01
    np.True_
    """
    return _forecasts(tuple(timescales.tolist()), horizon)


@lru_cache(maxsize=32)
def _forecasts(timescales: tuple[float, ...], horizon: int) -> Array:
    tau, w = np.array(timescales), np.geomspace(_SLOWEST, np.pi, _FREQUENCIES)[:, None]
    back = np.exp(-1j * w)
    modes = -np.expm1(-1 / tau) / (1 - np.exp(-1 / tau) * back)
    turns = w * np.arange(1, horizon + 1)
    ahead = np.exp(1j * turns) * np.sinc(turns * np.log(w[1] / w[0]) / (2 * np.pi))  # mean around each
    found = []
    for order in ORDERS:
        size = np.abs(1 - back) ** -order * np.sqrt(w)  # the root: frequencies lie the closer the lower
        of_modes, wanted = (np.concatenate([(size * z).real, (size * z).imag]) for z in (modes, ahead))
        found.append(np.linalg.lstsq(of_modes, wanted, rcond=_RANK)[0])
    return np.array(found)
