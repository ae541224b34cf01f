"""The clock: which time a stamp stands for, and which stamps come next.

One idea: a clock is a ruler, the count of the first row and the counts in one base step, so time is
`(count - origin) / step`: a month is 1, Friday to Monday on business days is 1, a holiday is a missing step.

A calendar is believed when every stamp lies on it and the typical distance of the rows of a series (the
median) is at most three of its steps; the coarsest such calendar is taken, business days before days.
Otherwise time is real: the base step is the median distance, and times need not be whole. What is declared
goes before what is found: a `freq` of the index or of `fit` speaks for the stamps still to come, a
`base_step` says that time is real.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fracts.checks import check_positive_integer
from fracts.clock_checks import check_minutes, check_one_grid, check_span, check_step_of_dates
from fracts.records import record
from fracts.rulers import DAY, Counts, Dates, Instants, Integers, Periods, Ruler, number, wall_of

# Coarsest first; 30 June is the end of June before it is the 30th.
CALENDARS = ("ME", "MS", "BMS", "BME", "B", "D")
STRETCH = 16  # stamps that show a declared freq: past a weekend for B, 16 years for YE
SPARSEST = 3  # steps between rows, in the median, for a calendar still to be believed
NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
DAYS = {"d": 1, "w": 7}
MONTHS = {"mo": 1, "q": 3, "y": 12}
_LAST = 2**63 - 1  # count that 64 bits hold


@record
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
    >>> clock.future(clock.counts(index)[-1:], 2).strftime("%d %b").tolist()
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
        counts, off = self.located(index)
        check_span(index, counts, self.origin, self.step)
        if off.any():
            grid = f"every {self.freq}" if self.freq else f"every {self.step}"
            raise ValueError(
                f"the stamp {index[off][0]} (row {np.flatnonzero(off)[0]}) is not on the grid of fit: "
                f"{grid}, {self.stamp(self.origin)} being one. Give stamps of that grid, or fit anew."
            )
        return counts

    def located(self, index: pd.Index[Any]) -> tuple[Counts, NDArray[np.bool_]]:
        """Count of every stamp, and whether it is off the grid; TypeError for another kind of index."""
        counts = self.ruler.counts(index)
        if not self.whole:
            return counts, np.zeros(len(counts), dtype=bool)
        off = (counts - self.origin) % self.step != 0
        return counts, off | np.asarray(self.ruler.stamps(counts) != index)

    def times(self, counts: Counts) -> NDArray[np.float64]:
        """Times of `counts` in base steps since the first row."""
        if counts.shape == (1,):  # the same, in fewer calls
            return np.array([float(counts.item() - self.origin) / self.step])
        return (counts - self.origin) / self.step

    def stamp(self, count: int) -> Any:
        """The stamp of one count."""
        return self.ruler.stamps(np.array([count], dtype=np.int64))[0]

    def future(self, counts: Counts, horizon: int) -> pd.Index[Any]:
        """The stamps of the `horizon` base steps after each of `counts`, one after the other."""
        return self.ruler.stamps(self.ahead(counts, horizon).ravel())

    def ahead(self, counts: Counts, horizon: int) -> Counts:
        """(len(counts), horizon), the counts of the base steps after each; ValueError where integers end."""
        self._check_room(counts, horizon)
        return counts[:, None] + self.step * np.arange(1, horizon + 1, dtype=np.int64)

    def after(self, counts: Counts) -> Counts:
        """Counts of the base step after each; ValueError where integers end."""
        self._check_room(counts, 1)
        if counts.shape == (1,):  # the same, in fewer calls
            return np.array([counts.item() + self.step])
        return counts + self.step

    def _check_room(self, counts: Counts, horizon: int) -> None:
        last = counts.item() if counts.size == 1 else int(counts.max())
        if last + self.step * horizon > _LAST:
            raise ValueError(
                f"{horizon} steps after {self.stamp(last)} lie beyond the last stamp that 64 bits count, "
                f"{self.stamp(_LAST)}. Ask for fewer steps, or let the stamps start earlier."
            )

    def gaps(self, before: Counts, after: Counts) -> NDArray[np.bool_]:
        """Whether a row at each of `before` is followed, at `after`, by more than one base step."""
        apart = after - before
        return apart != self.step if self.whole else apart > 1.5 * self.step

    def restarted(self, index: pd.Index[Any]) -> Clock:
        """The clock of another history: this step, and time 0 at the first stamp of `index`."""
        ruler = self.ruler.like(index)
        return replace(self, ruler=ruler, origin=int(ruler.counts(index[:1])[0]))


class Grid(NamedTuple):
    """A ruler, the counts in a base step, and whether every stamp lies on a whole number of steps."""

    ruler: Ruler
    step: int
    whole: bool


class Neighbours(NamedTuple):
    """Places in an index of the rows of single series, each `before` followed by `after` in its series."""

    before: NDArray[np.int64]
    after: NDArray[np.int64]


def learn_clock(
    index: pd.Index[Any],
    freq: str | int | None = None,
    base_step: Any = None,
    neighbours: Neighbours | None = None,
) -> Clock:
    """The clock of a history with stamps `index` (integers, periods or dates, increasing).

    Parameters
    ----------
    freq : the grid declared, in the spelling of pandas ("15min", "W-WED") or of polars ("15m", "1mo"), an
        integer for integers; None to find it.
    base_step : declares real time in steps of this length, a timedelta or a text such as "1s", an integer for
        integers.
    neighbours : which stamps follow each other in one series; None where all do.

    Raises
    ------
    ValueError : a single date without `freq`, or a `freq` or `base_step` that does not fit the index.

    Examples
    --------
    >>> learn_clock(pd.RangeIndex(10, 20, 2)).step
    2
    >>> learn_clock(pd.DatetimeIndex(["2024-01-31"]), freq="1mo").freq
    'ME'
    """
    check_one_grid(freq, base_step)
    if neighbours is None or not neighbours.after.size:
        neighbours = _all_neighbours(index)
    if isinstance(index, pd.PeriodIndex):
        grid = _period_grid(index, freq, base_step)
    elif isinstance(index, pd.DatetimeIndex):
        grid = _date_grid(index, freq, base_step, neighbours)
    else:
        grid = _integer_grid(index, freq, base_step, neighbours)
    return Clock(grid.ruler, int(grid.ruler.counts(index[:1])[0]), grid.step, grid.whole)


def default_season_lengths(clock: Clock, n_rows: int) -> tuple[int, ...]:
    """Season lengths in steps that the grid implies and `n_rows` steps show at least three times.

    Examples
    --------
    >>> hourly = learn_clock(pd.date_range("2024-01-01", periods=4, freq="h"))
    >>> default_season_lengths(hourly, 1000), default_season_lengths(hourly, 500)
    ((24, 168), (24,))
    """
    return tuple(length for length in clock.season_lengths if n_rows >= 3 * length)


def _period_grid(index: pd.PeriodIndex, freq: str | int | None, base_step: Any) -> Grid:
    if freq is not None or base_step is not None:
        raise ValueError(
            f"freq={freq!r} and base_step={base_step!r} came with periods, which are a grid themselves: "
            f"{index.freqstr}. Leave both out, or change the periods with `y.asfreq(...)`."
        )
    starts = pd.period_range(index[0], periods=STRETCH, freq=index.freq).to_timestamp()
    learned = _found_grid(starts, _all_neighbours(starts))
    assert isinstance(learned.ruler, Instants | Dates)
    return learned._replace(ruler=Periods(learned.ruler, index.freqstr, index.name))


def _integer_grid(
    index: pd.Index[Any], freq: str | int | None, base_step: Any, neighbours: Neighbours
) -> Grid:
    ruler = Integers(index.name)
    if freq is not None:
        return Grid(ruler, check_positive_integer(freq, "freq of integer stamps"), True)
    if base_step is not None:
        return Grid(ruler, check_positive_integer(base_step, "base_step of integer stamps"), False)
    counts = ruler.counts(index)
    if len(counts) == 1:
        return Grid(ruler, 1, True)
    step, typical = int(np.gcd.reduce(np.diff(counts))), _typical(counts, neighbours)
    return Grid(ruler, step, True) if typical <= SPARSEST * step else Grid(ruler, int(typical), False)


def _date_grid(
    index: pd.DatetimeIndex, freq: str | int | None, base_step: Any, neighbours: Neighbours
) -> Grid:
    if freq is not None:
        check_minutes(freq, index)
        return _declared_grid(index, freq)
    if base_step is not None:
        check_step_of_dates(base_step)
        return Grid(Instants.of(index), _nanoseconds(base_step), False)
    if index.freq is not None:
        stretched = index if len(index) >= STRETCH else _stretched(index, index.freq)
        return _found_grid(stretched, _all_neighbours(stretched))
    if len(index) == 1:
        raise ValueError(
            f"the only stamp {index[0]} tells no step. Give more rows, or declare it by `fit(y, freq='h')`."
        )
    return _found_grid(index, neighbours)


def _declared_grid(index: pd.DatetimeIndex, freq: str | int) -> Grid:
    """The grid of a declared alias; polars' months, weeks and days keep the place of the first stamp."""
    polars = re.fullmatch("([0-9]+)(ns|us|ms|s|m|h|d|w|mo|q|y)", str(freq))
    if polars:
        n, unit = int(polars[1]), polars[2]
        if unit in MONTHS:
            calendar = "ME" if index[0].is_month_end else "MS"
            return Grid(Dates.at(calendar, index[:1]), n * MONTHS[unit], True)
        if unit in DAYS:
            return Grid(Dates.at("D", index[:1]), n * DAYS[unit], True)
        return Grid(Instants.of(index), n * NANOSECONDS[unit], True)
    try:
        stretched = _stretched(index[:1], pd.tseries.frequencies.to_offset(str(freq)))
    except (ValueError, TypeError) as unknown:
        raise ValueError(
            f"freq={freq!r} is no alias that pandas or polars knows. Write 'h', '15min', 'W-WED' or '1mo'."
        ) from unknown
    if stretched[0] != index[0]:
        raise ValueError(
            f"the stamp {index[0]} (row 0) is not on the grid of freq={freq!r}, whose next one is "
            f"{stretched[0]}. Give stamps of that grid, or leave freq out to have it found."
        )
    return _found_grid(stretched, _all_neighbours(stretched))


