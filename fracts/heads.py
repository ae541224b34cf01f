"""From features to forecasts: how the network moves and stretches the quantiles of the linear path.

Each lead has a shift and two log stretches, one below and one above the median. All are zero at the start,
where the forecast is the linear path's; a stretch is positive, so quantiles never cross.
"""

import torch
from torch import Tensor, nn

PARTS = ("stretch", "shift")


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
        self.out = nn.Linear(width, 3 * errors.shape[1], device="meta").to_empty(device="cpu")
        self.silence(*PARTS)

    @torch.no_grad()
    def silence(self, *parts: str) -> None:
        """Make parts of the network, some of `PARTS`, add nothing to the linear path."""
        horizon = self.errors.shape[1]
        rows = {"shift": slice(0, horizon), "stretch": slice(horizon, 3 * horizon)}
        for part in parts:
            self.out.weight[rows[part]] = 0.0
            self.out.bias[rows[part]] = 0.0

    def forward(self, features: Tensor, group: Tensor) -> Tensor:
        """features: (batch, ..., width); group: (batch,), whose errors each series takes."""
        shift, below, above = self.out(features).unflatten(-1, (3, -1)).unbind(-2)
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
