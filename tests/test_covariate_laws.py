"""Laws of covariates, in a linear path and in a network with random weights: a stream equals a batch, a gap
is time, nothing is seen before its time."""

import copy
import functools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts import FracForecaster
from fracts.heads import PARTS
from fracts.ridge import FracRidge

ROWS, HORIZON, LEVELS = 160, 3, [50, 90]
nan = float("nan")


def table(seed, rows=ROWS + 30):
    """One number and one category known in advance, and one number that is not."""
    draws = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "heat": draws.normal(size=rows),
            "flow": draws.normal(size=rows).cumsum(),
            "sky": draws.choice(["clear", "rain"], rows),
        }
    )


def history(seed, X, n_series=1):
    """Series, (rows, series), that heat and sky move at once and flow a step later."""
    draws = np.random.default_rng(seed)
    moved = X["heat"] + 2.0 * (X["sky"] == "rain") + X["flow"].shift(1).fillna(0)
    rest = draws.normal(size=(ROWS, n_series)).cumsum(0) * 0.3
    values = moved.to_numpy()[:ROWS, None] * np.arange(1, n_series + 1) + rest
    return pd.DataFrame(values, columns=list("ab")[:n_series])


@functools.cache
def fitted(kind, n_series):
    X = table(0)
    options = {"season_lengths": (7,), "past_only": ("flow",)}
    if kind == "ridge":
        model = FracRidge(HORIZON, **options)
    else:
        small = {"width": 16, "n_heads": 2, "window": 64, "max_epochs": 1, "random_state": 0}
        model = FracForecaster(HORIZON, **options, **small)
    return model.fit(history(0, X, n_series), X)


@pytest.fixture(params=["ridge", "network"])
def make(request, random_weights):
    """A fitted model of so many series; of the network every weight is random, in float64."""

    def model(n_series=1):
        alive = copy.deepcopy(fitted(request.param, n_series))
        if request.param == "network":
            random_weights(alive.network_, 0)
            alive.network_.double()
            X = table(0)
            alive = alive.apply(history(0, X, n_series), X)
        return alive

    return model


def assert_same_memory(found, expected, X):
    assert found._state.keys() == expected._state.keys()
    for name, array in expected._state.items():
        size = np.abs(array[np.isfinite(array)]).max(initial=0)
        np.testing.assert_allclose(found._state[name], array, rtol=0, atol=1e-10 * size, err_msg=name)
    ahead = [model.forecast(X=X, level=LEVELS) for model in (found, expected)]
    np.testing.assert_allclose(*ahead, rtol=0, atol=1e-9 * np.abs(ahead[1]).max())


def holed(draw, n_series):
    """A history with values missing, its first row and its last complete, and its covariates."""
    seed = draw(st.integers(0, 1000))
    X = table(seed)
    y = history(seed, X, n_series)
    draws = np.random.default_rng(seed)
    inside = y.iloc[1:-1]
    y.iloc[1:-1] = inside.where(draws.random(inside.shape) > draw(st.sampled_from([0.0, 0.3])))
    return X, y


@pytest.mark.parametrize("n_series", [1, 2])
def test_any_cutting_of_a_history_gives_one_state_and_one_forecast(make, n_series):
    model = make(n_series)

    @settings(max_examples=4)
    @given(st.data())
    def claim(data):
        X, y = holed(data.draw, n_series)
        cuts = sorted(data.draw(st.sets(st.integers(1, ROWS - 1), max_size=4)))
        pieces = [y.iloc[a:b] for a, b in zip([0, *cuts], [*cuts, ROWS], strict=True)]
        stream = model.apply(pieces[0], X)
        whole = model.apply(y, X)
        for piece in pieces[1:]:
            if data.draw(st.booleans()):
                stream.update(piece, X)
            else:
                for at, row in zip(piece.index, piece.to_numpy(), strict=True):
                    stream.learn_many(row, X.loc[at].to_dict())
        assert_same_memory(stream, whole, X)

    claim()


def test_leaving_a_row_out_is_a_row_without_value_whatever_its_covariates(make):
    model, X = make(), table(3)
    y = history(3, X)
    y.loc[[20, 21, 22, 60, ROWS - 2, ROWS - 1]] = nan
    other = X.copy()
    other.loc[[20, 21, 60, ROWS - 1], ["heat", "flow"]] = 1e3
    other.loc[[22, ROWS - 2], ["heat", "flow"]] = nan
    dropped = model.apply(y[y.notna().all(axis=1) | (y.index == y.index[-1])], X)  # it moves the clock
    assert_same_memory(dropped, model.apply(y, other), X)


