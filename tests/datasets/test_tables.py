"""The real series: the files are those of DATA.md, the loaders give what their passports say."""

import gzip
import hashlib
import math
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from fracts.datasets import (
    load_co2,
    load_heart_intervals,
    load_sp500_daily,
    load_sp500_volatility,
    load_traffic_volume,
    load_traffic_weather,
)

ROOM = files("fracts.datasets")


def passports():
    lines = (ROOM / "DATA.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return rows[1:]


@pytest.mark.parametrize("passport", passports(), ids=lambda passport: passport[0])
def test_a_table_has_the_checksum_and_rows_of_its_passport(passport):
    name, source, terms, checksum, rows = passport
    packed = (ROOM / name).read_bytes()
    assert hashlib.sha256(packed).hexdigest() == checksum
    assert gzip.decompress(packed).count(b"\n") == int(rows) + 1
    assert source and terms


def test_every_table_has_a_passport_and_a_notice_and_all_weigh_less_than_600_kb():
    tables = [path for path in ROOM.iterdir() if ".csv" in path.name]
    assert {path.name for path in tables} == {passport[0] for passport in passports()}
    notice = (ROOM / "NOTICE.md").read_text(encoding="utf-8")
    assert all(f"## {path.name}: " in notice for path in tables)
    assert 0 < sum(len(path.read_bytes()) for path in tables) < 600_000


def test_sp500_daily_is_sound():
    prices = load_sp500_daily()
    assert prices.shape == (5031, 6)
    assert (str(prices.index[0].date()), str(prices.index[-1].date())) == ("1999-01-04", "2018-12-31")
    assert prices.index.is_monotonic_increasing and prices.index.is_unique
    assert (prices["close"].iloc[0], prices["close"].iloc[-1]) == (1228.099976, 2506.850098)
    assert (prices["high"] > prices["low"]).all()
    assert (prices["adj_close"] == prices["close"]).all()
    assert not prices.isna().any().any()


def test_sp500_volatility_is_the_log_of_parkinsons_standard_deviation():
    volatility = load_sp500_volatility()
    first = 0.5 * math.log(math.log(1248.810059 / 1219.099976) ** 2 / (4 * math.log(2)))
    assert volatility.iloc[0] == pytest.approx(first, rel=1e-12)
    assert np.isfinite(volatility).all()
    assert volatility.name == "log_volatility"
    pd.testing.assert_index_equal(volatility.index, load_sp500_daily().index)


def test_traffic_volume_is_a_full_hourly_grid_with_its_104_holes():
    volume = load_traffic_volume()
    assert len(volume) == 17_520
    assert volume.index.freq == pd.tseries.frequencies.to_offset("h")
    assert (volume.index[0], volume.index[-1]) == (
        pd.Timestamp("2016-10-01 00:00"),
        pd.Timestamp("2018-09-30 23:00"),
    )
    assert (volume.iloc[0], volume.iloc[-1], volume.isna().sum()) == (1195.0, 954.0, 104)


def test_traffic_stamps_are_wall_clock_time_the_hour_that_summer_time_skips_is_missing():
    volume = load_traffic_volume()
    holes = volume.index[volume.isna()]
    chicago = volume.index.tz_localize("America/Chicago", nonexistent="NaT", ambiguous=np.ones(17_520, bool))
    skipped = volume.index[chicago.isna()]
    assert [str(stamp) for stamp in skipped] == ["2017-03-12 02:00:00", "2018-03-11 02:00:00"]
    assert skipped.isin(holes).all()


def test_traffic_weather_is_missing_where_the_volume_is():
    weather, volume = load_traffic_weather(), load_traffic_volume()
    assert weather.columns.tolist() == ["temp", "rain_1h", "snow_1h", "clouds_all", "weather_main"]
    assert (weather.isna().to_numpy() == volume.isna().to_numpy()[:, None]).all()
    assert 240 < weather["temp"].min() < weather["temp"].max() < 320
    assert (weather["snow_1h"].dropna() == 0).all()


def test_heart_intervals_make_an_hour():
    intervals = load_heart_intervals()
    assert (intervals.index[0], intervals.index[-1], len(intervals)) == (1, 4684, 4684)
    assert (intervals.iloc[0], intervals.iloc[-1]) == (664.0, 930.0)
    assert intervals.sum() == 3_599_365
    assert intervals.dtype == float


def test_co2_is_a_full_weekly_grid_with_its_59_holes():
    co2 = load_co2()
    assert len(co2) == 2284
    assert co2.index.freq == pd.tseries.frequencies.to_offset("W-SAT")
    assert (str(co2.index[0].date()), str(co2.index[-1].date())) == ("1958-03-29", "2001-12-29")
    assert (co2.iloc[0], co2.iloc[-1], co2.isna().sum()) == (316.1, 371.5, 59)
