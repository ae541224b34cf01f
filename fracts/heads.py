"""From features to forecasts: how the network moves and stretches quantiles.

Each lead has a shift and two log stretches, one below and one above the median. All are zero at the start; a
stretch is positive, so quantiles never cross. What is known ahead of a lead adds to the three: a few
non-linear traits of it, each weighed by the features of now. Beside the linear path every lead has a share of
what is said here; nothing leaves the range it was proven on.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fracts.mixer import linear

TRAITS = 16  # of what is known ahead of a lead
PARTS = ("stretch", "shift")


class QuantileHead(nn.Module):
    """Quantiles (..., horizon, levels) around what the network is added to, in units of scale.

    Parameters
    ----------
    width : features of a token.
    levels : (levels,), ascending, with .5 among them.
    errors : (groups, horizon, levels), quantiles of the linear path's held-out errors.
    n_known : numbers known ahead of each lead.
    n_traits : made of these.
    generator : of their initial weights; needed where there are any.
    """

    errors: Tensor
    levels: Tensor
    least: Tensor  # (3, horizon), no shift and no log stretch goes below
    most: Tensor  # nor above
    share: Tensor  # (3, horizon), of what the weights say
    level: Tensor  # (3, horizon), added to it

    def __init__(
        self,
        width: int,
        levels: Tensor,
        errors: Tensor,
        n_known: int = 0,
        generator: torch.Generator | None = None,
        n_traits: int = TRAITS,
    ) -> None:
        super().__init__()
        self.register_buffer("levels", levels.float())
        self.register_buffer("errors", errors.float())
        self.register_buffer("least", torch.full((3, errors.shape[1]), -torch.inf))
        self.register_buffer("most", torch.full((3, errors.shape[1]), torch.inf))
        self.register_buffer("share", torch.ones(3, errors.shape[1]))
        self.register_buffer("level", torch.zeros(3, errors.shape[1]))
        self.median = int((levels - 0.5).abs().argmin())
        self.out = nn.Linear(width, 3 * errors.shape[1], device="meta").to_empty(device="cpu")
        self.traits = self.weigh = None
        if n_known and generator:
            self.traits = linear(n_known, n_traits, generator)
            self.weigh = linear(width, 3 * n_traits, generator)
        self.silence(*PARTS)

    @torch.no_grad()
    def silence(self, *parts: str) -> None:
        """Make parts of the network, some of `PARTS`, add nothing."""
        for layer, part in product(self._last, parts):
            shift = layer.out_features // 3
            rows = slice(0, shift) if part == "shift" else slice(shift, 3 * shift)
            layer.weight[rows] = 0.0
            layer.bias[rows] = 0.0
        for part in parts:
            self.level[slice(0, 1) if part == "shift" else slice(1, 3)] = 0.0

    @classmethod
    @torch.no_grad()
    def mean_of(cls, heads: "Sequence[QuantileHead]") -> "QuantileHead":
        """One head that has the features of all `heads` side by side and says the mean of what they do."""
        first, n = heads[0], len(heads)
        width, n_known = first.out.in_features, 0 if first.traits is None else first.traits.in_features
        head = cls(n * width, first.levels, first.errors, n_known, torch.Generator(), n * TRAITS)
        head.out.weight.copy_(torch.cat([one.out.weight for one in heads], 1) / n)
        head.out.bias.copy_(torch.stack([one.out.bias for one in heads]).mean(0))
        if head.traits is not None and head.weigh is not None:
            head.weigh.weight.zero_()
            weight = head.weigh.weight.view(3, n, TRAITS, n, width)
            bias = head.weigh.bias.view(3, n, TRAITS)
            for i, one in enumerate(heads):
                own: Any = one
                traits = slice(i * TRAITS, (i + 1) * TRAITS)
                head.traits.weight[traits], head.traits.bias[traits] = own.traits.weight, own.traits.bias
                weight[:, i, :, i] = own.weigh.weight.view(3, TRAITS, width) / n
                bias[:, i] = own.weigh.bias.view(3, TRAITS) / n
        return head

    def hold_within(self, least: Tensor, most: Tensor) -> None:
        """Keep what is said within a range, (3, horizon) each, from now on."""
        self.least[:], self.most[:] = least, most

    @property
    def silent(self) -> bool:
        """Whether the network adds nothing."""
        return not any(bool(weights.any()) for layer in self._last for weights in layer.parameters())

    @property
    def _last(self) -> list[nn.Linear]:
        return [self.out] if self.weigh is None else [self.out, self.weigh]

    @torch.no_grad()
    def shift_of(self, features: Tensor, lead: int) -> Tensor:
        """The shift (...) of `lead`, in the dtype of `features` (..., width); known covariates at 0."""
        weight, bias = self.out.weight[lead - 1], self.out.bias[lead - 1]
        if self.traits is not None and self.weigh is not None:
            traits = F.silu(self.traits.bias)
            weight = weight + traits @ self.weigh.weight[: traits.numel()]
            bias = bias + traits @ self.weigh.bias[: traits.numel()]
        share, level = self.share[0, lead - 1].to(features), self.level[0, lead - 1].to(features)
        shift = share * (features @ weight.to(features) + bias.to(features)) + level
        return shift.clamp(self.least[0, lead - 1].to(features), self.most[0, lead - 1].to(features))

    def moves(self, features: Tensor, ahead: Tensor | None = None) -> Tensor:
        """Shift and log stretches below and above the median, (batch, ..., 3, horizon), as `forward` has its
        arguments."""
        outputs: Tensor = self.out(features).unflatten(-1, (3, -1))
        if self.traits is not None and self.weigh is not None:
            traits = F.silu(self.traits(ahead))  # (batch, ..., horizon, traits)
            outputs = outputs + self.weigh(features).unflatten(-1, (3, -1)) @ traits.transpose(-1, -2)
        return (self.share * outputs + self.level).clamp(self.least, self.most)

    def forward(
        self, features: Tensor, group: Tensor, ahead: Tensor | None = None, noise: Tensor | None = None
    ) -> Tensor:
        """features: (batch, ..., width); group: (batch,), whose errors each series takes, in its `noise`
        (batch,); ahead: (batch, ..., horizon, n_known)."""
        shift, below, above = self.moves(features, ahead).unbind(-2)
        errors = self.errors[group]  # (batch, horizon, levels)
        errors = errors if noise is None else errors * noise[:, None, None]
        errors = errors.reshape(errors.shape[0], *(1,) * (features.ndim - 2), *errors.shape[1:])
        return self.stretched(errors, shift + errors[..., self.median], below, above)

    def stretched(self, errors: Tensor, median: Tensor, below: Tensor, above: Tensor) -> Tensor:
        """Quantiles (..., horizon, levels) around `median` (..., horizon): the distances of `errors` from its
        own, times factors whose logarithms are `below` and `above`."""
        apart = errors - errors[..., self.median, None]
        stretch = torch.where(self.levels < 0.5, below[..., None], above[..., None]).exp()
        return median[..., None] + apart * stretch


def pinball(quantiles: Tensor, truth: Tensor, levels: Tensor) -> Tensor:
    """Quantile loss of each forecast, mean over levels: (..., horizon), NaN where the truth is unknown.

    quantiles: (..., horizon, levels).  truth: (..., horizon).
    """
    error = truth[..., None] - quantiles
    return (levels * error + torch.relu(-error)).mean(-1)
