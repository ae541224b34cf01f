"""`transform="auto"`: logarithms where held-out time says that they are better."""

import numpy as np
import pytest

from fracts import FracForecaster, FracRidge, scale_choice


def steps(rows=500, seed=0):
    return np.random.default_rng(seed).normal(size=rows)


def noise():
    """An autoregression of .8."""
    moves, y = steps(), np.zeros(500)
    for t in range(1, 500):
        y[t] = 0.8 * y[t - 1] + moves[t]
    return y


MODELS = {
    "ridge": lambda transform: FracRidge(3, season_lengths=(), n_modes=8, transform=transform),
    "linear path": lambda transform: FracForecaster(
        3, season_lengths=(), n_modes=8, n_layers=0, transform=transform
    ),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_series_that_moves_by_shares_is_forecast_by_its_logarithm(make):
    y = np.exp(noise())
    chosen, given = make("auto").fit(y), make("log").fit(y)
    np.testing.assert_array_equal(chosen.predict(level=80), given.predict(level=80))


def test_a_series_with_a_value_at_zero_stays_as_it_is():
    y = np.exp(noise())
    y[17] = 0.0
    chosen, plain = MODELS["ridge"]("auto").fit(y), MODELS["ridge"](None).fit(y)
    np.testing.assert_array_equal(chosen.predict(level=80), plain.predict(level=80))


def test_a_series_whose_square_root_of_distance_is_even_stays_as_it_is():
    """Large values lie close together: a logarithm makes the small ones lie farther apart still."""
    y = np.log1p(np.exp(2 * noise() + 2)) ** 0.5 + 0.01
    chosen, plain = MODELS["ridge"]("auto").fit(y), MODELS["ridge"](None).fit(y)
    np.testing.assert_array_equal(chosen.predict(level=80), plain.predict(level=80))


def test_units_change_no_choice():
    y = np.exp(noise())
    forecasts = [MODELS["ridge"]("auto").fit(unit * y).predict() / unit for unit in (1.0, 1000.0)]
    np.testing.assert_allclose(forecasts[1], forecasts[0], rtol=1e-8)


@pytest.mark.parametrize("pooled", [True, False])
def test_both_scales_are_tried_with_coefficients_shared_as_asked(pooled, monkeypatch):
    tried, fit_linear = [], scale_choice.fit_linear
    monkeypatch.setattr(
        scale_choice,
        "fit_linear",
        lambda *args, pooled: (tried.append(pooled), fit_linear(*args, pooled=pooled))[1],
    )
    y = np.exp(np.column_stack([noise(), noise()[::-1]]))
    FracRidge(3, season_lengths=(), n_modes=8, transform="auto", pooled=pooled).fit(y)
    assert tried == [pooled, pooled]
