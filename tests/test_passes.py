"""One pass over many origins says what a walk from each to the next says, as blind to what comes later."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from fracts import FracForecaster, FracRidge, backtest, passes
from fracts.network import FracNetwork
from fracts.scores import naive_scale, rmsse

SMALL = {"season_lengths": 7, "past_only": ("wind",)}
MODELS = {
    "ridge": FracRidge(3, **SMALL),
    "network": FracForecaster(3, width=8, n_layers=1, n_heads=2, random_state=0, **SMALL),
    "ridge on the log scale": FracRidge(3, transform="log", **SMALL),
    "networks on the log scale": FracForecaster(
        3, width=8, n_layers=2, n_heads=2, n_networks=2, random_state=0, transform="log", lower=0.1, **SMALL
    ),
}
SAME = {"rtol": 1e-4, "atol": 1e-4}  # networks: float32; a mean of exponentials stretches the last digits


@pytest.fixture(autouse=True)
def lively_networks(monkeypatch, random_weights):
    """Networks get random weights in place of a training: none is silent, and a fit is fast."""

    def train(model, networks, panel, seeds):
        model.network_ = FracNetwork.mean_of(networks)
        random_weights(model.network_, seeds[0] % 1000)
        with torch.no_grad():  # intervals stay such that exponentials of them do not overflow
            for weights in model.network_.head.parameters():
                weights.mul_(0.2)

    monkeypatch.setattr(FracForecaster, "_train", train)


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


@pytest.fixture(scope="module")
def data(two_series):
    """Two positive series with holes, days left out of both, and covariates of every day that matter."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"heat": rng.normal(size=200)}, two_series.index)
    X["sky"], X["wind"] = np.where(rng.random(200) < 0.3, "rain", "clear"), rng.normal(size=200)
    told = X["heat"] - (X["sky"] == "rain") + X["wind"].shift(1, fill_value=0.0)
    y = two_series.add(told, axis=0).div(5).apply(np.exp)
    return y.drop(y.index[[40, 41, 160, 161, 175]]), X


def in_rows(table, tried):
    return table.to_numpy().reshape(len(tried.cutoffs), 2, 3, -1).swapaxes(1, 2)


@pytest.mark.parametrize("point", ["median", "mean"])
@pytest.mark.parametrize("step", [1, 4])
def test_a_pass_with_covariates_and_gaps_gives_what_a_loop_gives(model, point, step, data):
    y, X = data
    tried = backtest({"it": model}, y, X, start=150, step=step, level=80, point=point)
    table = in_rows(tried.frame()[["it", "it-lo-80", "it-hi-80"]], tried)
    fitted, known = clone(model).fit(y[:150], X), 149
    for turn, cutoff in enumerate(tried.cutoffs):
        if cutoff > known:
            fitted.update(y[known + 1 : cutoff + 1], X)
            known = cutoff
        np.testing.assert_allclose(table[turn], fitted.forecast(X=X, level=80, point=point), **SAME)
    assert len(tried.cutoffs) > 9 and np.ptp(table[..., 0]) > 0.3


def test_where_a_pass_is_cut_makes_no_difference(model, data, monkeypatch):
    y, X = data
    near = {"rtol": 1e-5, "atol": 1e-6}
    whole = backtest({"it": model}, y, X, start=140, level=80).frame()
    monkeypatch.setattr(passes, "ROWS_AT_ONCE", 14)  # 7 of each series
    cut = backtest({"it": model}, y, X, start=140, level=80).frame()
    pd.testing.assert_frame_equal(whole, cut, check_exact=False, **near)
    # More rows at once than there are origins in them.
    few = backtest({"it": model}, y, X, start=140, step=20, level=80).frame()
    told = whole.merge(few[["unique_id", "ds", "cutoff"]])
    pd.testing.assert_frame_equal(told, few, check_exact=False, **near)
    assert len(few) == 3 * 2 * 3


