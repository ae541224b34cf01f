"""A fleet steps many series as the CPU does, and no door but the fast one knows of it."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import torch

from fracts import FracForecaster, FracRidge, fleet, recall
from fracts.fleet import Fleet
from fracts.series import Panel

N = 5
OF_THE_NETWORK = ("features", "layer_")  # in float32: the rest is in float64
ROUNDING = {torch.float32: 1e-5, torch.float64: 1e-10}
CPU = torch.device("cpu")
GPU = pytest.param("cuda", marks=pytest.mark.gpu)


def history(rows=90, n_series=N, seed=0):
    draws = np.random.default_rng(seed)
    t = np.arange(rows)[:, None] + 3 * np.arange(n_series)
    return 10 + np.sin(2 * np.pi * t / 7) + 0.3 * draws.normal(size=(rows, n_series)).cumsum(0)


def later(rows, n_series=N, seed=1):
    """Rows that follow, a fifth of the values missing, and all of some rows."""
    values = history(rows, n_series, seed)
    draws = np.random.default_rng(seed)
    values[draws.random(values.shape) < 0.2] = np.nan
    values[3:5] = np.nan
    return values


def alive(random_weights, y, dtype=torch.float32, **options):
    """A model after `y` with a network of random weights, none silent."""
    small = {"width": 16, "n_heads": 2, "max_epochs": 1, "random_state": 0, "season_lengths": 7}
    model = FracForecaster(3, **(small | options)).fit(y)
    random_weights(model.network_, 0)
    if dtype == torch.float64:
        model.network_.double()
    return model.apply(y)


@pytest.fixture(autouse=True)
def long(monkeypatch):
    """No series is so short that it is smoothed: that is left to the CPU."""
    monkeypatch.setattr(recall, "_SHORT", 0)


@pytest.fixture
def model(random_weights):
    return alive(random_weights, history())


@pytest.fixture
def aboard(monkeypatch, request):
    """Series, be they few, are stepped by a fleet; on the CPU unless told where."""
    device = torch.device(getattr(request, "param", "cpu"))
    monkeypatch.setattr(fleet, "LEAST_SERIES", 2)
    monkeypatch.setattr(fleet, "gpu_of", lambda asked: None if asked == "cpu" else device)


def on_the_cpu(model, rows):
    """Another estimator after `rows`, stepped without a fleet."""
    other = copy.deepcopy(model).set_params(device="cpu")
    for row in rows:
        other.learn_many(row)
    assert other._fleet is None
    return other


def learned(model, rows):
    for row in rows:
        model.learn_many(row)
    assert model._fleet is not None and model._fleet.moved_on_from(vars(model)["_state"])
    return model


def assert_same(found, expected, dtype=torch.float32):
    """Equal states, each array relative to its own size."""
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        tolerance = ROUNDING[dtype if name.startswith(OF_THE_NETWORK) else torch.float64]
        if array.dtype.kind in "fc":
            size = np.abs(array[~np.isnan(array)]).max(initial=0)
            np.testing.assert_allclose(found[name], array, rtol=0, atol=tolerance * size, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], array)


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("device", ["cpu", GPU])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("seasons", [(), 7, (5, 14)])
def test_a_fleet_says_what_the_step_in_numpy_says(random_weights, seasons, dtype, device):
    model = alive(random_weights, history(), dtype, season_lengths=seasons)
    state, draws, time = model._empty_state(N), np.random.default_rng(0), 4.0
    moved = Fleet(model._path.memory, model._plan, state, device)
    assert_same(moved.fetched(), state)
    for values in later(60):
        state = model._advance(state, Panel(values[:, None], np.array([time])))
        moved.step(values, time)
        time += draws.choice([1.0, 1.0, 1.0, 2.0, 3.5, 900.0])
    assert_same(moved.fetched(), state, dtype)
    assert np.abs(state["layer_1_tail"]).max() > 1e-4


@pytest.mark.parametrize("device", ["cpu", GPU])
def test_the_tail_mode_keeps_small_writes_beside_a_large_past(model, device):
    large = 1e6  # of which float32 knows sixteenths
    state = copy.deepcopy(model._state)
    state["layer_0_tail"] += large
    state["layer_0_modes"][:, :, -1] = state["layer_0_tail"]
    moved, before = Fleet(model._path.memory, model._plan, state, device), state["layer_0_tail"]
    for time, values in enumerate(later(100), start=90):
        state = model._advance(state, Panel(values[:, None], np.array([float(time)])))
        moved.step(values, float(time))
    written, expected = (x["layer_0_tail"] - before for x in (moved.fetched(), state))
    np.testing.assert_allclose(written, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    after = moved.fetched()
    np.testing.assert_array_equal(after["layer_0_modes"][:, :, -1], after["layer_0_tail"].astype(np.float32))


@pytest.mark.parametrize("seasons", [(), 7])
def test_a_model_whose_network_is_silent_has_a_fleet_as_well(aboard, seasons):
    model = FracForecaster(3, season_lengths=seasons, n_layers=0).fit(history())
    rows = later(20)
    expected = on_the_cpu(model, rows)
    assert_same(learned(model, rows)._state, expected._state)


@pytest.mark.parametrize("aboard", ["cpu", GPU], indirect=True)
def test_many_rows_are_learned_as_on_the_cpu(aboard, model):
    rows = later(400)
    expected = on_the_cpu(model, rows)
    learned(model, rows)
    assert_close(model.forecast(level=90), expected.forecast(level=90))
    assert_close(model.forecast(5), expected.forecast(5))
    assert_same(model._state, expected._state)
    assert model.cutoff_ == expected.cutoff_


def saved(model, tmp_path):
    model.save(tmp_path / "model")
    return FracForecaster.load(tmp_path / "model")


LEAVING = {
    "forecast": lambda model, _: model.forecast(level=90) is not None and model,
    "predict": lambda model, _: model.predict(5) is not None and model,
    "score": lambda model, _: model.score(history(4)) and model,
    "state_nbytes": lambda model, _: model.state_nbytes and model,
    "get_state": lambda model, _: copy.deepcopy(model).set_state(model.get_state()),
    "set_state": lambda model, _: model.set_state(model.get_state()),
    "copy": lambda model, _: copy.copy(model),
    "deepcopy": lambda model, _: copy.deepcopy(model),
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "file": saved,
    "update": lambda model, _: model.update(later(3, seed=4)),
    "memory_kernel": lambda model, _: model.memory_kernel(5) is not None and model,
}


@pytest.mark.parametrize("door", LEAVING)
def test_every_door_finds_the_state_and_the_fleet_goes_on_from_there(aboard, model, door, tmp_path):
    rows, more = later(5), later(6, seed=2)
    expected = on_the_cpu(model, rows)
    if door == "update":
        expected.update(later(3, seed=4))
    expected = on_the_cpu(expected, more)
    found = learned(LEAVING[door](learned(model, rows), tmp_path), more)
    assert_same(found._state, expected._state)
    assert found.cutoff_ == expected.cutoff_


def test_reading_changes_nothing(aboard, model):
    rows, more = later(5), later(4, seed=2)
    other = copy.deepcopy(model)
    learned(model, [*rows, *more])
    for row in [*rows, *more]:
        learned(other, [row])
        assert other.forecast() is not None
    for name, array in model._state.items():
        np.testing.assert_array_equal(other._state[name], array, err_msg=name)


def test_each_row_is_forecast_from_as_on_the_cpu(aboard, model):
    other = on_the_cpu(model, [])
    for row in later(6):
        expected = other.learn_many(row).forecast()
        assert_close(learned(model, [row]).forecast(), expected)
        assert_close(model.forecast(), expected)
        assert model._state is model._state  # fetched once
        assert_close(model.forecast(), expected)


def test_a_copy_and_what_it_was_made_of_go_ways_of_their_own(aboard, model):
    rows = later(5)
    other = copy.copy(learned(model, rows))
    before = on_the_cpu(model, []).forecast()
    learned(other, rows)
    np.testing.assert_array_equal(model.forecast(), before)
    learned(model, rows)
    np.testing.assert_array_equal(model.forecast(), other.forecast())


def test_an_earlier_state_is_gone_on_from_in_the_same_fleet(aboard, model):
    rows = later(5)
    before = learned(model, rows[:2]).get_state()
    first = learned(model, rows[2:]).forecast()
    ship = model._fleet
    second = learned(model.set_state(before), rows[2:]).forecast()
    np.testing.assert_array_equal(second, first)
    assert model._fleet is ship


def test_other_weights_have_another_fleet(aboard, model, random_weights):
    rows = later(3)
    learned(model, rows)
    assert model.fit(history(seed=3))._fleet is None
    random_weights(model.network_, 1)
    model = model.apply(history(seed=3))
    expected = on_the_cpu(model, rows)
    assert_same(learned(model, rows)._state, expected._state)


def test_after_an_error_nothing_has_moved(aboard, model, monkeypatch):
    rows = later(5)
    expected = on_the_cpu(model, rows)
    learned(model, rows[:2])
    for wrong in (np.full(N, np.inf), np.zeros(N + 1)):
        with pytest.raises(ValueError):
            model.learn_many(wrong)
    with pytest.raises(ValueError):
        model.update(np.full((1, N), np.inf))
    learned(model, rows[2:])
    assert_same(model._state, expected._state)


def test_a_fleet_that_cannot_be_made_leaves_the_model_as_it_was(aboard, model, monkeypatch):
    rows = later(3)
    expected = on_the_cpu(model, rows)
    with monkeypatch.context() as broken:
        broken.setattr(Fleet, "load", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.learn_many(rows[0])
    assert_same(learned(model, rows)._state, expected._state)


def long_frame():
    stamps = pd.date_range("2024-01-01", periods=90)
    whole = pd.DataFrame(history(), stamps, [f"s{i}" for i in range(N)]).stack().reset_index()
    whole.columns = ["ds", "unique_id", "y"]
    return whole[(whole["unique_id"] != "s0") | (whole["ds"] < stamps[-3])]


@pytest.mark.parametrize(
    "make",
    [
        lambda alive: alive(history(), calibration="adaptive"),
        lambda alive: alive(history(), device="cpu"),
        lambda alive: alive(history()[:, :1]),
        lambda alive: alive(long_frame()),
        lambda _: FracRidge(3, season_lengths=7).fit(history()),
    ],
    ids=["adaptive", "device", "one series", "ends apart", "ridge"],
)
def test_what_no_fleet_is_for_goes_by_the_cpu(aboard, random_weights, make):
    model = make(lambda y, **options: alive(random_weights, y, **options))
    model.learn_many(np.ones(len(model.series_ids_)))
    assert getattr(model, "_fleet", None) is None


def test_covariates_go_by_the_cpu(aboard):
    X = np.random.default_rng(0).normal(size=(90, 1))
    model = FracForecaster(3, n_layers=0, season_lengths=7).fit(history(), X)
    model.learn_many(np.ones(N), [0.5])
    assert model._fleet is None


def test_few_series_and_those_without_room_go_by_the_cpu(monkeypatch, model):
    monkeypatch.setattr(fleet, "gpu_of", lambda asked: CPU)
    assert model.learn_many(np.ones(N))._fleet is None
    monkeypatch.setattr(fleet, "LEAST_SERIES", N)
    monkeypatch.setattr(fleet, "has_room", lambda *_: False)
    assert model.learn_many(np.ones(N))._fleet is None


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
def test_without_a_gpu_there_is_no_fleet():
    assert [fleet.gpu_of(asked) for asked in ("auto", "cpu", "cuda")] == [None, None, None]


@pytest.mark.gpu
def test_a_gpu_steps_many_series_by_itself(random_weights):
    n_series = fleet.LEAST_SERIES
    model = alive(random_weights, history(n_series=n_series), device="auto")
    rows = later(20, n_series)
    expected = on_the_cpu(model, rows)
    learned(model, rows)
    assert model._fleet.device.type == "cuda"
    assert_close(model.forecast(), expected.forecast())
    assert_same(model._state, expected._state)


@pytest.mark.gpu
def test_rows_take_no_memory_and_a_model_set_to_the_cpu_leaves_the_gpu(aboard, model, monkeypatch):
    monkeypatch.setattr(fleet, "gpu_of", lambda asked: None if asked == "cpu" else torch.device("cuda"))
    rows = later(30)
    expected = on_the_cpu(model, rows)
    learned(model, rows[:2])
    before = torch.cuda.memory_allocated()
    learned(model, rows[2:20])
    assert torch.cuda.memory_allocated() == before
    model.set_params(device="cpu")
    for row in rows[20:]:
        model.learn_many(row)
    assert_same(model._state, expected._state)


def test_series_that_are_smoothed_are_left_to_the_cpu(aboard, monkeypatch, random_weights):
    monkeypatch.setattr(recall, "_SHORT", 512)
    model = alive(random_weights, history())
    assert model._path.memory.smoothed
    model.learn_many(later(1)[0])
    assert model._fleet is None
