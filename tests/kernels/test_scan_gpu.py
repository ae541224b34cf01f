"""The scan on a GPU where the interpreter cannot follow: bfloat16, great lengths and sizes, whole layers."""

import pytest
import torch

from fracts.kernels import frac_scan
from fracts.kernels.scan_reference import scan_reference
from fracts.memory import mode_timescales
from fracts.mixer import FracMixer, Tokens

pytestmark = pytest.mark.gpu

# RMS ratios to the float64 loop of the same rounded inputs. bfloat16 rounds by 2e-3 and products of two such
# by 2.5e-3; the gradient of a step is that of the fastest mode, of which little is left after each token.
ROUNDED = {"y": 6e-3, "state": 6e-3, "other gradients": 8e-3, "step": 8e-3, "rates": 3e-2}


def drawn(batch, time, heads=3, modes=16, width=64, leap=0.0, seed=0):
    """Arguments of `frac_scan` as a layer makes them, values in bfloat16; one step in ten is a leap."""
    random = torch.Generator("cuda").manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=random, device="cuda")

    step = 0.5 + torch.rand(batch, time, heads, generator=random, device="cuda")
    if leap:
        step = torch.where(normal(batch, time, heads) > 1.28, leap, step)
    tau = torch.tensor(mode_timescales(1.0, 131072.0, modes))
    return {
        "c": normal(batch, time, heads, modes).softmax(-1).bfloat16(),
        "b": normal(batch, time, heads, modes).softmax(-1).bfloat16(),
        "step": step,
        "rates": (1 / tau).float().cuda().expand(heads, modes).contiguous(),
        "v": normal(batch, time, heads, width).bfloat16(),
        "initial_state": normal(batch, heads, modes, width),
    }


def gradients(scan, inputs, dtype=None):
    leaves = {name: x.detach().to(dtype or x.dtype).requires_grad_() for name, x in inputs.items()}
    outputs = scan(**leaves)
    random = torch.Generator("cuda").manual_seed(1)
    weights = [torch.randn(x.shape, generator=random, device="cuda").bfloat16() for x in outputs]
    loss = sum((x.double() * w.double()).sum() for x, w in zip(outputs, weights, strict=True))
    return outputs, dict(zip(leaves, torch.autograd.grad(loss, leaves.values()), strict=True))


@pytest.mark.parametrize(
    "time, modes, width", [(1, 16, 64), (17, 2, 8), (255, 5, 40), (300, 16, 64), (129, 32, 128)]
)
def test_bfloat16_matches_the_reference(time, modes, width, off):
    inputs = drawn(2, time, modes=modes, width=width)
    (y, state), got = gradients(frac_scan, inputs)
    (want_y, want_state), want = gradients(scan_reference, inputs, torch.float64)
    assert off(y, want_y) <= ROUNDED["y"] and off(state, want_state) <= ROUNDED["state"]
    for name in ("c", "b", "v", "initial_state"):
        assert off(got[name], want[name]) <= ROUNDED["other gradients"], name
    for name in ("step", "rates"):
        assert off(got[name], want[name]) <= ROUNDED[name], name


@pytest.mark.parametrize("modes", [16, 32])
@pytest.mark.parametrize("leap", [5e3, 1e4, 1e30])
def test_bfloat16_leaps_over_any_gap(leap, modes, off):
    inputs = drawn(2, 200, modes=modes, leap=leap)
    (y, state), got = gradients(frac_scan, inputs)
    want_y, want_state = scan_reference(**inputs)
    step = inputs["step"].unflatten(1, (-1, 8)).cumsum(2).flatten(1, 2)  # since the last leap or longer ago
    late = step >= leap
    assert off(y, want_y) <= ROUNDED["y"] and off(state, want_state) <= ROUNDED["state"]
    assert off(y[late], want_y[late]) <= ROUNDED["y"]
    assert all(x.isfinite().all() for x in got.values())


def test_bfloat16_begins_with_an_empty_state():
    inputs = drawn(2, 40)
    inputs["initial_state"].zero_()
    want = frac_scan(**inputs)
    del inputs["initial_state"]
    assert all(torch.equal(a, b) for a, b in zip(frac_scan(**inputs), want, strict=True))


def test_two_runs_of_bfloat16_are_equal_to_the_bit():
    inputs = drawn(2, 300)
    (one, first), (other, second) = (gradients(frac_scan, inputs) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert all(torch.equal(first[name], second[name]) for name in inputs)


@pytest.mark.parametrize("now", [0, 15, 16, 100, 255, 256, 298])
def test_what_comes_later_changes_no_bfloat16_output(now):
    inputs = drawn(1, 300)
    changed = {name: x.clone() for name, x in inputs.items()}
    for name in ("c", "b", "step", "v"):
        changed[name][:, now + 1 :] = changed[name][:, now + 1 :].abs() * 50 + 3
    before, after = (frac_scan(**each)[0] for each in (inputs, changed))
    assert torch.equal(before[:, : now + 1], after[:, : now + 1])
    assert not torch.equal(before[:, now + 1 :], after[:, now + 1 :])


def test_a_long_pass_is_that_of_its_parts(off):
    inputs = drawn(1, 131072, heads=2)
    y, state = frac_scan(**inputs)
    parts, carried = [], inputs["initial_state"]
    for part in torch.arange(131072).split(50_000):
        at = slice(int(part[0]), int(part[-1]) + 1)
        each = {name: inputs[name][:, at] for name in ("c", "b", "step", "v")}
        found, carried = frac_scan(**each, rates=inputs["rates"], initial_state=carried)
        parts.append(found)
    assert off(torch.cat(parts, 1), y) <= ROUNDED["y"] and off(carried, state) <= ROUNDED["state"]


def test_more_than_2_to_the_31_numbers(off):
    """The last of nine sequences lies beyond what 32 bits can address."""
    inputs = drawn(9, 262144, heads=16)
    y, state = frac_scan(**inputs)
    last = {name: x if name == "rates" else x[-1:].clone() for name, x in inputs.items()}
    want_y, want = frac_scan(**last)
    assert torch.equal(y[-1:], want_y) and torch.equal(state[-1:], want)


# The compiler itself does what torch warns of.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores:UserWarning")
@pytest.mark.parametrize("rounded", [False, True])
def test_a_compiled_layer_is_one_graph_of_the_same_numbers(rounded, off):
    layer = FracMixer(128, 4, 1, 16, (1.0, 4096.0), torch.Generator().manual_seed(0)).cuda()
    x = torch.randn(2, 300, 128, device="cuda")
    every = torch.ones(2, 300, device="cuda")
    tokens = Tokens(every.bool(), every, torch.randn(2, 300, 1, 2, device="cuda"))

    def outputs(x):
        with torch.autocast("cuda", torch.bfloat16, enabled=rounded):
            return layer(x, x, tokens, layer.empty(2))[0]

    want, got = (f(x) for f in (outputs, torch.compile(outputs, fullgraph=True)))
    assert got.dtype == (torch.bfloat16 if rounded else torch.float32)
    assert off(got, want) <= (1e-2 if rounded else 1e-5)


def test_a_pass_and_its_gradient_can_be_captured(off):
    inputs = {name: x.requires_grad_() for name, x in drawn(2, 300).items()}

    def learn():
        y, _ = frac_scan(**inputs)
        return torch.autograd.grad(y.float().square().mean(), inputs.values())

    want = learn()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = learn()
    graph.replay()
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))
