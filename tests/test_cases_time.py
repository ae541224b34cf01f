"""What trips users of other libraries about time: one kind of fault a test, after public reports of them."""

import logging

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fracts.baselines import Naive, SeasonalNaive
from fracts.ridge import FracRidge

HOURS = pd.date_range("2024-01-01", periods=96, freq="h")
VALUES = np.random.default_rng(0).normal(size=96).cumsum()
OCTOBER = pd.DatetimeIndex(["2024-10-01", "2024-10-02", "2024-10-05", "2024-10-14", "2024-10-16"])


def test_hours_in_a_zone_count_steps_of_utc_and_come_back_in_local_time():
    index = pd.date_range("2020-03-27", periods=24 * 7, freq="h", tz="Europe/London")
    y = pd.Series(np.abs(index.hour - 12).astype(float), index)
    forecast = SeasonalNaive(24, season_length=24).fit(y).predict()
    assert (forecast.index == pd.date_range(index[-1], periods=25, freq="h")[1:]).all()
    np.testing.assert_array_equal(forecast, np.abs(forecast.index.hour - 12))


@pytest.mark.parametrize("change", ["2024-03-31", "2024-10-27"])
def test_a_change_of_clocks_either_way_moves_no_hour(entry, change):
    start = pd.Timestamp(change, tz="Europe/Paris") - pd.Timedelta("40h")
    local = pd.date_range(start, periods=96, freq="h")
    in_zone = entry.make(30).fit(pd.Series(VALUES[:60], local[:60])).predict()
    in_utc = entry.make(30).fit(pd.Series(VALUES[:60], local[:60].tz_convert("UTC"))).predict()
    np.testing.assert_array_equal(in_zone, in_utc)
    assert list(in_zone.index) == list(local[60:90]) and in_zone.index.tz == local.tz


def test_a_hundred_steps_ahead_keep_the_zone():
    index = pd.date_range("2020-01-01", periods=30, freq="h", tz="UTC")
    forecast = Naive(100).fit(pd.Series(VALUES[:30], index)).predict()
    assert forecast.index.tz == index.tz and forecast.index[-1] == index[-1] + pd.Timedelta("100h")


@pytest.mark.parametrize("with_zone", [True, False])
def test_stamps_with_and_without_zone_do_not_mix(with_zone):
    naive, aware = HOURS, HOURS.tz_localize("UTC")
    first, later = (aware, naive) if with_zone else (naive, aware)
    model = Naive(1).fit(pd.Series(VALUES[:50], first[:50]))
    with pytest.raises(TypeError, match=r"Give both or neither a zone.*tz_localize"):
        model.update(pd.Series(VALUES[50:], later[50:]))


@pytest.mark.parametrize("freq", ["15min", "10min", "2D", "3h"])
@pytest.mark.parametrize("kind", [pd.period_range, pd.date_range])
def test_multiples_of_a_frequency_step_by_the_multiple(kind, freq):
    index = kind("2024-01-01", periods=100, freq=freq)
    forecast = Naive(4).fit(pd.Series(VALUES, index[:96])).predict()
    assert list(forecast.index) == list(index[96:])


def test_an_index_with_and_without_freq_behave_alike(entry):
    bare = pd.to_datetime([str(stamp) for stamp in HOURS])
    with_freq, without = (entry.make(3).fit(pd.Series(VALUES, index)) for index in (HOURS, bare))
    assert without.freq_ == with_freq.freq_ == "h"
    pd.testing.assert_series_equal(without.predict(), with_freq.predict(), check_freq=False)


def test_an_index_of_dates_is_never_replaced_by_row_numbers():
    forecast = Naive(1).fit(pd.Series(VALUES[:5], OCTOBER)).predict()
    assert forecast.index[0] > OCTOBER[-1]


def test_the_stamps_of_a_forecast_are_those_of_the_test_rows():
    y = pd.Series(VALUES, pd.DatetimeIndex(HOURS, freq=None))
    train, test = y[:80], y[80:]
    assert list(Naive(24).fit(train).predict(len(test)).index) == list(test.index)


@pytest.mark.filterwarnings("ignore::fracts.checks.FitWarning")
def test_irregular_dates_are_real_time_and_not_row_numbers():
    y = pd.Series(VALUES[:5], OCTOBER)
    model = FracRidge(1, season_lengths=()).fit(y)
    renumbered = FracRidge(1, season_lengths=()).fit(VALUES[:5])
    assert model.predict().iloc[0] != renumbered.predict()[0]
    assert model.freq_ == "D"  # of which many are missing
    with pytest.raises(ValueError, match=r"(?s)3 gaps in 1 of 1 series.*from 2024-10-02.*to 2024-10-05"):
        Naive(1).fit(y, on_gaps="error")


def test_gaps_are_counted_and_the_first_is_named(caplog):
    days = pd.date_range("2024-01-01", periods=40, freq="D").delete([7, 20, 21])
    y = pd.DataFrame({"unique_id": "shop", "ds": days, "y": VALUES[:37]})
    with caplog.at_level(logging.INFO, logger="fracts"):
        forecast = Naive(1).fit(y).predict()
    told = "2 gaps in 1 of 1 series, whose stamps are every D; the first: series 'shop', from 2024-01-07"
    assert [record for record in caplog.messages if told in record]
    assert forecast["ds"][0] == pd.Timestamp("2024-02-10")


