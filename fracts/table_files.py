"""Tables on disk as frames that `fit` takes: CSV and Parquet, long or wide."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from fracts.names import Names
from fracts.table_checks import (
    check_columns,
    check_named,
    check_numbers,
    check_once,
    check_rows,
    check_stamps,
    unreadable,
)

_READERS: dict[str, Any] = {".csv": pd.read_csv, ".csv.gz": pd.read_csv, ".parquet": pd.read_parquet}


def read_table(path: Path, names: Names) -> pd.DataFrame:
    """The table in the file at `path`.

    Parameters
    ----------
    path : of a CSV file, which may be compressed by gzip, or of a Parquet file.
    names : of its columns. With those of `time_col` and `target_col` it is long, a row a value; otherwise
        wide, a column a series, and its stamps are `time_col`, or the first column where that holds no
        numbers.

    Returns
    -------
    A long frame with the columns `unique_id` (where there is one), `ds` and `y`, or a wide one with the
    stamps in its index, ascending. Stamps written as text are dates; numbers stay numbers.

    Raises
    ------
    ValueError : another kind of file, or one that is empty or damaged; a column lacks that was named; texts
        that are no dates or no numbers. The line is named.
    OSError : the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "load.csv"
    ...     _ = path.write_text("day,load\\n2024-01-01,3.5\\n2024-01-02,4.0\\n")
    ...     read_table(path, Names()).index
    DatetimeIndex(['2024-01-01', '2024-01-02'], dtype='datetime64[us]', name='day', freq=None)
    """
    ending = next((ending for ending in _READERS if path.name.endswith(ending)), None)
    if ending is None:
        raise ValueError(f"{path} is none of {', '.join(_READERS)}. Write it as one of these.")
    table = _read(path, _READERS[ending])
    check_rows(table, path)
    options = {name: f"--{role.replace('_', '-')}" for role, name in names.told.items()}
    if names.id_col in table.columns:
        check_columns(table, path, [names.time_col, names.target_col], options)
    elif names.time_col in options:
        check_columns(table, path, [names.time_col], options)
    if {names.time_col, names.target_col} <= set(table.columns):
        check_numbers(table[names.target_col], path)
        stamps = check_stamps(table[names.time_col], path)
        keys = table[[name for name in (names.id_col, names.time_col) if name in table.columns]]
        if names.id_col in keys:
            check_named(keys[names.id_col], path)
        check_once(keys, path)
        default = Names()
        called = {
            names.id_col: default.id_col,
            names.time_col: default.time_col,
            names.target_col: default.target_col,
        }
        return table.rename(columns=called).assign(ds=stamps)
    return _wide(table, path, names.time_col)


def _wide(table: pd.DataFrame, path: Path, time_col: str) -> pd.DataFrame:
    """A wide `table` with the stamps in its index, where it has a column of these."""
    first = time_col if time_col in table.columns else table.columns[0]
    stamped = first == time_col or not is_numeric_dtype(table[first])
    for name in table.columns:
        if name != first or not stamped:
            check_numbers(table[name], path)
    if not stamped:
        return table
    check_once(table[[first]], path)
    return table.set_index(check_stamps(table.pop(first), path)).sort_index()


def _read(path: Path, reader: Any) -> pd.DataFrame:
    try:
        table: pd.DataFrame = reader(path)
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise unreadable(path, error) from error
    return table
