"""Panels: many series of unequal length, start and end, one model; no series disturbs another."""

import copy
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts.baselines import Mean, Naive, SeasonalNaive
from fracts.forecaster import FracForecaster
from fracts.ridge import FracRidge

pytestmark = pytest.mark.filterwarnings("ignore::fracts.checks.FitWarning")

DAYS = pd.date_range("2024-01-01", periods=140, freq="D")


def rows(name, first, values):
    """Long rows of one series from day number `first`."""
    return pd.DataFrame({"unique_id": name, "ds": DAYS[first : first + len(values)], "y": values})


def walk(seed, n, level=10.0):
    return level + np.random.default_rng(seed).normal(size=n).cumsum()


RAGGED = pd.concat(
    [
        rows("a", 0, walk(0, 60)),
        rows("b", 20, walk(1, 100)),
        rows("c", 90, walk(2, 30)),
        rows("d", 5, walk(3, 5)),
    ],
    ignore_index=True,
)


def of(frame, name):
    return frame[frame["unique_id"] == name]


def values_of(forecast):
    return forecast.set_index(["unique_id", "ds"])


@pytest.mark.parametrize("make", [Naive, Mean, lambda horizon: SeasonalNaive(horizon, season_length=7)])
def test_a_series_in_a_ragged_panel_has_the_points_it_has_alone(make):
    together = make(5).fit(RAGGED)
    for name in "abcd":
        alone = make(5).fit(of(RAGGED, name)).predict()
        pd.testing.assert_frame_equal(of(together.predict(), name).reset_index(drop=True), alone)


@pytest.fixture(scope="module")
def ragged(entry):
    """Each estimator fitted to the ragged panel; to be copied before it is moved."""
    return entry.make(4).fit(RAGGED)


def test_a_series_applied_in_a_ragged_panel_has_the_forecast_it_has_alone(entry, ragged):
    model = ragged
    together = values_of(model.predict(4, level=[50, 90]))
    for name in "abcd":
        alone = values_of(model.apply(of(RAGGED, name)).predict(4, level=[50, 90]))
        pd.testing.assert_frame_equal(
            together.loc[[name]], alone, check_freq=False, rtol=0, atol=10 * max(entry.tolerance, 1e-13)
        )


def test_every_series_goes_on_from_its_own_cutoff():
    model = Naive(2).fit(RAGGED)
    ends = {"a": 59, "b": 119, "c": 119, "d": 9}
    assert model.cutoff_ == {name: DAYS[at] for name, at in ends.items()}
    first = model.predict().groupby("unique_id", sort=False)["ds"].first()
    assert first.to_dict() == {name: DAYS[at + 1] for name, at in ends.items()}


def law(examples):
    return lambda test: settings(max_examples=examples)(given(st.data())(test))


def pieces(data, frame):
    """The rows of `frame` cut into updates, every series at places of its own, some of them empty."""
    n_pieces = data.draw(st.integers(1, 4))
    cuts = {
        name: sorted(
            data.draw(st.lists(st.integers(0, len(own)), min_size=n_pieces - 1, max_size=n_pieces - 1))
        )
        for name, own in frame.groupby("unique_id", sort=False)
    }
    for piece in range(n_pieces):
        parts = []
        for name, own in frame.groupby("unique_id", sort=False):
            ends = [0, *cuts[name], len(own)]
            parts.append(own.iloc[ends[piece] : ends[piece + 1]])
        if rows_of_piece := sum(map(len, parts)):
            assert rows_of_piece
            yield pd.concat(parts).sample(frac=1, random_state=0)


def test_any_cutting_of_a_ragged_panel_gives_one_forecast(entry, ragged):
    @law(min(entry.examples, 10))
    def holds(data):
        late = pd.concat([rows(name, 0, walk(seed, 140)) for seed, name in enumerate("abcd")])
        ends = RAGGED.groupby("unique_id")["ds"].max()
        late = late[late["ds"] > late["unique_id"].map(ends)]
        late = late[np.random.default_rng(data.draw(st.integers(0, 99))).random(len(late)) < 0.7]
        stream = copy.copy(ragged)
        for piece in pieces(data, late):
            stream.update(piece)
        whole = ragged.apply(pd.concat([RAGGED, late]))
        assert stream.cutoff_ == whole.cutoff_
        np.testing.assert_allclose(
            stream.forecast(level=90), whole.forecast(level=90), rtol=0, atol=60 * max(entry.tolerance, 1e-14)
        )

    holds()


