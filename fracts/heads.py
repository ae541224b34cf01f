"""From features to forecasts: how the network moves and stretches the quantiles of the linear path.

Each lead has a shift and two log stretches, one below and one above the median. All are zero at the start,
where the forecast is the linear path's; a stretch is positive, so quantiles never cross. What is known ahead
of a lead adds to the three: a few non-linear traits of it, each weighed by the features of now. None of them
leaves the range it was proven on.
"""

from collections.abc import Sequence
from itertools import product

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fracts.mixer import linear

TRAITS = 16  # of what is known ahead of a lead
PARTS = ("stretch", "shift")


class QuantileHead(nn.Module):
    """Quantiles (..., horizon, levels) around the linear path, in units of scale.

    Parameters
    ----------
    width : features of a token.
    levels : (levels,), ascending, with .5 among them.
    errors : (groups, horizon, levels), quantiles of the linear path's held-out errors.
    n_known : numbers known ahead of each lead.
    generator : of their initial weights; needed where there are any.
    """

    errors: Tensor
    levels: Tensor
    least: Tensor  # (3, horizon), no shift and no log stretch goes below
    most: Tensor  # nor above

    def __init__(
        self,
        width: int,
        levels: Tensor,
        errors: Tensor,
        n_known: int = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer("levels", levels.float())
        self.register_buffer("errors", errors.float())
        self.register_buffer("least", torch.full((3, errors.shape[1]), -torch.inf))
        self.register_buffer("most", torch.full((3, errors.shape[1]), torch.inf))
        self.median = int((levels - 0.5).abs().argmin())
        self.out = nn.Linear(width, 3 * errors.shape[1], device="meta").to_empty(device="cpu")
        self.traits = self.weigh = None
        if n_known and generator:
            self.traits = linear(n_known, TRAITS, generator)
            self.weigh = linear(width, 3 * TRAITS, generator)
        self.silence(*PARTS)

    @torch.no_grad()
    def silence(self, *parts: str) -> None:
        """Make parts of the network, some of `PARTS`, add nothing to the linear path."""
        for layer, part in product(self._last, parts):
            shift = layer.out_features // 3
            rows = slice(0, shift) if part == "shift" else slice(shift, 3 * shift)
            layer.weight[rows] = 0.0
            layer.bias[rows] = 0.0

    def hold_within(self, least: Tensor, most: Tensor, parts: Sequence[str]) -> None:
        """Keep what some of `PARTS` say within a range, (3, horizon) each, from now on."""
        for part in parts:
            rows = slice(0, 1) if part == "shift" else slice(1, 3)
            self.least[rows], self.most[rows] = least[rows], most[rows]

    @property
    def silent(self) -> bool:
        """Whether the network adds nothing to the linear path."""
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
            weight = weight + traits @ self.weigh.weight[:TRAITS]
            bias = bias + traits @ self.weigh.bias[:TRAITS]
        shift = features @ weight.to(features) + bias.to(features)
        return shift.clamp(self.least[0, lead - 1].to(features), self.most[0, lead - 1].to(features))

    def moves(self, features: Tensor, ahead: Tensor | None = None) -> Tensor:
        """Shift and log stretches below and above the median, (batch, ..., 3, horizon), as `forward` has its
        arguments."""
        outputs: Tensor = self.out(features).unflatten(-1, (3, -1))
        if self.traits is not None and self.weigh is not None:
            traits = F.silu(self.traits(ahead))  # (batch, ..., horizon, traits)
            outputs = outputs + self.weigh(features).unflatten(-1, (3, -1)) @ traits.transpose(-1, -2)
        return outputs.clamp(self.least, self.most)

    def forward(self, features: Tensor, group: Tensor, ahead: Tensor | None = None) -> Tensor:
        """features: (batch, ..., width); group: (batch,), whose errors each series takes; ahead: (batch, ...,
        horizon, n_known)."""
        shift, below, above = self.moves(features, ahead).unbind(-2)
        errors = self.errors[group]  # (batch, horizon, levels)
        errors = errors.reshape(errors.shape[0], *(1,) * (features.ndim - 2), *errors.shape[1:])
        centre = errors[..., self.median, None]
        stretch = torch.where(self.levels < 0.5, below[..., None], above[..., None]).exp()
        quantiles: Tensor = shift[..., None] + centre + (errors - centre) * stretch
        return quantiles


def pinball(quantiles: Tensor, truth: Tensor, levels: Tensor) -> Tensor:
    """Quantile loss of each forecast, mean over levels: (..., horizon), NaN where the truth is unknown.

    quantiles: (..., horizon, levels).  truth: (..., horizon).
    """
    error = truth[..., None] - quantiles
    return (levels * error + torch.relu(-error)).mean(-1)
