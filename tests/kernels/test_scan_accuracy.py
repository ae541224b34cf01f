"""The fast scan and the step against the float64 loop: values, gradients, hard inputs."""

import pytest
import torch

from fracts.kernels import frac_scan, frac_step
from fracts.kernels.scan_chunked import scan_chunked
from fracts.kernels.scan_reference import scan_reference

DTYPES = torch.float32, torch.float64
LENGTHS = 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 200  # around every chunk edge


def step_loop(c, b, step, rates, v, initial_state):
    outputs, state = [], initial_state
    for t in range(v.shape[1]):
        y, state = frac_step(c[:, t], b[:, t], step[:, t], rates, v[:, t], state)
        outputs.append(y)
    return torch.stack(outputs, dim=1), state


def gradients(scan, inputs, dtype=None):
    """Gradients of a randomly weighted sum of every output and every entry of the final state."""
    leaves = {name: x.to(dtype or x.dtype).requires_grad_() for name, x in inputs.items()}
    outputs = scan(**leaves)
    random = torch.Generator().manual_seed(1)
    weights = [torch.randn(x.shape, generator=random).to(x.dtype) for x in outputs]
    loss = sum((x * w).sum() for x, w in zip(outputs, weights, strict=True))
    return dict(zip(leaves, torch.autograd.grad(loss, leaves.values()), strict=True))


@pytest.mark.parametrize("scan", [frac_scan, step_loop])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("time", LENGTHS)
def test_scan_and_step_match_the_reference(scan, dtype, time, tokens, tolerance, off):
    inputs = tokens(time, dtype=dtype, seed=time)
    y, state = scan(**inputs)
    want_y, want_state = scan_reference(**inputs)

    assert y.dtype == state.dtype == dtype
    for head in range(y.shape[2]):  # a ratio over all heads would hide a wrong small one
        assert off(y[:, :, head], want_y[:, :, head]) <= tolerance[dtype]["y"]
    for mode in range(state.shape[2]):
        assert off(state[:, :, mode], want_state[:, :, mode]) <= tolerance[dtype]["state"]


@pytest.mark.parametrize("scan", [frac_scan, step_loop])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("time", LENGTHS)
def test_gradients_match_the_reference(scan, dtype, time, tokens, tolerance, off):
    inputs = tokens(time, dtype=dtype, seed=time)
    got = gradients(scan, inputs)
    want = gradients(scan_reference, inputs, torch.float64)

    for name in ("c", "b", "v", "initial_state"):
        assert off(got[name], want[name]) <= tolerance[dtype]["other gradients"], name
    assert off(got["step"], want["step"]) <= tolerance[dtype]["step"]
    for mode in range(inputs["rates"].shape[1]):
        assert off(got["rates"][:, mode], want["rates"][:, mode]) <= tolerance[dtype]["rates"], mode


