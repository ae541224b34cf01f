"""`python -m fracts search` reads files as people have them, and says what is wrong with them."""

import gzip
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from fracts.commands import _until_told_to_end, main
from fracts.names import Names
from fracts.table_files import read_table


@pytest.fixture
def long():
    days = pd.date_range("2024-01-01", periods=60)
    frames = [pd.DataFrame({"shop": name, "day": days, "sales": np.arange(60.0) % 7 + k}) for k, name in
              enumerate("ab")]  # fmt: skip
    return pd.concat(frames, ignore_index=True)


@pytest.fixture(autouse=True)
def handlers(monkeypatch):
    """The process of the tests goes on being ended as before."""
    monkeypatch.setattr("fracts.commands._until_told_to_end", lambda: None)


def run(*arguments):
    return CliRunner().invoke(main, ["search", "--quiet", *map(str, arguments)])


NAMED = ["--id-col", "shop", "--time-col", "day", "--target-col", "sales"]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_long_and_wide_tables_are_read_alike(ending, long, tmp_path):
    path, other = tmp_path / f"long.{ending}", tmp_path / f"wide.{ending}"
    wide = long.pivot(index="day", columns="shop", values="sales").reset_index()
    for table, target in ((long, path), (wide, other)):
        table.to_parquet(target) if ending == "parquet" else table.to_csv(target, index=False)
    names = Names("shop", "day", "sales")
    first, second = read_table(path, names), read_table(other, names)
    assert list(first) == ["unique_id", "ds", "y"] and first["ds"].dtype.kind == "M"
    again = first.pivot(index="ds", columns="unique_id", values="y")
    np.testing.assert_array_equal(again.to_numpy(), second.to_numpy())
    assert list(second) == ["a", "b"] and (second.index == again.index).all()


def test_numbers_without_stamps_are_rows_that_are_counted(tmp_path):
    path = tmp_path / "bare.csv"
    path.write_text("load\n1\n2\n3\n")
    table = read_table(path, Names())
    assert table["load"].tolist() == [1, 2, 3] and isinstance(table.index, pd.RangeIndex)


def test_a_search_tells_the_best_in_numbers(long, tmp_path):
    path = tmp_path / "data.csv"
    long.to_csv(path, index=False)
    ended = run("--data", path, "--horizon", 3, "--model", "FracRidge", "--trials", 2, "--seed", 0, *NAMED)
    assert ended.exit_code == 0, ended.output
    first, *rest = ended.output.splitlines()
    assert first.startswith("best mase ") and first.endswith(" of 2")
    assert {line.split(" = ")[0].strip() for line in rest} >= {"n_modes", "timescales", "penalty", "anchor"}


FAULTS = [
    (["--horizon", 3, "--trials", 1, "--metric", "mse"], "metric must be"),
    (["--horizon", 3, "--trials", 1, "--leave-out", 60], "leaves none of the 60 stamps"),
    (["--horizon", 90, "--trials", 1], "y has 60 rows, which hold no forecast of 90 steps"),
    (["--horizon", 3, "--trials", 1, "--windows", 99], "Ask for at most"),
]


