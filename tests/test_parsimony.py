"""The trial taken is the simplest of those that the windows do not tell from the best."""

import numpy as np
import pytest

from fracts.parsimony import simplest

RNG = np.random.default_rng(0)
WINDOWS = 1.0 + RNG.exponential(size=30)  # some are harder to forecast than others, for all models


def losses_of(*behind):
    """Losses on each window of trials that are behind the best by these on each."""
    return WINDOWS + np.array([np.broadcast_to(each, 30) for each in behind], dtype=np.float64)


def chosen(splits, highs):
    return simplest(np.nanmean(splits, axis=1), splits, np.array(highs, dtype=np.float64)[:, None])


def unsteady(mean):
    behind = RNG.normal(size=30)
    return behind - behind.mean() + mean


def test_a_shorter_memory_is_taken_where_it_is_behind_by_chance():
    assert chosen(losses_of(0.0, unsteady(0.05)), [512, 64]) == 1


def test_a_shorter_memory_that_is_a_little_worse_on_every_window_is_not_taken():
    """However much harder some windows are than others, for both."""
    assert chosen(losses_of(0.0, 0.01 + 0.001 * RNG.normal(size=30)), [512, 64]) == 0


def test_of_equal_memories_the_fewer_modes_are_taken_and_then_the_least_loss():
    splits = losses_of(0.0, unsteady(1e-3), unsteady(2e-3))
    losses = splits.mean(1)
    assert simplest(losses, splits, np.array([[64.0, 9.0], [64.0, 5.0], [64.0, 4.0]])) == 2
    assert simplest(losses, splits, np.array([[64.0, 9.0], [64.0, 5.0], [64.0, 5.0]])) == 1


@pytest.mark.parametrize("n_splits", [0, 1])
def test_without_two_windows_there_is_no_standard_error_and_the_best_is_taken(n_splits):
    losses = np.array([1.1, 1.0, 1.2])
    splits = np.repeat(losses[:, None], n_splits, axis=1)
    assert simplest(losses, splits, np.array([[64.0], [512.0], [16.0]])) == 1


def test_trials_without_a_loss_or_with_an_endless_one_are_not_taken():
    losses, highs = np.array([2.0, np.nan, np.inf]), np.array([[512.0], [64.0], [16.0]])
    assert simplest(losses, losses_of(0.0, np.nan, np.inf), highs) == 0


def test_a_window_without_a_value_is_left_out():
    splits = losses_of(0.0, 0.01 + 0.001 * RNG.normal(size=30))
    splits[:, 3] = np.nan
    assert chosen(splits, [512, 64]) == 0
