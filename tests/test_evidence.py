"""What held-out time says of penalties and anchors: neither an odd series nor a wild value rules."""

import numpy as np
import pytest

from fracts.evidence import choose, costs_of_learning, log_errors, moments_to_try, trimmed
from fracts.folds import Share, held_out_counts, overlaps
from fracts.recall import linear_memory
from fracts.regression import Penalty
from fracts.series import Panel
from fracts.shares import noise_of, noise_weights

H = 3
LEADS = np.arange(H)
WALKS = np.random.default_rng(1).normal(size=(7, 150)).cumsum(1)


def memory(panel):
    return linear_memory(panel, H, 8, (1.0, 512.0), ())


def told(values):
    panel = Panel(values, np.arange(float(values.shape[1])))
    return memory(panel), Share(panel, noise_weights(noise_of(memory(panel), panel, LEADS)))


def test_a_fifth_of_what_groups_say_is_cut_off_at_either_end():
    said = np.array([100.0, 2.0, 4.0, 3.0, -50.0])[:, None]
    assert trimmed(said, np.full((5, 1), 7.0)) == pytest.approx(3.0)


def test_groups_count_by_their_held_out_targets():
    said, counts = np.array([[1.0], [2.0], [30.0]]), np.array([[2.0], [2.0], [1.0]])
    assert trimmed(said, counts) == pytest.approx(5 / 3)  # the 30 and half of the 1 are cut off
    assert trimmed(said, 1000 * counts) == pytest.approx(5 / 3)


def test_what_one_group_says_is_what_is_said():
    said = np.random.default_rng(0).normal(size=(1, 4, 2, H))
    np.testing.assert_allclose(trimmed(said, np.full((1, H), 5.0)), said[0])


ODD = {
    "a step of a million": np.where(np.arange(150) < 75, 1.0, 1e6),
    "there and back": np.where(np.arange(150) % 2, 1.0, -1.0),
    "no series at all": np.where(np.arange(150) == 75, 2.0, np.nan),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_an_odd_series_among_walks_turns_the_choice_of_no_anchor(odd):
    without, beside = told(WALKS), told(np.vstack([WALKS, odd]))
    for pooled in (True, False):
        (expected, _), (found, _) = (choose(*each, LEADS, pooled) for each in (without, beside))
        assert found == expected


def test_a_wild_value_in_one_fold_leaves_the_others_their_say():
    """By sums of squares it would outweigh them, and all penalties would look alike."""
    draws, calm = np.random.default_rng(0).normal(size=300), np.zeros((1, 300))
    for t in range(1, 300):
        calm[0, t] = draws[t] - 0.9 * calm[0, t - 1]
    wild = np.where(np.arange(300) == 250, 1e4, calm)
    penalties = [Penalty(0.5, 0.0, strength) for strength in (1.0, 1e6)]
    said = []
    for y in (wild, calm):
        memory, share = told(y)
        moments = moments_to_try(memory, share, LEADS, pooled=True)
        said.append(np.ptp(log_errors(memory, moments, True, penalties)[:, 0], axis=0))
    assert (said[0] > said[1] / 3).all()


def test_learning_costs_the_less_the_stiffer_the_longer_the_history_and_the_nearer_the_lead():
    penalties = [Penalty(0.5, 0.0, strength) for strength in (1.0, 100.0, 1e4)]
    found = []
    for rows in (200, 2000):
        memory, share = told(np.random.default_rng(0).normal(size=(1, rows)).cumsum(1))
        memory = memory.blending()
        moments, shared = moments_to_try(memory, share, LEADS, pooled=True), overlaps(share.panel, LEADS)[0]
        costs = costs_of_learning(memory, moments, True, penalties, shared)
        assert (np.diff(costs, axis=0) < 0).all() and (np.diff(costs, axis=-1) > 0).all()
        assert (costs[:, -memory.n_alone :] < costs[:, : memory.n_alone]).all()  # a blend kept is not learned
        found.append(costs)
    assert (found[1] < found[0]).all()


def test_every_step_of_a_lead_overlaps_where_all_steps_are_seen_and_few_do_where_few_are():
    leads, draws = np.array([0, 3, 11, 47]), np.random.default_rng(0)
    y = np.arange(4000.0)[None]
    whole = Panel(y, np.arange(4000.0))
    assert np.array_equal(overlaps(whole, leads)[0], 1 + leads)
    kept = draws.random(4000) < 0.5
    rows = Panel(y[:, kept], np.flatnonzero(kept).astype(float))
    holes = Panel(np.where(kept, y, np.nan), whole.times)
    due = kept[: -leads[-1] - 1]
    pairs = np.array([np.mean(due & kept[1 + lead : 1 + lead + due.size]) for lead in leads])  # a step
    for panel in (rows, holes):
        np.testing.assert_allclose(overlaps(panel, leads)[0], np.maximum((1 + leads) * pairs, 1.0), rtol=0.05)


def test_with_half_of_the_rows_missing_at_random_a_lead_of_many_steps_lacks_no_more_forecasts():
    leads = np.array([19])
    rows = np.flatnonzero(np.random.default_rng(0).random(4000) < 0.5)
    new = []
    for times in (np.arange(4000.0), rows.astype(float)):
        panel = Panel(np.random.default_rng(1).normal(size=(1, times.size)), times)
        memory = linear_memory(panel, 20, 8, (1.0, 512.0), ())
        counts, _ = held_out_counts(memory, panel, pooled=True)
        new.append((counts[leads] / overlaps(panel, leads)).item())
    assert new[1] == pytest.approx(new[0], rel=0.1)