def _nanoseconds(base_step: Any) -> int:
    try:
        step = int(pd.Timedelta(base_step).as_unit("ns").value)
    except (ValueError, TypeError) as unknown:
        raise ValueError(
            f"base_step={base_step!r} is no length of time. Give a timedelta or a text such as '5min'."
        ) from unknown
    if step < 1:
        raise ValueError(f"base_step={base_step!r} is not above 0. Give the length of a step, such as '1s'.")
    return step


def _found_grid(index: pd.DatetimeIndex, neighbours: Neighbours) -> Grid:
    """The coarsest calendar that all stamps lie on, or real time in median steps."""
    instants = Instants.of(index)
    rulers: list[Dates | Instants] = [*(Dates.at(calendar, index) for calendar in CALENDARS), instants]
    for ruler in rulers:
        counts = ruler.counts(index)
        if _believed(ruler, index, counts, neighbours) and bool((ruler.stamps(counts) == index).all()):
            return Grid(ruler, int(np.gcd.reduce(np.diff(counts))), True)
    return Grid(instants, int(_typical(instants.counts(index), neighbours)), False)


def _believed(
    ruler: Dates | Instants, index: pd.DatetimeIndex, counts: Counts, neighbours: Neighbours
) -> bool:
    """Whether rows with these `counts` speak for this ruler."""
    steps = np.diff(counts)
    dense = bool(steps.min() > 0 and _typical(counts, neighbours) <= SPARSEST * np.gcd.reduce(steps))
    if isinstance(ruler, Instants) or ruler.calendar in ("MS", "D"):
        return dense
    dense &= bool(0 * DAY <= ruler.shift < DAY)
    if ruler.calendar != "B":
        return dense
    days = np.diff(number("D", wall_of(index)))
    # Within one week business days cannot be told from days, and a row a week is a week.
    return dense and bool(days.sum() != steps.sum() and np.gcd.reduce(days) % 7 != 0)


def _typical(counts: Counts, neighbours: Neighbours) -> float:
    return float(np.median(counts[neighbours.after] - counts[neighbours.before]))


def _all_neighbours(index: pd.Index[Any]) -> Neighbours:
    rows = np.arange(len(index))
    return Neighbours(rows[:-1], rows[1:])


def _stretched(index: pd.DatetimeIndex, freq: Any) -> pd.DatetimeIndex:
    try:
        return pd.date_range(index[0], periods=STRETCH, freq=freq, unit=index.unit, name=index.name)
    except (AssertionError, pd.errors.OutOfBoundsDatetime) as out:  # the first says so without a word
        raise ValueError(
            f"{STRETCH} steps of {freq} after {index[0]} lie beyond what stamps of the unit {index.unit} can "
            "say. Give them in a longer unit, as by `y.index.as_unit('s')`."
        ) from out
