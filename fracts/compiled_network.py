"""The step of `fracts.online`, compiled by numba: the same weights, the same numbers, fewer microseconds.

Each function has its counterpart there; a loop over the series takes two at a time through the whole network,
so that nothing waits for a call and the weights are read once for both. Compiled code is kept beside this
file, or where `NUMBA_CACHE_DIR` says.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from fracts.compiled_arithmetic import (
    INNER,
    LEAF,
    LOG_2,
    expm1,
    largest,
    sigmoid,
    softplus,
    square,
    summed,
    times,
)
from fracts.fast import in_parts, of_each_kind
from fracts.mode_weights import BASIS, KNOTS, LEAST

Array = NDArray[Any]
Memories = Sequence[Array]


def network_row(
    encoder: Any, u: Array, beside: Array, time: float, gap: float, before: Memories
) -> tuple[Memories, Array]:
    """`online.network_row`, where the arguments are told."""
    after = [np.empty_like(array) for array in before]
    features = np.empty((len(u), encoder.norm.size), encoder.norm.dtype)
    row = time, gap, *of_each_kind(before), *of_each_kind(after), features
    weights, turns = encoder.packed, encoder.embedding.turns
    in_parts(lambda start, stop: _network_row(weights, turns, u, beside, start, stop, *row), len(u))
    return after, features


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


@njit(**INNER)
def _matrix(packed: Any, start: int, rows: int, columns: int) -> Any:
    return packed[start : start + rows * columns].reshape(rows, columns)


@njit(**INNER)
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


_AT_ONCE = 2  # series that each row of weights is read for


class Room(NamedTuple):
    """Where a few series, a row each, are computed."""

    x: Any  # (rows, width), what layers add to
    value: Any  # (rows, width), what is written
    gate: Any  # (rows, width), what sets the controls
    raw: Any  # (rows, controls + gates)
    v: Any  # (rows, heads, 2 * channels), what is written, of a head
    flat_v: Any
    y: Any  # (rows, heads, 2 * channels), what is read
    flat_y: Any
    h: Any  # (rows, 2 * width)
    weights: Any  # (4, heads, modes) of one series, in float64
    flat_weights: Any
    read: Any  # (heads, modes), the first of them in the dtype of the network
    write: Any  # the second
    kept: Any  # the last
    basis: Any  # (basis + knots,)


@njit(**INNER)
def _room(dtype: Any, width: int, heads: int, n_modes: int, both: int) -> Room:
    v, y = np.empty((_AT_ONCE, heads * both), dtype), np.empty((_AT_ONCE, heads * both), dtype)
    weights = np.empty(4 * heads * n_modes)
    return Room(
        np.empty((_AT_ONCE, width), dtype),
        np.empty((_AT_ONCE, width), dtype),
        np.empty((_AT_ONCE, width), dtype),
        np.empty((_AT_ONCE, heads * (4 + 2 * KNOTS + both)), dtype),
        v.reshape(_AT_ONCE, heads, both),
        v,
        y.reshape(_AT_ONCE, heads, both),
        y,
        np.empty((_AT_ONCE, 2 * width), dtype),
        weights.reshape(4, heads, n_modes),
        weights,
        np.empty((heads, n_modes), dtype),
        np.empty((heads, n_modes), dtype),
        np.empty((heads, n_modes), dtype),
        np.empty(BASIS + KNOTS),
    )


@njit(**INNER)
def _embedding(packed: Any, width: int) -> Any:
    """Embed, even, even_bias and nothing, and the norm after them."""
    even, nothing = _matrix(packed, width, 3, width), _matrix(packed, 5 * width, 2, width)
    tokens = packed[:width], even, packed[4 * width : 5 * width], nothing
    return tokens, packed[7 * width : 8 * width]


@njit(**LEAF)
def _tokens(embedding: Any, r: int, u: float, beside: Any, at: int, value: Any, gate: Any) -> None:
    """`online._tokens` of one series, into row `r` of `value` and `gate`; beside: (series, 2 * width), or
    nothing."""
    embed, even, bias, nothing = embedding
    width = value.shape[1]
    if math.isnan(u):
        for j in range(width):
            value[r, j], gate[r, j] = nothing[0, j], nothing[1, j]
    else:
        size, bell, fade = math.log1p(abs(u)), 1 / (1 + u * u), math.exp(-abs(u))
        for j in range(width):
            value[r, j] = u * embed[j]
            gate[r, j] = bias[j] + (size * even[0, j] + bell * even[1, j] + fade * even[2, j])
        if len(beside):
            for j in range(width):
                value[r, j] += beside[at, j]
                gate[r, j] += beside[at, width + j]
    for j in range(width):
        gate[r, j] *= sigmoid(gate[r, j])


@njit(**LEAF)
def _wave(turns: Any, time: float, wave: Any) -> None:
    """`online.wave_at`, into `wave`."""
    for season in range(len(wave)):
        turn = time * turns[season]
        angle = 2 * math.pi * (turn - math.floor(turn))
        wave[season, 0, 0] = math.cos(angle)
        wave[season, 1, 0] = wave[season, 0, 1] = math.sin(angle)
        wave[season, 1, 1] = -wave[season, 0, 0]


@njit(**LEAF, fastmath={"contract"})
def _mode_weights(
    layer: Any, raw: Any, r: int, seen: bool, gap: float, hold: Any, hold_after: Any, at: int, room: Room
) -> None:
    """Weights of reading and of writing, log decays, and what is kept, into `room.weights`.

    In float64, and a row of heads and modes at a time, so that the exponentials go several at once.
    """
    found, flat, basis = room.weights, room.flat_weights, room.basis
    heads, n_modes = found.shape[1:]
    for head in range(heads):
        step, rate = softplus(raw[r, head]), math.exp(raw[r, 3 * heads + head])
        pace, held = step * rate, gap * hold[at, head]
        hold_after[at, head] = pace if seen else hold[at, head]
        for m in range(n_modes):
            found[2, head, m] = pace * layer.paces[m]
            found[3, head, m] = held * layer.rates[m]
        for way in range(2):
            log_exponent = max(LOG_2 - softplus(raw[r, (1 + way) * heads + head]), LEAST)
            power, base = 1.0, math.expm1(log_exponent)
            for k in range(BASIS - 2):
                basis[k] = power
                power *= base
            basis[BASIS - 2], basis[BASIS - 1] = log_exponent, log_exponent * log_exponent
            place = 4 * heads + (way * heads + head) * KNOTS
            for k in range(KNOTS):
                basis[BASIS + k] = raw[r, place + k]
            for m in range(n_modes):
                found[way, head, m] = layer.scores[way, 0, m]  # of the power 0, which is 1
            for k in range(1, BASIS + KNOTS):
                for m in range(n_modes):
                    found[way, head, m] += basis[k] * layer.scores[way, k, m]
            most = largest(found, way, head)
            for m in range(n_modes):
                found[way, head, m] -= most
    for j in range(flat.size):
        flat[j] = expm1(flat[j])
    for j in range(flat.size // 2):
        flat[j] += 1.0
    for head in range(heads):
        read = 1.0 / summed(found, 0, head)
        write = seen / (summed(found, 1, head) * math.exp(raw[r, 3 * heads + head]))
        for m in range(n_modes):
            found[0, head, m] *= read
            found[1, head, m] *= write * found[2, head, m] / layer.paces[m]


@njit(**LEAF, fastmath={"contract"})
def _head(
    weights: Any, r: int, head: int, v: Any, y: Any, modes: Any, tail: Any, after: Any, end: Any, at: int
) -> None:
    """What the modes of one head are after a row, into `after` and `end`, and what is read, into `y`.

    weights: of reading, of writing, and what is kept, less 1, (heads, modes) each.
    """
    read, write, keep = weights
    n_modes, both = modes.shape[2:]
    for p in range(both):
        y[r, head, p] = 0
    for m in range(n_modes):
        c, b, kept = read[head, m], write[head, m], keep[head, m]
        for p in range(both):
            mode = modes[at, head, m, p]
            mode += kept * mode + b * v[r, head, p]
            after[at, head, m, p] = mode
            y[r, head, p] += c * mode
    for p in range(both):
        end[at, head, p] = tail[at, head, p] + write[head, n_modes - 1] * v[r, head, p]
        after[at, head, n_modes - 1, p] = end[at, head, p]


@njit(**LEAF, fastmath={"contract"})
def _mix(
    layer: Any, r: int, seen: bool, gap: float, wave: Any, before: Any, state: Any, at: int, room: Room
) -> None:
    """`online._mix` of one series, from its controls to what is read."""
    (modes, hold, tail), (after, hold_after, tail_after) = before, state
    v, y = room.v, room.y
    heads, both = v.shape[1:]
    half, plain = both // 2, heads - len(wave)
    _mode_weights(layer, room.raw, r, seen, gap, hold, hold_after, at, room)
    for head in range(heads):
        for m in range(modes.shape[2]):
            room.read[head, m], room.write[head, m] = room.weights[0, head, m], room.weights[1, head, m]
            room.kept[head, m] = room.weights[3, head, m]
    gates = room.raw[r, room.raw.shape[1] - heads * both :]
    for j in range(gates.size):
        gates[j] = sigmoid(gates[j])
    for season in range(len(wave)):
        cos, sin = wave[season, 0, 0], wave[season, 1, 0]
        for p in range(half):
            v[r, plain + season, p] *= cos
            v[r, plain + season, half + p] *= sin
    weights = room.read, room.write, room.kept
    for head in range(heads):
        _head(weights, r, head, v, y, modes, tail, after, tail_after, at)
        if head >= plain:
            turn = wave[head - plain]
            for p in range(half):
                along, across = y[r, head, p], y[r, head, half + p]
                y[r, head, p] = turn[0, 0] * along + turn[0, 1] * across
                y[r, head, half + p] = turn[1, 0] * along + turn[1, 1] * across
        total = y[r, head, 0] * y[r, head, 0]
        for p in range(1, both):
            total += y[r, head, p] * y[r, head, p]
        shrink = 1 / math.sqrt(total + both)
        for p in range(both):
            y[r, head, p] *= shrink * gates[head * both + p]


@njit(**LEAF, fastmath={"contract"})
def _block(layer: Any, n: int, room: Room) -> None:
    """The feed-forward block, and the norm after it, of `n` rows."""
    x, h, width = room.x, room.h, room.x.shape[1]
    h[:n] = 0
    times(x, n, layer.widen, h)
    for r in range(n):
        shrink = 1 / math.sqrt(square(x, r) / width + layer.block_eps)
        for j in range(2 * width):
            here = h[r, j] * shrink + layer.widen_bias[j]
            h[r, j] = here * sigmoid(here)
        for j in range(width):
            x[r, j] += layer.narrow_bias[j]
    times(h, n, layer.narrow, x)
    for r in range(n):
        shrink = 1 / math.sqrt(square(x, r) / width + layer.eps)
        for j in range(width):
            room.value[r, j] = room.gate[r, j] = x[r, j] * shrink


@njit(**LEAF)
def _filled(out: Any, n: int, row: Any) -> None:
    for r in range(n):
        for j in range(row.size):
            out[r, j] = row[j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _network_row(
    packed: Any, turns: Any, u: Any, beside: Any, start: int, stop: int, time: float, gap: float,
    modes: Any, hold: Any, tail: Any, modes_after: Any, hold_after: Any, tail_after: Any, features: Any,
) -> None:  # fmt: skip
    """The series from `start` to `stop`, two at a time; the arrays of their state are one a layer."""
    width = features.shape[1]
    n_layers, (_, heads, n_modes, both) = len(modes), modes[0].shape
    room = _room(packed.dtype, width, heads, n_modes, both)
    embedding, norm = _embedding(packed, width)
    wave = np.empty((turns.size, 2, 2), packed.dtype)
    _wave(turns, time, wave)
    for begin in range(start, stop, _AT_ONCE):
        n = min(_AT_ONCE, stop - begin)
        for r in range(n):
            _tokens(embedding, r, u[begin + r], beside, begin + r, room.value, room.gate)
            for j in range(width):
                room.x[r, j] = room.value[r, j]
        place = 8 * width
        for i in range(n_layers):
            layer, place = _layer(packed, place, width, heads, both, n_modes)
            own = modes[i], hold[i], tail[i]
            after = modes_after[i], hold_after[i], tail_after[i]
            _filled(room.raw, n, layer.controls_bias)
            times(room.gate, n, layer.controls, room.raw)
            room.flat_v[:n] = 0
            times(room.value, n, layer.values, room.flat_v)
            for r in range(n):
                at = begin + r
                _mix(layer, r, not math.isnan(u[at]), gap, wave, own, after, at, room)
            times(room.flat_y, n, layer.out, room.x)
            _block(layer, n, room)
        for r in range(n):
            for j in range(width):
                features[begin + r, j] = room.value[r, j] * norm[j]


@njit(cache=True, nogil=True, error_model="numpy")
def shift(medians: Any, scale: Any, features: Any, weights: Any, bias: Any, least: Any, most: Any) -> None:
    """`online.shift_medians`; weights: (width, horizon).  bias: (at least horizon,).  least, most: (3,
    horizon), whose first row a shift stays within."""
    horizon = medians.shape[1]
    moved = np.empty((len(medians), horizon), features.dtype)
    moved[:] = bias[:horizon]
    times(features, len(medians), weights, moved)
    for at in range(len(medians)):
        for k in range(horizon):
            medians[at, k] += scale[at] * min(max(moved[at, k], least[0, k]), most[0, k])
