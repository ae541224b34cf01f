"""The heavy-tail probe: does a model still remember an event after 100,000 steps?

One idea: sparse signed events, and at every step the question which sign prevails when each event counts with
a power of its age. Old events never quite fade, so a memory that falls exponentially must fail on long
sequences.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve

from fracts.datasets.processes import RandomState
from fracts.process_checks import check_between, check_count

SignArray = NDArray[np.int8]


def make_heavy_tail(
    n_sequences: int,
    length: int,
    exponent: float,
    *,
    event_probability: float = 0.05,
    random_state: RandomState = None,
) -> tuple[SignArray, SignArray]:
    """Events and labels, both of shape (n_sequences, length) with entries -1, 0, 1.

    An event is +1 or -1 with probability `event_probability`, else 0. The label at t is the sign of the sum
    of event[s] * (t - s + 1)^(-exponent) over s <= t: the current event has lag 1. It is 0 where the sum is,
    before the first event and at ties; what the rounding of the transform could have made (about 1e-12 at the
    default settings and length 131,072) counts as 0.

    Parameters
    ----------
    n_sequences, length : at least 1; `length` in steps.
    exponent : positive; the smaller, the longer the memory.
    event_probability : in (0, 1), at every step.
    random_state : int, `numpy.random.Generator`, or None for a new draw at each call.

    Returns
    -------
    events, labels : (n_sequences, length), int8.

    Raises
    ------
    TypeError : a count is no integer, another number none.
    ValueError : a count below 1, exponent not positive, event_probability outside (0, 1).

    Examples
    --------
    >>> events, labels = make_heavy_tail(1, 8, 0.5, event_probability=0.4, random_state=3)
    >>> events[0].tolist()
    [-1, 1, 0, 0, -1, 0, 0, -1]
    >>> labels[0].tolist()
    [-1, 1, 1, 1, -1, -1, -1, -1]
    """
    n_sequences, length = check_count("n_sequences", n_sequences), check_count("length", length)
    exponent = check_between("exponent", exponent, 0, np.inf, "The smaller, the longer the memory.")
    probability = check_between("event_probability", event_probability, 0, 1, "0.05 is one in 20 steps.")
    chance = np.random.default_rng(random_state).random((n_sequences, length))
    events = (chance < probability).astype(np.int8) - 2 * (chance < probability / 2).astype(np.int8)
    weights = np.arange(1.0, length + 1) ** -exponent
    sums = fftconvolve(events, weights[None, :], axes=1)[:, :length]
    rounding = np.finfo(float).eps * np.linalg.norm(events, axis=1, keepdims=True) * np.linalg.norm(weights)
    labels = (np.sign(sums) * (np.abs(sums) > rounding)).astype(np.int8)
    return events, labels
