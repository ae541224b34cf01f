"""Laws of every mixer in the paper's comparison: cut anywhere, causal, odd in values, shut exactly."""

import doctest

import mixers
import pytest
import torch
from mixers import Attention, GatedDeltaNet, Mamba2, Mamba3

WIDTH, TIME = 16, 150  # two full chunks and a part of one
SIZES = {
    Attention: {"n_heads": 2},
    Mamba2: {"n_heads": 2, "d_state": 8},
    Mamba3: {"n_heads": 2, "d_state": 8},
    GatedDeltaNet: {"n_heads": 2, "head_dim": 6},
}
SCALARS = {Mamba2: 1, Mamba3: 3, GatedDeltaNet: 2}  # gates a head, in the last rows of their weights
every_mixer = pytest.mark.parametrize("kind", SIZES)
recurrent_mixers = pytest.mark.parametrize("kind", SCALARS)


def make(kind, seed=0, linear_value=False, hard_gates=False):
    draws = torch.Generator().manual_seed(seed)
    return kind(WIDTH, **SIZES[kind], linear_value=linear_value, hard_gates=hard_gates, generator=draws)


def features(time=TIME, seed=1, scale=1.0, dtype=torch.float64):
    """Values and gates, (batch, time, width) each."""
    draws = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(2, 2, time, WIDTH, generator=draws, dtype=dtype)).unbind()


def assert_states_equal(got, want, tolerance=1e-11):
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def parts(x, cuts):
    return x.tensor_split(cuts, 1)


@every_mixer
@pytest.mark.parametrize("linear_value", [False, True])
@pytest.mark.parametrize("cuts", [(1,), (2, 3), (64,), (63, 65), (3, 100, 101, 149)])
def test_a_sequence_cut_anywhere_gives_the_same(kind, linear_value, cuts):
    mixer = make(kind, linear_value=linear_value).double()
    value, gate = features()
    with torch.no_grad():
        whole, end = mixer(value, gate)
        state, ys = None, []
        for v, g in zip(parts(value, cuts), parts(gate, cuts), strict=True):
            y, state = mixer(v, g, state)
            ys.append(y)
    torch.testing.assert_close(torch.cat(ys, 1), whole, rtol=1e-11, atol=1e-11)
    assert_states_equal(state, end)


@every_mixer
@pytest.mark.parametrize("cuts", [(1,), (63, 65), (3, 100, 101, 149)])
def test_absorbing_moves_the_state_as_a_pass_does(kind, cuts):
    mixer = make(kind, hard_gates=True).double()
    value, gate = features()
    with torch.no_grad():
        _, end = mixer(value, gate)
        state = None
        for v, g in zip(parts(value, cuts), parts(gate, cuts), strict=True):
            state = mixer.absorb(v, g, state)
    assert_states_equal(state, end)


@every_mixer
@pytest.mark.parametrize("late", [1, 63, 64, 130])
def test_no_output_sees_a_later_step(kind, late):
    mixer = make(kind).double()
    value, gate = features()
    with torch.no_grad():
        before, _ = mixer(value, gate)
        value[:, late:], gate[:, late:] = 7.0, -7.0
        after, _ = mixer(value, gate)
    torch.testing.assert_close(after[:, :late], before[:, :late], rtol=1e-11, atol=1e-11)
    assert (after[:, late:] - before[:, late:]).abs().amin((0, 2)).max() > 1e-3


