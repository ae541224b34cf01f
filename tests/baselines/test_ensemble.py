"""Weights of an ensemble are the best on forecasts of what no model had seen, and on nothing else."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone

from fracts import FracRidge, backtest
from fracts.baselines import Drift, Ensemble, Mean, Naive, SeasonalNaive
from fracts.baselines.stacking import simplex_weights
from fracts.checks import FitWarning
from fracts.forecasts import Forecast
from fracts.scores import naive_scale


def weekly(n, seed=0, n_series=1):
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n, n_series))
    values = 3 * np.sin(2 * np.pi * np.arange(n) / 7)[:, None] + noise + 0.1 * noise.cumsum(axis=0)
    return pd.DataFrame(values, pd.date_range("2024-01-01", periods=n, freq="D"), list("abcd")[:n_series])


@given(
    st.integers(1, 6),
    st.integers(1, 40),
    st.integers(0, 2**31),
    st.sampled_from([1e-12, 1.0, 1e12]),
)
def test_no_other_weights_of_sum_1_have_a_smaller_squared_error(n_models, n_errors, seed, unit):
    rng = np.random.default_rng(seed)
    errors = unit * (rng.normal(size=(n_errors, n_models)) + rng.normal(size=(n_errors, 1)))
    weights = simplex_weights(errors)
    assert (weights >= 0).all() and weights.sum() == pytest.approx(1)
    others = np.concatenate([np.eye(n_models), rng.dirichlet(np.ones(n_models), size=50)])
    near = 0.99 * weights + 0.01 * others
    least = np.linalg.norm(errors @ weights)
    for tried in (others, near):
        assert (np.linalg.norm(errors @ tried.T, axis=0) >= least * (1 - 1e-9)).all()


def test_perfect_and_equal_models_have_weights_of_sum_1():
    np.testing.assert_allclose(simplex_weights(np.zeros((5, 2))), [0.5, 0.5])
    np.testing.assert_allclose(simplex_weights(np.array([[0.0, 1.0], [0.0, 2.0]])), [1, 0], atol=1e-12)
    assert simplex_weights(np.ones((5, 3))).sum() == pytest.approx(1)


def test_the_weights_are_those_of_a_backtest_of_the_last_fifth():
    y = weekly(150, n_series=2)
    models = [Naive(3), SeasonalNaive(3, season_length=7), Mean(3)]
    weights = Ensemble(3, models, how="weighted").fit(y).weights_
    cut = 120  # the fifth after four of them: rows 0 to 119 come before
    errors = []
    for model in models:
        fitted, each = clone(model).fit(y[:cut]), []
        for row in range(cut, 150):
            truth = y[row : row + 3].to_numpy()
            each.append(np.pad(truth - fitted.forecast()[: len(truth)], ((0, 3 - len(truth)), (0, 0))))
            fitted.update(y[row : row + 1])
        errors.append(each)
    scale = np.array([naive_scale(y[name][:cut]) for name in y])
    stacked = (np.array(errors) / scale).reshape(3, -1).T
    found = minimize(
        lambda w: np.sum((stacked @ w) ** 2),
        np.full(3, 1 / 3),
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        tol=1e-12,
    )
    np.testing.assert_allclose(weights, found.x, atol=1e-4)
    assert 0.05 < weights.max() < 0.999


class Parrot(Naive):
    """Says what it was fitted to, where it was; elsewhere nothing right."""

    def _fit(self, panel, clock):
        super()._fit(panel, clock)
        self.seen_ = panel

    def _forecast(self, state, horizon, quantiles):
        due = state["time"][0] + np.arange(1, horizon + 1)
        at = np.searchsorted(self.seen_.times, due)
        known = at < self.seen_.times.size
        said = np.where(known, self.seen_.values[:, np.where(known, at, 0)], 1e3)
        return Forecast(said, np.repeat(said[..., None], len(quantiles), axis=-1))


def test_a_model_that_knows_what_it_was_fitted_to_by_heart_has_no_weight():
    ensemble = Ensemble(1, [Parrot(1), Mean(1)], how="weighted").fit(weekly(200))
    np.testing.assert_allclose(ensemble.weights_, [0, 1], atol=1e-2)


def test_weights_know_nothing_of_what_comes_after_the_history():
    y = weekly(200, n_series=2)
    changed = y.copy()
    changed.iloc[150:] *= 100
    model = Ensemble(2, [Naive(2), SeasonalNaive(2, season_length=7)], how="weighted")
    before, after = (
        backtest({"it": model}, data, start=140, refit=5).frame().drop(columns="y") for data in (y, changed)
    )
    told = before["cutoff"] < y.index[150]
    pd.testing.assert_frame_equal(before[told], after[told], check_exact=True)
    assert told.sum() > 20 and not before.equals(after)


def test_what_is_said_is_the_weighted_mean_at_every_quantile_and_stays_so_after_an_update():
    y = weekly(200, n_series=2)
    models = [Naive(3), SeasonalNaive(3, season_length=7), Drift(3)]
    ensemble = Ensemble(3, models, how="weighted").fit(y[:180]).update(y[180:])
    each = [clone(m).fit(y[:180]).update(y[180:]).forecast(level=[50, 90]) for m in models]
    expected = np.tensordot(ensemble.weights_, each, axes=1)
    np.testing.assert_allclose(ensemble.forecast(level=[50, 90]), expected, rtol=1e-12)
    assert Ensemble(3, models).fit(y).weights_.tolist() == [1 / 3] * 3
    assert Ensemble(3, models, how="median").fit(y).weights_ is None


def test_weights_do_not_hang_on_the_unit_of_the_series():
    y = weekly(150, n_series=2)
    models = [Naive(2), SeasonalNaive(2, season_length=7), FracRidge(2, season_lengths=7)]
    first, second = (Ensemble(2, models, how="weighted").fit(each).weights_ for each in (y, y * [1e3, 1e-3]))
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_series_that_end_early_or_begin_late_are_weighed_where_they_can_be():
    y = weekly(200, n_series=3)
    y.iloc[100:, 1], y.iloc[:190, 2] = np.nan, np.nan
    models = [Naive(2), SeasonalNaive(2, season_length=7)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weights = Ensemble(2, models, how="weighted").fit(y).weights_
    alone = Ensemble(2, models, how="weighted").fit(y[["a"]]).weights_
    assert weights.sum() == pytest.approx(1) and np.abs(weights - alone).max() < 0.2


@pytest.mark.parametrize("y", [[1.0], [1.0, 2.0, 1.0], np.ones(100)], ids=["one", "three", "still"])
def test_too_short_or_still_a_history_has_equal_weights_and_says_so(y):
    with pytest.warns(FitWarning, match="forecasts to weigh 2 models by. 10 are needed") as told:
        ensemble = Ensemble(2, [Naive(2), Mean(2)], how="weighted").fit(y)
    assert told[0].filename == __file__
    assert ensemble.weights_.tolist() == [0.5, 0.5] and np.isfinite(ensemble.predict()).all()


def test_the_weights_travel_with_a_file(tmp_path):
    ensemble = Ensemble(2, [Naive(2), SeasonalNaive(2, season_length=7)], how="weighted").fit(weekly(200))
    ensemble.save(tmp_path / "ensemble")
    again = Ensemble.load(tmp_path / "ensemble")
    np.testing.assert_array_equal(again.weights_, ensemble.weights_)
    pd.testing.assert_frame_equal(again.predict(level=80), ensemble.predict(level=80))
