"""Arithmetic of compiled code, in forms that loops take several numbers at once in.

numba does not see a change here in what it keeps on disk: after one delete `__pycache__` of this folder.
"""

import math
from typing import Any

import numpy as np
from numba import njit

LOG_2 = math.log(2)
_PER_LOG_2 = 1 / LOG_2
_LOG_2_HIGH = float.fromhex("0x1.62e42feep-1")  # few digits: a whole number times it is exact
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_WHOLE = 1.5 * 2.0**52  # what is added to it is rounded to a whole number, which its last bits are
_FARTHEST = 708.0  # of what float64 has an exponential
_TERMS = tuple(1 / math.factorial(n) for n in range(13, 0, -1))

# Of what is called by compiled code alone: nothing is needed to call it from Python.
INNER: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# Of what makes no array either: numba then leaves out to count who holds those it is handed, in one count for
# all threads.
LEAF: dict[str, Any] = INNER | {"_nrt": False}


@njit(**LEAF, fastmath={"contract"})
def expm1(x: float) -> float:
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


@njit(**LEAF, fastmath={"contract"})
def times(x: Any, n: int, weights: Any, out: Any) -> None:
    """out += x @ weights of the first `n` rows: two of them, and four numbers of each, at a time."""
    size, width = len(weights), out.shape[1]
    last = size - size % 4
    for r in range(0, n - 1, 2):
        for k in range(0, last, 4):
            x0, x1, x2, x3 = x[r, k], x[r, k + 1], x[r, k + 2], x[r, k + 3]
            y0, y1, y2, y3 = x[r + 1, k], x[r + 1, k + 1], x[r + 1, k + 2], x[r + 1, k + 3]
            for j in range(width):
                w0, w1, w2, w3 = weights[k, j], weights[k + 1, j], weights[k + 2, j], weights[k + 3, j]
                out[r, j] += (x0 * w0 + x1 * w1) + (x2 * w2 + x3 * w3)
                out[r + 1, j] += (y0 * w0 + y1 * w1) + (y2 * w2 + y3 * w3)
    for r in range(n - n % 2, n):
        for k in range(0, last, 4):
            x0, x1, x2, x3 = x[r, k], x[r, k + 1], x[r, k + 2], x[r, k + 3]
            for j in range(width):
                here = x0 * weights[k, j] + x1 * weights[k + 1, j]
                out[r, j] += here + (x2 * weights[k + 2, j] + x3 * weights[k + 3, j])
    for r in range(n):
        for k in range(last, size):
            for j in range(width):
                out[r, j] += x[r, k] * weights[k, j]


@njit(**LEAF)
def sigmoid(x: Any) -> Any:
    return 1.0 / (2.0 + expm1(-x))


@njit(**LEAF)
def softplus(x: Any) -> Any:
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


@njit(**LEAF, fastmath={"contract", "reassoc"})
def square(x: Any, r: int) -> Any:
    total = x[r, 0] * x[r, 0]
    for j in range(1, x.shape[1]):
        total += x[r, j] * x[r, j]
    return total


@njit(**LEAF, fastmath={"contract", "reassoc", "nnan", "nsz"})
def largest(x: Any, way: int, head: int) -> Any:
    most = x[way, head, 0]
    for m in range(1, x.shape[2]):
        most = max(most, x[way, head, m])
    return most


@njit(**LEAF, fastmath={"contract", "reassoc"})
def summed(x: Any, way: int, head: int) -> Any:
    total = 0.0
    for m in range(x.shape[2]):
        total += x[way, head, m]
    return total
