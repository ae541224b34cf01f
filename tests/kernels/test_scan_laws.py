"""Laws the scan obeys for every input: cut, causality, linearity, nothing from nothing."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts.kernels import frac_scan

DTYPES = st.sampled_from([torch.float32, torch.float64])
SEEDS = st.integers(0, 2**32 - 1)
PER_TOKEN = "c", "b", "step", "v"

quick = settings(max_examples=40, deadline=None)


def between(inputs, start, stop):
    """The arguments of tokens start to stop, without the initial state."""
    part = {name: inputs[name][:, start:stop] for name in PER_TOKEN}
    return part | {"rates": inputs["rates"]}


@quick
@given(time=st.integers(0, 80), dtype=DTYPES, seed=SEEDS, data=st.data())
def test_scan_can_be_cut_anywhere(time, dtype, seed, data, tokens, tolerance, off):
    cut = data.draw(st.integers(0, time))
    inputs = tokens(time, dtype=dtype, seed=seed)
    whole, final = frac_scan(**inputs)
    head, state = frac_scan(**between(inputs, 0, cut), initial_state=inputs["initial_state"])
    tail, state = frac_scan(**between(inputs, cut, time), initial_state=state)

    assert off(torch.cat([head, tail], dim=1), whole) <= tolerance[dtype]["y"]
    assert off(state, final) <= tolerance[dtype]["state"]


@quick
@given(time=st.integers(2, 80), dtype=DTYPES, seed=SEEDS, data=st.data())
def test_scan_never_sees_the_future(time, dtype, seed, data, tokens):
    now = data.draw(st.integers(1, time - 1))
    inputs = tokens(time, dtype=dtype, seed=seed)
    other = tokens(time, dtype=dtype, seed=seed + 1)
    changed = {name: torch.cat([inputs[name][:, :now], other[name][:, now:]], dim=1) for name in PER_TOKEN}
    y, _ = frac_scan(**inputs)
    y_changed, _ = frac_scan(**(inputs | changed))
    assert torch.equal(y[:, :now], y_changed[:, :now])
    assert not torch.equal(y[:, now:], y_changed[:, now:])


@quick
@given(time=st.integers(1, 60), seed=SEEDS, scale=st.floats(-10, 10))
def test_scan_is_linear_in_values_and_initial_state(time, seed, scale, tokens, tolerance, off):
    inputs, other = tokens(time, seed=seed), tokens(time, seed=seed + 1)
    linear = "v", "initial_state"
    mixed = {name: inputs[name] + scale * other[name] for name in linear}
    one = frac_scan(**inputs)
    two = frac_scan(**(inputs | {name: other[name] for name in linear}))
    both = frac_scan(**(inputs | mixed))
    for a, b, got in zip(one, two, both, strict=True):
        assert off(got, a + scale * b) <= tolerance[torch.float64]["y"]


@quick
@given(time=st.integers(1, 60), dtype=DTYPES, seed=SEEDS, data=st.data())
def test_tokens_that_write_and_decay_nothing_change_nothing(time, dtype, seed, data, tokens, tolerance, off):
    place = data.draw(st.integers(0, time))
    length = data.draw(st.integers(1, 20))
    inputs, idle = tokens(time, dtype=dtype, seed=seed), tokens(length, dtype=dtype, seed=seed + 1)
    idle["b"], idle["step"] = torch.zeros_like(idle["b"]), torch.zeros_like(idle["step"])
    padded = {
        name: torch.cat([inputs[name][:, :place], idle[name], inputs[name][:, place:]], dim=1)
        for name in PER_TOKEN
    }
    y, state = frac_scan(**inputs)
    y_padded, state_padded = frac_scan(**(inputs | padded))
    y_padded = torch.cat([y_padded[:, :place], y_padded[:, place + length :]], dim=1)
    assert off(y_padded, y) <= tolerance[dtype]["y"]
    assert off(state_padded, state) <= tolerance[dtype]["state"]


@quick
@given(time=st.integers(1, 40), seed=SEEDS)
def test_heads_and_batch_entries_do_not_meet(time, seed, tokens, tolerance, off):
    inputs = tokens(time, seed=seed)
    y, state = frac_scan(**inputs)
    alone = {name: inputs[name][1:, :, 2:] for name in PER_TOKEN}
    y_alone, state_alone = frac_scan(
        **alone, rates=inputs["rates"][2:], initial_state=inputs["initial_state"][1:, 2:]
    )
    assert off(y_alone, y[1:, :, 2:]) <= tolerance[torch.float64]["y"]
    assert off(state_alone, state[1:, 2:]) <= tolerance[torch.float64]["state"]


def test_a_missing_initial_state_is_zero(tokens):
    inputs = tokens(20)
    zero = torch.zeros_like(inputs.pop("initial_state"))
    for got, want in zip(frac_scan(**inputs), frac_scan(**inputs, initial_state=zero), strict=True):
        assert torch.equal(got, want)


def test_no_tokens_leave_the_initial_state(tokens):
    inputs = {name: x.requires_grad_() for name, x in tokens(0).items()}
    y, state = frac_scan(**inputs)
    assert y.shape == inputs["v"].shape
    assert torch.equal(state, inputs["initial_state"])
    (gradient,) = torch.autograd.grad(state.sum(), inputs["initial_state"])
    assert torch.equal(gradient, torch.ones_like(state))


@pytest.mark.parametrize("layout", ["heads first", "every second", "expanded"])
def test_strides_do_not_matter(layout, tokens):
    inputs = tokens(20)
    if layout == "heads first":
        strided = {name: inputs[name].transpose(1, 2).contiguous().transpose(1, 2) for name in PER_TOKEN}
    elif layout == "every second":
        strided = {name: inputs[name].repeat_interleave(2, dim=1)[:, ::2] for name in PER_TOKEN}
    else:
        inputs |= {name: inputs[name][:1].expand(2, *inputs[name].shape[1:]).clone() for name in PER_TOKEN}
        strided = {name: inputs[name][:1].expand_as(inputs[name]) for name in PER_TOKEN}
    assert not strided["v"].is_contiguous()
    for got, want in zip(frac_scan(**(inputs | strided)), frac_scan(**inputs), strict=True):
        assert torch.equal(got, want)
