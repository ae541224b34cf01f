"""The step of `fracts.online`, compiled by numba: the same weights, the same numbers, fewer microseconds.

Each function has its counterpart there; a loop over the series takes each through the whole network, so that
nothing waits for a call. Compiled code is kept beside this file, or where `NUMBA_CACHE_DIR` says.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from fracts.fast import in_parts
from fracts.mode_weights import BASIS, KNOTS, LEAST

Array = NDArray[Any]
Memory = tuple[Array, Array, Array]

_LOG_2 = math.log(2)
_PER_LOG_2 = 1 / _LOG_2
_LOG_2_HIGH = float.fromhex("0x1.62e42feep-1")  # few digits: a whole number times it is exact
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_WHOLE = 1.5 * 2.0**52  # what is added to it is rounded to a whole number, which its last bits are
_FARTHEST = 708.0  # of what float64 has an exponential
_TERMS = tuple(1 / math.factorial(n) for n in range(13, 0, -1))


def network_row(
    plan: Any, u: Array, beside: Array, time: float, gap: float, before: list[Memory]
) -> tuple[list[Memory], Array]:
    """`online.network_row`, where the arguments are told."""
    known = [np.array(arrays) for arrays in zip(*before, strict=True)]
    found = [np.empty_like(array) for array in known]
    features = np.empty((len(u), plan.norm.size), plan.norm.dtype)
    weights, turns = plan.packed, plan.embedding.turns

    def fill(start: int, stop: int) -> None:
        _network_row(weights, turns, u, beside, start, stop, time, gap, *known, *found, features)

    in_parts(fill, len(u))
    return list(zip(*found, strict=True)), features


# Of what is called by compiled code alone: nothing is needed to call it from Python.
_INNER: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class Layer(NamedTuple):
    """The weights of a layer, parts of one array, as `online.Layer` has them in this order."""

    controls: Any
    controls_bias: Any
    values: Any
    rates: Any
    paces: Any
    scores: Any
    out: Any
    widen: Any
    widen_bias: Any
    narrow: Any
    narrow_bias: Any
    block_eps: Any
    eps: Any


@njit(**_INNER)
def _matrix(packed: Any, start: int, rows: int, columns: int) -> Any:
    return packed[start : start + rows * columns].reshape(rows, columns)


@njit(**_INNER)
def _layer(packed: Any, start: int, width: int, heads: int, both: int, n_modes: int) -> tuple[Layer, int]:
    """The layer that begins at `start` of `packed`, and where it ends."""
    read, table = heads * both, (BASIS + KNOTS) * n_modes
    n_controls = heads * (4 + 2 * KNOTS) + read
    bias = start + width * n_controls
    values = bias + n_controls
    rates = values + width * read
    scores = rates + 2 * n_modes
    out = scores + 2 * table
    widen = out + read * width
    widen_bias = widen + 2 * width * width
    narrow = widen_bias + 2 * width
    narrow_bias = narrow + 2 * width * width
    end = narrow_bias + width + 2
    layer = Layer(
        _matrix(packed, start, width, n_controls),
        packed[bias:values],
        _matrix(packed, values, width, read),
        packed[rates : rates + n_modes],
        packed[rates + n_modes : scores],
        packed[scores:out].reshape(2, BASIS + KNOTS, n_modes),
        _matrix(packed, out, read, width),
        _matrix(packed, widen, width, 2 * width),
        packed[widen_bias:narrow],
        _matrix(packed, narrow, 2 * width, width),
        packed[narrow_bias : narrow_bias + width],
        packed[end - 2],
        packed[end - 1],
    )
    return layer, end


@njit(**_INNER, fastmath={"contract"})
def _expm1(x: float) -> float:
    """exp(x) - 1 with the digits of a small x, in arithmetic alone, so that loops take several at once."""
    x = min(max(x, -_FARTHEST), _FARTHEST)
    shifted = x * _PER_LOG_2 + _WHOLE
    halvings = shifted - _WHOLE
    rest = (x - halvings * _LOG_2_HIGH) - halvings * _LOG_2_LOW
    series = 0.0
    for term in _TERMS:
        series = (series + term) * rest
    power = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    return power * series + (power - 1.0)


@njit(**_INNER, fastmath={"contract"})
def _times(x: Any, weights: Any, out: Any) -> None:
    """out += x @ weights, four numbers of x at a time."""
    last = x.size - x.size % 4
    for k in range(0, last, 4):
        x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        for j in range(out.size):
            here = x0 * weights[k, j] + x1 * weights[k + 1, j]
            out[j] += here + (x2 * weights[k + 2, j] + x3 * weights[k + 3, j])
    for k in range(last, x.size):
        for j in range(out.size):
            out[j] += x[k] * weights[k, j]


@njit(**_INNER)
def _sigmoid(x: Any) -> Any:
    return 1.0 / (2.0 + _expm1(-x))


@njit(**_INNER)
def _softplus(x: Any) -> Any:
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


@njit(**_INNER, fastmath={"contract", "reassoc"})
def _square(x: Any) -> Any:
    total = x[0] * x[0]
    for j in range(1, x.size):
        total += x[j] * x[j]
    return total


@njit(**_INNER)
def _tokens(packed: Any, u: float, beside: Any, value: Any, gate: Any) -> None:
    """`online._tokens` of one series, into `value` and `gate`; beside: (2 * width,), or nothing.

    packed: embed, even, even_bias and nothing, one after the other, and more.
    """
    width = value.size
    if math.isnan(u):
        value[:], gate[:] = packed[5 * width : 6 * width], packed[6 * width : 7 * width]
    else:
        even = np.array([math.log1p(abs(u)), 1 / (1 + u * u), math.exp(-abs(u))]).astype(value.dtype)
        gate[:] = packed[4 * width : 5 * width]
        _times(even, _matrix(packed, width, 3, width), gate)
        for j in range(width):
            value[j] = u * packed[j]
        if beside.size:
            value += beside[:width]
            gate += beside[width:]
    for j in range(gate.size):
        gate[j] *= _sigmoid(gate[j])


@njit(**_INNER)
def _wave(turns: Any, time: float, wave: Any) -> None:
    """`online._wave`, into `wave`."""
    for season in range(len(wave)):
        turn = time * turns[season]
        angle = 2 * math.pi * (turn - math.floor(turn))
        wave[season, 0, 0] = math.cos(angle)
        wave[season, 1, 0] = wave[season, 0, 1] = math.sin(angle)
        wave[season, 1, 1] = -wave[season, 0, 0]


@njit(**_INNER, fastmath={"contract"})
def _scores(soft: Any, content: Any, scores: Any, basis: Any, found: Any) -> None:
    """Log weights of `online._weights` of one head, the largest of them 0, into `found`.

    soft: softplus of minus the order.  basis: room for the functions of it.
    """
    log_exponent = max(_LOG_2 - soft, LEAST)
    power, base = 1.0, math.expm1(log_exponent)
    for k in range(BASIS - 2):
        basis[k] = power
        power *= base
    basis[BASIS - 2], basis[BASIS - 1] = log_exponent, log_exponent * log_exponent
    basis[BASIS:] = content
    found[:] = 0
    _times(basis, scores, found)
    most = found.max()
    for m in range(found.size):
        found[m] -= most


@njit(**_INNER, fastmath={"contract"})
def _head(c: Any, b: Any, v: Any, kept: Any, modes: Any, tail: Any, after: Any, end: Any, y: Any) -> None:
    """What the modes of one head are after a row, into `after` and `end`, and what is read, into `y`.

    kept: of each mode, less 1.
    """
    y[:] = 0
    last = c.size - 1
    for m in range(last):
        for p in range(v.size):
            after[m, p] = modes[m, p] + (kept[m] * modes[m, p] + b[m] * v[p])
    for p in range(v.size):
        end[p] = tail[p] + b[last] * v[p]
        after[last, p] = end[p]
    for m in range(c.size):
        for p in range(v.size):
            y[p] += c[m] * after[m, p]


@njit(**_INNER, fastmath={"contract"})
def _mode_weights(
    layer: Any, raw: Any, seen: bool, gap: float, hold: Any, hold_after: Any, found: Any
) -> None:
    """Weights of reading and of writing, log decays, and what is kept, into `found`, (4, heads, modes).

    In float64, and a row of heads and modes at a time, so that the exponentials go several at once.
    """
    heads, n_modes = hold.size, found.shape[2]
    basis = np.empty(BASIS + KNOTS)
    for head in range(heads):
        step, rate = _softplus(raw[head]), math.exp(raw[3 * heads + head])
        for way in range(2):
            place = 4 * heads + (way * heads + head) * KNOTS
            soft = _softplus(raw[(1 + way) * heads + head])
            _scores(soft, raw[place : place + KNOTS], layer.scores[way], basis, found[way, head])
        for m in range(n_modes):
            found[2, head, m] = step * rate * layer.paces[m]
            found[3, head, m] = gap * hold[head] * layer.rates[m]
        hold_after[head] = step * rate if seen else hold[head]
    weights, both = found[:2].ravel(), found[2:].ravel()
    for j in range(weights.size):
        weights[j] = _expm1(weights[j]) + 1.0
    for j in range(both.size):
        both[j] = _expm1(both[j])
    for head in range(heads):
        rate = math.exp(raw[3 * heads + head])
        found[0, head] /= found[0, head].sum()
        total = found[1, head].sum() * rate
        for m in range(n_modes):
            found[1, head, m] *= seen * found[2, head, m] / (layer.paces[m] * total)


@njit(**_INNER, fastmath={"contract"})
def _mix(
    layer: Any, x: Any, value: Any, gate: Any, seen: bool, gap: float, wave: Any, before: Any, state: Any,
    room: Any,
) -> None:  # fmt: skip
    """`online._mix` of one series: its outputs are added to `x`, and the state after it filled in."""
    (modes, hold, tail), (after, hold_after, tail_after) = before, state
    raw, v, y, weights, of_head = room
    heads, _, both = modes.shape
    half, plain = both // 2, heads - len(wave)
    raw[:], v[:] = layer.controls_bias, 0
    _times(gate, layer.controls, raw)
    _times(value, layer.values, v.ravel())
    _mode_weights(layer, raw, seen, gap, hold, hold_after, weights)
    gates = raw[raw.size - heads * both :]
    for j in range(gates.size):
        gates[j] = _sigmoid(gates[j])
    for head in range(heads):
        turn = wave[max(head - plain, 0) :]
        if head >= plain:
            for p in range(half):
                v[head, p], v[head, half + p] = v[head, p] * turn[0, 0, 0], v[head, p] * turn[0, 1, 0]
        of_head[:] = weights[:, head]
        c, b, kept = of_head[0], of_head[1], of_head[3]
        _head(c, b, v[head], kept, modes[head], tail[head], after[head], tail_after[head], y[head])
        if head >= plain:
            for p in range(half):
                along, across = y[head, p], y[head, half + p]
                y[head, p] = turn[0, 0, 0] * along + turn[0, 0, 1] * across
                y[head, half + p] = turn[0, 1, 0] * along + turn[0, 1, 1] * across
        shrink = 1 / math.sqrt(_square(y[head]) + both)
        for p in range(both):
            y[head, p] *= shrink * gates[head * both + p]
    _times(y.ravel(), layer.out, x)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _network_row(
    packed: Any, turns: Any, u: Any, beside: Any, start: int, stop: int, time: float, gap: float,
    modes: Any, hold: Any, tail: Any, modes_after: Any, hold_after: Any, tail_after: Any, features: Any,
) -> None:  # fmt: skip
    """The series from `start` to `stop`; the arrays of their state have an axis of layers first."""
    dtype, width = packed.dtype, features.shape[1]
    n_layers, _, heads, n_modes, both = modes.shape
    x, value, gate = np.empty(width, dtype), np.empty(width, dtype), np.empty(width, dtype)
    h, wave = np.empty(2 * width, dtype), np.empty((turns.size, 2, 2), dtype)
    room = (
        np.empty(heads * (4 + 2 * KNOTS + both), dtype),
        np.empty((heads, both), dtype),
        np.empty((heads, both), dtype),
        np.empty((4, heads, n_modes)),
        np.empty((4, n_modes), dtype),
    )
    norm = packed[7 * width : 8 * width]
    _wave(turns, time, wave)
    for at in range(start, stop):
        seen = not math.isnan(u[at])
        _tokens(packed, u[at], beside[at] if len(beside) else packed[:0], value, gate)
        x[:] = value
        place = 8 * width
        for i in range(n_layers):
            layer, place = _layer(packed, place, width, heads, both, n_modes)
            own = modes[i, at], hold[i, at], tail[i, at]
            after = modes_after[i, at], hold_after[i, at], tail_after[i, at]
            _mix(layer, x, value, gate, seen, gap, wave, own, after, room)
            h[:] = 0
            _times(x, layer.widen, h)
            shrink = 1 / math.sqrt(_square(x) / width + layer.block_eps)
            for j in range(h.size):
                h[j] = h[j] * shrink + layer.widen_bias[j]
                h[j] *= _sigmoid(h[j])
            x += layer.narrow_bias
            _times(h, layer.narrow, x)
            shrink = 1 / math.sqrt(_square(x) / width + layer.eps)
            for j in range(width):
                value[j] = gate[j] = x[j] * shrink
        for j in range(width):
            features[at, j] = value[j] * norm[j]
