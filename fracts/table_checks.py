"""Checks of tables on disk: every message names the file and the line, and says what to write instead."""

from __future__ import annotations

import csv
import gzip
import warnings
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_RAGGED = "Expected "  # how pandas begins to tell of a line with too many fields


def check_rows(table: pd.DataFrame, path: Path) -> None:
    """ValueError unless `table` has rows, and columns that commas set apart."""
    if len(table.columns) == 1:
        first = str(table.columns[0])
        for separator, called in _SEPARATORS.items():
            if separator in first:
                raise ValueError(
                    f"{path}, line 1: {first!r} is set apart by {called}. Set fields apart by commas, and "
                    "write decimals with a point."
                )
    if table.empty:
        raise ValueError(f"{path} has no rows below its header. A row a stamp is needed.")


def check_columns(table: pd.DataFrame, path: Path, needed: list[str], told: dict[str, str]) -> None:
    """ValueError where a column of `needed` is not in `table`; told: options of the names that were given."""
    for name in needed:
        if name not in table.columns:
            has = ", ".join(str(column) for column in table.columns)
            cure = f"Name it by {told[name]}." if name in told else "Rename a column."
            raise ValueError(f"{path} has no column {name!r}; its columns are {has}. {cure}")


def check_numbers(column: pd.Series[Any], path: Path) -> None:
    """ValueError unless the values in `column` are finite numbers; what is missing is none."""
    numbers = pd.to_numeric(column, errors="coerce")
    endless = np.isinf(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    wrong = np.flatnonzero((numbers.isna() & column.notna()) | endless)
    if wrong.size:
        value = str(column.iloc[wrong[0]])
        raise ValueError(
            f"{place(path, int(wrong[0]))}, column {column.name!r}: {value!r} is no finite number"
            f"{_and_more(wrong.size)}. Write numbers as 1234.5; an empty field is no value."
        )


def check_named(column: pd.Series[Any], path: Path) -> None:
    """ValueError where the name of a series in `column` is missing."""
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise ValueError(
            f"{place(path, int(missing[0]))}, column {column.name!r}: the name of the series is missing"
            f"{_and_more(missing.size)}. Fill it in, or drop the row."
        )


def check_once(keys: pd.DataFrame, path: Path) -> None:
    """ValueError for a second row of one series and stamp; keys: columns of the names and stamps."""
    again = np.flatnonzero(keys.duplicated())
    if again.size:
        told = " ".join(str(key) for key in keys.iloc[again[0]])
        raise ValueError(
            f"{place(path, int(again[0]))}: {told} was there before{_and_more(again.size)}. Keep one row for "
            "each stamp of a series, or name the column that tells series apart by --id-col."
        )


def check_stamps(column: pd.Series[Any], path: Path) -> pd.Series[Any]:
    """The stamps in `column`, texts as dates; ValueError for one that is missing or no date."""
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise ValueError(
            f"{place(path, int(missing[0]))}, column {column.name!r}: the stamp is missing"
            f"{_and_more(missing.size)}. Every row needs one: a date or a number."
        )
    if is_numeric_dtype(column) or column.dtype.kind == "M":
        return column
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of dates in no known order, read one by one
        try:
            return pd.to_datetime(column)
        except ValueError as error:
            at = _first_other(column)
            raise ValueError(
                f"{place(path, at)}, column {column.name!r}: {column.iloc[at]!r} is no stamp, or written "
                "otherwise than those above it. Write all as 2024-12-31 or 2024-12-31 23:00, in one zone, or "
                "as numbers; where it is not the column of the stamps, name that by --time-col."
            ) from error


def unreadable(path: Path, error: Exception) -> ValueError:
    """What to raise where the `error` was met in reading the file at `path`."""
    if isinstance(error, pd.errors.EmptyDataError):
        return ValueError(f"{path} is empty. A header and a row a stamp are needed.")
    if isinstance(error, UnicodeDecodeError):
        return ValueError(f"{path} is no text in UTF-8. Save it as CSV in UTF-8.")
    if isinstance(error, pd.errors.ParserError) and (told := _too_many(str(error))):
        needed, line, seen = told
        return ValueError(
            f"{path}, line {line} has {seen} fields, and the lines above have {needed}. Set fields apart by "
            "commas, one for each column; a field with a comma in it needs quotes around it."
        )
    kind = "Parquet" if path.name.endswith(".parquet") else "CSV"
    packed = " packed by gzip" if path.name.endswith(".gz") else ""
    return ValueError(
        f"{path} cannot be read as {kind}{packed}: it is damaged, or of another kind. Write it anew."
    )


def place(path: Path, row: int) -> str:
    """Where the `row` (from 0) of a table is in its file: the line of a CSV file.

    Empty lines are no rows, and a field in quotes may go over several lines.
    """
    if path.name.endswith(".parquet"):
        return f"{path}, row {row + 1}"
    with _text(path) as lines:
        reader = csv.reader(lines)
        begins, at = 1, -1  # the header is row -1
        for fields in reader:
            if fields and at == row:
                break
            at += bool(fields)
            begins = reader.line_num + 1
    return f"{path}, line {begins}"


def _text(path: Path) -> IO[str]:
    if path.name.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def _first_other(column: pd.Series[Any]) -> int:
    """Row of the first text in `column` that is no date, or not written like the first."""
    try:
        other = np.flatnonzero(pd.to_datetime(column, errors="coerce").isna())
    except ValueError:  # zones differ
        zones = [pd.Timestamp(text).utcoffset() for text in column]
        other = np.flatnonzero([zone != zones[0] for zone in zones])
    return int(other[0]) if other.size else 0


def _too_many(told: str) -> tuple[int, int, int] | None:
    """Fields needed, line, and fields seen, as pandas tells of a line with too many of them."""
    if _RAGGED not in told:
        return None
    words = told.split(_RAGGED)[1].replace(",", "").split()
    return int(words[0]), int(words[words.index("line") + 1]), int(words[-1])


def _and_more(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""
