"""How much of a network stays: the shares that held-out time gives it.

The network and the linear path forecast from the same anchors, each on its own; what is added to these is at
every lead a mean of what the two say (Bates and Granger, 1969, Operational Research Quarterly 20(4), on why).
A share that does not clearly lower the loss on held-out time is none.
"""

import logging
from typing import NamedTuple

import torch
from torch import Tensor

from fracts.heads import QuantileHead, pinball
from fracts.network import FracNetwork, one_thread
from fracts.windows import Window

log = logging.getLogger("fracts")

SHARES = torch.arange(1, 11) / 10  # of the median, and of the widths, that are tried
STRETCHES = 8  # of held-out time, for the standard error of a gain
_CLEAR = 2.0  # standard errors
_AS_GOOD = 1.0  # standard errors: of shares that are as good as the best the least is taken
_NEAR = 1.5  # times as far: leads that are judged together


class _Tried(NamedTuple):
    """Held-out rows of a window, and what is said of them."""

    rest: Tensor  # (batch, time, horizon), targets less the anchors
    linear: Tensor  # (batch, time, horizon), what the linear path adds to these
    moves: Tensor  # (batch, time, 3, horizon), of the network
    errors: Tensor  # (batch, 1, horizon, levels), of the linear path
    weight: Tensor  # (batch, 1, 1)


@one_thread()
@torch.no_grad()
def settle(network: FracNetwork, held_out: list[Window], learned: Tensor) -> Tensor:
    """Give the network the shares that held-out time asks for, and return that of the median: (horizon,).

    learned: (horizon,), part of the linear path that was learned; a network has a share of that alone.
    A share of the median is judged beside the one number for each lead that would have been best: what a
    constant does for this time alone is no gain of a network. The widths stay those of the linear path on the
    average, narrower by as much as the median has become better; how they change is of the network. The
    standard error of a mean over stretches of time tells what is clear. What is left stays within the range
    it had on held-out time: what it would do elsewhere was never tried.
    """
    head, tried = network.head, [_tried(network, window) for window in held_out]
    near, nothing = _nearness(head.share.shape[1]), torch.zeros(head.share.shape[1])
    unbiased = _absolute(head, tried, nothing, _bias(head, tried))
    losses = [_absolute(head, tried, share) @ near for share in SHARES]
    median = learned * _clearly_best(unbiased @ near, losses)
    level = (_absolute(head, tried, median).mean(0) / _absolute(head, tried, nothing).mean(0)).log()
    level = level.nan_to_num(0.0, 0.0, 0.0)
    said = torch.cat([t.moves[~t.rest.isnan().all(-1)] for t in tried])
    usual = said[:, 1:].mean(0)
    still = _loss(head, tried, median, nothing, level)
    losses = [_loss(head, tried, median, share, level - share * usual) @ near for share in SHARES]
    widths = _clearly_best(still @ near, losses)
    for part, share in (("shift", median), ("stretch", widths)):
        if not share.any():
            head.silence(part)
    if not head.silent:
        head.share[:] = torch.stack([median, widths, widths])
        head.level[1:] = level - widths * usual
        said = head.share * said + head.level
        head.hold_within(said.amin(0), said.amax(0))
    told = "on held-out time the network has %.2f of the median, %.2f of the widths"
    log.info(told, float(median.mean()), float(widths.mean()))
    return median


def _tried(network: FracNetwork, window: Window) -> _Tried:
    features, _ = network.features(*window[:3], window.covariates)
    moves = network.head.moves(features, window.ahead)
    rest = torch.where(window.linear.isnan(), torch.nan, window.rest)
    errors = (network.head.errors[window.group] * window.noise[:, None, None])[:, None]
    return _Tried(rest, window.linear, moves, errors, window.weight[:, None, None])


def _nearness(horizon: int) -> Tensor:
    """What each lead (rows) counts where another (columns) is judged."""
    leads = torch.arange(1.0, horizon + 1)
    near = (torch.maximum(leads[:, None] / leads, leads / leads[:, None]) <= _NEAR).float()
    return near / near.sum(0)


def _clearly_best(before: Tensor, losses: list[Tensor]) -> Tensor:
    """The least share that is as good as the best at each lead, of `losses` (stretches, horizon) of all; 0
    where its loss is not clearly below that `before`."""
    tried, n = torch.stack(losses), len(before)
    if n == 1:
        return torch.zeros(before.shape[1])
    best = tried.gather(0, tried.mean(1).argmin(0).expand(1, *before.shape))
    more = tried - best
    found = (more.mean(1) <= _AS_GOOD * more.std(1) / n**0.5).int().argmax(0)  # the first
    gain = before - tried.gather(0, found.expand(1, *before.shape))[0]
    return torch.where(gain.mean(0) > _CLEAR * gain.std(0) / n**0.5, SHARES[found], 0.0)


def _median(head: QuantileHead, tried: _Tried, share: Tensor) -> Tensor:
    """share: (horizon,) or one for all."""
    said = (1 - share) * tried.linear + share * tried.moves[..., 0, :]
    return said + tried.errors[..., head.median]


def _bias(head: QuantileHead, tried: list[_Tried]) -> Tensor:
    """Median held-out error of the linear path at each lead: (horizon,)."""
    errors = [(t.rest - _median(head, t, torch.zeros(()))).flatten(0, 1) for t in tried]
    return torch.cat(errors).nanmedian(0).values.nan_to_num()


def _absolute(head: QuantileHead, tried: list[_Tried], share: Tensor, bias: Tensor | float = 0.0) -> Tensor:
    """Mean absolute error in each of a few stretches of held-out time: (stretches, horizon)."""
    return _by_time([t.weight * (t.rest - _median(head, t, share) - bias).abs() for t in tried])


def _loss(head: QuantileHead, tried: list[_Tried], median: Tensor, widths: Tensor, level: Tensor) -> Tensor:
    """Quantile loss in the same way, by the shares of `median` and `widths` and log stretches at a `level`
    (2 or 1, horizon)."""
    losses = []
    for t in tried:
        stretch = widths * t.moves[..., 1:, :] + level
        quantiles = head.stretched(t.errors, _median(head, t, median), *stretch.unbind(-2))
        losses.append(t.weight * pinball(quantiles, t.rest, head.levels))
    return _by_time(losses)


def _by_time(losses: list[Tensor]) -> Tensor:
    """Means (stretches, horizon) of `losses` (batch, time, horizon) in each stretch of the known rows."""
    rows = torch.cat(losses).nanmean(0)
    rows = rows[~rows.isnan().all(-1)]
    return torch.stack([part.nanmean(0) for part in rows.tensor_split(min(STRETCHES, max(1, len(rows))))])