def test_one_value_of_each_moves_every_series_from_where_it_stands(ragged):
    ends = RAGGED.groupby("unique_id", sort=False)["ds"].max()
    following = pd.DataFrame(
        {"unique_id": ends.index, "ds": ends.to_numpy() + pd.Timedelta("1D"), "y": [1.0, 2, 3, 4]}
    )
    rowwise = copy.copy(ragged).learn_many([1.0, 2.0, 3.0, 4.0])
    framewise = copy.copy(ragged).update(following)
    assert rowwise.cutoff_ == framewise.cutoff_
    np.testing.assert_array_equal(rowwise.forecast(level=50), framewise.forecast(level=50))


def test_a_series_left_out_of_an_update_stays_where_it_is(ragged):
    model = copy.copy(ragged).update(rows("a", 60, [5.0, 6.0]))
    assert model.cutoff_ == ragged.cutoff_ | {"a": DAYS[61]}
    np.testing.assert_array_equal(model.forecast(level=50)[:, 1:], ragged.forecast(level=50)[:, 1:])
    assert (model.forecast()[:, 0] != ragged.forecast()[:, 0]).any()


def test_a_row_that_one_series_has_already_is_refused_by_its_name():
    model = Naive(1).fit(RAGGED)
    with pytest.raises(ValueError, match=r"series 'd': y starts at 2024-01-10.*up to 2024-01-10"):
        model.update(pd.concat([rows("a", 60, [1.0]), rows("d", 9, [1.0, 2.0])]))


def test_series_never_seen_are_forecast_by_the_same_weights():
    model = FracRidge(3, season_lengths=(), pooled=True).fit(RAGGED)
    other = model.apply(rows("new", 30, walk(9, 70)))
    assert other.series_ids_ == ["new"] and other.cutoff_ == {"new": DAYS[99]}
    assert np.isfinite(other.forecast(level=90)).all()
    with pytest.raises(
        ValueError, match=r"series 'new' was not seen by fit, which saw \['a', 'b', 'c', 'd'\]"
    ):
        model.update(rows("new", 130, [1.0]))


def test_the_score_of_a_ragged_panel_is_the_mean_over_its_series(entry):
    history, future = RAGGED[RAGGED["unique_id"] != "d"], []
    for seed, name in enumerate("abc"):
        start = DAYS.get_loc(of(history, name)["ds"].max()) + 1
        future.append(rows(name, start, walk(10 + seed, 5 + 4 * seed)))
    model = entry.make(2).fit(history)
    alone = [model.apply(of(history, name)).score(own) for name, own in zip("abc", future, strict=True)]
    assert model.score(pd.concat(future)) == pytest.approx(np.mean(alone), rel=1e-6)


def test_the_order_of_the_series_is_that_of_their_first_rows():
    shuffled = RAGGED.sample(frac=1, random_state=1)
    assert Naive(1).fit(shuffled).series_ids_ == list(dict.fromkeys(shuffled["unique_id"]))


ODD = {
    "constant": np.full(60, 7.5),
    "all zero": np.zeros(60),
    "two points": np.array([3.0, 5.0]),
    "one point": np.array([4.0]),
    "intermittent": np.where(np.arange(60) % 9 == 4, 6.0, 0.0),
    "one value among NaN": np.where(np.arange(60) == 30, 2.0, np.nan),
    "a step of a million": np.where(np.arange(60) < 30, 1.0, 1e6),
    "an outlier of a billion": np.where(np.arange(60) == 30, 1e9, walk(5, 60)),
    "tiny": 1e-90 * walk(6, 60),
    "huge": 1e90 * walk(7, 60),
}


def good(n_series=6):
    """Too short for weights of their own, so an odd one among them changes no rule."""
    return [rows(f"good {seed}", seed, walk(20 + seed, 70)) for seed in range(n_series)]


