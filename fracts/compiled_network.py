"""The step of `fracts.online`, compiled by numba: the same weights, the same numbers, fewer microseconds.

Each function has its counterpart there; a loop over the series takes each through the whole layer, so that
nothing waits for a call. Compiled code is kept beside this file, or where `NUMBA_CACHE_DIR` says.
"""

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from fracts.mode_weights import BASIS, KNOTS, LEAST

Array = NDArray[Any]

_LOG_2 = math.log(2)


def network_row(
    plan: Any, u: Array, beside: Array, time: float, gap: float, before: list[Array], holds: list[Array]
) -> tuple[Array, Array, Array]:
    """`online.network_row`, where the arguments are told."""
    own = np.array(before), np.array(holds)
    found: tuple[Array, Array, Array] = _network_row(
        plan.embedding, plan.stack, plan.norm, u, beside, time, gap, *own
    )
    return found


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _times(x: Any, weights: Any, out: Any) -> None:
    """out += x @ weights, in the order of x."""
    for k in range(x.size):
        for j in range(out.size):
            out[j] += x[k] * weights[k, j]


@njit(cache=True, nogil=True, error_model="numpy")
def _sigmoid(x: Any) -> Any:
    return 1 / (1 + math.exp(-x))


@njit(cache=True, nogil=True, error_model="numpy")
def _softplus(x: Any) -> Any:
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _square(x: Any) -> Any:
    total = x[0] * x[0]
    for j in range(1, x.size):
        total += x[j] * x[j]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _tokens(embedding: Any, u: float, beside: Any, value: Any, gate: Any) -> None:
    """`online._tokens` of one series, into `value` and `gate`; beside: (2 * width,), or nothing."""
    value[:], gate[:] = embedding.nothing[0], embedding.nothing[1]
    if not math.isnan(u):
        even = np.array([math.log1p(abs(u)), 1 / (1 + u * u), math.exp(-abs(u))]).astype(value.dtype)
        gate[:] = embedding.even_bias
        _times(even, embedding.even, gate)
        for j in range(value.size):
            value[j] = u * embedding.embed[j]
        if beside.size:
            value += beside[: value.size]
            gate += beside[value.size :]
    for j in range(gate.size):
        gate[j] *= _sigmoid(gate[j])


