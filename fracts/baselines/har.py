"""HAR: regression on the means of the last day, week and month, or of any other spans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from fracts.base import Forecaster
from fracts.baselines.each import EachSeries, Fitted, Unfit
from fracts.baselines.machines import OnMachine
from fracts.baselines.statespace import StateSpace
from fracts.checks import check_positive_integer
from fracts.records import record
from fracts.timeline import Clock

Array = NDArray[np.float64]

_ROWS_A_COEFFICIENT = 5


@record
class HarFit(NamedTuple):
    """What HAR learned: constant, weight of the mean of each span, variance of the errors."""

    constant: float
    weights: Array
    variance: float


class HAR(EachSeries, OnMachine, Forecaster):
    """The heterogeneous autoregression, one model a series: a poor man's long memory.

    Parameters
    ----------
    horizon : steps that `predict` gives unless told otherwise; any other horizon is as good.
    spans : lengths in steps, ascending, over which past values are averaged.
    n_jobs : processes that fit series at once; None is 1, -1 all cores.
    progress : show a bar while series are fitted.
    fallback : forecaster of the series that cannot be fitted (constant or too short); None is `Naive`.

    Attributes
    ----------
    models_ : dict from series to constant, weights and variance; those that the fallback has are missing.
    failures_ : dict from the other series to the reason.

    Notes
    -----
    The model of Corsi (2009, Journal of Financial Econometrics 7), by least squares of the next value on the
    means. It is an autoregression of as many lags as the longest span, and forecasts as one, lead by lead,
    with normal errors. Coefficients come from the rows where each span has a value, its mean being that of
    the values there are; forecasts and `update` are those of an exact Kalman filter, which averages over
    what a hole may have held. For volatility give its logarithm, which is nearer to normal.

    Examples
    --------
    >>> from fracts.datasets import load_sp500_volatility
    >>> model = HAR(1).fit(load_sp500_volatility().asfreq("B"))
    >>> model.models_["log_volatility"].weights.round(2)
    array([0.08, 0.54, 0.32])
    """

    def __init__(
        self,
        horizon: int,
        *,
        spans: Sequence[int] = (1, 5, 22),
        n_jobs: int | None = None,
        progress: bool = False,
        fallback: Forecaster | None = None,
    ) -> None:
        self.horizon = horizon
        self.spans = spans
        self.n_jobs = n_jobs
        self.progress = progress
        self.fallback = fallback

    @property
    def models_(self) -> dict[Any, HarFit]:
        """Models by series; NotFittedError before fit."""
        return self._learned_of_series()

    def _fitter(self, clock: Clock, n_steps: int) -> Callable[[Array, int], Fitted]:
        if not isinstance(self.spans, tuple | list) or not self.spans:
            raise ValueError(f"spans must be a tuple of steps such as (1, 5, 22), got {self.spans!r}.")
        spans = tuple(check_positive_integer(span, "each of spans") for span in self.spans)
        if list(spans) != sorted(set(spans)):
            raise ValueError(f"spans must ascend, got {self.spans!r}. Give each length once, shortest first.")
        return _Fitter(spans)


@dataclass(frozen=True)
class _Fitter:
    spans: tuple[int, ...]

    def __call__(self, values: Array, first: int) -> Fitted:
        longest = self.spans[-1]
        needed = _ROWS_A_COEFFICIENT * (len(self.spans) + 1)
        if len(values) <= longest:
            raise Unfit(f"{len(values)} steps are too few for a span of {longest}")
        means = np.column_stack([_means(values, span)[longest - span : -1] for span in self.spans])
        targets = values[longest:]
        whole = ~np.isnan(np.column_stack([means, targets])).any(axis=1)
        if np.count_nonzero(whole) < needed:
            raise Unfit(f"{np.count_nonzero(whole)} rows are too few, {needed} are needed")
        scale = float(np.std(targets[whole]))
        if scale <= 1e-10 * float(np.nanmax(np.abs(values))):
            raise Unfit("its values are constant")
        rows = np.column_stack([np.full(len(targets), scale), means])[whole]
        weights = np.linalg.lstsq(rows, targets[whole])[0]
        errors = targets[whole] - rows @ weights
        variance = float(errors @ errors) / (len(errors) - len(weights))
        learned = HarFit(float(weights[0]) * scale, weights[1:], variance)
        perfect = variance <= (1e-10 * scale) ** 2
        remark = "the fit is perfect: intervals have no width" if perfect else ""
        return Fitted(_space(learned, self.spans), learned, remark)


def _means(values: Array, span: int) -> Array:
    """Mean of the values in each `span` of steps, the last one at its end; NaN where there is none."""
    windows = sliding_window_view(values, span)
    count = (~np.isnan(windows)).sum(axis=1)
    return np.where(count > 0, np.nansum(windows, axis=1) / np.maximum(count, 1), np.nan)


def _space(learned: HarFit, spans: tuple[int, ...]) -> StateSpace:
    """The autoregression; its state is the constant 1 and the last values, unknown at the start."""
    lags = np.zeros(spans[-1])
    for span, weight in zip(spans, learned.weights, strict=True):
        lags[:span] += weight / span
    size = lags.size + 1
    transition = np.zeros((size, size))
    transition[0, 0] = 1.0
    transition[1] = np.append(learned.constant, lags)
    transition[2:, 1:-1] = np.eye(lags.size - 1)
    gain = np.zeros(size)
    gain[1] = 1.0
    return StateSpace(
        transition[None],
        transition[1][None],
        np.outer(gain, gain)[None],
        gain[None],
        np.ones(1),
        np.array([learned.variance]),
        np.eye(1, size),
        np.zeros((1, size, size)),
        np.diag(np.append(0.0, np.ones(lags.size)))[None],
    )
