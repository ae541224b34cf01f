"""Positive gates, soft as published or hard, and how features divide over heads."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SHORTEST, LONGEST = 0.001, 0.1  # steps at the start, drawn log-uniformly from between


def positive(raw: Tensor, bias: Tensor, hard: bool) -> Tensor:
    """softplus(raw + bias); hard: lowered by its value at raw = -1 and cut at zero, which is then reached."""
    soft = F.softplus(raw + bias)
    return F.relu(soft - F.softplus(bias - 1)) if hard else soft


def fraction(raw: Tensor, hard: bool) -> Tensor:
    """sigmoid(raw); hard: the line (raw + 3) / 6 cut at zero and one."""
    return F.hardsigmoid(raw) if hard else torch.sigmoid(raw)


def step_bias(n_heads: int, generator: torch.Generator) -> nn.Parameter:
    """Biases (heads,) at which softplus gives the steps of the start."""
    low, high = math.log(SHORTEST), math.log(LONGEST)
    step = torch.empty(n_heads).uniform_(low, high, generator=generator).exp()
    return nn.Parameter(step + torch.log(-torch.expm1(-step)))


def head_dim(features: int, n_heads: int) -> int:
    """Features of one head."""
    if features % n_heads:
        raise ValueError(
            f"{features} features cannot be shared evenly by {n_heads} heads: choose another n_heads."
        )
    return features // n_heads
