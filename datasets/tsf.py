"""Reader of the files of the Monash archive (`.tsf`).

Godahewa, Bergmeir, Webb, Hyndman and Montero-Manso, 2021, Monash Time Series Forecasting Archive: a header of
`@` lines, then a line a series: its attributes and its values, parted by colons, the values by commas.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from fracts.datasets.lines import at_line, long_frame, number_in, read_lines

STEPS: dict[str, str | int] = {  # of the frequencies that the archive names: pandas' alias, or months
    "4_seconds": "4s",
    "minutely": "1min",
    "10_minutes": "10min",
    "15_minutes": "15min",
    "half_hourly": "30min",
    "hourly": "1h",
    "daily": "1D",
    "weekly": "7D",
    "monthly": 1,
    "quarterly": 3,
    "yearly": 12,
}
ATTRIBUTES = ("string", "numeric", "date")


def read_tsf(path: str | Path) -> pd.DataFrame:
    """The series of a `.tsf` file as a long frame: unique_id, ds, y in the units of the file; `?` is NaN.

    The stamps go on from the attribute of type date by the frequency of the file; without either they are
    1, 2, 3, ... Names are those of the first text attribute, or T1, T2, ... `attrs` of the frame has the
    `frequency` and the `horizon` that the header tells, None where it does not.

    Parameters
    ----------
    path : a text file, which may be packed as `.gz`.

    Raises
    ------
    ValueError : by line, for a header that is not understood, a line with too few or too many attributes, a
        value that is no number, a date that is none, a name that comes twice.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "small.tsf"
    >>> _ = path.write_text(
    ...     "@relation small\\n@attribute series_name string\\n@attribute start_timestamp date\\n"
    ...     "@frequency monthly\\n@horizon 2\\n@data\\nT1:1990-01-01 00-00-00:3,?,5\\n"
    ... )
    >>> read_tsf(path)
      unique_id         ds    y
    0        T1 1990-01-01  3.0
    1        T1 1990-02-01  NaN
    2        T1 1990-03-01  5.0
    >>> read_tsf(path).attrs
    {'frequency': 'monthly', 'horizon': 2}
    """
    attributes: list[str] = []
    told: dict[str, str] = {}
    names: dict[str, int] = {}
    stamps: list[pd.Index] = []
    series: list[list[float]] = []
    in_data = False
    for line, text in read_lines(path, encoding="cp1252"):
        if text.startswith("#"):
            continue
        if in_data:
            *given, values = text.split(":")
            if len(given) != len(attributes):
                raise at_line(
                    path, line, f"{len(given)} attributes came, but the header has {len(attributes)}"
                )
            name, start = _named(path, line, attributes, given, f"T{len(names) + 1}")
            if name in names:
                raise at_line(path, line, f"the name {name!r} was seen in line {names[name]}")
            names[name] = line
            fields = values.split(",")
            y = [
                np.nan
                if field.strip() == "?"
                else number_in(path, line, field, f"value {at} of series {name!r}")
                for at, field in enumerate(fields, 1)
            ]
            series.append(y)
            stamps.append(_stamps(path, line, start, told.get("frequency"), len(y)))
        elif text.lower().startswith("@data"):
            in_data = True
        else:
            _read_header(path, line, text, attributes, told)
    if not names:
        raise ValueError(
            f"{Path(path).name} holds no series. A line `@data` and one for every series are needed."
        )
    frame = long_frame(list(names), stamps, series)
    frame.attrs = {
        "frequency": told.get("frequency"),
        "horizon": int(told["horizon"]) if "horizon" in told else None,
    }
    return frame


def _read_header(path: str | Path, line: int, text: str, attributes: list[str], told: dict[str, str]) -> None:
    """Take down what a line before `@data` says."""
    key, *words = text.split()
    key = key.lower()
    if key == "@attribute" and len(words) == 2 and words[1] in ATTRIBUTES:
        attributes.append(words[1])
    elif key == "@frequency" and len(words) == 1 and words[0] in STEPS:
        told["frequency"] = words[0]
    elif key == "@horizon" and len(words) == 1 and words[0].isdigit():
        told["horizon"] = words[0]
    elif key in ("@attribute", "@frequency", "@horizon") or not key.startswith("@"):
        raise at_line(
            path,
            line,
            f"{text!r} is not understood. Known are `@attribute name type` with a type of "
            f"{', '.join(ATTRIBUTES)}, `@horizon n` and `@frequency` with {', '.join(STEPS)}",
        )


def _named(
    path: str | Path, line: int, attributes: list[str], given: list[str], otherwise: str
) -> tuple[str, pd.Timestamp | None]:
    """Name and start of a series, from its attributes."""
    typed = dict(zip(reversed(attributes), reversed(given), strict=True))  # the first of each type
    if "date" not in typed:
        return typed.get("string", otherwise), None
    try:
        start = pd.to_datetime(typed["date"], format="%Y-%m-%d %H-%M-%S")
    except ValueError:
        raise at_line(path, line, f"{typed['date']!r} is no date such as 1990-01-01 00-00-00") from None
    return typed.get("string", otherwise), start


def _stamps(
    path: str | Path, line: int, start: pd.Timestamp | None, frequency: str | None, n: int
) -> pd.Index:
    """`n` stamps from `start` on."""
    if start is None or frequency is None:
        return pd.RangeIndex(1, n + 1)
    step = STEPS[frequency]
    try:
        if isinstance(step, str):
            return pd.date_range(start, periods=n, freq=step)
        if start.is_month_end:
            return pd.date_range(start, periods=n, freq=f"{step}ME")
        return pd.DatetimeIndex([start + pd.DateOffset(months=step * k) for k in range(n)])
    except (ValueError, OverflowError):
        raise at_line(path, line, f"{n} {frequency} values from {start} on leave the calendar") from None
