"""Covariates at the door: aligned by stamp, in any container; errors name column, series and stamp."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fracts.baselines import Mean, Naive, SeasonalNaive
from fracts.ridge import FracRidge

ROWS, HORIZON = 120, 3
DAYS = pd.date_range("2024-01-01", periods=ROWS + 20, freq="D", name="ds")
nan = float("nan")


def table(seed=0):
    """Heat, a rare holiday and a sky of three kinds, on the days of the history and of what follows."""
    draws = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "heat": draws.normal(20, 5, len(DAYS)),
            "holiday": draws.random(len(DAYS)) < 0.1,
            "sky": draws.choice(["clear", "clouds", "rain"], len(DAYS)),
        },
        DAYS,
    )


def load(X, seed=1, name="load"):
    """A persistent series that heat, holidays and rain move, on the days of the history."""
    draws = np.random.default_rng(seed)
    rest = np.convolve(draws.normal(size=len(X)), 0.5 ** np.arange(5))[: len(X)]
    moved = 2 * X["heat"] + 30 * X["holiday"] - 10 * (X["sky"] == "rain")
    return (100 + moved + rest)[:ROWS].rename(name)


X = table()
Y = load(X)


def ridge(**options):
    return FracRidge(HORIZON, **({"season_lengths": ()} | options))


FITTED = ridge().fit(Y, X)


def refused(model, call, error, message):
    """The call raises, one line says it all, and the model has the same bytes as before."""
    before = pickle.dumps(model)
    with pytest.raises(error, match=f"(?s){message}"):
        call()
    assert pickle.dumps(model) == before


def test_what_moves_a_series_is_seen_ahead():
    rows = DAYS[ROWS : ROWS + HORIZON]
    calm = X.loc[rows].assign(heat=20.0, holiday=False, sky="clear")
    assert FITTED.covariates_ == ["heat", "holiday", "sky"]
    base = FITTED.predict(X=calm)
    np.testing.assert_allclose(FITTED.predict(X=calm.assign(heat=30.0)) - base, 20, atol=2)
    np.testing.assert_allclose(FITTED.predict(X=calm.assign(holiday=True)) - base, 30, atol=2)
    np.testing.assert_allclose(FITTED.predict(X=calm.assign(sky="rain")) - base, -10, atol=1)


def test_a_lead_looks_at_its_own_step_alone():
    before = FITTED.predict(X=X)
    changed = X.copy()
    changed.loc[DAYS[ROWS + 1], "heat"] += 10
    moved = FITTED.predict(X=changed) != before
    assert list(moved) == [False, True, False]


def test_what_is_in_the_past_alone_is_not_looked_at_ahead():
    model = ridge(past_only=("heat", "sky")).fit(Y, X)
    ahead = X.loc[DAYS[ROWS] :]
    expected = model.predict(X=ahead)
    pd.testing.assert_series_equal(model.predict(X=ahead[["holiday"]]), expected)
    pd.testing.assert_series_equal(model.predict(X=ahead.assign(heat=nan, sky="?")), expected)
    every = ridge(past_only=("heat", "holiday", "sky")).fit(Y, X)
    pd.testing.assert_series_equal(every.predict(), every.predict(X=ahead))
    heated = X.copy()
    heated.loc[DAYS[ROWS - 1], "heat"] += 10
    assert (every.predict() != every.apply(Y, heated).predict()).all()


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_found_by_stamp_in_any_order_and_among_any_others(seed):
    shuffled = X.sample(frac=1, random_state=seed)[["sky", "heat", "holiday"]]
    cut = 90
    model = ridge().fit(Y[:cut], shuffled).update(Y[cut:], shuffled)
    plain = ridge().fit(Y[:cut], X[:cut]).update(Y[cut:], X[cut:ROWS])
    ahead = X[ROWS : ROWS + HORIZON]
    pd.testing.assert_series_equal(model.predict(X=shuffled), plain.predict(X=ahead[::-1]))


def long(frame, names=("a", "b")):
    """Of every name a copy of the rows, with the columns `unique_id` and `ds`."""
    return pd.concat([frame.reset_index().assign(unique_id=name) for name in names])


def panel():
    """Two series with heat of their own and the same holidays, and their covariates under (id, ds)."""
    own = {"a": table(3), "b": table(4)}
    own["b"] = own["b"].assign(holiday=own["a"]["holiday"])
    y = pd.DataFrame({name: load(x, seed=i, name=name) for i, (name, x) in enumerate(own.items())})
    return y, pd.concat(own, names=["unique_id", "ds"])


def test_any_container_says_the_same():
    y, x = panel()
    expected = ridge().fit(y, x).predict(X=x)
    flat = x.reset_index()
    level = y.rename_axis(columns="unique_id").stack().rename("y").swaplevel()
    rows = level.reset_index()
    for found in (
        ridge().fit(y, flat).predict(X=pl.from_pandas(flat)),
        ridge().fit(level, x).predict(X=x).unstack("unique_id"),
        ridge().fit(rows, flat).predict(X=flat).set_index(["unique_id", "ds"])["FracRidge"].unstack(0),
    ):
        np.testing.assert_array_equal(found.to_numpy(), expected.to_numpy())
    for library in (pl.from_pandas, pa.Table.from_pandas):
        native = ridge().fit(library(rows), library(flat)).predict(X=library(flat))
        values = np.asarray(native["FracRidge"]).reshape(2, HORIZON)
        np.testing.assert_array_equal(values, expected.to_numpy().T)


def test_covariates_without_names_are_of_all_series():
    y, _ = panel()
    shared = ridge().fit(y, X).predict(X=X)
    each = pd.concat({"a": X, "b": X})
    pd.testing.assert_frame_equal(ridge().fit(y, each).predict(X=each), shared)
    rows = y.rename_axis(columns="unique_id").stack().rename("y").reset_index()
    flat = ridge().fit(rows, X.reset_index()).predict(X=X.reset_index())
    np.testing.assert_array_equal(flat["FracRidge"].to_numpy(), shared.to_numpy().T.ravel())


def test_an_array_has_its_rows_beside_those_of_y():
    numbers = X[["heat", "holiday"]]
    labelled = ridge().fit(Y, numbers)
    bare = numbers.to_numpy(dtype=float)
    model = ridge().fit(Y.to_numpy()[:90], bare[:90]).update(Y.to_numpy()[90:], bare[90:ROWS])
    assert model.covariates_ == [0, 1]
    whole = labelled.apply(Y[:90], numbers).update(Y[90:], numbers)
    assert model.forecast(2, bare[ROWS : ROWS + 2]).shape == (2,)
    assert whole.forecast(2, numbers).shape == (2,)
    single = ridge(past_only=(1,)).fit(Y.to_numpy(), bare[:ROWS])
    expected = ridge(past_only=("holiday",)).fit(Y, numbers).forecast(X=numbers)
    np.testing.assert_array_equal(single.forecast(X=bare[ROWS : ROWS + HORIZON, :1]), expected)


def test_every_series_may_end_where_it_likes():
    y, x = panel()
    rows = y.rename_axis(columns="unique_id").stack().rename("y").reset_index()
    ended = rows[~((rows["unique_id"] == "b") & (rows["ds"] > DAYS[99]))]
    model = ridge().fit(rows, x.reset_index())
    both = model.apply(ended, x.reset_index()).predict(X=x.reset_index()).set_index("unique_id")
    alone = model.apply(ended[ended["unique_id"] == "b"], x.reset_index()).predict(X=x.reset_index())
    np.testing.assert_allclose(both.loc["b", "FracRidge"], alone["FracRidge"], rtol=1e-12)
    assert both.loc["b", "ds"].iloc[0] == DAYS[100] and both.loc["a", "ds"].iloc[0] == DAYS[ROWS]
    later = x.reset_index()
    later.loc[(later["unique_id"] == "b") & (later["ds"] == DAYS[100]), "heat"] += 10
    moved = model.apply(ended, x.reset_index()).predict(X=later).set_index("unique_id")
    assert list(moved["FracRidge"] != both["FracRidge"]) == [False] * HORIZON + [True, False, False]


def test_a_column_that_is_constant_in_each_series_tells_its_kind():
    """Static covariates: of one history, a series of the kind that climbs goes higher."""
    draws, days = np.random.default_rng(0), DAYS[:60]
    kinds = {f"s{i}": ("climbs", "falls")[i % 2] for i in range(8)}
    y = pd.DataFrame(
        {
            name: (draws.normal(size=60) + (1.0 if kind == "climbs" else -1.0)).cumsum()
            for name, kind in kinds.items()
        },
        days,
    )
    static = pd.concat({name: pd.DataFrame({"kind": kind}, DAYS) for name, kind in kinds.items()})
    model = ridge(pooled=True).fit(y, static)
    start = pd.DataFrame({"new": draws.normal(size=20).cumsum()}, days[:20])
    x = {kind: pd.concat({"new": pd.DataFrame({"kind": kind}, DAYS)}) for kind in ("climbs", "falls")}
    high, low = (model.apply(start, x[kind]).predict(X=x[kind])["new"] for kind in ("climbs", "falls"))
    assert (high - low > [0.1, 0.3, 0.5]).all()


@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_the_vocabulary_is_that_of_fit_whatever_holds_the_texts(dtype):
    typed = X.astype({"sky": dtype})
    np.testing.assert_array_equal(ridge().fit(Y, typed).predict(X=typed), FITTED.predict(X=X))
    np.testing.assert_array_equal(FITTED.predict(X=typed), FITTED.predict(X=X))


def test_a_level_that_fit_did_not_see_is_an_error_unless_it_was_declared():
    snow = X.copy()
    snow.loc[DAYS[ROWS + 1], "sky"] = "snow"
    message = (
        r"'snow' in column 'sky' of series 'load' at 2024-05-01.*saw \['clear', 'clouds', 'rain'\].*Declare"
    )
    refused(FITTED, lambda: FITTED.predict(X=snow), ValueError, message)
    declared = snow.astype({"sky": pd.CategoricalDtype(["clear", "clouds", "rain", "snow"])})
    model = ridge().fit(Y, declared)
    assert np.isfinite(model.predict(X=declared)).all()
    np.testing.assert_allclose(model.predict(X=X), FITTED.predict(X=X), rtol=1e-9)
    assert np.isfinite(FITTED.predict(1, X=snow)).all()  # not looked at
    polar = pl.from_pandas(snow.reset_index()).cast({"sky": pl.Enum(["clear", "clouds", "rain", "snow"])})
    rows = pl.from_pandas(Y.rename("y").reset_index())
    assert np.isfinite(ridge().fit(rows, polar).predict(X=polar)["FracRidge"].to_numpy()).all()


def test_a_value_may_be_missing_where_y_has_none():
    y, holed = Y.copy(), X.astype({"holiday": object})
    y.iloc[[40, 41, 50]] = nan
    holed.iloc[[40, 50]] = None
    holed = holed.astype({"holiday": "boolean"}).drop(DAYS[41])
    model = ridge().fit(y, holed)
    filled = ridge().fit(y, X)
    np.testing.assert_allclose(model.predict(X=X), filled.predict(X=X), rtol=1e-10)


def test_what_is_missing_is_listed_by_series_and_stamp():
    y, x = panel()
    holed = x.drop([("b", DAYS[7]), ("b", DAYS[8])])
    holed.loc[("a", DAYS[5]), "heat"] = nan
    model = ridge()
    listed = (
        r"X lacks 'heat' of series 'a' at 2024-01-06 00:00:00, 'heat' of series 'b' at 2024-01-08 00:00:00, "
        r"'heat' of series 'b' at 2024-01-09 00:00:00"
    )
    refused(model, lambda: model.fit(y, holed), ValueError, listed)
    refused(
        FITTED,
        lambda: FITTED.predict(X=X[: ROWS + 1]),
        ValueError,
        r"X lacks 'heat' of series 'load' at 2024-05-01.*'heat' .* at 2024-05-02.*'holiday'.*, and 2 more",
    )


BAD_HISTORIES = {
    "the target by habit": (Y, TypeError, r"X came as Series with 1 axis.*fit\(y, X\).*to_frame"),
    "one row of numbers": (Y.to_list(), TypeError, r"X came as list with 1 axis"),
    "an array beside stamps": (X[["heat"]].to_numpy()[:ROWS], TypeError, "y has stamps.*index=y.index"),
    "a string": ("heat", TypeError, "X came as str"),
    "a column twice": (pd.concat([X, X], axis=1), ValueError, "two columns 'heat'"),
    "a stamp twice": (pd.concat([X, X[3:4]]), ValueError, "two rows at 2024-01-04.*drop repeats"),
    "the series itself": (X.assign(load=Y), ValueError, "column 'load', which is the name of the series"),
    "dates": (X.assign(day=DAYS), TypeError, "'day' of X has dtype datetime64.*to_numeric"),
    "mixed objects": (X.assign(sky=["x", 3.0] * 70), TypeError, "'sky' of X has dtype object"),
    "an infinity": (X.assign(heat=np.inf), ValueError, "inf in column 'heat' at 2024-01-01.*row 0"),
    "stamps off the grid": (X.shift(freq="h"), ValueError, "X lacks 'heat' of series 'load' at 2024-01-01"),
    "integers as stamps": (X.reset_index(drop=True), TypeError, "fit saw dates"),
    "no stamps": (pl.from_pandas(X), ValueError, "no column 'ds'.*time_col"),
    "too few rows": (X[:50], ValueError, "X lacks 'heat' of series 'load' at 2024-02-20"),
}


@pytest.mark.parametrize("case", BAD_HISTORIES)
def test_a_bad_x_is_refused_by_fit(case):
    x, error, message = BAD_HISTORIES[case]
    refused(FITTED, lambda: FITTED.fit(Y, x), error, message)


BAD_FUTURES = {
    "none": (None, ValueError, "fit saw the covariates .*no X came.*2024-04-30.*2024-05-02.*past_only"),
    "a column less": (X[["heat", "sky"]], ValueError, r"lacks the columns \['holiday'\]"),
    "a column more": (X.assign(wind=1.0), ValueError, r"columns \['wind'\] that fit did not see"),
    "texts for numbers": (X.assign(heat="hot"), TypeError, "'heat' of X has dtype (str|object); numbers"),
    "an array": (X.to_numpy()[:3], TypeError, "X came as an array, but y has stamps"),
}


@pytest.mark.parametrize("case", BAD_FUTURES)
def test_a_bad_x_is_refused_ahead(case):
    x, error, message = BAD_FUTURES[case]
    refused(FITTED, lambda: FITTED.predict(X=x), error, message)
    refused(FITTED, lambda: FITTED.forecast(X=x), error, message)


def test_an_x_that_is_missing_is_an_error_everywhere():
    later = pd.Series([1.0, 2.0], DAYS[ROWS : ROWS + 2], name="load")
    for call in (FITTED.update, FITTED.score, FITTED.apply):
        refused(FITTED, lambda call=call: call(later), ValueError, "no X came.*2024-04-30.*to 2024-05-01")
    refused(FITTED, lambda: FITTED.learn_one(1.0), ValueError, "no X came.*the step 2024-04-30")


@pytest.mark.parametrize(
    "x, error, message",
    [
        ([1.0, False], ValueError, r"x has shape \(2,\).*'heat', 'holiday', 'sky'"),
        ([1.0, False, "snow"], ValueError, "'snow' in column 'sky' of series 'load' at 2024-04-30"),
        ([np.inf, False, "rain"], ValueError, "inf in column 'heat' at 2024-04-30"),
        ([None, False, "rain"], ValueError, "X lacks 'heat' of series 'load' at 2024-04-30"),
        (["hot", False, "rain"], TypeError, "'heat' of X has dtype str; numbers"),
        ({"heat": 1.0, "sky": "rain"}, ValueError, r"lacks the columns \['holiday'\]"),
        ({"heat": 1.0, "sky": "rain", "holiday": 0, "b": 1}, ValueError, r"columns \['b'\]"),
    ],
)
def test_a_bad_row_is_refused(x, error, message):
    refused(FITTED, lambda: FITTED.learn_one(1.0, x), error, message)


def test_a_row_is_read_by_name_or_in_order():
    row = X.loc[DAYS[ROWS]]
    models = [FITTED.apply(Y, X) for _ in range(4)]
    models[0].learn_one(150.0, row.to_dict()).learn_one(nan, [None, None, None])
    models[1].learn_one(150.0, row.to_list()).learn_one(nan, X.loc[DAYS[ROWS + 1]])
    models[2].learn_one(150.0, row[["sky", "holiday", "heat"]]).learn_one(nan, [pd.NA, nan, "rain"])
    models[3].update(pd.Series([150.0, nan], DAYS[ROWS : ROWS + 2], name="load"), X)
    for model in models:
        np.testing.assert_array_equal(model.forecast(X=X), models[0].forecast(X=X))


def test_each_series_may_have_a_row_of_its_own():
    y, x = panel()
    model = ridge().fit(y, x)
    own = x.xs(DAYS[ROWS], level="ds")
    stream = model.apply(y, x).learn_many([100.0, 120.0], own.to_numpy())
    later = pd.DataFrame({"a": [100.0], "b": [120.0]}, DAYS[ROWS : ROWS + 1])
    np.testing.assert_array_equal(stream.forecast(X=x), model.update(later, x).forecast(X=x))


@pytest.mark.parametrize(
    "past_only, x, error, message",
    [
        (("wind",), X, ValueError, r"past_only names 'wind', which X does not hold: it has \['heat'"),
        (("heat",), None, ValueError, "past_only names 'heat'.*give X to fit"),
        ("heat", X, TypeError, r"past_only must be a tuple.*got 'heat'.*past_only=\('temp',\)"),
    ],
)
def test_past_only_names_columns_of_x(past_only, x, error, message):
    model = ridge(past_only=past_only)
    refused(model, lambda: model.fit(Y, x), error, message)


@pytest.mark.parametrize("model", [Naive(2), SeasonalNaive(2, season_length=7), Mean(2)], ids=str)
def test_a_rule_that_makes_nothing_of_covariates_refuses_them(model):
    message = f"X came as DataFrame, but {type(model).__name__} makes nothing of covariates.*FracRidge"
    refused(model, lambda: model.fit(Y, X), TypeError, message)
    model.fit(Y)
    refused(model, lambda: model.predict(X=X), TypeError, "fit saw no covariates")


def test_the_unit_of_a_number_and_the_shift_of_it_do_not_matter():
    other = X.assign(heat=X["heat"] * 1000 - 5)
    np.testing.assert_allclose(ridge().fit(Y, other).predict(X=other), FITTED.predict(X=X), rtol=1e-9)


def test_a_column_that_never_changed_tells_nothing():
    flat = X.assign(rate=3.0)
    model = ridge().fit(Y, flat)
    expected = FITTED.predict(X=X)
    np.testing.assert_allclose(model.predict(X=flat), expected, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X=flat.assign(rate=99.0)), expected, rtol=1e-9)


def test_holidays_of_a_calendar_are_a_column_known_in_advance():
    from pandas.tseries.holiday import USFederalHolidayCalendar

    hours = pd.date_range("2024-01-01", periods=24 * 60, freq="h")
    days = USFederalHolidayCalendar().holidays(hours[0], hours[-1])
    off = pd.DataFrame({"holiday": hours.normalize().isin(days)}, hours)
    draws = np.random.default_rng(0)
    y = (10.0 - 8.0 * off["holiday"] + draws.normal(size=len(hours))).rename("load")
    model = ridge().fit(y["2024-01":"2024-02-18"], off)  # two of its holidays are before, one follows
    assert (model.predict(X=off) < 6).all()  # 19 February
    assert (model.predict(X=off.assign(holiday=False)) > 8).all()


def test_what_tells_nothing_moves_next_to_nothing():
    draws = np.random.default_rng(0)
    rows = pd.date_range("2024-01-01", periods=400, freq="D")
    noise = pd.DataFrame(draws.normal(size=(403, 4)), pd.date_range("2024-01-01", periods=403), list("abcd"))
    y = pd.Series(draws.normal(size=400), rows, name="load") + noise["a"][:400] * 3
    model = ridge().fit(y, noise)
    still = model.predict(X=noise * 0)
    moved = [model.predict(X=noise * 0 + np.eye(4)[i]) - still for i in range(4)]
    np.testing.assert_allclose(moved, np.repeat([[3.0], [0], [0], [0]], HORIZON, axis=1), atol=0.2)


def test_a_column_of_names_that_do_not_come_again_is_refused():
    days = pd.date_range("2024-01-01", periods=60)
    y = pd.Series(np.arange(60.0), days)
    with pytest.raises(ValueError, match=r"'id' of X holds 60 different texts in 60 rows.*leave it out"):
        FracRidge(2).fit(y, pd.DataFrame({"id": [f"order {i}" for i in range(60)]}, days))
