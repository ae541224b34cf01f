"""A backtest says what a user would have got, row by row, and nothing of what came later."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from fracts import (
    Ensemble,
    FracForecaster,
    FracRidge,
    Mean,
    Naive,
    SeasonalNaive,
    backtest,
    passes,
    rolling_sums,
)
from fracts.network import FracNetwork
from fracts.scores import coverage, mase, naive_scale, pinball, rmsse

pytestmark = pytest.mark.filterwarnings("ignore::fracts.checks.FitWarning")

LEVELS = [50, 90]


@pytest.fixture(autouse=True)
def lively_networks(monkeypatch, random_weights):
    """Networks get random weights in place of a training: none is silent, and a fit is fast."""

    def train(model, networks, panel, seeds):
        model.network_ = FracNetwork.mean_of(networks)
        random_weights(model.network_, seeds[0] % 1000)

    monkeypatch.setattr(FracForecaster, "_train", train)


def by_hand(model, y, cutoffs, every, window, horizon, level):
    """Forecasts (origins, horizon, ...) by a loop of fit, update and predict."""
    forecasts, fitted, known = [], None, None
    for turn, cutoff in enumerate(cutoffs):
        if turn == 0 or (every and turn % every == 0):
            fitted = clone(model)
            begin = 0 if window is None else max(0, cutoff + 1 - window)
            fitted.fit(y.iloc[begin : cutoff + 1])
        else:
            fitted.update(y.iloc[known + 1 : cutoff + 1])
        known = cutoff
        forecasts.append(fitted.forecast(horizon, level=level))
    return np.array(forecasts)


PLANS = {
    "every row": {"start": 150},
    "every fifth row": {"start": 140, "step": 5},
    "refit at each origin": {"n_windows": 3, "step": 9, "refit": True},
    "refit at every second origin, sliding": {"n_windows": 5, "step": 4, "refit": 2, "window": 120},
    "a short history": {"start": 120, "step": 30, "window": 110},
}


@pytest.mark.parametrize("plan", PLANS)
def test_a_loop_of_update_and_predict_gives_the_same_numbers(entry, plan, two_series):
    options, model = PLANS[plan], entry.make(3)
    tried = backtest({"it": model}, two_series, level=LEVELS, **options)
    found = tried.frame()
    every, window = int(options.get("refit", 0)), options.get("window")
    expected = by_hand(
        model, two_series, tried.cutoffs, every, window, 3, LEVELS
    )  # origins, horizon, series, k
    columns = ["it", "it-lo-90", "it-lo-50", "it-hi-50", "it-hi-90"]
    table = found[columns].to_numpy().reshape(len(tried.cutoffs), 2, 3, 5)
    np.testing.assert_allclose(table, expected.swapaxes(1, 2), rtol=0, atol=entry.tolerance * 20)
    assert len(tried.cutoffs) == (3 if plan.startswith("refit at each") else len(tried.cutoffs)) > 1


@pytest.mark.parametrize("horizon", [1, 2, 5])
def test_any_horizon_may_be_asked_for(entry, horizon, two_series):
    model = entry.make(3)
    tried = backtest(model, two_series["a"], start=190, horizon=horizon)
    expected = by_hand(model, two_series["a"], tried.cutoffs, 0, None, horizon, None)
    found = tried.frame()[type(model).__name__].to_numpy().reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=0, atol=entry.tolerance * 20)


@pytest.mark.parametrize(
    ("change", "options"),
    [
        ("spikes", {}),
        ("blank", {}),
        ("spikes", {"refit": 20}),
        ("blank", {"refit": 10, "window": 110, "step": 2}),
    ],
)
def test_what_comes_after_a_cutoff_moves_no_forecast_made_up_to_it(entry, options, change, two_series):
    y = two_series.copy()
    known = 170
    later = y.iloc[known:].to_numpy().copy()
    changed = {"spikes": later * 1e6 + 100, "blank": np.full_like(later, np.nan)}[change]
    changed[-1] = 1.0
    y.iloc[known:] = changed
    before, after = (
        backtest({"it": entry.make(3)}, data, start=150, level=LEVELS, **options).frame()
        for data in (two_series, y)
    )
    told = before["cutoff"] < y.index[known]
    before, after = before.drop(columns="y"), after.drop(columns="y")
    pd.testing.assert_frame_equal(before[told], after[told], check_exact=True)
    assert told.sum() > 30 and not before.equals(after)


def test_scores_are_those_of_the_frame(two_series):
    tried = backtest({"ridge": FracRidge(3), "naive": Naive(3)}, two_series, start=120, level=[80], step=2)
    frame, history = tried.frame(), two_series[:120]
    for name in ("ridge", "naive"):
        told = {"mase": [], "rmsse": [], "coverage-80": []}
        for one, part in frame.groupby("unique_id"):
            y, said = part["y"], part[name]
            told["mase"].append(mase(y, said, naive_scale(history[one])))
            told["rmsse"].append(rmsse(y, said, naive_scale(history[one], power=2)))
            told["coverage-80"].append(coverage(y, part[f"{name}-lo-80"], part[f"{name}-hi-80"]))
            row = tried.scores("series").loc[(name, one)]
            assert row["mae"] == pytest.approx((y - said).abs().mean())
            assert row["rmse"] == pytest.approx(((y - said) ** 2).mean() ** 0.5)
        for score, values in told.items():
            assert tried.scores().loc[name, score] == pytest.approx(np.mean(values)), score
    lead = frame.groupby(["cutoff", "unique_id"]).cumcount()
    second = frame[lead == 1]
    maes = (second["y"] - second["ridge"]).abs().groupby(second["unique_id"]).mean()
    assert tried.scores("lead").loc[("ridge", 2), "mae"] == pytest.approx(maes.mean())


def test_quantiles_are_told_and_scored(two_series):
    tried = backtest(Mean(2), two_series["a"], n_windows=30, quantiles=[0.1, 0.7], point="mean")
    frame = tried.frame()
    assert list(frame.columns[4:]) == ["Mean", "Mean_ql0.1", "Mean_ql0.7"]
    for quantile in (0.1, 0.7):
        expected = pinball(frame["y"], frame[f"Mean_ql{quantile}"], quantile)
        assert tried.scores().loc["Mean", f"pinball_{quantile}"] == pytest.approx(expected)


def test_the_frame_is_long_by_origin_series_and_lead_with_the_truth(two_series):
    frame = backtest(Naive(2), two_series, n_windows=4, step=3).frame()
    assert list(frame) == ["unique_id", "ds", "cutoff", "y", "Naive"]
    assert frame["cutoff"].is_monotonic_increasing and len(frame) == 4 * 2 * 2
    day = pd.Timedelta(1, "D")
    np.testing.assert_array_equal((frame["ds"] - frame["cutoff"]) / day, [1, 2] * 8)
    assert frame["cutoff"].drop_duplicates().tolist() == list(two_series.index[[188, 191, 194, 197]])
    for row in frame.itertuples():
        truth = two_series.loc[row.ds, row.unique_id]
        assert row.y == truth or (np.isnan(row.y) and np.isnan(truth))


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(np.arange(60.0) % 7, pd.period_range("2001Q1", periods=60, freq="Q"), name="q"),
        pd.Series(np.arange(60.0) % 7, pd.date_range("2024-03-29", periods=60, freq="h", tz="Europe/London")),
        pd.Series(np.arange(60.0) % 7, range(10, 130, 2)),
        (np.arange(60.0) % 7).tolist(),
        (np.arange(120.0) % 7).reshape(60, 2),
        pd.Series(np.arange(60.0) % 7, pd.bdate_range("2024-01-01", periods=61).delete(17)),
    ],
    ids=["quarters", "hours", "integers", "list", "matrix", "business days with a hole"],
)
def test_stamps_of_every_kind(y):
    frame = backtest(Naive(2), y, n_windows=3).frame()
    fitted = Naive(2).fit(y[:-4] if isinstance(y, list) else y[: len(y) - 4])
    first = frame[frame["unique_id"] == frame["unique_id"][0]][:2]
    expected = fitted.predict()
    np.testing.assert_array_equal(first["Naive"], np.reshape(expected, (2, -1))[:, 0])
    if isinstance(y, pd.Series):
        assert list(first["ds"]) == list(expected.index) and set(frame["cutoff"]) <= set(y.index)


def test_a_gap_is_a_longer_step():
    t = np.arange(200)
    y = pd.Series(np.sin(2 * np.pi * t / 7), pd.date_range("2024-01-01", periods=200, freq="D"))
    thin = y[(t < 100) | ((t - 100) % 9 > 2)]
    blank = y.where(y.index.isin(thin.index))
    model = FracRidge(3, season_lengths=7)
    first, second = (
        backtest(model, data, start="2024-04-23").frame().set_index(["cutoff", "ds"])
        for data in (thin, blank)
    )
    both = first.index.intersection(second.index)
    assert len(both) == len(first) > 100
    np.testing.assert_allclose(first.loc[both, "FracRidge"], second.loc[both, "FracRidge"], atol=1e-10)
    np.testing.assert_array_equal(first.loc[both, "y"], second.loc[both, "y"])


def test_a_series_that_never_moved_is_left_out_of_scaled_scores_alone():
    y = pd.DataFrame({"still": np.ones(40), "moving": np.arange(40.0) % 5})
    scores = backtest(Naive(1), y, n_windows=10).scores("series").loc["Naive"]
    assert scores.loc["still", "mae"] == 0 and np.isnan(scores.loc["still", "mase"])
    whole = backtest(Naive(1), y, n_windows=10).scores().loc["Naive"]
    assert whole["mase"] == scores.loc["moving", "mase"] and whole["mae"] == scores["mae"].mean()


def test_models_and_data_are_left_alone_and_each_fit_is_a_fresh_one(two_series):
    kept, model = two_series.copy(deep=True), Counted(2)
    Counted.fits = []
    tried = backtest({"a": model}, two_series, n_windows=5, refit=2, window=50)
    assert Counted.fits == []
    tried.frame()
    assert [rows for rows, _ in Counted.fits] == [50, 50, 50]
    assert len({who for _, who in Counted.fits}) == 3 and not hasattr(model, "series_ids_")
    tried.scores()
    assert len(Counted.fits) == 3  # the sums were kept
    pd.testing.assert_frame_equal(two_series, kept)


class Counted(Naive):
    fits: list = []  # noqa: RUF012

    def fit(self, y, X=None, **options):
        Counted.fits.append((len(y), self))
        return super().fit(y, X, **options)


@settings(max_examples=30)
@given(n=st.integers(2, 60), horizon=st.integers(1, 8), step=st.integers(1, 9), data=st.data())
def test_every_origin_has_its_whole_horizon_and_all_that_do_are_taken(n, horizon, step, data):
    y = np.arange(n, dtype=float)
    if horizon >= n:
        with pytest.raises(ValueError, match="hold no forecast"):
            backtest(Naive(horizon), y, start=1)
        return
    start = data.draw(st.integers(1, n - horizon))
    cutoffs = backtest(Naive(horizon), y, start=start, step=step).cutoffs
    assert cutoffs[0] == start - 1 and (np.diff(cutoffs) == step).all()
    assert cutoffs[-1] + horizon <= n - 1 < cutoffs[-1] + step + horizon
    again = backtest(Naive(horizon), y, n_windows=len(cutoffs), step=step).cutoffs
    assert again[-1] == n - 1 - horizon and len(again) == len(cutoffs)


FAULTS = [
    ({}, "start=None and n_windows=None came. Give one"),
    ({"start": 3, "n_windows": 3}, "start=3 and n_windows=3 came"),
    ({"start": 0}, "leaves 0 rows of history"),
    ({"start": 39}, "Give one from 1 to 38 for a forecast of 2 steps"),
    ({"n_windows": 40}, "need 42 rows; y has 40. Ask for at most 38"),
    ({"n_windows": 0}, "n_windows must be an integer of at least 1"),
    ({"start": 20, "step": 0}, "step must be an integer"),
    ({"start": 20, "refit": 0.5}, "refit must be an integer"),
    ({"start": 20, "window": 0}, "window must be an integer"),
    ({"start": 20, "horizon": 0}, "horizon must be an integer"),
    ({"start": 20, "level": 100}, "level must lie between"),
]


@pytest.mark.parametrize(("options", "told"), FAULTS)
def test_a_plan_that_makes_no_sense_is_refused(options, told):
    with pytest.raises(ValueError, match=told):
        backtest(Naive(2), np.arange(40.0), **options)


def test_models_must_be_forecasters_of_one_horizon():
    y = np.arange(40.0)
    with pytest.raises(TypeError, match="models came as list"):
        backtest([Naive(2)], y, start=20)
    with pytest.raises(TypeError, match=r"models\['b'\] is a ABCMeta"):
        backtest({"a": Naive(2), "b": Naive}, y, start=20)
    with pytest.raises(ValueError, match=r"different horizons, \{'a': 2, 'b': 3\}"):
        backtest({"a": Naive(2), "b": Mean(3)}, y, start=20)
    assert len(backtest({"a": Naive(2), "b": Mean(3)}, y, start=20, horizon=1).frame()) == 20
    with pytest.raises(ValueError, match="by must be"):
        backtest(Naive(2), y, start=20).scores("model")


def test_an_error_of_a_fit_says_in_which_backtest(two_series):
    tried = backtest({"week": SeasonalNaive(2, season_length=0)}, two_series, n_windows=2)
    with pytest.raises(ValueError, match="season_length") as caught:
        tried.scores()
    assert "In the backtest of 'week', fitted up to 2024-07-15" in caught.value.__notes__[0]


@pytest.mark.parametrize("model", [Naive(2), Ensemble(2, [Naive(2)])], ids=["in passes", "step by step"])
def test_scores_hold_no_forecast_however_many_origins(model, monkeypatch):
    monkeypatch.setattr(passes, "ROWS_AT_ONCE", 200)
    held = []
    add = rolling_sums.Sums.add

    def watched(sums, batch):
        held.append(batch.table[..., 0].size)
        add(sums, batch)

    monkeypatch.setattr(rolling_sums.Sums, "add", watched)
    backtest(model, np.arange(2000.0) % 7, start=100).scores()
    assert len(held) > 5 and max(held) <= 256 * 2


@pytest.mark.parametrize("point", ["median", "mean"])
def test_covariates_and_another_scale_give_what_a_loop_gives(point, two_series):
    y = np.exp(two_series / 5)
    X = pd.DataFrame({"heat": np.arange(200.0) % 5, "sky": ["clear", "rain"] * 100}, two_series.index)
    model = FracRidge(3, season_lengths=7, transform="log", past_only=("sky",))
    tried = backtest({"it": model}, y, X, start=180, step=4, level=80, point=point)
    columns = ["it", "it-lo-80", "it-hi-80"]
    table = tried.frame()[columns].to_numpy().reshape(len(tried.cutoffs), 2, 3, 3)
    fitted = clone(model).fit(y[:180], X)
    for turn, cutoff in enumerate(tried.cutoffs):
        if turn:
            fitted.update(y[cutoff - 3 : cutoff + 1], X)
        expected = fitted.forecast(X=X, level=80, point=point)
        np.testing.assert_allclose(table[turn], expected.swapaxes(0, 1), rtol=1e-9)
    assert len(tried.cutoffs) > 3


def test_a_long_frame_is_forecast_from_common_stamps(two_series):
    wide = two_series.rename_axis("ds").reset_index()
    long = wide.melt("ds", var_name="unique_id", value_name="y")
    first, second = (backtest(Mean(2), y, n_windows=3).frame() for y in (long, two_series))
    pd.testing.assert_frame_equal(first, second)


def test_an_array_of_covariates_goes_with_an_array():
    y, X = np.arange(60.0) % 7, (np.arange(120.0) % 5).reshape(60, 2)
    model = FracRidge(2, season_lengths=())
    found = backtest(model, y, X, n_windows=2).frame()["FracRidge"].to_numpy().reshape(2, 2)
    fitted = clone(model).fit(y[:57], X[:57])
    np.testing.assert_allclose(found[0], fitted.predict(X=X[57:59]))
    np.testing.assert_allclose(found[1], fitted.update(y[57:58], X[57:58]).predict(X=X[58:60]))