@pytest.mark.parametrize("known", [100, 130, ROWS - 1])
def test_no_forecast_sees_what_comes_later(make, known):
    """Corrupted: y and what is in the past alone from `known` on, the rest beyond the steps forecast."""
    model, X = make(), table(4)
    y = history(4, X)
    future_y, future_x = y.copy(), X.copy()
    future_y.iloc[known:] += 10
    future_x.loc[known:, "flow"] -= 10
    future_x.loc[known + HORIZON :, "heat"] = 5.0
    future_x.loc[known + HORIZON :, "sky"] = "clear"
    forecasts = []
    for each_y, each_x in ((y, X), (future_y, future_x)):
        stream = model.apply(each_y[:90], each_x)
        said = [stream.forecast(X=each_x, level=LEVELS)]
        for at in range(90, ROWS):
            stream.update(each_y[at : at + 1], each_x)
            said.append(stream.forecast(X=each_x, level=LEVELS))
        forecasts.append(np.array(said))
    seen = known - 90 + 1
    np.testing.assert_array_equal(forecasts[0][:seen], forecasts[1][:seen])
    assert (forecasts[0][seen:] != forecasts[1][seen:]).any(axis=(1, 2, 3)).all()


@pytest.mark.parametrize("kind", ["ridge", "network"])
def test_what_is_learned_does_not_hang_on_what_comes_after_the_history(kind):
    X = table(0)
    y = history(0, X)
    corrupted = X.copy()
    corrupted.loc[ROWS:, ["heat", "flow"]] = 1e6
    model = fitted(kind, 1)
    again = copy.deepcopy(model).fit(y, corrupted)
    np.testing.assert_array_equal(again.forecast(X=X), model.forecast(X=X))


@pytest.mark.parametrize("lead", [1, 2, 3])
def test_a_lead_looks_at_what_is_known_of_its_own_step(make, lead):
    model, X = make(), table(5)
    stream = model.apply(history(5, X), X)
    before = stream.forecast(X=X, level=LEVELS)
    changed = X.copy()
    changed.loc[ROWS - 1 + lead, "heat"] += 1.0
    moved = (stream.forecast(X=changed, level=LEVELS) != before).any(axis=(1, 2))
    np.testing.assert_array_equal(moved, np.arange(1, HORIZON + 1) == lead)
    past = X.copy()
    past.loc[ROWS - 1, "flow"] += 1.0
    assert (model.apply(history(5, X), past).forecast(X=X) != before[..., 0]).all()


def test_score_is_that_of_a_loop_over_the_origins(make):
    model, X = make(), table(6)
    y = history(6, X)
    y.iloc[[110, 125]] = nan
    stream, errors = model.apply(y[:100], X), []
    scored = stream.score(y[100:], X)
    for at in range(100, ROWS):
        truth = y["a"].reindex(range(at, at + HORIZON)).to_numpy()
        errors.append(truth - stream.forecast(X=X)[:, 0])
        stream.update(y[at : at + 1], X)
    scale = np.mean(np.diff(y["a"][:100]) ** 2)
    assert scored == pytest.approx(-np.sqrt(np.nanmean(np.square(errors)) / scale), rel=1e-9)


def test_beyond_the_trained_horizon_paths_know_what_is_known_ahead(make):
    model, X = make(), table(7)
    stream = model.apply(history(7, X), X)
    before = stream.forecast(8, X, level=90)
    np.testing.assert_array_equal(before[:HORIZON], stream.forecast(X=X, level=90))
    changed = X.copy()
    changed.loc[ROWS + 4, "heat"] += 3.0  # lead 5; the next to see it is the one 3 steps later
    moved = (stream.forecast(8, changed, level=90) != before).any(axis=(1, 2))
    np.testing.assert_array_equal(moved, np.isin(np.arange(1, 9), [5, 8]))
    assert np.isfinite(before).all()


