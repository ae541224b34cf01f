"""`FracRidge` on series whose best forecasts are known, and on series that trip others."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fracts.checks import FitWarning
from fracts.datasets import arfima_one_step, load_traffic_volume, make_arfima
from fracts.ridge import FracRidge

nan = np.nan
LEVEL = [50, 90]
BENCHMARKS = Path(__file__).parent / "benchmarks"


def noise(rows=300, n_series=1, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, n_series)).squeeze()


def walk(rows=300, seed=0):
    return noise(rows, seed=seed).cumsum() + 20


@pytest.mark.slow
def test_fitted_once_on_long_memory_it_stays_within_4_percent_of_the_best_forecast():
    y = make_arfima(20_000, 0.4, random_state=0)
    model = FracRidge(1, season_lengths=()).fit(y[:4096])
    forecasts = np.empty(20_000 - 4096)
    for step, value in enumerate(y[4096:]):
        forecasts[step] = model.forecast(point="mean")[0]
        model.learn_one(value)
    best = np.mean((y[4096:] - arfima_one_step(y, 0.4)[4096:]) ** 2)
    assert np.mean((y[4096:] - forecasts) ** 2) < 1.04 * best


def test_two_seasons_and_a_level_go_on():
    t = np.arange(1500.0)
    y = 100 + 5 * np.sin(2 * np.pi * t / 24) + 2 * np.cos(2 * np.pi * t / 168) + 0.1 * noise(1500)
    model = FracRidge(48, season_lengths=(24, 168)).fit(y[:1400])
    assert {24, 168} <= set(model.memory_spectrum()["period"].round(6))
    assert np.sqrt(np.mean((model.predict() - y[1400:1448]) ** 2)) < 0.15


def test_intervals_hold_about_the_share_they_say():
    y = make_arfima(3000, 0.4, random_state=1)
    model, inside = FracRidge(3, season_lengths=()).fit(y[:1500]), []
    for t in range(1500, 2997):
        table = model.forecast(level=90)
        inside.append((table[:, 1] <= y[t : t + 3]) & (y[t : t + 3] <= table[:, 2]))
        model.learn_one(y[t])
    assert 0.86 < np.mean(inside) < 0.94


@pytest.mark.parametrize("unit", [1000.0, 1e-9, -1.0])
def test_another_unit_gives_the_same_forecast_in_that_unit(unit):
    table, other = (FracRidge(4).fit(y).predict(8, level=LEVEL) for y in (walk(), unit * walk()))
    expected = unit * (table if unit > 0 else table[:, [0, 4, 3, 2, 1]])
    np.testing.assert_allclose(other, expected, rtol=1e-9)


@pytest.mark.parametrize("shift", [1.0, -1e4, 1e9])
def test_another_level_gives_the_same_forecast_at_that_level(shift):
    table, other = (FracRidge(4).fit(y).predict(8, level=LEVEL) for y in (walk(), walk() + shift))
    np.testing.assert_allclose(other - shift, table, rtol=0, atol=1e-9 * abs(shift))


@pytest.mark.parametrize("longest", [8.0, 1e6])
def test_the_centre_forgets_over_its_own_memory_whatever_the_timescales(longest):
    y = walk(400)
    leaning = {"season_lengths": (), "anchor": "centre", "penalty": 1e15}
    model = FracRidge(1, timescales=(1.0, longest), centre_memory=50.0, **leaning).fit(y)
    weight = np.exp(-np.arange(400)[::-1] / 50)
    assert model.predict(point="mean")[0] == pytest.approx(weight @ y / weight.sum(), rel=1e-6)


def test_small_changes_of_large_numbers_are_forecast_as_well_as_those_of_small_ones():
    y = make_arfima(500, 0.4, random_state=2)
    small, large = (FracRidge(3, season_lengths=()).fit(y + level).predict() for level in (0.0, 2.0**30))
    np.testing.assert_allclose(large - 2.0**30, small, atol=1e-5)


def test_integers_are_numbers():
    counts = np.random.default_rng(0).poisson(20, 200)
    np.testing.assert_array_equal(
        FracRidge(3).fit(counts).predict(), FracRidge(3).fit(counts * 1.0).predict()
    )


def test_values_missing_at_the_start_are_no_history():
    y = walk()
    late = FracRidge(3).fit(np.append(np.full(40, nan), y)).predict(level=90)
    assert np.isfinite(late).all()
    np.testing.assert_allclose(late[:, 0], FracRidge(3).fit(y).predict(), atol=0.5)


def test_a_series_that_falls_silent_keeps_a_forecast_and_leaves_the_others_alone():
    y = pd.DataFrame({"a": walk(seed=1), "b": walk(seed=2)})
    model = FracRidge(3, pooled=True).fit(y)
    later = pd.DataFrame({"a": walk(50, seed=3), "b": nan}, index=range(300, 350))
    alone = model.apply(y[["a"]]).update(later[["a"]]).predict()
    table = model.update(later).predict()
    np.testing.assert_allclose(table["a"], alone["a"], rtol=1e-12)
    assert y["b"].min() < table["b"].min() and table["b"].max() < y["b"].max()


def test_a_series_much_shorter_than_the_others_is_forecast_with_their_weights():
    y = pd.DataFrame({"a": walk(seed=1), "b": walk(seed=2)})
    y.loc[:279, "b"] = nan
    model = FracRidge(3).fit(y)
    assert model.pooled_ and abs(model.predict()["b"].iloc[0] - y["b"].iloc[-1]) < 3


def test_series_with_weights_of_their_own_are_as_alone_but_for_the_common_penalty():
    y = np.column_stack([walk(600, seed=1), noise(600, seed=2)])
    both = FracRidge(2, n_modes=8, season_lengths=()).fit(y)
    assert not both.pooled_
    spectrum = both.memory_spectrum()
    assert (
        spectrum.groupby("series")["weight"].sum()[0]
        > 3 * spectrum.groupby("series")["weight"].sum().abs()[1]
    )


def test_a_history_too_short_to_try_anything_is_forecast_with_a_warning():
    with pytest.warns(FitWarning, match=r"2 rows.*normal law.*longer history"):
        table = FracRidge(30).fit(walk(2)).predict(level=90)
    assert np.isfinite(table).all() and (table[:, 1] < table[:, 0]).all()


def test_a_horizon_longer_than_the_history_is_forecast_with_the_errors_of_the_last_lead_known():
    table = FracRidge(60).fit(walk(50)).predict(level=90)
    width = table[:, 2] - table[:, 1]
    assert np.isfinite(table).all() and width[0] < width[5]
    np.testing.assert_allclose(width[40:], width[39])


def test_a_history_long_enough_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FracRidge(3).fit(walk(60))


def assert_within(table, y):
    assert (y.min() <= table).all() and (table <= y.max()).all()


def test_one_wild_value_moves_the_forecast_by_less_than_a_coefficient_is_off_by_chance():
    """Of 300 values of noise it is 1 / 17."""
    y = noise()
    y[-6] = 1000.0
    assert (np.abs(FracRidge(3).fit(y).predict()) < 1000 / 17).all()


def test_after_a_step_of_the_level_the_forecast_overshoots_by_a_fifth_of_it_at_most():
    y = np.append(np.full(250, 20.0), np.full(50, 25.0)) + 0.001 * noise()
    table = FracRidge(3).fit(y).predict()
    assert (table > 24.0).all() and (table < 26.0).all()


def test_a_season_on_a_wandering_level_is_forecast_nearly_as_well_as_the_level_alone_can_be():
    rng, size = np.random.default_rng(0), 0.1
    y = np.tile(rng.normal(size=168), 12) + np.cumsum(size * rng.normal(size=168 * 12))
    model, errors = FracRidge(24, season_lengths=168).fit(y[: 168 * 10]), []
    for value in y[168 * 10 :]:
        errors.append(abs(model.forecast()[0] - value))
        model.learn_one(value)
    assert np.mean(errors) < 1.15 * size * np.sqrt(2 / np.pi)


@pytest.mark.parametrize("rounding", [True, False], ids=["a rounding error", "a blip"])
def test_a_series_that_had_almost_no_spread_at_first_is_forecast_within_its_range(rounding):
    draws = np.random.default_rng(0)
    if rounding:
        y = np.r_[np.full(300, 0.3), 0.1 + 0.2, np.full(50, 0.3), draws.normal(5, 1, 300)]
    else:
        y = np.r_[np.zeros(200), 1e-9, np.zeros(100), draws.poisson(3, 300)]
    assert_within(FracRidge(3).fit(y).predict(), y)


def test_fitting_without_some_rows_is_fitting_with_rows_without_value():
    y = pd.Series(walk(), pd.date_range("2024-01-01", periods=300, freq="D"))
    seen = np.random.default_rng(5).random(300) < 0.7
    seen[[0, -1]] = True
    dropped, missing = (FracRidge(4, season_lengths=7).fit(part) for part in (y[seen], y.where(seen)))
    assert dropped.penalty_ == missing.penalty_
    np.testing.assert_allclose(dropped.predict(8, level=LEVEL), missing.predict(8, level=LEVEL), rtol=1e-9)


def test_a_gap_in_real_time_is_one_longer_step():
    rng = np.random.default_rng(0)
    stamps = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.cumsum(rng.integers(40, 80, 300)), unit="s")
    y = pd.Series(walk(), stamps)
    model = FracRidge(2, season_lengths=()).fit(y)
    late = stamps[-1] + pd.Timedelta("3h")
    at_once = model.apply(y).update(pd.Series([nan], [late])).forecast()
    halves = (
        model.apply(y).update(pd.Series([nan, nan], [stamps[-1] + pd.Timedelta("47min"), late])).forecast()
    )
    np.testing.assert_allclose(at_once, halves, rtol=1e-10)
    assert (abs(at_once - model.forecast()[-1]) < y.std() / 10).all()  # the last lead goes on


def test_the_spectrum_says_what_an_impulse_does_to_the_forecast():
    """The weights are of modes of unit gain: summed over them, the kernel at lag 0 and further."""
    y = make_arfima(2000, 0.4, random_state=3)
    model = FracRidge(1, season_lengths=()).fit(y)
    spectrum = model.memory_spectrum()
    assert (spectrum["period"] == np.inf).all() and spectrum["series"].isna().all()
    tau, weight = spectrum["timescale"].to_numpy(), spectrum["weight"].to_numpy()
    lags = np.arange(40)
    with np.errstate(divide="ignore"):  # the last value is a mode of timescale 0
        gain = -np.expm1(-1 / tau)
        kernel = np.where(lags[:, None] > 0, np.exp(-np.maximum(lags, 1)[:, None] / tau), 1.0) @ (
            weight * gain
        )
    best = 0.4 * np.cumprod(np.append(1.0, (np.arange(1.0, 40) - 0.4) / np.arange(2.0, 41)))
    np.testing.assert_allclose(kernel, best, atol=0.05)
    assert kernel[1:].sum() == pytest.approx(best[1:].sum(), abs=0.1)


def test_traffic_is_forecast_better_than_last_week():
    y = load_traffic_volume()
    model = FracRidge(24).fit(y[:"2017-06-30"])
    errors, weekly = [], []
    for day in pd.date_range("2017-07-01", periods=28):
        truth = y[day : day + pd.Timedelta("23h")]
        errors.append(truth - model.predict())
        weekly.append(truth - y.shift(168)[truth.index])
        model.update(truth)
    assert np.nanmean(np.square(errors)) < 0.8 * np.nanmean(np.square(weekly))


@pytest.mark.slow
@pytest.mark.skipif("FRACTS_DATA" not in os.environ, reason="FRACTS_DATA names no folder of data")
@pytest.mark.parametrize("script", ["ridge_volatility.py", "ridge_etth1.py"])
def test_the_figures_of_the_benchmark_hold(script):
    command = [sys.executable, str(BENCHMARKS / script), "--no-record"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
