"""The exact predictor of ARFIMA(0, d, 0) against the normal equations and on its own draws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_toeplitz

from fracts.datasets import arfima_autocovariance, arfima_one_step, arfima_predictor, make_arfima


@pytest.mark.parametrize("d", [-0.45, -0.1, 0.0, 0.2, 0.49])
@pytest.mark.parametrize("n_past", [1, 2, 3, 50, 400])
def test_weights_and_variance_solve_the_normal_equations(n_past, d):
    table = arfima_autocovariance(n_past + 1, d)
    want = solve_toeplitz(table[:-1], table[1:])
    weights, variance = arfima_predictor(n_past, d)
    np.testing.assert_allclose(weights, want, rtol=0, atol=1e-10)
    assert variance == pytest.approx(table[0] - want @ table[1:], rel=1e-10)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 300), d=st.floats(-0.49, 0.49), seed=st.integers(0, 1000))
def test_each_forecast_is_the_weighted_sum_of_its_whole_past(n, d, seed):
    y = np.random.default_rng(seed).normal(size=n)
    got = arfima_one_step(y, d)
    assert got.shape == (n,)
    assert got[0] == 0
    for t in {1, n // 2, n - 1} - {0, n}:
        weights, _ = arfima_predictor(t, d)
        assert got[t] == pytest.approx(weights @ y[t - 1 :: -1], abs=1e-12)


def test_the_forecast_after_131_072_values_has_lost_nothing():
    y = make_arfima(131_073, 0.4, random_state=2)
    weights, _ = arfima_predictor(131_072, 0.4)
    assert arfima_one_step(y, 0.4)[-1] == pytest.approx(weights @ y[-2::-1], abs=1e-11)


@pytest.mark.parametrize("d", [-0.3, 0.4])
def test_standardised_errors_on_an_exact_draw_are_white_with_variance_1(d):
    n = 20_000
    y = make_arfima(n, d, random_state=11)
    variances = np.array(
        [arfima_autocovariance(1, d)[0], *(arfima_predictor(t, d)[1] for t in range(1, 300))]
    )
    errors = y - arfima_one_step(y, d)
    errors[:300] /= np.sqrt(variances)
    errors[300:] /= np.sqrt(arfima_predictor(n, d)[1])
    assert abs(np.mean(errors**2) - 1) < 4 * np.sqrt(2 / n)
    for lag in (1, 2, 500):
        assert abs(np.mean(errors[lag:] * errors[:-lag])) < 4 / np.sqrt(n - lag)


def test_a_forecast_never_sees_its_own_value_or_later_ones():
    y = make_arfima(500, 0.4, random_state=0)
    changed = y.copy()
    changed[300:] += 10
    np.testing.assert_allclose(arfima_one_step(changed, 0.4)[:301], arfima_one_step(y, 0.4)[:301], atol=1e-12)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[1.0, 2.0]], r"y must be one series, got shape \(1, 2\)"),
        ([], r"y must be one series, got shape \(0,\)"),
        ([1.0, np.nan, 2.0], "y must be finite, got nan at position 1"),
    ],
)
def test_a_series_that_cannot_be_forecast_is_refused(y, message):
    with pytest.raises(ValueError, match=message):
        arfima_one_step(y, 0.4)


def test_parameters_outside_the_process_are_named():
    with pytest.raises(ValueError, match="d must lie"):
        arfima_one_step([1.0], 0.5)
    with pytest.raises(ValueError, match="n_past must be at least 1"):
        arfima_predictor(0, 0.4)
