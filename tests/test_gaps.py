"""Irregular stamps and gaps: any split of a gap into rows without a value leaves the same state."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts.baselines import Naive
from fracts.ridge import FracRidge

pytestmark = pytest.mark.filterwarnings("ignore::fracts.checks.FitWarning")


def irregular(seed, n_rows=60):
    """Values at irregular instants, about a minute apart, with a gap of an hour in them."""
    rng = np.random.default_rng(seed)
    steps = rng.exponential(60_000, n_rows).astype(np.int64) + 1
    steps[n_rows // 2] += 3_600_000
    stamps = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.cumsum(steps), unit="ms")
    return pd.Series(rng.normal(size=n_rows).cumsum(), pd.DatetimeIndex(stamps), name="flow")


def with_blanks(y, data):
    """`y` with rows of NaN at instants drawn within its gaps, many of them in one gap or in none."""
    gap = data.draw(st.integers(0, len(y) - 2))
    shares = data.draw(st.lists(st.integers(1, 999), max_size=12, unique=True))
    everywhere = data.draw(st.lists(st.integers(0, len(y) - 2), max_size=6, unique=True))
    before, after = y.index[:-1], y.index[1:]
    within = [before[gap] + (after[gap] - before[gap]) * share / 1000 for share in shares]
    middles = [before[at] + (after[at] - before[at]) / 2 for at in everywhere]
    blank = pd.Series(np.nan, pd.DatetimeIndex([*within, *middles]).unique())
    blank = blank[~blank.index.isin(y.index)]
    return pd.concat([y, blank]).sort_index().rename(y.name)


@pytest.fixture(scope="module")
def fitted(real_time_entry):
    return real_time_entry.make(3).fit(irregular(0))


def test_any_split_of_a_gap_leaves_the_same_state_and_forecast(real_time_entry, fitted):
    entry = real_time_entry

    @settings(max_examples=entry.examples)
    @given(st.integers(0, 10**6), st.data())
    def holds(seed, data):
        y = irregular(seed)
        whole, split = fitted.apply(y), fitted.apply(with_blanks(y, data))
        size = y.abs().max()
        np.testing.assert_allclose(
            split.forecast(5, level=90),
            whole.forecast(5, level=90),
            rtol=0,
            atol=max(entry.tolerance, 1e-12) * size,
        )
        for name, array in whole._state.items():
            spread = np.abs(array[np.isfinite(array)]).max(initial=1.0)
            np.testing.assert_allclose(
                split._state[name], array, rtol=0, atol=max(entry.tolerance, 1e-12) * spread
            )

    holds()


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.data())
def test_a_fit_learns_nothing_from_rows_without_a_value(seed, data):
    y = irregular(seed)
    for make in (Naive, lambda horizon: FracRidge(horizon, season_lengths=())):
        whole, split = (make(3).fit(series, base_step="1min") for series in (y, with_blanks(y, data)))
        np.testing.assert_allclose(
            split.forecast(level=90), whole.forecast(level=90), rtol=0, atol=1e-9 * y.abs().max()
        )


def test_a_longer_gap_is_a_longer_step(real_time_entry, fitted):
    y = irregular(3)
    later = y.index[-1] + np.array([1, 200]) * pd.Timedelta("1min")
    soon, late = (
        fitted.apply(y).update(pd.Series([9.0], stamp, name="flow")) for stamp in (later[:1], later[1:])
    )
    assert (soon.cutoff_, late.cutoff_) == tuple(later)
    if real_time_entry.name.startswith("Frac"):
        assert not np.allclose(soon.forecast(), late.forecast(), rtol=1e-6)


def test_a_model_that_counts_steps_says_so_of_stamps_on_no_grid(step_entry):
    with pytest.raises(ValueError, match=r"counts steps, and these stamps lie on no grid.*resample"):
        step_entry.make(3).fit(irregular(0))