def test_the_network_reads_covariates_in_its_memory_and_in_its_head(random_weights):
    model = copy.deepcopy(fitted("network", 1))
    random_weights(model.network_, 0)
    X = table(8)
    y = history(8, X)
    past, ahead = X.copy(), X.copy()
    past.loc[ROWS - 2, "flow"] += 3.0
    ahead.loc[ROWS, "heat"] += 3.0
    seen = [model.apply(y, x)._state["features"] for x in (X, past)]
    assert np.abs(seen[0] - seen[1]).max() > 1e-3
    stream = model.apply(y, X)
    alive = stream.forecast(X=X, level=90)[0] - stream.forecast(X=ahead, level=90)[0]
    model.network_.head.silence(*PARTS)
    stream = model.apply(y, X)
    linear = stream.forecast(X=X, level=90)[0] - stream.forecast(X=ahead, level=90)[0]
    assert np.abs(alive - linear).max() > 1e-2


def test_a_network_learns_what_no_linear_path_can_of_what_is_known_ahead():
    """The size of a column known in advance, at once: its sign tells nothing."""
    draws = np.random.default_rng(0)
    X = pd.DataFrame({"push": draws.normal(size=500)})
    y = (2 * X["push"].abs() + 0.1 * draws.normal(size=500)).rename("load")
    small = {"width": 8, "n_heads": 2, "window": 64, "random_state": 0, "season_lengths": ()}
    model = FracForecaster(1, n_layers=1, max_epochs=3, learning_rate=2e-2, **small).fit(y[:440], X)
    linear = FracForecaster(1, n_layers=0, **small).fit(y[:440], X)
    assert model.network_share_.all()
    assert model.score(y[440:], X) > 0.8 * linear.score(y[440:], X)


def test_the_kernel_of_a_network_is_measured_beside_its_covariates(random_weights):
    model = copy.deepcopy(fitted("network", 1))
    random_weights(model.network_, 0)
    kernel = model.memory_kernel([1, 2, 5])["weight"]
    assert np.isfinite(kernel).all() and kernel.abs().max() > 1e-3
    X = table(0)
    unmoved = model.apply(history(0, X), X).memory_kernel([1, 2, 5])["weight"]
    np.testing.assert_array_equal(unmoved, kernel)


def test_a_pass_in_blocks_reads_what_its_rows_read_one_by_one(monkeypatch):
    """What the network is trained on, and what the ridge was fitted to."""
    monkeypatch.setattr("fracts.recall._BLOCK_ROWS", 16)
    model, X = fitted("ridge", 2), table(9)
    y = history(9, X, 2)
    y.iloc[[17, 18, 60]] = nan
    panel = model._panel(y.to_numpy().T, y.index.to_numpy(), X)
    path, ahead = model._path, panel.covariates_ahead(HORIZON, model._covariates.n_known)
    state = path.empty(model.series_ids_)
    whole = path.passed(state, panel, np.arange(ROWS - HORIZON), ahead[:, : ROWS - HORIZON])
    for row in range(ROWS - HORIZON):
        state = path.advance(state, panel.part(row, row + 1))
        one = path.read(state | {"ahead": ahead[:, row]})
        late = np.zeros(2) if one.late is None else one.late
        for found, said in zip((*one[:3], late), whole.reading, strict=True):
            expected = said.reshape(len(found), -1, *said.shape[1:])[:, row]
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", [2, 3])
def test_a_covariate_that_hardly_moved_in_the_history_throws_no_forecast_far_off(seed):
    rng = np.random.default_rng(seed)
    y = 5 * np.sin(2 * np.pi * np.arange(1400) / 24) + rng.normal(size=1400)
    rain = np.where(rng.random(1400) < 0.003, rng.gamma(1, 0.3, 1400), 0)
    rain[1000:] = np.where(rng.random(400) < 0.3, rng.gamma(1, 3, 400), 0)
    errors = {}
    for past_only in ((), (0,)):
        X = rain[:, None] if past_only else None
        model = FracRidge(24, season_lengths=24, past_only=past_only)
        model.fit(y[:1000], None if X is None else X[:1000])
        errors[past_only] = []
        for t in range(1000, 1376, 24):
            errors[past_only].append(np.abs(model.forecast() - y[t : t + 24]).mean())
            model.update(y[t : t + 24], None if X is None else X[t : t + 24])
    assert np.mean(errors[0,]) < 1.1 * np.mean(errors[()])
