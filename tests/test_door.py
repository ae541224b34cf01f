"""What goes in comes back in kind: containers, names, stamps and shapes."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from fracts.baselines import Mean, Naive, SeasonalNaive
from fracts.scores import naive_scale, rmsse

ROWS = 60
VALUES = np.random.default_rng(1).normal(size=ROWS).cumsum()
INDEXES = {
    "hours in a zone": pd.date_range(
        "2024-03-30", periods=ROWS + 3, freq="h", tz="Europe/Paris", name="when"
    ),
    "nanoseconds": pd.date_range("2024-01-01", periods=ROWS + 3, freq="D", unit="ns"),
    "month ends": pd.DatetimeIndex(pd.date_range("2014-01-31", periods=ROWS + 3, freq="ME"), freq=None),
    "quarters": pd.period_range("1990Q1", periods=ROWS + 3, freq="Q-DEC", name="q"),
    "a range": pd.RangeIndex(100, 100 + 2 * (ROWS + 3), 2, name="n"),
    "integers": pd.Index(np.arange(-5, ROWS - 2), name="n"),
}


@pytest.fixture(params=INDEXES)
def index(request):
    return INDEXES[request.param]


def assert_same_stamps(found, expected):
    """Equal but for the `freq` of dates."""
    assert (found.dtype, found.name, list(found)) == (expected.dtype, expected.name, list(expected))


def test_a_series_comes_back_as_a_series(entry, index):
    y = pd.Series(VALUES, index[:ROWS], name="load")
    forecast = entry.make(3).fit(y).predict()
    assert isinstance(forecast, pd.Series) and forecast.name == "load" and forecast.notna().all()
    assert_same_stamps(forecast.index, index[ROWS:])


@pytest.mark.parametrize("name, column", [("load", "load"), (None, "y"), (7, 7)])
def test_level_adds_columns_after_the_series_name(entry, name, column):
    y = pd.Series(VALUES, INDEXES["nanoseconds"][:ROWS], name=name)
    forecast = entry.make(3).fit(y).predict(level=[80, 97.5])
    ends = ["-lo-97.5", "-lo-80", "-hi-80", "-hi-97.5"]
    assert list(forecast.columns) == [column, *(f"{column}{end}" for end in ends)]
    assert (np.diff(forecast.iloc[:, 1:].to_numpy(), axis=1) > 0).all()


def test_a_wide_frame_comes_back_wide(entry, index):
    y = pd.DataFrame({"b": VALUES, "a": -VALUES}, index[:ROWS])
    y.columns.name = "site"
    model = entry.make(3).fit(y)
    pd.testing.assert_index_equal(model.predict().columns, y.columns)
    assert_same_stamps(model.predict().index, index[ROWS:])
    assert list(model.predict(quantiles=[0.9, 0.1]).columns) == [
        "b",
        "b_ql0.1",
        "b_ql0.9",
        "a",
        "a_ql0.1",
        "a_ql0.9",
    ]


@pytest.mark.parametrize("kind", ["array", "list", "series"])
def test_one_series_gives_arrays_without_an_axis_of_series(entry, kind):
    y = {"array": VALUES, "list": list(VALUES), "series": pd.Series(VALUES)}[kind]
    model = entry.make(4).fit(y)
    assert model.forecast().shape == (4,)
    assert model.forecast(2, level=90).shape == (2, 3)
    np.testing.assert_array_equal(model.forecast(9, level=90), np.asarray(model.predict(9, level=90)))


@pytest.mark.parametrize("kind", ["matrix", "frame"])
def test_several_series_give_arrays_with_an_axis_of_series_before_the_last(entry, kind):
    y = np.column_stack([VALUES, VALUES + 100])
    model = entry.make(4).fit(y if kind == "matrix" else pd.DataFrame(y))
    table = model.forecast(level=90)
    assert table.shape == (4, 2, 3)
    np.testing.assert_allclose(
        table[..., 0], model.forecast(), rtol=1e-13
    )  # rounded otherwise without intervals
    assert (table[:, 1] > table[:, 0] + 50).all()
    if kind == "matrix":
        np.testing.assert_array_equal(table, model.predict(level=90))


def test_a_column_of_a_panel_has_the_points_it_has_alone():
    y = np.column_stack([VALUES, 3 - VALUES])
    for model in (Naive(4), SeasonalNaive(4, season_length=5), Mean(4)):
        np.testing.assert_array_equal(model.fit(y).predict()[:, 1], clone(model).fit(y[:, 1]).predict())


@pytest.mark.parametrize("dtype", ["int16", "int64", "float32", "Int64", "Float64"])
def test_any_number_type_is_taken(dtype):
    y = pd.Series([1, 2, 4], dtype=dtype)
    assert Naive(1).fit(y).predict().iloc[0] == 4.0
    assert Naive(1).fit(y).predict().dtype == np.float64


def test_na_of_nullable_types_and_masks_are_no_values():
    assert Naive(1).fit(pd.Series([1, 2, None], dtype="Int64")).predict().iloc[0] == 2.0
    assert Naive(1).fit(np.ma.array([1.0, 2.0, 9.0], mask=[0, 0, 1])).predict()[0] == 2.0


def test_what_fit_learned_about_the_data_can_be_read():
    y = pd.Series(VALUES, INDEXES["month ends"][:ROWS], name="load")
    model = Naive(3).fit(y)
    assert (model.cutoff_, model.series_ids_, model.freq_) == (y.index[-1], ["load"], "ME")
    assert (
        model.update(pd.Series([1.0], INDEXES["month ends"][[ROWS]])).cutoff_ == INDEXES["month ends"][ROWS]
    )
    array = Naive(3).fit(VALUES)
    assert (array.cutoff_, array.series_ids_, array.freq_) == (ROWS - 1, [0], None)
    assert array.learn_one(1.0).cutoff_ == ROWS


def test_a_frame_is_updated_by_name_in_any_order_and_in_part():
    index = INDEXES["nanoseconds"]
    model = Naive(1).fit(pd.DataFrame({"a": VALUES, "b": -VALUES}, index[:ROWS]))
    model.update(pd.DataFrame({"b": [20.0], "a": [10.0]}, index[[ROWS]]))
    assert model.predict().iloc[0].to_dict() == {"a": 10.0, "b": 20.0}
    model.update(pd.DataFrame({"b": [21.0]}, index[[ROWS + 1]]))
    assert model.predict().iloc[0].to_dict() == {"a": 10.0, "b": 21.0}
    assert model.cutoff_ == index[ROWS + 1]
    model.learn_many([np.nan, 22.0])
    assert model.predict().iloc[0].to_dict() == {"a": 10.0, "b": 22.0}


def test_a_gap_before_an_update_is_a_longer_step():
    index = pd.date_range("2024-01-01", periods=40, freq="D")
    y = pd.Series(np.arange(40.0), index)
    model = SeasonalNaive(1, season_length=7).fit(y[:30]).update(y[33:35])
    assert model.predict().iloc[0] == 28.0  # the day a week before 2024-02-05
    assert model.predict().index[0] == index[35]


def test_apply_starts_other_series_with_the_same_weights(entry):
    y = pd.DataFrame({"a": VALUES, "b": -VALUES}, INDEXES["nanoseconds"][:ROWS])
    model = entry.make(3).fit(y if entry.shared else y[["a"]])
    before = pickle.dumps(model)
    other = model.apply(pd.DataFrame({"c": 5 + VALUES[:30]}, INDEXES["nanoseconds"][10:40]))
    assert other.series_ids_ == ["c"] and other.cutoff_ == INDEXES["nanoseconds"][39]
    other.update(pd.DataFrame({"c": [1.0]}, INDEXES["nanoseconds"][[40]]))
    assert list(other.predict(level=90).columns) == ["c", "c-lo-90", "c-hi-90"]
    assert pickle.dumps(model) == before


def test_score_is_minus_the_rmsse_of_all_origins():
    y = np.append(VALUES, [3.0, np.nan, 5.0, 6.0])
    model = Naive(2).fit(y[:ROWS])
    last, scale = y[ROWS - 1], naive_scale(y[:ROWS], power=2)
    truth = np.array([[3.0, np.nan], [np.nan, 5.0], [5.0, 6.0], [6.0, np.nan]])
    expected = rmsse(truth, np.array([[last], [3.0], [3.0], [5.0]]), scale)
    assert model.score(y[ROWS:]) == pytest.approx(-expected, rel=1e-14)


def test_score_is_the_mean_over_series():
    y = np.column_stack([VALUES, 10 * VALUES[::-1]])
    alone = [Naive(3).fit(y[:40, s]).score(y[40:, s]) for s in (0, 1)]
    assert Naive(3).fit(y[:40]).score(y[40:]) == pytest.approx(np.mean(alone), rel=1e-14)


def test_grid_search_over_time_works():
    y = pd.Series(np.tile([0.0, 5.0, 1.0, 7.0, 2.0], 24), pd.date_range("2024-01-01", periods=120, freq="h"))
    y += 0.1 * np.random.default_rng(2).normal(size=120)
    search = GridSearchCV(SeasonalNaive(5), {"season_length": [3, 4, 5]}, cv=TimeSeriesSplit(3)).fit(y)
    assert search.best_params_ == {"season_length": 5}
    assert len(search.best_estimator_.predict()) == 5


def test_an_estimator_is_copied_and_kept_like_any_other(entry):
    model = entry.make(3)
    assert repr(clone(model)) == repr(model)
    y = pd.Series(VALUES, INDEXES["hours in a zone"][:ROWS], name="load")
    model.fit(y)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        pd.testing.assert_frame_equal(other.predict(level=90), model.predict(level=90), check_freq=False)
        assert other.learn_one(1.0).cutoff_ > model.cutoff_
    with pytest.raises(NotFittedError, match="call fit first"):
        clone(model).predict()
    assert not hasattr(clone(model), "cutoff_")


class Sometimes(Naive):
    """Learns one attribute more from long histories."""

    def _fit(self, panel, clock):
        super()._fit(panel, clock)
        if len(panel.times) > 10:
            self.long_ = True


def test_an_attribute_that_only_the_last_fit_learned_is_forgotten():
    model = Sometimes(1).fit(VALUES)
    assert model.long_
    assert not hasattr(model.fit(VALUES[:5]), "long_")
