"""Training windows: stretches of the standardised series and of what its anchors leave over."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import IterableDataset

from fracts.folds import known_targets
from fracts.linear import LinearPath
from fracts.records import record
from fracts.scaling import Array
from fracts.series import Panel

_BATCHES = 16  # of an epoch at least
_MOST_BATCHES = 512  # and at most
_HELD_OUT_ROWS = 32768  # looked at after every epoch
_HELD_OUT_TARGETS = 2**22
_HELD_OUT_PARTS = 4  # of many series, one after the other
_BLANK = 0.05  # share of rows hidden from the network, so that it learns to forecast where a value is missing


@record
class Epoch(NamedTuple):
    """Quantile losses of an epoch, mean over leads, in units of scale."""

    epoch: int
    train_loss: float
    held_out_loss: float


class Window(NamedTuple):
    """A batch of stretches of series."""

    u: Tensor  # (batch, time), standardised values, NaN where missing
    times: Tensor  # (batch, time), steps, float64
    gap: Tensor  # (batch, time), steps since the row before, float64
    group: Tensor  # (batch,)
    rest: Tensor  # (batch, time, horizon), targets less the anchors, NaN where unknown
    linear: Tensor  # (batch, time, horizon), what the linear path would add to these, NaN where not held out
    covariates: Tensor  # (batch, time, columns)
    ahead: Tensor  # (batch, time, horizon, known), covariates known in advance
    weight: Tensor  # (batch,), what an error counts
    noise: Tensor  # (batch,), of the series, in which the errors of the linear path are told


@dataclass(frozen=True)
class Rest:
    """What the network sees and what it must explain, at every row of a panel."""

    u: NDArray[np.float64]  # (series, time)
    times: NDArray[np.float64]  # (time,)
    group: NDArray[np.int64]  # (series,)
    rest: NDArray[np.float32]  # (series, time, horizon)
    linear: NDArray[np.float32]  # (series, time, horizon)
    covariates: NDArray[np.float32]  # (series, time + 1, columns), a row of zeros at the end
    n_known: int  # the first columns
    row_ahead: NDArray[np.int64]  # (series or 1, time, horizon), of each lead; the last one for none
    weight: NDArray[np.float32]  # (series,), what an error counts
    noise: NDArray[np.float32]  # (series,)

    @classmethod
    def of(cls, panel: Panel, path: LinearPath) -> "Rest":
        """Standardised values, and standardised targets less the anchors of `path`.

        These are blended as was learned before the last fold, which tells how good a network is.
        """
        reading = path.held_out_readings(panel)
        whole = np.ones(path.memory.horizon)
        before = replace(path, coefficients=path.held_out[:, -1], share=whole)
        state = path.empty(path.ids)
        anchors = before.unaware(state, panel)[0].leads
        u = (panel.values - reading.centre) / reading.scale
        wanted = known_targets(panel, path.memory.horizon, path.memory.longest_season)
        rest = (wanted - reading.centre[..., None]) / reading.scale[..., None] - anchors
        row, found = panel.rows_ahead(path.memory.horizon)
        return cls(
            u,
            panel.times,
            state["group"],
            rest.astype(np.float32),
            (reading.leads - anchors).astype(np.float32),
            np.pad(panel.covariates, ((0, 0), (0, 1), (0, 0))).astype(np.float32),
            path.memory.covariates.n_known,
            np.where(found, row, panel.times.size),
            _weights(rest),
            state["noise"].astype(np.float32),
        )

    def window(self, series: NDArray[np.int64], starts: NDArray[np.int64], length: int) -> Window:
        """The stretches of `length` rows from `starts` (batch,) of `series` (batch,)."""
        times = _stretches(self.times[None], np.zeros_like(series), starts, length)
        shape = *times.shape, self.rest.shape[-1], self.n_known
        ahead = np.empty(shape, np.float32)
        if self.n_known:
            rows = _stretches(self.row_ahead, series % len(self.row_ahead), starts, length)
            ahead = self.covariates[..., : self.n_known][series[:, None, None], rows]
        return Window(
            torch.from_numpy(_stretches(self.u, series, starts, length)),
            torch.from_numpy(times),
            torch.from_numpy(np.diff(times, prepend=times[:, :1])),
            torch.from_numpy(self.group[series]),
            torch.from_numpy(_stretches(self.rest, series, starts, length)),
            torch.from_numpy(_stretches(self.linear, series, starts, length)),
            torch.from_numpy(_stretches(self.covariates, series, starts, length)),
            torch.from_numpy(ahead),
            torch.from_numpy(self.weight[series]),
            torch.from_numpy(self.noise[series]),
        )


def _stretches(
    x: NDArray[Any], series: NDArray[np.int64], starts: NDArray[np.int64], length: int
) -> NDArray[Any]:
    """(batch, length, ...), each copied as a whole."""
    return np.stack([x[i, start : start + length] for i, start in zip(series, starts, strict=True)])


def _weights(rest: Array) -> NDArray[np.float32]:
    """What an error of each series (series,) counts: one over its mean size, so that every series matters.

    The mean weight is 1. A series that leaves much less than is usual counts no more than ten others.
    """
    known = ~np.isnan(rest)
    count = known.sum((1, 2))
    size = np.where(known, np.abs(rest), 0.0).sum((1, 2)) / np.maximum(count, 1)
    if not (size > 0).any():
        return np.ones(len(rest), dtype=np.float32)
    usual = np.median(size[size > 0])
    weight = 1 / np.maximum(np.where(size > 0, size, usual), usual / 10)
    return np.asarray(weight / weight.mean(), dtype=np.float32)


class RandomWindows(IterableDataset[Window]):
    """An epoch of batches of random windows, as many as hold every target about once.

    They lie around the rows `begin` to `stop`, with no target at or after `stop`. A window may start up to
    half its length before `begin`, or before the first target of its series where that comes at another time,
    and ends with its series at the latest. The first quarter of a window that does not start its series warms
    the state up: no target there.
    """

    def __init__(self, rest: Rest, begin: int, stop: int, length: int, batch_size: int, seed: int) -> None:
        super().__init__()
        self.rest, self.stop, self.batch_size = rest, stop, batch_size
        self.length = min(length, stop)
        self.draws = np.random.default_rng(seed)
        seen = ~np.isnan(rest.u[:, :stop])
        first = np.where(seen.any(1), seen.argmax(1), stop)
        known = np.any(~np.isnan(rest.rest[:, :stop]), axis=-1)
        begins = np.where(known.any(1), known.argmax(1), begin)
        self.last = np.maximum(stop - seen[:, ::-1].argmax(1) - self.length, 0)
        self.first = np.minimum(np.maximum(first, begins - self.length // 2), self.last)
        self.series = np.flatnonzero(seen.sum(1) > 1)
        passes = int(known.sum()) // (self.length * batch_size)
        self.n_batches = int(np.clip(passes, _BATCHES, _MOST_BATCHES))

    def __iter__(self) -> Iterator[Window]:
        for _ in range(self.n_batches):
            series = self.draws.choice(self.series, self.batch_size)
            starts = self.draws.integers(self.first[series], self.last[series] + 1)
            window = self.rest.window(series, starts, self.length)
            rest = window.rest
            due = window.times[..., None] + torch.arange(1, rest.shape[-1] + 1)
            rest.masked_fill_(due >= self.rest.times[self.stop], torch.nan)
            rest[torch.from_numpy(starts > 0), : self.length // 4] = torch.nan
            blank = torch.from_numpy(self.draws.random(window.u.shape) < _BLANK)
            yield window._replace(u=window.u.masked_fill(blank, torch.nan))


def held_out_windows(rest: Rest, start: int, warm_up: int) -> list[Window]:
    """The rows from `start` on, after `warm_up` rows without targets, of series that go on there.

    As many rows and series, evenly spread, as stay within a fixed number of targets and of covariates ahead.
    """
    _, n_rows, horizon = rest.rest.shape
    going_on = np.flatnonzero(~np.isnan(rest.u[:, start:]).all(1))
    most = max(1, min(_HELD_OUT_ROWS, _HELD_OUT_TARGETS // (horizon * (1 + rest.n_known))))
    begin = max(start - warm_up, 0)
    length = min(n_rows - begin, warm_up + most)
    count = min(max(1, most // length), going_on.size)
    chosen = going_on[np.unique(np.linspace(0, going_on.size - 1, count).astype(np.int64))]
    windows = []
    for series in np.array_split(chosen, min(len(chosen), _HELD_OUT_PARTS)):
        window = rest.window(series, np.full(len(series), begin), length)
        hidden = window.rest.clone()
        hidden[:, : start - begin] = torch.nan
        windows.append(window._replace(rest=hidden))
    return windows
