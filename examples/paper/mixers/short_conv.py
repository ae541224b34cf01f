"""A causal convolution over a few steps, a filter a channel, followed by SiLU."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class ShortConv(nn.Module):
    """SiLU of a depthwise causal convolution.

    Parameters
    ----------
    channels : features, each with its own filter.
    size : steps that a filter sees, the current one included.
    bias : whether each channel has a bias.
    """

    def __init__(self, channels: int, generator: torch.Generator, *, size: int = 4, bias: bool) -> None:
        super().__init__()
        bound = size**-0.5
        self.weight = nn.Parameter(
            torch.empty(channels, 1, size).uniform_(-bound, bound, generator=generator)
        )
        start = torch.empty(channels).uniform_(-bound, bound, generator=generator)
        self.bias = nn.Parameter(start) if bias else None

    def empty(self, batch: int) -> Tensor:
        """The inputs before any: zeros (batch, size - 1, channels)."""
        channels, _, size = self.weight.shape
        return self.weight.new_zeros(batch, size - 1, channels)

    def forward(self, x: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs (batch, time, channels), and the inputs that the next pass has to see."""
        seen = torch.cat([past, x], 1)
        y = F.conv1d(seen.mT, self.weight, self.bias, groups=len(self.weight)).mT
        return F.silu(y), seen[:, x.shape[1] :]
