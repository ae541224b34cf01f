"""One state, however it was reached: pieces, single steps and one pass agree, for every model, network alive.

The networks here have random weights, so that every part of them speaks.
"""

import copy
import multiprocessing
import pickle
import site
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts import FracForecaster, FracRidge
from fracts.online import encode_row
from fracts.plan import plan_of
from fracts.series import Panel

LEVELS = [50, 90]


def steady(model):
    """How close two ways to one forecast are, relative to the data."""
    network = getattr(model, "network_", None)
    return 1e-10 if network is None or network.dtype == torch.float64 else 1e-5


@pytest.fixture
def models(lively, two_series):
    """The model after the history; one with a network in both precisions."""
    if getattr(lively, "network_", None) is None:
        return [lively]
    exact = copy.deepcopy(lively)
    exact.network_.double()
    return [lively, exact.apply(two_series[:150])]


def rows_of(draw):
    """80 rows of two series after the history, with holes, runs of NaN and rows left out."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = 5 + 2 * rng.normal(size=(80, 2)) * draw(st.sampled_from([0.1, 1.0, 30.0]))
    values[rng.random(values.shape) < draw(st.sampled_from([0.0, 0.1, 0.6]))] = np.nan
    stamps = pd.date_range("2024-05-30", periods=80, freq="D", tz="UTC")
    kept = rng.random(80) >= draw(st.sampled_from([0.0, 0.3]))
    kept[-1] = True
    return pd.DataFrame(values, stamps, ["a", "b"])[kept]


def test_pieces_single_steps_and_one_pass_agree(models):
    @settings(max_examples=10)
    @given(st.data(), st.sampled_from(models))
    def agree(data, model):
        y = rows_of(data.draw)
        whole = copy.copy(model).update(y)
        stream, cuts = copy.copy(model), data.draw(st.lists(st.integers(0, len(y)), max_size=6))
        for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), len(y)], strict=True):
            piece = y.iloc[start:stop]
            by_row = data.draw(st.booleans())
            for rows in (
                [piece.iloc[at : at + 1] for at in range(len(piece))] if by_row else [piece] * (stop > start)
            ):
                follows = rows.index[0] - stream.cutoff_ == pd.Timedelta(1, "D")
                if by_row and follows and data.draw(st.booleans()):
                    stream.learn_many(rows.to_numpy()[0])
                else:
                    stream.update(rows)
        found, expected = (one.forecast(8, level=LEVELS) for one in (stream, whole))
        size = max(np.abs(expected).max(), y.abs().max().max() if y.notna().any().any() else 0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=steady(model) * size)

    agree()


@pytest.mark.parametrize("model", ["FracRidge", pytest.param("FracForecaster", marks=pytest.mark.slow)])
def test_compiled_or_in_numpy_the_forecasts_are_the_same(model, two_series, random_weights, request):
    fitted = fitted_by(model, two_series, random_weights)
    compiled = stream(fitted, two_series)
    request.getfixturevalue("without_numba")
    in_numpy = stream(fitted, two_series)
    np.testing.assert_allclose(compiled, in_numpy, rtol=0, atol=1e-6 * np.abs(in_numpy).max())
    assert len(np.unique(in_numpy)) > 0.95 * in_numpy.size  # beyond the horizon its last lead goes on


def stream(fitted, y):
    """Forecasts on the way over values, a gap and holes."""
    model, told = fitted.apply(y[:100]), []
    for row in y.to_numpy()[100:120]:
        told.append(model.learn_many(row).forecast())
    return np.array([*told, model.update(y[125:126]).forecast(), model.learn_many([1.0, 2.0]).forecast()])


def fitted_by(name, y, random_weights):
    if name == "FracRidge":
        return FracRidge(3, season_lengths=7, pooled=False).fit(y[:100])
    small = {"width": 16, "n_heads": 2, "max_epochs": 1, "random_state": 0}
    model = FracForecaster(3, season_lengths=7, **small).fit(y[:100])
    random_weights(model.network_, 0)
    return model


@pytest.mark.parametrize("numba", [True, False])
@pytest.mark.parametrize("model", ["FracRidge", "FracForecaster"])
def test_a_thousand_series_go_their_way_each(model, numba, two_series, random_weights, request):
    if not numba:
        request.getfixturevalue("without_numba")
    fitted = fitted_by(model, two_series[["a"]].to_numpy(), random_weights)
    y = two_series[["a"]].to_numpy()[:60] + np.random.default_rng(0).normal(size=1100)
    many = fitted.apply(y[:55])
    for row in y[55:]:
        many.learn_many(row)
    found, expected = many.forecast(), fitted.apply(y).forecast()
    np.testing.assert_allclose(found, expected, rtol=0, atol=steady(fitted) * np.abs(expected).max())
    alone = fitted.apply(y[:55, 1050:1051])
    for row in y[55:, 1050]:
        alone.learn_many([row])
    np.testing.assert_allclose(found[:, 1050], alone.forecast()[:, 0], rtol=0, atol=1e-5)


def test_learn_one_is_learn_many_of_one(lively, two_series):
    alone = lively.apply(two_series[["a"]][:150]).set_state(lively.get_state(["a"]))
    other = copy.deepcopy(alone)
    for value in [1.0, np.nan, 4.0]:
        alone.learn_one(value)
        other.learn_many([value])
    np.testing.assert_array_equal(alone.forecast(level=LEVELS), other.forecast(level=LEVELS))


@pytest.fixture(scope="module")
def elsewhere():
    """A process that shares nothing with this one."""
    root = str(Path(__file__).parents[1])  # where it finds the function it is to run
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), site.addsitedir, (root,)) as pool:
        yield pool


def moved_on(model, state, rows):
    """The state and the forecast of `model` after `rows`, from `state`."""
    model.set_state(state).update(rows)
    return model.get_state(), model.forecast(8, level=LEVELS)


@pytest.mark.slow
def test_a_state_goes_on_in_another_process_and_comes_back(lively, two_series, elsewhere):
    moved = copy.deepcopy(lively).update(two_series[150:160])
    state, found = elsewhere.submit(moved_on, lively, moved.get_state(), two_series[160:180]).result()
    np.testing.assert_array_equal(found, moved.update(two_series[160:180]).forecast(8, level=LEVELS))
    expected = moved.update(two_series[180:]).forecast(level=LEVELS)
    np.testing.assert_array_equal(
        lively.set_state(state).update(two_series[180:]).forecast(level=LEVELS), expected
    )


def test_the_networks_here_are_alive(models, two_series):
    for model in models:
        if getattr(model, "network_", None) is not None:
            silent = copy.deepcopy(model)
            silent.network_.head.silence("shift", "stretch")
            silent = silent.apply(two_series[:150])
            spoken = model.forecast(level=LEVELS) - silent.forecast(level=LEVELS)
            assert np.abs(spoken).max() > 0.05


def test_asking_changes_nothing_not_even_a_cache(lively, two_series):
    before = pickle.dumps(lively)
    lively.predict(9, level=LEVELS), lively.forecast(), lively.score(two_series[150:]), lively.get_state()
    assert pickle.dumps(lively) == before


LATE = {
    "the last row again": (slice(149, 150), "y starts at 2024-05-29.*, but rows up to 2024-05-29"),
    "a row of long ago": (slice(20, 22), "y starts at 2024-01-21.*, but rows up to 2024-05-29"),
    "from before to after": (slice(148, 155), "y starts at 2024-05-28.*, but rows up to 2024-05-29"),
}


@pytest.mark.parametrize("kind", LATE)
def test_late_rows_are_refused_with_their_stamp_and_nothing_moves(lively, two_series, kind):
    rows, told = LATE[kind]
    refuses(lively, two_series.iloc[rows], f"{told}.*leave the earlier rows out")


def test_duplicates_and_rows_out_of_order_are_refused_with_their_stamp_and_nothing_moves(lively, two_series):
    refuses(
        lively, two_series.iloc[[150, 151, 151, 152]], "2024-05-31.*row 2.*does not come after 2024-05-31"
    )
    refuses(lively, two_series.iloc[[150, 152, 151]], "2024-05-31.*row 2.*does not come after 2024-06-01")
    refuses(lively, two_series.iloc[[151, 150]], "2024-05-30.*row 1.*does not come after 2024-05-31")


def refuses(model, rows, told):
    before = pickle.dumps(model)
    for ask in (model.update, model.score):
        with pytest.raises(ValueError, match=told):
            ask(rows)
        assert pickle.dumps(model) == before


def test_a_gap_is_a_longer_step_and_not_late(lively, two_series):
    blank = two_series[150:].copy()
    blank.iloc[3:20] = np.nan
    skipped = copy.deepcopy(lively).update(two_series.iloc[150:153]).update(two_series.iloc[170:])
    whole = copy.deepcopy(lively).update(blank)
    np.testing.assert_allclose(skipped.forecast(), whole.forecast(), rtol=0, atol=10 * steady(lively))


@pytest.mark.slow
def test_a_million_steps_in_float32_stay_within_a_ten_thousandth_of_one_pass_in_float64(random_weights):
    rng = np.random.default_rng(0)
    y = np.sin(2 * np.pi * np.arange(300) / 24) + rng.normal(size=300)
    model = FracForecaster(
        2, season_lengths=24, width=8, n_layers=2, n_heads=2, max_epochs=1, random_state=0
    ).fit(y)
    random_weights(model.network_, 0)
    model = model.apply(y)
    values = rng.normal(size=(1, 1_000_000))
    stream, exact = copy.deepcopy(model.network_), copy.deepcopy(model)
    exact.network_.double()
    exact = exact.apply(y)
    state = exact._advance(exact._empty_state(1), Panel(values, np.arange(1e6)))
    u = model._path.memory.advance(model._empty_state(1), Panel(values, np.arange(1e6)))[1]
    moved, plan = model._empty_state(1), plan_of(stream)
    for at, one in enumerate(u[0]):
        moved = encode_row(plan, moved, np.array([one]), float(at), 1.0)
    for name in moved:
        size = np.abs(state[name]).max()
        np.testing.assert_allclose(moved[name], state[name], rtol=0, atol=1e-4 * size, err_msg=name)
