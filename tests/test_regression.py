"""The ridge from streamed moments, against least squares on the rows themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts.regression import Moments


def origins(seed, missing):
    """Features (60, 4), targets (2 anchors, 60, 5 leads) with a share `missing`, a penalty (4,)."""
    rng = np.random.default_rng(seed)
    features, targets = rng.normal(size=(60, 4)), rng.normal(size=(2, 60, 5))
    targets[:, rng.random((60, 5)) < missing] = np.nan
    return features, targets, rng.uniform(0.1, 10, 4)


def direct(features, target, penalty):
    """Ridge of one target by least squares on the rows and the penalty stacked."""
    known = ~np.isnan(target)
    rows = np.vstack([features[known], np.diag(np.sqrt(penalty))])
    return np.linalg.lstsq(rows, np.append(target[known], np.zeros(penalty.size)), rcond=None)[0]


def streamed(features, targets, cuts=(13, 40)):
    moments = Moments.empty(features.shape[1], *targets.shape[::2])
    for x, y in zip(np.split(features, cuts), np.split(targets, cuts, axis=1), strict=True):
        moments.add(x, y)
    return moments


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.9]))
@settings(max_examples=25)
def test_the_ridge_is_that_of_the_rows_themselves(seed, missing):
    features, targets, penalty = origins(seed, missing)
    solved = streamed(features, targets).solve(penalty)
    for anchor in range(2):
        for lead in range(5):
            expected = direct(features, targets[anchor, :, lead], penalty)
            np.testing.assert_allclose(solved[anchor, :, lead], expected, atol=1e-10)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.9]))
@settings(max_examples=25)
def test_the_squared_error_is_that_of_the_rows_themselves(seed, missing):
    features, targets, _ = origins(seed, missing)
    coefficients = np.random.default_rng(seed).normal(size=(2, 4, 5))
    expected = np.nansum((targets - features @ coefficients) ** 2, axis=1)
    np.testing.assert_allclose(streamed(features, targets).squared_error(coefficients), expected, rtol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_sums_of_parts_are_the_moments_of_the_whole_and_leave_the_parts_alone(missing):
    features, targets, penalty = origins(0, missing)
    first, second = streamed(features[:20], targets[:, :20], ()), streamed(features[20:], targets[:, 20:], ())
    nothing, kept = Moments.empty(4, 2, 5), first.gram.copy()
    whole = nothing.plus([first, second])
    np.testing.assert_allclose(whole.solve(penalty), streamed(features, targets).solve(penalty), atol=1e-12)
    np.testing.assert_array_equal(first.gram, kept)
    assert not nothing.gram.any() and not nothing.cross.any() and not nothing.count.any()
    np.testing.assert_array_equal(whole.count, (~np.isnan(targets[0])).sum(0))


def test_a_lead_without_any_target_gets_no_weight():
    features, targets, penalty = origins(1, 0.0)
    targets[:, :, 3] = np.nan
    np.testing.assert_allclose(streamed(features, targets).solve(penalty)[:, :, 3], 0, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.9]))
@settings(max_examples=15)
def test_what_is_known_ahead_is_solved_for_beside_the_features_of_the_rows_themselves(seed, missing):
    features, targets, penalty = origins(seed, missing)
    rng = np.random.default_rng(seed)
    ahead, penalty = rng.normal(size=(2, 60, 5, 3)), np.append(penalty, rng.uniform(0.1, 10, 3))
    moments = Moments.empty(4, 2, 5, 3)
    for part in np.split(np.arange(60), [13, 40]):
        moments.add(features[part], targets[:, part], ahead[:, part])
    solved = Moments.empty(4, 2, 5, 3).plus([moments]).solve(penalty)
    errors = moments.squared_error(solved)
    for anchor in range(2):
        for lead in range(5):
            rows, target = np.hstack([features, ahead[anchor, :, lead]]), targets[anchor, :, lead]
            expected = direct(rows, target, penalty)
            np.testing.assert_allclose(solved[anchor, :, lead], expected, atol=1e-9)
            square = np.nansum((target - rows @ expected) ** 2)
            np.testing.assert_allclose(errors[anchor, lead], square, rtol=1e-8, atol=1e-9)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.4]))
@settings(max_examples=15)
def test_coefficients_around_a_prior_mean_are_it_and_what_the_rest_asks_for(seed, missing):
    features, targets, penalty = origins(seed, missing)
    rng = np.random.default_rng(seed)
    ahead, penalty = rng.normal(size=(1, 60, 5, 3)), np.append(penalty, rng.uniform(0.1, 10, 3))
    moments, means = Moments.empty(4, 1, 5, 3), rng.normal(size=(2, 7, 5))
    moments.add(features, targets[:1], ahead)
    solved = moments.solve(penalty, means, 1)
    for lead in range(5):
        rows, target = np.hstack([features, ahead[0, :, lead]]), targets[0, :, lead]
        for mean, found in zip(means[..., lead], solved[..., lead], strict=False):
            np.testing.assert_allclose(found, mean + direct(rows, target - rows @ mean, penalty), atol=1e-9)
        first, beside = means[0, :4, lead], means[0, 4:, lead]
        left = target - features @ first - ahead[0, :, lead] @ beside
        kept = first + direct(features, left, penalty[:4])
        np.testing.assert_allclose(solved[2, :, lead], np.append(kept, beside), atol=1e-9)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.9]))
@settings(max_examples=15)
def test_leads_that_know_the_same_share_its_moments(seed, missing):
    features, targets, penalty = origins(seed, missing)
    rng = np.random.default_rng(seed)
    ahead, penalty = rng.normal(size=(2, 60, 2, 3)), np.append(penalty, rng.uniform(0.1, 10, 3))
    sharing, apart = Moments.empty(4, 2, 5, 3, n_kinds=2), Moments.empty(4, 2, 5, 3)
    for part in np.split(np.arange(60), [13, 40]):
        sharing.add(features[part], targets[:, part], ahead[:, part])
        apart.add(features[part], targets[:, part], ahead[:, part][:, :, [0, 1, 0, 1, 0]])
    solved = sharing.solve(penalty)
    np.testing.assert_allclose(solved, apart.solve(penalty), atol=1e-9)
    np.testing.assert_allclose(sharing.squared_error(solved), apart.squared_error(solved), rtol=1e-8)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.6]), st.booleans())
@settings(max_examples=15)
def test_degrees_of_freedom_are_what_each_column_of_the_rows_takes_of_the_targets(seed, missing, beside):
    features, targets, penalty = origins(seed, missing)
    rng = np.random.default_rng(seed)
    n_ahead = 3 * beside
    ahead, penalty = rng.normal(size=(2, 60, 5, n_ahead)), np.append(penalty, [0.5, 1.0, 2.0][:n_ahead])
    moments = Moments.empty(4, 2, 5, n_ahead)
    moments.add(features, targets, ahead)
    found = moments.degrees_of_freedom(np.stack([penalty, 10 * penalty]))
    for lead in range(5):
        known = ~np.isnan(targets[0, :, lead])
        rows = np.concatenate([features, ahead[0, :, lead]], axis=1)[known]
        for i, factor in enumerate((1, 10)):
            for j, n in enumerate((penalty.size, 4)):
                x, prior = rows[:, :n], np.diag(factor * penalty[:n])
                learned = np.linalg.solve(x.T @ x + prior, x.T)
                np.testing.assert_allclose(found[i, j, :n, lead], np.diag(learned @ x), atol=1e-9)
                assert not found[i, j, n:, lead].any()
