"""Containers: each comes back as the kind it was, and the library it is of does not change a digit."""

import datetime
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fracts.baselines import Mean, Naive

HOURS = pd.date_range("2024-03-30", periods=50, freq="h", tz="Europe/Paris", unit="us")
VALUES = np.random.default_rng(3).normal(size=50).cumsum()
NAMES = ["b"] * 30 + ["a"] * 20
LONG = pd.DataFrame({"unique_id": NAMES, "ds": [*HOURS[:30], *HOURS[5:25]], "y": VALUES})
WIDE = pd.DataFrame({"ds": HOURS[:40], "load": VALUES[:40], "wind": 3 - VALUES[:40]})
LIBRARIES = {
    "pandas": lambda frame: frame,
    "pandas on Arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "pandas nullable": lambda frame: frame.convert_dtypes(),
    "polars": pl.from_pandas,
    "Arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}
KINDS = {"pandas": pd, "pandas on Arrow": pd, "pandas nullable": pd, "polars": pl, "Arrow": pa}


def plain(frame):
    """Rows of a frame of any library, as dicts of Python values."""
    if isinstance(frame, pa.Table):
        return frame.to_pylist()
    return frame.to_dicts() if isinstance(frame, pl.DataFrame) else frame.to_dict("records")


def types(frame):
    if isinstance(frame, pa.Table):
        return {field.name: field.type for field in frame.schema}
    return dict(frame.schema) if isinstance(frame, pl.DataFrame) else dict(frame.dtypes)


def assert_same_rows(found, expected):
    assert [list(row) for row in found] == [list(row) for row in expected]
    for row, other in zip(found, expected, strict=True):
        assert {k: v for k, v in row.items() if not isinstance(v, float)} == {
            k: v for k, v in other.items() if not isinstance(v, float)
        }
        np.testing.assert_array_equal(
            [v for v in row.values() if isinstance(v, float)],
            [v for v in other.values() if isinstance(v, float)],
        )


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_long_frame_comes_back_long_from_the_cutoff_of_each_series(library):
    y = LIBRARIES[library](LONG)
    forecast = Naive(2).fit(y).predict(level=90)
    assert type(forecast) is type(y)
    kept = {name: kind for name, kind in types(y).items() if name != "y"}
    assert {name: types(forecast)[name] for name in kept} == kept
    rows = plain(forecast)
    assert list(rows[0]) == ["unique_id", "ds", "Naive", "Naive-lo-90", "Naive-hi-90"]
    assert [row["unique_id"] for row in rows] == ["b", "b", "a", "a"]
    assert [row["ds"] for row in rows] == [*HOURS[30:32], *HOURS[25:27]]
    assert [row["Naive"] for row in rows] == [VALUES[29]] * 2 + [VALUES[49]] * 2
    assert all(row["Naive-lo-90"] < row["Naive"] < row["Naive-hi-90"] for row in rows)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_gives_the_forecast_of_pandas(entry, library):
    expected = plain(entry.make(3).fit(LONG).predict(quantiles=[0.1, 0.9]))
    found = plain(entry.make(3).fit(LIBRARIES[library](LONG)).predict(quantiles=[0.1, 0.9]))
    assert_same_rows(found, expected)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_wide_frame_with_a_column_of_stamps_comes_back_so(library):
    y = LIBRARIES[library](WIDE)
    model = Naive(2).fit(y)
    forecast = model.predict()
    assert type(forecast) is type(y) and types(forecast)["ds"] == types(y)["ds"]
    expected = WIDE.set_index("ds").iloc[-1]
    rows = [{"ds": HOURS[at], **expected} for at in (40, 41)]
    assert_same_rows(plain(forecast), rows)
    assert list(plain(model.predict(level=50))[0]) == [
        "ds",
        "load",
        "load-lo-50",
        "load-hi-50",
        "wind",
        "wind-lo-50",
        "wind-hi-50",
    ]
    assert model.forecast().shape == (2, 2) and model.cutoff_ == HOURS[39]


@pytest.mark.parametrize("library", ["polars", "Arrow"])
def test_the_only_column_of_dates_holds_the_stamps(library):
    y = LIBRARIES[library](WIDE.rename(columns={"ds": "hour"}))
    assert list(plain(Naive(1).fit(y).predict())[0]) == ["hour", "load", "wind"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_of_other_names_are_told_to_fit(library):
    renamed = LONG.rename(columns={"unique_id": "shop", "ds": "hour", "y": "sales"})
    y = LIBRARIES[library](renamed)
    model = Naive(1).fit(y[:49], id_col="shop", time_col="hour", target_col="sales")
    assert list(plain(model.predict())[0]) == ["shop", "hour", "Naive"]
    model.update(y[49:])
    assert [row["Naive"] for row in plain(model.predict())] == [VALUES[29], VALUES[49]]
    assert [row["hour"] for row in plain(model.apply(y[:4]).predict())] == [HOURS[4]]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_of_stamps_and_values_is_one_series(library):
    y = LIBRARIES[library](LONG[["ds", "y"]][:30])
    model = Naive(2).fit(y)
    assert model.cutoff_ == HOURS[29] and model.series_ids_ == ["y"]
    assert_same_rows(plain(model.predict()), [{"ds": HOURS[at], "Naive": VALUES[29]} for at in (30, 31)])
    np.testing.assert_array_equal(model.forecast(), [VALUES[29]] * 2)


COLUMNS = {
    "a polars Series": (pl.Series("load", VALUES), pl.Series, pl.DataFrame),
    "an Arrow array": (pa.array(VALUES), pa.ChunkedArray, pa.Table),
    "a chunked Arrow array": (pa.chunked_array([VALUES[:9], VALUES[9:]]), pa.ChunkedArray, pa.Table),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_comes_back_as_a_column(kind):
    y, single, several = COLUMNS[kind]
    model = Mean(2).fit(y)
    forecast = model.predict()
    assert isinstance(forecast, single) and forecast.to_numpy() == pytest.approx(VALUES.mean())
    assert model.cutoff_ == 49 and model.update(y[:3]).cutoff_ == 52
    table = model.predict(level=80)
    name = "load" if isinstance(y, pl.Series) else "y"
    assert isinstance(table, several) and list(types(table)) == [name, f"{name}-lo-80", f"{name}-hi-80"]


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("levels", [2, 3])
def test_rows_under_a_multiindex_come_back_so(levels, framed):
    arrays = [pd.Categorical(NAMES), LONG["ds"]]
    if levels == 3:
        arrays.insert(0, pd.Index([7] * 30 + [8] * 20, dtype="int16"))
    names = ["region", "shop", "hour"][-levels:]
    y = pd.Series(VALUES, pd.MultiIndex.from_arrays(arrays, names=names), name="sales")
    y = y.to_frame() if framed else y
    forecast = Naive(2).fit(y).predict()
    assert type(forecast) is type(y) and list(forecast.index.names) == names
    assert [level.dtype for level in forecast.index.levels] == [level.dtype for level in y.index.levels]
    expected = [("b", HOURS[30]), ("b", HOURS[31]), ("a", HOURS[25]), ("a", HOURS[26])]
    if levels == 3:
        expected = [(7 if pair[0] == "b" else 8, *pair) for pair in expected]
    assert list(forecast.index) == expected
    values = forecast["sales"] if framed else forecast
    assert values.tolist() == [VALUES[29]] * 2 + [VALUES[49]] * 2 and values.name == "sales"


def test_the_level_of_stamps_is_found_by_its_name():
    index = pd.MultiIndex.from_arrays([LONG["ds"], NAMES], names=["ds", "shop"])
    forecast = Naive(1).fit(pd.Series(VALUES, index)).predict(level=50)
    assert list(forecast.index) == [(HOURS[30], "b"), (HOURS[25], "a")]
    assert list(forecast.columns) == ["y", "y-lo-50", "y-hi-50"]


NAME_TYPES = {
    "text": (pl.String, pd.StringDtype("python"), pa.string()),
    "short integers": (pl.Int16, np.dtype("int16"), pa.int16()),
    "categories": (
        pl.Categorical,
        pd.CategoricalDtype(["a", "b", "7"]),
        pa.dictionary(pa.int32(), pa.string()),
    ),
    "objects": (pl.Enum(["b", "a"]), np.dtype(object), pa.large_string()),
}


@pytest.mark.parametrize("kind", NAME_TYPES)
def test_the_type_of_the_names_is_kept(kind):
    of_polars, of_pandas, of_arrow = NAME_TYPES[kind]
    frame = LONG if kind != "short integers" else LONG.assign(unique_id=[7] * 30 + [-3] * 20)
    polars = pl.from_pandas(frame).with_columns(pl.col("unique_id").cast(of_polars))
    assert Naive(1).fit(polars).predict()["unique_id"].dtype == of_polars
    pandas = frame.astype({"unique_id": of_pandas})
    assert Naive(1).fit(pandas).predict()["unique_id"].dtype == of_pandas
    table = pa.table(frame)
    name = table["unique_id"]
    name = name.cast(pa.string()).dictionary_encode() if kind == "categories" else name.cast(of_arrow)
    arrow = table.set_column(0, "unique_id", name)
    assert Naive(1).fit(arrow).predict()["unique_id"].type == of_arrow


STAMP_TYPES = {
    "days of polars": pl.Series("ds", pd.date_range("2024-02-01", periods=50)).cast(pl.Date),
    "milliseconds of polars": pl.Series("ds", HOURS).cast(pl.Datetime("ms", "Europe/Paris")),
    "nanoseconds of polars": pl.Series("ds", HOURS.tz_localize(None)).cast(pl.Datetime("ns")),
    "integers of polars": pl.Series("ds", np.arange(100, 150), dtype=pl.UInt8),
    "days of Arrow": pa.array(pd.date_range("2024-02-01", periods=50).date, pa.date32()),
    "seconds of Arrow": pa.array(HOURS, pa.timestamp("s", "Europe/Paris")),
    "integers of Arrow": pa.array(np.arange(50, dtype="int32")),
    "days of pandas on Arrow": pd.Series(
        pd.array(pd.date_range("2024-02-01", periods=50).date, dtype="date32[pyarrow]")
    ),
    "periods of pandas": pd.Series(pd.period_range("2024-02", periods=50, freq="M")),
    "seconds of pandas": pd.Series(HOURS.as_unit("s")),
    "short integers of pandas": pd.Series(np.arange(50, dtype="int8")),
}


@pytest.mark.parametrize("kind", STAMP_TYPES)
def test_the_type_of_the_stamps_is_kept_and_they_go_on(kind):
    stamps = STAMP_TYPES[kind]
    library = pl.DataFrame if "polars" in kind else pd.DataFrame if "pandas" in kind else pa.table
    frame = library({"unique_id": ["x"] * 50, "ds": stamps, "y": VALUES})
    forecast = Naive(2).fit(frame[:48] if library is not pa.table else frame.slice(0, 48)).predict()
    assert types(forecast)["ds"] == types(frame)["ds"]
    assert [row["ds"] for row in plain(forecast)] == [row["ds"] for row in plain(frame)[48:]]


def test_days_whose_median_distance_is_no_whole_day_come_back_as_times():
    days = [datetime.date(2024, 1, day) for day in (1, 5, 12, 19, 29)]  # 4, 7, 7, 10; then half a day more
    y = pl.DataFrame({"ds": days, "y": [1.0, 2.0, 4.0, 3.0, 5.0]})
    forecast = Naive(1).fit(y, base_step="36h").predict()
    assert forecast["ds"].to_list() == [datetime.datetime(2024, 1, 30, 12)]


def test_integers_that_outgrow_their_type_come_back_in_a_longer_one():
    y = pd.DataFrame({"ds": np.arange(120, 128, dtype="int8"), "y": VALUES[:8]})
    assert Naive(2).fit(y).predict()["ds"].tolist() == [128, 129]


@pytest.mark.parametrize("dtype", ["string", "str", "object", "category"])
def test_names_of_any_text_type_are_the_same_names(dtype):
    model = Naive(1).fit(LONG.astype({"unique_id": dtype}))
    assert model.series_ids_ == ["b", "a"]
    later = LONG.assign(ds=LONG["ds"] + pd.Timedelta("30h"))
    assert set(model.update(later).cutoff_) == {"a", "b"}


def test_the_index_of_a_wide_frame_keeps_its_type_and_freq():
    index = pd.Index(pd.date_range("2024-01-01", periods=51, freq="h", unit="us"))
    index = index.astype("timestamp[us][pyarrow]")
    forecast = Naive(1).fit(pd.Series(VALUES, index[:50])).predict()
    pd.testing.assert_index_equal(forecast.index, index[50:])
    short = Naive(2).fit(pd.Series(VALUES, np.arange(50, dtype="int32"))).predict()
    assert short.index.dtype == "int32"
    with_freq = pd.Series(VALUES, pd.date_range("2024-01-31", periods=50, freq="ME"))
    assert Naive(2).fit(with_freq).predict().index.freq == with_freq.index.freq
    assert Naive(2).fit(with_freq).predict(level=9).index.freqstr == "ME"
    assert Naive(2).fit(with_freq.set_axis(with_freq.index._with_freq(None))).predict().index.freq is None


def test_null_is_no_value_in_every_library():
    values = [1.0, None, 3.0, None]
    frames = (
        pl.DataFrame({"ds": [1, 2, 3, 4], "y": values}),
        pa.table({"ds": [1, 2, 3, 4], "y": values}),
        pd.DataFrame({"ds": [1, 2, 3, 4], "y": pd.array(values, dtype="Float64")}),
        pl.DataFrame({"ds": [1, 2, 3, 4], "y": [1, None, 3, None]}),
        pl.DataFrame({"ds": [1, 2, 3, 4], "y": values}, schema_overrides={"y": pl.Decimal(10, 2)}),
    )
    for frame in frames:
        model = Mean(1).fit(frame)
        assert model.forecast().tolist() == [2.0] and model.cutoff_ == 4


def test_long_rows_may_come_in_any_order():
    shuffled = LONG.sample(frac=1, random_state=0)
    forecast, expected = Naive(2).fit(shuffled).predict(), Naive(2).fit(LONG).predict()
    by_name = ["unique_id", "ds"]
    pd.testing.assert_frame_equal(
        forecast.sort_values(by_name, ignore_index=True), expected.sort_values(by_name, ignore_index=True)
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_estimator_of_any_library_is_pickled(library):
    model = Naive(2).fit(LIBRARIES[library](LONG))
    other = pickle.loads(pickle.dumps(model))
    assert_same_rows(plain(other.predict()), plain(model.predict()))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_long_frame_of_another_library_continues_the_same_series(library):
    later = LONG[LONG["unique_id"] == "a"].assign(ds=lambda rows: rows["ds"] + pd.Timedelta("20h"))
    model = Naive(1).fit(LIBRARIES[library](LONG))
    model.update(pl.from_pandas(later.assign(y=9.0)))
    assert [row["Naive"] for row in plain(model.predict())] == [VALUES[29], 9.0]
    assert model.cutoff_ == {"b": HOURS[29], "a": HOURS[44]}


@pytest.mark.parametrize("library", [pl.DataFrame, pa.table])
def test_short_integers_that_run_out_go_on_in_longer_ones(library):
    stamps = {
        pl.DataFrame: pl.Series(range(100, 126), dtype=pl.Int8),
        pa.table: pa.array(range(100, 126), pa.int8()),
    }
    y = library({"ds": stamps[library], "y": VALUES[:26]})
    model = Naive(9).fit(y)
    assert [row["ds"] for row in plain(model.predict())] == [*range(126, 135)]
    assert types(model.predict(2))["ds"] == types(y)["ds"]


@pytest.mark.parametrize("empty", [pl.DataFrame(), pa.table({}), pl.DataFrame({"ds": []})])
def test_a_frame_without_columns_of_values_is_empty(empty):
    with pytest.raises(ValueError, match="y is empty"):
        Naive(2).fit(empty, time_col="ds")
    model = Naive(2).fit(pl.DataFrame({"ds": [1, 2], "y": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="y is empty"):
        model.update(empty)