@pytest.fixture(scope="module")
def undisturbed(entry):
    """The points of each estimator on the good series alone."""
    return entry.make(3).fit(pd.concat(good())).predict(8).iloc[:, 2].to_numpy()


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_series_has_a_sensible_forecast_and_does_not_spoil_the_others(entry, undisturbed, kind):
    values = ODD[kind]
    forecast = entry.make(3).fit(pd.concat([*good(), rows("odd", 10, values)])).predict(8, level=90)
    assert np.isfinite(forecast.iloc[:, 2:].to_numpy()).all()

    odd = of(forecast, "odd").iloc[:, 2:].to_numpy()
    low, high = np.nanmin(values), np.nanmax(values)
    reach = max(high - low, 1e-9 * np.nanmax(np.abs(values)), 1e-200)
    far = 8 if kind == "two points" else 2  # a line through two points goes on
    assert (odd[:, 0] >= low - far * reach).all() and (odd[:, 0] <= high + far * reach).all()
    if kind in ("constant", "all zero"):
        np.testing.assert_allclose(odd, values[0], rtol=1e-9, atol=1e-12)

    moved = np.abs(forecast.iloc[: undisturbed.size, 2] - undisturbed).max()
    assert moved < 2.5 * np.abs(np.diff(pd.concat(good())["y"])).mean()


def test_a_panel_of_weeks_on_different_days_counts_weeks():
    weeks = pd.date_range("2024-01-01", periods=30, freq="7D")
    parts = [
        pd.DataFrame({"unique_id": day, "ds": weeks + pd.Timedelta(day, "D"), "y": walk(day, 30)})
        for day in range(7)
    ]
    model = Naive(2).fit(pd.concat(parts))
    steps = model.predict().groupby("unique_id")["ds"].diff().dropna().unique()
    assert steps == pd.Timedelta("7D") and model.freq_ is None


@pytest.mark.slow
def test_three_thousand_series_of_any_length_are_fitted_and_forecast():
    rng = np.random.default_rng(0)
    lengths, starts = rng.integers(2, 100, 3000), rng.integers(0, 40, 3000)
    names = np.repeat(np.arange(3000), lengths)
    day = np.concatenate([start + np.arange(n) for n, start in zip(lengths, starts, strict=True)])
    y = pd.DataFrame({"unique_id": names, "ds": DAYS[day], "y": rng.normal(size=names.size)})
    for model in (Naive(7), FracRidge(7, season_lengths=7)):
        start = time.perf_counter()
        forecast = model.fit(y).predict(level=90)
        assert np.isfinite(forecast.iloc[:, 2:].to_numpy()).all() and len(forecast) == 21000
        assert forecast["ds"].iloc[::7].tolist() == list(DAYS[starts + lengths])
        assert time.perf_counter() - start < 60


def test_a_network_trains_on_a_ragged_panel():
    y = pd.concat([rows(seed, 10 * seed, walk(seed, 140 - 20 * seed)) for seed in range(6)])
    model = FracForecaster(2, width=8, n_layers=1, n_heads=2, window=32, max_epochs=2, random_state=0).fit(y)
    assert len(model.history_) > 1 and np.isfinite([row[1:] for row in model.history_[1:]]).all()
    assert np.isfinite(model.forecast(level=90)).all()


def test_series_whose_noise_lies_far_apart_in_units_of_scale_have_intervals_of_their_own():
    """Lines and levels with the same noise: shared intervals would be as wide as the lines are high."""
    draws, t = np.random.default_rng(0), np.arange(400.0)
    lines = [0.5 * t + draws.normal(size=400) for _ in range(3)]
    levels = [50 + draws.normal(size=400) for _ in range(3)]
    forecast = FracRidge(3, season_lengths=()).fit(np.stack(lines + levels, 1)).forecast(level=90)
    width = forecast[0, :, 2] - forecast[0, :, 1]
    assert (width > 2).all() and (width < 12).all()


def test_series_too_short_for_coefficients_of_their_own_have_intervals_by_the_noise_of_each():
    """Shared intervals in units of scale would be as wide as the lines are high; 90 % of the level's noise
    lie within 6.6."""
    draws, t = np.random.default_rng(0), np.arange(40.0)
    lines = [k * t + 0.1 * draws.normal(size=40) for k in (1.0, 2.0, 3.0, 4.0)]
    level = 50 + 2.0 * draws.normal(size=40)
    forecast = FracRidge(3, season_lengths=()).fit(np.stack([*lines, level], 1)).forecast(level=90)
    width = forecast[0, :, 2] - forecast[0, :, 1]
    assert (width[:4] < 14.0).all()
    assert 4.0 < width[4] < 12.0
