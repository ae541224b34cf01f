"""Stamps of X: rows that no row of y asks for are skipped, and an error about them says that X is meant."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts import FracRidge

RNG = np.random.default_rng(8)
GRIDS = {
    "business days among days": (pd.bdate_range("2020-01-01", periods=110), "D"),
    "months among days": (pd.date_range("2020-01-31", periods=60, freq="ME"), "D"),
    "days among hours": (pd.date_range("2020-01-01", periods=90), "h"),
    "weeks among days": (pd.date_range("2020-01-01", periods=60, freq="W-WED"), "D"),
}


def ridge():
    return FracRidge(2, season_lengths=())


def beside(stamps, freq):
    """y on `stamps` and an X on these, the next two, and every stamp of `freq` around them."""
    after = ridge().fit(pd.Series(RNG.normal(size=len(stamps)), stamps)).predict().index
    around = pd.date_range(stamps[0] - pd.Timedelta("9D"), after[-1] + pd.Timedelta("9D"), freq=freq)
    X = pd.DataFrame({"holiday": RNG.normal(size=len(around))}, around)
    y = pd.Series(RNG.normal(size=len(stamps)), stamps) + X["holiday"].reindex(stamps)
    return y, X, after


@pytest.mark.parametrize("grid", GRIDS)
def test_rows_of_x_off_the_grid_change_nothing(grid):
    y, X, after = beside(*GRIDS[grid])
    exact = X.loc[[*y.index, *after]]
    expected = ridge().fit(y, exact).predict(X=exact)
    pd.testing.assert_series_equal(ridge().fit(y, X).predict(X=X), expected)
    model = ridge().fit(y[:50], X).update(y[50:], X)
    other = ridge().fit(y[:50], exact).update(y[50:], exact)
    pd.testing.assert_series_equal(model.predict(X=X), other.predict(X=exact))


@given(st.integers(0, 59))
@settings(max_examples=10)
def test_a_row_of_x_that_is_wanted_is_missed_among_any_others(row):
    y, X, _ = beside(*GRIDS["months among days"])
    stamp = y.index[row]
    with pytest.raises(ValueError, match=f"X lacks 'holiday' of series None at {stamp}"):
        ridge().fit(y, X.drop(index=stamp))


DAYS = pd.date_range("2020-01-01", periods=40)
Y = pd.Series(RNG.normal(size=40), DAYS)
HEAT = RNG.normal(size=40)
OTHER = {
    "dates in a column": (
        pd.DataFrame({"date": DAYS, "heat": HEAT}),
        r"row numbers.*index, or its column 'ds'",
    ),
    "stamps of text": (pd.DataFrame({"heat": HEAT}, DAYS.astype(str)), "dtype (str|object).*to_datetime"),
    "a table of series": (pd.DataFrame({"size": [1.0]}, ["a"]), "dtype (str|object).*for good is repeated"),
    "a zone": (pd.DataFrame({"heat": HEAT}, DAYS.tz_localize("UTC")), r"time zone UTC.*on the stamps"),
    "periods": (pd.DataFrame({"heat": HEAT}, DAYS.to_period("D")), "periods of D.*fit saw dates"),
    "integers of polars": (pl.DataFrame({"ds": range(40), "heat": HEAT}), "integers.*fit saw dates"),
}


@pytest.mark.parametrize("case", OTHER)
def test_stamps_of_x_of_another_kind_are_told_of_x(case):
    X, message = OTHER[case]
    with pytest.raises(TypeError, match=f"(?s)X is aligned by stamp.*{message}"):
        ridge().fit(Y, X)


def test_an_x_without_rows_is_refused():
    X = pd.DataFrame({"heat": HEAT}, DAYS)
    with pytest.raises(ValueError, match="X has no rows"):
        ridge().fit(Y, X[:0])
    with pytest.raises(ValueError, match="X has no rows"):
        ridge().fit(Y, X).predict(X=pl.from_pandas(X[:0].rename_axis("ds").reset_index()))


@pytest.mark.parametrize("value", [3e101, -3e101, 3e-101, np.inf])
def test_a_covariate_far_too_large_or_small_is_named(value):
    X = pd.DataFrame({"heat": HEAT}, DAYS)
    far = X.assign(heat=X["heat"].where(X.index != DAYS[7], value))
    message = f"X holds {value} in column 'heat' at 2020-01-08.*row 7".replace("+", r"\+")
    with pytest.raises(ValueError, match=message):
        ridge().fit(Y, far)
    model = ridge().fit(Y, X)
    with pytest.raises(ValueError, match=r"X holds .* in column 'heat' at 2020-02-10"):
        model.learn_one(1.0, {"heat": value})


def test_a_row_of_another_stamp_is_refused_by_learn_one():
    days = pd.date_range("2024-01-01", periods=60)
    draws = np.random.default_rng(0)
    X = pd.DataFrame({"temp": draws.normal(size=60), "holiday": draws.random(60) < 0.2}, days)
    model = FracRidge(2).fit(pd.Series(draws.normal(size=50), days[:50]), X)
    before = model.forecast(X=X)
    with pytest.raises(ValueError, match=r"row of 2024-02-22 .* value is that of 2024-02-20"):
        model.learn_one(1.0, X.loc["2024-02-22"])
    with pytest.raises(TypeError, match="came as DataFrame; the covariates of one step"):
        model.learn_one(1.0, X.loc[["2024-02-20"]])
    np.testing.assert_array_equal(model.forecast(X=X), before)
    other = copy.deepcopy(model).learn_one(1.0, dict(X.loc["2024-02-20"]))
    np.testing.assert_array_equal(
        model.learn_one(1.0, X.loc["2024-02-20"]).forecast(X=X), other.forecast(X=X)
    )
