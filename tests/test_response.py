"""What a model remembers: its kernel is the derivative of its forecast, its exponent that of the series."""

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from fracts import FracForecaster, FracRidge
from fracts.anchor import SeasonSlots
from fracts.averaging import Mixture
from fracts.datasets import arfima_predictor, make_arfima
from fracts.heads import PARTS
from fracts.memory import local_whittle
from fracts.projection import fractional_weights, nearest_exponent
from fracts.regression import Penalty
from fracts.scaling import Scaler

nan = np.nan


def weekly(rows=600, seed=0):
    """A persistent series with a week in it and a level far from zero."""
    x = make_arfima(rows, 0.3, random_state=seed)
    return 50 + x + np.sin(2 * np.pi * np.arange(rows) / 7)


def derivative(model, y, lag, lead, series=0):
    """Of the mean forecast, which no scale enters, by the value `lag` steps back: exact, as it is linear."""
    forecasts = []
    for push in (1.0, -1.0):
        moved = np.array(y, dtype=float)
        moved.reshape(len(y), -1)[-lag, series] += push
        out = model.apply(moved).forecast(point="mean")
        forecasts.append(out.reshape(len(out), -1)[lead - 1, series])
    return (forecasts[0] - forecasts[1]) / 2


def weight(model, lag, lead=1):
    return model.memory_kernel(lag, lead)["weight"].item()


