"""Checks of a search: what is searched, how long, and from where it starts."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from fracts.checks import check_positive_integer


def check_budget(n_trials: Any, timeout: Any) -> tuple[int | None, float | None]:
    """Trials and seconds; ValueError unless at least one is given, and each is above 0.

    Examples
    --------
    >>> check_budget(50, None)
    (50, None)
    """
    if n_trials is None and timeout is None:
        raise ValueError(
            "n_trials=None and timeout=None came, with which a search never ends. Give n_trials=50, say, or "
            "timeout= in seconds."
        )
    trials = None if n_trials is None else check_positive_integer(n_trials, "n_trials")
    if timeout is None:
        return trials, None
    if isinstance(timeout, bool) or not isinstance(timeout, Real) or not 0 < float(timeout) < np.inf:
        raise ValueError(f"timeout must be a number of seconds above 0, got {timeout!r}.")
    return trials, float(timeout)


def check_seed(random_state: object) -> int | None:
    """The seed as an int; ValueError unless None or an integer of at least 0."""
    if random_state is None:
        return None
    if isinstance(random_state, bool) or not isinstance(random_state, Integral) or random_state < 0:
        raise ValueError(f"random_state must be None or an integer of at least 0, got {random_state!r}.")
    return int(random_state)


def check_settings(enqueue: Any) -> list[Mapping[str, Any]]:
    """Settings to try first; TypeError unless dicts.

    Examples
    --------
    >>> check_settings([{"n_modes": 8}])
    [{'n_modes': 8}]
    """
    if not isinstance(enqueue, list | tuple) or not all(isinstance(each, Mapping) for each in enqueue):
        raise TypeError(
            f"enqueue must be a list of dicts of parameters, got {enqueue!r}. Give [{{'n_modes': 8}}], say."
        )
    return list(enqueue)


def check_selection(selection: object) -> str:
    """The name of a way to choose a trial; ValueError unless it is one.

    Examples
    --------
    >>> check_selection("best")
    'best'
    """
    if selection in ("simplest", "best"):
        return str(selection)
    raise ValueError(f"selection must be 'simplest' or 'best', got {selection!r}.")


def check_switches(refit: object, verbose: object, callback: object) -> None:
    """ValueError or TypeError unless a bool, 0 or 1, and a function or None."""
    if not isinstance(refit, bool):
        raise ValueError(f"refit must be True or False, got {refit!r}.")
    if verbose not in (0, 1):
        raise ValueError(f"verbose must be 0 (nothing) or 1 (a line), got {verbose!r}.")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of (study, trial), got {callback!r}.")
