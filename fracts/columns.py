"""One column of a frame as numpy and pandas see it, and back.

One idea: whatever library a column comes from, its numbers become float64 with NaN for none and its stamps a
pandas index, and a forecast's stamps go back into the type that the column had.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fracts.checks import check_numbers, refused_numbers


def numbers_of(column: nw.Series[Any], name: str) -> NDArray[np.float64]:
    """`column` (rows,) as float64; TypeError unless numbers, ValueError for integers too long for it."""
    if column.implementation.is_pandas():
        return check_numbers(column.to_native(), name)
    if not column.dtype.is_numeric():
        raise refused_numbers(name, column.dtype)
    if not column.dtype.is_integer():
        return column.cast(nw.Float64).to_numpy().astype(np.float64)
    # Through float64 as a whole they would be rounded before anyone could look.
    whole = check_numbers(column.fill_null(0).to_numpy(), name)
    return np.where(column.is_null().to_numpy(), np.nan, whole)


def stamps_of(column: nw.Series[Any]) -> pd.Index[Any]:
    """`column` as an index of its name: dates in their zone and unit, periods, or whatever it holds."""
    if column.implementation.is_pandas():
        return plain_index(pd.Index(column.to_native()))
    kind = column.dtype
    if isinstance(kind, nw.Datetime | nw.Date):
        dates = pd.DatetimeIndex(column.to_numpy(), name=column.name)
        zone = kind.time_zone if isinstance(kind, nw.Datetime) else None
        return dates if zone is None else dates.tz_localize("UTC").tz_convert(zone)
    stamps: pd.Index[Any] = pd.Index(column.to_numpy(), name=column.name)
    if kind.is_integer() and column.is_null().any():  # which numpy makes fractions of
        stamps = pd.Index(column.to_list(), dtype="Int64", name=column.name)
    return stamps


def plain_index(index: pd.Index[Any]) -> pd.Index[Any]:
    """`index` without Arrow's types: dates as a DatetimeIndex, integers of numpy."""
    if not isinstance(index.dtype, pd.ArrowDtype):
        return index
    if index.dtype.kind == "M":
        return pd.DatetimeIndex(index)
    return index.astype(np.int64) if index.dtype.kind in "iu" and not index.hasnans else index


def typed_index(index: pd.Index[Any], dtype: Any) -> pd.Index[Any]:
    """`index` in the `dtype` that stamps came in, where that can hold them all."""
    if index.dtype == dtype:
        return index
    if isinstance(dtype, pd.ArrowDtype):
        dated = str(dtype).startswith("date")
        return index if dated and not _at_midnight(index) else index.astype(dtype)
    whole = dtype.kind in "iu" and bool((index.astype(dtype) == index).all())
    return index.astype(dtype) if whole else index


def like_column(index: pd.Index[Any], column: nw.Series[Any]) -> nw.Series[Any]:
    """The stamps `index` in the type of `column`; dates that are no longer midnights as times."""
    if column.implementation.is_pandas():
        native = pd.Series(typed_index(index, column.to_native().dtype), name=column.name)
        return _narwhal(native)
    zone = getattr(index, "tz", None)
    bare = index if zone is None else pd.DatetimeIndex(index).tz_convert("UTC").tz_localize(None)
    if column.dtype.is_integer():
        held = typed_index(index, column.to_numpy().dtype)
        return nw.new_series(column.name, held.to_numpy(), backend=column.implementation)
    values = bare.to_numpy()
    if values.dtype == "M8[s]":  # of which polars knows nothing
        values = values.astype("M8[ms]")
    library: Any = column.implementation
    stamps: nw.Series[Any] = nw.new_series(column.name, values, backend=library)
    if isinstance(column.dtype, nw.Datetime) and column.dtype.time_zone is not None:
        unit = nw.Datetime(column.dtype.time_unit)
        return stamps.cast(unit).dt.replace_time_zone("UTC").dt.convert_time_zone(column.dtype.time_zone)
    if isinstance(column.dtype, nw.Date) and not _at_midnight(index):
        return stamps
    return stamps.cast(column.dtype)


def only_column(frame: Any) -> nw.Series[Any]:
    """The column of a native frame that has one: an array of Arrow alone would not know its name."""
    whole: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
    return whole.get_column(whole.columns[0])


def native_frame(columns: dict[str, Any], library: Any) -> Any:
    """A frame of the narwhals implementation `library`; columns: narwhals Series or numpy arrays."""
    if not library.is_pandas():
        first, *others = (
            column if isinstance(column, nw.Series) else nw.new_series(name, column, backend=library)
            for name, column in columns.items()
        )
        return first.to_frame().with_columns(*others).to_native()  # `from_dict` makes an Enum a Categorical
    native = {
        name: column.to_native().reset_index(drop=True) if isinstance(column, nw.Series) else column
        for name, column in columns.items()
    }
    return pd.DataFrame(native)


def _narwhal(column: Any) -> nw.Series[Any]:
    return nw.from_native(column, series_only=True)


def _at_midnight(index: pd.Index[Any]) -> bool:
    return bool((pd.DatetimeIndex(index).normalize() == index).all())
