"""The numpy step says what the torch pass says, for any row, and follows every change of the weights."""

import copy
import gc
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from fracts import online
from fracts.encoder import FracEncoder
from fracts.forecasts import QUANTILES
from fracts.heads import PARTS, QuantileHead
from fracts.network import FracNetwork, as_arrays, as_state
from fracts.online import encode_row, head_row

ROUNDING = {torch.float32: 1e-5, torch.float64: 1e-12}


def make_network(random_weights, seed=0, *, n_layers=2, n_frequencies=2):
    encoder = FracEncoder(16, n_layers, 2, n_frequencies, 8, (1.0, 1e4), torch.Generator().manual_seed(seed))
    draws = torch.Generator().manual_seed(seed)
    errors = torch.randn(3, 4, len(QUANTILES), generator=draws).sort(-1).values
    head = QuantileHead(16, torch.from_numpy(QUANTILES), errors)
    network = FracNetwork(encoder, head, 2 * np.pi * np.arange(1, n_frequencies + 1) / 24)
    random_weights(network, seed)
    return network


def torch_row(network, state, u, time, gap):
    """The same row by the torch pass."""
    before = as_state(state, len(network.encoder.mixers), network.encoder.nothing.dtype)
    times, gaps = (torch.from_numpy(np.broadcast_to(x, u.shape).copy())[:, None] for x in (time, gap))
    with torch.no_grad():
        return as_arrays(network.encode(torch.from_numpy(u)[:, None], times, gaps, before)[1])


def run(network, step, rows, batch=1, seed=0):
    """The state after `rows` rows of random values, gaps and missing values."""
    draws = np.random.default_rng(seed)
    state, time = as_arrays(network.encoder.empty(batch)), 0.0
    for _ in range(rows):
        gap = float(draws.choice([0.0, 1.0, 1.0, 3.5, 900.0]))
        time += gap
        u = np.where(draws.random(batch) < 0.25, np.nan, draws.normal(size=batch) * 2)
        state = step(network, state, u, np.array([time]), np.array([gap]))
    return state


def assert_same(found, expected, tolerance):
    """Equal arrays, each relative to its own size."""
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        size = np.abs(array).max(initial=0)
        np.testing.assert_allclose(found[name], array, rtol=0, atol=tolerance * size, err_msg=name)


