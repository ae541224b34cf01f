"""A search gives what trying the same settings by hand would have given, and says no when it cannot."""

import logging
import subprocess
import sys
import time

import numpy as np
import optuna
import pandas as pd
import polars as pl
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from fracts import ARFIMA, FracRidge, FracSearch, WindowAverage, backtest
from fracts.parsimony import simplest

SMALL = {"n_modes": IntDistribution(2, 6), "timescales_high": FloatDistribution(16, 256, log=True)}


@pytest.fixture(scope="module")
def y():
    rng = np.random.default_rng(0)
    week = 5 + np.sin(2 * np.pi * np.arange(200) / 7)
    return pd.Series(week + 0.2 * rng.normal(size=200), pd.date_range("2024-01-01", periods=200), name="load")


def ridge(**options):
    return FracRidge(3, season_lengths=7, n_modes=4, **options)


@pytest.fixture(scope="module")
def searched(y):
    return FracSearch(ridge(), SMALL, n_trials=6, random_state=0).fit(y)


def drawn(search):
    return [trial.params for trial in search.study_.trials]


def test_the_best_is_the_forecaster_of_the_best_parameters_fitted_on_all(searched, y):
    by_hand = ridge().set_params(**searched.best_params_).fit(y)
    pd.testing.assert_frame_equal(searched.predict(level=90), by_hand.predict(level=90))
    more = pd.Series([5.0, 6.0], pd.date_range("2024-07-19", periods=2), name="load")
    assert searched.score(more) == by_hand.score(more)
    moved = clone(searched).fit(y).update(more)
    pd.testing.assert_series_equal(moved.predict(4), by_hand.update(more).predict(4))


def test_the_table_tells_every_trial_and_its_best_is_the_best(searched):
    table = pd.DataFrame(searched.cv_results_)
    values = [trial.value for trial in searched.study_.trials]
    np.testing.assert_array_equal(table["mean_test_score"], -np.array(values))
    assert table["rank_test_score"].tolist() == (np.argsort(np.argsort(values)) + 1).tolist()
    assert searched.best_score_ == -min(values) == table["mean_test_score"][searched.best_index_]
    assert table["params"][searched.best_index_] == searched.best_params_
    assert table["param_n_modes"].tolist() == [params["n_modes"] for params in table["params"]]
    highs = [params["timescales"][1] for params in table["params"]]
    assert table["param_timescales_high"].tolist() == highs
    assert (table["state"] == "COMPLETE").all() and (table["seconds"] > 0).all()


QUANTILES = np.arange(1, 20) / 20
METRICS = {
    "mase": {},
    "mae": {},
    "rmse": {"point": "mean"},
    "rmsse": {"point": "mean"},
    "pinball_0.9": {"quantiles": [0.9]},
    "crps": {"quantiles": QUANTILES},
}


@pytest.mark.parametrize("metric", METRICS)
def test_a_loss_is_that_of_a_backtest_from_the_same_origins(metric, y):
    search = FracSearch(ridge(), SMALL, n_trials=2, n_windows=9, step=4, metric=metric, random_state=0).fit(y)
    for trial, params in zip(search.study_.trials, search.cv_results_["params"], strict=True):
        model = ridge().set_params(**params)
        scores = backtest({"it": model}, y, n_windows=9, step=4, **METRICS[metric]).scores().loc["it"]
        pinballs = scores[[name for name in scores.index if name.startswith("pinball")]]
        expected = 2 * pinballs.mean() if metric == "crps" else scores[metric]
        assert trial.value == pytest.approx(expected, rel=1e-12)
        assert metric != "crps" or len(pinballs) == 19


@pytest.mark.parametrize(("metric", "power"), [("mae", 1), ("rmse", 2)])
def test_the_scores_of_splits_are_those_of_runs_of_consecutive_windows(metric, power, y):
    search = FracSearch(ridge(), SMALL, n_trials=2, n_windows=40, step=2, metric=metric, random_state=0).fit(
        y
    )
    table = search.cv_results_
    assert [name for name in table if name.startswith("split")] == [f"split{k}_test_score" for k in range(30)]
    model = ridge().set_params(**table["params"][1])
    tried = backtest({"it": model}, y, n_windows=40, step=2, point="mean" if power == 2 else "median").frame()
    errors = np.abs(tried["y"] - tried["it"]).to_numpy().reshape(40, 3) ** power
    runs = [run.mean() ** (1 / power) for run in np.array_split(errors, 30)]
    told = [-table[f"split{k}_test_score"][1] for k in range(30)]
    np.testing.assert_allclose(told, runs, rtol=1e-12)


