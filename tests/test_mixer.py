"""Laws of one FRAC layer: its kernel is a power law, it reads real time, and empty rows leave it alone."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import functional_call

from fracts.mixer import FracMixer, MixerState, Tokens

WIDTH, HEADS, FREQUENCIES, MODES = 8, 2, 2, 16
OMEGA = 2 * np.pi * torch.tensor([1 / 24, 1 / 5], dtype=torch.float64)


def make_mixer(timescales=(1.0, 131072.0)):
    return FracMixer(WIDTH, HEADS, FREQUENCIES, MODES, timescales, torch.Generator().manual_seed(0)).double()


def tokens_at(times, observed):
    """Tokens of one series at `times` (time,)."""
    angle = times[:, None] * OMEGA
    gap = times.diff(prepend=times[:1])
    return Tokens(observed[None], gap[None], torch.stack([angle.cos(), angle.sin()], -1)[None])


def run(mixer, times, observed, seed=0, state=None):
    draws = torch.Generator().manual_seed(seed)
    value, gate = torch.randn(2, 1, len(times), WIDTH, dtype=torch.float64, generator=draws)
    with torch.no_grad():
        return mixer(value, gate, tokens_at(times, observed), state or mixer.empty(1))


def kernel(mixer, lags, channel):
    """Response of output `channel` before the gate, `lags` after a single value, up to a constant."""
    with torch.no_grad():
        for layer in (mixer.gate, mixer.out):
            layer.weight.zero_()
        mixer.out.weight[0, channel] = 1.0
        mixer.controls.weight.zero_()  # controls as they start: contents 0, one order a head
        mixer.value.weight.fill_(1e-6)  # so small that the bound on the outputs is not felt
    times = 5.3 + torch.cat([torch.zeros(1, dtype=torch.float64), lags])
    observed = torch.arange(len(times)) == 0
    ones = torch.ones(1, len(times), WIDTH, dtype=torch.float64)
    with torch.no_grad():
        return mixer(ones, ones, tokens_at(times, observed), mixer.empty(1))[0][0, 1:, 0].numpy()


def orders(mixer):
    """The exponent that each head starts with."""
    heads = HEADS + FREQUENCIES
    return 2 * torch.sigmoid(mixer.controls.bias[heads : 2 * heads]).detach().numpy()


@pytest.mark.parametrize("head", range(HEADS))
def test_a_plain_head_starts_as_a_power_law(head):
    mixer = make_mixer()
    t = torch.from_numpy(np.geomspace(1, 1e4, 60))
    exponent = orders(mixer)[head]
    response = kernel(mixer, t, channel=head * 2 * mixer.channels)
    law = response * t.numpy() ** exponent
    assert np.abs(law / law.mean() - 1).max() < 0.03
    slope = np.polyfit(t.log().numpy(), np.log(response), 1)[0]
    assert slope == pytest.approx(-exponent, abs=0.005)


@pytest.mark.parametrize("frequency", range(FREQUENCIES))
def test_a_seasonal_head_starts_as_a_power_law_times_a_cosine_and_a_sine(frequency):
    t = torch.from_numpy(np.geomspace(1, 1e4, 200))
    exponent = orders(make_mixer())[HEADS + frequency]
    channels = make_mixer().channels
    first = (HEADS + frequency) * 2 * channels
    along, across = (kernel(make_mixer(), t, channel=first + part * channels) for part in (0, 1))
    angle = (OMEGA[frequency] * t).numpy()
    law = np.hypot(along, across) * t.numpy() ** exponent
    assert np.abs(law / law.mean() - 1).max() < 0.03
    size = np.hypot(along, across)
    np.testing.assert_allclose(along / size, np.cos(angle), atol=1e-9)
    np.testing.assert_allclose(across / size, np.sin(angle), atol=1e-9)


@st.composite
def rows(draw):
    """Times with gaps and which of the rows hold a value."""
    length = draw(st.integers(2, 40))
    gaps = draw(st.lists(st.sampled_from([1.0, 1.0, 2.5, 700.0]), min_size=length, max_size=length))
    observed = draw(st.lists(st.booleans(), min_size=length, max_size=length))
    return torch.tensor(gaps, dtype=torch.float64).cumsum(0), torch.tensor(observed)


@given(rows(), st.integers(0, 1000), st.data())
def test_a_pass_may_be_cut_anywhere(random_weights, made, seed, data):
    times, observed = made
    mixer = make_mixer()
    random_weights(mixer, seed)
    draws = torch.Generator().manual_seed(seed)
    value, gate = torch.randn(2, 1, len(times), WIDTH, dtype=torch.float64, generator=draws)
    tokens = tokens_at(times, observed)
    cut = data.draw(st.integers(1, len(times) - 1))
    with torch.no_grad():
        whole, end = mixer(value, gate, tokens, mixer.empty(1))
        first, middle = mixer(
            value[:, :cut], gate[:, :cut], Tokens(*(x[:, :cut] for x in tokens)), mixer.empty(1)
        )
        second, last = mixer(value[:, cut:], gate[:, cut:], Tokens(*(x[:, cut:] for x in tokens)), middle)
    torch.testing.assert_close(torch.cat([first, second], 1), whole, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(last, end, rtol=1e-10, atol=1e-12)


@given(st.integers(0, 1000), st.integers(0, 30))
def test_a_row_does_not_see_what_comes_later(random_weights, seed, row):
    mixer = make_mixer().float()
    random_weights(mixer, seed)
    draws = torch.Generator().manual_seed(seed)
    value, gate = torch.randn(2, 1, 40, WIDTH, generator=draws)
    observed = torch.rand(40, generator=draws) < 0.8
    tokens = tokens_at(torch.arange(40.0, dtype=torch.float64), observed)
    tokens = tokens._replace(gap=tokens.gap.float(), wave=tokens.wave.float())
    changed_value, changed_gate, changed = value.clone(), gate.clone(), tokens.observed.clone()
    changed_value[:, row + 1 :] *= -3
    changed_gate[:, row + 1 :] += 1
    changed[:, row + 1 :] = ~changed[:, row + 1 :]
    with torch.no_grad():
        before, _ = mixer(value, gate, tokens, mixer.empty(1))
        after, _ = mixer(changed_value, changed_gate, tokens._replace(observed=changed), mixer.empty(1))
    assert torch.equal(before[:, : row + 1], after[:, : row + 1])
    assert not torch.equal(before[:, row + 1 :], after[:, row + 1 :])


def test_a_row_without_a_value_only_lets_the_modes_decay(random_weights):
    mixer = make_mixer()
    random_weights(mixer, 3)
    _, state = run(mixer, torch.arange(6.0, dtype=torch.float64), torch.ones(6, dtype=torch.bool))
    tokens = Tokens(torch.tensor([[False]]), torch.tensor([[7.5]]).double(), torch.ones(1, 1, FREQUENCIES, 2))
    x = torch.randn(1, 1, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        _, after = mixer(x, x, tokens._replace(wave=tokens.wave.double()), state)
    fade = torch.exp(-7.5 * state.hold[..., None] * mixer.rates)
    torch.testing.assert_close(after.modes, fade[..., None] * state.modes, rtol=1e-12, atol=0)
    assert torch.equal(after.hold, state.hold)
    assert (state.hold != 1).all() and not torch.equal(after.modes, state.modes)


@settings(max_examples=5)
@given(st.integers(0, 1000))
def test_ten_thousand_empty_rows_are_one_gap_or_two_halves_of_it(random_weights, seed):
    mixer = make_mixer()
    random_weights(mixer, seed)
    _, state = run(mixer, torch.arange(20.0, dtype=torch.float64), torch.ones(20, dtype=torch.bool), seed)
    ends = []
    for count in (1, 2, 10_000):
        times = torch.linspace(0, 10_000, count + 1, dtype=torch.float64)
        tokens = tokens_at(times, torch.zeros(count + 1, dtype=torch.bool))
        noise = torch.randn(1, count + 1, WIDTH, dtype=torch.float64)
        with torch.no_grad():
            ends.append(mixer(noise, noise, tokens, state)[1])
    size = state.modes.abs().max()
    for end in ends[1:]:
        torch.testing.assert_close(end.modes, ends[0].modes, rtol=0, atol=1e-12 * size.item())
        assert torch.equal(end.hold, state.hold)


def test_what_is_written_does_not_depend_on_the_gap_before_it(random_weights):
    mixer = make_mixer()
    random_weights(mixer, 5)
    x = torch.randn(1, 1, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    tokens = tokens_at(torch.zeros(1, dtype=torch.float64), torch.tensor([True]))
    with torch.no_grad():
        ends = [
            mixer(x, x, tokens._replace(gap=torch.tensor([[gap]]).double()), mixer.empty(1))[1].modes
            for gap in (0.0, 1.0, 5000.0)
        ]
    for end in ends[1:]:
        torch.testing.assert_close(end, ends[0], rtol=1e-14, atol=0)
    assert ends[0].abs().max() > 0


@pytest.mark.slow
def test_gradients_pass_finite_differences(random_weights):
    mixer = FracMixer(8, 2, 1, 4, (1.0, 100.0), torch.Generator()).double()
    random_weights(mixer, 0)
    draws = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=draws, dtype=torch.float64)

    tokens = Tokens(torch.rand(2, 6, generator=draws) < 0.7, 3 * normal(2, 6).abs(), normal(2, 6, 1, 2))
    state = normal(2, 3, 4, 4), normal(2, 3).abs()
    names = [name for name, _ in mixer.named_parameters()]

    def layer(value, gate, modes, hold, *weights):
        arguments = value, gate, tokens, MixerState(modes, hold)
        mixed, after = functional_call(mixer, dict(zip(names, weights, strict=True)), arguments)
        return mixed, *after

    inputs = [normal(2, 6, 8), normal(2, 6, 8), *state, *(weight.detach() for weight in mixer.parameters())]
    assert torch.autograd.gradcheck(layer, [x.requires_grad_() for x in inputs])


def test_a_long_memory_does_not_silence_the_short_ones():
    """Each head is bounded by itself."""
    mixer = make_mixer()
    with torch.no_grad():
        mixer.controls.weight.zero_()
        mixer.controls.bias[HEADS + FREQUENCIES :].zero_()  # all of one order
        mixer.out.weight.copy_(torch.eye(*mixer.out.weight.shape))
        mixer.gate.weight.zero_()
    times = torch.arange(30.0, dtype=torch.float64)
    seen = torch.ones(30, dtype=torch.bool)
    _, state = run(mixer, times, seen)
    loud = state.modes.clone()
    loud[:, 0] *= 1e6
    last, _ = run(mixer, times[-1:], seen[-1:], state=state)
    after, _ = run(mixer, times[-1:], seen[-1:], state=state._replace(modes=loud))
    per_head = 2 * mixer.channels
    torch.testing.assert_close(after[..., per_head:], last[..., per_head:], rtol=1e-12, atol=0)
    assert not torch.allclose(after[..., :per_head], last[..., :per_head], rtol=0.01)
    assert after.abs().max() < 0.5 * per_head**0.5 + 1e-9  # of a gate half open


@pytest.mark.parametrize("gap", [0.0, 1e-9, 1e9])
def test_gradients_are_finite_for_any_gap(random_weights, gap):
    mixer = make_mixer().float()
    random_weights(mixer, 0)
    x = torch.randn(1, 20, WIDTH, generator=torch.Generator().manual_seed(0), requires_grad=True)
    tokens = Tokens(
        torch.ones(1, 20, dtype=torch.bool), torch.full((1, 20), gap), torch.ones(1, 20, FREQUENCIES, 2)
    )
    mixed, _ = mixer(x, x, tokens, mixer.empty(1))
    mixed.square().sum().backward()
    gradients = [x.grad, *(p.grad for p in mixer.parameters())]
    assert all(g.isfinite().all() for g in gradients) and x.grad.abs().max() > 0


def test_states_of_a_batch_do_not_mix(random_weights):
    mixer = make_mixer()
    random_weights(mixer, 1)
    times = torch.arange(12.0, dtype=torch.float64)
    tokens = tokens_at(times, torch.ones(12, dtype=torch.bool))
    both = Tokens(*(torch.cat([x, x]) for x in tokens))
    both.observed[1, 5:] = False
    x = torch.randn(2, 12, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        together, state = mixer(x, x, both, mixer.empty(2))
        for i in range(2):
            alone = Tokens(*(t[i : i + 1] for t in both))
            y, end = mixer(x[i : i + 1], x[i : i + 1], alone, mixer.empty(1))
            torch.testing.assert_close(together[i : i + 1], y, rtol=1e-12, atol=1e-13)
            torch.testing.assert_close(
                MixerState(state.modes[i : i + 1], state.hold[i : i + 1]), end, rtol=1e-12, atol=1e-13
            )


def test_under_autocast_a_layer_keeps_time_and_memory_in_float32(off_by=2e-2):
    layer = FracMixer(32, 2, 1, 8, (1.0, 1024.0), torch.Generator().manual_seed(0))
    x, every = torch.randn(2, 20, 32, generator=torch.Generator().manual_seed(1)), torch.ones(2, 20)
    tokens = Tokens(every.bool(), every, torch.ones(2, 20, 1, 2))
    want, _ = layer(x, x, tokens, layer.empty(2))
    with torch.autocast("cpu", torch.bfloat16):
        y, state = layer(x, x, tokens, layer.empty(2))
    assert y.dtype == torch.bfloat16 and {part.dtype for part in state} == {torch.float32}
    assert (y - want).norm() <= off_by * want.norm()


# The compiler itself does what torch warns of.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.slow
def test_a_layer_is_one_graph_for_a_compiler(monkeypatch):
    """By the op of the GPU, in Triton's interpreter."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    room = pytest.importorskip("fracts.kernels.scan_triton")
    monkeypatch.setattr("fracts.mixer.scan", room.scan_triton)
    layer = FracMixer(16, 1, 0, 4, (1.0, 64.0), torch.Generator().manual_seed(0))
    x, every = torch.randn(1, 9, 16, generator=torch.Generator().manual_seed(1)), torch.ones(1, 9)
    tokens = Tokens(every.bool(), every, torch.ones(1, 9, 0, 2))

    def outputs(x):
        return layer(x, x, tokens, layer.empty(1))[0]

    compiled = torch.compile(outputs, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), outputs(x))
