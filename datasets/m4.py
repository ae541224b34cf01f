"""Reader of the files of the M4 competition: a row a series, its name and then its values.

Makridakis, Spiliotis and Assimakopoulos, 2020, International Journal of Forecasting 36(1); the files are
`Hourly-train.csv`, `Hourly-test.csv` and so on. They have no stamps, so rows are counted from 1.
"""

import contextlib
import csv
from pathlib import Path

import numpy as np
import pandas as pd

from fracts.datasets.lines import at_line, long_frame, number_in, read_lines


def read_m4(path: str | Path, after: pd.DataFrame | None = None) -> pd.DataFrame:
    """The series of an M4 file as a long frame: unique_id, ds (1, 2, 3, ...), y in the units of the file.

    Parameters
    ----------
    path : a CSV, which may be packed as `.gz`. Empty fields after the last value are padding.
    after : what was read of the training file, for a test file: its stamps go on from there.

    Raises
    ------
    ValueError : by line, for a field that is no number, a hole between values, a series without values, a
        name that is missing or comes twice, or, with `after`, one that is not in there.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "Hourly-train.csv"
    >>> _ = path.write_text('"V1","V2","V3"\\n"H1","605","586"\\n"H2","3.5",""\\n')
    >>> read_m4(path)
      unique_id  ds      y
    0        H1   1  605.0
    1        H1   2  586.0
    2        H2   1    3.5
    """
    starts = {} if after is None else after.groupby("unique_id")["ds"].max().to_dict()
    names: dict[str, int] = {}
    stamps: list[pd.Index] = []
    values: list[list[float]] = []
    lines = read_lines(path)
    line, header = next(lines, (1, ""))
    if _is_number(next(csv.reader([header]), [])[1:2]):
        raise at_line(path, line, "a number stands where a header is needed, such as V1,V2,V3")
    for line, text in lines:
        name, *fields = next(csv.reader([text]))
        if not name or name in names:
            told = f"the name {name!r} was seen in line {names[name]}" if name else "the name is missing"
            raise at_line(path, line, told)
        if after is not None and name not in starts:
            raise at_line(path, line, f"the series {name!r} is not in the frame that this file comes after")
        names[name] = line
        values.append(_values(path, line, name, fields))
        first = starts.get(name, 0) + 1
        stamps.append(pd.RangeIndex(first, first + len(values[-1])))
    if not names:
        raise ValueError(
            f"{Path(path).name} holds no series. A header and a line for every series are needed."
        )
    return long_frame(list(names), stamps, values)


def _is_number(field: list[str]) -> bool:
    """Whether there is a field, and it is a number."""
    with contextlib.suppress(ValueError):
        return bool(field) and np.isfinite(float(field[0]))
    return False


def _values(path: str | Path, line: int, name: str, fields: list[str]) -> list[float]:
    """The values of a line without its padding."""
    end = max((at for at, field in enumerate(fields, 1) if field), default=0)
    if not end:
        raise at_line(path, line, f"the series {name!r} has no value")
    if "" in fields[:end]:
        raise at_line(
            path, line, f"field {fields.index('') + 2} of series {name!r} is empty, later ones are not"
        )
    return [
        number_in(path, line, field, f"field {at} of series {name!r}")
        for at, field in enumerate(fields[:end], 2)
    ]
