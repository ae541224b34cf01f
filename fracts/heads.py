"""From features to forecasts: how the network moves and stretches the quantiles of the linear path.

Each lead has a shift and two log stretches, one below and one above the median. All are zero at the start,
where the forecast is the linear path's; a stretch is positive, so quantiles never cross.
"""

import torch
from torch import Tensor, nn


class QuantileHead(nn.Module):
    """Quantiles (..., horizon, levels) around the linear path, in units of scale.

    Parameters
    ----------
    width : features of a token.
    levels : (levels,), ascending, with .5 among them.
    errors : (groups, horizon, levels), quantiles of the linear path's held-out errors.
    """

    errors: Tensor
    levels: Tensor

    def __init__(self, width: int, levels: Tensor, errors: Tensor) -> None:
        super().__init__()
        self.register_buffer("levels", levels.float())
        self.register_buffer("errors", errors.float())
        self.median = int((levels - 0.5).abs().argmin())
        self.out = nn.utils.skip_init(nn.Linear, width, 3 * errors.shape[1])
        self.silence()

    @torch.no_grad()
    def silence(self) -> None:
        """Make the network add nothing to the linear path."""
        self.out.weight.zero_()
        self.out.bias.zero_()

    def forward(self, features: Tensor, group: Tensor) -> Tensor:
        """features: (batch, ..., width); group: (batch,), whose errors each series takes."""
        shift, below, above = self.out(features).unflatten(-1, (3, -1)).unbind(-2)
        errors = self.errors[group]  # (batch, horizon, levels)
        errors = errors.reshape(errors.shape[0], *(1,) * (features.ndim - 2), *errors.shape[1:])
        centre = errors[..., self.median, None]
        stretch = torch.where(self.levels < 0.5, below[..., None], above[..., None]).exp()
        return shift[..., None] + centre + (errors - centre) * stretch


def pinball(quantiles: Tensor, truth: Tensor, levels: Tensor) -> Tensor:
    """Mean quantile loss of each lead over its known truths: (horizon,).

    quantiles: (..., horizon, levels).  truth: (..., horizon), NaN where unknown.
    """
    known = ~truth.isnan()
    error = torch.where(known, truth, 0.0)[..., None] - quantiles
    loss = (levels * error + torch.relu(-error)).mean(-1) * known
    dims = tuple(range(truth.ndim - 1))
    return loss.sum(dims) / known.sum(dims).clamp(min=1)
