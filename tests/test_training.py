"""Training keeps to itself: silent, repeatable, and a network that gains nothing adds nothing."""

import copy
import random
import subprocess
import sys
from dataclasses import replace

import lightning
import numpy as np
import pytest
import torch

from fracts import FracForecaster, training
from fracts.linear_fit import fit_linear

ROWS = 300


def make(seasons=(), **options):
    small = {"width": 16, "n_heads": 2, "window": 64, "max_epochs": 1, "random_state": 0}
    return FracForecaster(3, season_lengths=seasons, **(small | options))


def weekly(seed=0):
    """A persistent series with a week in it."""
    draws = np.random.default_rng(seed)
    return np.sin(2 * np.pi * np.arange(ROWS) / 7) + 0.1 * draws.normal(size=ROWS).cumsum()


def noise(seed=0):
    return np.random.default_rng(seed).normal(size=ROWS)


def test_a_network_that_does_not_beat_the_linear_path_is_silenced():
    y = noise(1)
    model, linear = make(max_epochs=2, learning_rate=0.3).fit(y), make(n_layers=0).fit(y)
    assert not model.network_share_.any() and len(model.history_) > 1
    np.testing.assert_allclose(model.forecast(6, level=90), linear.forecast(6, level=90), rtol=1e-12)


def test_the_weights_of_the_best_epoch_stay(monkeypatch):
    found, settle = [], training.settle

    @torch.no_grad()
    def settled(network, held_out, learned):
        found.append(float(training._mean(*(training._losses(network, window) for window in held_out))))
        return settle(network, held_out, learned)

    monkeypatch.setattr(training, "settle", settled)
    losses = [epoch.held_out_loss for epoch in make(max_epochs=6, learning_rate=0.1).fit(noise()).history_]
    assert found == pytest.approx([min(losses)], rel=1e-6)
    assert losses.index(min(losses)) not in (0, len(losses) - 1)


def tent(rows):
    """A noisy tent map: the next value hangs on the size of the last one, which no linear path can tell."""
    draws = np.random.default_rng(3)
    y = np.zeros(rows)
    for t in range(1, rows):
        y[t] = 2 - 1.5 * abs(y[t - 1]) + 0.2 * draws.normal()
    return y


def test_a_network_that_beats_the_linear_path_is_kept():
    y = tent(600)
    model = make(max_epochs=3, learning_rate=1e-2).fit(y[:500])
    linear = make(n_layers=0).fit(y[:500])
    losses = [epoch.held_out_loss for epoch in model.history_]
    assert model.network_share_.all()
    assert min(losses) < 0.8 * losses[0]
    assert model.score(y[500:]) > linear.score(y[500:]) + 0.1


def test_a_network_has_a_share_of_what_was_learned_alone(monkeypatch):
    y, fit = tent(500), "fracts.forecaster.fit_linear"
    whole = make(max_epochs=3, learning_rate=1e-2).fit(y)
    monkeypatch.setattr(
        fit, lambda *args, **options: replace(fit_linear(*args, **options), alone=np.full(3, 0.8))
    )
    part = make(max_epochs=3, learning_rate=1e-2).fit(y)
    assert whole.network_share_.max() > 0.2 >= part.network_share_.max() > 0
    np.testing.assert_allclose(part.network_.head.share[0], part.network_share_, rtol=1e-5)


def test_networks_that_are_averaged_are_trained_each_on_its_own():
    y = tent(600)[:500]
    one, three = (make(max_epochs=3, learning_rate=1e-2, n_networks=n).fit(y) for n in (1, 3))
    epochs = len(one.history_)
    assert one.history_[1:] == three.history_[1:epochs]
    assert [epoch.epoch for epoch in three.history_] == 3 * [epoch.epoch for epoch in one.history_]
    assert len({epoch.held_out_loss for epoch in three.history_ if epoch.epoch == 3}) == 3
    assert three.network_share_.all() and len(three.network_.encoders) == 3
    for a, b in zip(
        one.network_.encoders[0].parameters(), three.network_.encoders[0].parameters(), strict=True
    ):
        assert torch.equal(a, b)


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_a_share_of_what_is_added_to_the_anchors_is_the_networks(share, random_weights):
    y = tent(600)
    model, linear = make().fit(y[:500]), make(n_layers=0).fit(y[:500])
    anchors = copy.deepcopy(linear)
    anchors._path = replace(linear._path, share=np.ones(3))
    random_weights(model.network_, 0)
    model.network_.head.silence("stretch")
    model.network_.head.share[:] = share
    model._path = replace(linear._path, share=np.full(3, share))
    model, linear, anchors = (one.apply(y) for one in (model, linear, anchors))
    said = model.network_.head.moves(torch.from_numpy(model._state["features"])).detach().numpy()[0, 0]
    scale = linear._path.memory.scaler.read(linear._state["sums"])[1]
    expected = (1 - share) * linear.predict() + share * anchors.predict() + scale * said
    np.testing.assert_allclose(model.predict(), expected, rtol=1e-5)
    assert np.abs(said).min() > 0 and np.abs(linear.predict() - anchors.predict()).min() > 0