def test_the_simplest_trial_that_windows_do_not_tell_from_the_best_is_taken_when_asked_for(searched, y):
    searched = clone(searched).set_params(random_state=2).fit(y)
    frugal = clone(searched).set_params(selection="simplest").fit(y)
    table = frugal.cv_results_
    np.testing.assert_array_equal(table["mean_test_score"], searched.cv_results_["mean_test_score"])
    splits = -np.column_stack([table[f"split{k}_test_score"] for k in range(frugal.n_windows_)])
    sizes = np.array([(params["timescales"][1], params["n_modes"]) for params in table["params"]])
    assert frugal.best_index_ == simplest(-table["mean_test_score"], splits, sizes) != searched.best_index_
    assert frugal.best_score_ == table["mean_test_score"][frugal.best_index_] < searched.best_score_
    assert frugal.best_params_["timescales"][1] < searched.best_params_["timescales"][1]


def test_an_estimator_without_timescales_has_no_simplest_trial(y):
    search = FracSearch(WindowAverage(3, 5), n_trials=5, selection="simplest", random_state=0).fit(y)
    assert search.best_score_ == -search.study_.best_value


def test_the_windows_take_a_fifth_of_the_history_unless_told_otherwise(y):
    search = FracSearch(WindowAverage(3, 5), n_trials=1, random_state=0).fit(y)
    assert (search.n_windows_, search.step_) == (13, 3)


class Seen(WindowAverage):
    fits: list = []  # noqa: RUF012

    def fit(self, y, X=None, **options):
        Seen.fits.append(np.asarray(y).ravel().copy())
        return super().fit(y, X, **options)


def test_what_is_fitted_in_a_trial_has_seen_nothing_of_what_it_is_scored_on(y):
    Seen.fits = []
    search = FracSearch(Seen(3, 5), {"window": IntDistribution(1, 9)}, n_trials=4, n_windows=10, step=2)
    search.fit(y)
    first_forecast = 200 - 9 * 2 - 3
    assert [len(values) for values in Seen.fits] == [first_forecast] * 4 + [200]
    later = y.copy()
    later.iloc[first_forecast:] += 100.0
    kept = search.study_.best_params
    Seen.fits = []
    FracSearch(Seen(3, 5), {"window": CategoricalDistribution([kept["window"]])}, n_trials=1, n_windows=10,
               step=2).fit(later)  # fmt: skip
    np.testing.assert_array_equal(Seen.fits[0], y[:first_forecast])


def test_the_default_space_depends_on_nothing_that_is_forecast():
    """A season that only comes with the first forecast is none to choose."""
    y = 0.01 * np.random.default_rng(0).normal(size=400)
    y[80:] += np.sin(2 * np.pi * np.arange(320) / 12)
    choices = []
    for n_windows in (80, 1):
        search = FracSearch(FracRidge(4, n_modes=4), n_trials=1, n_windows=n_windows, random_state=0).fit(y)
        choices.append(search.study_.trials[0].distributions["anchor"].choices)
    assert choices == [("auto", "centre", "last"), ("auto", "centre", "last", "season")]


def test_one_seed_and_one_worker_give_the_same_trials_stopped_and_started_again_or_not(y, tmp_path):
    def search(n_trials, seed=3, storage=None):
        model = FracSearch(WindowAverage(3, 5), n_trials=n_trials, random_state=seed, storage=storage)
        return model.fit(y)

    whole, again, other = search(14), search(14), search(14, seed=4)
    assert drawn(whole) == drawn(again) != drawn(other)
    assert [t.value for t in whole.study_.trials] == [t.value for t in again.study_.trials]
    for n_trials in (5, 9):
        in_parts = search(n_trials, storage=tmp_path / "study.log")
    assert drawn(in_parts) == drawn(whole)


def test_another_worker_with_the_same_seed_draws_other_trials(y, tmp_path):
    workers = [
        FracSearch(WindowAverage(3, 5), n_trials=4, random_state=3, storage=str(tmp_path / "study.log"))
        for _ in range(2)
    ]
    for worker in workers:
        worker.fit(y)
    windows = [params["window"] for params in drawn(workers[1])]
    assert len(windows) == 8 and len(set(windows)) > 5


@pytest.mark.parametrize("kind", ["journal", "sqlite", "optuna"])
def test_a_study_in_a_storage_goes_on_and_the_trials_of_a_call_are_counted(kind, y, tmp_path):
    storage = {
        "journal": tmp_path / "study.log",
        "sqlite": f"sqlite:///{tmp_path}/study.db",
        "optuna": optuna.storages.InMemoryStorage(),
    }[kind]
    search = FracSearch(WindowAverage(3, 5), n_trials=2, storage=storage, study_name="mine")
    for done in (2, 4):
        search.fit(y)
        assert len(search.study_.trials) == done and search.study_.study_name == "mine"


