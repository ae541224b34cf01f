"""One fault planted in a good frame: the error names that very series, column, stamp or value."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts.baselines import Naive

FREQS = ["h", "D", "B", "MS", "W-WED", "15min"]
LIBRARIES = [
    lambda frame: frame,
    pl.from_pandas,
    lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
]


@st.composite
def frames(draw):
    """A good long frame: a few ragged series, and whether dates or integers stamp it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    names = draw(st.lists(st.text("abcxyz_ 09", min_size=1, max_size=6), min_size=2, max_size=5, unique=True))
    freq = draw(st.sampled_from([*FREQS, None]))
    grid = np.arange(7, 67) if freq is None else pd.date_range("2023-11-20", periods=60, freq=freq)
    parts = []
    for name in names:
        first, n_rows = rng.integers(0, 8), rng.integers(20, 50)
        parts.append(
            pd.DataFrame(
                {"unique_id": name, "ds": grid[first : first + n_rows], "y": rng.normal(size=n_rows) + 5}
            )
        )
    return pd.concat(parts, ignore_index=True)


def with_value(frame, row, value):
    frame = frame.copy()
    frame.loc[row, "y"] = value
    return frame


def infinite(frame, row):
    name, stamp, _ = frame.loc[row]
    return with_value(frame, row, -np.inf), ValueError, [repr(name), str(stamp), "-inf"]


def far_too_large(frame, row):
    name, stamp, _ = frame.loc[row]
    return with_value(frame, row, 3e150), ValueError, [repr(name), str(stamp), "3e+150"]


def far_too_small(frame, row):
    name, stamp, _ = frame.loc[row]
    return with_value(frame, row, 3e-150), ValueError, [repr(name), str(stamp), "3e-150"]


def twice(frame, row):
    name, stamp, _ = frame.loc[row]
    return (
        pd.concat([frame, frame.loc[[row]]], ignore_index=True),
        ValueError,
        [repr(name), str(stamp), "twice"],
    )


def without_name(frame, row):
    frame = frame.astype({"unique_id": object})
    frame.loc[row, "unique_id"] = None
    return frame, ValueError, [f"row {row} ", "'unique_id'"]


def without_stamp(frame, row):
    frame = frame.copy()
    if frame["ds"].dtype.kind in "iu":
        frame["ds"] = frame["ds"].astype("Int64")
    name = frame.loc[row, "unique_id"]
    frame.loc[row, "ds"] = None
    return frame, (ValueError, TypeError), [repr(name), f"row {row} "]


def without_any_value(frame, row):
    name = frame.loc[row, "unique_id"]
    return frame.assign(y=frame["y"].where(frame["unique_id"] != name)), ValueError, [repr(name), "NaN"]


def text_for_values(frame, row):
    return frame.astype({"y": str}), TypeError, ["'y'", "numbers are needed"]


def truths_for_values(frame, row):
    return frame.assign(y=frame["y"] > 5), TypeError, ["'y'", "numbers are needed"]


def text_for_stamps(frame, row):
    planted = frame.astype({"ds": str})
    return planted, TypeError, ["'ds'", repr(planted["ds"][0]), "to_datetime"]


def fractions_for_stamps(frame, row):
    return frame.assign(ds=np.arange(len(frame)) + 0.5), TypeError, ["'ds'", "0.5"]


def a_column_too_many(frame, row):
    return frame.assign(price=1.0), ValueError, ["'price'", "target_col"]


def no_column_of_values(frame, row):
    return frame.drop(columns="y"), ValueError, ["'y'", "target_col"]


def no_column_of_stamps(frame, row):
    return frame.drop(columns="ds"), ValueError, ["'ds'", "time_col"]


def no_rows(frame, row):
    return frame[:0], ValueError, ["y is empty"]


def integers_too_long(frame, row):
    long = np.arange(len(frame)) + 2**40
    long[row] = 2**53 + 1 + 2 * row
    return frame.assign(y=long), ValueError, ["'y'", str(long[row]), "last digit"]


FAULTS = [
    infinite,
    far_too_large,
    far_too_small,
    twice,
    without_name,
    without_stamp,
    without_any_value,
    text_for_values,
    truths_for_values,
    text_for_stamps,
    fractions_for_stamps,
    a_column_too_many,
    no_column_of_values,
    no_column_of_stamps,
    no_rows,
    integers_too_long,
]


def refused(model, call, error, told):
    """The call raises, its message holds all that is `told`, and the model has the same bytes as before."""
    before = pickle.dumps(model)
    with pytest.raises(error) as raised:
        call()
    message = str(raised.value)
    assert [text for text in told if text not in message] == [], message
    assert pickle.dumps(model) == before


few_or_thousands = pytest.mark.parametrize("examples", [10, pytest.param(100, marks=pytest.mark.slow)])


