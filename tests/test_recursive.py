"""Learning on is the weighted ridge on all rows so far, each lead k steps late, to the last digits."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts import FracForecaster, FracRidge, Naive
from fracts.folds import rows_unfit, standard_targets
from fracts.linear_fit import fit_linear
from fracts.recall import linear_memory
from fracts.recursive import Recursion
from fracts.regression import Penalty
from fracts.series import Panel

pytestmark = pytest.mark.filterwarnings("ignore::fracts.checks.FitWarning")

HORIZON, HISTORY = 3, 120


def panel(seed=0, n_series=1, holes=0.1, gaps=False, rows=220):
    rng = np.random.default_rng(seed)
    season = np.sin(2 * np.pi * np.arange(rows) / 7)
    values = (
        season + rng.normal(size=(n_series, rows)).cumsum(axis=1) * 0.2 + rng.normal(size=(n_series, rows))
    )
    values[rng.random(values.shape) < holes] = np.nan
    values[:, 0] = 1.0
    steps = rng.choice([1.0, 1.0, 1.0, 2.0, 0.7], size=rows) if gaps else np.ones(rows)
    return Panel(values, np.cumsum(steps) - steps[0])


def path_of(history, pooled=True, n_modes=6, longest=1000.0):
    memory = linear_memory(history, HORIZON, n_modes, (1.0, longest), (7,))
    return fit_linear(history, memory, tuple(range(len(history.values))), pooled=pooled, averaged=False)


def written_out(path, whole, n_history, forgetting, group=None, penalty=None):
    """Coefficients by one QR of all weighted rows over the square root of the penalty; no code shared."""
    (walks,) = [list(path.memory.walk(path.empty(path.ids), whole))]
    features = np.concatenate([w.features for w in walks], axis=1)
    anchors = np.concatenate([w.anchors[0] for w in walks], axis=1)
    ahead = np.concatenate([w.ahead[0] for w in walks], axis=1)
    centre, scale = (np.concatenate([getattr(w, k) for w in walks], axis=1) for k in ("centre", "scale"))
    usable = ~np.isnan(whole.values)
    begin = rows_unfit(whole.part(0, n_history), path.memory.longest_season)
    usable &= np.arange(whole.times.size) >= begin[:, None]
    penalty = path.memory.penalty(path.penalty) if penalty is None else penalty
    out = np.empty((penalty.size, HORIZON))
    for lead in range(1, HORIZON + 1):
        lessons = []
        for origin, time in enumerate(whole.times):
            due = (whole.times >= time + lead - 0.5) & (whole.times < time + lead + 0.5)
            for series in range(len(whole.values)) if group is None else [group]:
                near = np.flatnonzero(due & ~np.isnan(whole.values[series]))
                if near.size == 0 or not usable[series, origin]:
                    continue
                target = (whole.values[series, near[0]] - centre[series, origin]) / scale[series, origin]
                target = np.clip(target, -10, 10) - np.clip(anchors[series, origin, lead - 1], -10, 10)
                told = np.append(features[series, origin], ahead[series, origin, lead - 1])
                root = np.sqrt(path.weights[series])
                lessons.append((near[0], root * told, root * target))
        rows = np.array([row for row, _, _ in lessons])
        later = np.unique(rows[rows >= n_history])
        younger = np.array([(later > max(row, n_history - 1)).sum() for row in rows])
        weight = forgetting ** (younger / 2)
        x = np.vstack([weight[:, None] * np.array([x for _, x, _ in lessons]), np.diag(np.sqrt(penalty))])
        y = np.append(weight * np.array([y for _, _, y in lessons]), np.zeros(penalty.size))
        q, r = np.linalg.qr(x)
        out[:, lead - 1] = np.linalg.solve(r, q.T @ y)
    return out


@pytest.mark.parametrize("forgetting", [0.99, 0.999, 1.0])
@pytest.mark.parametrize("gaps", [False, True])
def test_learning_on_is_the_weighted_ridge_on_all_rows(forgetting, gaps):
    whole = panel(gaps=gaps)
    history, later = whole.part(0, HISTORY), whole.part(HISTORY, 10_000)
    path = path_of(history)
    recursion = Recursion.begin(path, history, forgetting)
    found = recursion.after(path, path.advance(path.empty([0]), history), later).relearned(path)
    expected = written_out(path, whole, HISTORY, forgetting)
    size = np.abs(expected).max()
    np.testing.assert_allclose(found.coefficients[0], expected, rtol=0, atol=1e-8 * size)
    assert np.abs(found.coefficients[0] - path.coefficients[0]).max() > 1e-3 * size


@pytest.mark.parametrize("forgetting", [0.99, 0.999, 1.0])
def test_a_bank_of_condition_1e9_keeps_eight_digits(forgetting):
    whole = panel(holes=0.0)
    history, later = whole.part(0, HISTORY), whole.part(HISTORY, 10_000)
    path = path_of(history, n_modes=14, longest=1e4)
    recursion = Recursion.begin(path, history, forgetting)
    after = recursion.after(path, path.advance(path.empty([0]), history), later)
    triangle = after.factors[0, 0, :-1, :-1]
    assert np.linalg.cond(triangle) > 1e9
    penalty = np.full(len(triangle), 1e-2)
    expected = written_out(path, whole, HISTORY, forgetting, penalty=penalty)
    size = np.abs(expected).max()
    np.testing.assert_allclose(after.solve(penalty)[0], expected, rtol=0, atol=1e-8 * size)


def test_covariates_known_in_advance_are_learned_on_as_well():
    whole = panel()
    draws = np.random.default_rng(1).normal(size=(1, whole.times.size, 2))
    moved = whole.values + 2.0 * draws[..., 0]
    whole = Panel(moved, whole.times, draws)
    history, later = whole.part(0, HISTORY), whole.part(HISTORY, 10_000)
    memory = linear_memory(history, HORIZON, 6, (1.0, 1000.0), (7,), n_known=1)
    path = fit_linear(history, memory, (0,), pooled=True, averaged=False)
    recursion, state = Recursion.begin(path, history, 0.99), path.advance(path.empty([0]), history)
    expected = written_out(path, whole, HISTORY, 0.99)
    for start in range(0, later.times.size, 30):  # in pieces: an origin waits for its covariates too
        piece = later.part(start, start + 30)
        recursion, state = recursion.after(path, state, piece), path.advance(state, piece)
    found = recursion.relearned(path).coefficients[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    assert np.abs(found[memory.n_features]).min() > 0.5  # 2 in units of the spread of the series


def test_series_that_end_at_different_stamps_do_not_learn_on(two_series):
    long = two_series.rename_axis("ds").reset_index().melt("ds", var_name="unique_id", value_name="y")
    model = FracRidge(HORIZON, season_lengths=7, forgetting=0.99).fit(long[long.ds < "2024-05-01"])
    rows = long[(long.ds >= "2024-05-01") & ((long.unique_id == "a") | (long.ds < "2024-05-10"))]
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"end at different ones\. Bring all to one stamp"):
        model.update(rows, update_params=True)
    assert pickle.dumps(model) == before
    model.update(rows[rows.ds < "2024-05-10"], update_params=True)


@pytest.mark.parametrize("pooled", [True, False])
def test_several_series_share_or_have_their_own(pooled):
    whole = panel(n_series=3)
    history, later = whole.part(0, HISTORY), whole.part(HISTORY, 10_000)
    path = path_of(history, pooled=pooled)
    state = path.advance(path.empty(path.ids), history)
    found = Recursion.begin(path, history, 0.99).after(path, state, later).relearned(path)
    for group in range(1 if pooled else 3):
        expected = written_out(path, whole, HISTORY, 0.99, group=None if pooled else group)
        np.testing.assert_allclose(found.coefficients[group], expected, rtol=0, atol=1e-8)


@settings(max_examples=10)
@given(data=st.data(), seed=st.integers(0, 1000), forgetting=st.sampled_from([0.98, 1.0]))
def test_any_cutting_of_the_rows_teaches_the_same(data, seed, forgetting):
    whole = panel(seed, n_series=2, gaps=seed % 2 == 1)
    history, later = whole.part(0, HISTORY), whole.part(HISTORY, 10_000)
    path = path_of(history)
    state, recursion = path.advance(path.empty(path.ids), history), Recursion.begin(path, history, forgetting)
    expected = recursion.after(path, state, later).relearned(path).coefficients
    cuts = sorted(data.draw(st.sets(st.integers(1, later.times.size - 1), max_size=8)))
    for start, stop in zip([0, *cuts], [*cuts, later.times.size], strict=True):
        piece = later.part(start, stop)
        recursion, state = recursion.after(path, state, piece), path.advance(state, piece)
    np.testing.assert_allclose(recursion.relearned(path).coefficients, expected, rtol=0, atol=1e-9)


def test_a_target_half_a_step_late_still_teaches():
    whole = panel(holes=0.0)
    times = whole.times.copy()
    times[HISTORY:] += 0.4  # the first lead of the last row of the history is due at the first row after it
    times[HISTORY + 1 :] -= 0.8
    whole = Panel(whole.values, times)
    history, later = whole.part(0, HISTORY), whole.part(HISTORY, 10_000)
    path = path_of(history)
    recursion, state = Recursion.begin(path, history, 1.0), path.advance(path.empty([0]), history)
    for row in range(later.times.size):
        one = later.part(row, row + 1)
        recursion, state = recursion.after(path, state, one), path.advance(state, one)
    expected = written_out(path, whole, HISTORY, 1.0)
    np.testing.assert_allclose(recursion.relearned(path).coefficients[0], expected, rtol=0, atol=1e-9)


def test_lead_k_learns_k_steps_after_the_origin():
    whole = panel(holes=0.0)
    history = whole.part(0, HISTORY)
    path = path_of(history)
    recursion, state = Recursion.begin(path, history, 1.0), path.advance(path.empty([0]), history)
    spike = whole.values[:, HISTORY : HISTORY + 4].copy()
    spike[:, 1] += 5.0  # taught to lead k by the origin k steps before
    for values in (whole.values[:, HISTORY : HISTORY + 4], spike):
        first = recursion.after(path, state, Panel(values[:, :1], whole.times[HISTORY : HISTORY + 1]))
        second = first.after(
            path,
            path.advance(state, Panel(values[:, :1], whole.times[HISTORY : HISTORY + 1])),
            Panel(values[:, 1:2], whole.times[HISTORY + 1 : HISTORY + 2]),
        )
        gained = second.factors[0, :, -1, -1] ** 2 - first.factors[0, :, -1, -1] ** 2
        assert (gained > 0).all()
    assert (gained > 1.0).all()  # all leads, at once, by the spike


def test_the_penalty_is_never_forgotten():
    whole = panel()
    history, later = whole.part(0, HISTORY), whole.part(HISTORY, 10_000)
    path = path_of(history)
    state = path.advance(path.empty([0]), history)
    found = Recursion.begin(path, history, 0.5).after(path, state, later).relearned(path).coefficients
    assert np.abs(found).max() < 10 * np.abs(path.coefficients).max()
    path = replace(path, penalty=Penalty(0.5, 0.0, 1e9, blend=1e9))
    assert np.abs(Recursion.begin(path, history, 0.5).relearned(path).coefficients).max() < 1e-5


MODELS = {
    "FracRidge": lambda forgetting: FracRidge(HORIZON, season_lengths=7, n_modes=6, forgetting=forgetting),
    "FracForecaster": lambda forgetting: FracForecaster(
        HORIZON, season_lengths=7, n_modes=6, width=8, n_layers=1, n_heads=2, max_epochs=1, random_state=0,
        forgetting=forgetting,
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=MODELS)
def learner(request, two_series):
    return MODELS[request.param](0.99).fit(two_series[:150])


def test_update_learns_only_where_asked_and_at_once_in_all_ways(learner, two_series):
    later = two_series[150:]
    still, whole, pieces = (copy.deepcopy(learner) for _ in range(3))
    still.update(later)
    np.testing.assert_array_equal(still._path.coefficients, learner._path.coefficients)
    whole.update(later, update_params=True)
    for start in range(0, 50, 10):
        pieces.update(later.iloc[start : start + 10], update_params=True)
    np.testing.assert_allclose(pieces.forecast(level=90), whole.forecast(level=90), rtol=0, atol=1e-7)
    assert np.abs(whole.forecast() - still.forecast()).max() > 1e-3
    assert whole.cutoff_ == still.cutoff_


def test_a_model_goes_on_learning_from_a_file(learner, two_series, tmp_path):
    learner.save(tmp_path / "model")
    loaded = type(learner).load(tmp_path / "model").update(two_series[150:170], update_params=True)
    other = copy.deepcopy(learner).update(two_series[150:170], update_params=True)
    np.testing.assert_array_equal(loaded.forecast(), other.forecast())


def test_what_was_learned_changes_the_weights_and_so_refuses_older_states(learner, two_series):
    model, state = copy.deepcopy(learner), learner.get_state()
    model.update(two_series[150:160]).set_state(state)
    with pytest.raises(ValueError, match="other weights"):
        model.update(two_series[150:160], update_params=True).set_state(state)


def test_another_history_teaches_nothing_about_the_old_one(learner, two_series):
    moved = learner.apply(two_series + 100)
    assert moved._recursion.recent.times.size == 0 and learner._recursion.recent.times.size > 0
    week = pd.date_range("2024-07-19", periods=7, freq="D", tz="UTC")
    moved.update(pd.DataFrame(105.0 + np.arange(14).reshape(7, 2) % 3, week, ["a", "b"]), update_params=True)
    assert np.isfinite(moved.forecast()).all()


def test_an_error_while_learning_moves_nothing(learner, two_series):
    before = pickle.dumps(learner)
    with pytest.raises(ValueError, match="rows up to"):
        learner.update(two_series[140:], update_params=True)
    assert pickle.dumps(learner) == before


@pytest.mark.parametrize("model", [Naive(2), FracRidge(2, season_lengths=())])
def test_a_model_that_does_not_learn_on_says_so_and_nothing_moves(model):
    model.fit(np.arange(60.0) % 7)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=f"this {type(model).__name__} does not learn on. .*forgetting="):
        model.update([1.0], update_params=True)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("forgetting", [0, 1.1, "0.9", True, np.nan])
def test_a_forgetting_that_makes_no_sense_is_refused(forgetting):
    with pytest.raises(ValueError, match="forgetting must be None or a number above 0 and up to 1"):
        FracRidge(2, forgetting=forgetting).fit(np.arange(60.0) % 7)


def test_learning_on_follows_a_change_of_the_law():
    rng, n = np.random.default_rng(0), 3000
    noise, y = rng.normal(size=n), np.zeros(n)
    for t in range(1, n):
        y[t] = (0.9 if t < 1500 else -0.9) * y[t - 1] + noise[t]
    learning, fixed = (FracRidge(1, season_lengths=(), forgetting=0.997).fit(y[:1400]) for _ in range(2))
    learning.update(y[1400:2500], update_params=True)
    fixed.update(y[1400:2500])
    assert learning.score(y[2500:]) > 0.7 * fixed.score(y[2500:])


def test_targets_are_those_of_the_fit():
    """Centred, scaled, cut off far from the centre, around the anchor."""
    wanted, anchors = np.array([[[1.0, 500.0]]]), np.array([[[0.5, -100.0]]])
    found = standard_targets(wanted, anchors, np.array([[0.0]]), np.array([[2.0]]))
    np.testing.assert_array_equal(found, [[[0.0, 20.0]]])
