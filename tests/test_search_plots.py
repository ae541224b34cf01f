"""The pictures of a search show its trials, with their losses in the right places."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import PathCollection, QuadMesh
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from sklearn.exceptions import NotFittedError

from fracts import FracRidge, FracSearch, WindowAverage, plots

SPACE = {"n_modes": IntDistribution(2, 9), "timescales_high": FloatDistribution(16, 4096, log=True)}


@pytest.fixture(scope="module")
def search():
    y = np.random.default_rng(0).normal(size=150).cumsum()
    model = FracRidge(2, season_lengths=(), penalty=1.0, anchor="last")
    return FracSearch(model, SPACE, n_trials=12, refit=False, random_state=0).fit(y)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


PICTURES = [plots.plot_search_history, plots.plot_search_importance, plots.plot_timescale_map]


def by_label(ax, label):
    return next(line for line in ax.lines if line.get_label() == label)


def test_the_history_shows_every_trial_and_falls_to_the_best(search):
    ax = plots.plot_search_history(search)
    losses = -search.cv_results_["mean_test_score"]
    best = by_label(ax, "best so far").get_ydata()
    np.testing.assert_array_equal(best, np.minimum.accumulate(losses))
    assert best[-1] == search.study_.best_value
    trial, worse = by_label(ax, "trial"), by_label(ax, "worse than shown")
    assert sorted([*trial.get_xdata(), *worse.get_xdata()]) == list(range(12))
    np.testing.assert_array_equal(trial.get_ydata(), losses[trial.get_xdata()])
    assert (losses[worse.get_xdata()] > trial.get_ydata().max()).all()
    ax.figure.canvas.draw()


def test_the_map_has_a_dot_for_every_trial_where_it_belongs(search):
    ax = plots.plot_timescale_map(search)
    dots = next(c for c in ax.collections if isinstance(c, PathCollection))
    params = search.cv_results_["params"]
    np.testing.assert_array_equal(dots.get_offsets()[:, 0], [p["timescales"][1] for p in params])
    np.testing.assert_array_equal(dots.get_offsets()[:, 1], [p["n_modes"] for p in params])
    np.testing.assert_array_equal(dots.get_array(), -search.cv_results_["mean_test_score"])
    best = search.best_params_
    ring = ax.lines[0]
    assert (ring.get_xdata()[0], ring.get_ydata()[0]) == (best["timescales"][1], best["n_modes"])
    assert f"{best['n_modes']} modes up to {best['timescales'][1]:,.0f} steps" in ax.get_title()
    assert ax.get_xscale() == "log"
    ax.figure.canvas.draw()


def test_the_ground_of_the_map_is_low_where_losses_are_low(search):
    """It follows a loss that falls with the timescale, made up for the purpose."""
    made_up = FracSearch(search.estimator)
    made_up.study_, made_up.best_index_ = search.study_, search.best_index_
    highs = np.array([p["timescales"][1] for p in search.cv_results_["params"]])
    made_up.cv_results_ = search.cv_results_ | {"mean_test_score": np.log2(highs)}
    ax = plots.plot_timescale_map(made_up)
    ground = next(c for c in ax.collections if isinstance(c, QuadMesh)).get_array().reshape(80, 80)
    along = ground.mean(axis=0)
    assert (np.diff(along) < 1e-9).all() and along[0] > along[-1] + 1


def test_importance_names_what_the_loss_hangs_on():
    y = np.tile([1.0, 5.0, 3.0, 2.0], 30)

    def space(trial):
        trial.suggest_float("nothing", 0, 1)
        return {"window": trial.suggest_int("window", 1, 40)}

    search = FracSearch(WindowAverage(1, 4), space, n_trials=25, step=1, random_state=0).fit(y)
    bars = plots.plot_search_importance(search)
    names = [label.get_text() for label in bars.get_yticklabels()]
    widths = [bar.get_width() for bar in bars.patches]
    assert names[-1] == "window" and widths[-1] > 0.7
    assert sum(widths) == pytest.approx(1)


@pytest.mark.parametrize("plot", PICTURES)
def test_the_axes_given_are_drawn_on_and_a_search_must_be_fitted(plot, search):
    ax = plt.figure().add_subplot()
    assert plot(search, ax) is ax
    with pytest.raises(NotFittedError, match="FracSearch is not fitted"):
        plot(FracSearch(FracRidge(1)))


def test_pruned_trials_are_marked_at_the_top(search):
    some = FracSearch(search.estimator)
    scores = search.cv_results_["mean_test_score"].copy()
    scores[[3, 4]] = np.nan
    some.study_, some.cv_results_, some.best_params_ = search.study_, search.cv_results_.copy(), {}
    some.cv_results_["mean_test_score"] = scores
    ax = plots.plot_search_history(some)
    assert by_label(ax, "pruned or infinite").get_xdata().tolist() == [3, 4]


def test_a_picture_of_what_was_not_searched_says_so():
    one = {"window": CategoricalDistribution([3])}
    search = FracSearch(WindowAverage(1, 3), one, n_trials=2, random_state=0).fit(np.arange(30.0))
    with pytest.raises(
        ValueError, match="the map is of n_modes and timescales_high, and searched were window"
    ):
        plots.plot_timescale_map(search)
    with pytest.raises(ValueError, match="2 trials ended, with 1 different losses"):
        plots.plot_search_importance(search)


def test_pictures_load_neither_matplotlib_nor_optuna_before_the_first_is_drawn():
    code = "import sys; import fracts.plots; print({'matplotlib', 'optuna'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "set()"
