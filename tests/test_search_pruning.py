"""A network that lags behind is stopped while it trains, and a stopped training leaves nothing behind."""

import gc
import warnings
from functools import partial
from pathlib import Path

import lightning
import numpy as np
import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.pruners import BasePruner, NopPruner

from fracts import FracForecaster, FracRidge, FracSearch
from fracts.epochs import watching


@pytest.fixture(scope="module")
def y():
    rng = np.random.default_rng(0)
    return np.sin(2 * np.pi * np.arange(240) / 12) + 0.2 * rng.normal(size=240)


def two_batches(accelerator="cpu"):
    """A Trainer of two epochs that are short."""
    return lightning.Trainer(
        accelerator=accelerator,
        max_epochs=2,
        limit_train_batches=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


def network(**options):
    settings = {"season_lengths": 12, "width": 8, "n_layers": 1, "n_heads": 2, "n_modes": 4, "window": 32}
    return FracForecaster(4, **settings | {"device": "cpu", "trainer": two_batches} | options)


RATES = {"learning_rate": FloatDistribution(1e-3, 1e-2, log=True)}


class After(BasePruner):
    """Prunes every trial after an epoch."""

    def __init__(self, epoch):
        self.epoch = epoch

    def prune(self, study, trial):
        return trial.last_step >= self.epoch


def test_every_epoch_is_told_from_the_linear_path_on(y):
    search = FracSearch(network(), RATES, n_trials=1, pruner=NopPruner(), refit=False, random_state=0).fit(y)
    (trial,) = search.study_.trials
    told = trial.intermediate_values
    linear = FracSearch(network(n_layers=0), RATES, n_trials=1, refit=False, random_state=0).fit(y)
    assert list(told) == [0, 1, 2]
    assert told[0] == pytest.approx(-linear.best_score_)
    assert len(set(told.values())) == 3


def test_what_is_told_of_an_epoch_is_what_the_network_left_of_the_held_out_loss(y):
    losses = []
    with watching(lambda epoch, loss: losses.append(loss)):
        model = network(random_state=0).fit(y)
    assert losses == [epoch.held_out_loss for epoch in model.history_]
    told = FracSearch(network(random_state=0), RATES, n_trials=1, n_windows=1, step=1, pruner=NopPruner())
    (trial,) = told.fit(np.append(y, y[:4])).study_.trials
    values = np.array(list(trial.intermediate_values.values()))
    np.testing.assert_allclose(values / values[0], np.array(losses) / losses[0], rtol=1e-6)


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_pruned_training_ends_at_once_without_a_warning_and_the_next_one_is_as_ever(epoch, y):
    expected = network(random_state=0).fit(y).forecast()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises(ValueError, match="no trial of the study succeeded"):
            FracSearch(network(), RATES, n_trials=2, pruner=After(epoch), random_state=0).fit(y)
        gc.collect()
    assert not [each for each in said if each.category is not DeprecationWarning]
    np.testing.assert_array_equal(network(random_state=0).fit(y).forecast(), expected)


def test_a_pruned_trial_is_in_the_table_without_a_score_and_ranks_last(y):
    class Second(BasePruner):
        def prune(self, study, trial):
            return trial.number == 1 and trial.last_step == 2

    search = FracSearch(network(), RATES, n_trials=3, pruner=Second(), refit=False, random_state=0).fit(y)
    table = search.cv_results_
    assert table["state"].tolist() == ["COMPLETE", "PRUNED", "COMPLETE"]
    assert np.isnan(table["mean_test_score"]).tolist() == [False, True, False]
    assert table["rank_test_score"][1] == 3 and search.best_index_ != 1
    assert list(search.study_.trials[1].intermediate_values) == [0, 1, 2]


@pytest.mark.slow
def test_the_default_pruner_stops_what_lags_behind(y):
    space = RATES | {"anchor": CategoricalDistribution(["season", "last"])}
    queue = [{"learning_rate": rate, "anchor": "season"} for rate in (2e-3, 3e-3, 4e-3, 5e-3)]
    queue.append({"learning_rate": 5e-3, "anchor": "last"})
    model = network(anchor="season", learning_rate=1e-3, penalty=1e5)
    search = FracSearch(model, space, n_trials=6, enqueue=queue, refit=False, random_state=0).fit(y)
    assert search.cv_results_["state"].tolist() == ["COMPLETE"] * 5 + ["PRUNED"]
    assert list(search.study_.trials[5].intermediate_values) == [0, 1]


@pytest.mark.slow
def test_one_seed_gives_the_same_networks(y):
    first, second = (FracSearch(network(), RATES, n_trials=2, random_state=5).fit(y) for _ in range(2))
    assert [t.value for t in first.study_.trials] == [t.value for t in second.study_.trials]
    np.testing.assert_array_equal(first.predict(level=90), second.predict(level=90))
    assert first.best_estimator_.random_state == 5
    seeded = FracSearch(network(random_state=2), RATES, n_trials=1, random_state=5).fit(y)
    assert seeded.best_estimator_.random_state == 2


def test_the_default_space_of_a_network_holds_it_as_it_stands(y):
    model = network(width=16, n_layers=1)
    search = FracSearch(model, n_trials=1, refit=False, random_state=0).fit(y)
    names = {
        "n_modes",
        "timescales",
        "centre_memory",
        "penalty",
        "anchor",
        "width",
        "n_layers",
        "learning_rate",
    }
    assert search.best_params_.keys() == names
    assert search.best_params_ == {name: model.get_params()[name] for name in names}
    widths = search.study_.trials[0].distributions["width"].choices
    assert all(width % (2 * model.n_heads) == 0 for width in widths)


def resident():
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.slow
def test_memory_does_not_grow_over_200_trials(y):
    def run(n_trials):
        search = FracSearch(FracRidge(4, season_lengths=12), n_trials=n_trials, refit=False, random_state=0)
        search.fit(y)
        gc.collect()
        return resident()

    run(60)  # what is loaded and cached once
    start = run(10)
    assert run(200) - start < 20e6


@pytest.mark.slow
def test_memory_does_not_grow_over_trainings_pruned_or_not(y):
    def run(n_trials, epoch):
        search = FracSearch(
            network(), RATES, n_trials=n_trials, refit=False, pruner=After(epoch), random_state=0
        )
        try:
            search.fit(y)
        except ValueError:
            assert epoch < 9
        gc.collect()
        return resident()

    for epoch in (9, 1):
        run(15, epoch)
        start = run(5, epoch)
        assert run(40, epoch) - start < 20e6


@pytest.mark.gpu
def test_cuda_memory_does_not_grow_over_200_trials(y):
    used = []
    model = network(device="cuda", trainer=partial(two_batches, "gpu"))
    for n_trials in (3, 200):
        FracSearch(model, RATES, n_trials=n_trials, refit=False, random_state=0).fit(y)
        used.append(torch.cuda.memory_allocated())
    assert used[1] <= used[0] + 2**20