@few_or_thousands
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_in_a_history_is_named(fault, examples):
    @settings(max_examples=examples)
    @given(frames(), st.integers(0, 10**6), st.sampled_from(LIBRARIES), st.booleans())
    def holds(frame, row, library, fitted):
        planted, error, told = fault(frame, row % len(frame))
        model = Naive(2).fit(frame) if fitted else Naive(2)
        planted = library(planted)
        refused(model, lambda: model.fit(planted), error, told)
        if fitted:
            refused(model, lambda: model.apply(planted), error, told)

    holds()


def later(frame):
    """Rows that follow `frame`: of every series, the three stamps after the last of all."""
    grid = Naive(9).fit(frame)
    stamps = grid._clock.future(np.array([grid._counts.max()]), 3)
    parts = [pd.DataFrame({"unique_id": name, "ds": stamps, "y": 1.0}) for name in grid.series_ids_]
    return pd.concat(parts, ignore_index=True)


def an_unknown_series(frame, following, row):
    following = following.copy()
    following.loc[row, "unique_id"] = "nobody"
    return following, ValueError, ["'nobody'", repr(frame["unique_id"][0]), "apply"]


def a_row_of_the_past(frame, following, row):
    name = following.loc[row, "unique_id"]
    known = frame[frame["unique_id"] == name].iloc[[-1]]
    return pd.concat([following, known]), ValueError, [repr(name), str(known["ds"].iloc[0]), "cutoff"]


def a_stamp_off_the_grid(frame, following, row):
    if frame["ds"].dtype.kind in "iu":
        following = following.assign(ds=following["ds"].astype(float))
        following.loc[row, "ds"] += 0.25
        return following, TypeError, ["'ds'", "float64"]
    following = following.copy()
    following.loc[row, "ds"] += pd.Timedelta("7min")
    return following, ValueError, [str(following.loc[row, "ds"]), "grid"]


def another_kind_of_stamp(frame, following, row):
    if frame["ds"].dtype.kind in "iu":
        stamps = pd.to_datetime(following["ds"], unit="D")
        return following.assign(ds=stamps), TypeError, ["fit saw integers"]
    return following.assign(ds=following["ds"].dt.tz_localize("UTC")), TypeError, ["UTC", "None"]


UPDATES = [an_unknown_series, a_row_of_the_past, a_stamp_off_the_grid, another_kind_of_stamp]


@few_or_thousands
@pytest.mark.parametrize("fault", UPDATES, ids=lambda fault: fault.__name__)
def test_a_fault_in_a_continuation_is_named(fault, examples):
    @settings(max_examples=examples)
    @given(frames(), st.integers(0, 10**6), st.sampled_from(LIBRARIES))
    def holds(frame, row, library):
        following = later(frame)
        planted, error, told = fault(frame, following, row % len(following))
        model = Naive(2).fit(frame)
        planted = library(planted)
        refused(model, lambda: model.update(planted), error, told)
        refused(model, lambda: model.score(planted), error, told)

    holds()


LEGAL = {
    "a value is missing": lambda frame, row: with_value(frame, row, np.nan),
    "a row is missing": lambda frame, row: frame.drop(index=row),
    "rows are in no order": lambda frame, row: frame.sample(frac=1, random_state=row),
    "a series is constant": lambda frame, row: frame.assign(
        y=frame["y"].where(frame["unique_id"] != frame["unique_id"][row], 3.0)
    ),
    "a series is zero": lambda frame, row: frame.assign(
        y=frame["y"].where(frame["unique_id"] != frame["unique_id"][row], 0.0)
    ),
    "a series has one row": lambda frame, row: frame[
        (frame["unique_id"] != frame["unique_id"][row]) | (frame.index == row)
    ],
    "values are integers": lambda frame, row: frame.assign(y=np.arange(len(frame)) * 2**44),
    "values are short floats": lambda frame, row: frame.astype({"y": "float32"}),
    "a value is far out": lambda frame, row: with_value(frame, row, 1e60),
    "names are categories": lambda frame, row: frame.astype({"unique_id": "category"}),
    "the index is odd": lambda frame, row: frame.set_axis(np.full(len(frame), row)),
}


@few_or_thousands
@pytest.mark.parametrize("change", LEGAL)
def test_what_is_legal_is_forecast_in_finite_numbers(change, examples):
    @settings(max_examples=examples)
    @given(frames(), st.integers(0, 10**6), st.sampled_from(LIBRARIES))
    def holds(frame, row, library):
        y = library(LEGAL[change](frame, row % len(frame)))
        model = Naive(2).fit(y)
        assert np.isfinite(model.forecast(level=90)).all()
        assert len(model.predict()) == 2 * frame["unique_id"].nunique()

    holds()
