"""Messages: the cure named is the one that helps."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fracts.baselines import Mean, Naive

DAYS = pd.date_range("2024-01-01", periods=6)
VALUES = np.array([1.0, 2.0, 4.0, 3.0, 5.0, 6.0])
CSV = pd.DataFrame({"date": DAYS.astype(str), "load": VALUES})
LONG = pd.DataFrame({"uid": ["a"] * 3 + ["b"] * 3, "ds": [1, 2, 3] * 2, "y": VALUES})
PAIRS = pd.MultiIndex.from_arrays([DAYS[[0, 1, 2] * 2], ["a"] * 3 + ["b"] * 3], names=["when", "shop"])

MISTAKES = {
    "dates as text among the series": (CSV, {}, TypeError, "'date' holds .*to_datetime.*time_col='date'"),
    "dates among the series": (
        CSV.assign(date=DAYS),
        {},
        TypeError,
        "'date' holds values of dtype datetime64.*time_col='date'",
    ),
    "fractions as stamps": (
        pd.Series(VALUES, 2000.0 + np.arange(6)),
        {},
        TypeError,
        r"float64, such as .*2000\.0.*astype\(int\)",
    ),
    "an id column that is not told": (
        LONG,
        {},
        ValueError,
        r"\['uid'\] are none of \['ds', 'y'\].*`id_col=...` and `target_col=...`",
    ),
    "an id column that is not there": (
        LONG,
        {"id_col": "site"},
        ValueError,
        "no column 'site'.*id_col='uid'",
    ),
    "values that are not told": (
        LONG.rename(columns={"uid": "unique_id", "y": "load"}),
        {},
        ValueError,
        r"no column 'y'.*fit\(y, target_col='load'\)",
    ),
    "values that are not there": (
        LONG.rename(columns={"uid": "unique_id"})[["unique_id", "ds"]],
        {},
        ValueError,
        "no column 'y'.*Add it",
    ),
    "names in the last level": (
        pd.Series(VALUES, PAIRS),
        {},
        TypeError,
        "'shop' came as .*last level.*time_col",
    ),
    "two columns under a MultiIndex": (
        pd.DataFrame({"p": VALUES, "q": VALUES}, PAIRS),
        {"time_col": "when", "target_col": "q"},
        ValueError,
        r"\['p'\] are none of \['q'\].*`y\[\['q'\]\]`\.$",
    ),
    "two levels of columns": (
        pd.DataFrame(np.ones((6, 2)), DAYS, pd.MultiIndex.from_tuples([("a", "x"), ("b", "x")])),
        {},
        ValueError,
        "columns have 2 levels.*one is needed.*Join",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_the_cure_fits_the_mistake(case):
    y, told, error, message = MISTAKES[case]
    with pytest.raises(error, match=f"(?s){message}"):
        Naive(1).fit(y, **told)


def test_the_cures_for_dates_and_names_help():
    dated = CSV.assign(date=pd.to_datetime(CSV["date"]))
    assert Naive(1).fit(dated, time_col="date").predict()["date"].tolist() == [pd.Timestamp("2024-01-07")]
    assert Naive(1).fit(LONG, id_col="uid").series_ids_ == ["a", "b"]
    assert Naive(1).fit(pd.Series(VALUES, PAIRS), time_col="when").series_ids_ == ["a", "b"]


@pytest.mark.parametrize("level", [0.9, [0.5, 80]])
def test_a_share_is_no_level(level):
    model = Naive(1).fit(VALUES)
    with pytest.raises(ValueError, match=r"level is in percent.*got 0\.[59]; 90 asks"):
        model.predict(level=level)


def test_none_is_no_value_in_lists_and_rows():
    model = Mean(1).fit([1.0, None, 3.0])
    assert model.predict().tolist() == [2.0]
    assert model.learn_one(None).cutoff_ == 3 and model.predict().tolist() == [2.0]
    assert Mean(1).fit([[1.0, None], [3.0, 4.0]]).learn_many([None, 6]).predict().tolist() == [[2.0, 5.0]]
    with pytest.raises(TypeError, match="numbers are needed"):
        Mean(1).fit([1.0, None, "3"])


def test_a_record_batch_of_arrow_is_a_frame():
    batch = pa.RecordBatch.from_pandas(LONG, preserve_index=False)
    forecast = Naive(1).fit(batch, id_col="uid").predict()
    assert forecast.to_pydict() == {"uid": ["a", "b"], "ds": [4, 4], "Naive": [4.0, 6.0]}


def test_a_column_of_none_beside_numbers_is_named_in_polars():
    y = pl.DataFrame({"ds": [1, 2], "y": [None, None]})
    with pytest.raises((TypeError, ValueError), match="'y'"):
        Naive(1).fit(y)
