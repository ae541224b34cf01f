"""The seasonal slots, against the rule written out value by value."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts.anchor import SeasonSlots

nan = np.nan


def written_out(anchor, values, times, now, lead):
    """What one series says at `now` of `now + lead`: the mean of its phase, else its last value.

    Moved slots add how far the last value lay from the mean of its own phase before it.
    """
    seen = (times <= now) & ~np.isnan(values)
    if not seen.any():
        return nan
    same = values[seen & (phases(anchor, times) == phases(anchor, now + lead))]
    if not same.size:
        return values[seen][-1]
    off = 0.0
    if anchor.moved:
        *before, last = values[seen & (phases(anchor, times) == phases(anchor, times[seen][-1]))]
        off = last - decayed_mean(anchor, np.array(before)) if before else 0.0
    return decayed_mean(anchor, same) + off


def phases(anchor, times):
    return np.floor(times) % anchor.season_length


def decayed_mean(anchor, values):
    if not anchor.memory:
        return values[-1]
    weight = np.exp(-np.arange(values.size)[::-1] / anchor.memory)
    return (weight * values).sum() / weight.sum()


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 9),
    st.sampled_from([0.0, 0.5, 5.0]),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=60)
def test_every_row_says_the_decayed_mean_of_its_phase(seed, season, memory, moved, whole):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((2, 30)) < 0.3, nan, rng.normal(size=(2, 30)))
    times = np.cumsum(rng.integers(1, 4, 30) if whole else rng.exponential(size=30)).astype(float)
    anchor = SeasonSlots(season, memory, moved)
    _, said = anchor.run(anchor.empty(2), values, times, np.arange(1, 13))
    expected = [[[written_out(anchor, v, times, t, k) for k in range(1, 13)] for t in times] for v in values]
    np.testing.assert_allclose(said, expected, rtol=1e-12, atol=1e-14)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 9),
    st.sampled_from([0.0, 5.0]),
    st.booleans(),
    st.integers(1, 29),
)
@settings(max_examples=60)
def test_a_stream_equals_a_batch(seed, season, memory, moved, cut):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((3, 30)) < 0.3, nan, rng.normal(size=(3, 30)))
    times = np.cumsum(rng.exponential(size=30))
    anchor = SeasonSlots(season, memory, moved)
    whole, said = anchor.run(anchor.empty(3), values, times, np.arange(1, 6))
    first = anchor.advance(anchor.empty(3), values[:, :cut], times[:cut])
    second, later = anchor.run(first, values[:, cut:], times[cut:], np.arange(1, 6))
    rounding = {"rtol": 1e-13, "atol": 1e-14}
    np.testing.assert_allclose(second, whole, **rounding)
    np.testing.assert_allclose(later, said[:, cut:], **rounding)
    np.testing.assert_allclose(anchor.read(whole, times[-1], 5), said[:, -1], **rounding)


@pytest.mark.parametrize("moved", [False, True])
def test_rows_without_value_and_dropped_rows_leave_the_same_slots(moved):
    rng = np.random.default_rng(0)
    values, times = rng.normal(size=(1, 500)), np.arange(500.0)
    seen = rng.random(500) < 0.4
    anchor = SeasonSlots(7, 3.0, moved)
    missing = anchor.advance(anchor.empty(1), np.where(seen, values, nan), times)
    dropped = anchor.advance(anchor.empty(1), values[:, seen], times[seen])
    np.testing.assert_allclose(missing, dropped, rtol=1e-13)


def test_the_input_state_is_left_alone():
    anchor = SeasonSlots(3, 2.0)
    slots = anchor.advance(anchor.empty(1), np.ones((1, 4)), np.arange(4.0))
    kept = slots.copy()
    anchor.advance(slots, np.zeros((1, 2)), np.array([4.0, 5.0]))
    np.testing.assert_array_equal(slots, kept)


@pytest.mark.parametrize("gap", [1e3, 1e9])
def test_a_long_gap_changes_nothing_that_is_said(gap):
    anchor = SeasonSlots(4, 5.0)
    slots = anchor.advance(anchor.empty(1), np.array([[1.0, 2.0, 3.0, 4.0, 2.0]]), np.arange(5.0))
    after, _ = anchor.run(
        slots, np.array([[nan, 6.0]]), np.array([4 * gap + 4, 4 * gap + 5]), np.ones(1, int)
    )
    np.testing.assert_array_equal(
        anchor.read(after, 4 * gap + 7, 4)[:, [0, 2, 3]], anchor.read(slots, 7, 4)[:, [0, 2, 3]]
    )
