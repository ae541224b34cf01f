"""The causal centre and scale, against their definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts.scaling import Scaler, decayed_sums

nan = np.nan


def weighted(values, times, timescale):
    """Decayed mean and standard deviation at the last row, written out."""
    seen = ~np.isnan(values)
    weight = np.exp(-(times[-1] - times[seen]) / timescale)
    mean = (weight * values[seen]).sum() / weight.sum()
    return mean, np.sqrt((weight * (values[seen] - mean) ** 2).sum() / weight.sum())


def steps_of(times):
    return np.diff(times, prepend=times[0])


@given(st.integers(0, 2**32 - 1), st.integers(0, 70), st.sampled_from([1, 3, 200]), st.booleans())
@settings(max_examples=60)
def test_a_decayed_sum_is_the_one_before_it_decayed_and_what_comes(seed, n_rows, n_modes, of_each):
    rng = np.random.default_rng(seed)
    start = rng.normal(size=(2, n_modes)) + 1j * rng.normal(size=(2, n_modes))
    decay = rng.uniform(0, 1, (n_rows, 2, n_modes) if of_each else (n_rows, n_modes)) * np.exp(1j)
    drive = rng.normal(size=(2, n_rows, n_modes)).astype(complex)
    given_start, given_drive = start.copy(), drive.copy()
    sums = decayed_sums(start, decay, drive)
    before = np.concatenate([start[:, None], sums], axis=1)[:, :n_rows]
    due = (decay.swapaxes(0, 1) if of_each else decay) * before + drive
    np.testing.assert_allclose(sums, due, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(start, given_start)
    np.testing.assert_array_equal(drive, given_drive)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.5]), st.sampled_from([3.0, 1e5]))
@settings(max_examples=25)
def test_centre_and_scale_are_the_decayed_mean_and_deviation(seed, holes, timescale):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random(40) < holes, nan, rng.normal(50, 3, 40))
    values[[0, 3]] = rng.normal(50, 3, 2)
    times = np.cumsum(rng.exponential(size=40))
    scaler = Scaler(timescale)
    centre, scale = scaler.read(scaler.run(scaler.empty(1), values[None], steps_of(times))[:, -1])
    np.testing.assert_allclose([centre[0], scale[0]], weighted(values, times, timescale), rtol=1e-9)


def test_a_gap_cut_anywhere_gives_the_same_sums():
    scaler = Scaler(100.0)
    start = scaler.run(scaler.empty(1), np.array([[1.0, 4.0, 2.0]]), np.ones(3))[:, -1]
    whole = scaler.run(start, np.array([[5.0]]), np.array([70.0]))[:, -1]
    cut = scaler.run(start, np.array([[nan, nan, 5.0]]), np.array([0.5, 50.0, 19.5]))[:, -1]
    np.testing.assert_allclose(cut, whole, rtol=1e-14)


@pytest.mark.parametrize("level, rtol", [(0.0, 1e-12), (1e9, 1e-6)])
def test_a_series_far_from_zero_keeps_its_digits(level, rtol):
    values = np.random.default_rng(0).normal(size=(1, 5000))
    scaler = Scaler(1e6)
    centre, scale = scaler.read(scaler.run(scaler.empty(1), values + level, np.ones(5000))[:, -1])
    mean, deviation = weighted(values[0], np.arange(5000.0), 1e6)
    np.testing.assert_allclose([centre[0] - level, scale[0]], [mean, deviation], rtol=rtol, atol=rtol * 0.1)


@pytest.mark.parametrize("constant", [0.0, 7.5, -1e9])
def test_a_constant_series_has_its_value_as_centre_and_a_scale_too_small_to_see(constant):
    scaler = Scaler(1e5)
    centre, scale = scaler.read(scaler.run(scaler.empty(1), np.full((1, 50), constant), np.ones(50)))
    assert (
        (centre == constant).all() and (scale > 0).all() and (scale <= 1e-13 * abs(constant) + 1e-299).all()
    )


def test_before_the_first_value_the_centre_is_zero():
    scaler = Scaler(10.0)
    sums = scaler.run(scaler.empty(2), np.array([[nan, 3.0], [nan, nan]]), np.ones(2))
    np.testing.assert_array_equal(scaler.read(sums)[0], [[0, 3], [0, 0]])
    np.testing.assert_array_equal(scaler.origin(sums[:, -1]), [3, 0])
