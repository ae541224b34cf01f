"""Stamps, grids and what comes next."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fracts.timeline import default_season_lengths, learn_clock

GRIDS = {  # a declared freq: the alias found from its stamps alone, season lengths of a long history
    "15min": ("15min", (96, 672)),
    "30min": ("30min", (48, 336)),
    "h": ("h", (24, 168)),
    "4h": ("4h", (6, 42)),
    "5h": ("5h", ()),
    "D": ("D", (7, 365)),
    "2D": ("2D", ()),
    "W-WED": ("W-WED", (52,)),
    "W-SAT": ("W-SAT", (52,)),
    "2W-SUN": ("2W-SUN", ()),
    "B": ("B", ()),
    "MS": ("MS", (12,)),
    "ME": ("ME", (12,)),
    "BMS": ("BMS", (12,)),
    "BME": ("BME", (12,)),
    "2ME": ("2ME", (6,)),
    "QS-FEB": ("QS-FEB", (4,)),
    "QE-DEC": ("QE-DEC", (4,)),
    "QE-NOV": ("QE-NOV", (4,)),
    "BQE-JAN": ("BQE-OCT", (4,)),
    "YS-APR": ("YS-APR", ()),
    "YE-JUN": ("YE-JUN", ()),
}


def bare(index):
    """The same stamps without a declared freq."""
    return pd.DatetimeIndex(index, freq=None)


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize("freq", GRIDS)
def test_a_grid_is_found_from_its_stamps_and_continued(freq, unit):
    index = pd.date_range("1999-12-28 00:00", periods=60, freq=freq, unit=unit, name="when")
    clock = learn_clock(bare(index[:40]))
    future = clock.future(clock.counts(index[:40])[[-1]], 20)
    alias, seasons = GRIDS[freq]
    assert same_offset(clock.freq, alias)
    assert default_season_lengths(clock, 100_000) == seasons
    np.testing.assert_array_equal(clock.times(clock.counts(index)), np.arange(60.0))
    pd.testing.assert_index_equal(future, bare(index[40:]))


def same_offset(alias, other):
    return pd.tseries.frequencies.to_offset(alias) == pd.tseries.frequencies.to_offset(other)


@pytest.mark.parametrize("freq", GRIDS)
def test_a_declared_freq_is_enough_for_one_row(freq):
    index = pd.date_range("2024-03-05", periods=4, freq=freq)
    clock = learn_clock(index[:1])
    pd.testing.assert_index_equal(clock.future(clock.counts(index[:1])[[0]], 3), bare(index[1:]))


@given(st.sampled_from(sorted(GRIDS)), st.sets(st.integers(1, 58), max_size=25))
def test_holes_are_missing_steps(freq, dropped):
    index = pd.date_range("2001-05-31", periods=60, freq=freq)
    kept = np.array([row for row in range(60) if row not in dropped])
    clock = learn_clock(index)
    np.testing.assert_array_equal(clock.times(clock.counts(bare(index[kept]))), kept)


def test_a_holiday_is_a_missing_step_of_business_days():
    days = pd.bdate_range("2024-06-24", "2024-07-12")
    clock = learn_clock(bare(days[days != "2024-07-04"]))
    assert clock.freq == "B"
    at = clock.counts(pd.DatetimeIndex(["2024-07-03", "2024-07-05", "2024-07-08"]))
    np.testing.assert_array_equal(np.diff(clock.times(at)), [2, 1])


def test_days_within_one_week_are_days_and_not_business_days():
    clock = learn_clock(bare(pd.date_range("2024-07-01", periods=5, freq="D")))  # Monday to Friday
    assert clock.freq == "D"


def test_the_fifteenth_of_each_month_goes_on_at_the_fifteenth():
    index = pd.DatetimeIndex([f"2024-{month:02d}-15 09:30" for month in range(1, 13)])
    clock = learn_clock(index[:9])
    pd.testing.assert_index_equal(clock.future(clock.counts(index)[[8]], 3), index[9:])
    assert clock.freq is None
    assert default_season_lengths(clock, 36) == (12,)


def test_irregular_stamps_are_real_time_in_median_steps():
    rng = np.random.default_rng(0)
    index = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.cumsum(rng.integers(600, 6000, 99)), unit="ms")
    clock = learn_clock(pd.DatetimeIndex(index, name="beat"))
    base_step = pd.Timedelta(np.median(np.diff(index)))
    assert clock.freq is None and default_season_lengths(clock, 10**6) == ()
    np.testing.assert_allclose(clock.times(clock.counts(index)), (index - index[0]) / base_step, rtol=1e-14)
    future = clock.future(clock.counts(index)[[-1]], 3)
    pd.testing.assert_index_equal(
        future, pd.DatetimeIndex([index[-1] + k * base_step for k in (1, 2, 3)], name="beat")
    )


@pytest.mark.parametrize("start", ["2024-03-30", "2024-10-26"])
def test_hours_are_counted_in_utc_across_a_change_of_clocks(start):
    index = pd.date_range(start, periods=72, freq="h", tz="Europe/London")
    clock = learn_clock(bare(index[:20]))
    np.testing.assert_array_equal(clock.times(clock.counts(index)), np.arange(72.0))
    pd.testing.assert_index_equal(clock.future(clock.counts(index)[[19]], 52), bare(index[20:]))


def test_days_are_counted_on_the_local_calendar():
    index = pd.date_range("2024-03-28", periods=30, freq="D", tz="Europe/London")
    clock = learn_clock(bare(index))
    assert clock.freq == "D"
    pd.testing.assert_index_equal(clock.future(clock.counts(index)[[0]], 29), bare(index[1:]))


def test_a_local_midnight_that_the_change_of_clocks_skips_moves_forward():
    wall = pd.date_range("2018-10-30", "2018-11-10", freq="D")  # no midnight on 4 November
    index = wall.tz_localize("America/Sao_Paulo", nonexistent="shift_forward")
    clock = learn_clock(index)
    np.testing.assert_array_equal(clock.times(clock.counts(index)), np.arange(12.0))
    pd.testing.assert_index_equal(clock.future(clock.counts(index)[[0]], 11), bare(index[1:]))


@pytest.mark.parametrize("freq", ["h", "15min", "D", "W-SUN", "W-TUE", "M", "2M", "Q-DEC", "Q-JAN", "Y-JUN"])
def test_periods_go_on_as_periods(freq):
    index = pd.period_range("2020-01-06", periods=30, freq=freq, name="when")
    clock = learn_clock(index[[0, 1, 4]])
    np.testing.assert_array_equal(clock.times(clock.counts(index)), np.arange(30.0))
    pd.testing.assert_index_equal(clock.future(clock.counts(index)[[9]], 20), index[10:])
    assert clock.freq == index.freqstr


@pytest.mark.parametrize("start, step", [(0, 1), (-7, 3), (100, 10)])
def test_integers_count_in_their_greatest_common_step(start, step):
    index = pd.Index(start + step * np.array([0, 2, 3, 7]), name="n")
    clock = learn_clock(index)
    np.testing.assert_array_equal(clock.times(clock.counts(index)), [0, 2, 3, 7])
    pd.testing.assert_index_equal(
        clock.future(index.to_numpy()[-1:], 2), pd.Index(start + step * np.array([8, 9]), name="n")
    )


@pytest.mark.parametrize(
    "index, stamp",
    [
        (pd.date_range("2024-01-01", periods=9, freq="h"), "2024-01-01 09:30"),
        (pd.date_range("2024-01-31", periods=9, freq="ME"), "2024-10-01"),
        (pd.date_range("2024-01-01", periods=9, freq="B"), "2024-01-13"),
        (pd.date_range("2024-01-03", periods=9, freq="W-WED"), "2024-03-07"),
        (pd.date_range("2024-01-01", periods=9, freq="D"), "2024-01-10 12:00"),
    ],
)
def test_a_stamp_off_the_grid_is_named(index, stamp):
    clock = learn_clock(index)
    with pytest.raises(ValueError, match=f"{stamp}.*{clock.freq}"):
        clock.counts(pd.DatetimeIndex([stamp]))


def test_a_season_is_kept_where_three_of_it_are_seen():
    daily = learn_clock(pd.date_range("2020-01-01", periods=9, freq="D"))
    assert [default_season_lengths(daily, n) for n in (20, 21, 1094, 1095)] == [(), (7,), (7,), (7, 365)]


def test_another_history_starts_at_time_zero_with_the_same_step():
    clock = learn_clock(pd.date_range("2024-01-01", periods=30, freq="h"))
    other = pd.DatetimeIndex(["1990-05-05 07:20", "1990-05-05 09:20"], tz="Asia/Tokyo", name="t").as_unit("s")
    again = clock.restarted(other)
    np.testing.assert_array_equal(again.times(again.counts(other)), [0, 2])
    future = again.future(again.counts(other)[[1]], 1)
    pd.testing.assert_index_equal(future, (other[1:] + pd.Timedelta("1h")).as_unit("s"))


def test_stamps_of_another_zone_are_the_same_instants():
    index = pd.date_range("2024-03-28", periods=9, freq="D", tz="Europe/London")
    clock = learn_clock(index[:5])
    np.testing.assert_array_equal(clock.times(clock.counts(index.tz_convert("America/Lima"))), np.arange(9.0))


@pytest.mark.parametrize(
    "declared, error, message",
    [
        ({"base_step": 3600}, TypeError, "base_step=3600 is a number.*dates.*base_step='1h'"),
        ({"base_step": np.float64(2)}, TypeError, r"base_step=.*2\.0.*is a number"),
        ({"base_step": "1h", "freq": "D"}, ValueError, "freq='D' and base_step='1h' came together"),
        ({"freq": "1m"}, ValueError, "freq='1m' means minutes.*1 days.*'1mo' for months"),
    ],
)
def test_a_step_of_dates_is_never_guessed(declared, error, message):
    with pytest.raises(error, match=message):
        learn_clock(pd.date_range("2024-01-01", periods=30), **declared)


def test_minutes_and_timedeltas_of_numpy_are_steps():
    minutes = pd.date_range("2024-01-01", periods=30, freq="15min")
    assert learn_clock(minutes, freq="15m").freq == "15min"
    assert learn_clock(minutes, base_step=np.timedelta64(1, "h")).step == 3600 * 10**9
