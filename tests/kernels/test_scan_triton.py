"""The scan for a GPU against the float64 loop: in the interpreter of Triton where there is no GPU."""

import os
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts.kernels.scan_reference import scan_reference

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
if sys.platform != "linux":
    pytest.skip("Triton is for Linux, and an NVIDIA GPU", allow_module_level=True)

from fracts.kernels import scan_triton as room
from fracts.kernels.scan_triton import scan_triton

# What a token would see of later ones may overflow before it is masked: a GPU does not mind, numpy warns.
pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered in matmul")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
INPUTS = "c", "b", "step", "rates", "v", "initial_state"


@pytest.fixture(autouse=True)
def short_segments(monkeypatch):
    """Two tiles a segment, so that few tokens make several."""
    short = room.LAUNCHES[torch.float32]._replace(segment=32)
    monkeypatch.setitem(room.LAUNCHES, torch.float32, short)


def drawn(tokens, time, **sizes):
    inputs = tokens(time, dtype=torch.float32, **({"batch": 1, "heads": 2} | sizes))
    return {name: x.to(DEVICE) for name, x in inputs.items()}


def gradients(scan, inputs, dtype):
    leaves = {name: x.detach().to(dtype).requires_grad_() for name, x in inputs.items()}
    outputs = scan(**leaves)
    random = torch.Generator().manual_seed(1)
    weights = [torch.randn(x.shape, generator=random).to(x) for x in outputs]
    loss = sum((x * w).sum() for x, w in zip(outputs, weights, strict=True))
    return outputs, dict(zip(leaves, torch.autograd.grad(loss, leaves.values()), strict=True))


@pytest.mark.parametrize("time", [1, 2, 15, 16, 17, 31, 33, 70])
def test_values_and_gradients_match_the_reference(time, tokens, tolerance, off):
    inputs = drawn(tokens, time, seed=time)
    (y, state), got = gradients(scan_triton, inputs, torch.float32)
    (want_y, want_state), want = gradients(scan_reference, inputs, torch.float64)
    allowed = tolerance[torch.float32]
    for head in range(y.shape[2]):
        assert off(y[:, :, head], want_y[:, :, head]) <= allowed["y"]
    for mode in range(state.shape[2]):
        assert off(state[:, :, mode], want_state[:, :, mode]) <= allowed["state"]
    for name in ("c", "b", "v", "initial_state"):
        assert off(got[name], want[name]) <= allowed["other gradients"], name
    assert off(got["step"], want["step"]) <= allowed["step"]
    for mode in range(inputs["rates"].shape[1]):
        assert off(got["rates"][:, mode], want["rates"][:, mode]) <= allowed["rates"], mode


@pytest.mark.parametrize("modes, width", [(1, 1), (17, 33)])
def test_any_number_of_modes_and_channels(modes, width, tokens, tolerance, off):
    inputs = drawn(tokens, 20, modes=modes, width=width, heads=1)
    for got, want in zip(scan_triton(**inputs), scan_reference(**inputs), strict=True):
        assert off(got, want) <= tolerance[torch.float32]["y"]


def test_no_token_leaves_the_state_alone(tokens):
    inputs = drawn(tokens, 3)
    none = {name: x[:, :0] if name in ("c", "b", "step", "v") else x for name, x in inputs.items()}
    y, state = scan_triton(**none)
    assert y.shape == (1, 0, 2, 4) and torch.equal(state, inputs["initial_state"])


def test_inputs_may_have_any_strides(tokens):
    inputs = drawn(tokens, 20, batch=2)
    want = scan_triton(**inputs)
    for axis in (1, 2, 3):
        turned = {
            name: x.transpose(0, axis).contiguous().transpose(0, axis) if x.ndim > axis else x
            for name, x in inputs.items()
        }
        assert turned["v"].stride() != inputs["v"].stride()
        for got, expected in zip(scan_triton(**turned), want, strict=True):
            assert torch.equal(got, expected)


def test_gradients_of_a_plain_sum_are_those_of_weights_of_one(tokens):
    """Whose gradient comes in with strides of zero."""
    inputs = drawn(tokens, 20)
    found = []
    for weights in (None, torch.ones_like(inputs["v"])):
        leaves = {name: x.detach().requires_grad_() for name, x in inputs.items()}
        y, _ = scan_triton(**leaves)
        (y.sum() if weights is None else (y * weights).sum()).backward()
        found.append(leaves["b"].grad)
    assert torch.equal(*found) and found[0].abs().max() > 0


def test_two_runs_are_equal_to_the_bit(tokens):
    inputs = drawn(tokens, 40)
    (one, first), (other, second) = (gradients(scan_triton, inputs, torch.float32) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert all(torch.equal(first[name], second[name]) for name in INPUTS)


@settings(max_examples=5)
@given(st.integers(0, 38))
def test_what_comes_later_changes_nothing_not_by_a_bit(tokens, now):
    inputs = drawn(tokens, 40)
    changed = {name: x.clone() for name, x in inputs.items()}
    for name in ("c", "b", "step", "v"):
        changed[name][:, now + 1 :] = changed[name][:, now + 1 :].abs() + 3
    before, after = (scan_triton(**each)[0] for each in (inputs, changed))
    assert torch.equal(before[:, : now + 1], after[:, : now + 1])
    assert not torch.equal(before[:, now + 1 :], after[:, now + 1 :])


@pytest.mark.parametrize("cut", [1, 16, 31, 33])
def test_a_pass_may_be_cut_anywhere(cut, tokens, tolerance, off):
    inputs = drawn(tokens, 40)
    parts = [
        {name: x[:, part] if name in ("c", "b", "step", "v") else x for name, x in inputs.items()}
        for part in (slice(None, cut), slice(cut, None))
    ]
    first, state = scan_triton(**parts[0])
    second, end = scan_triton(**parts[1] | {"initial_state": state})
    y, want = scan_triton(**inputs)
    assert off(torch.cat([first, second], 1), y) <= tolerance[torch.float32]["y"]
    assert off(end, want) <= tolerance[torch.float32]["state"]


@pytest.mark.parametrize("leap", [1e4, 1e30])
def test_leaps_stay_exact_and_finite(leap, tokens, tolerance, off):
    inputs = drawn(tokens, 40, leap=leap)
    (y, state), got = gradients(scan_triton, inputs, torch.float32)
    want_y, want_state = scan_reference(**inputs)
    assert off(y, want_y) <= tolerance[torch.float32]["y"]
    assert off(state, want_state) <= tolerance[torch.float32]["state"]
    assert all(x.isfinite().all() for x in got.values())


def test_the_op_is_registered_as_torch_wants_it(tokens):
    inputs = drawn(tokens, 20)
    leaves = tuple(x.requires_grad_() for x in inputs.values())
    torch.library.opcheck(room._scan, leaves)
