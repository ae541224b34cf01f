"""Looking at a fitted memory: its spectrum, its kernel and its exponent.

One idea: a forecast is nearly linear in the past, so what a model remembers is a curve of weights over lags,
and everything else is a view of that curve. It is read from the weights and not from the series.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fracts.checks import check_lead
from fracts.exponents import MemoryEstimate
from fracts.linear import LinearPath
from fracts.projection import nearest_exponent
from fracts.response import linear_response, values_seen
from fracts.series import Panel, State

_FEWEST, _LONGEST = 32, 32768  # lags of the kernel that the exponent is read from
_FARTHEST = 2**53  # steps, beyond which a float skips some


class Inspection(ABC):
    """What models with a linear path, and maybe a network on top, can be asked about their memory."""

    horizon: int
    series_ids_: list[Any]
    season_lengths_: tuple[int, ...]
    _path: LinearPath
    _state: State

    def memory_spectrum(self, lead: int = 1) -> pd.DataFrame:
        """Weight of every mode of the linear path in the forecast of `lead` steps ahead.

        Parameters
        ----------
        lead : in steps, from 1 to the horizon fitted.

        Returns
        -------
        DataFrame with the columns `series` (None: all share their weights), `period` (steps, inf for the
        plain modes), `timescale` (steps, NaN for exponential smoothing, which is of many) and `weight` (of a
        mode of unit gain, dimensionless; the modulus at a season's frequency).

        Raises
        ------
        NotFittedError : before fit.
        ValueError : `lead` is not an integer from 1 to `horizon`.

        Examples
        --------
        >>> from fracts import FracRidge
        >>> y = np.random.default_rng(0).normal(size=300).cumsum()
        >>> list(FracRidge(2).fit(y).memory_spectrum(lead=2).columns)
        ['series', 'period', 'timescale', 'weight']
        """
        self._check_fitted()
        spectrum = self._path.spectrum(check_lead(lead, self.horizon))
        if self._own_weights():
            spectrum = spectrum[spectrum["series"].isin(self.series_ids_)].reset_index(drop=True)
        return spectrum

    def memory_kernel(self, lags: ArrayLike, lead: int = 1) -> pd.DataFrame:
        """What each past value weighs in the forecast: the derivative of the median by that value.

        The scale of the series is held fixed, and every row counts as one with a value. Of the linear path
        the derivative hangs on no value; where short series are smoothed, how loud each smoothing is heard is
        held fixed too, the mean over the series, and the history is as long as the usual one. Of a network it
        hangs on the values: its part is the mean over rows of the history fitted, the last 8,192 at most, and
        is known up to lags of half as many. Under a `transform` values and median are those on its scale;
        covariates known in advance stand at their mean.

        Parameters
        ----------
        lags : (lags,) or one, integers of at least 1: 1 is the last value, in steps.
        lead : in steps, from 1 to the horizon fitted.

        Returns
        -------
        DataFrame with the columns `series` (None: all share their weights; the mean over them), `lag` and
        `weight` (dimensionless; NaN before the first value, and where the part of a network is not known).
        The weights of the linear path sum to 1 over a history without gaps: the level of a series is the
        level of its forecast.

        Raises
        ------
        NotFittedError : before fit.
        ValueError : `lags` is empty or holds anything but integers of at least 1; `lead` out of range.

        Examples
        --------
        >>> from fracts import FracRidge
        >>> from fracts.datasets import make_arfima
        >>> y = make_arfima(4096, 0.3, random_state=0)  # whose best forecast weighs them .30, .105, .0595
        >>> FracRidge(1).fit(y).memory_kernel([1, 2, 3]).round(3)
          series  lag  weight
        0   None    1   0.300
        1   None    2   0.116
        2   None    3   0.061
        """
        self._check_fitted()
        lag, lead = _checked_lags(lags), check_lead(lead, self.horizon)
        network = self._network_kernel(lag, lead)
        tables = []
        for name in self.series_ids_ if self._own_weights() else [None]:
            state = self._state_of(name)
            weight = network + linear_response(self._path, state, lag, lead)
            weight[lag > values_seen(self._path, state)] = np.nan
            names = pd.Series([name] * lag.size, dtype=object)
            tables.append(pd.DataFrame({"series": names, "lag": lag, "weight": weight}))
        return pd.concat(tables, ignore_index=True)

    def memory_exponent(self, series: Any = None) -> MemoryEstimate:
        """Memory parameter d of the ARFIMA(0, d, 0) whose best forecast is nearest to this model's.

        Read from the weights of the forecast one step ahead, not estimated on the series. The nearest is the
        process for which this predictor would leave the least error. All frequencies count alike, but a
        season counts little, as the predictor takes its power away. Short memory is counted in: of a series
        with much of it this is the exponent of the forecast, not that of the lowest frequencies, which the
        estimates in `fracts.memory` look at.

        Parameters
        ----------
        series : a name in `series_ids_`, needed where every series has weights of its own.

        Returns
        -------
        MemoryEstimate, `d` in (-1/2, 3/2), from 1/2 on not stationary, and its `standard_error`.

        Raises
        ------
        NotFittedError : before fit.
        ValueError : `series` is unknown, or missing where it is needed.

        Examples
        --------
        >>> from fracts import FracRidge
        >>> from fracts.datasets import make_arfima
        >>> FracRidge(1).fit(make_arfima(4096, 0.3, random_state=0)).memory_exponent()
        MemoryEstimate(d=0.3..., standard_error=0.01...)
        """
        self._check_fitted()
        path, group = self._path, self._state_of(series)["group"][0]
        count = int(path.counts[group])
        rows = min(max(count * len(path.counts) // len(path.ids), _FEWEST), _LONGEST)
        if path.memory.smoothed:  # what is heard hangs on the series
            state = self._state_of(series)
        else:  # after as many values as were learned from: the series at hand may be younger
            as_learned = Panel(np.ones((1, rows)), np.arange(float(rows)))
            state = path.advance(path.empty([path.ids[group]]), as_learned)
        lags = np.arange(1, rows)
        network = np.nan_to_num(self._network_kernel(lags, 1))
        return nearest_exponent(network + linear_response(path, state, lags, 1), count)

    def _own_weights(self) -> bool:
        return len(self._path.coefficients) > 1

    def _state_of(self, series: Any) -> State:
        """The state of `series`, or of all where they share their weights."""
        if series is None and not self._own_weights():
            return self._state
        if series not in self.series_ids_:
            came = (
                "every series has weights of its own" if series is None else f"series {series!r} is unknown"
            )
            raise ValueError(f"{came}: name one of the series {self.series_ids_}.")
        if not self._own_weights():
            return self._state
        at = self.series_ids_.index(series)
        return {key: array[at : at + 1] for key, array in self._state.items()}

    @abstractmethod
    def _network_kernel(self, lags: NDArray[np.int64], lead: int) -> NDArray[np.float64]:
        """What a network adds to the kernel of the linear path: (lags,), NaN where that is not known."""

    @abstractmethod
    def _check_fitted(self) -> None:
        """Raises NotFittedError before fit."""


def _checked_lags(lags: ArrayLike) -> NDArray[np.int64]:
    """`lags` as (lags,); ValueError unless integers of at least 1."""
    try:
        found = np.atleast_1d(np.asarray(lags))
    except ValueError:  # ragged
        found = np.empty(0)
    whole = found.ndim == 1 and found.size > 0 and found.dtype.kind in "iu"
    if not whole or (found < 1).any() or (found > _FARTHEST).any():
        raise ValueError(
            f"lags must be integers of at least 1, one or a list, below 2**53, got {lags!r}. Give steps "
            "back, 1 for the last value, such as range(1, 101)."
        )
    return found.astype(np.int64)