@pytest.mark.parametrize(("arguments", "told"), FAULTS)
def test_what_is_wrong_is_said_in_a_line_without_a_traceback(arguments, told, long, tmp_path):
    path = tmp_path / "data.csv"
    long.to_csv(path, index=False)
    ended = run("--data", path, *NAMED, *arguments)
    assert ended.exit_code == 1 and isinstance(ended.exception, SystemExit)
    assert ended.output.startswith("Error: ") and told in ended.output


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("data.txt", "1\n", "is none of .csv, .csv.gz, .parquet"),
        ("data.csv", "", "is empty. A header"),
        ("data.csv", "ds,y\n", "has no rows below its header"),
        (
            "data.csv",
            "ds;y\n1;1,5\n",
            "line 1: 'ds;y' is set apart by semicolons. Set fields apart by commas",
        ),
        ("data.csv", "ds,y\n1,2\n2,1,5\n", "line 3 has 3 fields, and the lines above have 2"),
        ("data.csv", "ds,y\n1,caf\xe9\n".encode("latin-1"), "is no text in UTF-8. Save it as CSV in UTF-8"),
        ("data.csv", "unique_id,day,y\na,1,2\n", "has no column 'ds'; its columns are unique_id, day, y"),
        ("data.csv", "unique_id,ds,y\na,1,2\n,1,2\n", "line 3, column 'unique_id': the name of the series"),
        ("data.csv", "ds,y\n1,2\n\n2,n/k\n3,12 MW\n", r"line 4, column 'y': 'n/k' is no .* \(and 1 more\)"),
        ("data.csv", 'note,y\n"a\nb",2\n"c",inf\n', "line 4, column 'y': 'inf' is no finite number"),
        (
            "data.csv",
            "day,load\n2024-01-01,1\n2024-01-02,x\n",
            "line 3, column 'load': 'x' is no finite number",
        ),
        ("data.csv", "when,load\nyesterday,1\n", "line 2, column 'when': 'yesterday' is no stamp"),
        ("data.csv", "ds,y\n01/02/2024,1\n13/02/2024,2\n", "line 3, column 'ds': '13/02/2024' is no stamp"),
        ("data.csv", "ds,y\n2024-01-01,1\n,2\n", "line 3, column 'ds': the stamp is missing"),
        ("data.csv", "ds,y\n2024-01-01T00+01,1\n2024-06-01T00+02,2\n", "line 3, column 'ds': '2024-06-01T00"),
        ("data.csv", "ds,y\n1,2\n2,3\n2,4\n", "line 4: 2 was there before. Keep one row for each stamp"),
        ("data.csv", "day,a\n2024-01-01,3\n2024-01-01,4\n", "line 3: 2024-01-01 was there before"),
        ("data.csv.gz", "ds,y\n1,2\n", "cannot be read as CSV packed by gzip: it is damaged"),
        (
            "data.csv.gz",
            gzip.compress(b"ds,y\n1,2\n2,x\n", mtime=0),
            "line 3, column 'y': 'x' is no finite number",
        ),
        ("data.csv.gz", gzip.compress(b"ds,y\n1,2\n" * 99, mtime=0)[:20], "packed by gzip: it is damaged"),
        ("data.parquet", "PAR1", "cannot be read as Parquet: it is damaged"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line_and_a_cure(name, text, told, tmp_path):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    ended = run("--data", path, "--horizon", 3, "--trials", 1)
    assert ended.exit_code == 1 and isinstance(ended.exception, SystemExit)
    assert ended.output.startswith(f"Error: {path}")
    assert re.search(told, ended.output)


def test_a_row_of_a_parquet_file_is_counted(tmp_path):
    path = tmp_path / "data.parquet"
    pd.DataFrame({"ds": [1, 2, 2], "y": [1.0, 2.0, 3.0]}).to_parquet(path)
    with pytest.raises(ValueError, match="row 3: 2 was there before"):
        read_table(path, Names())


def test_a_column_that_was_named_must_be_there(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("ds,y\n1,2\n")
    ended = run("--data", path, "--horizon", 3, "--trials", 1, "--time-col", "when")
    assert "has no column 'when'; its columns are ds, y. Name it by --time-col" in ended.output


def test_rows_of_a_wide_table_may_stand_in_any_order(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("day,load\n2024-01-02,2\n2024-01-01,1\n")
    assert read_table(path, Names())["load"].tolist() == [1, 2]


def test_a_place_that_cannot_be_saved_in_is_told_before_the_first_trial(long, tmp_path):
    path, study = tmp_path / "data.csv", tmp_path / "study.log"
    long.to_csv(path, index=False)
    place = ["--storage", study, "--save", tmp_path / "nowhere" / "best"]
    ended = run("--data", path, "--horizon", 3, "--model", "FracRidge", "--trials", 1, *NAMED, *place)
    assert ended.exit_code == 2 and "to save best in. Make it first." in ended.output
    assert not study.exists()


def test_a_search_without_an_end_is_refused(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("ds,y\n1,2\n")
    ended = run("--data", path, "--horizon", 3)
    assert ended.exit_code == 2 and "give --trials 50, say, or --timeout" in ended.output


def test_the_help_names_every_option_with_a_sentence():
    told = CliRunner().invoke(main, ["search", "--help"]).output
    for option in main.commands["search"].params:
        assert option.opts[0] in told
        assert option.name == "model" or len(option.help) > 10


def test_the_module_runs_as_a_command():
    ended = subprocess.run(
        [sys.executable, "-m", "fracts", "--help"], capture_output=True, text=True, check=True
    )
    assert "search" in ended.stdout and ended.stdout.startswith("Usage: python -m fracts")


def test_nothing_is_heard_before_a_signal(monkeypatch):
    handlers = {}
    monkeypatch.setattr("signal.signal", lambda number, handler: handlers.update({number: handler}))
    told = _until_told_to_end()
    assert len(handlers) == 2 and told(None, None) is False
    number, handler = next(iter(handlers.items()))
    handler(number, None)
    assert told(None, None) is True
