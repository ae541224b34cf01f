"""Forecasts after rows without a value: those of the last value, so many steps further on."""

import functools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts import FracForecaster, FracRidge
from fracts.bank import ModeBank
from fracts.density import Density
from fracts.forecasts import QUANTILES
from fracts.lateness import errors_after
from fracts.memory import mode_timescales
from fracts.series import Panel

nan = np.nan
BANK = ModeBank(mode_timescales(1.0, 1000.0, 8)[:-1], np.empty(0))
HORIZON = 8


def walks(n_rows, n_series, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_series)).cumsum(0)


def late(y, steps):
    """`y` whose last rows have no value."""
    y = y.copy()
    y[len(y) - steps :] = nan
    return y


@functools.cache
def fitted(kind):
    make = {
        "ridge": lambda: FracRidge(HORIZON, season_lengths=4),
        "each its own": lambda: FracRidge(HORIZON, season_lengths=4, pooled=False),
        "smoothed": lambda: FracRidge(HORIZON, season_lengths=4, pooled=True),
        "adaptive": lambda: FracRidge(HORIZON, calibration="adaptive"),
        "no layers": lambda: FracForecaster(HORIZON, n_layers=0),
    }[kind]
    return make().fit(walks(300, 3) + 3 * np.sin(np.arange(300)[:, None] * np.pi / 2))


@pytest.mark.parametrize("steps", [1, 3, 7])
@pytest.mark.parametrize("kind", ["ridge", "each its own", "smoothed", "adaptive", "no layers"])
def test_a_later_forecast_is_that_of_the_last_value_further_on(kind, steps):
    y = walks(200, 3, seed=1)
    before = fitted(kind).apply(y[:-steps]).forecast(level=[50, 90])
    after = fitted(kind).apply(late(y, steps)).forecast(level=[50, 90])
    np.testing.assert_allclose(after[: HORIZON - steps], before[steps:], rtol=0, atol=1e-9)
    medians = fitted(kind).apply(late(y, steps)).forecast()
    np.testing.assert_allclose(medians, after[..., 0], rtol=0, atol=1e-9)


def test_so_it_is_with_covariates():
    days = pd.date_range("2024-01-01", periods=330, freq="D")
    draws = np.random.default_rng(0)
    X = pd.DataFrame({"heat": draws.normal(size=330), "flow": draws.normal(size=330).cumsum()}, days)
    y = pd.Series(walks(300, 1)[:, 0] + 2 * X["heat"].to_numpy()[:300], days[:300])
    model = FracRidge(HORIZON, past_only=("flow",), season_lengths=7).fit(y, X)
    before = model.apply(y[:-3], X).predict(X=X, level=90)
    after = model.apply(pd.Series(late(y.to_numpy(), 3), y.index), X).predict(X=X, level=90)
    np.testing.assert_allclose(after[:-3], before[3:], rtol=0, atol=1e-9)


def test_in_real_time_it_is_the_nearest_lead():
    draws = np.random.default_rng(0)
    stamps = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.cumsum(draws.integers(40, 80, 300)), unit="s")
    model = FracRidge(HORIZON, season_lengths=(), anchor="last")
    model.fit(pd.Series(walks(300, 1)[:, 0], stamps), base_step="60s")
    before = model.forecast(level=90)
    late = model.update(pd.Series([nan], [stamps[-1] + pd.Timedelta("138s")])).forecast(level=90)
    np.testing.assert_allclose(late[: HORIZON - 2], before[2:], rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["ridge", "each its own", "smoothed", "adaptive"])
def test_a_stream_a_batch_and_a_pass_over_all_origins_say_the_same_of_it(kind):
    y = walks(260, 3, seed=2)
    y[195:203, 0] = y[210:230, 0] = y[215::2, 1] = y[240:, 2] = nan
    whole = fitted(kind).apply(y).forecast(level=90)
    stream = fitted(kind).apply(y[:200])
    rows, levels = Panel(y[200:].T, np.arange(200.0, 260.0)), np.array([0.05, 0.5, 0.95])
    nothing = lambda at: np.empty((3, len(at), HORIZON, 0))  # noqa: E731
    rolled = stream._roll(stream._state, rows, np.arange(61), nothing, HORIZON, levels)
    passed = np.concatenate([said.quantiles for said in rolled], axis=1)
    for row, values in enumerate(y[200:]):
        table = stream.forecast(level=90)[..., [1, 0, 2]]
        np.testing.assert_allclose(passed[:, row].swapaxes(0, 1), table, rtol=0, atol=1e-9)
        stream.learn_many(values)
    np.testing.assert_allclose(stream.forecast(level=90), whole, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["ridge", "smoothed", "adaptive", "no layers"])