@recurrent_mixers
@pytest.mark.parametrize("hard_gates", [False, True])
def test_with_a_linear_value_path_the_memory_is_linear_in_the_values(kind, hard_gates):
    mixer = make(kind, linear_value=True, hard_gates=hard_gates).double()
    one, gate = features()
    other, _ = features(seed=2)
    with torch.no_grad():
        mixed = mixer.absorb(2 * one - 3 * other, gate).memory
        apart = 2 * mixer.absorb(one, gate).memory - 3 * mixer.absorb(other, gate).memory
        y, _ = mixer(one, gate)
        opposite, _ = mixer(-one, gate)
    torch.testing.assert_close(mixed, apart, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(opposite, -y, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kind", [Mamba2, GatedDeltaNet])
def test_the_published_value_path_is_not_odd(kind):
    mixer = make(kind).double()
    value, gate = features()
    with torch.no_grad():
        memory, opposite = mixer.absorb(value, gate).memory, mixer.absorb(-value, gate).memory
    assert (memory + opposite).norm() > 0.1 * memory.norm()


def shutting(mixer):
    """A gate token at which the raw steps, rates and write strengths are all -4."""
    scalars = mixer.gates.weight[-SCALARS[type(mixer)] * mixer.n_heads :]
    return torch.linalg.lstsq(scalars, torch.full((len(scalars), 1), -4.0, dtype=scalars.dtype)).solution[
        :, 0
    ]


@recurrent_mixers
@pytest.mark.parametrize("hard_gates", [False, True])
def test_only_hard_gates_leave_the_memory_exactly_as_it_was(kind, hard_gates):
    mixer = make(kind, linear_value=True, hard_gates=hard_gates).double()
    value, gate = features()
    with torch.no_grad():
        state = mixer.absorb(value, gate)
        silent = shutting(mixer).expand_as(gate)
        later = mixer.absorb(value, silent, state)
    assert torch.equal(later.memory, state.memory) == hard_gates


@every_mixer
@pytest.mark.parametrize("favours", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
def test_outputs_and_gradients_are_finite(kind, favours, scale):
    mixer = make(kind, linear_value=favours[0], hard_gates=favours[1])
    value, gate = features(scale=scale, dtype=torch.float32)
    value.requires_grad_(), gate.requires_grad_()
    y, state = mixer(value, gate)
    (y.square().mean() + sum(part.square().mean() for part in state)).backward()
    for part in (y, *state, value.grad, gate.grad, *(weights.grad for weights in mixer.parameters())):
        assert torch.isfinite(part).all()


@every_mixer
def test_single_precision_keeps_its_digits_over_a_long_stream(kind):
    mixer = make(kind, linear_value=True)
    value, gate = features(time=20_000, dtype=torch.float32)
    gate = gate + 1  # so that what is summed over the steps, such as an angle, grows

    def last(dtype):
        v, g = value.to(dtype), gate.to(dtype)
        return mixer.to(dtype)(v[:, -9:], g[:, -9:], mixer.absorb(v[:, :-9], g[:, :-9]))[0]

    with torch.no_grad():
        single, double = last(torch.float32), last(torch.float64)
    assert (single - double).norm() < 5e-6 * double.norm()


@every_mixer
def test_weights_come_from_the_generator_alone(kind):
    before = torch.get_rng_state()
    one, same, other = make(kind), make(kind), make(kind, seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert not torch.equal(one.value.weight, other.value.weight)


@pytest.mark.parametrize("kind", [Attention, Mamba2, Mamba3])
def test_heads_that_do_not_divide_the_features_are_refused(kind):
    with pytest.raises(ValueError, match="cannot be shared evenly by 3 heads"):
        kind(
            WIDTH,
            **{**SIZES[kind], "n_heads": 3},
            linear_value=False,
            hard_gates=False,
            generator=torch.Generator(),
        )


@pytest.mark.parametrize(
    ("kind", "sizes"), [(Attention, {"n_heads": 16}), (Mamba3, {"n_heads": 2, "d_state": 6})]
)
def test_features_that_cannot_turn_in_pairs_are_refused(kind, sizes):
    with pytest.raises(ValueError, match="turn in pairs: choose"):
        kind(WIDTH, **sizes, linear_value=False, hard_gates=False, generator=torch.Generator())


def test_the_example_of_the_interface_runs():
    outcome = doctest.testmod(mixers)
    assert outcome.attempted == 7
    assert outcome.failed == 0


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.gpu
@needs_gpu
@every_mixer
def test_a_captured_pass_gives_the_gradients_of_the_cpu(kind):
    mixer, (value, gate) = make(kind), features(dtype=torch.float32)
    mixer(value, gate)[0].square().mean().backward()
    want = [weights.grad for weights in mixer.parameters()]
    mixer.zero_grad()
    mixer.cuda()
    value, gate = value.cuda(), gate.cuda()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        mixer(value, gate)[0].square().mean().backward()
    torch.cuda.current_stream().wait_stream(stream)
    mixer.zero_grad()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        mixer(value, gate)[0].square().mean().backward()
    graph.replay()
    for weights, expected in zip(mixer.parameters(), want, strict=True):
        torch.testing.assert_close(weights.grad.cpu(), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.gpu
@needs_gpu
@every_mixer
def test_a_stream_on_the_gpu_gives_the_outputs_of_the_cpu(kind):
    mixer, (value, gate) = make(kind), features(dtype=torch.float32)
    with torch.no_grad():
        want = mixer(value, gate)[0][:, 100:]
        mixer.cuda()
        value, gate = value.cuda(), gate.cuda()
        got, _ = mixer(value[:, 100:], gate[:, 100:], mixer.absorb(value[:, :100], gate[:, :100]))
    torch.testing.assert_close(got.cpu(), want, rtol=1e-4, atol=1e-5)