def test_full_grids_and_missing_values_are_no_gaps(caplog):
    y = pd.Series(VALUES, HOURS).where(np.arange(96) % 5 > 0)
    with caplog.at_level(logging.INFO, logger="fracts"):
        model = Naive(1).fit(y, on_gaps="error")
    assert not caplog.records
    later = pd.date_range(HOURS[-1], periods=4, freq="h")
    with pytest.raises(ValueError, match=r"1 gaps.*from 2024-01-04 23:00:00 to 2024-01-05 01:00:00, 2 steps"):
        model.update(pd.Series([1.0, 2.0], later[2:]))
    assert model.update(pd.Series([1.0, 2.0, 3.0], later[1:])).cutoff_ == later[-1]


def test_integers_in_minutes_step_by_days_where_their_distances_do():
    y = pd.DataFrame({"unique_id": 1, "ds": [0, 1440, 2880, 5760], "y": [1.0, 2.0, 3.0, 4.0]})
    assert Naive(2).fit(y).predict()["ds"].tolist() == [7200, 8640]
    with pytest.raises(ValueError, match=r"1 gaps.*series 1, from 2880 to 5760, 2 steps"):
        Naive(2).fit(y, on_gaps="error")


def test_integers_far_apart_are_real_time():
    at = np.cumsum(np.random.default_rng(1).integers(600, 1200, 60))  # milliseconds of heart beats
    model = Naive(2).fit(pd.Series(VALUES[:60], at))
    step = int(np.median(np.diff(at)))
    assert model.predict().index.tolist() == [at[-1] + step, at[-1] + 2 * step]


SPELLINGS = [
    ("D", "1d"),
    ("h", "1h"),
    ("15min", "15m"),
    ("MS", "1mo"),
    ("QS", "1q"),
    ("YS", "1y"),
    ("W-MON", "1w"),
]


@pytest.mark.parametrize("of_pandas, of_polars", SPELLINGS)
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_both_spellings_of_a_frequency_are_taken_by_every_library(library, of_pandas, of_polars):
    stamps = pd.date_range("2024-01-01", periods=31, freq=of_pandas)
    y = library({"unique_id": ["a"] * 30, "ds": stamps[:30], "y": VALUES[:30]})
    found = [Naive(1).fit(y, freq=freq) for freq in (of_pandas, of_polars, None)]
    assert {model.predict()["ds"][0] for model in found} == {stamps[30]}
    assert len({model.freq_ for model in found}) == 1


def test_a_declared_frequency_makes_one_row_enough_and_is_checked():
    one = pd.Series([1.0], pd.DatetimeIndex(["2024-01-31"]))
    assert Naive(1).fit(one, freq="1mo").predict().index[0] == pd.Timestamp("2024-02-29")
    with pytest.raises(ValueError, match=r"2024-01-31.*not on the grid.*W-FRI.*2024-02-02"):
        Naive(1).fit(one, freq="W-FRI")
    with pytest.raises(ValueError, match=r"freq='fortnight' is no alias"):
        Naive(1).fit(one, freq="fortnight")
    with pytest.raises(ValueError, match=r"freq of integer stamps must be an integer.*'D'"):
        Naive(1).fit([1.0, 2.0], freq="D")
    assert Naive(1).fit(pd.Series([1.0, 2.0], [10, 20]), freq=5).predict().index[0] == 25
    with pytest.raises(ValueError, match=r"periods, which are a grid themselves: M"):
        Naive(1).fit(pd.Series([1.0], pd.period_range("2024-01", periods=1, freq="M")), freq="M")


def test_a_declared_base_step_makes_time_real():
    model = Naive(2).fit(pd.Series(VALUES, HOURS), base_step="90min")
    assert model.freq_ is None and model.predict().index[0] == HOURS[-1] + pd.Timedelta("90min")
    assert Naive(1).fit(pd.Series([1.0, 2.0], [0, 10]), base_step=4).predict().index[0] == 14
    for wrong in ("soon", "-1s", "0h"):
        with pytest.raises(ValueError, match=r"base_step"):
            Naive(1).fit(pd.Series(VALUES, HOURS), base_step=wrong)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("names", ["str", "string", "object"])
def test_text_types_and_time_units_of_any_pandas_give_the_same(unit, names):
    frame = pd.DataFrame({"unique_id": ["a"] * 96, "ds": HOURS, "y": VALUES})
    expected = Naive(2).fit(frame).predict(level=90)
    of_type = frame.astype({"unique_id": names, "ds": f"datetime64[{unit}]"})
    found = Naive(2).fit(of_type).predict(level=90)
    assert (found["unique_id"].dtype, found["ds"].dtype) == (of_type["unique_id"].dtype, of_type["ds"].dtype)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


SCALES = ["ms", "s", "7s", "min", "h", "D", "B", "W-WED", "MS", "ME", "QE-NOV", "YS", "YE-JUN"]


@pytest.mark.parametrize("freq", SCALES)
def test_a_daily_tool_serves_milliseconds_and_years_alike(freq):
    index = pd.date_range("1980-01-01", periods=48, freq=freq)
    model = Naive(8).fit(pd.Series(VALUES[:40], pd.DatetimeIndex(index[:40], freq=None)))
    assert list(model.predict().index) == list(index[40:])
    assert model.update(pd.Series(VALUES[40:48], index[40:])).cutoff_ == index[-1]