def test_no_bit_of_a_series_with_a_value_moves_where_another_has_none(kind):
    y = walks(200, 3, seed=3)
    gappy = y.copy()
    gappy[-5:, 1] = nan
    full, some = fitted(kind).apply(y), fitted(kind).apply(gappy)
    for options in ({}, {"level": 90}):
        told, expected = some.forecast(**options), full.forecast(**options)
        np.testing.assert_array_equal(told[:, [0, 2]], expected[:, [0, 2]])
        assert not np.allclose(told[:, 1], expected[:, 1])


@pytest.mark.parametrize("horizon", [1, 6, 24])
@pytest.mark.parametrize("steps", [1, 10, 30])
def test_intervals_of_a_walk_hold_as_much_after_a_gap_as_without_one(horizon, steps):
    model = FracRidge(horizon, season_lengths=()).fit(walks(1000, 1, seed=5))
    y = walks(501, 200, seed=6)
    held = []
    for gap in (0, steps):
        low, high = model.apply(late(y[:-1], gap)).forecast(level=80)[0, :, 1:].T
        held.append(np.mean((low <= y[-1]) & (y[-1] <= high)))
    assert abs(held[1] - held[0]) < 0.15


def test_after_one_row_without_a_value_a_walk_is_still_expected_where_it_was():
    model = FracRidge(4, season_lengths=()).fit(walks(1000, 1, seed=5))
    y = walks(500, 50, seed=7)
    errors = model.apply(late(y, 1)).forecast()[0] - y[-2]
    assert np.abs(errors).mean() < 0.5


@pytest.mark.parametrize("steps", [3, 30, 501])
@pytest.mark.parametrize("anchor", ["auto", "centre"])
def test_a_season_goes_on_through_a_gap_however_long(anchor, steps):
    rows = np.arange(1012)
    y = 3 * np.sin(rows * np.pi / 6) + 0.1 * np.random.default_rng(0).normal(size=1012)
    model = FracRidge(24, season_lengths=12, anchor=anchor).fit(y[:400])
    said = model.apply(late(y[: 400 + steps], steps)).forecast()
    assert np.abs(said - 3 * np.sin(np.arange(400 + steps, 424 + steps) * np.pi / 6)).max() < 1.0


def test_a_series_seen_every_second_row_is_forecast_alike_from_both():
    y = np.sin(np.arange(400) * np.pi / 10)
    y[1::2] = nan
    model = FracRidge(6, season_lengths=20).fit(y[:-1])
    at_value = model.forecast(level=90)
    np.testing.assert_allclose(model.learn_one(nan).forecast(level=90)[1:5:2], at_value[2:6:2], atol=1e-9)


def test_forecasts_do_not_jump_as_modes_fade_beyond_recall():
    model = FracRidge(1, season_lengths=()).fit(walks(1000, 1, seed=5))
    y = walks(500, 1, seed=8) + 50
    model = model.apply(y)
    said = np.array([model.learn_one(nan).forecast().item() for _ in range(2000)])
    assert np.abs(np.diff(said)).max() < 0.5 and np.abs(said - y[-1]).max() < 1.0 < np.std(y) / 4


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.floats(0.05, 1.0), st.sampled_from([1.0, 0.37]), st.integers(0, 3000))
def test_the_memory_knows_how_long_it_has_seen_no_value(seed, kept, step, gap):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((3, 200)) < kept, rng.normal(size=(3, 200)), nan)
    values[:, 0], values[2, 1:] = 1.0, nan
    times = np.append(np.cumsum(rng.uniform(0.5, 1.5, 199)) * step if step != 1.0 else np.arange(199.0), 0.0)
    times[-1], values[:, -1] = times[-2] + gap + step, nan
    density = Density(BANK)
    raw = BANK.run(BANK.empty(3), values, np.diff(times, prepend=times[0]))
    state = {"time": np.full(3, times[-1]), "modes": raw[:, -1]}
    state |= density.run(density.empty(3), Panel(values, times), raw)[1]
    last = 199 - (~np.isnan(values))[:, ::-1].argmax(1)
    np.testing.assert_allclose(density.since(state), times[-1] - times[last], rtol=0, atol=1e-6)


def test_before_any_value_nothing_is_late():
    density = Density(BANK)
    empty = {"time": np.zeros(2), "modes": BANK.empty(2)} | density.empty(2)
    assert density.since(empty) is None


def test_errors_grow_beyond_the_horizon_as_within_it_and_never_shrink():
    shape = np.linspace(-0.05, 0.05, QUANTILES.size)
    walk = (np.sqrt(np.arange(1, 9))[:, None] * shape)[None]
    np.testing.assert_allclose(errors_after(walk, np.array([4]), 1)[0, 0], walk[0, 4])
    np.testing.assert_allclose(errors_after(walk, np.array([24]), 1)[0, 7], np.sqrt(32) * shape)
    shrinking = walk[:, ::-1]
    np.testing.assert_allclose(errors_after(shrinking, np.array([24]), 1)[0, 7], shrinking[0, 7])
    far = errors_after(walk, np.array([10**6]), 1)
    assert 0.5 < np.abs(far).max() < 3.0  # the spread of the series, about
