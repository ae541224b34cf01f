"""The clock: which time a stamp stands for, and which stamps come next.

One idea: a ruler gives every stamp a whole number, its count, and every count its stamp. Calendar rulers
count months, business days or days at a fixed place (the first, the last, 14 days after the
first, half past nine); the finest one counts nanoseconds of UTC. A clock is a ruler, the
count of the first row and the counts in one base step, so time is `(count - origin) / step`: a month is 1,
Friday to Monday on business days is 1, a holiday is a missing step.

A calendar is believed when every stamp lies on it and the typical distance of rows (the median) is at most
three of its steps; the coarsest such calendar is taken, business days before days. Otherwise time is real:
the base step is the median distance, and times need not be whole. A declared `freq` speaks for the stamps
still to come.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Counts = NDArray[np.int64]

# Coarsest first; 30 June is the end of June before it is the 30th.
CALENDARS = ("ME", "MS", "BMS", "BME", "B", "D")
STRETCH = 16  # stamps that show a declared freq: past a weekend for B, 16 years for YE
DAY = np.timedelta64(1, "D")
SPARSEST = 3  # steps between rows, in the median, for a calendar still to be believed


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


@dataclass(frozen=True)
class Integers:
    """Integers stand for themselves; also the row numbers of arrays."""

    name: Any

    def counts(self, index: Any) -> Counts:
        if not pd.api.types.is_integer_dtype(index.dtype):
            raise TypeError(
                f"the index is {type(index).__name__}, but fit saw integers. Give integer stamps."
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


@dataclass(frozen=True)
class Instants:
    """Instants in nanoseconds of UTC, so that an hour is an hour in any season."""

    tz: Any
    unit: Any
    name: Any

    def counts(self, index: Any) -> Counts:
        return np.asarray(_in_zone(index, self.tz).as_unit("ns").asi8)

    def stamps(self, counts: Counts) -> pd.Index[Any]:
        instants = pd.DatetimeIndex(counts.view("M8[ns]"), name=self.name).as_unit(self.unit)
        return instants if self.tz is None else instants.tz_localize("UTC").tz_convert(self.tz)

    def like(self, index: Any) -> Instants:
        return Instants(_dates(index).tz, index.unit, index.name)

    def freq(self, step: int, first: int) -> str | None:
        return pd.tseries.frequencies.to_offset(pd.Timedelta(step, unit="ns")).freqstr

    def season_lengths(self, step: int) -> tuple[int, ...]:
        day = 24 * 3600 * 10**9
        return tuple(span // step for span in (day, 7 * day) if span % step == 0 and span > step)


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
        first = _wall(index[:1])
        shift = (first - _mark(calendar, _number(calendar, first)))[0]
        return cls(calendar, shift, index.tz, index.unit, index.name)

    def counts(self, index: Any) -> Counts:
        return _number(self.calendar, _wall(_in_zone(index, self.tz)) - self.shift)

    def stamps(self, counts: Counts) -> pd.Index[Any]:
        wall = pd.DatetimeIndex(_mark(self.calendar, counts) + self.shift, name=self.name).as_unit(self.unit)
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


@dataclass(frozen=True)
class Clock:
    """Time of a series: stamps, counts on a ruler, and times in base steps since the first row.

    Parameters
    ----------
    ruler : gives every stamp its count.
    origin : count of the first row; its time is 0.
    step : counts in one base step.
    whole : every row lies on a whole number of steps (False for real time).

    Examples
    --------
    >>> index = pd.DatetimeIndex(["2024-01-31", "2024-02-29", "2024-04-30"])
    >>> clock = learn_clock(index)
    >>> clock.freq
    'ME'
    >>> clock.times(clock.counts(index))
    array([0., 1., 3.])
    >>> clock.future(clock.counts(index)[-1], 2).strftime("%d %b").tolist()
    ['31 May', '30 Jun']
    """

    ruler: Ruler
    origin: int
    step: int
    whole: bool

    @property
    def freq(self) -> str | None:
        """Alias of the grid in pandas' spelling, None where it has none: integers, real time, every 15th."""
        return self.ruler.freq(self.step, self.origin) if self.whole else None

    @property
    def season_lengths(self) -> tuple[int, ...]:
        """Lengths of the natural seasons of this grid in steps, ascending; none in real time."""
        return self.ruler.season_lengths(self.step) if self.whole else ()

    def counts(self, index: pd.Index[Any]) -> Counts:
        """Count of every stamp; TypeError for another kind of index, ValueError for a stamp off the grid."""
        counts = self.ruler.counts(index)
        if self.whole:
            off = (counts - self.origin) % self.step != 0
            off |= np.asarray(self.ruler.stamps(counts) != index)
            if off.any():
                grid = f"every {self.freq}" if self.freq else f"every {self.step}"
                raise ValueError(
                    f"the stamp {index[off][0]} (row {np.flatnonzero(off)[0]}) is not on the grid of fit: "
                    f"{grid}, {self.stamp(self.origin)} being one. Give stamps of that grid, or fit anew."
                )
        return counts

    def times(self, counts: Counts) -> NDArray[np.float64]:
        """Times of `counts` in base steps since the first row."""
        return (counts - self.origin) / self.step

    def stamp(self, count: int) -> Any:
        """The stamp of one count."""
        return self.ruler.stamps(np.array([count], dtype=np.int64))[0]

    def future(self, count: int, horizon: int) -> pd.Index[Any]:
        """The stamps of the `horizon` base steps after `count`."""
        return self.ruler.stamps(count + self.step * np.arange(1, horizon + 1, dtype=np.int64))

    def restarted(self, index: pd.Index[Any]) -> Clock:
        """The clock of another history: this step, and time 0 at the first stamp of `index`."""
        ruler = self.ruler.like(index)
        return replace(self, ruler=ruler, origin=int(ruler.counts(index[:1])[0]))