@pytest.mark.parametrize("missing", [slice(200, 299), slice(1, 200), slice(100, 290)], ids=str)
def test_a_history_with_a_long_hole_is_fitted(missing):
    y = weekly()
    y[missing] = np.nan
    model = make((7,)).fit(y)
    assert np.isfinite(model.forecast(level=90)).all()


def test_the_history_tells_every_epoch():
    history = make((7,), max_epochs=2).fit(weekly()).history_
    assert [epoch.epoch for epoch in history] == [0, 1, 2]
    assert np.isnan(history[0].train_loss)
    assert all(epoch.train_loss > 0 for epoch in history[1:])
    assert all(np.isfinite(epoch.held_out_loss) and epoch.held_out_loss > 0 for epoch in history)


def test_training_is_silent_and_writes_nothing(tmp_path):
    fit = (
        "import numpy as np; from fracts import FracForecaster\n"
        "y = np.random.default_rng(0).normal(size=150)\n"
        "FracForecaster(2, width=16, n_heads=2, window=64, max_epochs=1, random_state=0).fit(y).predict()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", fit], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (ended.stdout, ended.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_training_leaves_the_random_numbers_of_others_alone():
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    expected = random.random(), np.random.random(), torch.rand(1).item()
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    make().fit(noise())
    assert (random.random(), np.random.random(), torch.rand(1).item()) == expected


def test_training_is_repeatable_to_the_bit_and_differs_by_seed():
    y = weekly()
    first, second, other = (make((7,), random_state=seed).fit(y) for seed in (4, 4, 5))
    assert first.history_[1:] == second.history_[1:] != other.history_[1:]
    for a, b in zip(first.network_.parameters(), second.network_.parameters(), strict=True):
        assert torch.equal(a, b)
    np.testing.assert_array_equal(first.forecast(5, level=90), second.forecast(5, level=90))
    starts = [make((7,), random_state=seed).fit(y[:60]).network_.encoders[0].embed.weight for seed in (4, 5)]
    assert not torch.equal(*starts)


def test_a_trainer_of_ones_own_is_made_once_a_fit_and_used():
    made = []

    def trainer():
        made.append(
            lightning.Trainer(
                accelerator="cpu",
                max_epochs=3,
                limit_train_batches=1,
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
            )
        )
        return made[-1]

    model = make(trainer=trainer).fit(noise())
    assert len(made) == 1 and made[0].global_step == 3
    assert [epoch.epoch for epoch in model.history_] == [0, 1, 2, 3]
    model.fit(noise())
    assert len(made) == 2


def test_the_device_is_told_and_a_wrong_one_is_an_error():
    assert make(device="cpu", n_layers=0).fit(noise()).device_ == "cpu"
    with pytest.raises(ValueError, match="device must be 'auto', 'cpu' or 'cuda', got 'tpu'"):
        make(device="tpu").fit(noise())
    model = make().fit(noise())
    assert model.device_ in ("cpu", "cuda")
    assert {tensor.device.type for tensor in model.network_.state_dict().values()} == {"cpu"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
def test_a_gpu_that_is_not_there_is_an_error_that_says_what_to_do():
    model = make(device="cuda")
    with pytest.raises(ValueError, match=r"device='cuda'.*device='cpu'"):
        model.fit(noise())
    assert not hasattr(model, "network_")


@pytest.mark.gpu
def test_replayed_graphs_train_as_launches_do(monkeypatch):
    y = tent(600)

    def trained():
        model = make(max_epochs=3, learning_rate=1e-2, device="cuda").fit(y)
        assert model.network_share_.all()
        return model.history_, model.forecast(6, level=90)

    (history, replayed), calls = trained(), []
    monkeypatch.setattr(torch.cuda, "make_graphed_callables", lambda f, window: calls.append(1))
    launched_history, launched = trained()
    assert len(calls) == 1
    np.testing.assert_allclose(history, launched_history, rtol=1e-4, equal_nan=True)
    np.testing.assert_allclose(replayed, launched, rtol=1e-3)


def test_a_training_that_runs_away_says_so():
    with pytest.raises(ValueError, match=r"the loss is (nan|inf) in epoch .*a tenth of it"):
        make(learning_rate=1e30).fit(noise())
