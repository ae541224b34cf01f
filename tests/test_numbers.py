"""Large and small numbers: no digit is lost outside a network, and units are only a factor."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts.baselines import Mean, Naive, SeasonalNaive
from fracts.ridge import FracRidge

WALK = np.random.default_rng(4).normal(size=120).cumsum() + 20
COUNTER = np.random.default_rng(5).integers(0, 2**20, 120).cumsum()  # bytes that went through a wire


def test_1024_times_the_values_have_exactly_1024_times_the_forecast(entry):
    once, often = (entry.make(3).fit(WALK * factor) for factor in (1.0, 1024.0))
    # A search for the likeliest coefficients ends where its rounding leads it.
    same = partial(np.testing.assert_allclose, rtol=0.0 if entry.shared else entry.tolerance)
    same(often.forecast(level=[50, 90]), 1024 * once.forecast(level=[50, 90]))
    for model, factor in ((once, 1.0), (often, 1024.0)):
        model.update(WALK[:9] * factor)
    same(often.forecast(7, level=90), 1024 * once.forecast(7, level=90))


@settings(max_examples=15)
@given(st.integers(-200, 200), st.integers(0, 2**32 - 1))
def test_any_power_of_two_is_an_exact_factor_of_a_ridge(power, seed):
    y = np.random.default_rng(seed).normal(size=80).cumsum()
    once, often = (FracRidge(2, season_lengths=5).fit(y * factor) for factor in (1.0, 2.0**power))
    np.testing.assert_array_equal(often.forecast(level=90), 2.0**power * once.forecast(level=90))


@pytest.mark.parametrize("size", [1e-30, 1e-9, 1e12, 1e30])
def test_the_size_of_the_values_is_the_size_of_the_forecast(entry, size):
    np.testing.assert_allclose(
        entry.make(3).fit(WALK * size).forecast(level=90) / size,
        entry.make(3).fit(WALK).forecast(level=90),
        rtol=0,
        atol=(1e-9 + 10 * entry.tolerance) * np.abs(WALK).max(),
    )


@pytest.mark.parametrize("offset", [2**31, 2**40, 2**50, -(2**50)])
def test_a_counter_far_from_zero_keeps_its_digits(real_time_entry, offset):
    """Not so the classical models: by its level Theta chooses whether a season is added or multiplies."""
    entry = real_time_entry
    near, far = (entry.make(3).fit(COUNTER + shift) for shift in (0, offset))
    moved = far.forecast(level=90) - offset
    tolerance = 64 * np.spacing(float(abs(offset))) + 1e-4 * (not entry.odd) * np.ptp(COUNTER)
    np.testing.assert_allclose(moved, near.forecast(level=90), rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "Int64", "int64[pyarrow]"])
def test_integers_up_to_2_to_the_53_come_back_to_the_last_digit(dtype):
    y = pd.Series([2**53 - 3, 2**53 - 1], dtype=dtype)
    assert int(Naive(1).fit(y).predict().iloc[0]) == 2**53 - 1
    holed = pl.Series("y", [2**53 - 3, None, 2**53 - 1])
    assert int(Naive(1).fit(holed).predict()[0]) == 2**53 - 1


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, 2**63 - 1])
def test_an_integer_that_float64_cannot_keep_is_named(value):
    holed = pl.DataFrame({"ds": [1, 2, 3], "y": [1, None, value]})
    for y in (np.array([1, value]), pd.Series([1, None, value], dtype="Int64"), holed):
        with pytest.raises(
            ValueError, match=rf"{value}, which float64 cannot keep to the last digit.*Subtract"
        ):
            Naive(1).fit(y)
    assert Naive(1).fit(np.array([1, 2**60])).forecast()[0] == 2.0**60  # which it can


def test_short_floats_and_integers_are_computed_with_in_float64():
    y = np.array([16777217, 16777219, 16777221] * 9)  # float32 has every second of these only
    for model in (Naive(3), SeasonalNaive(3, season_length=3)):
        assert model.fit(y.astype("int32")).forecast().dtype == np.float64
        np.testing.assert_array_equal(model.fit(y).forecast() % 2, 1)
    assert Mean(1).fit(y).forecast()[0] == 16777219
    small = Mean(1).fit(np.array([0.1, 0.2], dtype="float32"))
    assert small.forecast()[0] == np.float32([0.1, 0.2]).astype(float).mean()
