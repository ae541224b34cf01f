"""Reader of long frames kept as Parquet."""

from pathlib import Path

import pandas as pd


def read_parquet(
    path: str | Path, *, id_col: str | None = "unique_id", time_col: str = "ds", target_col: str = "y"
) -> pd.DataFrame:
    """The columns `id_col`, `time_col` and `target_col` of a Parquet file, as they are; needs pyarrow.

    Of a file with a single series `id_col` is None, and the other two come back.

    Raises
    ------
    ValueError : the file is no Parquet, or lacks one of the columns.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "load.parquet"
    >>> pd.DataFrame({"site": ["a"], "ds": [1], "y": [2.5], "price": [9.0]}).to_parquet(path)
    >>> read_parquet(path, id_col="site")
      site  ds    y
    0    a   1  2.5
    """
    import pyarrow
    from pyarrow import parquet

    try:
        columns = parquet.read_schema(path).names
    except pyarrow.ArrowInvalid as broken:
        raise ValueError(f"{Path(path).name} is no Parquet file: {broken}") from broken
    wanted = [name for name in (id_col, time_col, target_col) if name is not None]
    if missing := [name for name in wanted if name not in columns]:
        raise ValueError(
            f"{Path(path).name} has no column {missing[0]!r}, only {columns}. "
            "Say by id_col, time_col and target_col which ones they are; id_col=None says that there is one "
            "series."
        )
    return pd.read_parquet(path, columns=wanted)
