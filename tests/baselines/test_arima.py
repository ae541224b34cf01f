"""ARIMA: the order found, the exact filter of statsmodels, holes, and what cannot be fitted."""

import numpy as np
import pytest
from scipy.signal import lfilter
from statsmodels.tsa.statespace.sarimax import SARIMAX

from fracts import FitWarning
from fracts.baselines import ARIMA
from fracts.baselines.arima_fit import Order, of_statsmodels, plain_differences, seasonal_differences


def draw(n=300, seed=0, ar=(), ma=()):
    noise = np.random.default_rng(seed).normal(size=n + 100)
    return lfilter(np.append(1.0, ma), np.append(1.0, -np.array(ar)), noise)[100:]


@pytest.mark.parametrize("holes", [False, True])
def test_forecasts_are_those_of_statsmodels_at_the_same_parameters(holes):
    y = 3 * np.tile([0.0, 4.0, 1.0, -2.0], 30) + draw(120, ar=[0.6]).cumsum()
    if holes:
        y[[10, 50, 51, 118]] = np.nan
    model = ARIMA(6, order=(1, 1, 0), seasonal_order=(0, 1, 1), season_length=4).fit(y[:100])
    theirs = SARIMAX(y, order=(1, 1, 0), seasonal_order=(0, 1, 1, 4), use_exact_diffuse=True)
    expected = theirs.smooth(list(model.models_[0].parameters.values())).get_forecast(6)
    for value in y[100:]:
        model.learn_one(value)
    found = model.predict(quantiles=[0.1, 0.9])
    scale = np.nanstd(y[:100])  # the unit that the parameters are in
    np.testing.assert_allclose(found[:, 0], expected.predicted_mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose((found[:, 2] - found[:, 1]) / 2.5631031 / scale, expected.se_mean, rtol=1e-6)


@pytest.mark.parametrize(
    ("y", "order"),
    [
        (draw(400, ar=[0.8]), (1, 0, 0)),
        (draw(400, seed=2, ma=[0.7]), (0, 0, 1)),
        (draw(400, seed=2).cumsum(), (0, 1, 0)),
        (draw(400, seed=3).cumsum().cumsum(), (0, 2, 0)),
    ],
)
def test_the_order_that_made_the_series_is_found(y, order):
    found = ARIMA(1).fit(y).models_[0].order
    assert (found.p, found.d, found.q) == order


def test_differences_are_taken_where_a_walk_or_a_strong_season_wants_them():
    noise, season = draw(240), np.tile([0.0, 6.0, 2.0, -5.0], 60)
    assert [plain_differences(y) for y in (noise, noise.cumsum(), noise.cumsum().cumsum())] == [0, 1, 2]
    assert [seasonal_differences(y, 4) for y in (noise, noise + season)] == [0, 1]


def test_a_history_of_one_value_is_forecast_from_the_mean_that_was_learned():
    y = 1000 + 5 * draw(300, ar=[0.5])
    model = ARIMA(2, season_length=None).fit(y)
    assert model.models_[0].order.constant
    np.testing.assert_allclose(model.apply([1000.0]).predict(), 1000, atol=3)


def test_a_seasonal_order_is_searched_too():
    noise = np.random.default_rng(4).normal(size=400)
    y = lfilter([1.0], np.append(1.0, [0, 0, 0, -0.7]), noise)[100:]
    order = ARIMA(4, season_length=4).fit(y).models_[0].order
    assert (order.P, order.D, order.season_length) == (1, 0, 4) or order.D == 1


def test_a_walk_with_a_slope_has_a_constant():
    y = (draw(300, seed=5) + 0.5).cumsum()
    model = ARIMA(10).fit(y)
    assert model.models_[0].order.constant and model.models_[0].order.d == 1
    slope = np.diff(model.predict()[-2:])[0]
    assert slope == pytest.approx(0.5, abs=0.2)


@pytest.mark.parametrize(
    ("y", "reason"),
    [
        (np.full(50, 2.0), "its values are constant"),
        ([1.0, 3.0, 2.0], "3 values are too few"),
    ],
)
def test_what_cannot_be_fitted_is_naive_with_one_warning(y, reason):
    with pytest.warns(FitWarning, match=f"ARIMA: series 0: {reason}; Naive forecasts") as said:
        model = ARIMA(3).fit(y)
    assert len(said) == 1
    np.testing.assert_array_equal(model.predict(), y[-1])


TIME = np.arange(54.0)


@pytest.mark.parametrize(
    "y",
    [3 + 2 * TIME, 1e6 - 0.1 * TIME, np.tile([1.0, 5.0, 3.0], 18), np.tile([1.0, 5.0, 3.0], 18) - TIME],
    ids=["line", "falling line", "season", "season on a line"],
)
def test_what_fits_perfectly_goes_on_with_one_warning(y):
    with pytest.warns(FitWarning, match="ARIMA: series 0: ARIMA.* fits perfectly") as said:
        model = ARIMA(6, season_length=3).fit(y[:48])
    assert len(said) == 1 and not model.failures_
    table = model.predict(level=90)
    assert np.isfinite(table).all()
    np.testing.assert_allclose(table, np.repeat(y[48:, None], 3, axis=1), rtol=1e-6)
    np.testing.assert_allclose(model.update(y[48:51]).predict(3), y[51:], rtol=1e-6)


def test_a_perfect_fit_follows_what_comes_after_it():
    with pytest.warns(FitWarning, match="fits perfectly"):
        model = ARIMA(2).fit(np.arange(50.0))
    np.testing.assert_allclose(model.update([60.0]).predict(), [61, 62], rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": (1, 0)}, "order must be three integers"),
        ({"order": (1, -1, 0)}, "order must be three integers"),
        ({"order": (1, 3, 0)}, r"order must be at most \(5, 2, 5\), got \(1, 3, 0\)"),
        ({"seasonal_order": (3, 0, 0)}, "seasonal_order must be at most"),
    ],
)
def test_an_order_out_of_range_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        ARIMA(3, **options).fit(np.arange(50.0))


def test_an_order_is_written_as_usual():
    assert str(Order(1, 1, 2, 0, 1, 1, 12, constant=True)) == "ARIMA(1,1,2)(0,1,1)[12] with constant"


def test_the_start_next_to_a_unit_root_is_what_a_step_leaves_as_it_is():
    model = SARIMAX(draw(108), order=(0, 1, 1), seasonal_order=(1, 0, 1, 12), use_exact_diffuse=True)
    model.update([-0.9910962, 0.99999155, -0.89752827, 0.27103])
    machine = of_statsmodels(model.ssm, 2.0)
    spread, step = machine.spread[0, 1:, 1:], machine.transition[0, 1:, 1:]  # but for the level
    after = step @ spread @ step.T + machine.noise[0, 1:, 1:]
    np.testing.assert_allclose(after, spread, atol=1e-9 * np.abs(machine.noise).max())
    np.testing.assert_array_less(-1e-9, np.linalg.eigvalsh(spread))
