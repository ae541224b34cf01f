"""Beyond the trained horizon: against a random walk, whose forecasts are known."""

import numpy as np
import pytest
from scipy.special import ndtri

from fracts.datasets import make_arfima
from fracts.forecasts import QUANTILES, Forecast, interpolate_quantiles
from fracts.paths import N_PATHS, extended
from fracts.ridge import FracRidge

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
WALK = np.sqrt([1.0, 2.0, 3.0])[:, None] * ndtri(QUANTILES)  # trained for three leads


def read(state):
    return Forecast(state["y"] + np.zeros(3), state["y"][..., None] + WALK)


SKEW = np.exp(WALK)


def skewed(state):
    return Forecast(state["y"] + np.zeros(3), state["y"][..., None] + SKEW)


def advance(state, panel):
    return {"y": panel.values, "time": np.full(len(panel.values), panel.times[-1])}


def at(*values):
    return {"y": np.array(values)[:, None], "time": np.zeros(len(values))}


def anywhere(state, steps):
    far = np.full(len(state["y"]), 1e9)
    return -far, far


def test_a_random_walk_has_quantiles_that_grow_as_the_root_of_the_lead():
    forecast = extended(read, advance, anywhere, at(0.0), 3, 60, LEVELS)
    spread = np.sqrt(np.arange(1, 61))[:, None]
    # Two hundred paths know the quantile of .95 to .15 of the spread, one standard deviation.
    np.testing.assert_allclose(forecast.quantiles[0] / spread - ndtri(LEVELS), 0, atol=0.25)
    np.testing.assert_allclose(forecast.mean, 0, atol=1e-12)


def test_each_path_draws_as_it_would_alone():
    """One path at a time, the slow and obvious way: a block of three steps at one level, one at another."""
    draws, y, means, half = np.random.default_rng(0), np.zeros(N_PATHS), [], N_PATHS // 2
    for steps in (3, 1):
        stratum, low = draws.permutation(half), draws.random(half) < 0.5
        first = [
            (s + 0.5) / N_PATHS if down else 1 - (s + 0.5) / N_PATHS
            for s, down in zip(stratum, low, strict=True)
        ]
        level = np.clip([*first, *(1 - np.array(first))], 0.005, 0.995)
        for lead in range(steps):
            ahead = [float(interpolate_quantiles(SKEW[lead], u[None])[0]) for u in level]
            means.append((y + ahead).mean())
        y = y + ahead
    found = extended(skewed, advance, anywhere, at(0.0), 3, 7, LEVELS).mean[0, 3:]
    np.testing.assert_allclose(found, means, rtol=1e-12)
    assert means[0] > 0.1  # the draws are of the skewed law


def test_the_negative_of_a_series_has_the_negative_forecast():
    def mirrored(state):
        return Forecast(state["y"] + np.zeros(3), state["y"][..., None] - SKEW[:, ::-1])

    found = extended(mirrored, advance, anywhere, at(-2.0), 3, 9, LEVELS).quantiles
    expected = extended(skewed, advance, anywhere, at(2.0), 3, 9, LEVELS).quantiles
    np.testing.assert_allclose(found, -expected[..., ::-1], rtol=1e-12)


def test_a_forecast_has_no_say_in_another_and_none_in_its_own_prefix():
    both = extended(read, advance, anywhere, at(0.0, 50.0), 3, 9, LEVELS).quantiles
    alone = extended(read, advance, anywhere, at(50.0), 3, 6, LEVELS).quantiles
    np.testing.assert_array_equal(both[1:, :6], alone)
    np.testing.assert_allclose(both[0] + 50, both[1], atol=1e-12)


def test_within_the_trained_horizon_nothing_is_drawn():
    def refuse(state, panel):
        raise AssertionError("a path was drawn")

    forecast = extended(read, refuse, anywhere, at(1.0), 3, 3, QUANTILES)
    np.testing.assert_allclose(forecast.quantiles[0], 1 + WALK, atol=1e-15)


@pytest.mark.parametrize(
    "make", [lambda rng: rng.normal(size=600).cumsum(), lambda rng: make_arfima(600, 0.4, random_state=rng)]
)
def test_the_forecasts_of_a_ridge_do_not_jump_at_the_seam_and_its_intervals_grow(make):
    model = FracRidge(6).fit(make(np.random.default_rng(5)))
    table = model.predict(30, level=80)
    width = table[:, 2] - table[:, 1]
    inside, seam = np.abs(np.diff(table[:6, 0])).max(), np.abs(table[6, 0] - table[5, 0])
    assert seam < inside + 0.1 * width[5]
    assert 0.95 < width[6] / width[5] < 1.15
    assert width[29] > width[5] and np.diff(width[5:]).min() > -0.05 * width[5]


@pytest.mark.parametrize("level", [70.0, 150.0])
@pytest.mark.parametrize("horizon", [1, 7])
def test_paths_after_a_break_of_the_level_do_not_run_away(level, horizon):
    y = np.r_[np.full(250, 50.0), np.full(150, level)] + 3 * np.random.default_rng(0).normal(size=400)
    far = 5 * y.std() * (1 + 1000 / 400)
    ahead = FracRidge(horizon).fit(y).forecast(1000, level=90)
    assert np.isfinite(ahead).all()
    assert np.abs(ahead - y.mean()).max() < 4 * far
