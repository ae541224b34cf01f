"""Metrics against answers worked out by hand."""

import numpy as np
import pytest

from fracts.scores import coverage, mase, naive_scale, pinball, rmsse

TRUTH = np.array([[1.0, 2.0], [np.nan, 4.0]])  # (origins, horizon)
POINT = np.array([[2.0, 2.0], [9.0, 1.0]])


def test_the_scale_skips_missing_values():
    assert naive_scale([1.0, np.nan, 4.0, 2.0]) == (3 + 2) / 2
    assert naive_scale([1.0, np.nan, 4.0, 2.0], power=2) == (9 + 4) / 2
    assert np.isnan(naive_scale([1.0]))


def test_errors_are_told_in_units_of_the_scale_without_missing_truths():
    assert mase(TRUTH, POINT, scale=2.0) == pytest.approx((1 + 0 + 3) / 3 / 2)
    assert rmsse(TRUTH, POINT, scale=2.0) == pytest.approx(np.sqrt((1 + 0 + 9) / 3 / 2))


def test_coverage_counts_both_ends_and_no_missing_truth():
    assert coverage([1.0, 2.0, np.nan, 5.0], [1.0, 0.0, 0.0, 0.0], [3.0, 2.0, 9.0, 4.0]) == pytest.approx(
        2 / 3
    )


def test_pinball_weighs_the_two_sides_of_a_quantile():
    assert pinball(TRUTH, POINT, quantile=0.9) == pytest.approx((0.1 * 1 + 0 + 0.9 * 3) / 3)


def test_pinball_is_least_at_the_quantile_itself():
    truth = np.random.default_rng(0).exponential(size=2001)
    losses = {q: pinball(truth, np.quantile(truth, q), 0.8) for q in (0.7, 0.75, 0.8, 0.85, 0.9)}
    assert min(losses, key=losses.get) == 0.8
