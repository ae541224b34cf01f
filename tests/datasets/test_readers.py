"""Readers of files that people have: what they hold, and the line of what is wrong with them."""

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts.baselines import Naive
from fracts.datasets import read_ett, read_m4, read_parquet, read_tsf

M4 = '"V1","V2","V3","V4"\n"H1","605","586","586.5"\n"H2","3124","2990",""\n'
ETT = "date,HUFL,OT\n2016-07-01 00:00:00,5.8,30.5\n2016-07-01 01:00:00,5.6,27.8\n2016-07-01 02:00:00,5.1,\n"
TSF = """# from an archive
@relation weather
@attribute series_name string
@attribute start_timestamp date
@frequency {frequency}
@horizon 3
@missing true
@equallength false
@data
T1:{start}:1,2.5,?,4
T2:{start}:-7e3
"""


@pytest.fixture(params=[False, True], ids=["plain", "packed"])
def written(request, tmp_path):
    """A function that writes a text and gives the path."""

    def write(text):
        path = tmp_path / ("file.txt.gz" if request.param else "file.txt")
        path.write_bytes(gzip.compress(text.encode()) if request.param else text.encode())
        return path

    return write


def test_an_m4_file_is_a_long_frame_that_is_forecast_as_it_is(written):
    y = read_m4(written(M4))
    expected = {
        "unique_id": ["H1"] * 3 + ["H2"] * 2,
        "ds": [1, 2, 3, 1, 2],
        "y": [605, 586, 586.5, 3124, 2990],
    }
    pd.testing.assert_frame_equal(y, pd.DataFrame(expected))
    assert Naive(2).fit(y).predict()["ds"].tolist() == [4, 5, 3, 4]


def test_an_m4_test_file_goes_on_where_the_training_file_ends(written):
    history = read_m4(written(M4))
    future = read_m4(written('"V1","V2"\nH2,1\nH1,2\n'), after=history)
    assert future.to_numpy().tolist() == [["H2", 3, 1.0], ["H1", 4, 2.0]]
    assert Naive(1).fit(history).update(future).cutoff_ == {"H1": 4, "H2": 3}


def test_an_ett_file_is_a_wide_frame_with_dates(written):
    y = read_ett(written(ETT))
    assert list(y.columns) == ["HUFL", "OT"] and y.index.name == "date"
    np.testing.assert_array_equal(y.to_numpy(), [[5.8, 30.5], [5.6, 27.8], [5.1, np.nan]])
    assert Naive(1).fit(y).freq_ == "h"


FREQUENCIES = {
    "hourly": ("1990-03-30 22-00-00", ["1990-03-30 22:00", "1990-03-30 23:00", "1990-03-31 00:00"]),
    "half_hourly": ("1990-03-30 22-00-00", ["1990-03-30 22:00", "1990-03-30 22:30", "1990-03-30 23:00"]),
    "weekly": ("1990-01-03 00-00-00", ["1990-01-03", "1990-01-10", "1990-01-17"]),
    "monthly": ("1990-01-15 00-00-00", ["1990-01-15", "1990-02-15", "1990-03-15"]),
    "quarterly": ("1990-12-31 00-00-00", ["1990-12-31", "1991-03-31", "1991-06-30"]),
    "yearly": ("1990-02-28 00-00-00", ["1990-02-28", "1991-02-28", "1992-02-29"]),
}


@pytest.mark.parametrize("frequency", FREQUENCIES)
def test_a_tsf_file_is_a_long_frame_with_stamps_of_its_frequency(written, frequency):
    start, stamps = FREQUENCIES[frequency]
    y = read_tsf(written(TSF.format(frequency=frequency, start=start)))
    assert y["unique_id"].tolist() == ["T1"] * 4 + ["T2"]
    np.testing.assert_array_equal(y["y"], [1, 2.5, np.nan, 4, -7000])
    assert list(y["ds"][:3]) == list(pd.DatetimeIndex(stamps))
    assert y.attrs == {"frequency": frequency, "horizon": 3}
    assert len(Naive(3).fit(y).predict()) == 6


def test_a_tsf_file_without_names_and_dates_is_counted(written):
    y = read_tsf(written("@attribute size numeric\n@data\n5:1,2\n6:3\n"))
    assert y.to_numpy().tolist() == [["T1", 1, 1.0], ["T1", 2, 2.0], ["T2", 1, 3.0]]
    assert y.attrs == {"frequency": None, "horizon": None}


def test_a_parquet_file_gives_its_three_columns_as_they_are(tmp_path):
    path = tmp_path / "load.parquet"
    stamps = pd.date_range("2024-01-01", periods=4, freq="h", tz="UTC")
    y = pd.DataFrame({"site": pd.Categorical(list("abab")), "ds": stamps, "y": [1.0, 2, 3, 4], "more": 1})
    y.to_parquet(path)
    pd.testing.assert_frame_equal(read_parquet(path, id_col="site"), y[["site", "ds", "y"]])
    with pytest.raises(
        ValueError, match=r"load.parquet has no column 'unique_id', only \['site', 'ds'.*id_col"
    ):
        read_parquet(path)
    pd.testing.assert_frame_equal(read_parquet(path, id_col=None), y[["ds", "y"]])
    path.write_text("PAR?")
    with pytest.raises(ValueError, match=r"load.parquet is no Parquet file"):
        read_parquet(path)


