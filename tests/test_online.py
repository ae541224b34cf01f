"""The step in numpy says what the torch pass says, for any row, and compiled it says the same."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fracts import compiled_network
from fracts.encoder import FracEncoder
from fracts.forecasts import QUANTILES
from fracts.heads import PARTS, QuantileHead
from fracts.network import FracNetwork, as_arrays, as_state
from fracts.online import encode_row, head_row, network_row, shift_row
from fracts.plan import plan_of

ROUNDING = {torch.float32: 1e-5, torch.float64: 1e-12}
SAME = {torch.float32: 3e-6, torch.float64: 1e-13}  # compiled or not


def make_network(random_weights, seed=0, *, n_layers=2, n_frequencies=2):
    encoder = FracEncoder(16, n_layers, 2, n_frequencies, 8, (1.0, 1e4), torch.Generator().manual_seed(seed))
    draws = torch.Generator().manual_seed(seed)
    errors = torch.randn(3, 4, len(QUANTILES), generator=draws).sort(-1).values
    head = QuantileHead(16, torch.from_numpy(QUANTILES), errors)
    network = FracNetwork([encoder], head, 2 * np.pi * np.arange(1, n_frequencies + 1) / 24)
    random_weights(network, seed)
    return network


pytestmark = pytest.mark.usefixtures("without_numba")


def numpy_row(network, state, u, time, gap):
    return encode_row(plan_of(network), state, u, time, gap)


def torch_row(network, state, u, time, gap):
    """The same row by the torch pass."""
    before = as_state(state, sum(name.endswith("modes") for name in state), network.dtype)
    times, gaps = (torch.full((len(u), 1), x, dtype=torch.float64) for x in (time, gap))
    with torch.no_grad():
        return as_arrays(network.encode(torch.from_numpy(u)[:, None], times, gaps, before)[1])


def run(network, step, rows, batch=1, seed=0):
    """The state after `rows` rows of random values, gaps and missing values."""
    draws = np.random.default_rng(seed)
    state, time = as_arrays(network.empty(batch)), 0.0
    for _ in range(rows):
        gap = float(draws.choice([0.0, 1.0, 1.0, 3.5, 900.0]))
        time += gap
        u = np.where(draws.random(batch) < 0.25, np.nan, draws.normal(size=batch) * 2)
        state = step(network, state, u, time, gap)
    return state


def assert_same(found, expected, tolerance):
    """Equal arrays, each relative to its own size."""
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        size = np.abs(array).max(initial=0)
        np.testing.assert_allclose(found[name], array, rtol=0, atol=tolerance * size, err_msg=name)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    found, expected = (run(network, step, 20, batch, seed) for step in (numpy_row, torch_row))
    assert_same(found, expected, ROUNDING[dtype])
    assert np.abs(found["layer_0_modes"]).max() > 1e-4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("n_frequencies", [0, 2])
def test_the_compiled_step_says_the_same(random_weights, dtype, n_layers, n_frequencies):
    network = make_network(random_weights, n_layers=n_layers, n_frequencies=n_frequencies).to(dtype)
    draws = np.random.default_rng(0)
    for batch in (1, 3):
        state = run(network, numpy_row, 20, batch)
        before = [state[name] for name in plan_of(network).names]
        for u in (draws.normal(size=batch), np.where(np.arange(batch) == 0, np.nan, 0.5)):
            for beside in (0, batch):
                more = draws.normal(size=(beside, 32)).astype(before[0].dtype)
                row = plan_of(network).encoders[0], u, more, 1234.5, 2.5, before
                found, expected = (step(*row) for step in (compiled_network.network_row, network_row))
                for one, other in zip([*found[0], found[1]], [*expected[0], expected[1]], strict=True):
                    np.testing.assert_allclose(one, other, rtol=0, atol=SAME[dtype] * np.abs(other).max())
                    assert one.dtype == other.dtype


def test_a_series_among_others_is_stepped_as_it_is_alone(random_weights):
    network = make_network(random_weights).double()
    state = run(network, numpy_row, 5, batch=2)
    u, time, gap = np.array([0.4, np.nan]), 905.0, 1.0
    both = numpy_row(network, state, u, time, gap)
    for i in range(2):
        own = slice(i, i + 1)
        alone = numpy_row(network, {k: x[own] for k, x in state.items()}, u[own], time, gap)
        assert_same({k: x[own] for k, x in both.items()}, alone, 1e-13)
    assert_same(both, torch_row(network, state, u, time, gap), 1e-12)


def test_a_row_without_a_value_moves_the_decay_alone(random_weights):
    network = make_network(random_weights).double()
    state = run(network, numpy_row, 10)
    after = numpy_row(network, state, np.array([np.nan]), 50.0, 4.0)
    for i, mixer in enumerate(network.encoders[0].mixers):
        modes, hold = f"layer_{i}_modes", f"layer_{i}_hold"
        fade = np.exp(-4.0 * state[hold][..., None] * mixer.rates.numpy())
        np.testing.assert_allclose(after[modes], fade[..., None] * state[modes], rtol=1e-12)
        np.testing.assert_array_equal(after[hold], state[hold])


def test_orders_far_out_of_the_table_are_its_ends(random_weights):
    network = make_network(random_weights)
    with torch.no_grad():
        network.encoders[0].mixers[0].controls.bias[4:8] = torch.tensor([-300.0, 300.0, 300.0, -300.0])
    found, expected = (run(network, step, 10) for step in (numpy_row, torch_row))
    assert_same(found, expected, ROUNDING[torch.float32])


def test_networks_side_by_side_step_as_each_does(random_weights):
    networks = [make_network(random_weights, seed) for seed in range(3)]
    whole = FracNetwork.mean_of(networks)
    together = run(whole, numpy_row, 12, batch=2)
    apart = [run(network, numpy_row, 12, batch=2) for network in networks]
    features = np.concatenate([state["features"] for state in apart], -1)
    np.testing.assert_array_equal(together["features"], features)
    for i, state in enumerate(apart):
        for layer in (0, 1):
            name = f"layer_{2 * i + layer}_modes"
            np.testing.assert_array_equal(together[name], state[f"layer_{layer}_modes"])
    assert_same(together, run(whole, torch_row, 12, batch=2), 1e-5)
    shift = np.mean([shift_row(plan_of(n), s["features"]) for n, s in zip(networks, apart, strict=True)], 0)
    np.testing.assert_allclose(shift_row(plan_of(whole), features), shift, rtol=1e-5, atol=1e-6)
    assert np.ptp([state["features"] for state in apart], axis=0).min() > 0


@pytest.mark.parametrize("size", [1e3, 1e6, 1e12])
def test_a_covariate_far_from_all_that_was_seen_leaves_forecasts_finite(random_weights, size):
    encoder = FracEncoder(16, 2, 2, 2, 8, (1.0, 1e4), torch.Generator().manual_seed(0), n_covariates=2)
    head = QuantileHead(16, torch.from_numpy(QUANTILES), torch.zeros(1, 4, len(QUANTILES)))
    network = FracNetwork([encoder], head, 2 * np.pi * np.arange(1, 3) / 24)
    random_weights(network, 0)
    draws = np.random.default_rng(0)
    u, covariates = draws.normal(size=(3, 8)), size * draws.normal(size=(3, 8, 2))
    state, clock = as_arrays(encoder.empty(3)), torch.arange(8.0, dtype=torch.float64).expand(3, -1)
    gaps = torch.ones_like(clock)
    gaps[:, 0] = 0.0
    with torch.no_grad():
        given = torch.from_numpy(u), clock, gaps, torch.from_numpy(covariates)
        features, after = network.features(*given)
    assert features.isfinite().all()
    for t in range(8):
        state = encode_row(plan_of(network), state, u[:, t], float(t), float(t > 0), covariates[:, t])
    assert_same(state, as_arrays(after), ROUNDING[torch.float32])


def test_a_step_leaves_the_state_before_it_alone(random_weights):
    network = make_network(random_weights)
    state = run(network, numpy_row, 5)
    kept = {name: array.copy() for name, array in state.items()}
    u = np.array([0.5])
    first = numpy_row(network, state, u, 1.0, 1.0)
    for array in first.values():
        array += 1.0
    second = numpy_row(network, state, u, 1.0, 1.0)
    assert u == 0.5
    for name, array in kept.items():
        np.testing.assert_array_equal(state[name], array)
        assert not np.shares_memory(second[name], first[name])
    assert_same({k: x - 1 for k, x in first.items()}, second, 1e-6)


def test_zeros_write_nothing_into_the_first_layer(random_weights):
    network = make_network(random_weights)
    state = as_arrays(network.empty(1))
    for t in range(100):
        state = numpy_row(network, state, np.zeros(1), float(t), 1.0)
    assert (state["layer_0_modes"] == 0).all()
    assert not (state["layer_1_modes"] == 0).all()


def test_a_plan_keeps_the_weights_as_they_were(random_weights):
    network = make_network(random_weights)
    plan, state = plan_of(network), run(network, numpy_row, 5)
    kept = encode_row(plan, state, np.ones(1), 1000.0, 1.0)
    with torch.no_grad():
        for weights in network.parameters():
            weights.mul_(1.5)
    assert_same(encode_row(plan, state, np.ones(1), 1000.0, 1.0), kept, 0)
    assert (
        np.abs(numpy_row(network, state, np.ones(1), 1000.0, 1.0)["features"] - kept["features"]).max() > 0.01
    )


def test_stepping_leaves_the_network_alone(random_weights):
    network = make_network(random_weights)
    before = pickle.dumps(network)
    run(network, numpy_row, 3)
    assert pickle.dumps(network) == before


def test_the_head_at_one_row_equals_the_torch_head(random_weights):
    network = make_network(random_weights).double()
    plan, head = plan_of(network), network.head
    features = 3 * torch.randn(5, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    bounds = torch.tensor(-2.0), torch.tensor(2.0)
    assert all((head.moves(features) == bound).any() for bound in bounds)  # the range is met
    group = torch.tensor([0, 2, 1, 1, 0])
    found = head_row(plan, features.numpy(), head.errors[group].numpy())
    with torch.no_grad():
        np.testing.assert_allclose(found, head(features, group), rtol=1e-12, atol=1e-12)
    assert np.abs(found - head.errors[group].numpy()).max() > 0.1
    medians = found[..., head.median] - head.errors[group].numpy()[..., head.median]
    np.testing.assert_allclose(shift_row(plan, features.numpy()), medians, rtol=1e-12, atol=1e-12)
    assert (np.diff(found, axis=-1) >= 0).all()


def test_a_silent_head_says_the_errors(random_weights):
    network = make_network(random_weights)
    network.head.silence(*PARTS)
    errors = np.sort(np.random.default_rng(0).normal(size=(2, 4, len(QUANTILES))))
    found = head_row(plan_of(network), np.ones((2, 16), dtype=np.float32), errors)
    np.testing.assert_allclose(found, errors, rtol=0, atol=1e-15)
