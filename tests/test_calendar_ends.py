"""Where stamps end: old and far dates in the unit they came in, and an error where a unit or 64 bits end."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fracts import FracRidge
from fracts.baselines import Naive

VALUES = np.random.default_rng(6).normal(size=60).cumsum()
KINDS = {
    "days of polars": lambda days: pl.DataFrame({"ds": days, "y": VALUES[: len(days)]}),
    "microseconds of polars": lambda days: pl.DataFrame(
        {"ds": pl.Series(days).cast(pl.Datetime("us")), "y": VALUES[: len(days)]}
    ),
    "milliseconds of polars": lambda days: pl.DataFrame(
        {"ds": pl.Series(days).cast(pl.Datetime("ms")), "y": VALUES[: len(days)]}
    ),
    "days of Arrow": lambda days: pa.table({"ds": pa.array(days, pa.date32()), "y": VALUES[: len(days)]}),
    "seconds of Arrow": lambda days: pa.table(
        {"ds": pa.array(days, pa.date32()).cast(pa.timestamp("s")), "y": VALUES[: len(days)]}
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@given(year=st.integers(1, 9900), daily=st.booleans())
def test_dates_of_any_year_are_followed_by_the_next(kind, year, daily):
    if daily:
        days = [dt.date(year, 1, 20) + dt.timedelta(days=at) for at in range(60)]
    else:
        days = [dt.date(year + at, 1, 1) for at in range(60)]
    frame = KINDS[kind](days)
    model = Naive(3).fit(frame[:40])
    forecast = model.predict()
    stamps = [dt.date(day.year, day.month, day.day) for day in pl.DataFrame(forecast)["ds"].to_list()]
    assert stamps == days[40:43]
    assert pl.DataFrame(forecast)["ds"].dtype == pl.DataFrame(frame)["ds"].dtype
    assert pd.Timestamp(model.update(frame[40:]).cutoff_) == pd.Timestamp(days[-1])


def test_covariates_of_old_years_are_found():
    years = [dt.date(year, 1, 1) for year in range(1500, 1560)]
    X = pl.DataFrame({"ds": years, "heat": np.sin(np.arange(60.0))})
    y = pl.DataFrame({"ds": years[:58], "level": VALUES[:58]})
    forecast = FracRidge(2, season_lengths=()).fit(y, X).predict(X=X)
    assert forecast["ds"].to_list() == years[58:]


HOURS = pd.DatetimeIndex(np.datetime64("2262-04-10", "us") + np.arange(40) * np.timedelta64(1, "h"))
REFUSED = {
    "hours of another age": (
        pd.Series(
            VALUES, HOURS[:1].repeat(60) - pd.to_timedelta(np.arange(300_000, 300_060)[::-1] * 24, "h")
        ),
        {"freq": "h"},
        "1440-.*outside the years 1677 to 2262.*integers",
    ),
    "hours in a zone": (
        pd.Series(VALUES[:40], (HOURS - pd.Timedelta(300_000, "D")).tz_localize("Europe/Paris")),
        {},
        "1440-.*outside the years 1677 to 2262.*integers",
    ),
    "hours past the end": (
        pd.Series(VALUES[:40], HOURS),
        {},
        "9 steps after 2262-04-11 15.*2262-04-11 23:47",
    ),
    "days past the end of nanoseconds": (
        pd.Series(VALUES[:40], pd.date_range(end="2262-04-09", periods=40, unit="ns")),
        {},
        "2262-04-12.*nanoseconds.*as_unit",
    ),
    "a freq whose grid passes the end of nanoseconds": (
        pd.Series(VALUES[:3], pd.date_range(end="2262-04-09", periods=3, unit="ns")),
        {},
        "16 steps.*2262-04-07.*as_unit",
    ),
    "years past the end of nanoseconds": (
        pl.DataFrame({"ds": pd.date_range("2203", freq="YS", periods=60, unit="ns"), "y": VALUES}),
        {},
        "2263-01-01.*nanoseconds.*as_unit",
    ),
    "integers past the end": (
        pd.Series(VALUES, np.arange(2**63 - 60, 2**63, dtype="uint64").astype("int64")),
        {},
        "9 steps after 9223372036854775807.*fewer steps",
    ),
    "integers too large for a sign": (
        pd.Series(VALUES, np.arange(2**63, 2**63 + 60, dtype="uint64")),
        {},
        r"9223372036854775808 \(row 0\).*int64.*Subtract",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_stamps_beyond_what_can_be_counted_are_refused(case):
    y, told, message = REFUSED[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        Naive(9).fit(y, **told).predict()


def test_a_step_past_the_last_integer_is_refused_by_learn_one():
    model = Naive(1).fit(pd.Series(VALUES, np.arange(2**63 - 60, 2**63, dtype="uint64").astype("int64")))
    with pytest.raises(ValueError, match="1 steps after 9223372036854775807"):
        model.learn_one(1.0)
    assert model.cutoff_ == 2**63 - 1


def test_nanoseconds_are_forecast_up_to_their_end():
    y = pd.Series(VALUES[:40], pd.date_range(end="2262-04-09", periods=40, unit="ns"))
    assert list(Naive(2).fit(y).predict().index) == [pd.Timestamp("2262-04-10"), pd.Timestamp("2262-04-11")]


def test_steps_that_float64_cannot_count_are_refused():
    far = np.r_[np.arange(50), 2**54 + np.arange(3)]
    with pytest.raises(ValueError, match=r"18014398509481986 \(row 52\).*9007199254740992 steps of 1 from"):
        FracRidge(2, season_lengths=()).fit(pd.Series(VALUES[:53], far))
    model = FracRidge(2, season_lengths=()).fit(pd.Series(VALUES[:50], far[:50]))
    with pytest.raises(ValueError, match=r"18014398509481984 \(row 0\)"):
        model.update(pd.Series([1.0], far[50:51]))
    near = np.r_[np.arange(50), 2**52 + np.arange(3)]
    assert FracRidge(2, season_lengths=()).fit(pd.Series(VALUES[:53], near)).cutoff_ == 2**52 + 2
