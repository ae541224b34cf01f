"""Another scale for the values: a model works on an increasing function of them, and forecasts come back.

One idea: an increasing function takes quantiles to quantiles, so median and intervals come through exactly.
A mean is not: the mean of exp(x) is above exp of the mean of x. It is integrated over the quantiles instead.
One function serves all series, so `apply` works for new ones; what it learns (the power of Box and Cox, the
state of a scikit-learn transformer) it learns at fit from all values together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import boxcox, inv_boxcox, ndtri
from scipy.stats import boxcox_llf
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.preprocessing import FunctionTransformer

from fracts.forecasts import QUANTILES
from fracts.records import record
from fracts.transform_checks import (
    Told,
    check_above_lower,
    check_increasing_both_ways,
    check_lower,
    check_transform,
    check_transformed,
)

Array = NDArray[np.float64]

_NODES = np.linspace(-8.0, 8.0, 321)  # normal quantiles over which a mean is integrated


@record
class BoxCox(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """`(y^p - 1) / p` for values above 0, the logarithm for p = 0.

    p is the likeliest in [0, 1] (Box and Cox, 1964, Journal of the Royal Statistical Society B 26(2)): within
    it every number comes back as a value, those below the range as 0.

    Examples
    --------
    >>> values = np.exp(np.random.default_rng(0).normal(size=(500, 1)))
    >>> bool(BoxCox().fit(values).power_ < 0.1)
    True
    """

    def fit(self, X: Array, y: None = None) -> Self:
        """Learn the power from values (n, 1)."""
        column = X[:, 0]
        if np.ptp(column) == 0:
            self.power_ = 1.0
            return self
        found = minimize_scalar(lambda p: -float(boxcox_llf(p, column)), bounds=(0.0, 1.0), method="bounded")
        self.power_ = float(found.x)
        return self

    def _packed(self) -> dict[str, Any]:
        return {"power": self.power_}

    @classmethod
    def _unpacked(cls, power: float) -> Self:
        transformer = cls()
        transformer.power_ = float(power)
        return transformer

    def transform(self, X: Array) -> Array:
        return np.asarray(boxcox(X, self.power_))

    def inverse_transform(self, X: Array) -> Array:
        lowest = -1 / self.power_ if self.power_ else -np.inf
        return np.asarray(inv_boxcox(np.maximum(X, lowest), self.power_))


NAMED: dict[str, Any] = {
    "log": FunctionTransformer(np.log, np.exp, check_inverse=False),
    "log1p": FunctionTransformer(np.log1p, np.expm1, check_inverse=False),
    "box-cox": BoxCox(),
}
_LOGARITHMS = {repr(name): NAMED[name] for name in ("log", "log1p")}  # which learn nothing


@record
@dataclass(frozen=True)
class Scale:
    """The scale that a model works on.

    Attributes
    ----------
    name : how errors call the transform.
    transformer : fitted, of columns (n, 1); None where values stay as they are.
    lower : no value and no forecast lies below; None for no bound.
    """

    name: str = ""
    transformer: Any = None
    lower: float | None = None

    @property
    def plain(self) -> bool:
        """Whether forecasts stay as they are."""
        return self.transformer is None and self.lower is None

    def _packed(self) -> dict[str, Any]:
        transformer = None if self.name in _LOGARITHMS else self.transformer
        return {"name": self.name, "transformer": transformer, "lower": self.lower}

    @classmethod
    def _unpacked(cls, name: str, transformer: Any, lower: float | None) -> Self:
        return cls(name, _LOGARITHMS.get(name, transformer), None if lower is None else float(lower))

    def forward(self, values: Array, told: Told) -> Array:
        """Values (series, rows) on this scale, NaN for NaN; ValueError names one that has no place there.

        told: a series and a row of it in words.
        """
        if self.lower is not None:
            check_above_lower(values, self.lower, told)
        if self.transformer is None:
            return values
        moved = _through(self.transformer.transform, values)
        check_transformed(moved, values, self.name, told)
        return moved

    def back(self, numbers: Array) -> Array:
        """Numbers of any shape on this scale as values of the series."""
        values = (
            numbers if self.transformer is None else _through(self.transformer.inverse_transform, numbers)
        )
        return values if self.lower is None else np.maximum(values, self.lower)

    def mean(self, quantiles: Array) -> Array:
        """Mean of the values (...) whose quantiles at `QUANTILES`, on this scale, are (..., 25).

        Between the quantiles the law is taken as normal, and beyond them as the normal law through the median
        and the outermost one; exact where it is normal on this scale.

        Examples
        --------
        >>> scale = Scale("log", NAMED["log"])
        >>> scale.mean(0.5 * ndtri(QUANTILES)).round(4) == np.exp(0.5**2 / 2).round(4)
        np.True_
        """
        weights = np.exp(-(_NODES**2) / 2)
        values = self.back(quantiles @ _AT_NODES)
        mean: Array = values @ (weights / weights.sum())
        return mean


def learn_scale(transform: Any, lower: Any, values: Array, told: Told) -> Scale:
    """The scale asked for, learned from `values` (series, rows), NaN for none.

    Parameters
    ----------
    transform : None, "log", "log1p", "box-cox", or a scikit-learn transformer of one column.
    lower : None or a number.
    told : a series and a row of it in words, for errors.

    Raises
    ------
    TypeError, ValueError : `transform` is none of these, does not increase or does not come back; a value
        lies below `lower` or has no place on the scale.

    Examples
    --------
    >>> scale = learn_scale("log", None, np.array([[1.0, np.e]]), "series {}, row {}".format)
    >>> scale.forward(np.array([[np.e, np.nan]]), "series {}, row {}".format)
    array([[ 1., nan]])
    """
    check_lower(lower)
    check_transform(transform, list(NAMED))
    bound = None if lower is None else float(lower)
    if transform is None:
        scale = Scale("", None, bound)
        scale.forward(values, told)
        return scale
    name = repr(transform)
    if isinstance(transform, str):
        positive = Scale(name, NAMED["log1p" if transform == "log1p" else "log"], bound)
        positive.forward(values, told)
    column = values[~np.isnan(values)][:, None]
    transformer = clone(NAMED[transform] if isinstance(transform, str) else transform).fit(column)
    scale = Scale(name, transformer, bound)
    scale.forward(values, told)
    if not isinstance(transform, str):
        there, back = (
            partial(_through, way) for way in (transformer.transform, transformer.inverse_transform)
        )
        check_increasing_both_ways(column[:, 0], there, back, name)
    return scale


def _through(function: Any, values: Array) -> Array:
    """`function` of columns, applied to an array of any shape; NaN stays NaN."""
    seen = ~np.isnan(values)
    out = np.full(values.shape, np.nan)
    if seen.any():
        with np.errstate(all="ignore"):
            out[seen] = np.asarray(function(values[seen][:, None]), dtype=np.float64)[:, 0]
    return out


def _interpolation() -> Array:
    """Weights (25, nodes) of the quantiles at `QUANTILES` in those at the normal quantiles `_NODES`."""
    known, middle = ndtri(QUANTILES), len(QUANTILES) // 2
    weights = np.stack([np.interp(_NODES, known, row) for row in np.eye(len(QUANTILES))])
    for last in (0, len(QUANTILES) - 1):
        beyond = np.sign(known[last]) * (_NODES - known[last]) > 0
        share = _NODES[beyond] / known[last]
        weights[:, beyond] = 0.0
        weights[last, beyond], weights[middle, beyond] = share, 1 - share
    return weights


_AT_NODES = _interpolation()
