"""Estimates of d against series whose d is known."""

import numpy as np
import pytest

from fracts.exponents import exact_local_whittle, gph_exponent, local_whittle


def fractional_noise(d, length, seed):
    """Gaussian ARFIMA(0, d, 0), by its moving average cut after 4 * length terms."""
    k = np.arange(1, 4 * length)
    filter_ = np.cumprod(np.append(1.0, (k - 1 + d) / k))
    noise = np.random.default_rng(seed).normal(size=5 * length)
    size = 10 * length
    return np.fft.irfft(np.fft.rfft(filter_, size) * np.fft.rfft(noise, size), size)[4 * length : 5 * length]


@pytest.mark.parametrize("estimate", [gph_exponent, local_whittle, exact_local_whittle])
@pytest.mark.parametrize("d", [-0.3, 0.0, 0.2, 0.4])
def test_estimates_find_the_memory_of_fractional_noise_and_know_their_error(estimate, d):
    results = [estimate(100.0 + fractional_noise(d, 4096, seed)) for seed in range(20)]
    found = np.array([result.d for result in results])
    error = results[0].standard_error
    assert abs(found.mean() - d) < 4 * error / np.sqrt(20) + 0.01
    assert 0.6 * error < found.std() < 1.6 * error


@pytest.mark.parametrize("estimate", [gph_exponent, local_whittle, exact_local_whittle])
def test_estimates_do_not_depend_on_the_unit_and_say_nothing(estimate, capfd):
    y = fractional_noise(0.3, 1000, 0)
    before = y.copy()
    assert estimate(1000 * y + 5).d == pytest.approx(estimate(y).d, abs=1e-6)
    assert np.array_equal(y, before)
    assert capfd.readouterr() == ("", "")


def test_exact_local_whittle_sees_more_than_a_random_walk():
    walks = [np.cumsum(fractional_noise(0.4, 4096, seed)) for seed in range(10)]
    found = np.array([exact_local_whittle(walk).d for walk in walks])
    assert abs(found.mean() - 1.4) < 4 * exact_local_whittle(walks[0]).standard_error / np.sqrt(10)


@pytest.mark.parametrize("estimate", [local_whittle, exact_local_whittle])
def test_the_standard_error_is_one_over_twice_the_root_of_the_frequencies(estimate):
    y = fractional_noise(0.3, 1000, 0)
    assert estimate(y, n_frequencies=100).standard_error == pytest.approx(0.05)
    assert estimate(y).standard_error == pytest.approx(0.5 / np.sqrt(int(1000**0.65)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gph_exponent(np.ones((40, 2))), r"got shape \(40, 2\)"),
        (lambda: gph_exponent(np.append(np.arange(50.0), np.nan)), r"y\[50\] is nan"),
        (lambda: local_whittle(np.ones(50)), "y is constant at 1.0"),
        (lambda: exact_local_whittle(np.arange(50.0), 25), r"below half the length \(50 / 2\), got 25"),
    ],
)
def test_bad_input_is_named_with_its_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()
