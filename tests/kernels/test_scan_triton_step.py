"""One token on a GPU against the step in torch: in the interpreter of Triton where there is no GPU."""

import os
import sys

import pytest
import torch

from fracts.kernels import frac_step
from fracts.kernels.scan_reference import scan_reference

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
if sys.platform != "linux":
    pytest.skip("Triton is for Linux, and an NVIDIA GPU", allow_module_level=True)

from fracts.kernels.scan_triton_step import step_triton

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def one_token(tokens, **sizes):
    """Arguments of `frac_step`."""
    inputs = {name: x.to(DEVICE) for name, x in tokens(1, dtype=torch.float32, **sizes).items()}
    state = {"state": inputs.pop("initial_state"), "rates": inputs.pop("rates")}
    return {name: x[:, 0] for name, x in inputs.items()} | state


@pytest.mark.parametrize("modes, width", [(1, 1), (5, 4), (17, 33)])
def test_a_step_is_a_scan_of_one_token(modes, width, tokens, tolerance, off):
    inputs = one_token(tokens, modes=modes, width=width)
    state = inputs["state"]
    y, moved = step_triton(**inputs, out=torch.empty_like(state))
    longer = {name: inputs[name][:, None] for name in ("c", "b", "step", "v")}
    want_y, want = scan_reference(**longer, rates=inputs["rates"], initial_state=state)
    assert off(y, want_y[:, 0]) <= tolerance[torch.float32]["y"]
    assert off(moved, want) <= tolerance[torch.float32]["state"]


@pytest.mark.parametrize("turned", [False, True])
def test_a_state_may_be_moved_in_place(turned, tokens):
    inputs = one_token(tokens)
    y, want = step_triton(**inputs, out=torch.empty_like(inputs["state"]))
    state = inputs["state"].mT.contiguous().mT if turned else inputs["state"].clone()
    y_in_place, moved = step_triton(**inputs | {"state": state}, out=state)
    assert moved is state and torch.equal(state, want) and torch.equal(y_in_place, y)


def test_the_door_moves_a_state_in_place_and_otherwise_leaves_it_alone(tokens):
    inputs = one_token(tokens)
    before = inputs["state"].clone()
    y, moved = frac_step(**inputs)
    assert torch.equal(inputs["state"], before) and not torch.equal(moved, before)
    y_in_place, state = frac_step(**inputs, out=inputs["state"])
    assert state is inputs["state"] and torch.equal(state, moved) and torch.equal(y_in_place, y)


def test_no_gradient_goes_through_a_state_moved_in_place(tokens):
    inputs = one_token(tokens)
    inputs["v"].requires_grad_()
    with pytest.raises(ValueError, match=r"out is given, and v asks for a gradient.*torch\.no_grad"):
        frac_step(**inputs, out=inputs["state"])
    with torch.no_grad():
        frac_step(**inputs, out=inputs["state"])


@pytest.mark.gpu
def test_a_step_is_one_launch_in_a_graph(tokens):
    inputs = one_token(tokens, batch=8)
    state = inputs["state"].clone()
    with torch.no_grad():
        frac_step(**inputs | {"state": state}, out=state)  # compiled before the capture
        state.copy_(inputs["state"])
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y, _ = frac_step(**inputs | {"state": state}, out=state)
        want = inputs["state"]
        for _ in range(3):
            graph.replay()
            want_y, want = frac_step(**inputs | {"state": want})
    assert torch.equal(state, want) and torch.equal(y, want_y)
