"""The tracker of quantiles: what a value does to thresholds, and what holds whatever the values are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from fracts.conformal import Calibrator, Outlook, Said
from fracts.forecasts import QUANTILES
from fracts.series import Panel

nan = np.nan
GROUP = np.zeros(1, dtype=np.int64)


def calibrator(horizon=1):
    return Calibrator.of(np.sqrt(np.arange(1, horizon + 1.0))[None, :, None] * ndtri(QUANTILES))


def as_made(due, _):
    return Outlook(due.median, due.scale, due.scale)


def learned(tracker, state, values, start=0, scale=1.0, median=0.0):
    """`state` after rows of `values` (rows,) or (series, rows); the model said `median` of all leads."""
    values = np.atleast_2d(values)
    shape = values.shape
    said = Said(
        np.full((*shape, len(tracker.between)), median), np.full(shape, float(scale)), np.empty((*shape, 0))
    )
    panel = Panel(values, start + np.arange(float(shape[1])))
    return tracker.along(state, panel, said, as_made, np.arange(0))[0]


def begun(tracker, n_series=1):
    group = np.repeat(GROUP, n_series)
    return tracker.empty(group) | {"group": group}


def test_before_any_value_the_errors_to_expect_are_the_held_out_ones():
    rng = np.random.default_rng(0)
    errors = np.sort(rng.normal(size=(2, 30, QUANTILES.size)), axis=-1)
    tracker, group = Calibrator.of(errors), np.array([1, 0, 1])
    found = tracker.errors(tracker.empty(group) | {"group": group})
    np.testing.assert_allclose(found, errors[group], atol=1e-12)


def test_a_value_far_above_moves_every_threshold_up_by_its_level_of_a_step():
    tracker = calibrator()
    state = learned(tracker, begun(tracker), [0.0, 50.0])
    moved = state["thresholds"] - begun(tracker)["thresholds"]
    np.testing.assert_allclose(moved[0, 0], 0.1 * QUANTILES, atol=1e-12)
    below = learned(tracker, begun(tracker), [0.0, -50.0])
    moved = below["thresholds"] - begun(tracker)["thresholds"]
    np.testing.assert_allclose(moved[0, 0], 0.1 * (QUANTILES - 1), atol=1e-12)


def test_the_averages_go_towards_an_error_and_its_size_and_no_farther_than_ten_sizes():
    tracker = calibrator()
    size = begun(tracker)["averages"][0, 0, 1]
    near, far = (learned(tracker, begun(tracker), [0.0, y * size])["averages"][0, 0] for y in (-2.0, 500.0))
    slow, quick = -np.expm1(-1 / 104), -np.expm1(-1 / 22)
    np.testing.assert_allclose(near / size, [-2 * slow, 1 + slow, 1 + quick])
    np.testing.assert_allclose(far / size, [10 * slow, 1 + 9 * slow, 1 + 9 * quick])


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_an_error_is_measured_by_its_side_of_the_median(side):
    tracker = calibrator()
    said = Said(np.full((1, 2, 1), 5.0), np.ones((1, 2)), np.empty((1, 2, 0)))

    def after(value, below, above):
        panel = Panel(np.array([[5.0, value]]), np.arange(2.0))
        sides = below * np.ones((1, 1)), above * np.ones((1, 1))
        return tracker.along(
            begun(tracker), panel, said, lambda due, _: Outlook(due.median, *sides), np.arange(0)
        )[0]

    wide = after(5 + 3 * side, 3.0, 1.0) if side < 0 else after(5 + 3 * side, 1.0, 3.0)
    plain = after(5 + side, 1.0, 1.0)
    for name in ("thresholds", "averages"):
        np.testing.assert_allclose(wide[name], plain[name])


@pytest.mark.parametrize("lead", [1, 2, 5])
def test_a_lead_learns_when_its_value_comes_and_not_before(lead):
    tracker, state = calibrator(5), begun(calibrator(5))
    at = tracker.leads.tolist().index(lead)
    for row in range(8):
        before = state["thresholds"][0, at].copy()
        state |= learned(tracker, state, [9.0], start=row)
        assert (state["thresholds"][0, at] != before).any() == (row >= lead)


def test_an_error_is_told_from_the_thresholds_and_averages_of_the_time_of_its_forecast():
    tracker = calibrator(5)
    at = tracker.leads.tolist().index(5)
    state = begun(tracker)
    state |= learned(tracker, state, [0.3])
    for row in range(1, 5):  # thresholds of lead 5 stay: nothing is due
        state |= learned(tracker, state, [nan], start=row)
    moved_on = state | {"thresholds": state["thresholds"] + 100, "averages": state["averages"] * 7}
    first, second = (learned(tracker, s, [0.8], start=5)["thresholds"][0, at] for s in (state, moved_on))
    np.testing.assert_allclose(second - first, 100)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=60))
def test_one_step_ahead_thresholds_never_cross_whatever_comes(values):
    tracker = calibrator()
    state = begun(tracker)
    for row, value in enumerate(values):
        state |= learned(tracker, state, [value], start=row)
        assert (np.diff(state["thresholds"]) > 0).all()


@settings(max_examples=12)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["noise", "trend", "wave", "still", "growth"]),
    st.sampled_from([1, 4, 12]),
)
def test_the_share_below_a_quantile_is_off_its_level_by_what_it_moved_over_the_steps(seed, kind, lead):
    rows, rng = 400, np.random.default_rng(seed)
    t = np.arange(rows)
    values = {
        "noise": rng.normal(size=rows),
        "trend": 0.05 * t,
        "wave": 5 * np.sin(t / 9),
        "still": np.full(rows, 3.0),
        "growth": np.exp(t / 60) * rng.normal(size=rows),
    }[kind]
    tracker = calibrator(lead)
    at, state, scores, told = len(tracker.leads) - 1, begun(tracker), [], []
    for row, value in enumerate(values):
        mean, size = tracker._read(state["averages"])
        told.append((mean[0, at], size[0, at], state["thresholds"][0, at]))
        if row > lead:  # of the forecast made after the row `row - lead`
            mean_then, size_then, thresholds = told[row - lead + 1]
            score = (value - mean_then) / size_then
            scores.append(
                [score <= thresholds - 0.05 * np.sqrt(lead), score <= thresholds + 0.05 * np.sqrt(lead)]
            )
        state |= learned(tracker, state, [value], start=row)
    least, most = np.mean(scores, axis=0)  # outside of the ramp, and with it
    moved = np.abs(state["thresholds"][0, at] - begun(tracker)["thresholds"][0, at])
    bound = (moved + tracker.step[at]) / (tracker.step[at] * len(scores))
    assert (least <= QUANTILES + bound).all() and (most >= QUANTILES - bound).all()


@given(st.integers(0, 2**32 - 1))
def test_the_quantiles_told_ascend_even_where_thresholds_cross(seed):
    rng = np.random.default_rng(seed)
    tracker = calibrator(40)
    state = begun(tracker)
    state["thresholds"] = state["thresholds"] + rng.normal(size=state["thresholds"].shape) * 2
    assert (np.diff(tracker.errors(state)) >= 0).all()


def test_the_median_stays_between_the_quartiles_and_goes_with_them_beyond():
    tracker, state = calibrator(), begun(calibrator())
    middle = QUANTILES.size // 2
    assert tracker.errors(state)[0, 0, middle] == 0.0
    doubt = tracker.doubt[0] * state["averages"][0, 0, 1]
    assert 0.05 < doubt < 0.09
    for shift, expected in (
        (0.5, 0.0),
        (-0.5, 0.0),
        (3.0, 3 - doubt + ndtri(0.25)),
        (-3.0, doubt - 3 + ndtri(0.75)),
    ):
        averages = state["averages"] + np.array([shift, 0.0, 0.0])
        found = tracker.errors(state | {"averages": averages})[0, 0]
        assert found[middle] == pytest.approx(expected)
        assert (np.diff(found) >= 0).all()


def test_rows_without_a_value_change_nothing_and_series_learn_each_for_itself():
    tracker = calibrator(3)
    both = np.array([[0.0, 1.0, nan, 3.0, 2.0], [nan, nan, 5.0, nan, 1.0]])
    together = learned(tracker, begun(tracker, 2), both)
    for series in (0, 1):
        alone, state = both[series], begun(tracker)
        for row in np.flatnonzero(~np.isnan(alone)):
            state |= learned(tracker, state, alone[[row]], start=float(row))
        for name in ("thresholds", "averages", "due"):
            np.testing.assert_array_equal(together[name][series], state[name][0])


def test_a_state_left_behind_is_as_it_was():
    tracker = calibrator(3)
    state = begun(tracker)
    kept = {name: array.copy() for name, array in state.items()}
    learned(tracker, state, [1.0, -4.0, 2.0, 7.0])
    for name, array in state.items():
        np.testing.assert_array_equal(array, kept[name])


@pytest.mark.parametrize("horizon", [1, 2, 24, 48, 720])
def test_leads_are_tracked_from_the_first_to_the_last_and_few(horizon):
    tracker = calibrator(horizon)
    assert tracker.leads[0] == 1 and tracker.leads[-1] == horizon
    assert len(tracker.leads) <= 24 and (np.diff(tracker.leads) > 0).all()
    np.testing.assert_allclose(tracker.between.sum(1), 1.0)
