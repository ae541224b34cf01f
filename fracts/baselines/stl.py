"""STL: the season taken off by local regression, the rest forecast by any other model."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fracts.base import Forecaster
from fracts.baselines.each import on_every_step
from fracts.baselines.machines import Inner, OnMachine, origin_of
from fracts.baselines.needed import needed
from fracts.baselines.profile import Profiled, by_place, without_holes
from fracts.checks import FitWarning, check_season_lengths
from fracts.series import Panel
from fracts.timeline import Clock, default_season_lengths

Array = NDArray[np.float64]


class STL(OnMachine, Forecaster):
    """A seasonal profile of each series, by STL, and another model for the rest.

    Parameters
    ----------
    horizon : steps that `predict` gives unless told otherwise.
    model : the forecaster of the rest, such as `ETS(24, season_length=None)`; it is cloned.
    season_lengths : an int, a tuple such as (24, 168), or "auto" for all that the calendar implies and the
        history shows three times; ValueError where there is none.
    robust : weigh outliers down; for one season only.

    Attributes
    ----------
    season_lengths_ : tuple of int.
    model_ : the model of the rest, with what it has learned.

    Notes
    -----
    The decomposition of Cleveland, Cleveland, McRae and Terpenning (1990, Journal of Official Statistics 6),
    for several seasons that of Bandara, Hyndman and Bergmeir (2021, arXiv 2107.13462), both by statsmodels.
    Its last cycle is the profile, which does not change after fit; `update` moves the other model. Holes are
    filled by straight lines for the decomposition alone. Intervals are those of the other model. Series
    shorter than two seasons are left as they are, with a FitWarning.

    Examples
    --------
    >>> from fracts.baselines import Naive
    >>> y = np.tile([1.0, 5.0, 3.0], 8) + 10
    >>> STL(3, Naive(3), season_lengths=3).fit(y).predict().round(6)
    array([11., 15., 13.])
    """

    def __init__(
        self,
        horizon: int,
        model: Forecaster,
        *,
        season_lengths: int | tuple[int, ...] | str = "auto",
        robust: bool = False,
    ) -> None:
        self.horizon = horizon
        self.model = model
        self.season_lengths = season_lengths
        self.robust = robust

    @property
    def model_(self) -> Any:
        """The fitted model of the rest; NotFittedError before fit."""
        self._check_fitted()
        return self._machine.inner.model

    def _fit(self, panel: Panel, clock: Clock) -> None:
        needed("statsmodels", "STL")
        if not isinstance(self.model, Forecaster):
            raise TypeError(
                f"model must be a forecaster such as Naive(24), got a {type(self.model).__name__}."
            )
        values = on_every_step(panel, clock, "STL")
        self.season_lengths_ = self._chosen_lengths(clock, values.shape[1])
        rows = [self._profiles(row, origin_of(clock)) for row in values]
        profiles = tuple(np.array(profile) for profile in zip(*rows, strict=True))
        whole = Profiled(None, profiles, np.zeros(len(values), dtype=bool))
        rest = whole.without(panel, np.full(len(values), origin_of(clock)))
        inner = Inner.fitted(self.model, rest, clock, self.series_ids_)
        self._machine = Profiled(inner, profiles, whole.multiplicative)
        self._fitted_ids = list(self.series_ids_)
        bare = [not np.concatenate(found).any() for found in rows]
        short = [name for name, without in zip(self.series_ids_, bare, strict=True) if without]
        if short:
            warnings.warn(
                f"STL: {len(short)} series, first {short[0]!r}, have no season of {self.season_lengths_}: "
                f"two that vary are needed. {type(self.model).__name__} has them whole.",
                FitWarning,
                stacklevel=4,  # the line that called `fit`
            )

    def _chosen_lengths(self, clock: Clock, n_steps: int) -> tuple[int, ...]:
        if self.season_lengths != "auto":
            return check_season_lengths(self.season_lengths)
        if implied := default_season_lengths(clock, n_steps):
            return implied
        raise ValueError(
            f"season_lengths='auto' finds no season: {n_steps} steps of freq {clock.freq} show none three "
            "times. Give the steps in a season, such as season_lengths=12."
        )

    def _profiles(self, row: Array, origin: int) -> list[Array]:
        """The last cycle of each season of `row` (steps,), zeros where it is too short."""
        from statsmodels.tsa.seasonal import MSTL
        from statsmodels.tsa.seasonal import STL as Decomposition

        known = np.flatnonzero(~np.isnan(row))
        filled = without_holes(row[known[0] : known[-1] + 1])
        profiles = {length: np.zeros(length) for length in self.season_lengths_}
        lengths = [length for length in self.season_lengths_ if len(filled) > 2 * length]
        if len(lengths) == 1:
            found = Decomposition(filled, period=lengths[0], robust=self.robust).fit().seasonal[:, None]
        elif lengths:
            found = MSTL(filled, periods=lengths).fit().seasonal
        for k, length in enumerate(lengths):
            profiles[length] = by_place(found[:, k], length, origin + int(known[0]))
        return list(profiles.values())
