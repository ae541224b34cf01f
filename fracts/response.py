"""What a past value weighs in a forecast of the linear path: its impulse response.

One idea: with the scale held fixed the forecast is linear in the values, so its derivative is a sum of what
each part of the memory makes of an impulse: the modes, the anchors, and the centre, which is a mean of the
same values and stands in the forecast, in every anchor and in every feature.
"""

import numpy as np
from numpy.typing import NDArray

from fracts.anchor import SeasonSlots
from fracts.linear import LinearPath
from fracts.scaling import Array
from fracts.series import State
from fracts.smoothing import Smoothers

Ints = NDArray[np.int64]

_LONGEST = 1024  # values of a history whose smoothing is followed


def linear_response(path: LinearPath, state: State, lags: Ints, lead: int) -> Array:
    """Derivative (lags,) of the forecast of `lead` by the value at each lag, 1 for the last row.

    As though every row held a value; the mean over the series of `state`, which share their coefficients.
    """
    bank, scaler = path.memory.bank, path.memory.scaler
    blend = path.blend[state["group"][0] if len(path.blend) > 1 else 0, lead - 1]
    coefficients = path.mode_coefficients[state["group"][0], :, lead - 1]
    age = lags - 1.0
    gain = path.memory.density.gain(state["share"]).mean(axis=0)
    impulse = gain * -np.expm1(-1 / bank.tau) * np.exp(age[:, None] * (-1 / bank.tau + 1j * bank.frequency))
    response: Array = bank.parts(impulse) @ coefficients
    # The centre gives back what the features, and the anchor, take off the values.
    centred = 1.0 - bank.parts(path.memory.evened(state)[:, 1]) @ coefficients  # (series,)
    for i, (anchor, weight) in enumerate(zip(path.memory.anchors, [1 - blend.sum(), *blend], strict=True)):
        if anchor is not None:
            slots, now = state[f"slots_{i}"], state["time"][0]
            if isinstance(anchor, Smoothers):
                response += weight * _smoothed_response(anchor, slots, now, lags, lead)
            else:
                response += weight * _anchor_response(anchor, slots, now, lags, lead)
            centred -= weight
    response += np.mean(centred / np.maximum(state["sums"][:, 0], 1.0)) * np.exp(-age / scaler.timescale)
    return response


def values_seen(path: LinearPath, state: State) -> float:
    """Number of values behind `state`, of the series that has most: told by the weight of its centre."""
    timescale = path.memory.scaler.timescale
    full = -1 / np.expm1(-1 / timescale)  # the weight of an endless history
    left = np.maximum(1 - state["sums"][:, 0].max() / full, np.finfo(float).eps)
    return float(np.ceil(-timescale * np.log(left) - 1e-6))


def _anchor_response(anchor: SeasonSlots, slots: Array, now: float, lags: Ints, lead: int) -> Array:
    """Weight (lags,) of the value at each lag in the anchor of `lead`."""
    length = anchor.season_length
    weight = slots[:, (int(np.floor(now)) + lead) % length, 1]  # (series,); 0: phase not seen yet
    rounds, apart = np.divmod(lags - 1 + lead, length)
    before = rounds - -(-lead // length)  # seasons before the last one seen
    kept = np.exp(-1.0 / anchor.memory) if anchor.memory else 0.0
    seen = np.mean(np.divide(1.0, weight, out=np.zeros_like(weight), where=weight > 0))
    said: Array = np.where(apart == 0, seen * kept ** np.maximum(before, 0), 0.0)
    said[lags == 1] += np.mean(weight == 0)  # which answers with the last value
    return said + _moved_response(slots[weight > 0], anchor, now, lags) * np.mean(weight > 0)


def _smoothed_response(smoothing: Smoothers, slots: Array, now: float, lags: Ints, lead: int) -> Array:
    """Weight (lags,) of the value at each lag in what exponential smoothing says of `lead`.

    Each member is linear in the values; how loud it is heard is held fixed, the mean over the series, and the
    history is as long as the usual one.
    """
    rows = int(min(np.median(smoothing.seen(slots)), _LONGEST))
    response, known = np.zeros(lags.size), lags <= rows
    if not known.any():
        return response
    impulses = np.zeros((int(known.sum()), rows))
    impulses[np.arange(len(impulses)), rows - lags[known]] = 1.0
    times = np.floor(now) + np.arange(1.0 - rows, 1.0)
    after = smoothing.advance(smoothing.empty(len(impulses)), impulses, times)
    weights = smoothing.weights(slots).mean(0, keepdims=True)
    response[known] = smoothing.read(after, times.item(-1), lead, weights)[:, -1]
    return response


def _moved_response(slots: Array, anchor: SeasonSlots, now: float, lags: Ints) -> Array:
    """Weight (lags,) of the value at each lag in how far the last one lay from what its slot had said."""
    weight = slots[:, anchor.phase(now), 1] - 1  # what it kept of those before
    if not anchor.moved or not (weight > 0).any():
        return np.zeros(lags.size)
    rounds, apart = np.divmod(lags - 1, anchor.season_length)
    before = np.mean(np.divide(anchor.kept, weight, out=np.zeros_like(weight), where=weight > 0))
    off = np.where((apart == 0) & (rounds > 0), -before * anchor.kept ** np.maximum(rounds - 1, 0), 0.0)
    off[lags == 1] += np.mean(weight > 0)
    return off
