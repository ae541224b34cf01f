"""Where the series of a panel lie on the calendar, and empty time in them, choose and widen nothing."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts import FracForecaster, FracRidge
from fracts.cuts import FOLDS, Cuts, common_ends
from fracts.linear_fit import fit_linear
from fracts.recall import linear_memory
from fracts.series import Panel
from fracts.windows import RandomWindows, Rest, held_out_windows

nan = np.nan
H = 4
WALKS = np.random.default_rng(1).normal(size=(20, 300)).cumsum(1)


def long(values, starts):
    """A long frame of the rows of `values`, from the stamps `starts` on."""
    parts = [
        pd.DataFrame({"unique_id": i, "ds": np.arange(row.size) + start, "y": row})
        for i, (row, start) in enumerate(zip(values, starts, strict=True))
    ]
    return pd.concat(parts)


def told(y, **options):
    """Penalty, point forecasts and widths (series, leads) of 90 % intervals."""
    model = FracRidge(H, season_lengths=(), **options).fit(y)
    table = model.predict(level=90)
    width = table["FracRidge-hi-90"] - table["FracRidge-lo-90"]
    shape = len(model.series_ids_), H
    return model.penalty_, table["FracRidge"].to_numpy().reshape(shape), width.to_numpy().reshape(shape)


@given(st.lists(st.integers(0, 900), min_size=5, max_size=5))
@settings(max_examples=8, deadline=None)
def test_series_with_weights_of_their_own_are_forecast_alike_wherever_they_lie(starts):
    values = WALKS[:5, :150]
    penalty, point, width = told(long(values, starts), pooled=False)
    expected = told(long(values, [0] * 5), pooled=False)
    assert penalty == expected[0]
    np.testing.assert_allclose(point, expected[1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(width, expected[2], rtol=1e-9)


@pytest.mark.parametrize("apart", [50, 365])
def test_pooled_series_far_apart_have_about_the_intervals_of_series_side_by_side(apart):
    _, point, width = told(long(WALKS, apart * np.arange(20)), pooled=True)
    _, beside, expected = told(long(WALKS, np.zeros(20, int)), pooled=True)
    assert 0.9 < width.mean() / expected.mean() < 1.1
    assert np.abs(point - beside).max() < 0.2 * expected.mean()


def test_a_late_series_of_five_rows_changes_little_and_is_no_reason_to_warn():
    late = [1.0, 2.0, 3.0, 2.0, 1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        penalty, _, width = told(long([*WALKS, np.array(late)], [0] * 20 + [3950]), pooled=True)
    alone, _, expected = told(long(WALKS, [0] * 20), pooled=True)
    assert penalty == alone
    np.testing.assert_allclose(width[:20], expected, rtol=0.01)


@pytest.mark.parametrize("back", ["2020-03-26", "2022-01-01"])
def test_an_outage_changes_little(back):
    y, hours = WALKS[0], pd.date_range("2020-01-01", periods=280, freq="h")
    until = pd.date_range(back, periods=20, freq="h")
    tables = [
        FracRidge(2, season_lengths=()).fit(pd.Series(y, stamps)).predict(level=90)
        for stamps in (hours.append(until), pd.date_range("2020-01-01", periods=300, freq="h"))
    ]
    width, expected = (table.iloc[:, 2] - table.iloc[:, 1] for table in tables)
    np.testing.assert_allclose(width, expected.to_numpy(), rtol=0.05)


@given(st.integers(1, 400), st.integers(1, 5), st.booleans())
@settings(max_examples=50)
def test_the_cuts_of_series_side_by_side_are_shares_of_their_time(rows, n_series, pooled):
    times = np.arange(float(rows))
    cuts = Cuts.of(Panel(np.ones((n_series, rows)), times), pooled=pooled)
    expected = np.searchsorted(np.array(FOLDS) * times[-1], times)
    np.testing.assert_array_equal(cuts.reached(times), np.tile(expected, (n_series, 1)))
    np.testing.assert_array_equal(cuts.tried(times), cuts.reached(times))


@given(st.integers(0, 2**32 - 1), st.integers(1, 10_000))
@settings(max_examples=30)
def test_an_outage_moves_no_row_into_another_fold(seed, outage):
    draws = np.random.default_rng(seed)
    at = int(draws.integers(1, 99))
    times = np.arange(100.0) + np.where(np.arange(100) >= at, outage, 0)
    beside, after = (
        Cuts.of(Panel(np.ones((1, 100)), t), pooled=True).reached(t) for t in (np.arange(100.0), times)
    )
    np.testing.assert_array_equal(after, beside)


def test_common_cuts_leave_the_first_values_of_a_late_series_untried():
    values = np.ones((2, 100))
    values[1, :80] = nan
    cuts = Cuts.of(Panel(values, np.arange(100.0)), pooled=True)
    assert (cuts.ends[1] == cuts.ends[0]).all()
    folds = cuts.tried(np.arange(100.0))
    np.testing.assert_array_equal(folds[1], np.where(np.arange(100) > 80 + 0.4 * 19, 3, 0))


def test_series_most_of_which_end_early_are_cut_each_at_its_own_times():
    values = np.ones((3, 100))
    values[0, 40:] = values[1, 60:] = nan
    cuts = Cuts.of(Panel(values, np.arange(100.0)), pooled=True)
    np.testing.assert_allclose(cuts.ends, np.outer([39, 59, 99], FOLDS))


def rest_of(starts, rows=120):
    """What is left of walks that begin at the rows `starts`, and the row at which the last fold does."""
    n_rows = max(starts) + rows
    values = np.full((len(starts), n_rows), nan)
    for row, start, walk in zip(values, starts, WALKS[:, :rows], strict=False):
        row[start : start + rows] = walk
    panel = Panel(values, np.arange(float(n_rows)))
    memory = linear_memory(panel, H, 8, (1.0, 1e4), ())
    path = fit_linear(panel, memory, range(len(starts)), pooled=False)
    begin, stop = np.searchsorted(panel.times, common_ends(panel)[[0, -1]], side="right")
    return Rest.of(panel, path), int(begin), int(stop)


@pytest.mark.parametrize("starts", [[0, 0, 0], [0, 200, 400], [0, 20, 700]], ids=str)
def test_windows_lie_where_their_series_do_and_end_before_what_is_held_out(starts):
    rest, begin, stop = rest_of(starts)
    with_target = []
    for window in RandomWindows(rest, begin, stop, 32, 16, seed=0):
        due = window.times[..., None] + torch.arange(1, H + 1)
        assert not (~window.rest.isnan() & (due >= rest.times[stop])).any()
        assert (~window.u.isnan()).any(1).all()
        with_target.extend((~window.rest.isnan()).flatten(1).any(1).tolist())
    assert np.mean(with_target) > 0.55  # the last series may show too little of itself before the last fold
    for window in held_out_windows(rest, stop, 32):
        assert (~window.rest.isnan()).flatten(1).any(1).all()


def test_a_network_is_fitted_to_series_far_apart():
    y = long(WALKS[:3, :80], [0, 300, 600])
    model = FracForecaster(3, width=16, n_heads=2, window=32, max_epochs=1, random_state=0, season_lengths=())
    assert len(model.fit(y).history_) == 2
    assert np.isfinite(model.forecast(level=90)).all()