@njit(cache=True, nogil=True, error_model="numpy")
def _wave(turns: Any, time: float, wave: Any) -> None:
    """`online._wave`, into `wave`."""
    for season in range(len(wave)):
        turn = time * turns[season]
        angle = 2 * math.pi * (turn - math.floor(turn))
        wave[season, 0, 0] = math.cos(angle)
        wave[season, 1, 0] = wave[season, 0, 1] = math.sin(angle)
        wave[season, 1, 1] = -wave[season, 0, 0]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _mode_weights(soft: Any, content: Any, scores: Any, weights: Any) -> None:
    """`online._weights` of one head, into `weights`; soft: softplus of minus the order."""
    log_exponent = max(_LOG_2 - soft, LEAST)
    power, base = 1.0, math.expm1(log_exponent)
    basis = np.empty(BASIS + KNOTS, weights.dtype)
    for k in range(BASIS - 2):
        basis[k] = power
        power *= base
    basis[BASIS - 2], basis[BASIS - 1] = log_exponent, log_exponent * log_exponent
    basis[BASIS:] = content
    weights[:] = 0
    _times(basis, scores, weights)
    most, total = weights.max(), weights[0] - weights[0]
    for m in range(weights.size):
        weights[m] = math.exp(weights[m] - most)
        total += weights[m]
    for m in range(weights.size):
        weights[m] /= total


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _head(c: Any, b: Any, v: Any, log_decay: Any, modes: Any, after: Any, y: Any) -> None:
    """One head: `online._moved`, and what is read, into `after` and `y`."""
    y[:] = 0
    for m in range(c.size):
        if log_decay[m] > -_LOG_2:
            rest = math.expm1(log_decay[m])
            for p in range(v.size):
                after[m, p] = modes[m, p] + (rest * modes[m, p] + b[m] * v[p])
        else:
            rest = math.exp(log_decay[m])
            for p in range(v.size):
                after[m, p] = rest * modes[m, p] + b[m] * v[p]
        for p in range(v.size):
            y[p] += c[m] * after[m, p]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _mix(
    layer: Any, i: int, x: Any, value: Any, gate: Any, seen: bool, gap: float, wave: Any, modes: Any,
    hold: Any, after: Any, after_hold: Any,
) -> None:  # fmt: skip
    """`online._mix` of one series in layer `i`: its outputs are added to `x`, and what is after filled in."""
    heads, n_modes, both = modes.shape
    half, plain, dtype = both // 2, heads - len(wave), x.dtype
    raw, flat = layer.controls_bias[i].copy(), np.zeros(layer.values.shape[2], dtype)
    _times(gate, layer.controls[i], raw)
    _times(value, layer.values[i], flat)
    gates, contents = raw[raw.size - heads * both :], raw[4 * heads :]
    c, b, log_decay = np.empty(n_modes, dtype), np.empty(n_modes, dtype), np.empty(n_modes, dtype)
    v, y = np.empty(both, dtype), np.empty((heads, both), dtype)
    for head in range(heads):
        step, rate, place = _softplus(raw[head]), math.exp(raw[3 * heads + head]), head * KNOTS
        read, write = _softplus(raw[heads + head]), _softplus(raw[2 * heads + head])
        _mode_weights(read, contents[place : place + KNOTS], layer.scores[i, 0], c)
        place += heads * KNOTS
        _mode_weights(write, contents[place : place + KNOTS], layer.scores[i, 1], b)
        for m in range(n_modes):
            pace = rate * layer.paces[i, m]
            b[m] *= math.expm1(step * pace) / pace * seen
            log_decay[m] = gap * hold[head] * layer.rates[i, m]
        turn = wave[max(head - plain, 0) :]
        if head < plain:
            v[:] = flat[head * both : (head + 1) * both]
        else:
            begin = plain * both + (head - plain) * half
            for p in range(half):
                v[p], v[half + p] = flat[begin + p] * turn[0, 0, 0], flat[begin + p] * turn[0, 1, 0]
        _head(c, b, v, log_decay, modes[head], after[head], y[head])
        after_hold[head] = step * rate if seen else hold[head]
        if head >= plain:
            for p in range(half):
                along, across = y[head, p], y[head, half + p]
                y[head, p] = turn[0, 0, 0] * along + turn[0, 0, 1] * across
                y[head, half + p] = turn[0, 1, 0] * along + turn[0, 1, 1] * across
        shrink = 1 / math.sqrt(_square(y[head]) + both)
        for p in range(both):
            y[head, p] *= shrink * _sigmoid(gates[head * both + p])
    _times(y.ravel(), layer.out[i], x)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _network_row(
    embedding: Any,
    layer: Any,
    norm: Any,
    u: Any,
    beside: Any,
    time: float,
    gap: float,
    before: Any,
    holds: Any,
) -> Any:
    dtype, width = norm.dtype, norm.size
    modes, hold = np.empty(before.shape, dtype), np.empty(holds.shape, dtype)
    features = np.empty((len(u), width), dtype)
    x, value, gate = np.empty(width, dtype), np.empty(width, dtype), np.empty(width, dtype)
    h, wave = np.empty(layer.widen.shape[2], dtype), np.empty((embedding.turns.size, 2, 2), dtype)
    _wave(embedding.turns, time, wave)
    for at in range(len(u)):
        seen = not math.isnan(u[at])
        _tokens(embedding, u[at], beside[at] if len(beside) else embedding.embed[:0], value, gate)
        x[:] = value
        for i in range(len(before)):
            own = before[i, at], holds[i, at], modes[i, at], hold[i, at]
            _mix(layer, i, x, value, gate, seen, gap, wave, *own)
            h[:] = 0
            _times(x, layer.widen[i], h)
            shrink = 1 / math.sqrt(_square(x) / width + layer.block_eps[i])
            for j in range(h.size):
                h[j] = h[j] * shrink + layer.widen_bias[i, j]
                h[j] *= _sigmoid(h[j])
            x += layer.narrow_bias[i]
            _times(h, layer.narrow[i], x)
            shrink = 1 / math.sqrt(_square(x) / width + layer.eps[i])
            for j in range(width):
                value[j] = gate[j] = x[j] * shrink
        for j in range(width):
            features[at, j] = value[j] * norm[j]
    return modes, hold, features
