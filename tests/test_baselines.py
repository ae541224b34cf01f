"""The rules themselves, against answers worked out by hand or known by theory."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from fracts.anchor import SeasonSlots
from fracts.baselines import Mean, Naive, SeasonalNaive
from fracts.forecasts import QUANTILES, interpolate_quantiles
from fracts.scores import coverage
from fracts.timeline import default_season_lengths, learn_clock

nan = np.nan


def test_naive_is_the_last_value_seen():
    np.testing.assert_array_equal(Naive(2).fit([1.0, 3.0, nan]).predict(3), [3, 3, 3])


def test_mean_is_the_mean_of_all_values_seen():
    model = Mean(2).fit([1.0, nan, 5.0])
    np.testing.assert_array_equal(model.predict(), [3, 3])
    np.testing.assert_array_equal(model.update([9.0, nan]).predict(), [5, 5])


def test_seasonal_naive_repeats_the_last_season_and_fills_it_with_older_values():
    model = SeasonalNaive(2, season_length=3).fit([1.0, 2.0, 3.0, 4.0, nan, 6.0])
    np.testing.assert_array_equal(model.predict(7), [4, 2, 6, 4, 2, 6, 4])


def test_a_place_of_the_season_never_seen_has_the_last_value():
    np.testing.assert_array_equal(
        SeasonalNaive(4, season_length=4).fit([1.0, nan, 3.0]).predict(), [3, 1, 3, 3]
    )


@pytest.mark.parametrize(
    "freq, rows, length",
    [("h", 504, 168), ("h", 503, 24), ("30min", 1008, 336), ("W", 156, 52), ("ME", 36, 12)],
)
def test_the_longest_season_seen_three_times_is_chosen(freq, rows, length):
    y = pd.Series(np.arange(float(rows)), pd.date_range("2020-01-01", periods=rows, freq=freq))
    assert default_season_lengths(learn_clock(y.index), rows)[-1] == length
    assert SeasonalNaive(1).fit(y).season_lengths_ == (length,)
    assert SeasonalNaive(1).fit(y).predict().iloc[0] == rows - length


@pytest.mark.parametrize("make", [Naive, Mean, lambda horizon: SeasonalNaive(horizon, season_length=2)])
def test_intervals_are_the_quantiles_of_the_errors_of_the_history(make):
    y = np.random.default_rng(0).gamma(2.0, size=400)
    model = make(3).fit(y)
    table = model.predict(quantiles=[0.05, 0.3, 0.95])
    for lead in (1, 2, 3):
        errors = [y[t + lead] - rule_value(model, y[: t + 1], lead) for t in range(400 - lead)]
        expected = np.quantile(errors, [0.05, 0.3, 0.95]) - np.median(errors)
        np.testing.assert_allclose(table[lead - 1, 1:] - table[lead - 1, 0], expected, rtol=1e-10)


@pytest.mark.parametrize("model", [Naive(3), Mean(3), SeasonalNaive(3, season_length=7)], ids=repr)
def test_a_row_without_value_teaches_nothing(model):
    rng = np.random.default_rng(5)
    y = pd.Series(rng.normal(size=300).cumsum(), pd.date_range("2024-01-01", periods=300, freq="D"))
    y[(rng.random(300) < 0.3) & (np.arange(300) < 299)] = nan
    expected = clone(model).fit(y.dropna()).predict(level=[50, 90])
    pd.testing.assert_frame_equal(model.fit(y).predict(level=[50, 90]), expected, check_freq=False)


def rule_value(model, past, lead):
    """The rule written out for one origin."""
    if isinstance(model, Naive):
        return past[-1]
    if isinstance(model, Mean):
        return past.mean()
    back = len(past) - 1 + lead
    while back >= len(past):
        back -= 2
    return past[back] if back >= 0 else past[-1]


def test_past_the_horizon_intervals_grow_as_each_rule_says():
    y = np.random.default_rng(0).normal(size=300)
    width = {}
    for model in (Naive(4), SeasonalNaive(4, season_length=4), Mean(4)):
        table = model.fit(y).predict(16, level=80)
        width[type(model)] = (table[:, 2] - table[:, 1]) / (table[3, 2] - table[3, 1])
    np.testing.assert_allclose(width[Naive][[8, 15]], [1.5, 2])
    np.testing.assert_allclose(width[SeasonalNaive][[4, 7, 8, 15]], np.sqrt([2, 2, 3, 4]))
    np.testing.assert_allclose(width[Mean][4:], 1)


@pytest.mark.parametrize(
    "make, noise", [(Naive, "walk"), (lambda h: SeasonalNaive(h, season_length=5), "season"), (Mean, "white")]
)
def test_the_90_percent_interval_holds_about_90_percent_of_what_comes(make, noise):
    rng = np.random.default_rng(3)
    steps = rng.normal(size=(4000, 2)) * [1.0, 50.0]
    y = {
        "walk": steps.cumsum(axis=0),
        "season": steps + 300 * (np.arange(4000)[:, None] % 5),
        "white": steps,
    }[noise]
    model, inside = make(4).fit(y[:2000]), []
    for t in range(2000, 3900):
        table = model.forecast(level=90)  # (4, 2, 3)
        inside.append(coverage(y[t : t + 4], table[..., 1], table[..., 2]))
        model.learn_many(y[t])
    assert 0.88 < np.mean(inside) < 0.92


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 25), st.booleans(), st.booleans())
def test_the_anchor_at_every_row_is_that_of_a_stream(seed, season, horizon, moved, whole):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((2, 30)) < 0.3, nan, rng.normal(size=(2, 30)))
    times = np.cumsum(rng.integers(1, 4, 30) if whole else rng.exponential(size=30)).astype(float)
    anchor = SeasonSlots(season, moved=moved)
    end, reads = anchor.run(anchor.empty(2), values, times, np.arange(1, horizon + 1))
    said, slots = anchor.before(anchor.empty(2), values, times), anchor.empty(2)
    for row, time in enumerate(times):
        np.testing.assert_array_equal(said[:, row], anchor.read(slots, time - 1, 1)[:, 0])
        slots = anchor.advance(slots, values[:, row : row + 1], times[row : row + 1])
        np.testing.assert_array_equal(reads[:, row], anchor.read(slots, time, horizon))
    np.testing.assert_array_equal(end, slots)
    np.testing.assert_array_equal(end, anchor.advance(anchor.empty(2), values, times))


@given(st.integers(0, 2**32 - 1), st.lists(st.floats(0.005, 0.995), min_size=1, max_size=9))
def test_interpolated_quantiles_are_exact_where_known_and_ascend(seed, levels):
    known = np.sort(np.random.default_rng(seed).standard_t(3, size=(4, 25)))
    np.testing.assert_array_equal(interpolate_quantiles(known, QUANTILES), known)
    between = interpolate_quantiles(known, np.sort(levels))
    assert (np.diff(between) >= -1e-12).all()
    assert (known[:, :1] <= between).all() and (between <= known[:, -1:]).all()


def test_a_lead_with_fewer_than_20_errors_grows_from_the_last_with_enough():
    y = np.random.default_rng(4).normal(size=30).cumsum()
    table = Naive(25).fit(y).predict(level=80)  # the errors of lead 10 are 20, those of lead 25 are 5
    width = table[:, 2] - table[:, 1]
    np.testing.assert_allclose(width[10:], width[9] * np.sqrt(np.arange(11, 26) / 10))


@pytest.mark.parametrize("model", [Naive(1), Mean(1), SeasonalNaive(1, season_length=2)], ids=repr)
def test_intervals_widen_with_the_root_mean_square_of_the_one_step_errors(model):
    y = np.random.default_rng(6).normal(size=60)
    y[50:] *= 20
    width, rms = [], []
    early = model.fit(y[:50])
    for rows, fitted in ((50, early), (60, early.apply(y))):
        table = fitted.predict(level=80)
        width.append(table[0, 2] - table[0, 1])
        errors = [y[t + 1] - rule_value(model, y[: t + 1], 1) for t in range(rows - 1)]
        rms.append(np.sqrt(np.mean(np.square(errors))))
    assert width[1] / width[0] == pytest.approx(rms[1] / rms[0], rel=1e-12)
