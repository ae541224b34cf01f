"""The theory room: its functions against independent ones, its sums of exponentials against their laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycaputo.controller import make_fixed_controller
from pycaputo.derivatives import CaputoDerivative
from pycaputo.fode.caputo import BackwardEuler
from pycaputo.stepping import evolve
from pymittagleffler import mittag_leffler as reference_mittag_leffler
from scipy.special import erfcx, rgamma

from fracts.memory import (
    Modes,
    approximation_error,
    mittag_leffler,
    mode_timescales,
    power_law_modes,
    power_law_weights,
    relaxation_density,
    relaxation_modes,
    response_density,
)

HORIZON = 131072
ORDERS = 0.1, 0.3, 0.5, 0.7, 0.9
RATES = 0.001, 0.01, 0.1, 1.0, 10.0

orders = st.floats(0.02, 1.0)
depths = st.floats(0.0, 1e6)


def power_law_error(exponent, n_modes, horizon=HORIZON):
    modes = power_law_modes(exponent, horizon, n_modes)
    return approximation_error(modes.kernel, lambda t: t**-exponent, horizon)


# Mittag-Leffler


@pytest.mark.parametrize("alpha", [0.05, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("extra", ["alpha", "one", "alpha+1", "two", "alpha+2"])
def test_mittag_leffler_agrees_with_another_implementation(alpha, extra):
    beta = {"alpha": alpha, "one": 1.0, "alpha+1": alpha + 1, "two": 2.0, "alpha+2": alpha + 2}[extra]
    # The reference loses digits of beta = alpha to cancellation as its argument grows.
    z = -np.append(0.0, np.geomspace(1e-6, 1.0 if extra == "alpha" else 1e6, 100))
    expected = reference_mittag_leffler(z, alpha, beta).real
    np.testing.assert_allclose(mittag_leffler(z, alpha, beta), expected, rtol=2e-12)


def test_mittag_leffler_of_order_one_is_the_exponential():
    z = -np.append(0.0, np.geomspace(1e-9, 700.0, 50))
    np.testing.assert_array_equal(mittag_leffler(z, 1.0), np.exp(z))
    np.testing.assert_allclose(mittag_leffler(z[1:], 1.0, 2.0), np.expm1(z[1:]) / z[1:], rtol=1e-13)


def test_mittag_leffler_of_order_one_half_is_the_scaled_error_function():
    x = np.append(0.0, np.geomspace(1e-9, 1e9, 100))
    np.testing.assert_allclose(mittag_leffler(-x, 0.5), erfcx(x), rtol=1e-13)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.8])
def test_mittag_leffler_keeps_its_digits_where_the_leading_term_vanishes(alpha):
    """E_{a,a}(-x) = sum_k (-1)^k x^-k / Gamma(a - k a), starting at k = 2."""
    x, k = np.array([[1e7], [1e9]]), np.arange(2, 6)
    expected = np.sum((-1.0) ** k * x**-k * rgamma(alpha - k * alpha), axis=1) * -1
    np.testing.assert_allclose(mittag_leffler(-x[:, 0], alpha, alpha), expected, rtol=1e-12)


@given(alpha=orders, extra=st.floats(0.0, 2.0), x=depths)
def test_mittag_leffler_obeys_its_recurrence(alpha, extra, x):
    beta = alpha + extra
    left = mittag_leffler(-x, alpha, beta)
    right = rgamma(beta) - x * mittag_leffler(-x, alpha, alpha + beta)
    assert abs(left - right) < 1e-13 * (1 + rgamma(beta))


@given(alpha=st.floats(0.02, 0.98), extra=st.floats(0.0, 1.0))
@settings(max_examples=50)
def test_mittag_leffler_is_positive_falling_and_convex(alpha, extra):
    value = mittag_leffler(-np.linspace(0.0, 20.0, 100), alpha, alpha + extra)
    assert np.all(value > 0)
    assert np.all(np.diff(value) < 0)
    assert np.all(np.diff(value, 2) > -1e-13)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_mittag_leffler_keeps_the_shape(shape):
    assert mittag_leffler(np.full(shape, -2.0), 0.5).shape == shape


# Spectral densities


@pytest.mark.parametrize("order", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("rate", [0.03, 1.0, 5.0])
def test_spectral_densities_integrate_to_the_kernels(order, rate):
    log_rates, width = np.linspace(-200.0, 10.0, 8001, retstep=True)
    rates, t = np.exp(log_rates), np.array([0.1, 1.0, 30.0])
    decay = np.exp(-rates * t[:, None]) * rates * width
    z = -rate * t**order
    relaxation = decay @ relaxation_density(rates, order, rate)
    response = decay @ response_density(rates, order, rate)
    np.testing.assert_allclose(relaxation, mittag_leffler(z, order), rtol=1e-11)
    np.testing.assert_allclose(response, t ** (order - 1) * mittag_leffler(z, order, order), rtol=1e-11)


# Modes of a power law


@pytest.mark.parametrize(("exponent", "bound"), [(0.1, 2e-5), (0.3, 5e-5), (0.5, 1e-4), (0.9, 4e-4)])
def test_sixteen_modes_hold_a_power_law_over_five_decades(exponent, bound):
    assert power_law_error(exponent, 16) < bound


@pytest.mark.parametrize("exponent", [0.1, 0.3, 0.5, 0.9])
def test_the_error_falls_geometrically_in_the_number_of_modes(exponent):
    errors = np.array([power_law_error(exponent, n_modes) for n_modes in (8, 12, 16, 20, 24)])
    assert np.all(errors[1:] < errors[:-1] / 5)


def test_a_shorter_horizon_is_held_closer():
    errors = np.array([power_law_error(0.5, 16, horizon) for horizon in (1_000_000, HORIZON, 8192, 512)])
    assert np.all(errors[1:] < errors[:-1] / 3)


@given(exponent=st.floats(0.002, 2.0), n_modes=st.integers(2, 64), log_horizon=st.floats(1.0, 14.0))
@settings(max_examples=60, deadline=None)
def test_every_weight_is_positive(exponent, n_modes, log_horizon):
    modes = power_law_modes(exponent, np.exp(log_horizon), n_modes)
    assert modes.timescales.shape == modes.weights.shape == (n_modes,)
    assert np.all(modes.weights > 0) and np.all(np.isfinite(modes.weights))
    assert modes.feedthrough == 0


@pytest.mark.parametrize("exponent", [0.1, 0.3, 0.5, 0.9])
def test_the_weight_of_a_mode_is_a_power_of_its_timescale(exponent):
    modes = power_law_modes(exponent, HORIZON, 16)
    assert slope(modes) == pytest.approx(-exponent, abs=0.01)


def slope(modes):
    """Slope of log weight against log timescale, away from both ends of the grid."""
    middle = slice(len(modes.weights) // 4, -4)
    return np.polyfit(np.log(modes.timescales[middle]), np.log(modes.weights[middle]), 1)[0]


@pytest.mark.parametrize("n_modes", [8, 16, 32])
def test_weights_can_be_interpolated_over_a_table_of_exponents(n_modes):
    exponents = np.geomspace(0.02, 1.98, 127)
    logs = np.log([power_law_modes(exponent, HORIZON, n_modes).weights for exponent in exponents])
    halfway = np.exp((logs[:-2:2] + logs[2::2]) / 2)
    timescales = mode_timescales(1.0, HORIZON, n_modes)
    for between, exact in zip(halfway, np.exp(logs[1::2]), strict=True):
        kernel = Modes(timescales, exact).kernel
        assert approximation_error(Modes(timescales, between).kernel, kernel, HORIZON, 200) < 0.03


def test_weights_follow_the_unit_of_time():
    timescales = mode_timescales(24.0, 24.0 * 5000, 16)
    np.testing.assert_allclose(timescales, 24.0 * mode_timescales(1.0, 5000, 16))
    expected = 24.0**-0.4 * power_law_modes(0.4, 5000, 16).weights
    np.testing.assert_allclose(power_law_weights(timescales, 0.4, 24.0, 24.0 * 5000), expected, rtol=1e-6)


def test_the_grid_is_geometric_reaches_past_both_ends_and_ends_in_the_tail_mode():
    timescales = mode_timescales(2.0, 2.0 * HORIZON, 16)
    assert timescales[0] == pytest.approx(0.6, rel=0.01)
    assert timescales[-2] == pytest.approx(3.0 * HORIZON, rel=0.01)
    assert timescales[-1] == np.inf
    np.testing.assert_allclose(np.diff(np.log(timescales[:-1]), 2), 0.0, atol=1e-12)


# Modes of the fractional equation


def step_response(order, rate):
    return lambda t: t**order * mittag_leffler(-rate * t**order, order, order + 1)


def ramp_response(order, rate):
    return lambda t: t ** (order + 1) * mittag_leffler(-rate * t**order, order, order + 2)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(("n_modes", "bound"), [(16, 1e-3), (24, 2e-5)])
def test_step_and_ramp_responses_are_the_formulas(order, rate, n_modes, bound):
    modes = relaxation_modes(order, rate, HORIZON, n_modes)
    assert modes.feedthrough > 0 and np.all(modes.weights > 0)
    assert approximation_error(modes.step, step_response(order, rate), HORIZON) < bound
    assert approximation_error(modes.ramp, ramp_response(order, rate), HORIZON) < bound


@pytest.mark.parametrize("order", [0.97, 0.99, 0.9999])
@pytest.mark.parametrize("rate", [0.001, 0.1, 1.0])
def test_responses_stay_good_as_the_order_nears_one(order, rate):
    modes = relaxation_modes(order, rate, HORIZON, 24)
    assert approximation_error(modes.step, step_response(order, rate), HORIZON) < 2e-5
    decay = relaxation_modes(order, rate, HORIZON, 24, kernel="relaxation")
    error = approximation_error(decay.kernel, lambda t: mittag_leffler(-rate * t**order, order), HORIZON)
    assert error < 3e-3


@pytest.mark.parametrize(("order", "bound"), [(0.1, 2e-5), (0.3, 1e-4), (0.5, 2e-4), (0.7, 1e-3)])
@pytest.mark.parametrize("rate", RATES)
def test_relaxation_modes_decay_as_the_mittag_leffler_function(order, bound, rate):
    modes = relaxation_modes(order, rate, HORIZON, 16, kernel="relaxation")
    error = approximation_error(modes.kernel, lambda t: mittag_leffler(-rate * t**order, order), HORIZON)
    assert error < bound
    assert modes.feedthrough == 0


@pytest.mark.parametrize("order", [0.3, 0.5, 0.7])
def test_slow_modes_weigh_as_the_spectral_densities_say(order):
    """Timescales well above rate^(-1/order): tau^-(1+a) in the response, tau^-a in the relaxation."""
    assert slope(relaxation_modes(order, 300.0, HORIZON, 24)) == pytest.approx(-1 - order, abs=0.05)
    assert slope(relaxation_modes(order, 300.0, HORIZON, 24, "relaxation")) == pytest.approx(-order, abs=0.05)


@pytest.mark.parametrize("kernel", ["response", "relaxation"])
def test_order_one_is_a_single_exponential(kernel):
    modes = relaxation_modes(1.0, 0.25, HORIZON, 16, kernel)
    t = np.linspace(0.0, 40.0, 9)
    assert modes.timescales.tolist() == [4.0]
    np.testing.assert_allclose(modes.kernel(t), np.exp(-t / 4), rtol=1e-15)
    np.testing.assert_allclose(modes.step(t), 4 * -np.expm1(-t / 4), rtol=1e-14)


class LinearEquation(BackwardEuler):
    """Product integration of D^order x = -rate x + u, its implicit step solved in closed form."""

    def solve(self, t, y0, c, r):
        return (r + c * self.source(t, np.zeros(1))) / (1 - c * self.source_jac(t, y0))


def product_integration(order, rate, pieces, per_piece):
    """x at the end of each piece of a piecewise constant input, by `per_piece` steps each."""

    def source(t, x):
        return pieces[max(int(np.ceil(t - 1e-9)) - 1, 0)] - rate * x

    equation = LinearEquation(
        ds=(CaputoDerivative(order),),
        control=make_fixed_controller(1 / per_piece, tstart=0.0, tfinal=float(len(pieces))),
        source=source,
        y0=(np.zeros(1),),
        source_jac=lambda t, x: -rate,
    )
    return np.array([event.y[0] for event in evolve(equation, dtinit=1 / per_piece)])[per_piece::per_piece]


def zero_order_hold(modes, pieces):
    rates, state, outputs = 1 / modes.timescales, np.zeros_like(modes.weights), []
    gains = np.append(-np.expm1(-rates[:-1]) / rates[:-1], 1.0) * modes.weights
    for piece in pieces:
        state = state + np.expm1(-rates) * state + gains * piece
        outputs.append(state.sum() + modes.feedthrough * piece)
    return np.array(outputs)


@pytest.mark.parametrize("order", [0.3, 0.6, 0.9])
def test_held_inputs_give_the_solution_of_the_fractional_equation(order):
    pieces = np.random.default_rng(7).normal(size=32)
    coarse, fine = (product_integration(order, 0.3, pieces, n) for n in (32, 64))
    solution = 2 * fine - coarse  # first order in the step, so one extrapolation removes most of the error
    held = zero_order_hold(relaxation_modes(order, 0.3, 32, 16), pieces)
    np.testing.assert_allclose(held, solution, atol=2e-4 * np.abs(solution).max())


@given(log_timescale=st.floats(-5.0, 20.0), feedthrough=st.floats(0.0, 2.0), t=st.floats(0.1, 1e5))
def test_step_is_the_integral_of_the_kernel_and_ramp_of_the_step(log_timescale, feedthrough, t):
    modes = Modes(np.array([np.exp(log_timescale), np.inf]), np.array([1.5, 0.2]), feedthrough)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    early, late = np.float64(t), np.float64(t) * 1.1
    times, widths = (early + late) / 2 + (late - early) / 2 * nodes, (late - early) / 2 * weights
    assert modes.step(late) - modes.step(early) == pytest.approx(
        widths @ modes.kernel(times), rel=1e-9, abs=1e-9
    )
    assert modes.ramp(late) - modes.ramp(early) == pytest.approx(widths @ modes.step(times), rel=1e-9)


def test_the_tail_mode_is_an_accumulator():
    modes = Modes(np.array([np.inf]), np.array([2.0]))
    assert modes.kernel(5.0) == 2.0 and modes.step(5.0) == 10.0 and modes.ramp(5.0) == 25.0


# Bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mittag_leffler(0.5, 0.5), "z must be real and not positive"),
        (lambda: mittag_leffler([-1.0, np.nan], 0.5), "z must be real and not positive"),
        (lambda: mittag_leffler(-1.0, 0.0), r"alpha must be in \(0, 1\], got 0"),
        (lambda: mittag_leffler(-1.0, 1.2), "alpha must be in"),
        (lambda: mittag_leffler(-1.0, 0.5, 0.4), "beta must be a number not below alpha = 0.5, got 0.4"),
        (lambda: relaxation_density([1.0], 1.0, 1.0), "has no density"),
        (lambda: response_density([0.0], 0.5, 1.0), "rates must be positive"),
        (lambda: response_density([1.0], 0.5, 0.0), "rate must be a positive finite number, got 0"),
        (lambda: mode_timescales(1.0, 100.0, 1), "n_modes must be an integer of at least 2 .*, got 1"),
        (lambda: mode_timescales(1.0, 100.0, 2.5), "n_modes must be an integer"),
        (lambda: mode_timescales(100.0, 1.0, 8), "got shortest = 100.0, longest = 1.0"),
        (lambda: power_law_modes(0.0, 100.0, 8), r"exponent must be in \(0, 2\], got 0"),
        (lambda: power_law_modes(2.1, 100.0, 8), "exponent must be in"),
        (lambda: power_law_modes(0.5, 1.0, 8), "longest = 1.0"),
        (lambda: power_law_weights(np.array([1.0, 10.0]), 0.5, 1.0, 10.0), "end in infinity"),
        (lambda: power_law_weights(np.array([2.0, 1.0, np.inf]), 0.5, 1.0, 10.0), "increasing"),
        (lambda: relaxation_modes(1.5, 1.0, 100.0, 8), "order must be in"),
        (lambda: relaxation_modes(0.5, -1.0, 100.0, 8), "rate must be a positive finite number"),
        (
            lambda: relaxation_modes(0.5, 1.0, 100.0, 8, "impulse"),
            "'response' or 'relaxation', got 'impulse'",
        ),
    ],
)
def test_bad_input_is_named_with_its_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()
