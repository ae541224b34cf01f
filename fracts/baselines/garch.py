"""GARCH and FIGARCH: a constant mean, and a variance that remembers past squares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.special import ndtri, stdtrit

from fracts.base import Forecaster
from fracts.baselines.each import EachSeries, Fitted, Unfit
from fracts.baselines.machines import OnMachine
from fracts.baselines.needed import needed
from fracts.forecasts import Forecast
from fracts.records import record
from fracts.series import Panel, State
from fracts.timeline import Clock

Array = NDArray[np.float64]

LAGS = 1000  # past squares that a variance remembers, as many as `arch` has for FIGARCH
_FEWEST = 100  # values


class GARCH(EachSeries, OnMachine, Forecaster):
    """A constant mean with GARCH or FIGARCH variance, one model a series, for returns.

    Parameters
    ----------
    horizon : steps that `predict` gives unless told otherwise; any other horizon is as good.
    fractional : FIGARCH(1, d, 1), whose variance has long memory, in place of GARCH(1, 1).
    distribution : "normal" or "t", of the errors in units of their standard deviation.
    n_jobs : processes that fit series at once; None is 1, -1 all cores.
    progress : show a bar while series are fitted.
    fallback : forecaster of the series that cannot be fitted (constant or too short); None is `Naive`.

    Attributes
    ----------
    parameters_ : dict from series to the parameters by their names in `arch`, in units of the series; those
        that the fallback has are missing.
    failures_ : dict from the other series to the reason.

    Notes
    -----
    Bollerslev (1986, Journal of Econometrics 31), and Baillie, Bollerslev and Mikkelsen (1996, ibid. 74),
    fitted by the package `arch` (the extra `classical`) to the values there are. The variance is then a
    constant and weights on the last 1,000 squared errors, which is all of the state; a missing value counts
    as its expected square. The variances of all leads are exact; beyond the first the quantiles take the
    distribution of one step, which has somewhat too thin tails. The point is the mean.

    Examples
    --------
    >>> from fracts.datasets import load_sp500_daily
    >>> returns = 100 * np.log(load_sp500_daily()["close"]).diff().dropna()[-1500:]
    >>> model = GARCH(5).fit(returns.to_numpy())
    >>> bool(0.8 < model.parameters_[0]["alpha[1]"] + model.parameters_[0]["beta[1]"] < 1)
    True
    """

    def __init__(
        self,
        horizon: int,
        *,
        fractional: bool = False,
        distribution: str = "normal",
        n_jobs: int | None = None,
        progress: bool = False,
        fallback: Forecaster | None = None,
    ) -> None:
        self.horizon = horizon
        self.fractional = fractional
        self.distribution = distribution
        self.n_jobs = n_jobs
        self.progress = progress
        self.fallback = fallback

    @property
    def parameters_(self) -> dict[Any, dict[str, float]]:
        """Parameters by series; NotFittedError before fit."""
        return self._learned_of_series()

    def _fitter(self, clock: Clock, n_steps: int) -> Callable[[Array, int], Fitted]:
        needed("arch", "GARCH")
        if not isinstance(self.fractional, bool):
            raise ValueError(f"fractional must be True or False, got {self.fractional!r}.")
        if self.distribution not in ("normal", "t"):
            raise ValueError(f"distribution must be 'normal' or 't', got {self.distribution!r}.")
        return _Fitter(self.fractional, self.distribution)


@record
@dataclass(frozen=True)
class Volatility:
    """Variances from past squares, of series with a mean.

    Parameters
    ----------
    mean : (series,), in units of the series.
    constant, weights : (series,) and (series, lags): the variance is `constant` and the weighted past
        squares.
    start : (series,), the squares before the history.
    freedom : (series,), degrees of freedom of the errors, infinite for normal ones.
    """

    mean: Array
    constant: Array
    weights: Array
    start: Array
    freedom: Array

    @classmethod
    def stack(cls, machines: Sequence[Volatility]) -> Volatility:
        """The machines of several series as one."""
        return cls(*(np.concatenate([getattr(m, f.name) for m in machines]) for f in fields(cls)))

    def take(self, places: NDArray[np.int64]) -> Volatility:
        """The models at `places`, one for each."""
        return Volatility(*(getattr(self, field.name)[places] for field in fields(self)))

    def empty(self, origin: int) -> State:
        """The state before any row."""
        squares = np.repeat(self.start[:, None], self.weights.shape[1], axis=1)
        return {"squares": squares, "time": np.full(len(self.start), np.nan)}

    def advance(self, state: State, panel: Panel) -> State:
        """The state after the rows of `panel`, whose times are whole steps."""
        squares = state["squares"]
        gaps = np.rint(np.diff(np.append(state["time"][0], panel.times)))
        for row, gap in enumerate(gaps):
            for _ in range(int(gap) - 1 if gap > 1 else 0):
                squares = self._pushed(squares, self._variance(squares))
            error = panel.values[:, row] - self.mean
            squares = self._pushed(squares, np.where(np.isnan(error), self._variance(squares), error**2))
        return {"squares": squares, "time": np.full_like(state["time"], panel.times[-1])}

    def forecast(self, state: State, horizon: int, levels: Array) -> Forecast:
        """The next `horizon` steps at quantile `levels`."""
        squares, variances = state["squares"], np.empty((len(self.mean), horizon))
        for lead in range(horizon):
            variances[:, lead] = self._variance(squares)
            squares = self._pushed(squares, variances[:, lead])
        means = np.repeat(self.mean[:, None], horizon, axis=1)
        unit = np.array([_unit_quantiles(freedom, levels) for freedom in self.freedom])
        return Forecast(means, means[..., None] + np.sqrt(variances)[..., None] * unit[:, None])

    def _variance(self, squares: Array) -> Array:
        variance: Array = self.constant + (self.weights * squares).sum(axis=1)
        return variance

    @staticmethod
    def _pushed(squares: Array, newest: Array) -> Array:
        return np.column_stack([newest, squares[:, :-1]])


@dataclass(frozen=True)
class _Fitter:
    fractional: bool
    distribution: str

    def __call__(self, values: Array, first: int) -> Fitted:
        from arch import arch_model
        from arch.univariate.recursions_python import figarch_weights

        known = values[~np.isnan(values)]
        if len(known) < _FEWEST:
            raise Unfit(f"{len(known)} values are too few, {_FEWEST} are needed")
        scale = float(np.std(known))
        if scale <= 1e-10 * float(np.abs(known).max()):
            raise Unfit("its values are constant")
        kind: Any = {"vol": "FIGARCH"} if self.fractional else {"vol": "GARCH", "p": 1, "q": 1}
        kind["dist"] = self.distribution
        model = arch_model(known / scale, mean="Constant", rescale=False, **kind)
        found = model.fit(disp="off", show_warning=False)
        named = {name: float(value) for name, value in found.params.items()}
        beta = named.get("beta[1]", named.get("beta", 0.0))
        if self.fractional:
            weights = figarch_weights(np.array([named["phi"], named["d"], named["beta"]]), 1, 1, LAGS)
        else:
            weights = lfilter([named["alpha[1]"]], [1.0, -beta], np.eye(1, LAGS)[0])
        start = float(model.volatility.backcast(np.asarray(known / scale - named["mu"])))
        machine = Volatility(
            np.array([named["mu"] * scale]),
            np.array([named["omega"] / (1 - beta) * scale**2]),
            np.asarray(weights, dtype=np.float64)[None],
            np.array([start * scale**2]),
            np.array([named.get("nu", np.inf)]),
        )
        named["mu"] *= scale
        named["omega"] *= scale**2
        return Fitted(machine, named, "" if found.convergence_flag == 0 else "the optimiser did not converge")


def _unit_quantiles(freedom: float, levels: Array) -> Array:
    """Quantiles of errors of variance 1."""
    if np.isinf(freedom):
        return np.asarray(ndtri(levels))
    return np.asarray(stdtrit(freedom, levels) * np.sqrt((freedom - 2) / freedom))
