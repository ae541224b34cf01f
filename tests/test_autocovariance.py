"""The theoretical autocovariances against integrals of the spectral density and independent formulas."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gamma, gammaln, hyp2f1

from fracts.autocovariance import arfima_autocovariance, fgn_autocovariance, gegenbauer_autocovariance


@pytest.mark.parametrize("hurst", [0.05, 0.3, 0.6, 0.9, 0.99])
def test_fgn_equals_the_second_difference_in_60_digits_up_to_lag_200_000(hurst):
    got = fgn_autocovariance(200_000, hurst)
    with localcontext(prec=60):
        power = 2 * Decimal(hurst)
        for lag in (1, 2, 3, 10, 1000, 199_999):
            below = Decimal(lag - 1) ** power if lag > 1 else 0
            want = float((Decimal(lag + 1) ** power - 2 * Decimal(lag) ** power + below) / 2)
            assert got[lag] == pytest.approx(want, rel=1e-13, abs=0)
    assert got[0] == 1.0


def test_fgn_with_hurst_one_half_is_white_noise():
    np.testing.assert_allclose(fgn_autocovariance(10_000, 0.5), np.eye(1, 10_000)[0], rtol=0, atol=1e-16)


@pytest.mark.parametrize("d", [-0.45, -0.1, 0.2, 0.45])
@pytest.mark.parametrize(
    ("ar", "ma"), [((), ()), ((0.7,), ()), ((), (-0.6, 0.3)), ((1.2, -0.5), (0.4,)), ((-0.9,), (2.0,))]
)
def test_arfima_equals_the_integral_of_its_spectral_density(d, ar, ma):
    got = arfima_autocovariance(31, d, ar=ar, ma=ma, variance=2.5)
    for lag in (0, 1, 2, 7, 30):

        def smooth(angle, lag=lag):
            turn = np.exp(-1j * angle)
            short = abs(np.polyval([*ma[::-1], 1], turn) / np.polyval([*(-np.array(ar))[::-1], 1], turn)) ** 2
            return 2.5 * short * np.sinc(angle / (2 * np.pi)) ** (-2 * d) * np.cos(lag * angle) / np.pi

        want, _ = quad(smooth, 0, np.pi, weight="alg", wvar=(-2 * d, 0), epsabs=1e-11, epsrel=1e-11)
        assert got[lag] == pytest.approx(want, abs=1e-10 * got[0])


@pytest.mark.parametrize("d", [-0.4, 0.1, 0.49])
def test_arfima_without_arma_part_equals_the_gamma_functions_at_far_lags(d):
    lag = np.array([1000, 30_000, 199_999])
    log_size = gammaln(1 - 2 * d) + gammaln(lag + d) - gammaln(lag + 1 - d) - gammaln(1 - d)
    want = np.exp(log_size) / gamma(d)
    np.testing.assert_allclose(arfima_autocovariance(200_000, d)[lag], want, rtol=1e-9)


def test_arfima_without_memory_is_the_autoregression():
    got = arfima_autocovariance(50, 0.0, ar=[0.8])
    np.testing.assert_allclose(got, 0.8 ** np.arange(50) / (1 - 0.8**2), rtol=1e-12, atol=1e-14)


def legendre_form(lag, d, frequency):
    """The same autocovariance by Legendre functions on the cut, Chung (1996)."""
    order = 2 * d - 0.5

    def legendre(argument):
        share = ((1 + argument) / (1 - argument)) ** (order / 2) / gamma(1 - order)
        return share * hyp2f1(0.5 - lag, 0.5 + lag, 1 - order, (1 - argument) / 2)

    turn = np.cos(frequency)
    size = gamma(1 - 2 * d) / (2 * np.sqrt(np.pi)) * (2 * np.sin(frequency)) ** -order
    return size * (legendre(turn) + (-1) ** lag * legendre(-turn))


@pytest.mark.parametrize("d", [-0.45, -0.2, 0.1, 0.3, 0.45, 0.49])
@pytest.mark.parametrize("frequency", [0.05, 2 * np.pi / 24, 1.5, 3.0])
def test_gegenbauer_starts_as_the_legendre_functions(d, frequency):
    got = gegenbauer_autocovariance(21, d, frequency)
    for lag in (0, 1):
        assert got[lag] == pytest.approx(legendre_form(lag, d, frequency), abs=1e-10 * got[0])


@pytest.mark.parametrize("d", [-0.45, 0.1, 0.25, 0.49])
@pytest.mark.parametrize("frequency", [0.05, 2 * np.pi / 24, 3.0])
@pytest.mark.parametrize("lag", [2, 5, 60])
def test_gegenbauer_goes_on_as_the_integral_of_its_spectral_density(lag, d, frequency):
    def smooth(angle):
        slope = 2 * np.sin((angle + frequency) / 2) * np.sinc((angle - frequency) / (2 * np.pi))
        return slope ** (-2 * d) * np.cos(lag * angle) / np.pi

    below, _ = quad(
        smooth, 0, frequency, weight="alg", wvar=(0, -2 * d), epsabs=1e-10, epsrel=1e-10, limit=200
    )
    above, _ = quad(
        smooth, frequency, np.pi, weight="alg", wvar=(-2 * d, 0), epsabs=1e-10, epsrel=1e-10, limit=200
    )
    got = gegenbauer_autocovariance(lag + 1, d, frequency)
    assert got[lag] == pytest.approx(below + above, abs=1e-9 * got[0])


@pytest.mark.parametrize("d", [-0.4, 0.25, 0.45])
def test_gegenbauer_at_a_quarter_turn_is_arfima_on_every_second_step_to_the_last_lag(d):
    got = gegenbauer_autocovariance(100_001, d, np.pi / 2)
    want = arfima_autocovariance(50_001, d) * (-1.0) ** np.arange(50_001)
    np.testing.assert_allclose(got[::2], want, rtol=1e-9, atol=0)
    assert np.abs(got[1::2]).max() < 1e-11


@pytest.mark.parametrize("n", [1, 2, 3])
def test_short_tables_are_the_start_of_long_ones(n):
    np.testing.assert_array_equal(fgn_autocovariance(n, 0.7), fgn_autocovariance(9, 0.7)[:n])
    np.testing.assert_allclose(
        arfima_autocovariance(n, 0.3, ar=[0.5]), arfima_autocovariance(9, 0.3, ar=[0.5])[:n]
    )
    np.testing.assert_array_equal(
        gegenbauer_autocovariance(n, 0.3, 1.0), gegenbauer_autocovariance(9, 0.3, 1.0)[:n]
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fgn_autocovariance(0, 0.7), "n must be at least 1, got 0"),
        (lambda: fgn_autocovariance(5, 1.0), r"hurst must lie strictly between 0 and 1, got 1\.0"),
        (lambda: fgn_autocovariance(5, float("nan")), "hurst .* got nan"),
        (lambda: arfima_autocovariance(5, 0.5), r"d must lie .* got 0\.5.*cumulative sum"),
        (lambda: arfima_autocovariance(5, 0.2, ar=[1.0]), "ar=.*not stationary.*modulus 1"),
        (lambda: arfima_autocovariance(5, 0.2, ar=[0.6, 0.6]), "not stationary"),
        (lambda: arfima_autocovariance(5, 0.2, ar=[np.nan]), "ar must be a sequence of finite numbers"),
        (lambda: arfima_autocovariance(5, 0.2, ma=0.5), "ma must be a sequence of finite numbers, got 0.5"),
        (lambda: arfima_autocovariance(5, 0.2, variance=0), "variance must lie"),
        (lambda: gegenbauer_autocovariance(5, 0.2, 0.0), "frequency must lie .*radians"),
        (lambda: gegenbauer_autocovariance(5, -0.5, 1.0), "d must lie"),
    ],
)
def test_parameters_outside_the_process_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("n", [2.0, "3", True, None])
def test_a_count_that_is_no_integer_is_a_type_error(n):
    with pytest.raises(TypeError, match="n must be a positive integer"):
        fgn_autocovariance(n, 0.7)


@pytest.mark.parametrize("d", ["0.3", None, True])
def test_an_order_that_is_no_number_is_a_type_error(d):
    with pytest.raises(TypeError, match="d must be a number"):
        arfima_autocovariance(5, d)