@pytest.mark.parametrize("modes, width", [(1, 1), (1, 5), (16, 1), (17, 33)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_number_of_modes_and_channels(modes, width, dtype, tokens, tolerance, off):
    inputs = tokens(33, modes=modes, width=width, dtype=dtype)
    for got, want in zip(frac_scan(**inputs), scan_reference(**inputs), strict=True):
        assert off(got, want) <= tolerance[dtype]["y"]


@pytest.mark.parametrize("chunk", [1, 4, 5, 8, 16, 64])
def test_the_chunk_length_does_not_matter(chunk, tokens, tolerance, off):
    inputs = tokens(50)
    for got, want in zip(scan_chunked(**inputs, chunk=chunk), scan_reference(**inputs), strict=True):
        assert off(got, want) <= tolerance[torch.float64]["y"]


def test_gradients_pass_finite_differences(tokens):
    inputs = tokens(10, batch=1, heads=2, modes=2, width=2, leap=3.0)
    inputs["step"] = inputs["step"] + 0.1  # differences may not reach below zero
    inputs["rates"] = inputs["rates"] + 0.1
    leaves = [x.requires_grad_() for x in inputs.values()]
    assert torch.autograd.gradcheck(frac_scan, leaves)
    one_token = [x if name in ("rates", "initial_state") else x[:, 3] for name, x in inputs.items()]
    assert torch.autograd.gradcheck(frac_step, one_token)


@pytest.mark.parametrize("leap", [1e4, 1e30])
@pytest.mark.parametrize("dtype", DTYPES)
def test_huge_leaps_stay_finite_with_finite_gradients(leap, dtype, tokens, tolerance, off):
    inputs = tokens(40, dtype=dtype, leap=leap)
    y, _ = frac_scan(**inputs)
    assert off(y, scan_reference(**inputs)[0]) <= tolerance[dtype]["y"]
    for name, gradient in gradients(frac_scan, inputs).items():
        assert gradient.isfinite().all(), name


@pytest.mark.parametrize("pace", [0.1, 1.0, 2.0, 4.0, 30.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_modes_that_fade_within_a_chunk_are_exact_at_any_pace(pace, dtype, tokens, tolerance, off):
    inputs = tokens(64, modes=8, dtype=dtype)
    inputs["step"] = inputs["step"] % 1.0 + 0.5
    inputs["rates"] = (pace * 3.0 * 0.4 ** torch.arange(8)).expand(3, -1).to(dtype)
    for got, want in zip(frac_scan(**inputs), scan_reference(**inputs), strict=True):
        assert off(got, want) <= tolerance[dtype]["y"]
    got, want = gradients(frac_scan, inputs), gradients(scan_reference, inputs, torch.float64)
    for name in ("c", "b", "v", "initial_state"):
        assert off(got[name], want[name]) <= tolerance[dtype]["other gradients"], name
    assert off(got["step"], want["step"]) <= tolerance[dtype]["step"]


@pytest.mark.parametrize("leap", [10.0, 16.0, 20.0, 50.0, 70.0, 90.0])
def test_tokens_close_together_after_a_leap_keep_their_digits(leap, tokens, off):
    """What is left of before is small, so that rounding the time since the chunk began would show in full."""
    inputs = tokens(16, modes=1, width=16, dtype=torch.float32)
    inputs["rates"] = torch.full((3, 1), 0.987)
    inputs["step"] = 0.001 + 0.01 * inputs["step"].clamp(max=1.0)
    inputs["step"][:, 1] = leap
    inputs["initial_state"].zero_()
    assert off(frac_scan(**inputs)[0][:, 1:], scan_reference(**inputs)[0][:, 1:]) <= 8e-7


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_numbers_of_any_size_pass_through_a_fast_mode(size, tokens, tolerance, off):
    inputs = tokens(32, modes=1, dtype=torch.float32)
    inputs["rates"] = torch.full((3, 1), 4.5)
    inputs["step"] = torch.ones_like(inputs["step"])
    inputs["b"] = inputs["b"] * size
    inputs["initial_state"] = inputs["initial_state"] * size
    got, want = gradients(frac_scan, inputs), gradients(scan_reference, inputs, torch.float64)
    assert off(frac_scan(**inputs)[0], scan_reference(**inputs)[0]) <= tolerance[torch.float32]["y"]
    for name in ("c", "b", "v", "initial_state"):
        assert off(got[name], want[name]) <= tolerance[torch.float32]["other gradients"], name


@pytest.mark.parametrize("scan", [frac_scan, step_loop])
def test_a_full_reset_leaves_nothing_of_a_large_past(scan, tokens, tolerance, off):
    inputs = tokens(5, dtype=torch.float32)
    inputs["rates"] = inputs["rates"] + 1.0
    inputs["step"] = torch.zeros_like(inputs["step"])
    inputs["step"][:, 2] = 30.0
    inputs["initial_state"] = inputs["initial_state"] * 1e6
    _, state = scan(**inputs)
    assert off(state, scan_reference(**inputs)[1]) <= tolerance[torch.float32]["state"]


def test_a_constant_input_is_kept_for_400000_steps_in_float32():
    """At a timescale of 131,072 and in an accumulator, against the geometric sum."""
    time = 400_000
    rates = torch.tensor([1 / 131_072, 0.0], dtype=torch.float32)
    ones = torch.ones(1, time, 2, 1)
    y, state = frac_scan(c=ones, b=ones, step=ones[..., 0], rates=rates[:, None], v=ones)

    count = torch.arange(1, time + 1, dtype=torch.float64)[:, None]
    exact = torch.expm1(-count * rates.double()) / torch.expm1(-rates.double())  # [T, 2]
    exact[:, 1] = count[:, 0]
    assert ((y[0, :, :, 0] - exact).abs() / exact).max() <= 5e-6
    assert ((state[0, :, 0, 0] - exact[-1]).abs() / exact[-1]).max() <= 5e-6