@settings(max_examples=20)
@given(
    st.integers(0, 1000),
    st.integers(1, 3),
    st.integers(0, 3),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_the_numpy_step_equals_the_torch_pass(random_weights, seed, n_layers, n_frequencies, batch, dtype):
    network = make_network(random_weights, seed, n_layers=n_layers, n_frequencies=n_frequencies)
    if dtype == torch.float64:
        network.double()
    found, expected = (run(network, step, 20, batch, seed) for step in (encode_row, torch_row))
    assert_same(found, expected, ROUNDING[dtype])
    assert np.abs(found["layer_0_modes"]).max() > 1e-4


def test_every_series_may_have_a_time_of_its_own(random_weights):
    network = make_network(random_weights).double()
    state = run(network, encode_row, 5, batch=2)
    u, time, gap = np.array([0.4, np.nan]), np.array([905.0, 1e6]), np.array([1.0, 77.0])
    both = encode_row(network, state, u, time, gap)
    for i in range(2):
        own = slice(i, i + 1)
        alone = encode_row(network, {k: x[own] for k, x in state.items()}, u[own], time[own], gap[own])
        assert_same({k: x[own] for k, x in both.items()}, alone, 1e-13)
    assert_same(both, torch_row(network, state, u, time, gap), 1e-12)


def test_a_row_without_a_value_moves_the_decay_alone(random_weights):
    network = make_network(random_weights).double()
    state = run(network, encode_row, 10)
    after = encode_row(network, state, np.array([np.nan]), np.array([50.0]), np.array([4.0]))
    for i, mixer in enumerate(network.encoder.mixers):
        modes, hold = f"layer_{i}_modes", f"layer_{i}_hold"
        fade = np.exp(-4.0 * state[hold][..., None] * mixer.rates.numpy())
        np.testing.assert_allclose(after[modes], fade[..., None] * state[modes], rtol=1e-12)
        np.testing.assert_array_equal(after[hold], state[hold])


def test_orders_far_out_of_the_table_are_its_ends(random_weights):
    network = make_network(random_weights)
    with torch.no_grad():
        network.encoder.mixers[0].controls.bias[4:8] = torch.tensor([-300.0, 300.0, 300.0, -300.0])
    found, expected = (run(network, step, 10) for step in (encode_row, torch_row))
    assert_same(found, expected, ROUNDING[torch.float32])


def test_a_step_leaves_the_state_before_it_alone(random_weights):
    network = make_network(random_weights)
    state = run(network, encode_row, 5)
    kept = {name: array.copy() for name, array in state.items()}
    u = np.array([0.5])
    first = encode_row(network, state, u, np.ones(1), np.ones(1))
    for array in first.values():
        array += 1.0
    second = encode_row(network, state, u, np.ones(1), np.ones(1))
    assert u == 0.5
    for name, array in kept.items():
        np.testing.assert_array_equal(state[name], array)
        assert not np.shares_memory(second[name], first[name])
    assert_same({k: x - 1 for k, x in first.items()}, second, 1e-6)


def test_zeros_write_nothing_into_the_first_layer(random_weights):
    network = make_network(random_weights)
    state = as_arrays(network.encoder.empty(1))
    for t in range(100):
        state = encode_row(network, state, np.zeros(1), np.array([float(t)]), np.ones(1))
    assert (state["layer_0_modes"] == 0).all()
    assert not (state["layer_1_modes"] == 0).all()


def in_place(network):
    with torch.no_grad():
        for weights in network.parameters():
            weights.mul_(1.5)


def through_data(network):
    for weights in network.parameters():
        weights.data = weights.data * 1.5


def by_new_parameters(network):
    for module in network.modules():
        for name, weights in list(module.named_parameters(recurse=False)):
            setattr(module, name, nn.Parameter(weights.detach() * 1.5))


def by_loading(network):
    network.load_state_dict({name: 1.5 * tensor for name, tensor in network.state_dict().items()})


def by_assigning(network):
    other = {name: 1.5 * tensor for name, tensor in network.state_dict().items()}
    network.load_state_dict(other, assign=True)


CHANGES = [FracNetwork.double, in_place, through_data, by_new_parameters, by_loading, by_assigning]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_the_step_and_the_head_follow_the_weights(random_weights, change):
    network = make_network(random_weights)
    state = run(network, encode_row, 5)
    row = np.array([0.7]), np.array([1000.0]), np.array([1.0])
    features, errors = state["features"], np.sort(np.random.default_rng(0).normal(size=(1, 4, 25)))
    before, said = encode_row(network, state, *row), head_row(network, features, errors)
    change(network)
    after = encode_row(network, state, *row)
    assert_same(after, torch_row(network, state, *row), ROUNDING[network.encoder.nothing.dtype])
    if change is FracNetwork.double:
        assert after["features"].dtype == np.float64
    else:
        assert np.abs(after["features"] - before["features"]).max() > 0.01
        assert np.abs(head_row(network, features, errors) - said).max() > 0.01


def test_a_copy_of_a_network_goes_its_own_way(random_weights):
    network = make_network(random_weights)
    expected = run(network, encode_row, 5)
    other = copy.deepcopy(network)
    in_place(other)
    assert np.abs(run(other, encode_row, 5)["features"] - expected["features"]).max() > 0.01
    assert_same(run(network, encode_row, 5), expected, 0)


def test_stepping_leaves_no_trace_in_the_network(random_weights):
    network = make_network(random_weights)
    gc.collect()
    before, kept = pickle.dumps(network), len(online._MIRRORS)
    run(network, encode_row, 3)
    assert pickle.dumps(network) == before
    assert len(online._MIRRORS) == kept + 1
    del network
    gc.collect()
    assert len(online._MIRRORS) == kept


def test_the_head_at_one_row_equals_the_torch_head(random_weights):
    head = make_network(random_weights).double().head
    network = FracNetwork(nn.Identity(), head, np.empty(0))
    features = torch.randn(5, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    group = torch.tensor([0, 2, 1, 1, 0])
    found = head_row(network, features.numpy(), head.errors[group].numpy())
    with torch.no_grad():
        np.testing.assert_allclose(found, head(features, group), rtol=1e-12, atol=1e-12)
    assert np.abs(found - head.errors[group].numpy()).max() > 0.1
    assert (np.diff(found, axis=-1) >= 0).all()


def test_a_silent_head_says_the_errors(random_weights):
    network = make_network(random_weights)
    network.head.silence(*PARTS)
    errors = np.sort(np.random.default_rng(0).normal(size=(2, 4, len(QUANTILES))))
    found = head_row(network, np.ones((2, 16), dtype=np.float32), errors)
    np.testing.assert_allclose(found, errors, rtol=0, atol=1e-15)
