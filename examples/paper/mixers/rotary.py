"""Rotation of feature pairs: rotary embeddings (Su et al. 2021, arXiv 2104.09864)."""

import torch
from torch import Tensor


def rotate(x: Tensor, angle: Tensor) -> Tensor:
    """Turn the feature pairs (2i, 2i + 1) of `x` by `angle[..., i]`; features past the last angle stay."""
    turning, still = x.split([2 * angle.shape[-1], x.shape[-1] - 2 * angle.shape[-1]], -1)
    a, b = turning.unflatten(-1, (-1, 2)).unbind(-1)
    cos, sin = angle.cos(), angle.sin()
    turned = torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
    return torch.cat([turned, still], -1)
