"""Weights with which a token reads and writes the modes of a memory, and their gradients.

One idea: log weights are a small matrix product. Half the log weight of a power law, as a function of its
exponent, is close to a sum of a few fixed functions; what a token adds to it (the content) is a sum of a few
hats over the log timescale. The gradients are written out: they keep the weights and compute the rest again.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from fracts.memory import power_law_weights

KNOTS = 4  # of the content, over the log timescale
BASIS = 9  # functions of the exponent that a log weight is a sum of
EXPONENTS = 0.02, 2.0  # the longest and the shortest memory that a token may ask for
LEAST = math.log(EXPONENTS[0])  # log exponent


def read_weights(content: Tensor, order: Tensor, scores: Tensor) -> Tensor:
    """Weights of the modes in reading, (batch, time, heads, modes).

    content: (batch, time, heads, knots).  order: (batch, time, heads), of exponent 2 * sigmoid(order).
    scores: (basis + knots, modes), of `mode_scores`.
    """
    weights: Tensor = _Weights.apply(content, _log_exponent(order), scores)  # type: ignore[no-untyped-call]
    return weights


def write_weights(
    content: Tensor,
    order: Tensor,
    scores: Tensor,
    step: Tensor,
    rate: Tensor,
    rates: Tensor,
    observed: Tensor,
) -> Tensor:
    """What is written to the modes: weights as in reading, times the gain of one base step; 0 where there is
    no value.

    step, rate: (batch, time, heads), positive.  rates: (modes,), the last one 0.  observed: (batch, time).
    """
    by_content = content, _log_exponent(order), scores
    written: Tensor = _Written.apply(*by_content, step, rate, rates, observed)  # type: ignore[no-untyped-call]
    return written


class _Weights(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, content: Tensor, log_exponent: Tensor, scores: Tensor) -> Tensor:
        weights = _weights(content, log_exponent, scores)
        ctx.save_for_backward(weights, log_exponent, scores)
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weights, log_exponent, scores = ctx.saved_tensors
        return *_by_scores(grad * weights, weights, log_exponent, scores), None


class _Written(torch.autograd.Function):
    """The gain is that of a zero-order hold, (1 - exp(-step * pace)) / pace with pace = rate * rates; for the
    tail mode, of rate 0, the step.
    """

    @staticmethod
    def forward(
        ctx: Any,
        content: Tensor,
        log_exponent: Tensor,
        scores: Tensor,
        step: Tensor,
        rate: Tensor,
        rates: Tensor,
        observed: Tensor,
    ) -> Tensor:
        weights = _weights(content, log_exponent, scores)
        # The answer of a GPU would have to be waited for; a compiler has none.
        if observed.is_cuda or torch.compiler.is_compiling() or not observed.all():
            weights.mul_(observed[..., None, None])
        written = _gain(step, rate, rates).mul_(weights)
        ctx.save_for_backward(weights, written, step, rate, rates, log_exponent, scores)
        return written

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weights, written, step, rate, rates, *inputs = ctx.saved_tensors
        share = grad * written  # of the log of each weight
        total, by_rate = share.sum(-1), share @ rates
        # exp(-step * pace) is 1 - gain * pace: the gain's own slope needs no exponential.
        grad_step = torch.linalg.vecdot(grad, weights) - rate * by_rate
        grad_rate = (step * grad_step - total) / rate
        return *_by_scores(share, weights, *inputs), None, grad_step, grad_rate, None, None


def _weights(content: Tensor, log_exponent: Tensor, scores: Tensor) -> Tensor:
    score = content.flatten(0, -2) @ scores[BASIS:]
    score.addmm_(exponent_basis(log_exponent.flatten()).mT, scores[:BASIS])
    return torch.softmax(score, -1, out=score).view(*log_exponent.shape, -1)


def _by_scores(share: Tensor, weights: Tensor, log_exponent: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients by content and log exponent; share: gradients times weights, overwritten."""
    share.addcmul_(weights, share.sum(-1, keepdim=True), value=-1)
    by_basis = scores[:BASIS] @ share.flatten(0, -2).mT
    by_exponent = (by_basis * _basis_slope(log_exponent.flatten())).sum(0).view_as(log_exponent)
    return share @ scores[BASIS:].mT, by_exponent


def _gain(step: Tensor, rate: Tensor, rates: Tensor) -> Tensor:
    """Gain of each mode over one base step, (..., modes)."""
    pace = rate[..., None] * rates
    gain = (pace * -step[..., None]).expm1_().neg_().div_(pace)
    gain[..., -1] = step
    return gain


