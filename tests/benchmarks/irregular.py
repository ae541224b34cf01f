"""Do real time steps help where stamps are irregular?

    FRACTS_DATA=folder python tests/benchmarks/irregular.py

Three series of which a model sees some values at irregular times: the monthly sunspot numbers and an hour of
heart beats with half of the values left out at random, and a fractional Ornstein-Uhlenbeck process
(dX = -X dt / 20 + dB, Hurst exponent 0.8) seen at the points of a Poisson process. Fitted on the first two
thirds, rolled on through the rest, one forecast at every value seen; the truth at each lead is that of the
full series. Three draws of what is seen. RMSE over all origins, in units of that of the last value.

`interpolated` is the same FracRidge on a regular grid that the values seen are interpolated to, linearly and
without a look at the future. `statsmodels` is the ARMA of the least AIC among five on the same grid, with
NaN where nothing was seen (its state space model filters over them). FracRidge and FracForecaster get the
stamps as they are.
"""

import os
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from record import record
from statsmodels.tsa.statespace.sarimax import SARIMAX

from fracts import FracForecaster, FracRidge
from fracts.datasets import load_heart_intervals, make_fgn

DRAWS, KEPT, LEADS = 3, 0.5, (1, 5, 20)
ORDERS = (1, 0, 0), (1, 0, 1), (2, 0, 1), (3, 0, 2), (9, 0, 0)
SEASONS = {"sunspots": (132,)}  # months of a solar cycle; the others have none
FINE = 16  # points of the simulation in a mean gap


class Full(NamedTuple):
    """A series as it is: times (n,) in units of `step`, increasing, and values (n,)."""

    times: np.ndarray
    values: np.ndarray
    step: pd.Timedelta

    def at(self, times):
        """Value in force at each of `times`, NaN beyond the end."""
        row = np.searchsorted(self.times, times - 1e-6)
        return np.append(self.values, np.nan)[row]


def sunspots(rng):
    table = pd.read_csv(Path(os.environ["FRACTS_DATA"]) / "sunspots_monthly.csv")
    return Full(np.arange(float(len(table))), table["sunspots"].to_numpy(), pd.Timedelta("30D"))


def heart(rng):
    intervals = load_heart_intervals().to_numpy()
    step = np.median(intervals) / KEPT  # the typical distance of the beats kept
    return Full(np.cumsum(intervals) / step, intervals, pd.Timedelta(step, "ms"))


def ornstein_uhlenbeck(rng):
    n, dt = 4000 * FINE, 1 / FINE
    noise = make_fgn(n, 0.8, random_state=rng) * dt**0.8
    decay = np.exp(-dt / 20)
    values = np.zeros(n)
    for i in range(1, n):
        values[i] = decay * values[i - 1] + noise[i]
    return Full(np.arange(n) * dt, values, pd.Timedelta("1s"))


SERIES = {
    "sunspots": (sunspots, KEPT),
    "heart": (heart, KEPT),
    "fractional OU": (ornstein_uhlenbeck, 1 / FINE),
}


def last_value(name, full, seen, split):
    return np.repeat(full.values[seen[split:], None], len(LEADS), axis=1)


def native(make):
    """Forecasts of a model that gets the stamps as they are."""

    def forecasts(name, full, seen, split):
        stamps = pd.Timestamp("2000-01-01") + full.times[seen] * full.step
        y = pd.Series(full.values[seen], pd.DatetimeIndex(stamps.astype("datetime64[ns]")))
        model = make(max(LEADS), season_lengths=SEASONS.get(name, ()))
        model.fit(y[: split + 1], base_step=full.step)
        rows = [model.forecast(point="mean")]
        for at in range(split + 1, len(y)):
            rows.append(model.update(y[at : at + 1]).forecast(point="mean"))
        return np.array(rows)[:, np.array(LEADS) - 1]

    return forecasts


def interpolated(name, full, seen, split):
    times, values = full.times[seen], full.values[seen]
    grid = np.arange(np.ceil(times[0]), times[-1] + 1e-9)
    on_grid = np.interp(grid, times, values)
    ends = np.searchsorted(grid, times + 1e-9)  # points of the grid up to each value
    model = FracRidge(max(LEADS) + 1, season_lengths=SEASONS.get(name, ())).fit(on_grid[: ends[split]])
    rows = []
    for at in range(split, len(times)):
        if at > split and ends[at] > ends[at - 1]:
            model.update(on_grid[ends[at - 1] : ends[at]])
        ahead = model.forecast(point="mean")
        due = times[at] + np.array(LEADS) - grid[ends[at] - 1]
        rows.append(np.interp(due, np.arange(1, len(ahead) + 1), ahead))
    return np.array(rows)


def statsmodels(name, full, seen, split):
    times, values = full.times[seen], full.values[seen]
    cell = np.round(times - times[0]).astype(int)
    grid = np.full(cell[-1] + 1, np.nan)
    grid[cell] = values
    learned, mean = grid[: cell[split] + 1], values[: split + 1].mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of starting values and of convergence
        fits = [SARIMAX(learned - mean, order=order).fit(disp=0) for order in ORDERS]
    best = min(fits, key=lambda fit: fit.aic)
    filtered = SARIMAX(grid - mean, order=best.model.order).filter(best.params)
    transition, design = filtered.model["transition"], filtered.model["design"]
    states = filtered.filtered_state[:, cell[split:]]
    ahead = [(design @ np.linalg.matrix_power(transition, lead) @ states)[0] for lead in LEADS]
    return mean + np.array(ahead).T


def network(horizon, season_lengths):
    return FracForecaster(horizon, season_lengths=season_lengths, random_state=0)


MODELS = {
    "FracForecaster": native(network),
    "FracRidge": native(FracRidge),
    "interpolated": interpolated,
    "statsmodels": statsmodels,
    "last value": last_value,
}

print(f"{'series':<14} {'model':<15} " + " ".join(f"{f'h={lead}':>7}" for lead in LEADS) + f" {'seconds':>8}")
rows = []
for name, (draw, kept) in SERIES.items():
    squares = {model: np.zeros(len(LEADS)) for model in MODELS}
    seconds = dict.fromkeys(MODELS, 0.0)
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        full = draw(rng)
        seen = np.flatnonzero(rng.random(full.times.size) < kept)
        split = 2 * len(seen) // 3
        truth = full.at(full.times[seen[split:], None] + np.array(LEADS))
        for model, forecasts in MODELS.items():
            start = time.perf_counter()
            errors = forecasts(name, full, seen, split) - truth
            seconds[model] += time.perf_counter() - start
            rmse = np.sqrt(np.nanmean(errors**2, axis=0))
            squares[model] += rmse**2 / DRAWS
            for lead, error in zip(LEADS, rmse, strict=True):
                rows.append({"series": name, "model": model, "draw": seed, "h": lead, "rmse": error})
    for model in MODELS:
        ratio = np.sqrt(squares[model] / squares["last value"])
        told = " ".join(f"{value:>7.3f}" for value in ratio)
        print(f"{name:<14} {model:<15} {told} {seconds[model]:>8.1f}", flush=True)
record("irregular", rows)
