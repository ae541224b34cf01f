"""`FracForecaster` with its deep path alive: a stream equals a batch, and training keeps to itself."""

import copy
import functools
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from fracts import FracForecaster
from fracts.heads import PARTS, pinball

ROWS = 300
LEVELS = [50, 90]


def make(seasons=(), **options):
    small = {"width": 16, "n_heads": 2, "window": 64, "max_epochs": 1, "random_state": 0}
    return FracForecaster(3, season_lengths=seasons, **(small | options))


def weekly(n_series, seed=0):
    """A persistent series with a week in it, (time, series)."""
    draws = np.random.default_rng(seed)
    t = np.arange(ROWS)[:, None]
    return np.sin(2 * np.pi * t / 7 + np.arange(n_series)) + 0.1 * draws.normal(size=(ROWS, n_series)).cumsum(
        0
    )


def noise(seed=0):
    return np.random.default_rng(seed).normal(size=ROWS)


@functools.cache
def trained(seasons, n_series):
    return make(seasons).fit(pd.DataFrame(weekly(n_series)))


def alive(random_weights, seasons=(7,), n_series=1, seed=0, dtype=torch.float32):
    """A fitted model whose network has random weights, in `dtype`."""
    model = copy.deepcopy(trained(seasons, n_series))
    random_weights(model.network_, seed)
    if dtype == torch.float64:
        model.network_.double()
    return model.apply(pd.DataFrame(weekly(n_series)))


@st.composite
def histories(draw, n_series):
    """A wide frame counted by integers, with single values, a run of rows, the first and the last missing."""
    draws = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = draw(st.integers(20, 80))
    values = 10 + draws.normal(size=(rows, n_series)).cumsum(axis=0)
    values[draws.random(values.shape) < draw(st.sampled_from([0.0, 0.2, 0.6]))] = np.nan
    start, stop = sorted(draw(st.tuples(st.integers(1, rows - 1), st.integers(1, rows - 1))))
    values[start:stop] = np.nan
    first, last = draw(st.integers(0, 6)), rows - 1 - draw(st.integers(0, 6))
    values[:first] = values[last + 1 :] = np.nan
    values[[first, last]] = draws.normal(size=(2, n_series))
    return pd.DataFrame(values)


def assert_close(found, expected, tolerance, name):
    size = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * size, err_msg=name)


def assert_same_memory(found, expected, tolerance):
    """Equal states, every array relative to its own size, and equal forecasts, also beyond the horizon.

    A tail mode is one of the modes of its layer, and may be next to nothing among them.
    """
    assert found._state.keys() == expected._state.keys()
    for name, array in expected._state.items():
        size = np.abs(expected._state[name.replace("_tail", "_modes")]).max(initial=0)
        share = size / np.abs(array).max(initial=0) if name.endswith("_tail") else 1.0
        assert_close(found._state[name], array, tolerance * share, name)
    for horizon in (3, 5):
        ahead = [model.forecast(horizon, level=LEVELS) for model in (found, expected)]
        assert_close(*ahead, tolerance, f"forecast({horizon})")


def stream(model, y, cuts, learns, drops):
    """`model` moved over `y` in the pieces between `cuts`, by values one at a time where `learns` says so.

    Elsewhere rows without a value are left out where `drops` says so, but for the last: it moves the clock.
    """
    pieces = [y.iloc[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(y)], strict=True)]
    model = model.apply(pieces[0])
    for piece, learn, drop in zip(pieces[1:], learns, drops, strict=False):
        if learn and model.cutoff_ == piece.index[0] - 1:
            for row in piece.to_numpy():
                model.learn_many(row)
        elif len(kept := piece[(not drop) | piece.notna().any(axis=1) | (piece.index == y.index[-1])]):
            model.update(kept)
    return model


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("seasons", [(), (7,)], ids=["plain", "seasonal"])
@pytest.mark.parametrize("n_series", [1, 3])
def test_any_cutting_of_a_history_gives_one_state_and_one_forecast(
    random_weights, dtype, tolerance, seasons, n_series
):
    @settings(max_examples=6)
    @given(histories(n_series), st.integers(0, 1000), st.data())
    def claim(y, seed, data):
        model = alive(random_weights, seasons, n_series, seed, dtype)
        begin = int(y.notna().all(axis=1).idxmax()) + 1  # a history needs a value of every series
        cuts = sorted(data.draw(st.sets(st.integers(begin, len(y) - 1), max_size=5)))
        learns, drops = (data.draw(st.lists(st.booleans(), min_size=5, max_size=5)) for _ in range(2))
        moved = stream(model, y, cuts, learns, drops)
        whole = model.apply(y)
        assert moved.cutoff_ == whole.cutoff_
        assert_same_memory(moved, whole, tolerance)

    claim()


@settings(max_examples=8)
@given(st.integers(20, ROWS - 1), st.integers(0, 1000))
def test_fit_and_update_equal_apply_of_the_whole(random_weights, start, seed):
    y = pd.DataFrame(weekly(1))
    model = alive(random_weights, seed=seed)
    fitted = model.apply(y[:start])
    for value in y[0][start:]:
        fitted.learn_one(value)
    assert_same_memory(fitted, model.apply(y), 1e-5)


