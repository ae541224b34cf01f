"""Names: which column of a frame holds the series' names, which the stamps, which the values.

One idea: a name that is told must be found and play its part. What a pandas frame keeps in its index is
brought among its columns where that makes it long, so a name may be of a column or of a level of the index.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import Any

import pandas as pd

from fracts.layouts import Layout, shortened
from fracts.records import record


@record
@dataclass(frozen=True)
class Names:
    """The columns that make a frame long, as `fit` was told; ValueError for two of one name."""

    id_col: str = "unique_id"
    time_col: str = "ds"
    target_col: str = "y"

    def __post_init__(self) -> None:
        for (role, name), (other, same) in combinations(vars(self).items(), 2):
            if name == same:
                raise ValueError(
                    f"{role} and {other} are both {name!r}. They name three different columns: the series, "
                    "the stamps and the values."
                )

    @property
    def told(self) -> dict[str, str]:
        """Those that are not what they are without being told, by their role."""
        return {
            field.name: name for field in fields(self) if (name := getattr(self, field.name)) != field.default
        }


def in_columns(frame: pd.DataFrame, names: Names) -> tuple[pd.DataFrame, Names]:
    """A long `frame` whose names or stamps are in the index with these as columns, and what they are called.

    Any other frame comes back as it is.

    Examples
    --------
    >>> days = pd.date_range("2024-01-01", periods=2, name="day")
    >>> frame, names = in_columns(pd.DataFrame({"unique_id": ["a", "b"], "y": [1.0, 2.0]}, days), Names())
    >>> list(frame.columns), names.time_col
    (['day', 'unique_id', 'y'], 'day')
    """
    index = frame.index
    levels = list(index.names)
    if names.time_col in frame.columns:
        return (frame.reset_index(), names) if names.id_col in levels else (frame, names)
    if isinstance(index, pd.MultiIndex):
        return frame, names
    if names.id_col in levels:
        return frame.reset_index(), names
    dated = isinstance(index, pd.DatetimeIndex | pd.PeriodIndex) or index.dtype.kind == "M"
    if names.id_col in frame.columns and (dated or names.time_col in levels):
        called: Any = names.time_col if index.name is None else index.name
        kept = replace(names, time_col=called)
        return frame.reset_index(names=kept.time_col), kept
    return frame, names


def check_names_used(names: Names, layout: Layout) -> None:
    """ValueError for a name that was told to fit and plays no part in the `layout` that was read."""
    for role, name in names.told.items():
        if name not in layout.called(role):
            raise ValueError(
                f"fit was told {role}={name!r}, but y was read as {layout.kind}, of the series "
                f"{shortened(layout.ids)}, in which nothing of that name has this part. Leave {role} out, "
                "or give a long frame: a row for every value, with its series, stamp and value in the "
                "columns that id_col, time_col and target_col name."
            )
