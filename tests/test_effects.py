"""What is known in advance moves a series at once: learned as least squares on innovations learn it."""

import numpy as np
import pandas as pd
import pytest

from fracts import FracForecaster
from fracts.ridge import FracRidge

ROWS, HORIZON = 300, 6


def persistent(draws, rows, memory=0.9):
    """A first-order autoregression of unit innovations."""
    noise = draws.normal(size=rows)
    for t in range(1, rows):
        noise[t] += memory * noise[t - 1]
    return noise


def steps(draws, rows):
    """A price that stays for about thirty rows."""
    changes = np.where(draws.random(rows) < 1 / 30, draws.normal(size=rows), 0.0)
    return changes.cumsum() * 5


def rare(draws, rows):
    """Yes on about one row in thirty."""
    return (draws.random(rows) < 1 / 30).astype(float)


def smooth(draws, rows):
    """Weather."""
    return persistent(draws, rows, 0.95)


def answered(model):
    """What one of the covariate adds to each lead: (horizon,), or (horizon, series)."""

    def said(value):
        stamps = pd.RangeIndex(ROWS, ROWS + HORIZON)
        table = pd.DataFrame({name: value for name in model.covariates_}, stamps, dtype=float)
        return model.forecast(X=table if model.covariates_ != [0] else table.to_numpy())

    return said(1) - said(0)


@pytest.mark.parametrize("covariate", [steps, rare, smooth])
@pytest.mark.parametrize("memory", [0.0, 0.7, 1.0])
def test_a_known_effect_is_learned_at_every_lead(covariate, memory):
    draws = np.random.default_rng(5)
    x = covariate(draws, ROWS)
    y = 20 * x + persistent(draws, ROWS, memory)
    model = FracRidge(HORIZON, season_lengths=()).fit(y, x[:, None])
    np.testing.assert_allclose(answered(model), 20, atol=1.5)


@pytest.mark.parametrize("covariate", [steps, rare, smooth])
def test_an_effect_costs_no_more_than_if_it_had_been_known(covariate):
    told, without = [], []
    for seed in range(3):
        draws = np.random.default_rng(seed)
        x = covariate(draws, ROWS + 60)
        noise = persistent(draws, ROWS + 60, 0.7)
        y, X = noise + 10 * x, x[:, None]
        seen = FracRidge(HORIZON, season_lengths=()).fit(y[:ROWS], X[:ROWS])
        blind = FracRidge(HORIZON, season_lengths=()).fit(noise[:ROWS])
        for at in range(ROWS, ROWS + 54):
            ahead = slice(at, at + HORIZON)
            told.append(seen.forecast(X=X[ahead]) - y[ahead])
            without.append(blind.forecast() - noise[ahead])
            seen.learn_one(y[at], X[at])
            blind.learn_one(noise[at])
    assert np.abs(told).mean() < 1.05 * np.abs(without).mean()


def test_series_that_share_coefficients_share_effects_in_their_own_units():
    draws = np.random.default_rng(2)
    x = rare(draws, ROWS)
    sizes = np.array([1.0, 10.0, 1000.0])
    noise = np.column_stack([persistent(draws, ROWS, 0.7) for _ in sizes])
    y = pd.DataFrame(sizes * (10 * x[:, None] + noise), columns=list("abc"))
    X = pd.DataFrame({"sale": x})
    model = FracRidge(HORIZON, season_lengths=(), pooled=True).fit(y, X)
    np.testing.assert_allclose(answered(model) / sizes, 10, atol=1.0)
    new = model.apply(y[["a"]].rename(columns={"a": "new"}) * 50, X)
    np.testing.assert_allclose(answered(new) / 50, 10, atol=1.0)


def test_series_of_their_own_coefficients_have_effects_of_their_own():
    draws = np.random.default_rng(3)
    x = rare(draws, ROWS)
    y = np.array([10.0, -5.0]) * x[:, None] + draws.normal(size=(ROWS, 2))
    model = FracRidge(HORIZON, season_lengths=(), pooled=False).fit(y, x[:, None])
    np.testing.assert_allclose(answered(model), np.tile([10.0, -5.0], (HORIZON, 1)), atol=1.0)


def test_what_begins_after_the_first_fold_is_learned():
    draws = np.random.default_rng(4)
    x = rare(draws, ROWS)
    x[: ROWS // 2] = 0
    y = 10 * x + draws.normal(size=ROWS)
    model = FracRidge(HORIZON, season_lengths=()).fit(y, x[:, None])
    np.testing.assert_allclose(answered(model), 10, atol=1.5)


def test_gaps_hide_no_effect():
    errors = []
    for seed in range(8):
        draws = np.random.default_rng(seed)
        x = steps(draws, ROWS)
        y = 3 * x + persistent(draws, ROWS, 1.0)
        y[draws.random(ROWS) < 0.2] = np.nan
        errors.append(answered(FracRidge(HORIZON, season_lengths=()).fit(y, x[:, None])) - 3)
    assert np.sqrt(np.mean(np.square(errors))) < 0.5


@pytest.mark.parametrize("calibration", ["held-out", "adaptive"])
def test_intervals_are_those_of_the_rest(calibration):
    draws = np.random.default_rng(7)
    x = steps(draws, 1000 + 400)
    y, X = 10 * x + draws.normal(size=1400), x[:, None]
    model = FracRidge(1, season_lengths=(), calibration=calibration).fit(y[:1000], X[:1000])
    inside = []
    for at in range(1000, 1400):
        _, low, high = model.forecast(X=X[at : at + 1], level=90)[0]
        inside.append(low <= y[at] <= high)
        model.learn_one(y[at], X[at])
    assert 0.85 < np.mean(inside) < 0.95


def test_a_network_stands_on_what_effects_leave():
    draws = np.random.default_rng(8)
    x = steps(draws, ROWS)
    y = 20 * x + persistent(draws, ROWS, 0.7)
    small = {"width": 16, "n_heads": 2, "window": 64, "max_epochs": 1, "random_state": 0}
    model = FracForecaster(HORIZON, season_lengths=(), **small).fit(y, x[:, None])
    np.testing.assert_allclose(answered(model), 20, atol=1.5)


def test_effects_are_kept_in_files_and_states(tmp_path):
    draws = np.random.default_rng(9)
    x = rare(draws, ROWS + HORIZON)
    y = 10 * x[:ROWS] + draws.normal(size=ROWS)
    model = FracRidge(HORIZON, season_lengths=()).fit(y, x[:ROWS, None])
    model.save(tmp_path / "model")
    loaded = FracRidge.load(tmp_path / "model")
    ahead = x[ROWS:, None]
    np.testing.assert_array_equal(loaded.forecast(X=ahead), model.forecast(X=ahead))
    before = model.get_state()
    assert before["effects"].shape == (1, 1)
    expected = model.forecast(X=ahead)
    model.learn_one(100.0, {0: 1.0}).set_state(before)
    np.testing.assert_array_equal(model.forecast(X=ahead), expected)
