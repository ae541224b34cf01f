"""The simulated processes: the map from noise to sample has the exact covariance, and samples agree."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.fft import next_fast_len
from scipy.linalg import toeplitz

from fracts.datasets import (
    arfima_autocovariance,
    fgn_autocovariance,
    gegenbauer_autocovariance,
    make_arfima,
    make_fgn,
    make_gegenbauer,
)
from fracts.datasets.gaussian import circulant_root, stationary_gaussian

DAY = 2 * np.pi / 24

ON_A_CIRCLE = {
    "fgn .9": lambda m: fgn_autocovariance(m, 0.9),
    "fgn .2": lambda m: fgn_autocovariance(m, 0.2),
    "arfima .4": lambda m: arfima_autocovariance(m, 0.4),
    "arfima 1 d 1": lambda m: arfima_autocovariance(m, -0.3, ar=[0.6], ma=[0.3]),
    "gegenbauer .3": lambda m: gegenbauer_autocovariance(m, 0.3, DAY),
    "gegenbauer .45": lambda m: gegenbauer_autocovariance(m, 0.45, 2.5),
}
ON_NO_CIRCLE = {
    "near unit root": lambda m: arfima_autocovariance(m, 0.45, ar=[0.999], ma=[0.5]),
    "zero of the spectrum": lambda m: arfima_autocovariance(m, 0.3, ma=[1.0]),
}
IDENTITY = SimpleNamespace(standard_normal=lambda shape: np.eye(*shape))


def check_covariance(autocovariance, n, n_noises):
    linear_map = stationary_gaussian(autocovariance, n, n_noises, IDENTITY)
    wanted = toeplitz(autocovariance(n))
    np.testing.assert_allclose(linear_map @ linear_map.T, wanted, rtol=0, atol=1e-11 * wanted[0, 0])


@pytest.mark.parametrize("n", [1, 2, 7, 60])
@pytest.mark.parametrize("name", ON_A_CIRCLE)
def test_the_circle_turns_white_noise_into_exactly_the_wanted_covariance(name, n):
    root = circulant_root(ON_A_CIRCLE[name], n)
    check_covariance(ON_A_CIRCLE[name], n, 2 * (root.size - 1))


@pytest.mark.parametrize("n", [2, 7, 60])
@pytest.mark.parametrize("name", ON_NO_CIRCLE)
def test_where_no_circle_is_found_prediction_gives_exactly_the_wanted_covariance(name, n):
    assert circulant_root(ON_NO_CIRCLE[name], n) is None
    check_covariance(ON_NO_CIRCLE[name], n, n)


def test_a_seasonal_process_whose_first_fold_fails_finds_a_longer_circle():
    root = circulant_root(lambda m: gegenbauer_autocovariance(m, 0.49, 1.234), 1000)
    assert root is not None
    assert root.size - 1 > next_fast_len(1000, real=True)


def lagged_products(series, lag):
    """Mean of x[t] x[t + lag] over time and series; unbiased, the mean being zero by construction."""
    return np.mean(series[: len(series) - lag] * series[lag:])


def product_variance(autocovariance, n, lag):
    """Variance of that mean for one Gaussian series of n values: Bartlett's sum, not its limit."""
    table = autocovariance(n + lag)
    shift = np.arange(-(n - lag - 1), n - lag)
    pairs = n - lag - np.abs(shift)
    crossed = table[np.abs(shift)] ** 2 + table[np.abs(shift + lag)] * table[np.abs(shift - lag)]
    return np.sum(pairs * crossed) / (n - lag) ** 2


@pytest.mark.parametrize(
    ("draw", "autocovariance"),
    [
        (lambda **many: make_fgn(128, 0.85, **many), lambda m: fgn_autocovariance(m, 0.85)),
        (lambda **many: make_arfima(128, 0.3, **many), lambda m: arfima_autocovariance(m, 0.3)),
        (
            lambda **many: make_arfima(128, 0.45, ar=[0.999], ma=[0.5], **many),
            lambda m: arfima_autocovariance(m, 0.45, ar=[0.999], ma=[0.5]),
        ),
        (
            lambda **many: make_gegenbauer(128, 0.4, DAY, **many),
            lambda m: gegenbauer_autocovariance(m, 0.4, DAY),
        ),
    ],
)
def test_sample_autocovariances_lie_within_their_own_standard_errors(draw, autocovariance):
    n_series = 4000
    series = draw(n_series=n_series, random_state=5)
    for lag in (0, 1, 2, 12, 24, 100):
        error = lagged_products(series, lag) - autocovariance(lag + 1)[lag]
        z = error / np.sqrt(product_variance(autocovariance, 128, lag) / n_series)
        assert abs(z) < 4, (lag, z)


def test_one_series_is_a_vector_and_several_are_columns_that_differ():
    assert make_fgn(50, 0.7).shape == (50,)
    several = make_gegenbauer(50, 0.3, 1.0, n_series=3, random_state=1)
    assert several.shape == (50, 3)
    assert np.abs(several[:, 0] - several[:, 1]).min() > 0


@pytest.mark.parametrize(
    "make",
    [
        lambda state: make_fgn(30, 0.7, random_state=state),
        lambda state: make_arfima(30, 0.3, ar=[0.5], random_state=state),
        lambda state: make_gegenbauer(30, 0.3, 1.0, random_state=state),
    ],
)
def test_a_seed_repeats_a_generator_moves_on_and_the_global_state_stays(make):
    before = np.random.get_state()[1].copy()
    generator = np.random.default_rng(4)
    first, second = make(generator), make(generator)
    np.testing.assert_array_equal(first, make(4))
    assert not np.array_equal(first, second)
    assert not np.array_equal(make(None), make(None))
    np.testing.assert_array_equal(np.random.get_state()[1], before)


def test_a_refused_call_leaves_the_generator_where_it_was():
    generator = np.random.default_rng(4)
    with pytest.raises(ValueError, match="d must lie"):
        make_arfima(10, 0.6, random_state=generator)
    with pytest.raises(ValueError, match="n_series must be at least 1, got 0"):
        make_fgn(10, 0.6, n_series=0, random_state=generator)
    assert generator.random() == np.random.default_rng(4).random()
