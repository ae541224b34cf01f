"""Names: a name told to fit is found and used or refused, in columns and in the index alike."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fracts import FracRidge
from fracts.baselines import Naive

DAYS = pd.date_range("2024-01-01", periods=30, name="day")
VALUES = np.random.default_rng(4).normal(size=60).cumsum()
LONG = pd.DataFrame({"site": np.repeat([1, 2], 30), "day": np.tile(DAYS, 2), "load": VALUES})
TOLD = {"id_col": "site", "time_col": "day", "target_col": "load"}
WIDE = pd.DataFrame({"a": VALUES[:30], "b": VALUES[30:]}, DAYS)


def test_names_among_columns_and_dates_in_the_index_are_a_long_frame():
    y = LONG.set_index("day")
    model = Naive(1).fit(y, id_col="site", target_col="load")
    expected = Naive(1).fit(LONG, **TOLD)
    pd.testing.assert_frame_equal(model.predict()[["site", "day", "Naive"]], expected.predict())
    nameless = Naive(1).fit(y.rename_axis(None), id_col="site", target_col="load")
    assert list(nameless.predict().columns) == ["site", "ds", "Naive"]
    later = y[-1:].set_axis(y.index[-1:] + pd.Timedelta("1D")).assign(load=7.0)
    assert model.update(later).predict()["Naive"].tolist() == [VALUES[29], 7.0]


@pytest.mark.parametrize("levels", [["site"], ["site", "extra"]])
def test_names_in_the_index_and_stamps_among_columns_are_a_long_frame(levels):
    y = LONG.assign(extra=LONG.index).set_index(levels)
    if "extra" in levels:
        y.index = y.index.droplevel("extra")
    else:
        y = y.drop(columns="extra")
    expected = Naive(2).fit(LONG, **TOLD).predict(level=80)
    pd.testing.assert_frame_equal(Naive(2).fit(y, **TOLD).predict(level=80), expected)
    plain = y.rename(columns={"day": "ds", "load": "y"}).rename_axis("unique_id")
    assert Naive(1).fit(plain).series_ids_ == [1, 2]


def test_integer_stamps_in_an_index_of_their_name_are_read_beside_names():
    y = pd.DataFrame({"unique_id": ["a", "a", "b", "b"], "y": [1.0, 2.0, 3.0, 4.0]}, pd.Index([1, 2, 1, 2]))
    forecast = Naive(1).fit(y.rename_axis("ds")).predict()
    assert forecast.to_numpy().tolist() == [["a", 3, 2.0], ["b", 3, 4.0]]


def test_covariates_may_keep_their_dates_in_the_index_beside_names():
    X = LONG.assign(heat=np.sin(np.arange(60.0)))[["site", "day", "heat"]]
    model = FracRidge(1, season_lengths=()).fit(LONG, X, **TOLD)
    other = FracRidge(1, season_lengths=()).fit(LONG, X.set_index("day"), **TOLD)
    assert other.covariates_ == ["heat"]
    ahead = X.assign(day=X["day"] + pd.Timedelta("30D"))
    pd.testing.assert_frame_equal(other.predict(X=ahead.set_index("day")), model.predict(X=ahead))


UNUSED = {
    "id_col of a wide frame": (WIDE, {"id_col": "site"}, r"id_col='site'.*wide DataFrame.*\['a', 'b'\]"),
    "time_col of a wide frame": (
        pd.DataFrame({"a": VALUES, "t": np.arange(60)}),
        {"time_col": "T"},
        r"time_col='T'.*wide DataFrame.*\['a', 't'\]",
    ),
    "target_col of a wide frame": (WIDE, {"target_col": "nope"}, "target_col='nope'.*wide DataFrame"),
    "one series of several": (
        WIDE,
        {"target_col": "b"},
        r"target_col='b'.*\['a', 'b'\].*Leave target_col out",
    ),
    "id_col of a series": (WIDE["a"], {"id_col": "site"}, "id_col='site'.*a Series"),
    "target_col of an array": (VALUES, {"target_col": "load"}, "target_col='load'.*1-D array"),
    "id_col of one series": (LONG[:30][["day", "load"]], TOLD, "id_col='site'.*stamps and values"),
    "time_col beside the only dates": (
        pl.DataFrame({"when": DAYS, "a": WIDE["a"].to_numpy()}),
        {"time_col": "ts"},
        "time_col='ts'.*column of stamps",
    ),
    "id_col of a MultiIndex": (
        LONG.set_index(["site", "day"])["load"],
        {"id_col": "shop"},
        "id_col='shop'.*MultiIndex",
    ),
    "target_col of a MultiIndex": (
        LONG.set_index(["site", "day"]),
        {"target_col": "price"},
        "target_col='price'.*MultiIndex",
    ),
}


@pytest.mark.parametrize("case", UNUSED)
def test_a_name_that_plays_no_part_is_refused(case):
    y, told, message = UNUSED[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        Naive(1).fit(y, **told)


def test_a_name_that_is_there_may_be_told_of_any_container():
    assert Naive(1).fit(WIDE, time_col="day").series_ids_ == ["a", "b"]
    assert Naive(1).fit(WIDE["a"], time_col="day", target_col="a").series_ids_ == ["a"]
    assert Naive(1).fit(WIDE[["b"]], target_col="b").series_ids_ == ["b"]
    stacked = LONG.set_index(["site", "day"])
    assert Naive(1).fit(stacked, **TOLD).series_ids_ == [1, 2]
    assert Naive(1).fit(pl.from_pandas(WIDE.reset_index()), time_col="day").series_ids_ == ["a", "b"]


@pytest.mark.parametrize("told", [{"id_col": "ds"}, {"id_col": "y"}, {"time_col": "y"}])
def test_two_parts_of_one_name_are_refused(told):
    role, name = next(iter(told.items()))
    with pytest.raises(ValueError, match=f"{role} and .* are both '{name}'|.* and {role} are both '{name}'"):
        Naive(1).fit(LONG, **told)


def test_weights_fitted_under_told_names_are_applied_to_containers_without_names():
    model = Naive(1).fit(LONG, **TOLD)
    assert model.apply(WIDE).predict().to_numpy().tolist() == [[VALUES[29], VALUES[59]]]


TAKEN = {
    "a series called as an interval of another": (
        pl.DataFrame({"ds": DAYS, "x": VALUES[:30], "x-lo-90": VALUES[30:]}),
        {},
        "x-lo-90",
    ),
    "the same in pandas": (WIDE.set_axis(["x", "x-hi-90"], axis=1), {}, "x-hi-90"),
    "ids called as the model": (LONG.rename(columns={"site": "Naive"}), TOLD | {"id_col": "Naive"}, "Naive"),
    "stamps called as the model": (
        LONG.rename(columns={"day": "Naive"}),
        TOLD | {"time_col": "Naive"},
        "Naive",
    ),
    "ids called as an interval": (
        LONG.rename(columns={"site": "Naive-lo-90"}),
        TOLD | {"id_col": "Naive-lo-90"},
        "Naive-lo-90",
    ),
    "stamps called as an interval": (
        pl.DataFrame({"x-lo-90": DAYS, "x": VALUES[:30]}),
        {},
        "x-lo-90",
    ),
}


@pytest.mark.parametrize("case", TAKEN)
def test_a_column_of_the_forecast_whose_name_is_taken_is_refused(case):
    y, told, name = TAKEN[case]
    with pytest.raises(ValueError, match=f"two columns '{name}': y has .*'{name}'.*Rename"):
        Naive(1).fit(y, **told).predict(level=90)


def test_two_quantiles_of_one_name_are_refused():
    model = Naive(1).fit(VALUES)
    with pytest.raises(ValueError, match=r"0\.1 and 0\.1000000001.*'_ql0\.1'.*one of them"):
        model.predict(quantiles=[0.1, 0.1000000001])