def test_a_trained_network_streams_as_it_was_fitted():
    y = weekly(1)[:, 0]
    model = make(7, max_epochs=2).fit(y[:250])
    whole = model.apply(y)
    for value in y[250:]:
        model.learn_one(value)
    assert_same_memory(model, whole, 1e-5)


@pytest.mark.parametrize("seasons", [(), (7,)], ids=["plain", "seasonal"])
def test_random_weights_bring_the_deep_path_to_life(random_weights, seasons):
    y = pd.DataFrame(weekly(1))
    spread = y[0].std()
    model = alive(random_weights, seasons)
    moved = model.apply(y).forecast()
    changed = y.copy()
    changed.iloc[-10] += spread
    features = [model.apply(history)._state["features"] for history in (y, changed)]
    model.network_.head.silence(*PARTS)
    assert np.abs(moved - model.apply(y).forecast()).max() > 0.1 * spread
    assert np.abs(features[0] - features[1]).max() > 3e-4


@pytest.mark.parametrize("calibration", ["held-out", "adaptive"])
@pytest.mark.parametrize("late", [1, 2, 9])
def test_after_rows_without_a_value_the_linear_path_speaks_alone(random_weights, late, calibration):
    """Of series that end apart, each is forecast by what has a value of it at the last row."""
    y = weekly(2)
    y[-late:, 1] = np.nan
    model = make((7,), calibration=calibration).fit(pd.DataFrame(weekly(2)))
    linear = make((7,), calibration=calibration, n_layers=0).fit(pd.DataFrame(weekly(2)))
    random_weights(model.network_, 0)
    model._path = replace(model._path, share=np.array([0.0, 0.3, 1.0]))
    model, linear = (one.apply(pd.DataFrame(y)) for one in (model, linear))
    for said in (lambda one: one.predict().to_numpy(), lambda one: one.forecast(level=90)):
        ours, theirs = said(model), said(linear)
        assert (np.abs(ours - theirs)[:, 0] > 1e-3).all()
        if calibration == "held-out":  # the other one has learned from what was said before
            np.testing.assert_allclose(ours[:, 1], theirs[:, 1], rtol=1e-9)
    again = model.apply(pd.DataFrame(y[: -late - 1]))
    for row in y[-late - 1 :]:
        again.learn_many(row)
    np.testing.assert_allclose(again.forecast(level=90), model.forecast(level=90), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n_rows", [1, 5000, 10_000])
def test_a_gap_is_as_long_as_its_empty_rows(random_weights, n_rows):
    model = alive(random_weights, dtype=torch.float64).apply(pd.DataFrame(weekly(1)[:100]))
    filled = copy.deepcopy(model)
    ends = np.unique(np.linspace(0, 10_000, 10_000 // n_rows + 1).astype(int))[1:] + 99
    filled.update(pd.DataFrame({0: np.full(len(ends), np.nan)}, index=ends))
    for each in (model, filled):
        each.update(pd.DataFrame({0: [0.3]}, index=[10_100]))
    assert_same_memory(filled, model, 1e-10)


def test_apply_takes_up_weights_that_change_after_fit(random_weights):
    y = pd.DataFrame(weekly(1))
    model = alive(random_weights)
    random_weights(model.network_, 1)
    expected = alive(random_weights, seed=1).apply(y)
    np.testing.assert_array_equal(model.apply(y).forecast(level=90), expected.forecast(level=90))
    model.network_.double()
    one, many = model.apply(y), model.apply(y)
    one.learn_one(0.1).learn_one(0.2)
    many.update(pd.DataFrame({0: [0.1, 0.2]}, index=[ROWS, ROWS + 1]))
    assert one._state["layer_0_modes"].dtype == many._state["layer_0_modes"].dtype == np.float64
    assert_same_memory(one, many, 1e-10)


def test_one_value_never_runs_torch(random_weights, monkeypatch):
    model = alive(random_weights).apply(pd.DataFrame(weekly(1)))
    monkeypatch.setattr(torch.nn.Module, "__call__", None)
    before = model.forecast()
    assert not np.array_equal(model.learn_one(2.0).forecast(), before)


def test_prediction_leaves_no_trace(random_weights):
    model = alive(random_weights).apply(pd.DataFrame(weekly(1)))
    before = pickle.dumps(model)
    (
        model.predict(level=90),
        model.forecast(6),
        model.score(pd.DataFrame({0: [1.0, 2.0]}, index=[ROWS, ROWS + 1])),
    )
    assert pickle.dumps(model) == before


def test_signed_memory_the_first_layer_is_odd(random_weights):
    network = alive(random_weights).network_
    u = torch.randn(2, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    u[:, 20:25] = torch.nan
    ends = [encoded(network, sign * u)[1].layers for sign in (1, -1)]
    assert torch.equal(ends[0][0].modes, -ends[1][0].modes)
    assert torch.equal(ends[0][0].hold, ends[1][0].hold)
    assert not torch.allclose(ends[0][1].modes, -ends[1][1].modes)


def test_no_drift_zeros_write_nothing(random_weights):
    network = alive(random_weights).network_
    _, state = encoded(network, torch.zeros(1, 500, dtype=torch.float64))
    assert (state.layers[0].modes == 0).all()


def test_phases_hold_far_from_the_start(random_weights):
    network = alive(random_weights).network_
    u = torch.randn(1, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    network.frequencies.fill_(1 / 7)
    near, far, turned = (encoded(network, u, start=start) for start in (0.0, 7e7, 7e7 + 2))
    for i in range(2):
        modes = [state.layers[i].modes for _, state in (near, far, turned)]
        size = modes[0].abs().max().item()
        assert torch.allclose(modes[0], modes[1], rtol=0, atol=1e-5 * size)
        assert not torch.allclose(modes[0], modes[2], rtol=0, atol=0.1 * size)
    # What is read is relative to now: a season may start anywhere.
    assert torch.allclose(near[0], turned[0], rtol=0, atol=1e-5)


def test_a_row_does_not_see_what_comes_later(random_weights):
    network = alive(random_weights).network_
    u = torch.randn(1, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    changed = u.clone()
    changed[:, 21] = torch.nan
    changed[:, 22:] += 1
    before, after = (encoded(network, x)[0] for x in (u, changed))
    assert torch.equal(before[:, :21], after[:, :21])
    assert (before[:, 21:] != after[:, 21:]).any(-1).all()


def encoded(network, u, start=0.0):
    times = (start + torch.arange(u.shape[1], dtype=torch.float64)).expand(u.shape)
    gap = times.diff(dim=1, prepend=times[:, :1])
    with torch.no_grad():
        return network.encode(u, times, gap, network.empty(len(u)))


@pytest.mark.parametrize("values", ["numbers", "none", "zeros", "huge"])
def test_gradients_are_finite(random_weights, values):
    network = alive(random_weights).network_
    u = torch.randn(2, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    u = {"numbers": u, "none": u * torch.nan, "zeros": u * 0, "huge": u * 1e6}[values]
    gap = torch.ones_like(u)
    gap[:, 10], gap[:, 11] = 1e9, 1e-9
    quantiles, _ = network(u, gap.cumsum(1), gap, torch.zeros(2, dtype=torch.int64))
    truth = torch.full(quantiles.shape[:-1], 0.5)
    truth[:, ::2] = torch.nan
    pinball(quantiles, truth, network.head.levels).nanmean().backward()
    gradients = {name: p.grad for name, p in network.named_parameters() if p.grad is not None}
    assert all(g.isfinite().all() for g in gradients.values())
    assert gradients["head.out.weight"].abs().max() > 0


def test_a_silent_network_is_the_linear_path(random_weights):
    y = pd.DataFrame(weekly(1))
    model = alive(random_weights)
    model.network_.head.silence(*PARTS)
    model = model.apply(y)
    linear = make((7,), n_layers=0).fit(y)
    for horizon in (3, 6):
        silent, alone = (m.apply(y).forecast(horizon, level=LEVELS) for m in (model, linear))
        np.testing.assert_allclose(silent, alone, rtol=1e-13, atol=1e-13)
    means = [m.forecast(point="mean") for m in (model.apply(y), linear)]
    np.testing.assert_allclose(*means, rtol=1e-13, atol=1e-13)
    assert linear.network_ is None and linear.history_ == [] and not linear.network_share_.any()


def test_a_silent_network_is_not_carried_along(random_weights):
    y = pd.DataFrame(weekly(1))
    speaking = alive(random_weights)
    silent = copy.deepcopy(speaking)
    silent.network_.head.silence(*PARTS)
    silent, linear = silent.apply(y), make((7,), n_layers=0).fit(y)
    assert silent.get_state().keys() == linear.get_state().keys() < speaking.get_state().keys()
    random_weights(silent.network_, 0)
    again = silent.apply(y)
    np.testing.assert_array_equal(again.forecast(level=LEVELS), speaking.forecast(level=LEVELS))


def test_a_history_too_short_to_train_on_is_the_linear_path_alone():
    y = weekly(1)[:60, 0]
    model, linear = make().fit(y), make(n_layers=0).fit(y)
    assert model.history_ == [] and not model.network_share_.any()
    np.testing.assert_allclose(model.forecast(level=90), linear.forecast(level=90), rtol=1e-13)


def test_a_model_is_kept_and_copied_like_any_other(random_weights):
    y = pd.DataFrame(weekly(1))
    model = alive(random_weights).apply(y)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.forecast(5, level=90), model.forecast(5, level=90))
        expected = copy.deepcopy(model).learn_one(1.0).forecast()
        before = model.forecast()
        np.testing.assert_array_equal(other.learn_one(1.0).forecast(), expected)
        np.testing.assert_array_equal(model.forecast(), before)
    bare = clone(model)
    assert bare.get_params() == model.get_params() and not hasattr(bare, "network_")