@pytest.mark.parametrize("lag", [1, 2, 10, 100, 1000, 4000])
def test_the_kernel_is_the_derivative_of_the_forecast_at_short_and_at_long_lags(lag):
    y = make_arfima(4096, 0.3, random_state=0)
    model = FracRidge(2, season_lengths=()).fit(y)
    for lead in (1, 2):
        assert weight(model, lag, lead) == pytest.approx(derivative(model, y, lag, lead), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("blended", [False, True], ids=["alone", "blended"])
@pytest.mark.parametrize(
    "anchor",
    [None, SeasonSlots(1), SeasonSlots(7), SeasonSlots(7, 5.0), SeasonSlots(7, 5.0, moved=True)],
    ids=str,
)
def test_the_kernel_is_the_derivative_of_the_forecast_whatever_the_anchor(monkeypatch, anchor, blended):
    def leaning(memory, *rest):
        at, penalty = memory.anchors.index(anchor), Penalty(0.5, 0.0, 1.0)
        if not blended:
            return Mixture.of_one(memory.leaning_on(at), penalty)
        chosen = memory.blending(at)
        weights = np.zeros((1, 2 * (1 + chosen.n_ahead), chosen.horizon))
        weights[:, 1] = 1.0
        return Mixture(chosen, [penalty], weights)

    monkeypatch.setattr("fracts.linear_fit._mixture", leaning)
    monkeypatch.setattr("fracts.linear_fit.Unlearned.of", lambda *_: None)
    monkeypatch.setattr("fracts.recall._SHORT_SEASON", 7)
    y = weekly()
    model = FracRidge(9, season_lengths=7).fit(y)
    for lead in (1, 7, 9):
        for lag in (1, 6, 7, 8, 14, 70, 500):
            expected = derivative(model, y, lag, lead)
            assert weight(model, lag, lead) == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert model.memory_kernel(range(1, 601), 9)["weight"].sum() == pytest.approx(1.0)
    for lag in (1, 2, 4):  # where not every day of the week has been seen
        for lead in (1, 6):
            expected = derivative(model, y[:4], lag, lead)
            assert weight(model.apply(y[:4]), lag, lead) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_missing_values_and_gaps_leave_the_kernel_the_derivative():
    y = pd.Series(weekly())
    y[np.random.default_rng(1).random(len(y)) < 0.3] = nan
    y[[300, 560, 590, 599]] = 50.0
    model = FracRidge(2, season_lengths=()).fit(y)
    dropped = model.apply(y.dropna())
    for lag in (1, 10, 40, 300):
        expected = derivative(model, y.to_numpy(), lag, 2)
        assert weight(model, lag, 2) == pytest.approx(expected, rel=1e-6)
        assert weight(dropped, lag, 2) == pytest.approx(expected, rel=1e-6)


def test_series_with_weights_of_their_own_have_a_kernel_each_and_others_share_one():
    y = np.column_stack([weekly(seed=1), make_arfima(600, -0.2, random_state=2)])
    own, shared = (FracRidge(1, n_modes=8, season_lengths=(), pooled=p).fit(y) for p in (False, True))
    kernel = own.memory_kernel([3, 1])
    assert kernel["series"].tolist() == [0, 0, 1, 1] and kernel["lag"].tolist() == [3, 1, 3, 1]
    for series in (0, 1):
        expected = derivative(own, y, 3, 1, series)
        assert kernel["weight"][2 * series] == pytest.approx(expected, rel=1e-6)
    assert own.memory_exponent(0).d > 0.2 and own.memory_exponent(1).d < -0.1

    one = own.apply(y[:, 0])
    for table in (one.memory_spectrum(), one.memory_kernel([1, 3])):
        assert set(table["series"]) == {0}

    common = shared.memory_kernel(3)
    assert common["series"].tolist() == [None]
    assert common["weight"].item() == pytest.approx(derivative(shared, y, 3, 1), rel=1e-6)
    assert shared.memory_exponent() == shared.memory_exponent(1)


@pytest.mark.slow
def test_a_network_adds_the_mean_derivative_of_its_shift(monkeypatch, random_weights, without_numba):
    """Against forecasts of the model itself, a value moved up and down, at every origin that is averaged."""
    centred = Scaler.centred
    still = staticmethod(lambda sums: (*centred(sums)[:2], np.ones(sums.shape[:-1])))
    monkeypatch.setattr(Scaler, "centred", still)
    y = np.column_stack([weekly(80, seed=1), weekly(80, seed=2)]) - 50
    y[[25, 33, 70], 0] = nan
    model = FracForecaster(2, season_lengths=7, width=8, n_layers=1, n_heads=2, random_state=0).fit(y)
    random_weights(model.network_, 0)
    model.network_.double()
    linear = copy.deepcopy(model)
    linear.network_.head.silence(*PARTS)

    lags, push, lead = [1, 3, 40], 1e-4, 2
    added = model.memory_kernel(lags, lead)["weight"] - linear.memory_kernel(lags, lead)["weight"]
    for lag, found in zip(lags, added, strict=True):
        changes = []
        for row, series in np.argwhere(~np.isnan(y[20:41])):
            medians = []
            for way in (push, -push):
                moved = y[: 20 + row + lag].copy()
                moved[20 + row, series] += way
                ahead = [m.apply(moved).forecast()[lead - 1, series] for m in (model, linear)]
                medians.append(ahead[0] - ahead[1])
            changes.append((medians[0] - medians[1]) / (2 * push))
        assert found == pytest.approx(np.mean(changes), rel=1e-4, abs=1e-7)
    assert abs(added[0]) > 0.01


def test_beyond_half_the_rows_kept_the_part_of_a_network_is_not_known(random_weights):
    y, lags = weekly(80), [1, 40, 41, 5000]
    model = FracForecaster(1, season_lengths=(), width=8, n_layers=1, n_heads=2, random_state=0).fit(y)
    silent = model.memory_kernel(lags)["weight"]
    assert np.isfinite(silent[:3]).all()
    linear = copy.deepcopy(model)
    random_weights(model.network_, 0)
    assert np.isnan(model.memory_kernel(lags)["weight"]).tolist() == [False, False, True, True]

    whole, alone = (m.memory_kernel(range(1, 80))["weight"] for m in (model, linear))
    assert model.memory_exponent() == nearest_exponent(whole.fillna(alone).to_numpy(), 80)
    assert model.memory_exponent().d != linear.memory_exponent().d


def test_the_exponent_of_shared_weights_counts_the_values_of_all_series():
    y = make_arfima(500, 0.3, n_series=4, random_state=0)
    model = FracRidge(1, season_lengths=(), pooled=True).fit(y)
    kernel = model.memory_kernel(range(1, 500))["weight"].to_numpy()
    np.testing.assert_allclose(model.memory_exponent(), nearest_exponent(kernel, 2000), rtol=1e-9)


@pytest.mark.parametrize("d", [-0.3, 0.1, 0.4, 0.9])
def test_the_exponent_nearest_to_the_best_predictor_is_that_of_its_process(d):
    best = arfima_predictor(4095, d)[0] if d < 0.5 else fractional_weights(d, np.arange(1, 4096))
    found = nearest_exponent(best, 4096)
    assert found.d == pytest.approx(d, abs=0.003)
    assert found.standard_error == pytest.approx(np.sqrt(6 / 4096) / np.pi, rel=0.02)


def test_the_exponent_of_a_walk_is_1_and_of_noise_0():
    noise = np.random.default_rng(0).normal(size=4096)
    for y, d in ((noise, 0.0), (noise.cumsum(), 1.0)):
        found = FracRidge(1, season_lengths=()).fit(y).memory_exponent()
        assert found.d == pytest.approx(d, abs=3 * found.standard_error)


@pytest.mark.slow
def test_the_exponent_of_long_memory_is_found_and_nearer_than_local_whittle_finds_it():
    errors = []
    for seed, d in enumerate([0.1, 0.2, 0.3, 0.4] * 2):
        y = make_arfima(8192, d, random_state=seed)
        found = FracRidge(1, season_lengths=()).fit(y).memory_exponent()
        errors.append([found.d - d, local_whittle(y).d - d])
    own, whittle = np.abs(errors).mean(axis=0)
    assert own < 0.012 and own < whittle


@pytest.mark.slow
def test_the_standard_error_is_the_spread_of_the_exponent_over_draws():
    draws = (make_arfima(1024, 0.3, random_state=seed) for seed in range(40))
    found = [FracRidge(1, season_lengths=()).fit(y).memory_exponent() for y in draws]
    spread = np.std([estimate.d for estimate in found])
    assert spread / 1.3 < np.mean([estimate.standard_error for estimate in found]) < 1.3 * spread


def test_a_season_hides_little_of_the_memory_around_it():
    x = make_arfima(8192, 0.3, random_state=0)
    season = 2 * np.sin(2 * np.pi * np.arange(8192) / 24)
    plain, seasonal = (
        FracRidge(1, season_lengths=lengths).fit(y).memory_exponent()
        for lengths, y in (((), x), (24, x + season))
    )
    assert abs(plain.d - seasonal.d) < 0.03


def test_the_exponent_is_read_from_the_weights_and_not_from_the_state():
    y = make_arfima(4096, 0.4, random_state=0)
    model = FracRidge(1, season_lengths=()).fit(y)
    other = model.apply(np.random.default_rng(0).normal(size=5000))
    assert other.memory_exponent().d == pytest.approx(model.memory_exponent().d, abs=1e-3)
    assert other.memory_exponent().standard_error == pytest.approx(
        model.memory_exponent().standard_error, rel=0.01
    )


def test_looking_changes_nothing(random_weights):
    y = weekly(80)
    model = FracForecaster(1, season_lengths=7, width=8, n_layers=1, n_heads=2, random_state=0).fit(y)
    random_weights(model.network_, 0)
    before = model.forecast(level=90)
    kernels = [model.memory_kernel([1, 20]) for _ in range(2)]
    pd.testing.assert_frame_equal(*kernels)
    np.testing.assert_array_equal(model.forecast(level=90), before)


@pytest.mark.parametrize("lags", [[], 0, [1, -2], 1.0, [1.5], True, "1", [[1, 2]]], ids=str)
def test_lags_that_are_no_steps_back_are_refused_with_what_to_give(lags):
    model = FracRidge(1).fit(weekly(100))
    with pytest.raises(ValueError, match=r"lags must be integers of at least 1.*range\(1, 101\)"):
        model.memory_kernel(lags)


def test_other_questions_that_have_no_answer_are_refused():
    model = FracRidge(2)
    for ask in (lambda: model.memory_kernel(1), model.memory_exponent):
        with pytest.raises(NotFittedError):
            ask()
    y = pd.DataFrame({"a": weekly(seed=1), "b": weekly(seed=2)})
    model = FracRidge(2, n_modes=8, season_lengths=(), pooled=False).fit(y)
    with pytest.raises(ValueError, match="beyond the horizon 2"):
        model.memory_kernel(1, lead=3)
    with pytest.raises(ValueError, match=r"weights of its own: name one of the series \['a', 'b'\]"):
        model.memory_exponent()
    with pytest.raises(ValueError, match="'c' is unknown"):
        model.memory_exponent("c")


def test_there_is_no_weight_before_the_first_value():
    y = make_arfima(300, 0.3, random_state=0)
    model = FracRidge(1).fit(y[:200])
    weight = model.memory_kernel(range(1, 302))["weight"]
    assert weight[:200].notna().all() and weight[200:].isna().all()
    assert weight.sum() == pytest.approx(1, abs=1e-9)
    model.update(y[200:])
    assert model.memory_kernel(range(1, 302))["weight"].notna().tolist() == [True] * 300 + [False]


def test_the_exponent_does_not_hang_on_the_series_at_hand():
    y = make_arfima(2000, 0.3, random_state=0)
    model = FracRidge(3).fit(y)
    found = model.memory_exponent()
    assert model.apply(y[:1]).memory_exponent() == found
    assert model.update(y[:500]).memory_exponent() == found


@pytest.mark.slow
def test_the_weight_at_a_lag_does_not_hang_on_the_other_lags(random_weights):
    y = make_arfima(400, 0.3, random_state=0)
    model = FracForecaster(1, max_epochs=1, random_state=0).fit(y)
    random_weights(model.network_, 0)
    alone, among = (model.memory_kernel(lags)["weight"] for lags in ([2], [1, 2, 150]))
    assert alone[0] == pytest.approx(among[1], rel=1e-12)  # sums over lags are rounded in another order
    model.network_.head.silence("shift")
    assert model.memory_kernel([2])["weight"][0] != alone[0]


@pytest.mark.parametrize("name", [("t", 1), None, float("nan")])
def test_any_name_of_a_series_may_be_looked_at(name):
    y = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)))
    y.columns = pd.Index([name, "b"], dtype=object, tupleize_cols=False)
    model = FracRidge(1, pooled=False).fit(y)
    spectrum = model.memory_spectrum()
    assert len(spectrum) == 2 * len(model.memory_spectrum().query("series == 'b'"))
    assert spectrum["series"][0] is name or spectrum["series"][0] == name