def _log_exponent(order: Tensor) -> Tensor:
    """Logarithm of the exponent 2 * sigmoid(order)."""
    return (math.log(2) - F.softplus(-order)).clamp(min=LEAST)


def exponent_basis(log_exponent: Tensor) -> Tensor:
    """What log weights are sums of, (basis, ...): powers of the exponent less 1, and of its logarithm."""
    basis = log_exponent.new_empty(BASIS, *log_exponent.shape)
    basis[0] = 1
    torch.expm1(log_exponent, out=basis[1])
    for k in range(2, BASIS - 2):
        torch.mul(basis[k - 1], basis[1], out=basis[k])
    basis[-2] = log_exponent
    torch.square(log_exponent, out=basis[-1])
    return basis


def _basis_slope(log_exponent: Tensor) -> Tensor:
    """Derivative of the basis by the log exponent."""
    basis = exponent_basis(log_exponent)
    slope = torch.empty_like(basis)
    slope[0] = 0
    slope[-2] = 1
    torch.mul(log_exponent, 2, out=slope[-1])
    exponent = basis[1] + 1
    for k in range(1, BASIS - 2):
        torch.mul(basis[k - 1], exponent, out=slope[k]).mul_(k)
    return slope


@lru_cache
def mode_scores(tau: tuple[float, ...], timescales: tuple[float, float], window: float) -> np.ndarray:
    """What makes up the log weight of each mode, in reading and in writing: (2, basis + knots, modes).

    First half the log weight of the power law, as coefficients of a basis in its exponent; then the knots of
    a content. The gain of a step of 1 is taken off in writing: what it writes has the weights of the law.
    """
    prior = _half_prior(tau, timescales)
    write = prior.copy()
    write[0] -= np.log(np.append(-np.expm1(-1 / np.array(tau[:-1])) * tau[:-1], 1.0))
    knots = _knots(np.array(tau), window)
    return np.stack([np.vstack([half, knots]) for half in (prior, write)])


def _knots(tau: np.ndarray, window: float) -> np.ndarray:
    """Hat functions of the log timescale, (knots, modes), from the fastest mode to `window`.

    Windows of that many steps cannot tell slower modes apart: a content of its own would leave each of them
    where chance put it, and old memories with it. They share the last knot.
    """
    place = np.log(np.clip(tau / tau[0], 1.0, max(window / tau[0], 2.0)))
    spacing = place.max() / (KNOTS - 1)
    hats: np.ndarray = np.clip(1 - np.abs(place - spacing * np.arange(KNOTS)[:, None]) / spacing, 0, None)
    return hats


def _half_prior(tau: tuple[float, ...], timescales: tuple[float, float]) -> np.ndarray:
    """Half the log weights of the power laws on modes of timescales `tau`, as coefficients (basis, modes).

    Least squares on the logarithm of the kernels that the weights of `power_law_weights` give: what one mode
    lacks another may make good. Gauss-Newton, with a faint pull of each weight towards its own.
    """
    grid, n_modes = np.array(tau), len(tau)
    exponents, times = np.geomspace(*EXPONENTS, 65), np.geomspace(*timescales, 128)
    basis = exponent_basis(torch.from_numpy(np.log(exponents))).numpy().T  # (exponents, basis)
    log_weights = np.log([power_law_weights(grid, g, *timescales) for g in exponents])
    decay = np.exp(-times[:, None] / grid)
    law = np.exp(log_weights) @ decay.T  # (exponents, times)
    pull = 1e-3
    towards = pull * np.einsum("gk,mn->gmkn", basis, np.eye(n_modes)).reshape(-1, basis.shape[1] * n_modes)
    coefficients = np.linalg.lstsq(basis, log_weights)[0]  # (basis, modes)
    for _ in range(8):
        log_found = basis @ coefficients
        shares = np.exp(log_found)[:, None] * decay  # (exponents, times, modes)
        kernel = shares.sum(-1)
        shares /= kernel[..., None]
        slopes = np.einsum("gtm,gk->gtkm", shares, basis).reshape(-1, coefficients.size)
        lacking = np.append(np.log(law / kernel), pull * (log_weights - log_found))
        change = np.linalg.lstsq(np.vstack([slopes, towards]), lacking)[0]
        coefficients += change.reshape(coefficients.shape)
    half: np.ndarray = 0.5 * coefficients
    return half
