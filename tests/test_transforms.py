"""Scales and bounds: quantiles come through exactly, the mean is that of the law, no bound is passed."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

from fracts import FracForecaster
from fracts.forecasts import QUANTILES
from fracts.ridge import FracRidge
from fracts.transforms import NAMED, BoxCox, Scale, learn_scale

DAYS = pd.date_range("2024-01-01", periods=260, freq="D")
LEVELS = [50, 90]


def square_of_positive(x):
    return np.square(np.maximum(x, 0.0))


ROOT = FunctionTransformer(np.sqrt, square_of_positive)


def named(transform):
    return transform if isinstance(transform, str) else type(transform).__name__


def growth(seed=0):
    """Of positive values, some near 0, that swing in ratios."""
    draws = np.random.default_rng(seed)
    rest = np.convolve(draws.normal(size=len(DAYS)), 0.8 ** np.arange(20))[: len(DAYS)]
    return pd.Series(np.exp(rest), DAYS, name="load")


def counts(seed=0):
    """Of counts that are often 0."""
    draws = np.random.default_rng(seed)
    return pd.Series(draws.poisson(np.exp(np.sin(np.arange(len(DAYS)) / 5)) * 0.6), DAYS, name="load")


def ridge(**options):
    return FracRidge(3, season_lengths=(), **options)


def refused(model, call, error, message):
    """The call raises, one line says it all, and the model has the same bytes as before."""
    before = pickle.dumps(model)
    with pytest.raises(error, match=f"(?s){message}"):
        call()
    assert pickle.dumps(model) == before


def test_a_model_on_a_scale_is_the_model_of_the_transformed_series():
    y = growth()
    expected = ridge().fit(np.log(y)).forecast(8, level=LEVELS)
    found = ridge(transform="log").fit(y).forecast(8, level=LEVELS)
    np.testing.assert_allclose(np.log(found), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("transform", ["log", "log1p", "box-cox", ROOT, StandardScaler()], ids=named)
def test_quantiles_never_cross_and_their_median_is_the_point(transform):
    model = ridge(transform=transform).fit(growth())
    table = model.forecast(9, quantiles=[0.5, *np.linspace(0.005, 0.995, 34)])
    assert (np.diff(table[:, 1:], axis=1) >= 0).all() and np.isfinite(table).all()
    np.testing.assert_array_equal(table[:, 0], table[:, 18])


@pytest.mark.parametrize("make", [ridge, lambda **o: FracForecaster(3, n_layers=0, season_lengths=(), **o)])
def test_nothing_is_forecast_below_a_bound(make):
    y = counts()
    free, bounded = make().fit(y), make(lower=0).fit(y)
    before = free.forecast(9, quantiles=QUANTILES[:5])
    assert before.min() < 0
    np.testing.assert_array_equal(bounded.forecast(9, quantiles=QUANTILES[:5]), np.maximum(before, 0))
    assert (bounded.forecast(9, point="mean") > 0).all()
    assert (bounded.predict(level=90) >= 0).all(axis=None)


@settings(max_examples=10)
@given(st.integers(0, 1000), st.sampled_from([0, -2.5, 1]), st.sampled_from([None, "log1p"]))
def test_no_bound_is_passed_whatever_the_series(seed, lower, transform):
    y = counts(seed) + max(lower, 0)
    table = ridge(lower=lower, transform=transform).fit(y).forecast(5, level=99)
    assert (table >= lower).all()


@pytest.mark.parametrize("spread", [0.1, 0.5, 1.0])
def test_the_mean_of_a_log_normal_law_is_that_of_its_formula(spread):
    found = Scale("log", NAMED["log"]).mean(2.0 + spread * ndtri(QUANTILES))
    assert found == pytest.approx(np.exp(2.0 + spread**2 / 2), rel=1e-3)


def test_the_mean_above_a_bound_is_that_of_the_law_cut_off_there():
    found = Scale(lower=0.0).mean(ndtri(QUANTILES))
    assert found == pytest.approx(1 / np.sqrt(2 * np.pi), rel=2e-3)


def test_the_mean_of_a_forecast_lies_above_the_median_as_the_outcomes_do():
    draws = np.random.default_rng(0)
    y = pd.Series(np.exp(draws.normal(size=4000)))
    model = ridge(transform="log").fit(y)
    assert model.forecast(point="mean")[1] == pytest.approx(y.mean(), rel=0.1)
    assert model.forecast()[1] == pytest.approx(y.median(), rel=0.1)
    assert model.forecast(5, point="mean").shape == (5,)


@pytest.mark.parametrize(
    "transform", ["log", "box-cox", ROOT, QuantileTransformer(n_quantiles=50)], ids=named
)
def test_a_stream_on_a_scale_equals_the_batch(transform):
    y = growth()
    model = ridge(transform=transform).fit(y[:200])
    whole = model.apply(y).forecast(5, level=LEVELS)
    stream = model.apply(y[:200]).update(y[200:230])
    for value in y[230:]:
        stream.learn_one(value)
    np.testing.assert_allclose(stream.forecast(5, level=LEVELS), whole, rtol=1e-9)


def test_score_is_in_the_units_of_the_series():
    y = growth()
    model = ridge(transform="log").fit(y[:250])
    stream, errors = model.apply(y[:250]), []
    for at in range(250, 260):
        errors.append(y.reindex(pd.date_range(DAYS[at], periods=3)).to_numpy() - stream.forecast())
        stream.learn_one(y.iloc[at])
    expected = -np.sqrt(np.nanmean(np.square(errors)) / np.mean(np.diff(y[:250]) ** 2))
    assert model.score(y[250:]) == pytest.approx(expected, rel=1e-9)


def test_missing_values_stay_missing():
    y = growth()
    y.iloc[[30, 31, 90]] = np.nan
    model = ridge(transform="box-cox").fit(y)
    np.testing.assert_allclose(
        model.forecast(), ridge(transform="box-cox").fit(y.dropna()).forecast(), rtol=1e-9
    )


def test_a_change_of_unit_is_a_change_of_unit_of_the_forecast():
    y = growth()
    for transform in ("log", "box-cox", "log1p"):
        found = ridge(transform=transform).fit(y * 1024).forecast(level=90) / 1024
        expected = ridge(transform=transform).fit(y).forecast(level=90)
        if transform == "log1p":  # which knows the unit
            assert np.abs(found - expected).max() > 1e-3
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_power_of_box_and_cox_is_found_and_stays_within_its_bounds():
    draws = np.random.default_rng(0)
    normal = draws.normal(3, 0.5, size=(4000, 1))
    assert BoxCox().fit(np.square(normal)).power_ == pytest.approx(0.5, abs=0.1)
    assert BoxCox().fit(np.exp(normal)).power_ < 0.05
    assert BoxCox().fit(normal**0.2).power_ <= 1.0
    assert BoxCox().fit(np.full((9, 1), 4.0)).power_ == 1.0
    root = BoxCox().fit(np.square(normal))
    far = root.inverse_transform(np.linspace(-50, 50, 200)[:, None])
    assert np.isfinite(far).all() and (np.diff(far[:, 0]) >= 0).all() and far[0] == 0


def test_the_transformer_given_is_left_alone_and_its_state_is_of_the_last_fit():
    given = MinMaxScaler()
    model = ridge(transform=given).fit(growth(1))
    assert not hasattr(given, "scale_") and model.get_params()["transform"] is given
    anew = clone(model).fit(growth())
    np.testing.assert_array_equal(model.fit(growth()).forecast(), anew.forecast())
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.forecast(level=90), model.forecast(level=90))


@pytest.mark.parametrize(
    "options, value, message",
    [
        (
            {"transform": "log"},
            0.0,
            r"value of series 'load' at 2024-01-06.*is 0.0.*transform='log'.*'log1p'",
        ),
        (
            {"transform": "box-cox"},
            -2.0,
            r"value of series 'load' at 2024-01-06.*is -2.0.*transform='box-cox'",
        ),
        ({"transform": "log1p"}, -1.0, r"value of series 'load' at 2024-01-06.*is -1.0.*transform='log1p'"),
        ({"transform": ROOT}, -0.5, r"value of series 'load' at 2024-01-06.*is -0.5.*makes nan"),
        (
            {"lower": 0},
            -1e-9,
            r"value of series 'load' at 2024-01-06.*is -1e-09, below lower=0.*Lower the bound",
        ),
    ],
)
def test_a_value_without_a_place_on_the_scale_is_named(options, value, message):
    y = growth()
    y.iloc[5] = value
    refused(model := ridge(**options), lambda: model.fit(y), ValueError, message)
    model.fit(growth())
    refused(model, lambda: model.apply(y), ValueError, message)
    later = message.replace("2024-01-06", "2024-09-17")
    refused(model, lambda: model.learn_one(value), ValueError, later)
    row = pd.Series([value], DAYS[-1:] + pd.Timedelta("1D"), name="load")
    refused(model, lambda: model.update(row), ValueError, later)
    refused(model, lambda: model.score(row), ValueError, later)


ONE_WAY = FunctionTransformer(np.sqrt)
TURNING = FunctionTransformer(np.sqrt, np.square)
FALLING = FunctionTransformer(np.negative, np.negative)


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"lower": "0"}, ValueError, "lower must be None or a finite number, got '0'"),
        ({"lower": np.inf}, ValueError, "lower must.*got inf"),
        ({"lower": True}, ValueError, "lower must.*got True"),
        (
            {"transform": "sqrt"},
            ValueError,
            "transform must be one of .'auto', 'log', 'log1p', 'box-cox'.*got 'sqrt'",
        ),
        ({"transform": np.log}, TypeError, "transform came as <ufunc 'log'>.*FunctionTransformer"),
        ({"transform": StandardScaler}, TypeError, "transform came as <class"),
        ({"transform": ONE_WAY}, ValueError, "does not come back: inverse_transform makes"),
        ({"transform": TURNING}, ValueError, "inverse of.*does not increase from -"),
        ({"transform": FALLING}, ValueError, "does not increase from"),
        ({"transform": PowerTransformer()}, ValueError, "inverse.*PowerTransformer.*nan.*take 'box-cox'"),
    ],
)
def test_a_scale_that_makes_no_sense_is_refused(options, error, message):
    model = ridge(**options)
    refused(model, lambda: model.fit(growth()), error, message)


@pytest.mark.parametrize("name", [*NAMED, ROOT, QuantileTransformer(n_quantiles=20)], ids=named)
def test_there_and_back_is_the_identity(name):
    y = growth().to_numpy()[None]
    told = "series {}, row {}".format
    scale = learn_scale(name, None, y, told)
    np.testing.assert_allclose(scale.back(scale.forward(y, told)), y, rtol=1e-6)


def test_a_constant_series_goes_on_whatever_the_scale():
    for transform in (None, "log", "box-cox", StandardScaler(), ROOT):
        table = ridge(transform=transform, lower=0).fit([4.0] * 30).forecast(5, level=90)
        np.testing.assert_allclose(table, 4.0, rtol=1e-6)
