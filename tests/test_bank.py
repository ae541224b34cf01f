"""The mode bank, against its sums written out."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts.bank import ModeBank
from fracts.memory import mode_timescales

nan = np.nan


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=25)
def test_the_state_is_the_sum_of_decayed_turned_values(seed, whole):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((2, 50)) < 0.3, nan, rng.normal(size=(2, 50)))
    times = np.cumsum(rng.integers(1, 4, 50) if whole else rng.exponential(size=50)).astype(float)
    bank = ModeBank(np.geomspace(0.5, 200, 6), 2 * np.pi / np.array([24, 7, 2]))
    states = bank.run(bank.empty(2), values, np.diff(times, prepend=times[0]))
    for row in (0, 20, 49):
        age = times[row] - times[: row + 1, None]
        kernel = (1 - np.exp(-1 / bank.tau)) * np.exp(age * (-1 / bank.tau + 1j * bank.frequency))
        known = ~np.isnan(values[:, : row + 1])
        expected = np.stack([np.where(known, values[:, : row + 1], 0) @ kernel, known @ kernel], axis=1)
        np.testing.assert_allclose(states[:, row], expected, rtol=1e-12, atol=1e-13)


def test_a_seasonal_mode_answers_an_impulse_by_a_decay_times_cosine_and_sine():
    bank = ModeBank(np.array([50.0]), np.array([2 * np.pi / 12]))
    impulse = np.eye(1, 100)
    features = bank.features(bank.run(bank.empty(1), impulse, np.ones(100))[0], np.zeros(100), np.ones(100))
    t = np.arange(100)
    decay, turn = (1 - np.exp(-1 / 50)) * np.exp(-t / 50), 2 * np.pi * t / 12
    expected = np.column_stack([decay, decay * np.cos(turn), decay * np.sin(turn)])
    np.testing.assert_allclose(features, expected, atol=1e-15)


def test_a_row_without_value_only_moves_the_clock():
    bank = ModeBank(np.array([3.0, 300.0]), np.array([0.7]))
    start = bank.run(bank.empty(1), np.array([[1.0, -2.0]]), np.ones(2))[:, -1]
    rows = bank.run(start, np.full((1, 10_000), nan), np.ones(10_000))[:, -1]
    gap = bank.run(start, np.array([[nan]]), np.array([10_000.0]))[:, -1]
    np.testing.assert_allclose(rows, gap, rtol=1e-9, atol=1e-300)


def test_centre_and_scale_act_as_though_taken_off_every_value():
    rng = np.random.default_rng(0)
    values, steps = rng.normal(size=(1, 80)), rng.exponential(size=80)
    bank = ModeBank(np.geomspace(1, 100, 4), np.array([0.5]))
    raw = bank.features(bank.run(bank.empty(1), values, steps)[:, -1], np.array([3.0]), np.array([2.0]))
    standard = bank.run(bank.empty(1), (values - 3) / 2, steps)[:, -1]
    np.testing.assert_allclose(raw, bank.features(standard, np.zeros(1), np.ones(1)), atol=1e-13)


def test_at_half_a_turn_there_is_no_imaginary_feature_and_fast_modes_have_no_season():
    bank = ModeBank(np.array([0.1, 2.0]), np.array([np.pi, 0.1]))
    np.testing.assert_array_equal(bank.tau, [0.1, 2, 2])  # at pi tau = 2 alone, at 0.1 neither
    assert bank.feature_tau.size == 3 and not bank.turning.any()


def test_the_arfima_predictor_lies_in_the_space_of_24_modes():
    lags = np.arange(1.0, 4096)
    weights = 0.4 * np.cumprod(np.append(1.0, (lags - 0.4) / (lags + 1)))  # of (1 - B)^0.4
    tau = mode_timescales(1.0, 131072.0, 24)[:-1]
    basis = (1 - np.exp(-1 / tau)) * np.exp(-np.arange(4096)[:, None] / tau)
    coefficients = np.linalg.lstsq(basis / weights[:, None], np.ones(4096), rcond=None)[0]
    np.testing.assert_allclose(basis @ coefficients, weights, rtol=2e-5)
