"""The weights of a token on a GPU against `fracts.mode_weights`: in Triton's interpreter without one."""

import os
import sys

import pytest
import torch
from torch.nn import functional as F

from fracts.memory import mode_timescales
from fracts.mode_weights import BASIS, KNOTS, LEAST, mode_scores, read_weights, write_weights

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
if sys.platform != "linux":
    pytest.skip("Triton is for Linux, and an NVIDIA GPU", allow_module_level=True)

from fracts.kernels import scan_triton_weights as room

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCH, TIME, HEADS = 2, 7, 3


def by_torch(controls, scores, rates, observed):
    """What the mixer does without a GPU."""
    raw = controls[..., : 4 * HEADS].unflatten(-1, (4, HEADS)).unbind(-2)
    step, rate = F.softplus(raw[0]), torch.exp(raw[3])
    contents = controls[..., 4 * HEADS :].unflatten(-1, (2, HEADS, KNOTS)).unbind(-3)
    c = read_weights(contents[0], raw[1], scores[0])
    return c, write_weights(contents[1], raw[2], scores[1], step, rate, rates, observed), step * rate


def drawn(modes, seed=0):
    random = torch.Generator().manual_seed(seed)
    controls = torch.randn(BATCH, TIME, HEADS * (4 + 2 * KNOTS), generator=random, dtype=torch.float64)
    controls[0, 0, HEADS : 3 * HEADS] = -6.0  # orders below the smallest exponent
    tau = mode_timescales(1.0, 4096.0, modes)
    scores = torch.from_numpy(mode_scores(tuple(tau), (1.0, 4096.0), 512.0))
    observed = torch.rand(BATCH, TIME, generator=random) < 0.7
    return controls, scores, torch.from_numpy(1 / tau), observed


def test_the_basis_is_that_of_the_weights():
    assert room.POWERS + 2 == BASIS


@pytest.mark.parametrize("modes", [4, 9, 16])
def test_weights_and_gradients_are_those_of_torch(modes, off):
    given = drawn(modes)
    controls = given[0].clone().requires_grad_()
    want = by_torch(controls, *given[1:])
    random = torch.Generator().manual_seed(1)
    outer = [torch.randn(x.shape, generator=random, dtype=torch.float64) for x in want]
    (want_gradient,) = torch.autograd.grad(want, controls, outer)

    single = [x.to(DEVICE, torch.bool if x.dtype == torch.bool else torch.float32) for x in given]
    single[0].requires_grad_()
    got = room.weights_triton(*single, LEAST, torch.float32)
    (gradient,) = torch.autograd.grad(got, single[0], [x.to(DEVICE, torch.float32) for x in outer])
    for found, expected in zip(got, want, strict=True):
        assert off(found.cpu(), expected) <= 2e-6
    for column in range(controls.shape[-1]):
        assert off(gradient[..., column].cpu(), want_gradient[..., column]) <= 2e-5, column


def test_the_op_is_registered_as_torch_wants_it():
    given = [x.to(DEVICE, torch.bool if x.dtype == torch.bool else torch.float32) for x in drawn(4)]
    given[0].requires_grad_()
    torch.library.opcheck(room._weights, (*given, LEAST, torch.float32))