HEADER = "@attribute series_name string\n@attribute start date\n@frequency daily\n"
MALFORMED = {
    "an M4 file without header": (read_m4, "H1,605,586\nH2,3,4\n", 1, "number stands where a header.*V1,V2"),
    "a word among M4 values": (read_m4, M4.replace("2990", "many"), 3, "field 3 of series 'H2' is 'many'"),
    "a hole in an M4 series": (read_m4, M4.replace('"586",', '"",'), 2, "field 3 of series 'H1' is empty"),
    "an M4 series twice": (read_m4, M4 + "H1,2\n", 4, "'H1' was seen in line 2"),
    "an M4 series without name": (read_m4, M4 + ",2\n", 4, "name is missing"),
    "an M4 series without value": (read_m4, M4 + "H3,,\n", 4, "'H3' has no value"),
    "a word among ETT values": (read_ett, ETT.replace("27.8", "warm"), 3, "column 'OT' is 'warm'"),
    "a date that is none": (
        read_ett,
        ETT.replace("2016-07-01 01", "2016-17-01 01"),
        3,
        "'2016-17-01 01:00:00'",
    ),
    "no date": (read_ett, ETT.replace("2016-07-01 01:00:00", ""), 3, "'' is no date"),
    "a field too few": (read_ett, ETT.replace(",27.8", ""), 3, "2 fields came, but the header has 3"),
    "a field too many": (read_ett, ETT.replace("27.8", "27.8,1"), 3, "4 fields came"),
    "a date twice": (read_ett, ETT.replace("01 01:", "01 00:"), 3, "2016-07-01 00:00:00 does not come after"),
    "a column twice": (read_ett, ETT.replace("HUFL", "OT"), 1, "all different"),
    "a word among TSF values": (read_tsf, HEADER + "@data\nT1:1990-01-01 00-00-00:1,x\n", 5, "value 2.*'x'"),
    "an attribute too few": (read_tsf, HEADER + "@data\nT1:1,2\n", 5, "1 attributes came.*has 2"),
    "a TSF date that is none": (
        read_tsf,
        HEADER + "@data\n\nT1:1990-01-01:1\n",
        6,
        "'1990-01-01' is no date",
    ),
    "a TSF series twice": (
        read_tsf,
        HEADER + "@data\nT1:1990-01-01 00-00-00:1\nT1:1990-01-01 00-00-00:1\n",
        6,
        "'T1' was seen in line 5",
    ),
    "a frequency unknown": (read_tsf, "@frequency fortnightly\n@data\n1\n", 1, "'@frequency fortnightly'"),
    "a type unknown": (read_tsf, "@relation x\n@attribute a text\n@data\n1\n", 2, "string, numeric, date"),
    "a line before the data": (read_tsf, "@relation x\n1,2,3\n", 2, "'1,2,3' is not understood"),
    "values that leave the calendar": (
        read_tsf,
        HEADER.replace("daily", "yearly") + "@data\nT1:2260-01-01 00-00-00:" + ",".join("1" * 9000) + "\n",
        5,
        "9000 yearly values",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_file_is_answered_with_its_name_and_line(written, case):
    read, text, line, told = MALFORMED[case]
    path = written(text)
    with pytest.raises(ValueError, match=rf"{path.name}, line {line}: .*{told}"):
        read(path)


@pytest.mark.parametrize("read", [read_m4, read_ett, read_tsf])
@pytest.mark.parametrize("text", ["", "a,b\n", "@data\n"])
def test_a_file_without_data_says_so(written, read, text):
    with pytest.raises(ValueError, match=r"file.txt.*(holds no|line 1)"):
        read(written(text))


def test_a_test_series_that_is_not_in_the_training_file_is_named(written):
    history = read_m4(written(M4))
    with pytest.raises(ValueError, match=r"line 2: the series 'H9' is not in the frame"):
        read_m4(written('"V1","V2"\nH9,1\n'), after=history)


def test_bytes_that_are_no_text_are_found_by_line(tmp_path):
    path = tmp_path / "file.csv"
    path.write_bytes(M4.encode() + b"H\xff,1\n")
    with pytest.raises(ValueError, match=r"file.csv, line 4: byte 1 is no utf-8"):
        read_m4(path)


@settings(max_examples=60)
@given(st.integers(2, 30), st.data())
def test_the_line_of_a_spoilt_number_is_told_wherever_it_is(tmp_path_factory, rows, data):
    spoilt = data.draw(st.integers(0, rows - 1))
    stamps = pd.date_range("2020-01-01", periods=rows).strftime("%Y-%m-%d")
    lines = [f"{stamp},1.0,{'o.5' if row == spoilt else '0.5'}" for row, stamp in enumerate(stamps)]
    path = tmp_path_factory.mktemp("ett") / "ETT.csv"
    path.write_text("\n".join(["date,a,b", *lines]))
    with pytest.raises(ValueError, match=rf"ETT.csv, line {spoilt + 2}: column 'b' is 'o.5'"):
        read_ett(path)


@pytest.mark.skipif("FRACTS_DATA" not in os.environ, reason="needs ETTh1.csv.gz in the folder FRACTS_DATA")
def test_the_file_etth1_is_read_whole():
    y = read_ett(Path(os.environ["FRACTS_DATA"]) / "ETTh1.csv.gz")
    assert y.shape == (17420, 7) and y.notna().all().all()
    assert list(y.columns) == ["HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT"]
    assert (y.index == pd.date_range("2016-07-01", periods=17420, freq="h")).all()
