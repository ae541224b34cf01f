"""Tables on disk as frames that `fit` takes: CSV and Parquet, long or wide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from fracts.names import Names

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
    stamps in its index. Stamps written as text are dates; numbers stay numbers.

    Raises
    ------
    ValueError : another kind of file, or texts that are no dates.
    OSError : the file cannot be read.

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
    table: pd.DataFrame = _READERS[ending](path)
    if {names.time_col, names.target_col} <= set(table.columns):
        default = Names()
        called = {
            names.id_col: default.id_col,
            names.time_col: default.time_col,
            names.target_col: default.target_col,
        }
        table = table.rename(columns=called)
        return table.assign(ds=_stamps(table["ds"], path))
    first = names.time_col if names.time_col in table.columns else table.columns[0]
    if first != names.time_col and is_numeric_dtype(table[first]):
        return table
    return table.assign(**{first: _stamps(table[first], path)}).set_index(first)


def _stamps(column: pd.Series[Any], path: Path) -> pd.Series[Any]:
    if is_numeric_dtype(column) or column.dtype.kind == "M":
        return column
    try:
        return pd.to_datetime(column)
    except ValueError as error:
        raise ValueError(
            f"column {column.name!r} of {path} should hold stamps and has {column.iloc[0]!r}: {error}. Name "
            "the column of the stamps."
        ) from error