def test_without_a_storage_every_fit_begins_a_new_study_and_forgets_the_last(y):
    search = FracSearch(WindowAverage(3, 5), n_trials=2, random_state=0).fit(y)
    search.set_params(refit=False).fit(y[:150])
    assert len(search.study_.trials) == 2 and not hasattr(search, "best_estimator_")
    with pytest.raises(NotFittedError, match="refit=False"):
        search.predict()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"metric": "mae"}, "begun with metric='mase', and now metric='mae' came"),
        ({"estimator": WindowAverage(2, 5)}, "begun with horizon=3, and now horizon=2 came"),
        ({"n_windows": 2}, "begun with n_windows=13, and now n_windows=2 came"),
        ({"data": 1.0}, "begun with digest of the data"),
    ],
    ids=["metric", "horizon", "windows", "data"],
)
def test_a_study_of_another_task_is_refused(change, told, y, tmp_path):
    search = FracSearch(WindowAverage(3, 5), n_trials=1, storage=str(tmp_path / "study.log")).fit(y)
    shift = change.pop("data", 0.0)
    with pytest.raises(ValueError, match=told):
        clone(search).set_params(**change).fit(y + shift)
    assert len(optuna.load_study(study_name="fracts", storage=search.study_._storage).trials) == 1


def test_the_first_trial_is_the_estimator_as_it_stands_where_the_space_holds_it(y):
    search = FracSearch(FracRidge(3, season_lengths=7, n_modes=5), n_trials=2, random_state=0).fit(y)
    first = search.cv_results_["params"][0]
    long = {"timescales": (1.0, 131072.0), "centre_memory": 131072.0}
    assert first == long | {"n_modes": 5, "penalty": "auto", "anchor": "auto"}
    outside = FracSearch(WindowAverage(3, 100), {"window": IntDistribution(1, 9)}, n_trials=1).fit(y)
    assert outside.best_params_["window"] <= 9


def test_known_good_settings_are_tried_first_then_those_of_another_study(y, tmp_path):
    space = {"window": IntDistribution(1, 99)}
    storage = str(tmp_path / "study.log")
    old = FracSearch(
        WindowAverage(3, 50), space, n_trials=7, random_state=0, storage=storage, study_name="old"
    )
    old.fit(y)
    best = [t.params for t in sorted(old.study_.trials, key=lambda trial: trial.value)[:5]]
    for source in ("old", old.study_):
        new = FracSearch(
            WindowAverage(2, 77),
            space,
            n_trials=8,
            enqueue=[{"window": 14}],
            from_study=source,
            storage=storage,
            study_name=f"new {source!r}"[:9],
        ).fit(y)
        assert drawn(new) == [{"window": 77}, {"window": 14}, *best, drawn(new)[-1]]


def test_settings_are_told_as_parameters_of_the_estimator(y):
    known = {
        "n_modes": 7,
        "timescales": (0.5, 512.0),
        "centre_memory": 99.0,
        "penalty": 10,
        "anchor": "season",
    }
    search = FracSearch(ridge(), n_trials=2, enqueue=[known], random_state=0).fit(y)
    assert search.cv_results_["params"][1] == known


def test_a_space_may_be_a_function_of_the_trial(y):
    def space(trial):
        if trial.suggest_categorical("season", [False, True]):
            return {"anchor": "season", "n_modes": trial.suggest_int("n_modes", 2, 5)}
        return {"season_lengths": (), "penalty": trial.suggest_float("penalty", 1, 10)}

    search = FracSearch(ridge(), space, n_trials=8, random_state=0).fit(y)
    assert {len(params) for params in search.cv_results_["params"]} == {2}
    assert search.best_estimator_.get_params().items() >= search.best_params_.items()


def test_a_trial_that_fails_is_told_and_the_others_go_on(y, caplog):
    space = {"window": CategoricalDistribution([0, 3, 9])}
    with caplog.at_level(logging.WARNING, "fracts"):
        search = FracSearch(WindowAverage(3, 3), space, n_trials=9, random_state=0).fit(y)
    failed = [t for t in search.study_.trials if t.state == optuna.trial.TrialState.FAIL]
    assert 0 < len(failed) < 9 and all(trial.params["window"] == 0 for trial in failed)
    assert "window must be an integer of at least 1" in failed[0].user_attrs["error"]
    assert len(caplog.records) == len(failed) and "window must be" in caplog.text
    assert len(search.cv_results_["params"]) == 9 - len(failed)


