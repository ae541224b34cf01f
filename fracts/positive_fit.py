"""Positive weights of given functions for the least largest relative error.

Source: Lawson (1961), PhD thesis, UCLA (reweighting towards the largest error).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.optimize import nnls

Array = NDArray[np.float64]


def positive_fit(basis: Array, target: Array, guess: Array) -> Array:
    """Positive coefficients of `basis` (time, mode), least largest relative error to `target` (time,).

    Least squares, repeated with each time weighted by the errors it has had. A faint pull towards `guess`
    decides what the data leave open: weights stay of one size and smooth in what the target depends on. None
    falls below a tenth of its guess, so that each has a logarithm.
    """
    n_modes = len(guess)
    equations = np.column_stack([basis * guess / target[:, None], np.ones_like(target)])
    importance = np.full(len(target), 1 / len(target))
    pull, least, smallest_error, best = 3e-8, 0.1, np.inf, np.ones(n_modes)
    for _ in range(30):
        towards_guess = pull * np.column_stack([np.eye(n_modes), np.ones(n_modes)])
        weighted = np.sqrt(importance)[:, None] * equations
        triangle = qr(np.vstack([weighted, towards_guess]), mode="r")[0][:n_modes]
        above, _ = nnls(triangle[:, :-1], triangle[:, -1] - least * triangle[:, :-1].sum(axis=1))
        error = np.abs(equations[:, :-1] @ (least + above) - 1)
        if error.max() < smallest_error:
            smallest_error, best = error.max(), least + above
        pull = max(3e-8, 0.1 * float(np.sqrt(importance @ error**2)))
        importance *= error
        importance /= importance.sum()
    return guess * best