def learn_clock(index: pd.Index[Any]) -> Clock:
    """The clock of a history with stamps `index` (integers, periods or dates, increasing).

    Raises TypeError for another kind of index, ValueError for a single date without a `freq`.

    Examples
    --------
    >>> learn_clock(pd.RangeIndex(10, 20, 2)).step
    2
    """
    ruler: Ruler
    if isinstance(index, pd.PeriodIndex):
        declared = pd.period_range(index[0], periods=STRETCH, freq=index.freq).to_timestamp()
        starts, step, whole = _learn_dates(declared)
        ruler = Periods(starts, index.freqstr, index.name)
    elif isinstance(index, pd.DatetimeIndex):
        ruler, step, whole = _learn_dates(index if index.freq is None else _stretched(index))
    elif pd.api.types.is_integer_dtype(index.dtype):
        ruler, whole = Integers(index.name), True
        step = int(np.gcd.reduce(np.diff(ruler.counts(index)))) or 1
    else:
        raise TypeError(
            f"the index is {type(index).__name__} of dtype {index.dtype}; dates, periods or integers are "
            "needed. Convert with `y.index = pd.to_datetime(y.index)`."
        )
    return Clock(ruler, int(ruler.counts(index[:1])[0]), step, whole)


def default_season_lengths(clock: Clock, n_rows: int) -> tuple[int, ...]:
    """Season lengths in steps that the grid implies and `n_rows` steps show at least three times.

    Examples
    --------
    >>> hourly = learn_clock(pd.date_range("2024-01-01", periods=4, freq="h"))
    >>> default_season_lengths(hourly, 1000), default_season_lengths(hourly, 500)
    ((24, 168), (24,))
    """
    return tuple(length for length in clock.season_lengths if n_rows >= 3 * length)


def _learn_dates(index: pd.DatetimeIndex) -> tuple[Dates | Instants, int, bool]:
    """Ruler, counts in a base step, and whether the rows lie on whole steps."""
    if len(index) == 1:
        raise ValueError(
            f"the only stamp {index[0]} tells no step. Give more rows, or declare it by `y.asfreq('h')`."
        )
    instants = Instants(index.tz, index.unit, index.name)
    rulers: list[Dates | Instants] = [*(Dates.at(calendar, index) for calendar in CALENDARS), instants]
    for ruler in rulers:
        counts = ruler.counts(index)
        if _believed(ruler, index, np.diff(counts)) and bool((ruler.stamps(counts) == index).all()):
            return ruler, int(np.gcd.reduce(np.diff(counts))), True
    return instants, int(np.median(np.diff(instants.counts(index)))), False


def _believed(ruler: Dates | Instants, index: pd.DatetimeIndex, steps: Counts) -> bool:
    """Whether rows `steps` counts apart speak for this ruler."""
    dense = bool(steps.min() > 0 and np.median(steps) <= SPARSEST * np.gcd.reduce(steps))
    if isinstance(ruler, Instants) or ruler.calendar in ("MS", "D"):
        return dense
    dense &= bool(0 * DAY <= ruler.shift < DAY)
    if ruler.calendar != "B":
        return dense
    days = np.diff(_number("D", _wall(index)))
    # Within one week business days cannot be told from days, and a row a week is a week.
    return dense and bool(days.sum() != steps.sum() and np.gcd.reduce(days) % 7 != 0)


def _stretched(index: pd.DatetimeIndex) -> pd.DatetimeIndex:
    periods = max(len(index), STRETCH)
    return pd.date_range(index[0], periods=periods, freq=index.freq, unit=index.unit, name=index.name)


def _number(calendar: str, wall: NDArray[Any]) -> Counts:
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


def _wall(index: Any) -> NDArray[Any]:
    wall: pd.DatetimeIndex = index.tz_localize(None)
    return wall.to_numpy()


def _multiple(n: int) -> str:
    return "" if n == 1 else str(n)


def _dates(index: Any) -> Any:
    if not isinstance(index, pd.DatetimeIndex):
        raise TypeError(f"the index is {type(index).__name__}, but fit saw dates. Give a DatetimeIndex.")
    return index


def _in_zone(index: Any, tz: Any) -> Any:
    """`index` in the zone of fit; TypeError where one has a zone and the other none."""
    if (_dates(index).tz is None) != (tz is None):
        raise TypeError(
            f"the stamps have time zone {index.tz}, but fit saw {tz}. "
            "Give both or neither a zone, with `y.tz_localize(...)` or `y.tz_localize(None)`."
        )
    return index if tz is None else index.tz_convert(tz)


def _periods(index: Any, period: Any) -> pd.PeriodIndex:
    if not isinstance(index, pd.PeriodIndex) or index.freqstr != period:
        came = index.freqstr if isinstance(index, pd.PeriodIndex) else type(index).__name__
        raise TypeError(
            f"the index is {came}, but fit saw periods of {period}. Give a PeriodIndex of {period}."
        )
    return index