def test_where_all_trials_fail_the_reason_is_raised_and_nothing_changes(searched, y):
    before = dict(vars(searched))
    bad = {"n_modes": CategoricalDistribution([1])}
    with pytest.raises(ValueError, match="no trial of the study succeeded") as caught:
        searched.set_params(space=bad).fit(y)
    searched.set_params(space=before["space"])
    assert "n_modes must be an integer of at least 2" in str(caught.value.__cause__)
    assert vars(searched) == before


def test_a_history_that_never_moved_has_no_mase_but_a_mae():
    search = FracSearch(WindowAverage(2, 3), n_trials=1)
    with pytest.raises(ValueError, match="no trial") as caught:
        search.fit(np.ones(50))
    assert "Try metric='mae'" in str(caught.value.__cause__)
    assert search.set_params(metric="mae").fit(np.ones(50)).best_score_ == 0


def test_time_ends_a_search_and_so_does_the_callback(y):
    def space(trial):
        time.sleep(0.2)
        return {"window": trial.suggest_int("window", 1, 9)}

    search = FracSearch(WindowAverage(3, 5), space, timeout=1.0).fit(y)
    assert 1 <= len(search.study_.trials) <= 5
    told = []

    def third(study, trial):
        told.append(trial.number)
        return trial.number == 2

    search = FracSearch(WindowAverage(3, 5), space, n_trials=9, callback=third).fit(y)
    assert told == [0, 1, 2] and len(search.study_.trials) == 3


def test_it_is_an_estimator_of_scikit_learn(searched):
    copy = clone(searched)
    assert not hasattr(copy, "study_") and copy.get_params(deep=False).keys() == vars(copy).keys()
    assert copy.set_params(estimator__n_modes=9).estimator.n_modes == 9 != searched.estimator.n_modes
    assert repr(copy).startswith("FracSearch(estimator=FracRidge(horizon=3")
    with pytest.raises(NotFittedError, match="not fitted"):
        copy.predict()


def test_the_estimator_given_stays_unfitted_and_unchanged(y):
    estimator = WindowAverage(3, 5)
    before = estimator.get_params()
    FracSearch(estimator, n_trials=2, random_state=0).fit(y)
    assert estimator.get_params() == before and not hasattr(estimator, "series_ids_")


def test_what_comes_in_comes_out_and_covariates_are_passed_on():
    frame = pl.DataFrame({"unique_id": ["a"] * 90 + ["b"] * 90, "ds": [*range(90)] * 2, "y": [*range(180)]})
    forecast = FracSearch(WindowAverage(2, 5), n_trials=2, random_state=0).fit(frame).predict()
    assert isinstance(forecast, pl.DataFrame) and forecast["ds"].to_list() == [90, 91, 90, 91]
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"heat": rng.normal(size=300)}, pd.date_range("2024", periods=300))
    y = (3 * X["heat"][:250] + rng.normal(size=250)).rename("load")
    plain, aware = (FracSearch(ridge(), SMALL, n_trials=2, random_state=0).fit(y, x) for x in (None, X))
    assert aware.best_score_ > plain.best_score_ + 0.2
    assert aware.predict(X=X).shape == (3,)
    assert aware.update(pd.Series([1.0], X.index[250:251]), X).best_estimator_.cutoff_ == X.index[250]


@pytest.mark.slow
def test_a_search_is_silent_unless_asked_for_a_line(tmp_path):
    code = (
        "import numpy as np; from fracts import FracSearch, WindowAverage\n"
        "FracSearch(WindowAverage(2, 5), n_trials=3, timeout=3600, storage='study.log', verbose={}).fit("
        "np.arange(60) % 7)"
    )
    for verbose in (0, 1):
        ended = subprocess.run(
            [sys.executable, "-c", code.format(verbose)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert ended.stdout == ""
        assert (ended.stderr == "") == (verbose == 0)
    for told in ("3/3", "best mase", "(trial ", "no new trial after 59:5"):
        assert told in ended.stderr


def test_importing_the_search_loads_no_optuna():
    code = "import sys, fracts.search; print('optuna' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


def test_without_optuna_the_error_says_what_to_install(monkeypatch, y):
    monkeypatch.setattr("fracts.baselines.needed.find_spec", lambda package: None)
    with pytest.raises(ModuleNotFoundError, match=r"FracSearch needs the package optuna.*'fracts\[search\]'"):
        FracSearch(WindowAverage(3, 5), n_trials=1).fit(y)


def test_the_default_spaces_of_classical_models_hold_them_as_they_stand(y):
    search = FracSearch(ARFIMA(2, q=1), n_trials=1, refit=False).fit(y[:80])
    assert search.cv_results_["params"][0] == {"p": 0, "q": 1, "differences": 0}
