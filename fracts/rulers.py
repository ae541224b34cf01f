"""Rulers: whole numbers for stamps, and back.

One idea: a ruler gives every stamp a whole number, its count, and every count its stamp. Calendar rulers
count months, business days or days at a fixed place (the first, the last, 14 days after the
first, half past nine); the finest one counts nanoseconds of UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fracts.records import record

Counts = NDArray[np.int64]

DAY = np.timedelta64(1, "D")
_ENDS = np.array(["1677-09-21T00:12:44", "2262-04-11T23:47:16"], dtype="M8[us]")  # of nanoseconds


class Ruler(Protocol):
    """Whole numbers for stamps, and back."""

    def counts(self, index: Any) -> Counts:
        """Count of each stamp, rounded down to the ruler; TypeError for another kind of index."""

    def stamps(self, counts: Counts) -> pd.Index[Any]:
        """The stamps of `counts`, with the name, zone and unit of the index learned."""

    def like(self, index: Any) -> Ruler:
        """The same ruler laid on the first stamp of another index, with its name, zone and unit."""

    def freq(self, step: int, first: int) -> str | None:
        """Alias of a step of `step` counts in pandas' spelling, None where it has none."""

    def season_lengths(self, step: int) -> tuple[int, ...]:
        """Lengths of the natural seasons, in steps."""


@record
@dataclass(frozen=True)
class Integers:
    """Integers stand for themselves; also the row numbers of arrays."""

    name: Any

    def counts(self, index: Any) -> Counts:
        if not pd.api.types.is_integer_dtype(index.dtype):
            raise TypeError(f"the stamps are {_kind(index)}, but fit saw integers. Give integer stamps.")
        if index.dtype.kind == "u" and (large := np.flatnonzero(index > np.iinfo(np.int64).max)).size:
            raise ValueError(
                f"the stamp {index[large[0]]} (row {large[0]}) is beyond {np.iinfo(np.int64).max}, "
                "the last of int64. Subtract the first stamp from all."
            )
        return np.asarray(index, dtype=np.int64)

    def stamps(self, counts: Counts) -> pd.Index[Any]:
        return pd.Index(counts, name=self.name)

    def like(self, index: Any) -> Integers:
        self.counts(index)
        return Integers(index.name)

    def freq(self, step: int, first: int) -> str | None:
        return None

    def season_lengths(self, step: int) -> tuple[int, ...]:
        return ()


