"""Quantiles of held-out errors: what few of them say of bias and skew is chance, what many say is kept."""

import numpy as np
import pytest

from fracts.forecasts import MEDIAN_AT, QUANTILES
from fracts.held_out import Errors, own_quantiles

SKEWED = np.random.default_rng(0).exponential(size=4000) - 1.0


def quantiles(sizes, lead=1):
    """Of errors at one lead, which so many steps overlap."""
    table = np.full((sizes.size, lead), np.nan)
    table[:, -1] = sizes
    return own_quantiles([Errors(np.array([0]), table[None])], 1, np.arange(1.0, lead + 1)[None])[0, -1]


def test_skew_that_many_errors_show_is_kept():
    told = np.quantile(SKEWED, QUANTILES, method="median_unbiased")
    np.testing.assert_allclose(quantiles(SKEWED), told, atol=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_of_few_errors_that_overlap_no_other_lie_evenly_around_a_median_of_none(seed):
    steps = np.random.default_rng(seed).normal(size=230)
    sums = np.convolve(steps, np.ones(30), "valid")  # what 30 steps add up to: six of these are new
    found = quantiles(sums, lead=30)
    assert found[MEDIAN_AT] == 0
    np.testing.assert_allclose(found, -found[::-1], atol=1e-12)


def test_a_bias_many_times_what_chance_leaves_moves_the_median():
    sizes = np.random.default_rng(1).normal(size=400)
    assert quantiles(sizes + 1.0)[MEDIAN_AT] == pytest.approx(1.0, abs=0.15)
    assert abs(quantiles(sizes + 0.1)[MEDIAN_AT]) < 0.03


def test_a_bias_left_out_widens_the_interval():
    sizes = np.random.default_rng(1).normal(size=40)
    plain, biased = (quantiles(sizes - sizes.mean() + bias, lead=4) for bias in (0.0, 0.5))
    assert (np.ptp(biased) > 1.05 * np.ptp(plain)) and biased[MEDIAN_AT] == pytest.approx(0.0, abs=1e-9)
