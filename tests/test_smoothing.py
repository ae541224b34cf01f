"""Exponential smoothing of short series, against the recursion written out, and what it is to a panel."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts import FracRidge
from fracts.recall import beside_smoothing, linear_memory
from fracts.series import Panel
from fracts.smoothing import DRIFTS, GAINS, SEASON_GAINS, Smoothers

nan = np.nan
LEADS = np.arange(1, 8)


def holed(rng, rows=40, n_series=3, whole=True):
    """Walks with a third of the values missing, and times."""
    values = rng.normal(size=(n_series, rows)).cumsum(1)
    values[rng.random(values.shape) < 0.3] = nan
    steps = rng.integers(1, 3, rows) if whole else rng.exponential(size=rows)
    return values, np.cumsum(steps).astype(float)


def written_out(values, times, season, gain, drift, season_gain):
    """Forecasts (rows, leads) of one member for one series, value by value, and its errors one step ahead."""
    level, slope, count, profile, seen = nan, 0.0, 0, np.zeros(season), np.zeros(season)
    said, errors, told, last = [], [], [], nan
    for value, time in zip(values, times, strict=True):
        if not np.isnan(value):
            phase = int(np.floor(time)) % season
            count += 1
            if count == 1:
                level = value
            step = 0.0 if count == 1 else time - last
            rate = max(gain, 1 / count)
            error = value - level - drift * slope * step - profile[phase]
            level += drift * slope * step + rate * error
            seen[phase] += 1
            if season_gain is not None:
                profile[phase] += max(season_gain, 1 / (1 + seen[phase])) * (1 - rate) * error
            errors.append(error)
            told.append((time, value))
            last = time
            slope = np.polyfit(*np.transpose(told), 1)[0] if count > 2 else 0.0
        due = np.floor(time).astype(int) + LEADS
        said.append(level + drift * slope * (time - last + LEADS) + profile[due % season])
    return np.array(said), np.array(errors)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.booleans())
@settings(max_examples=25, deadline=None)
def test_what_is_said_is_the_mean_of_the_members_by_the_likelihood_of_their_errors(seed, season, whole):
    (values,), times = holed(np.random.default_rng(seed), n_series=1, whole=whole)
    smoothing = Smoothers((season,))
    _, said = smoothing.run(smoothing.empty(1), values[None], times, LEADS)
    members = [
        written_out(values, times, season, gain, drift, season_gain)
        for season_gain in (None, *SEASON_GAINS)
        for gain in GAINS
        for drift in smoothing.drifts
    ]
    counted = (~np.isnan(values)).cumsum()
    expected = []
    for row, n_seen in enumerate(counted):
        squares = np.array([(errors[season:n_seen] ** 2).sum() for _, errors in members])
        share = np.maximum(squares / max(squares.max(), 1e-300), 1e-13)
        weights = (share / share.min()) ** (-max(n_seen - season, 0) / 2)
        expected.append(sum(w * m[row] for w, (m, _) in zip(weights / weights.sum(), members, strict=True)))
    np.testing.assert_allclose(said[0], expected, rtol=1e-7, atol=1e-8)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 39), max_size=4), st.booleans())
@settings(max_examples=25, deadline=None)
def test_any_cutting_gives_one_state_and_one_reading(seed, cuts, whole):
    values, times = holed(np.random.default_rng(seed), whole=whole)
    smoothing = Smoothers((2, 5))
    at_once, said = smoothing.run(smoothing.empty(3), values, times, LEADS)
    state = smoothing.empty(3)
    edges = [0, *sorted(set(cuts)), times.size]
    for start, stop in pairwise(edges):
        state = smoothing.advance(state, values[:, start:stop], times[start:stop])
        np.testing.assert_array_equal(smoothing.read(state, times[stop - 1], LEADS.size), said[:, stop - 1])
    np.testing.assert_array_equal(state, at_once)


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=25, deadline=None)
def test_dropped_rows_and_rows_without_value_give_one_state(seed, whole):
    values, times = holed(np.random.default_rng(seed), n_series=1, whole=whole)
    seen, smoothing = ~np.isnan(values[0]), Smoothers((4,))
    state = smoothing.advance(smoothing.empty(1), values, times)
    np.testing.assert_array_equal(state, smoothing.advance(smoothing.empty(1), values[:, seen], times[seen]))


@pytest.mark.parametrize("drifts", DRIFTS, ids=str)
def test_units_and_level_of_a_series_are_those_of_what_is_said(drifts):
    values, times = holed(np.random.default_rng(0))
    smoothing = Smoothers((4,), drifts)
    said = smoothing.run(smoothing.empty(3), values, times, LEADS)[1]
    other = smoothing.run(smoothing.empty(3), 1000 * values - 1e5, times, LEADS)[1]
    np.testing.assert_allclose(other, 1000 * said - 1e5, rtol=1e-9)


@pytest.mark.parametrize("seasons", [(), (4,), (3, 5)], ids=str)
def test_compiled_or_in_numpy_the_smoothers_say_the_same(seasons, request):
    values, times = holed(np.random.default_rng(2), rows=60, whole=False)
    smoothing = Smoothers(seasons)
    compiled = smoothing.run(smoothing.empty(3), values, times, LEADS)
    request.getfixturevalue("without_numba")
    in_numpy = smoothing.run(smoothing.empty(3), values, times, LEADS)
    for one, other in zip(compiled, in_numpy, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_series_have_nothing_to_do_with_each_other_and_what_is_to_come_says_nothing():
    values, times = holed(np.random.default_rng(1))
    smoothing = Smoothers((4,))
    said = smoothing.run(smoothing.empty(3), values, times, LEADS)[1]
    alone = smoothing.run(smoothing.empty(1), values[1:2], times, LEADS)[1]
    np.testing.assert_allclose(said[1:2], alone, rtol=1e-12)
    moved = values.copy()
    moved[:, 25:] += 100.0
    np.testing.assert_array_equal(
        smoothing.run(smoothing.empty(3), moved, times, LEADS)[1][:, :25], said[:, :25]
    )


def test_the_state_given_is_left_alone_and_nothing_is_said_before_the_first_value():
    smoothing, times = Smoothers((4,)), np.arange(3.0)
    start = smoothing.empty(2)
    values = np.array([[nan, 2.0, nan], [nan, nan, nan]])
    after, said = smoothing.run(start, values, times, LEADS)
    assert not start.any()
    assert np.isnan(said[1]).all() and np.isnan(said[0, 0]).all()
    assert (said[0, 1:] == 2.0).all()
    assert after.shape == start.shape
    after.flags.writeable = False
    np.testing.assert_array_equal(smoothing.read(after, 2.0, LEADS.size), said[:, -1])
    np.testing.assert_array_equal(smoothing.advance(after, values[:, :0], times[:0]), after)


def test_a_walk_is_heard_with_the_largest_gain_noise_with_the_least_and_a_season_where_there_is_one():
    rng, times = np.random.default_rng(0), np.arange(400.0)
    noise = rng.normal(size=(3, 400))
    values = np.stack([noise[0].cumsum(), noise[1], noise[2] + 5 * np.tile([1.0, -1.0, 2.0, -2.0], 100)])
    smoothing = Smoothers((4,))
    weights = smoothing.weights(smoothing.advance(smoothing.empty(3), values, times))
    np.testing.assert_allclose(weights.sum((1, 2)), 1.0)
    by_gain = weights.sum(1).reshape(3, len(GAINS), -1).sum(-1)
    np.testing.assert_array_equal(by_gain[:2].argmax(1), [len(GAINS) - 1, 0])
    assert weights[1, 0].sum() > 0.99
    assert weights[2, 0].sum() < 0.01


def test_a_straight_line_goes_on_and_a_constant_stays():
    times = np.arange(30.0)
    values = np.stack([3 - 2 * times, np.full(30, 7.0)])
    smoothing = Smoothers((4,), drifts=(1.0,))
    said = smoothing.read(smoothing.advance(smoothing.empty(2), values, times), 29.0, 3)
    np.testing.assert_allclose(said, [[-57.0, -59.0, -61.0], [7.0, 7.0, 7.0]], rtol=1e-9)


def trending(n_series=30, rows=80, seed=0):
    """A wide frame of straight lines of slopes of their own, and noise of one."""
    rng = np.random.default_rng(seed)
    line = rng.normal(size=n_series) * 0.3 * np.arange(rows)[:, None]
    return pd.DataFrame(line + rng.normal(size=(rows, n_series)), columns=[f"s{i}" for i in range(n_series)])


def missed(frame, h=12):
    """Mean squared error over the last `h` rows."""
    said = FracRidge(h, season_lengths=()).fit(frame.iloc[:-h]).predict()
    return float(np.mean((frame.iloc[-h:].to_numpy() - said.to_numpy()) ** 2))


def test_trends_of_a_short_panel_go_on(monkeypatch):
    frame = trending()
    smoothed = missed(frame)
    monkeypatch.setattr("fracts.recall._SHORT", 0)
    assert smoothed < 1.4
    assert smoothed < 0.5 * missed(frame)


@pytest.mark.parametrize("kind", ["walks", "noise", "seasons"])
def test_short_series_without_a_trend_are_forecast_no_worse(kind, monkeypatch):
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(90, 60))
    seasons = np.tile(3 * rng.normal(size=(6, 60)), (15, 1))
    frame = pd.DataFrame({"walks": noise.cumsum(0), "noise": noise, "seasons": seasons + noise}[kind])
    smoothed = missed(frame)
    monkeypatch.setattr("fracts.recall._SHORT", 0)
    assert smoothed < 1.02 * missed(frame)


def n_smoothers(values, anchor="auto", covariates=0, pooled=True):
    panel = Panel(values, np.arange(float(values.shape[1])), np.zeros((*values.shape, covariates)))
    memory = linear_memory(panel, 3, 8, (1.0, 1024.0), (), covariates, anchor)
    return len(beside_smoothing(memory, panel, pooled=pooled).smoothed)


def test_only_several_short_series_that_share_coefficients_are_smoothed_and_not_beside_covariates():
    walks = np.random.default_rng(0).normal(size=(3, 600)).cumsum(1)
    assert n_smoothers(walks[:, :200]) == len(DRIFTS)
    assert n_smoothers(walks) == 0
    assert n_smoothers(walks[:1, :200]) == 0
    assert n_smoothers(walks[:, :200], pooled=False) == 0
    assert n_smoothers(walks[:, :200], anchor="last") == 0
    assert n_smoothers(walks[:, :200], anchor="centre") == 0
    assert n_smoothers(walks[:, :200], covariates=1) == 0


def test_a_smoothed_panel_updated_row_by_row_is_one_pass_and_new_histories_are_as_good():
    frame = trending(rows=70)
    model = FracRidge(4, season_lengths=5).fit(frame.iloc[:60])
    assert model._path.memory.smoothed
    streamed = FracRidge(4, season_lengths=5).fit(frame.iloc[:60])
    for row in range(60, 70):
        streamed.learn_many(frame.iloc[row].to_numpy())
    model.update(frame.iloc[60:])
    np.testing.assert_allclose(streamed.forecast(), model.forecast(), rtol=1e-9)
    np.testing.assert_allclose(model.apply(frame).forecast(), streamed.forecast(), rtol=1e-9)
    renamed = frame[["s3", "s7"]].set_axis(["new", "newer"], axis=1)
    other = frame.iloc[:, [3, 7]]
    np.testing.assert_allclose(model.apply(renamed).forecast(), model.apply(other).forecast(), rtol=1e-12)


def test_units_and_level_of_a_smoothed_panel_are_those_of_its_forecasts():
    frame = trending(rows=70)
    said = FracRidge(4, season_lengths=5).fit(frame).predict()
    other = FracRidge(4, season_lengths=5).fit(1000 * frame + 1e4).predict()
    np.testing.assert_allclose(other, 1000 * said + 1e4, rtol=1e-6)


def test_a_saved_model_of_smoothed_series_forecasts_the_same(tmp_path):
    frame = trending(rows=70)
    model = FracRidge(4, season_lengths=5).fit(frame)
    model.save(tmp_path / "model.safetensors")
    pd.testing.assert_frame_equal(FracRidge.load(tmp_path / "model.safetensors").predict(), model.predict())


def test_the_kernel_is_the_derivative_of_the_forecast_while_all_are_heard_alike(monkeypatch, without_numba):
    monkeypatch.setattr(
        Smoothers, "weights", lambda self, state: np.full(self._parts(state).level.shape, 1 / 30)
    )
    monkeypatch.setattr("fracts.recall.DRIFTS", ((0.0, 0.5), (0.0, 1.0)))
    frame = trending(n_series=4, rows=70)
    model = FracRidge(4, season_lengths=5).fit(frame)
    for lag in (1, 2, 5, 30, 69, 70):
        pushed = [frame.copy(), frame.copy()]
        pushed[0].iloc[-lag] += 1.0
        pushed[1].iloc[-lag] -= 1.0
        up, down = (model.apply(each).forecast(point="mean") for each in pushed)
        expected = (up - down)[3].mean() / 2
        assert model.memory_kernel(lag, 4)["weight"].item() == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert model.memory_kernel(range(1, 71), 4)["weight"].sum() == pytest.approx(1.0)
    assert np.isfinite(model.memory_exponent().d)
    assert model.memory_spectrum()["timescale"].isna().sum() == 2