@record
@dataclass(frozen=True)
class Instants:
    """Instants in nanoseconds of UTC, so that an hour is an hour in any season."""

    tz: Any
    unit: Any
    name: Any

    @classmethod
    def of(cls, index: Any) -> Instants:
        """The ruler with the zone, unit and name of `index`."""
        return cls(index.tz, index.unit, index.name)

    def counts(self, index: Any) -> Counts:
        index = _in_zone(index, self.tz)
        try:
            return np.asarray(index.as_unit("ns").asi8)
        except pd.errors.OutOfBoundsDatetime as out:
            far = np.flatnonzero(beyond_nanoseconds(index.asi8.view(f"M8[{index.unit}]")))
            raise ValueError(
                f"the stamp {index[far[0]]} (row {far[0]}) lies outside the years 1677 to 2262, whose times "
                "of day can be counted in nanoseconds. Only days, months and years may lie anywhere: give "
                "one row for each, at the same time of day, or integers."
            ) from out

    def stamps(self, counts: Counts) -> pd.Index[Any]:
        instants = pd.DatetimeIndex(counts.view("M8[ns]"), name=self.name).as_unit(self.unit)
        return instants if self.tz is None else instants.tz_localize("UTC").tz_convert(self.tz)

    def like(self, index: Any) -> Instants:
        return Instants.of(_dates(index))

    def freq(self, step: int, first: int) -> str | None:
        return pd.tseries.frequencies.to_offset(pd.Timedelta(step, unit="ns")).freqstr

    def season_lengths(self, step: int) -> tuple[int, ...]:
        day = 24 * 3600 * 10**9
        return tuple(span // step for span in (day, 7 * day) if span % step == 0 and span > step)


@record
@dataclass(frozen=True)
class Dates:
    """Days, business days or months of the local calendar, each at the same place `shift` after its mark."""

    calendar: str
    shift: np.timedelta64
    tz: Any
    unit: Any
    name: Any

    @classmethod
    def at(cls, calendar: str, index: Any) -> Dates:
        """The ruler of `calendar` laid so that the first stamp of `index` is one of its stamps."""
        first = wall_of(index[:1])
        shift = (first - _mark(calendar, number(calendar, first)))[0]
        return cls(calendar, shift, index.tz, index.unit, index.name)

    def counts(self, index: Any) -> Counts:
        return number(self.calendar, wall_of(_in_zone(index, self.tz)) - self.shift)

    def stamps(self, counts: Counts) -> pd.Index[Any]:
        marks = _mark(self.calendar, counts)
        if self.unit == "ns":
            check_nanoseconds(marks.astype("M8[us]") + self.shift.astype("m8[us]"))
        wall = pd.DatetimeIndex(marks + self.shift, name=self.name).as_unit(self.unit)
        if self.tz is None:
            return wall
        # An hour that the change of clocks repeats is the first of the two; one that it skips moves forward.
        return wall.tz_localize(
            self.tz, ambiguous=np.ones(len(wall), dtype=bool), nonexistent="shift_forward"
        )

    def like(self, index: Any) -> Dates:
        return Dates.at(self.calendar, _dates(index))

    def freq(self, step: int, first: int) -> str | None:
        day = pd.Timestamp(_mark(self.calendar, np.array([first]))[0] + self.shift)
        if self.calendar == "D" and step % 7 == 0:
            return f"{_multiple(step // 7)}W-{day.strftime('%a').upper()}"
        if self.calendar in ("B", "D"):
            return f"{_multiple(step)}{self.calendar}"
        if self.shift >= DAY:  # pandas has no alias for the 15th
            return None
        for months, letter in ((12, "Y"), (3, "Q")):
            if step % months == 0:
                anchor = self._anchor_month(day, months)
                return f"{_multiple(step // months)}{self.calendar.replace('M', letter)}-{anchor}"
        return f"{_multiple(step)}{self.calendar}"

    def _anchor_month(self, day: pd.Timestamp, months: int) -> str:
        if months == 3:  # pandas names a quarter by its first (QS) or last (QE) month of the year's cycle
            month = (day.month - 1) % 3 + (1 if self.calendar.endswith("S") else 10)
            day = day.replace(day=1, month=month)
        return day.strftime("%b").upper()

    def season_lengths(self, step: int) -> tuple[int, ...]:
        if self.calendar == "D":
            return {1: (7, 365), 7: (52,)}.get(step, ())
        if self.calendar == "B" or 12 % step or step == 12:
            return ()
        return (12 // step,)


@record
@dataclass(frozen=True)
class Periods:
    """Periods, counted by the stamps they start with."""

    starts: Instants | Dates
    period: Any
    name: Any

    def counts(self, index: Any) -> Counts:
        return self.starts.counts(_periods(index, self.period).to_timestamp())

    def stamps(self, counts: Counts) -> pd.Index[Any]:
        starts = pd.DatetimeIndex(self.starts.stamps(counts))
        return starts.to_period(self.period).rename(self.name)

    def like(self, index: Any) -> Periods:
        return Periods(self.starts.like(_periods(index, self.period).to_timestamp()), self.period, index.name)

    def freq(self, step: int, first: int) -> str | None:
        return str(self.period)

    def season_lengths(self, step: int) -> tuple[int, ...]:
        return self.starts.season_lengths(step)


def number(calendar: str, wall: NDArray[Any]) -> Counts:
    """Count of the day, business day or month that each wall time lies in."""
    if calendar == "D":
        return wall.astype("M8[D]").astype(np.int64)
    if calendar == "B":
        return np.busday_count(np.datetime64("1970-01-01"), wall.astype("M8[D]"))
    return wall.astype("M8[M]").astype(np.int64)


def _mark(calendar: str, counts: Counts) -> NDArray[Any]:
    """The day from which the place in each counted day, business day or month is measured."""
    if calendar == "D":
        return counts.astype("M8[D]")
    if calendar == "B":
        return np.busday_offset(np.datetime64("1970-01-01"), counts, roll="forward")
    first, following = (months.astype("M8[M]").astype("M8[D]") for months in (counts, counts + 1))
    if calendar == "MS":
        return first
    if calendar == "ME":
        return following - DAY
    if calendar == "BMS":
        return np.busday_offset(first, 0, roll="forward")
    return np.busday_offset(following, -1, roll="forward")


def beyond_nanoseconds(dates: NDArray[Any]) -> NDArray[np.bool_]:
    """Where `dates` lie outside what 64 bits of nanoseconds hold, 1677 to 2262."""
    return np.asarray((dates <= _ENDS[0]) | (dates >= _ENDS[1]))


def check_nanoseconds(dates: NDArray[Any]) -> None:
    """ValueError for a stamp to be written in nanoseconds that they do not hold."""
    if (far := np.flatnonzero(beyond_nanoseconds(dates))).size:
        raise ValueError(
            f"the stamp {dates[far[0]].astype('M8[s]')} cannot be written in nanoseconds, the unit of the "
            "stamps given, which end in 1677 and 2262. Give stamps in seconds or microseconds, as by "
            "`y.index.as_unit('us')`, or a shorter horizon."
        )


def wall_of(index: Any) -> NDArray[Any]:
    """Wall-clock times of a DatetimeIndex, without its zone."""
    wall: pd.DatetimeIndex = index.tz_localize(None)
    return wall.to_numpy()


def _multiple(n: int) -> str:
    return "" if n == 1 else str(n)


def _kind(index: Any) -> str:
    """What the stamps `index` are, in words."""
    if isinstance(index, pd.RangeIndex):
        return f"row numbers (from {index.start})"
    if isinstance(index, pd.PeriodIndex):
        return f"periods of {index.freqstr}"
    kinds = {"M": "dates", "i": "integers", "u": "integers"}
    return kinds.get(index.dtype.kind, f"of dtype {index.dtype}")


def _dates(index: Any) -> Any:
    if not isinstance(index, pd.DatetimeIndex):
        raise TypeError(f"the stamps are {_kind(index)}, but fit saw dates. Give dates, by `pd.to_datetime`.")
    return index


def _in_zone(index: Any, tz: Any) -> Any:
    """`index` in the zone of fit; TypeError where one has a zone and the other none."""
    if (_dates(index).tz is None) != (tz is None):
        raise TypeError(
            f"the stamps have time zone {index.tz}, but fit saw {tz}. "
            "Give both or neither a zone, with `.tz_localize(...)` or `.tz_localize(None)` on the stamps."
        )
    return index if tz is None else index.tz_convert(tz)


def _periods(index: Any, period: Any) -> pd.PeriodIndex:
    if not isinstance(index, pd.PeriodIndex) or index.freqstr != period:
        raise TypeError(
            f"the stamps are {_kind(index)}, but fit saw periods of {period}. Give a PeriodIndex of {period}."
        )
    return index