def test_values_and_covariates_that_come_later_move_nothing_said_before(model, data):
    y, X = data
    known = 170
    later = X.index > y.index[known - 1]
    changed, other = y.copy(), X.copy()
    changed.iloc[known:] = changed.iloc[known:].to_numpy() * 50 + 7
    other.loc[later, "wind"] = 20.0
    other.loc[X.index > y.index[known - 1] + pd.Timedelta(3, "D"), ["heat", "sky"]] = [17.0, "rain"]
    before, after = (
        backtest({"it": model}, *given, start=150, level=80).frame().drop(columns="y")
        for given in ((y, X), (changed, other))
    )
    told = before["cutoff"] < y.index[known]
    pd.testing.assert_frame_equal(before[told], after[told], check_exact=True)
    assert told.sum() == 21 * 2 * 3 and not before.equals(after)


def test_what_is_known_ahead_is_read_at_the_time_forecast(model, data):
    """Also where y has no row at that time."""
    y, X = data
    other = X.copy()
    gone = X.index.difference(y.index)[2]
    other.loc[gone, "heat"] += 40.0
    before, after = (
        backtest({"it": model}, y, given, start=150).frame().set_index(["cutoff", "ds"])["it"]
        for given in (X, other)
    )
    moved = before.index[before.to_numpy() != after.to_numpy()]
    assert set(moved.get_level_values("ds")) == {gone}


@pytest.mark.parametrize("name", ["ridge", "networks on the log scale"])
def test_a_score_is_that_of_a_loop_for_series_that_end_apart(name, data, two_series):
    model = MODELS[name]
    X = data[1].rename_axis("ds").reset_index()
    wide = np.exp(two_series.ffill() / 5)[:190].rename_axis("ds").reset_index()
    long = wide.melt("ds", var_name="unique_id", value_name="y")
    end = long["unique_id"].map({"a": wide["ds"][149], "b": wide["ds"][139]})
    history, future = long[long["ds"] <= end], long[long["ds"] > end]
    fitted, parts = clone(model).fit(history, X), []
    for series in "ab":
        rows = future[future["unique_id"] == series]
        truth, walker, said, true = rows.set_index("ds")["y"], clone(fitted).fit(history, X), [], []
        for turn in range(len(rows)):
            if turn:
                walker.update(rows[turn - 1 : turn], X)
            frame = walker.predict(X=X)
            frame = frame[frame["unique_id"] == series].set_index("ds")
            said.append(frame[type(model).__name__].to_numpy())
            true.append(truth.reindex(frame.index).to_numpy())
        known = history[history["unique_id"] == series]["y"]
        parts.append(rmsse(np.array(true), np.array(said), naive_scale(known, power=2)))
    assert fitted.score(future, X) == pytest.approx(-np.mean(parts), rel=1e-5)


@pytest.mark.parametrize("name", ["ridge", "network"])
def test_a_batch_of_origins_is_bounded_whatever_their_number(name, monkeypatch):
    monkeypatch.setattr(passes, "_NUMBERS_AT_ONCE", 2**13)
    y = np.sin(np.arange(1500.0)) + np.random.default_rng(0).normal(size=1500)
    model = clone(MODELS[name]).set_params(past_only=()).fit(y[:300])
    rows = model._continuation(y[300:], None)
    ahead = model._ahead_of(None, 3, np.arange(299, 1499))
    sizes = [
        forecast.quantiles.shape
        for forecast in model._answers(
            model._state, rows.panel, np.arange(1200), ahead, 3, np.array([0.1, 0.5])
        )
    ]
    assert sum(shape[1] for shape in sizes) == 1200
    assert max(shape[1] for shape in sizes) <= 2**13 // (3 * 25) and {(s[0], s[2], s[3]) for s in sizes} == {
        (1, 3, 2)
    }


def test_stamps_on_no_grid_are_passed_over_as_a_loop_does():
    rng = np.random.default_rng(2)
    at = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.cumsum(rng.uniform(20, 120, 260)).round(3), "s")
    y = pd.Series(np.sin(np.arange(260) / 5) + 0.1 * rng.normal(size=260), at)
    for name in ("ridge", "network"):
        model = clone(MODELS[name]).set_params(past_only=(), season_lengths=())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tried = backtest({"it": model}, y, start=200)
            table = tried.frame()["it"].to_numpy().reshape(-1, 3)
            fitted = clone(model).fit(y[:200])
        for turn, cutoff in enumerate(tried.cutoffs):
            if cutoff > 199:
                fitted.update(y[cutoff : cutoff + 1])
            np.testing.assert_allclose(table[turn], fitted.forecast(), **SAME)
        assert len(table) > 40
