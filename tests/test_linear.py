"""The linear path: a state of fixed size, moments by folds, the choice, the held-out errors."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts import FracRidge
from fracts.cuts import FOLDS, Cuts
from fracts.evidence import PENALTIES, choose
from fracts.folds import FoldMoments, Share, Targets, known_targets, origins
from fracts.forecasts import MEDIAN_AT, QUANTILES
from fracts.linear_fit import fit_linear, is_pooled
from fracts.recall import linear_memory
from fracts.series import Panel
from fracts.shares import noise_of, noise_weights

nan = np.nan
H = 4


def panel(seed=0, rows=300, n_series=2, missing=0.1, real=False):
    rng = np.random.default_rng(seed)
    t = np.arange(float(rows))
    values = rng.normal(size=(n_series, rows)).cumsum(1) * 0.3 + 2 * np.sin(2 * np.pi * t / 12) + 50
    values[rng.random(values.shape) < missing] = nan
    values[:, 0] = 50
    times = np.cumsum(rng.exponential(size=rows)) if real else t
    return Panel(values, times - times[0])


def alike(p):
    """All series of `p`, none counting more than another."""
    return Share(p, np.ones(len(p.values)))


def memory(p, n_modes=8):
    return linear_memory(p, H, n_modes, (1.0, 1e4), (12,))


def cut(p, start, stop):
    return Panel(p.values[:, start:stop], p.times[start:stop])


def same(found, expected, scale):
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-10, atol=1e-10 * scale, err_msg=name)


@given(st.integers(0, 2**32 - 1), st.booleans(), st.sets(st.integers(1, 299), max_size=5))
@settings(max_examples=15)
def test_any_cutting_gives_one_state_and_one_reading(seed, real, cuts):
    p = panel(seed, real=real)
    remembered = memory(p)
    state = remembered.empty(2)
    whole = list(remembered.walk(state, p))
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), 300], strict=True):
        state = remembered.advance(state, cut(p, start, stop))[0]
    same(state, whole[-1].state, 100)
    features, anchors, _, centre, scale = remembered.read(state)
    np.testing.assert_allclose(features, whole[-1].features[:, -1], atol=1e-10)
    np.testing.assert_allclose(anchors, whole[-1].anchors[:, :, -1], atol=1e-10)
    np.testing.assert_allclose([centre, scale], [whole[-1].centre[:, -1], whole[-1].scale[:, -1]], rtol=1e-12)


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=15)
def test_dropped_rows_and_rows_without_value_give_one_state(seed, real):
    p = panel(seed, n_series=1, missing=0.0, real=real)
    seen = np.random.default_rng(seed).random(300) < 0.5
    seen[[0, -1]] = True
    remembered = memory(p)
    missing = remembered.advance(remembered.empty(1), Panel(np.where(seen, p.values, nan), p.times))[0]
    dropped = remembered.advance(remembered.empty(1), Panel(p.values[:, seen], p.times[seen]))[0]
    same(dropped, missing, 100)


def test_the_state_is_of_one_size_and_the_given_one_is_left_alone():
    p = panel()
    remembered = memory(p)
    first = remembered.advance(remembered.empty(2), cut(p, 0, 100))[0]
    kept = {name: array.copy() for name, array in first.items()}
    second = remembered.advance(first, cut(p, 100, 300))[0]
    assert {name: array.shape for name, array in second.items()} == {n: a.shape for n, a in first.items()}
    for name, array in kept.items():
        np.testing.assert_array_equal(first[name], array)


def test_targets_are_the_values_ahead_of_a_value_but_for_a_scale_of_too_few_and_the_last_horizon():
    p = panel(missing=0.2)
    wanted = known_targets(p, H)
    expected = np.full_like(wanted, nan)
    for row in range(300 - H):
        expected[:, row] = p.values[:, row + 1 : row + 1 + H]
    expected[np.isnan(p.values) | (np.cumsum(~np.isnan(p.values), axis=1) < 10)] = nan
    np.testing.assert_array_equal(wanted, expected)
    np.testing.assert_array_equal(Targets(p, H).after(90, 200, np.arange(H)), expected[:, 90:200])


def test_nothing_is_learned_where_the_series_has_not_moved():
    p = Panel(np.append(np.full(50, 3.0), np.arange(50.0))[None], np.arange(100.0))
    assert np.isnan(known_targets(p, 2)[:, :50]).all() and not np.isnan(known_targets(p, 2)[:, 50:98]).any()


def test_no_target_before_a_whole_season_or_a_third_of_the_history_has_been_seen():
    p = Panel(np.random.default_rng(0).normal(size=(1, 90)), np.arange(90.0))
    for season, first in ((1, 9), (12, 11), (30, 29), (60, 30)):
        known = ~np.isnan(known_targets(p, 2, season))[0, :, 0]
        assert known.argmax() == first and known[first:87].all()


def ragged():
    """Three series that begin and end at times of their own, one of them after an outage."""
    p = panel(seed=3, n_series=3)
    rows = np.arange(300)
    alive = np.stack([rows < 200, rows >= 120, (rows < 60) | (rows >= 220)])
    return Panel(np.where(alive, p.values, nan), p.times)


@pytest.mark.parametrize("fold", [1, 2, 3])
@pytest.mark.parametrize("pooled", [True, False], ids=["pooled", "each its own"])
@pytest.mark.parametrize("ragged_ends", [True, False], ids=["ragged", "regular"])
def test_what_is_learned_for_a_fold_holds_no_target_of_its_time(fold, pooled, ragged_ends):
    p = ragged() if ragged_ends else panel(seed=3)
    n_groups = 1 if pooled else len(p.values)
    held_out = Cuts.of(p, pooled=pooled).reached(p.times) >= fold
    future = Panel(np.where(held_out & ~np.isnan(p.values), 1e6, p.values), p.times)
    remembered, leads = memory(p), np.arange(H)
    weights = PENALTIES[8].of(remembered.bank)
    own, corrupted = (
        FoldMoments.of(remembered, alike(q), leads, n_groups, pooled=pooled) for q in (p, future)
    )
    for group in range(n_groups):
        before, after = (q.before(fold, group).solve(weights) for q in (own, corrupted))
        assert before.any()
        np.testing.assert_array_equal(after, before)
        before, after = (q.before(fold + 1, group).solve(weights) for q in (own, corrupted))
        assert np.abs(after - before).max() > 0.01


def test_the_moments_of_a_fold_are_of_the_origins_inside_it():
    p = panel(seed=3)
    moments = FoldMoments.of(memory(p), alike(p), np.arange(H), 1, pooled=True)
    known, folds = ~np.isnan(known_targets(p, H, 12)), Cuts.of(p, pooled=True).tried(p.times)
    for fold in (1, 2, 3):
        expected = known[folds == fold].sum(0)
        np.testing.assert_array_equal(moments.inside(fold, 0).count, expected)
    np.testing.assert_array_equal(moments.whole(0).count, known.sum((0, 1)))


def test_the_choice_is_the_best_of_all_tried_on_the_origins_themselves():
    """Every penalty and anchor fitted and tried row by row."""
    p = panel(seed=1, rows=200, n_series=1)
    remembered, leads = memory(p), np.array([0, 3])
    parts = list(origins(remembered, p, leads, pooled=True))
    error = np.zeros((len(PENALTIES), len(remembered.anchors)))
    for i, penalty in enumerate(PENALTIES):
        root = np.diag(np.sqrt(penalty.of(remembered.bank)))
        for anchor in range(len(remembered.anchors)):
            for lead in (0, 1):
                said, count = 0.0, 0
                for fold in range(1, len(FOLDS) + 1):
                    x, y = rows(part for part in parts if part.last_fold < fold)(anchor, lead)
                    stacked = np.append(y, np.zeros(len(root)))
                    b = np.linalg.lstsq(np.vstack([x, root]), stacked, rcond=None)[0]
                    x, y = rows(part for part in parts if part.fold == fold)(anchor, lead)
                    said += y.size * np.log(((y - x @ b) ** 2).sum())
                    count += y.size
                error[i, anchor] += said / count
    penalty, anchor = np.unravel_index(error.argmin(), error.shape)
    assert choose(remembered, alike(p), leads, True) == (anchor, PENALTIES[penalty])


def test_a_series_counts_by_what_its_best_anchor_leaves():
    p = panel(seed=1, rows=400, n_series=3, missing=0)
    noisy = np.random.default_rng(0).normal(size=400)
    p.values[2] = p.values[1] + 5 * noisy
    weights = noise_weights(noise_of(memory(p), p, np.arange(H)))
    assert np.log(weights).mean() == pytest.approx(0.0) and weights[2] < 0.5 * weights[:2].min()
    scaled = Panel(p.values * [[1.0], [1e3], [1.0]], p.times)
    np.testing.assert_allclose(
        noise_weights(noise_of(memory(scaled), scaled, np.arange(H))), weights, rtol=1e-6
    )
    still = Panel(np.vstack([p.values, np.ones(400)]), p.times)
    assert np.isfinite(noise_weights(noise_of(memory(still), still, np.arange(H)))).all()


def rows(parts):
    """Features and known targets of one anchor and lead, over `parts`."""
    parts = list(parts)

    def of(anchor, lead):
        x = np.concatenate([np.hstack([part.features[0], part.ahead[anchor, 0, :, lead]]) for part in parts])
        y = np.concatenate([part.targets[anchor, 0, :, lead] for part in parts])
        return x[~np.isnan(y)], y[~np.isnan(y)]

    return of


def test_coefficients_are_the_ridge_on_all_origins_and_quantiles_those_of_the_held_out_errors():
    p = panel(seed=2)
    path = fit_linear(p, memory(p), ("a", "b"), pooled=True, averaged=False)
    assert path.coefficients.shape == (1, path.memory.n_features + path.memory.n_ahead, H)
    reading = path.held_out_readings(p)
    truth = (known_targets(p, H, 12) - reading.centre[..., None]) / reading.scale[..., None]
    errors = np.where(Cuts.of(p, pooled=True).tried(p.times)[..., None] > 0, truth - reading.leads, nan)
    errors /= path.noise[:, None, None]
    for lead in range(H):
        seen = errors[..., lead][~np.isnan(errors[..., lead])]
        expected = np.quantile(seen, QUANTILES, method="median_unbiased")
        expected -= expected[MEDIAN_AT]  # series share no median error
        np.testing.assert_allclose(path.errors[0, lead], expected, atol=1e-10)
    parts = list(origins(path.memory, p, np.array([2]), pooled=True))
    root = np.sqrt(path.weights)[:, None]
    x = [root[..., None] * np.concatenate([part.features, part.ahead[0, :, :, 0]], -1) for part in parts]
    x = np.concatenate([part.reshape(-1, path.coefficients.shape[1]) for part in x])
    y = np.concatenate([(root * part.targets[0, ..., 0]).reshape(-1) for part in parts])
    x, y = x[~np.isnan(y)], y[~np.isnan(y)]
    stacked = np.vstack([x, np.diag(np.sqrt(path.memory.penalty(path.penalty)))])
    expected = np.linalg.lstsq(stacked, np.append(y, np.zeros(x.shape[1])), rcond=None)[0]
    np.testing.assert_allclose(path.coefficients[0, :, 2], expected, atol=1e-9)


def test_readings_at_every_row_are_those_of_a_stream():
    p = panel(seed=4)
    path = fit_linear(p, memory(p), ("a", "b"), pooled=False)
    rows = np.array([0, 49, 50, 255, 256, 299])
    whole = read_at(path, ["b", "a"], p, rows)
    state, turn = path.empty(["b", "a"]), 0
    for row in range(0, 300):
        state = path.advance(state, cut(p, row, row + 1))
        if row in rows:
            one = path.read(state)
            late = np.zeros(2) if one.late is None else one.late
            for found, said in zip((*one[:3], late), whole.reading, strict=True):
                by_series = said.reshape(2, len(rows), *said.shape[1:])
                np.testing.assert_allclose(found, by_series[:, turn], rtol=1e-10, atol=1e-10)
            turn += 1
    assert turn == len(rows) and np.ptp(whole.reading.leads) > 0.1
    for name, array in state.items():
        np.testing.assert_allclose(whole.state[name], array, rtol=1e-10, atol=1e-10)


def read_at(path, ids, p, rows):
    return path.passed(path.empty(ids), p, rows, np.empty((len(ids), len(rows), H, 0)))


def test_each_series_is_read_with_its_own_weights_in_any_order():
    p = panel(seed=4)
    path = fit_linear(p, memory(p), ("a", "b"), pooled=False)
    swapped = Panel(p.values[::-1], p.times)
    rows = np.arange(300)
    in_order, turned, others = (
        read_at(path, ids, given, rows).reading.leads.reshape(2, 300, H)
        for ids, given in ((["a", "b"], p), (["b", "a"], swapped), (["b", "a"], p))
    )
    np.testing.assert_allclose(turned[::-1], in_order, rtol=1e-12, atol=1e-12)
    assert np.abs(others - in_order).max() > 0.01
    with pytest.raises(ValueError, match=r"'c' was not fitted.*pooled=True"):
        path.empty(["c"])


def test_the_spectrum_has_the_modulus_of_each_turning_mode_and_the_anchor_first():
    p = panel(seed=4)
    fitted = fit_linear(p, memory(p), ("a", "b"), pooled=False)
    features = fitted.memory.n_features
    alone = fitted.coefficients[:, :features]
    path = replace(fitted, memory=memory(p).leaning_on(3), coefficients=alone)
    bank, own = path.memory.bank, path.spectrum(2).query("series == 'b'")
    assert bank.turning.any() and own.iloc[0].tolist() == ["b", 12, 60, 1.0]  # five seasons of 12
    z = path.coefficients[1, :, 1]
    modulus = np.abs(z[: bank.tau.size][bank.turning] + 1j * z[bank.tau.size :])
    np.testing.assert_allclose(own["weight"].to_numpy()[1:][bank.turning], modulus, rtol=1e-12)
    np.testing.assert_allclose(
        own["weight"].to_numpy()[1:][bank.frequency == 0], z[: (bank.frequency == 0).sum()]
    )
    n_slots = 4
    pulls = np.random.default_rng(0).normal(size=(2, n_slots - 1, H))
    blended = memory(p).blending(3)
    path = replace(fitted, memory=blended, coefficients=np.concatenate([alone, pulls], axis=1))
    weights = path.spectrum(2).query("series == 'b'")["weight"][:n_slots]
    np.testing.assert_allclose(weights, [1 - pulls[1, :, 1].sum(), *pulls[1, :, 1]])


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_leads_a_common_season_apart_know_the_same_ahead(missing):
    p, leads = panel(seed=6, missing=missing, n_series=2), np.arange(40)
    blended = linear_memory(p, 40, 8, (1.0, 1e4), (12, 4)).blending()
    assert blended.n_kinds(leads) == blended.n_kinds(leads[5:]) == 12
    assert blended.n_kinds(leads[::2]) == 20 and blended.n_kinds(leads[:7]) == 7
    for walk in blended.walk(blended.empty(2), p):
        np.testing.assert_array_equal(walk.ahead[..., 12:24, :], walk.ahead[..., :12, :])
        np.testing.assert_array_equal(walk.ahead[..., 36:, :], walk.ahead[..., :4, :])
    whole = FoldMoments.of(blended, alike(p), leads, 1, pooled=True).whole(0)
    penalty = blended.penalty(PENALTIES[3])
    for lead in (0, 11, 12, 39):
        alone = FoldMoments.of(blended, alike(p), leads[[lead]], 1, pooled=True).whole(0)
        np.testing.assert_allclose(whole.solve(penalty)[..., lead], alone.solve(penalty)[..., 0], atol=1e-9)


def test_leads_solved_in_batches_are_those_solved_at_once(monkeypatch):
    p = panel(seed=5)
    whole = fit_linear(p, memory(p), ("a", "b"), pooled=True)
    monkeypatch.setattr("fracts.linear_fit._LEADS_AT_ONCE", 3)
    batched = fit_linear(p, memory(p), ("a", "b"), pooled=True)
    np.testing.assert_allclose(batched.coefficients, whole.coefficients, atol=1e-12)
    np.testing.assert_allclose(batched.held_out, whole.held_out, atol=1e-12)
    np.testing.assert_allclose(batched.errors, whole.errors, atol=1e-12)


def test_series_solved_in_shares_are_those_solved_at_once(monkeypatch):
    p = panel(seed=6, n_series=3)
    whole = fit_linear(p, memory(p), ("a", "b", "c"), pooled=False)
    monkeypatch.setattr("fracts.linear_fit.shares_of", each_apart)
    shared = fit_linear(p, memory(p), ("a", "b", "c"), pooled=False)
    assert whole.coefficients.shape[0] == 3 and shared.penalty == whole.penalty
    np.testing.assert_allclose(shared.coefficients, whole.coefficients, atol=1e-12)
    np.testing.assert_allclose(shared.errors, whole.errors, atol=1e-12)


def each_apart(whole, _):
    times, rows = whole.panel.times, zip(whole.panel.values, whole.weights, strict=True)
    return [Share(Panel(values[None], times), np.array([weight])) for values, weight in rows]


def test_blocks_of_rows_do_not_show(monkeypatch):
    p = panel(seed=7, rows=600)
    remembered = memory(p)
    whole, *read = remembered.advance(remembered.empty(2), p)
    monkeypatch.setattr("fracts.recall._BLOCK_NUMBERS", 1)
    state, *again = remembered.advance(remembered.empty(2), p)
    same(state, whole, 100)
    np.testing.assert_allclose(again, read, rtol=1e-10)


def test_coefficients_are_pooled_where_no_held_out_time_tells():
    p = unlike(20)
    assert is_pooled("auto", p, memory(p)) and not is_pooled(False, p, memory(p))


@pytest.mark.parametrize("left", [2, 12, 40])
def test_one_short_series_does_not_make_the_others_share_coefficients(left):
    p = unlike(300, pairs=3)
    p.values[0, left:] = nan
    assert not is_pooled("auto", p, memory(p))


def test_short_series_of_noise_and_of_trends_share_coefficients_beside_smoothing():
    noise, times = np.random.default_rng(0).normal(size=(40, 110)), np.arange(110.0)
    trends = np.random.default_rng(1).normal(size=(40, 1)) * (np.arange(40)[:, None] % 2)
    p = Panel(noise * np.where(trends, 0.1, 1.0) + 0.3 * trends * times, times)
    assert is_pooled("auto", p, memory(p))


def unlike(rows, pairs=1):
    """Series that go on as they were, each with one that turns back at every step."""
    draws = np.random.default_rng(0).normal(size=(2 * pairs, rows))
    values = np.zeros((2 * pairs, rows))
    for t in range(1, rows):
        values[:, t] = np.tile([0.95, -0.9], pairs) * values[:, t - 1] + draws[:, t]
    return Panel(values, np.arange(float(rows)))


def test_held_out_time_tells_whether_series_share_coefficients(monkeypatch):
    apart, alike_ones = unlike(300), panel(seed=3, rows=300, n_series=6)
    assert not is_pooled("auto", apart, memory(apart))
    same_law = Panel(np.random.default_rng(1).normal(size=(6, 300)).cumsum(1), alike_ones.times)
    assert is_pooled("auto", same_law, memory(same_law))
    monkeypatch.setattr("fracts.linear_fit._MOST_NUMBERS", 100)
    assert is_pooled("auto", apart, memory(apart))


@pytest.mark.parametrize("anchor", ["centre", "last", "season", "auto"])
def test_compiled_or_in_numpy_an_anchor_says_the_same(anchor, request):
    y = np.random.default_rng(0).normal(size=(90, 2)).cumsum(0)
    model = FracRidge(7, season_lengths=5, anchor=anchor).fit(y)
    begun = [[np.nan, np.nan], [2.0, np.nan], [np.nan, 3.0], [1.0, 4.0]]

    def streamed():
        stream = model.apply(y[:3])
        told = [stream.forecast()]
        for row in [*begun, *y[:8].tolist()]:
            told.append(stream.learn_many(row).forecast())
        return np.array(told)

    compiled = streamed()
    request.getfixturevalue("without_numba")
    np.testing.assert_allclose(compiled, streamed(), rtol=0, atol=1e-10)
