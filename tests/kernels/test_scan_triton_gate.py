"""The gate of a layer on a GPU against the mixer's own: in Triton's interpreter without one."""

import os
import sys

import pytest
import torch

from fracts.mixer import _Gated

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
if sys.platform != "linux":
    pytest.skip("Triton is for Linux, and an NVIDIA GPU", allow_module_level=True)

from fracts.kernels.scan_triton_gate import gated_triton

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def drawn(channels, rows=(2, 37, 3)):
    random = torch.Generator().manual_seed(0)
    return [torch.randn(*rows, channels, generator=random, dtype=torch.float64) * 3 for _ in range(3)]


@pytest.mark.parametrize("channels", [1, 5, 64, 128])
def test_outputs_and_gradients_are_those_of_torch(channels, off):
    *given, outer = drawn(channels)
    inputs = [x.clone().requires_grad_() for x in given]
    want = _Gated.apply(*inputs)
    wanted = torch.autograd.grad(want, inputs, outer)
    single = [x.float().to(DEVICE).requires_grad_() for x in given]
    got = gated_triton(*single)
    found = torch.autograd.grad(got, single, outer.float().to(DEVICE))
    assert off(got.cpu(), want) <= 1e-6
    assert all(off(a.cpu(), b) <= 2e-6 for a, b in zip(found, wanted, strict=True))


def test_inputs_that_lie_apart_are_read_as_they_are(off):
    y, gate, _ = (x.float().to(DEVICE) for x in drawn(8))
    apart = y.transpose(0, 1).contiguous().transpose(0, 1)
    assert torch.equal(gated_triton(apart, gate), gated_triton(y, gate))


def test_the_op_keeps_the_rules_of_torch():
    given = [x.float().to(DEVICE).requires_grad_() for x in drawn(8, (1, 3, 2))[:2]]
    torch.library.opcheck(torch.ops.fracts.gated.default, given)


@pytest.mark.gpu
def test_bfloat16_is_float32_rounded_once(off):
    y, gate, _ = (x.bfloat16().cuda() for x in drawn(64))
    want = gated_triton(y.float(), gate.float())
    assert gated_triton(y, gate).dtype == torch.bfloat16
    assert torch.equal(gated_triton(y, gate), want.bfloat16())
