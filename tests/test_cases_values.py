"""What trips users of other libraries about values, lengths and horizons: one kind of fault a test."""

import numpy as np
import pandas as pd
import pytest

from fracts.baselines import Mean, Naive, SeasonalNaive
from fracts.forecaster import FracForecaster
from fracts.ridge import FracRidge
from fracts.scores import mase, naive_scale

pytestmark = pytest.mark.filterwarnings("ignore::fracts.checks.FitWarning")

WALK = np.random.default_rng(8).normal(size=150).cumsum()


def small_network(horizon, **options):
    sizes = {"width": 8, "n_layers": 1, "n_heads": 2, "window": 32, "max_epochs": 2, "random_state": 0}
    return FracForecaster(horizon, **(sizes | options))


@pytest.mark.parametrize("constant", [0.0, -3.0, 1e12, 1e-9])
def test_a_constant_goes_on_without_width(entry, constant):
    forecast = entry.make(3).fit(np.full(130, constant)).forecast(level=90)
    np.testing.assert_allclose(forecast, constant, rtol=1e-9, atol=1e-250)


@pytest.mark.parametrize("row", [0, 70, 149])
def test_a_missing_value_is_masked_and_never_spreads(entry, row):
    y = WALK.copy()
    y[row] = np.nan
    assert np.isfinite(entry.make(3).fit(y).forecast(level=90)).all()


def test_business_days_filled_up_to_days_are_learned_from():
    days = pd.bdate_range("2023-01-02", periods=150)
    filled = pd.Series(WALK, days).asfreq("D")
    model = small_network(3, season_lengths=7).fit(filled)
    assert len(model.history_) > 1 and np.isfinite(model.history_[-1][1:]).all()
    assert np.isfinite(model.forecast(level=90)).all()


def test_metrics_leave_missing_truths_out():
    history = np.array([np.nan, 1.0, 3.0, np.nan, 2.0])
    assert naive_scale(history) == 1.5
    assert mase([np.nan, 4.0], [1.0, 1.0], naive_scale(history)) == 2.0


def test_a_series_of_nothing_but_nan_is_refused_by_its_name(entry):
    y = pd.DataFrame({"load": WALK, "wind": np.nan})
    with pytest.raises(ValueError, match="series 'wind': all 150 values are NaN"):
        entry.make(2).fit(y)
    with pytest.raises(ValueError, match="series 'wind': all 150 values are NaN"):
        entry.make(2).fit(WALK).apply(y)


@pytest.mark.parametrize("n_rows", [1, 2, 5, 20])
def test_a_history_shorter_than_a_window_is_enough(n_rows):
    model = small_network(6, window=720).fit(WALK[:n_rows])
    assert np.isfinite(model.forecast(level=90)).all()


def test_only_rows_of_the_past_are_needed(entry):
    model = entry.make(4).fit(WALK[:100])
    assert model.predict().shape == (4,) and model.apply(WALK[:7]).predict().shape == (4,)


@pytest.mark.parametrize("horizon", [1, 23, 25, 65])
def test_any_horizon_is_served_with_intervals(entry, horizon):
    forecast = entry.make(24).fit(WALK).forecast(horizon, level=[50, 90])
    assert forecast.shape == (horizon, 5) and np.isfinite(forecast).all()
    assert (np.diff(forecast[:, 1:], axis=1) >= 0).all()


def test_intervals_grow_on_beyond_the_trained_horizon():
    model = FracRidge(8, season_lengths=()).fit(WALK)
    width = np.diff(model.forecast(64, level=80)[:, 1:], axis=1)[:, 0]
    assert width[63] > 1.5 * width[7] > 1.5 * width[0]


def test_a_season_keeps_its_amplitude_seven_horizons_on():
    t = np.arange(12 * 64)
    y = 10 + np.sin(2 * np.pi * t / 64) + 0.01 * np.random.default_rng(0).normal(size=t.size)
    forecast = FracRidge(64, season_lengths=64).fit(y).forecast(7 * 64)
    assert np.ptp(forecast[-64:]) > 1.8 and np.ptp(forecast[:64]) == pytest.approx(2, abs=0.1)


def test_a_weekly_cycle_of_672_quarter_hours_is_found_and_continued():
    stamps = pd.date_range("2024-01-01", periods=672 * 4, freq="15min")
    weekly = np.random.default_rng(1).normal(size=672)
    y = pd.Series(np.tile(weekly, 4), stamps)
    model = SeasonalNaive(672).fit(y)
    assert model.season_lengths_ == (672,)
    np.testing.assert_array_equal(model.predict(), weekly)
    assert FracRidge(4).fit(y).season_lengths_ == (96, 672)


def test_the_memory_reaches_past_every_window():
    y = np.tile(np.random.default_rng(2).normal(size=700), 3)
    model = small_network(2, season_lengths=700, window=64).fit(y)
    moved = y.copy()
    moved[700:702] += 50.0  # a season before what comes next but one
    assert np.abs(model.apply(moved[:1399]).forecast() - model.apply(y[:1399]).forecast()).max() > 1.0


def test_small_returns_are_forecast_in_their_own_units(entry):
    returns = 1e-3 * np.random.default_rng(3).standard_t(4, size=150)
    forecast = entry.make(3).fit(returns).forecast(level=90)
    assert (np.abs(forecast) < 0.02).all() and (forecast[:, 2] - forecast[:, 1] > 1e-3).all()


def test_short_floats_in_are_float64_out(entry):
    model = entry.make(3).fit(WALK.astype("float32"))
    assert model.forecast().dtype == np.float64
    np.testing.assert_allclose(
        model.forecast(), entry.make(3).fit(WALK.astype("float32").astype(float)).forecast(), rtol=0, atol=0
    )


def test_the_intervals_of_a_single_point_are_finite():
    for make in (Naive, Mean):
        assert np.isfinite(make(3).fit([5.0]).forecast(level=99)).all()
