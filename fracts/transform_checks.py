"""Checks of the scale that a model works on: its parameters, and the values that have no place on it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from numbers import Real

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Told = Callable[[int, int], str]  # a series and a row of it in words

_PROBES = 1000  # values by which a transform is tried
_BEYOND = 3.0  # ranges of the history, below and above it, where a forecast may still fall
_ROUNDING = 1e-6  # of the largest value, between a value and what comes back of it


def check_lower(lower: object) -> None:
    """ValueError unless None or a finite number."""
    if lower is not None and (
        isinstance(lower, bool) or not isinstance(lower, Real) or not np.isfinite(float(lower))
    ):
        raise ValueError(f"lower must be None or a finite number, got {lower!r}. Give lower=0, say.")


def check_transform(transform: object, names: Sequence[str]) -> None:
    """ValueError for an unknown name, TypeError for what is no transformer."""
    if isinstance(transform, str):
        if transform not in names:
            told = ["auto", *names]
            raise ValueError(f"transform must be one of {told} or a transformer, got {transform!r}.")
    elif transform is not None and (
        isinstance(transform, type)
        or not all(hasattr(transform, method) for method in ("fit", "transform", "inverse_transform"))
    ):
        raise TypeError(
            f"transform came as {transform!r}; a name out of {list(names)} or a scikit-learn transformer is "
            "needed, with fit, transform and inverse_transform, as FunctionTransformer(np.arcsinh, np.sinh)."
        )


def check_above_lower(values: Array, lower: float, told: Told) -> None:
    """ValueError naming the first of `values` (series, rows) below `lower`."""
    with np.errstate(invalid="ignore"):
        below = np.argwhere(values < lower)
    if below.size:
        series, row = below[0]
        raise ValueError(
            f"the value {told(series, row)} is {values[series, row]}, below lower={lower:g}. Lower the bound,"
            " or write NaN where there is no value."
        )


def check_transformed(moved: Array, values: Array, name: str, told: Told) -> None:
    """ValueError naming the first of `values` (series, rows) that the transform makes no number of."""
    lost = np.argwhere(~np.isfinite(moved) & ~np.isnan(values))
    if lost.size:
        series, row = lost[0]
        raise ValueError(
            f"the value {told(series, row)} is {values[series, row]}, which transform={name} makes "
            f"{moved[series, row]}. 'log' and 'box-cox' need values above 0, 'log1p' above -1: take another "
            "transform, or write NaN where there is no value."
        )


def check_increasing_both_ways(
    values: Array, forward: Callable[[Array], Array], back: Callable[[Array], Array], name: str
) -> None:
    """ValueError unless `forward` increases over `values` (n,) and `back` undoes it and increases around."""
    probes = np.quantile(values, np.linspace(0, 1, min(_PROBES, values.size)), method="nearest")
    moved = forward(probes)
    if (np.diff(moved) < 0).any() or (moved[-1] <= moved[0] and probes[-1] > probes[0]):
        raise ValueError(
            f"transform={name} does not increase from {probes[0]:g} to {probes[-1]:g}, so quantiles would "
            "change places. An increasing function is needed."
        )
    returned = back(moved)
    off = np.abs(returned - probes)
    if not (off <= _ROUNDING * np.abs(probes).max()).all():
        at = int(np.argmax(np.nan_to_num(off, nan=np.inf)))
        raise ValueError(
            f"transform={name} does not come back: inverse_transform makes {returned[at]:g} of what "
            f"{probes[at]:g} became. Give it its inverse, as FunctionTransformer(function, inverse)."
        )
    span = _BEYOND * (moved[-1] - moved[0])
    around = np.linspace(moved[0] - span, moved[-1] + span, _PROBES)
    with warnings.catch_warnings():  # a transformer may warn of what it cannot invert, which is told below
        warnings.simplefilter("ignore", RuntimeWarning)
        returned = back(around)
    falls = ~(np.diff(returned) >= 0)
    if falls.any():
        at = int(np.argmax(falls))
        raise ValueError(
            f"the inverse of transform={name} does not increase from {around[at]:g} to {around[at + 1]:g}, "
            f"where a forecast may fall: it gives {returned[at]:g}, then {returned[at + 1]:g}. Cut the "
            "argument off, as `np.square(np.maximum(x, 0))` does, or take 'box-cox', which does."
        )
