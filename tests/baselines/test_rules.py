"""Drift, WindowAverage, Theta, STL, Ensemble and HAR against their formulas and statsmodels."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.exponential_smoothing.ets import ETSModel
from statsmodels.tsa.forecasting.theta import ThetaModel

from fracts import FitWarning, FracRidge
from fracts.baselines import ARFIMA, HAR, STL, Drift, Ensemble, Mean, Naive, Theta, WindowAverage
from fracts.datasets import load_sp500_volatility

nan = np.nan


def test_drift_is_the_line_through_the_first_and_the_last_value():
    model = Drift(2).fit([nan, 1.0, 5.0, nan, 7.0, nan])
    np.testing.assert_allclose(model.predict(3), 7 + 2 * np.array([2, 3, 4]))
    np.testing.assert_array_equal(Drift(2).fit([nan, 3.0]).predict(), [3, 3])


def test_drift_intervals_are_the_quantiles_of_the_errors_of_the_history():
    y = np.random.default_rng(0).gamma(2.0, size=300)
    table = Drift(2).fit(y).predict(quantiles=[0.1, 0.9])
    slopes = np.append(0.0, (y[1:] - y[0]) / np.arange(1, 300))
    errors = np.array([y[t + 2] - y[t] - 2 * slopes[t] for t in range(298)])
    expected = np.quantile(errors, [0.1, 0.9]) - np.median(errors)
    np.testing.assert_allclose(table[1, 1:] - table[1, 0], expected, rtol=1e-10)


def test_window_average_is_the_mean_of_the_last_values_there_are():
    model = WindowAverage(2, 3).fit([1.0, 2.0, nan, 6.0])
    np.testing.assert_array_equal(model.predict(), [3, 3])
    np.testing.assert_array_equal(model.update([nan, 4.0]).predict(), [4, 4])


@pytest.mark.parametrize("window", [0, 2.5])
def test_a_window_is_a_count(window):
    with pytest.raises(ValueError, match="window must be an integer of at least 1"):
        WindowAverage(2, window).fit([1.0, 2.0])


@pytest.mark.parametrize("positive", [True, False])
def test_theta_has_season_and_drift_of_statsmodels_and_nearly_its_level(positive):
    rng = np.random.default_rng(1)
    y = 0.3 * np.arange(160) + 2 * rng.normal(size=160).cumsum() + np.tile([0.0, 9.0, 3.0, -4.0], 40)
    y += 100 if positive else -y.mean()
    model = Theta(8, season_length=4).fit(y)
    expected = ThetaModel(y, period=4, method="auto").fit()
    found = model.models_[0]
    assert found.multiplicative == positive
    assert found.drift == pytest.approx(expected.params["b0"] / 2)
    np.testing.assert_allclose(found.season, expected.forecast_components(4)["seasonal"])
    np.testing.assert_allclose(model.predict(), expected.forecast(8), atol=0.02)


def test_theta_has_the_most_likely_alpha_of_smoothing_with_its_drift():
    y = 0.3 * np.arange(90) + np.random.default_rng(8).normal(size=90).cumsum()
    found = Theta(1).fit(y).models_[0]
    steps = np.arange(90.0)
    theirs = ETSModel(y - found.drift * steps).fit(disp=False)
    assert found.drift == pytest.approx(np.polyfit(steps, y, 1)[0] / 2)
    assert found.alpha == pytest.approx(theirs.alpha, abs=2e-3)


def test_the_season_of_theta_lies_where_the_calendar_has_it():
    days = pd.date_range("2024-01-01", periods=140, freq="D")
    week = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 20.0, 40.0], 20) + np.random.default_rng(2).normal(size=140)
    y = pd.Series(100 + week, days)
    model = Theta(7).fit(y)
    late = model.apply(y[45:100])
    assert model.predict().idxmax().day_of_week == late.predict().idxmax().day_of_week == 6
    first, second = (f.set_axis(f.index.day_of_week).sort_index() for f in (model.predict(), late.predict()))
    np.testing.assert_allclose(second - second.mean(), first - first.mean(), atol=2)


def test_stl_puts_the_last_season_back_on_the_other_model():
    rng = np.random.default_rng(3)
    season = np.tile([0.0, 8.0, 2.0, -6.0], 30)
    rest = rng.normal(size=120).cumsum()
    model = STL(4, Naive(4), season_lengths=4).fit(rest + season)
    np.testing.assert_allclose(model.predict() - rest[-1], season[:4], atol=2)
    assert isinstance(model.model_, Naive)
    alone = Naive(4).fit(rest + season - model._machine._at(np.zeros(1, dtype=int), np.arange(120.0))[0])
    widths = [np.diff(m.predict(level=80)[:, 1:], axis=1) for m in (model, alone)]
    np.testing.assert_allclose(*widths)


def test_stl_takes_off_several_seasons():
    t = np.arange(24 * 7 * 6)
    y = 5 * np.sin(2 * np.pi * t / 24) + 3 * np.cos(2 * np.pi * t / 168)
    model = STL(168, Mean(168), season_lengths=(24, 168)).fit(y[:-168])
    assert model.season_lengths_ == (24, 168)
    np.testing.assert_allclose(model.predict(), y[-168:], atol=0.3)


def test_stl_leaves_a_series_alone_that_is_too_short_and_says_so():
    y = pd.DataFrame({"a": np.tile([0.0, 5.0, 2.0], 20), "b": np.append(np.full(55, nan), [1.0, 2, 4, 3, 9])})
    with pytest.warns(FitWarning, match=r"STL: 1 series, first 'b', have no season of \(3,\)"):
        model = STL(3, Naive(3), season_lengths=3).fit(y)
    np.testing.assert_allclose(model.predict()["b"], 9.0)


def test_stl_has_any_inner_model_with_coefficients_of_its_own():
    y = np.random.default_rng(4).normal(size=(300, 2)) + np.tile([0.0, 5.0, 2.0], 100)[:, None]
    model = STL(3, ARFIMA(3), season_lengths=3).fit(y)
    assert list(model.model_.estimates_) == [0, 1]
    assert model.predict().shape == (3, 2)


@pytest.mark.parametrize("how", ["mean", "median"])
def test_an_ensemble_combines_every_quantile(how):
    y = np.random.default_rng(5).normal(size=(80, 2)).cumsum(axis=0)
    models = [Naive(3), Mean(3), Drift(3)]
    ensemble = Ensemble(3, models, how=how).fit(y).update(y[:5])
    each = [type(model)(3).fit(y).update(y[:5]).predict(level=90) for model in models]
    np.testing.assert_allclose(ensemble.predict(level=90), getattr(np, how)(each, axis=0))
    assert not hasattr(models[0], "_state")


def test_an_ensemble_takes_the_linear_path_beyond_its_horizon_too():
    y = np.random.default_rng(7).normal(size=120).cumsum()
    found = Ensemble(3, [FracRidge(3, season_lengths=()), Naive(3)]).fit(y).predict(5, level=90)
    each = [model.fit(y).predict(5, level=90) for model in (FracRidge(3, season_lengths=()), Naive(3))]
    np.testing.assert_allclose(found, np.mean(each, axis=0), rtol=1e-12)


def test_a_model_inside_another_has_no_scale_of_its_own():
    with pytest.raises(TypeError, match=r"FracRidge inside another model has lower=0.*by itself"):
        Ensemble(3, [FracRidge(3, lower=0), Naive(3)]).fit(np.arange(1.0, 90.0))


def test_an_ensemble_takes_new_series_where_its_models_do():
    y = np.random.default_rng(6).normal(size=(80, 2))
    assert Ensemble(2, [Naive(2), Mean(2)]).fit(y).apply(y[:, :1]).predict().shape == (2, 1)


@pytest.mark.parametrize(
    ("models", "how", "error", "message"),
    [
        ([], "mean", TypeError, "models must be a list of forecasters"),
        ([Naive], "mean", TypeError, "models must hold forecasters"),
        ([Naive(2)], "best", ValueError, "how must be 'mean', 'median' or 'weighted'"),
    ],
)
def test_an_ensemble_of_something_else_is_refused(models, how, error, message):
    with pytest.raises(error, match=message):
        Ensemble(2, models, how=how).fit([1.0, 2.0])


def test_har_is_the_regression_on_the_means_and_forecasts_as_an_autoregression():
    y = load_sp500_volatility().to_numpy()[:1500]
    model = HAR(3).fit(y)
    fitted = model.models_[0]
    rows = np.array([[1.0, y[t], y[t - 4 : t + 1].mean(), y[t - 21 : t + 1].mean()] for t in range(21, 1499)])
    expected = np.linalg.lstsq(rows, y[22:])[0]
    np.testing.assert_allclose([fitted.constant, *fitted.weights], expected, rtol=1e-8)
    past = list(y)
    for _ in range(3):
        past.append(expected @ [1.0, past[-1], np.mean(past[-5:]), np.mean(past[-22:])])
    np.testing.assert_allclose(model.predict(), past[-3:], rtol=1e-8)


@pytest.mark.parametrize("spans", [(), 5, (5, 1), (0, 3)])
def test_spans_that_are_none_are_refused(spans):
    with pytest.raises(ValueError, match="span"):
        HAR(2, spans=spans).fit(np.arange(50.0))


def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch):
    monkeypatch.setattr("fracts.baselines.needed.find_spec", lambda package: None)
    with pytest.raises(
        ModuleNotFoundError, match=r"Theta needs the package statsmodels.*fracts\[classical\]"
    ):
        Theta(2).fit(np.arange(20.0))
