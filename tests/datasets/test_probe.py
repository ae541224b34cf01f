"""The heavy-tail probe against a sum in exact arithmetic."""

from fractions import Fraction
from math import fsum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts.datasets import make_heavy_tail


@settings(max_examples=40, deadline=None)
@given(
    length=st.integers(1, 120),
    exponent=st.sampled_from([1, 2, 3]),
    probability=st.floats(0.01, 0.95),
    seed=st.integers(0, 10_000),
)
def test_labels_are_the_signs_of_sums_of_fractions_ties_included(length, exponent, probability, seed):
    events, labels = make_heavy_tail(2, length, exponent, event_probability=probability, random_state=seed)
    for sequence, label in zip(events.tolist(), labels.tolist(), strict=True):
        for now in range(length):
            total = sum(
                Fraction(event, (now - s + 1) ** exponent) for s, event in enumerate(sequence[: now + 1])
            )
            assert label[now] == (total > 0) - (total < 0)


def test_a_tie_has_label_0():
    """-1/3 + 1/2 - 1/6 = 0 at the sixth step: the transform gives some 1e-17 there."""
    for seed in range(20_000):
        events, labels = make_heavy_tail(1, 7, 1, event_probability=0.5, random_state=seed)
        if events[0, :6].tolist() in ([-1, 0, 0, -1, 1, 0], [1, 0, 0, 1, -1, 0]):
            assert labels[0, 5] == 0
            return
    raise AssertionError("no draw has the tie")


@pytest.mark.parametrize("exponent", [0.1, 0.5])
def test_labels_hold_at_131_072_steps(exponent):
    events, labels = make_heavy_tail(1, 131_072, exponent, random_state=9)
    weights = np.arange(1.0, 131_073) ** -exponent
    for now in [*range(0, 131_072, 6_553), 131_071]:
        assert labels[0, now] == np.sign(fsum(events[0, : now + 1] * weights[now::-1]))


def test_nothing_has_a_label_before_the_first_event_and_everything_after():
    events, labels = make_heavy_tail(50, 4096, 0.3, event_probability=0.01, random_state=1)
    started = np.cumsum(np.abs(events), axis=1) > 0
    np.testing.assert_array_equal(labels != 0, started)
    assert 0 < started.mean() < 1


def test_events_come_at_the_given_rate_with_either_sign():
    events, _ = make_heavy_tail(100, 1000, 0.3, event_probability=0.2, random_state=3)
    assert events.dtype == np.int8
    assert set(np.unique(events)) == {-1, 0, 1}
    n = events.size
    assert abs(np.mean(events != 0) - 0.2) < 4 * np.sqrt(0.2 * 0.8 / n)
    assert abs(np.mean(events)) < 4 * np.sqrt(0.2 / n)


def test_a_seed_repeats_a_generator_moves_on_and_the_global_state_stays():
    before = np.random.get_state()[1].copy()
    generator = np.random.default_rng(4)
    first, second = (make_heavy_tail(2, 200, 0.3, random_state=generator)[0] for _ in range(2))
    np.testing.assert_array_equal(first, make_heavy_tail(2, 200, 0.3, random_state=4)[0])
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_sequences": 0}, "n_sequences must be at least 1"),
        ({"length": -3}, "length must be at least 1"),
        ({"exponent": 0.0}, "exponent must lie strictly between 0 and inf"),
        ({"event_probability": 1.5}, "event_probability must lie"),
    ],
)
def test_parameters_outside_the_probe_are_named(changed, message):
    with pytest.raises(ValueError, match=message):
        make_heavy_tail(**{"n_sequences": 1, "length": 5, "exponent": 0.3} | changed)
