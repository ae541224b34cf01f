"""Every mixer against its defining recurrence, one step at a time, and against outputs of published code.

`references.npz` holds features, weights and outputs of whole layers of width 8. The outputs come from
mamba-ssm 2.3.2.post1 (`mamba_split_conv1d_scan_ref` over `selective_scan_ref` and `rms_norm_ref`) for Mamba2,
from state-spaces/mamba 041c087 (`mamba3_siso_step_ref` of its tests, float64) for Mamba3, and from
fla-core 0.6.0 (`naive_recurrent_gated_delta_rule` and `naive_gdn_gate`, float32) for GatedDeltaNet. What lies
around those functions (projections, the short convolution) was written out in float64.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from mixers import Attention, GatedDeltaNet, Mamba2, Mamba3
from torch.nn import functional as F

WIDTH, TIME = 16, 150  # two full chunks and a part of one


def sigmoid_or_hard(raw, hard):
    return ((raw + 3) / 6).clamp(0, 1) if hard else torch.sigmoid(raw)


def softplus_or_hard(raw, bias, hard):
    soft = torch.log1p(torch.exp(raw + bias))
    return (soft - torch.log1p(torch.exp(bias - 1))).clamp(min=0) if hard else soft


def silu(x):
    return x * torch.sigmoid(x)


def rms(x, weight):
    return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight


def convolved(conv, x):
    """SiLU of a causal filter over the last four steps, (batch, time, channels)."""
    y = torch.zeros_like(x) if conv.bias is None else conv.bias.expand(x.shape).clone()
    for lag in range(4):
        y[:, lag:] += conv.weight[:, 0, 3 - lag] * x[:, : x.shape[1] - lag]
    return silu(y)


def value_query_key(mixer, value, query_key, linear_value):
    """Values, queries and keys; the convolution passes all of them, or leaves out a linear value path."""
    values = value @ mixer.value.weight.T
    if linear_value:
        return values, *convolved(mixer.conv, query_key).chunk(2, -1)
    both = convolved(mixer.conv, torch.cat([values, query_key], -1))
    values, query_key = both[..., : values.shape[-1]], both[..., values.shape[-1] :]
    return values, *query_key.chunk(2, -1)


def attention(mixer, value, gate, linear_value, hard_gates):
    """Softmax over all steps so far; rotation as a product of complex numbers."""
    heads = mixer.n_heads

    def turned(x):
        pairs = torch.view_as_complex(x.unflatten(-1, (heads, -1, 2)).contiguous())
        frequency = 10_000.0 ** (-torch.arange(pairs.shape[-1], dtype=torch.float64) / pairs.shape[-1])
        angle = torch.arange(x.shape[1], dtype=torch.float64)[:, None, None] * frequency
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)

    query, key = map(turned, (gate @ mixer.query_key.weight.T).chunk(2, -1))
    values = (value @ mixer.value.weight.T).unflatten(-1, (heads, -1))
    ys = []
    for t in range(gate.shape[1]):
        scores = torch.einsum("bhd,bshd->bhs", query[:, t], key[:, : t + 1]) / query.shape[-1] ** 0.5
        ys.append(torch.einsum("bhs,bshd->bhd", scores.softmax(-1), values[:, : t + 1]).flatten(1))
    return torch.stack(ys, 1) @ mixer.out.weight.T


def mamba2(mixer, value, gate, linear_value, hard_gates):
    heads, inner = len(mixer.skip), mixer.value.weight.shape[0]
    projected = gate @ mixer.gates.weight.T
    z, query_key, raw = projected[..., :inner], projected[..., inner:-heads], projected[..., -heads:]
    values, query, key = value_query_key(mixer, value, query_key, linear_value)
    values = values.unflatten(-1, (heads, -1))
    step = softplus_or_hard(raw, mixer.step_bias, hard_gates)
    memory, ys = 0.0, []
    for t in range(gate.shape[1]):
        decay = torch.exp(-step[:, t] * mixer.log_rate.exp())[..., None, None]
        write = step[:, t, :, None, None] * key[:, t, None, :, None] * values[:, t, :, None, :]
        memory = decay * memory + write
        ys.append((query[:, t, None, :, None] * memory).sum(-2) + mixer.skip[:, None] * values[:, t])
    return rms(torch.stack(ys, 1).flatten(2) * silu(z), mixer.norm.weight) @ mixer.out.weight.T


def mamba3(mixer, value, gate, linear_value, hard_gates):
    """The trapezoidal rule written out; the memory is turned, the keys are not."""
    heads, inner = len(mixer.skip), mixer.value.weight.shape[0]
    n = mixer.query_bias.shape[1]
    z, query, key, turn, step, rate, late = (gate @ mixer.gates.weight.T).split(
        [inner, n, n, n // 4, heads, heads, heads], -1
    )
    query = rms(query, mixer.query_norm.weight)[:, :, None] + mixer.query_bias
    key = rms(key, mixer.key_norm.weight)[:, :, None] + mixer.key_bias
    values = (value @ mixer.value.weight.T).unflatten(-1, (heads, -1))
    step = softplus_or_hard(step, mixer.step_bias, hard_gates)
    rate = softplus_or_hard(rate, torch.zeros_like(mixer.step_bias), hard_gates).clamp(
        min=0.0 if hard_gates else 1e-4
    )
    late = torch.sigmoid(late)

    def turned_back(state, angle):
        """`state` (batch, heads, n, channels), its first half of key features turned by minus `angle`."""
        turning = torch.complex(state[:, :, 0 : n // 2 : 2], state[:, :, 1 : n // 2 : 2])
        turning = torch.view_as_real(turning * torch.exp(-1j * angle)[..., None])
        return torch.cat([turning.movedim(-1, -2).flatten(2, 3), state[:, :, n // 2 :]], 2)

    memory = torch.zeros(len(gate), heads, n, inner // heads, dtype=gate.dtype)
    before, ys = torch.zeros_like(memory), []
    for t in range(gate.shape[1]):
        dt, share = step[:, t, :, None, None], late[:, t, :, None, None]
        decay = torch.exp(-rate[:, t, :, None, None] * dt)
        old = decay * (memory + (1 - share) * dt * before)
        old = turned_back(old, torch.pi * torch.tanh(turn[:, t, None]) * step[:, t, :, None])
        before = key[:, t, ..., None] * values[:, t, :, None, :]
        memory = old + share * dt * before
        ys.append((query[:, t, ..., None] * memory).sum(-2) + mixer.skip[:, None] * values[:, t])
    return (torch.stack(ys, 1).flatten(2) * silu(z)) @ mixer.out.weight.T


def gated_delta(mixer, value, gate, linear_value, hard_gates):
    heads, values = len(mixer.step_bias), mixer.value.weight.shape[0]
    keys = mixer.gates.weight.shape[0] - values - 2 * heads
    z, query_key, raw, write = (gate @ mixer.gates.weight.T).split([values, keys, heads, heads], -1)
    v, query, key = (
        x.unflatten(-1, (heads, -1)) for x in value_query_key(mixer, value, query_key, linear_value)
    )
    query, key = (x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt() for x in (query, key))
    decay = torch.exp(-mixer.log_rate.exp() * softplus_or_hard(raw, mixer.step_bias, hard_gates))
    write = sigmoid_or_hard(write, hard_gates)
    memory, ys = torch.zeros(len(gate), heads, key.shape[-1], v.shape[-1], dtype=gate.dtype), []
    for t in range(gate.shape[1]):
        k = key[:, t, ..., None]
        memory = decay[:, t, :, None, None] * memory
        held = (k * memory).sum(-2)
        memory = memory + write[:, t, :, None, None] * k * (v[:, t] - held)[..., None, :]
        ys.append((query[:, t, ..., None] * memory).sum(-2) / key.shape[-1] ** 0.5)
    y = rms(torch.stack(ys, 1), mixer.norm.weight) * silu(z).unflatten(-1, (heads, -1))
    return y.flatten(2) @ mixer.out.weight.T


CASES = [
    pytest.param(attention, Attention, {"n_heads": 2}, id="Attention"),
    pytest.param(mamba2, Mamba2, {"n_heads": 2, "d_state": 8}, id="Mamba2"),
    pytest.param(mamba3, Mamba3, {"n_heads": 2, "d_state": 8}, id="Mamba3"),
    pytest.param(gated_delta, GatedDeltaNet, {"n_heads": 2, "head_dim": 6}, id="GatedDeltaNet"),
]


@pytest.mark.parametrize("hard_gates", [False, True])
@pytest.mark.parametrize("linear_value", [False, True])
@pytest.mark.parametrize(("loop", "kind", "sizes"), CASES)
def test_a_mixer_is_its_recurrence(loop, kind, sizes, linear_value, hard_gates):
    draws = torch.Generator().manual_seed(0)
    mixer = kind(WIDTH, **sizes, linear_value=linear_value, hard_gates=hard_gates, generator=draws)
    value, gate = torch.randn(2, 2, TIME, WIDTH, generator=draws)
    with torch.no_grad():
        single, _ = mixer(value, gate)
        mixer.double()
        double, _ = mixer(value.double(), gate.double())
        want = loop(mixer, value.double(), gate.double(), linear_value, hard_gates)
    torch.testing.assert_close(single.double(), want, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(double, want, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("loop", "kind", "sizes"), CASES)
def test_gradients_are_those_of_the_recurrence(loop, kind, sizes):
    draws = torch.Generator().manual_seed(0)
    mixer = kind(WIDTH, **sizes, linear_value=False, hard_gates=False, generator=draws).double()
    value, gate, weight = torch.randn(3, 2, 70, WIDTH, generator=draws, dtype=torch.float64)
    value.requires_grad_(), gate.requires_grad_()
    inputs = [value, gate, *mixer.parameters()]
    got = torch.autograd.grad((mixer(value, gate)[0] * weight).sum(), inputs)
    want = torch.autograd.grad((loop(mixer, value, gate, False, False) * weight).sum(), inputs)
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        (Mamba2, {"n_heads": 2, "d_state": 4}),
        (Mamba3, {"n_heads": 2, "d_state": 8}),
        (GatedDeltaNet, {"n_heads": 2, "head_dim": 4}),
    ],
)
def test_a_mixer_is_the_published_layer(kind, sizes):
    with np.load(Path(__file__).with_name("references.npz")) as stored:
        mine = {
            name.removeprefix(f"{kind.__name__}."): torch.from_numpy(stored[name])
            for name in stored.files
            if name.startswith(f"{kind.__name__}.")
        }
    features, want = mine.pop("x"), mine.pop("y")
    mixer = kind(8, **sizes, linear_value=False, hard_gates=False, generator=torch.Generator())
    mixer.load_state_dict(mine)
    with torch.no_grad():
        y, _ = mixer(features, features)
    torch.testing.assert_close(y.double(), want.double(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_keys_do_not_disturb_the_delta_rule(dtype):
    # Powers of the overlap of equal keys grow like binomials; solving by them would lose all digits.
    draws = torch.Generator().manual_seed(0)
    favours = {"linear_value": True, "hard_gates": True}
    mixer = GatedDeltaNet(WIDTH, n_heads=2, head_dim=6, **favours, generator=draws).to(dtype)
    value = torch.randn(1, TIME, WIDTH, generator=draws, dtype=torch.float64)
    gate = torch.randn(1, 1, WIDTH, generator=draws, dtype=torch.float64).expand(1, TIME, -1)
    with torch.no_grad():
        y, _ = mixer(value.to(dtype), gate.to(dtype))
        want = gated_delta(mixer.double(), value, gate, True, True)
    assert F.mse_loss(y.double(), want).sqrt() < (1e-5 if dtype == torch.float32 else 1e-12)
