"""Which trial a search takes: the best, or the simplest of those that are not shown to be worse.

One idea: the prior shrinks modes that are not needed, so a memory that is too long, or too fine, costs next
to nothing, and the least loss falls on it by chance. A difference of losses counts once it is larger than its
standard error, which windows forecast by both tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fracts.base import Forecaster

Array = NDArray[np.float64]


def chosen(table: Mapping[str, Any], estimator: Forecaster, selection: str) -> int:
    """Place in the `table` of results of the trial that a search takes.

    selection: as `FracSearch` takes it.  An `estimator` without timescales has no simplest trial, and the
    best is taken.
    """
    scores = table["mean_test_score"]
    best = int(np.argmin(table["rank_test_score"]))
    settings = [estimator.get_params(deep=False) | params for params in table["params"]]
    if selection == "best" or not all({"timescales", "n_modes"} <= each.keys() for each in settings):
        return best
    sizes = np.array([(each["timescales"][1], each["n_modes"]) for each in settings], dtype=np.float64)
    names = [name for name in table if name.startswith("split")]
    return simplest(-scores, -np.column_stack([table[name] for name in names]), sizes)


def simplest(losses: Array, splits: Array, sizes: Array) -> int:
    """The least of the `sizes` whose loss is within one standard error of the least loss.

    Parameters
    ----------
    losses : (trials,), NaN for none.
    splits : (trials, splits), losses on parts of the validation; NaN for none.
    sizes : (trials, measures), compared by the first measure, where that is equal by the second, and so on,
        and at last by the loss.

    Returns
    -------
    The place of a trial.

    Notes
    -----
    The rule of one standard error of Breiman, Friedman, Olshen and Stone (1984, Classification and Regression
    Trees, section 3.4), where the standard error is that of the difference to the best, as trials share their
    windows. With fewer than two splits there is none, and the best is taken.

    Examples
    --------
    >>> splits = np.array([[1.0, 2.0, 3.0], [1.1, 2.0, 3.0], [1.1, 2.1, 3.2]])
    >>> simplest(splits.mean(1), splits, np.array([[512.0], [64.0], [16.0]]))
    1
    """
    best = int(np.nanargmin(losses))
    with np.errstate(invalid="ignore"):
        behind = splits - splits[best]
    behind[np.isinf(behind)] = np.nan
    n_shared = np.sum(~np.isnan(behind), axis=1)
    spread = np.full(len(losses), -1.0)
    enough = n_shared > 1
    spread[enough] = np.nanstd(behind[enough], axis=1, ddof=1) / np.sqrt(n_shared[enough])
    near = losses - losses[best] <= spread
    near[best] = True
    places = np.flatnonzero(near)
    order = np.lexsort([losses[places], *sizes[places].T[::-1]])
    return int(places[order[0]])
