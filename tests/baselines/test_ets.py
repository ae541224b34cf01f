"""Exponential smoothing against statsmodels, and the choice by AICc."""

import warnings

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

from fracts import FitWarning
from fracts.baselines import ETS
from fracts.baselines.ets_fit import Form, _likelihood, fit_form, smoothing_space
from fracts.series import Panel

FORMS = {
    "A,N,N": (Form(False, False, 1), {}),
    "A,A,N": (Form(True, False, 1), {"trend": "add"}),
    "A,Ad,N": (Form(True, True, 1), {"trend": "add", "damped_trend": True}),
    "A,N,A": (Form(False, False, 4), {"seasonal": "add", "seasonal_periods": 4}),
    "A,Ad,A": (
        Form(True, True, 4),
        {"trend": "add", "damped_trend": True, "seasonal": "add", "seasonal_periods": 4},
    ),
}


def history(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return 50 + rng.normal(size=n).cumsum() + 3 * np.sin(np.arange(n) * np.pi / 2) + rng.normal(size=n)


def log_likelihood(model, n):
    count = model.form.size + model.form.starts + 1
    return count + count * (count + 1) / (n - count - 1) - model.aicc / 2


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_at_least_as_likely_as_in_statsmodels(name):
    form, options = FORMS[name]
    y = history()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = ETSModel(y, **options).fit(disp=False, maxiter=500)
    ours = fit_form(y, form, logarithm=False)
    assert str(form) == name
    assert log_likelihood(ours, len(y)) >= theirs.llf - 0.2


@pytest.mark.parametrize("name", FORMS)
def test_forecasts_are_those_of_statsmodels_at_the_same_parameters(name):
    form, options = FORMS[name]
    y = history(400)
    ours = fit_form(y, form, logarithm=False)
    theirs = ETSModel(pd.Series(y), **options)
    named = {"smoothing_level": ours.alpha, "smoothing_trend": ours.beta, "smoothing_seasonal": ours.gamma}
    named["damping_trend"] = ours.phi
    with (
        theirs.fix_params({key: named[key] for key in named if key in theirs.param_names}),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        result = theirs.fit(disp=False, maxiter=500)
    space = smoothing_space(ours)
    state = space.advance(space.empty(), Panel(y[None], np.arange(400.0)))
    means, spreads = space.moments(state, 8)
    frame = result.get_prediction(400, 407).summary_frame(alpha=0.1)
    np.testing.assert_allclose(means[0], frame["mean"], atol=0.02)
    width = (frame["pi_upper"] - frame["pi_lower"]) / 2 / 1.6448536
    np.testing.assert_allclose(spreads[0], width, rtol=0.01)


@pytest.mark.parametrize("holes", [[], [5, 30, 31, 80]])
@pytest.mark.parametrize("name", FORMS)
def test_the_gradient_is_that_of_the_likelihood(name, holes):
    form = FORMS[name][0]
    y = history(90)
    y = (y - y.mean()) / y.std()
    y[holes] = np.nan
    shares = np.array([0.3, 0.2, 0.15, 0.6])[: form.size]

    def log(k, step):
        return _likelihood(y, form, shares + step * np.eye(form.size)[k]).log

    slopes = [(log(k, 1e-6) - log(k, -1e-6)) / 2e-6 for k in range(form.size)]
    np.testing.assert_allclose(_likelihood(y, form, shares).gradient, slopes, rtol=1e-5, atol=1e-4)


def test_holes_are_integrated_out_of_the_likelihood():
    """As the density of the values there are, given the states at the start, for a model without season."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=300).cumsum()
    holes = y.copy()
    holes[rng.choice(np.arange(1, 299), 60, replace=False)] = np.nan
    whole, thinned = (fit_form(values, Form(False, False, 1), False) for values in (y, holes))
    assert thinned.alpha == pytest.approx(whole.alpha, abs=0.1)
    assert thinned.variance == pytest.approx(whole.variance, rel=0.15)
    # A random walk, so over a hole the variance of a step adds up.
    steps = np.diff(np.flatnonzero(~np.isnan(holes)))
    moves = np.diff(holes[~np.isnan(holes)])
    exact = -0.5 * (len(moves) * (np.log(2 * np.pi * np.mean(moves**2 / steps)) + 1) + np.log(steps).sum())
    assert log_likelihood(thinned, len(moves) + 1) == pytest.approx(exact, abs=6)


def test_the_form_that_made_the_series_is_chosen():
    rng = np.random.default_rng(2)
    t = np.arange(144.0)
    season = np.tile([0.0, 5.0, -3.0, 8.0, 1.0, -6.0], 24)
    assert (
        str(ETS(1, season_length=6).fit(100 + 0.5 * season + rng.normal(size=144)).models_[0].form) == "A,N,A"
    )
    level = ETS(1, season_length=6).fit(100 + rng.normal(size=144)).models_[0]
    assert level.form == Form(False, False, 1)
    trend = ETS(1, season_length=None).fit(3 * t + rng.normal(size=144)).models_[0]
    assert trend.form.trend
    grown = np.exp(0.02 * t + 0.1 * season) * np.exp(0.05 * rng.normal(size=144))
    assert ETS(1, season_length=6).fit(grown).models_[0].logarithm


def test_a_model_of_the_logarithm_forecasts_above_zero_and_takes_a_zero_that_comes_later():
    y = np.exp(np.random.default_rng(3).normal(size=60))
    model = ETS(4, logarithm=True, season_length=None).fit(y)
    before = model.predict(level=95)
    after = model.update([0.0, -1.0]).predict(level=95)
    assert (before > 0).all() and (after > 0).all()
    assert (after[:, 0] <= before[:, 0]).all()
    mean = model.predict(point="mean")
    np.testing.assert_array_less(model.predict(), mean)


@pytest.mark.parametrize(
    ("y", "reason"),
    [
        (np.full(30, 4.0), "its values are constant"),
        ([1.0, 2.0], "2 values are too few"),
    ],
)
def test_what_cannot_be_fitted_is_naive_with_one_warning(y, reason):
    with pytest.warns(FitWarning, match=f"ETS: series 0: {reason}; Naive forecasts") as said:
        model = ETS(3).fit(y)
    assert len(said) == 1
    np.testing.assert_array_equal(model.predict(), y[-1])


def test_a_perfect_fit_is_said_to_be_one_and_stays_finite():
    with pytest.warns(FitWarning, match="fits perfectly, so its intervals have no width"):
        model = ETS(3, season_length=None).fit(np.arange(40.0))
    np.testing.assert_allclose(model.predict(level=90), np.arange(40.0, 43)[:, None] + np.zeros(3), atol=1e-4)


def test_a_series_without_logarithm_falls_back():
    with pytest.warns(FitWarning, match="its value -1 has no logarithm"):
        ETS(3, logarithm=True).fit([1.0, 2.0, -1.0, 3.0] * 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trend": "linear"}, "trend must be 'auto'"),
        ({"logarithm": "log"}, "logarithm must be True"),
        ({"season_length": 1}, "season_length must be at least 2"),
    ],
)
def test_an_option_out_of_range_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        ETS(3, **options).fit(np.arange(50.0))
