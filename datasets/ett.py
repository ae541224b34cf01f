"""Reader of wide CSV files with dates, such as those of the Electricity Transformer data set (ETTh1.csv).

Zhou et al., 2021, Informer (AAAI 35): a header, then a line a stamp, the date first.
"""

import csv
from pathlib import Path

import numpy as np
import pandas as pd

from fracts.datasets.lines import at_line, number_in, read_lines


def read_ett(path: str | Path) -> pd.DataFrame:
    """A column for each series, dates as index, in the units of the file; empty fields are NaN.

    Parameters
    ----------
    path : a CSV, which may be packed as `.gz`: `date` and the names of the series, then a line a stamp.

    Raises
    ------
    ValueError : by line, for too few or too many fields, a date or a number that is none, a stamp that does
        not come after the one before.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "ETTh1.csv"
    >>> _ = path.write_text("date,HUFL,OT\\n2016-07-01 00:00:00,5.8,30.5\\n2016-07-01 01:00:00,,27.8\\n")
    >>> read_ett(path)
                         HUFL    OT
    date
    2016-07-01 00:00:00   5.8  30.5
    2016-07-01 01:00:00   NaN  27.8
    """
    lines = read_lines(path)
    header = next(csv.reader([next(lines, (1, ""))[1]]), [])
    if len(header) < 2 or len(set(header)) < len(header):
        raise at_line(
            path, 1, f"the header {header} does not name a column of dates and others, all different"
        )
    dates: list[tuple[int, str]] = []
    rows = []
    for line, text in lines:
        date, *fields = next(csv.reader([text]))
        if len(fields) != len(header) - 1:
            raise at_line(path, line, f"{len(fields) + 1} fields came, but the header has {len(header)}")
        named = zip(header[1:], fields, strict=True)
        rows.append([number_in(path, line, field or "nan", f"column {name!r}") for name, field in named])
        dates.append((line, date))
    if not rows:
        raise ValueError(
            f"{Path(path).name} holds no rows. A line for every stamp is needed after the header."
        )
    return pd.DataFrame(rows, index=_stamps(path, dates).rename(header[0]), columns=header[1:])


def _stamps(path: str | Path, dates: list[tuple[int, str]]) -> pd.DatetimeIndex:
    """The stamps that the texts of (line, text) write, checked to increase."""
    stamps = pd.DatetimeIndex(pd.to_datetime([t for _, t in dates], format="ISO8601", errors="coerce"))
    if (bad := np.flatnonzero(stamps.isna())).size:
        line, text = dates[bad[0]]
        raise at_line(path, line, f"{text!r} is no date such as 2016-07-01 00:00:00")
    if (late := np.flatnonzero(stamps[1:] <= stamps[:-1])).size:
        at = int(late[0]) + 1
        raise at_line(path, dates[at][0], f"the stamp {stamps[at]} does not come after {stamps[at - 1]}")
    return stamps
