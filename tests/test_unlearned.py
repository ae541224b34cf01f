"""What nothing learned improves on is heard alone, of a single series: its last value, smoothing."""

import warnings

import numpy as np
import pytest
from scipy.special import softmax

from fracts import ETS, FitWarning, FracRidge, Naive
from fracts.evidence import PENALTIES
from fracts.folds import FoldMoments, Share
from fracts.recall import linear_memory
from fracts.series import Panel
from fracts.smoothing import Smoothers
from fracts.unlearned import Unlearned, _log_evidence, log_odds


def ar(weight, rows, seed):
    noise = np.random.default_rng(seed).normal(size=rows)
    y = np.zeros(rows)
    for t in range(1, rows):
        y[t] = weight * y[t - 1] + noise[t]
    return y


def line(rows, seed):
    return 0.5 * np.arange(rows) + 3 * np.random.default_rng(seed).normal(size=rows)


def memory_and_share(values, seasons=()):
    panel = Panel(np.atleast_2d(values), np.arange(np.shape(values)[-1], dtype=float))
    return linear_memory(panel, 7, 8, (1.0, 512.0), seasons), Share(panel, np.ones(len(panel.values)))


def share_of_the_last_value(values):
    """Beside what is learned, where smoothing is not asked."""
    memory, share = memory_and_share(values)
    memory = memory.blending()
    moments = FoldMoments.of(memory, share, np.array([0]), 1, pooled=True, in_units=True).whole(0)
    return softmax(log_odds(memory, moments, PENALTIES))[1]


def unlearned_beside(learned, values, seasons=(), leads=()):
    """Beside coefficients (features, 7) that were the same before each fold."""
    memory, share = memory_and_share(values, seasons)
    held_out = np.broadcast_to(learned(memory), (3, memory.n_features, 7))
    return Unlearned.of(memory, share, PENALTIES, held_out, np.array(leads, dtype=np.int64))


def nothing(memory):
    """The coefficients of the centre."""
    return np.zeros((memory.n_features, 7))


def shares_of(model):
    """Of what a fitted path says at its first lead, those of smoothing and the last value."""
    memory, blend = model._path.memory, model._path.blend[0, 0]
    smooth = np.array([isinstance(anchor, Smoothers) for anchor in memory.anchors[1:]])
    return blend[smooth].sum(), blend[~smooth].sum()


def forecast(model, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return model.fit(y).predict()


def missed(make, series, rows, horizon, seeds=20):
    each = [(make, series(rows + horizon, seed)) for seed in range(seeds)]
    return np.mean([np.abs(forecast(m(horizon), y[:rows]) - y[rows:]).mean() for m, y in each])


def test_the_evidence_is_the_marginal_likelihood():
    """The density of t with the noise's variance left open, by its dense quadratic form."""
    draws = np.random.default_rng(0)
    x, penalty = draws.normal(size=(40, 5)), np.array([0.5, 2.0, 8.0, 1.0, 30.0])
    y = x @ draws.normal(size=5) + draws.normal(size=40)
    spread = np.eye(40) + (x / penalty) @ x.T
    quadratic = y @ np.linalg.solve(spread, y)
    expected = -np.linalg.slogdet(spread)[1] / 2 - 20 * np.log(quadratic)
    found = _log_evidence(x.T @ x, (x.T @ y)[:, None], np.array([y @ y]), 40.0, penalty)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("rows", [100, 400, 1500])
def test_walks_are_told_from_what_goes_back(rows):
    walks = [share_of_the_last_value(ar(1.0, rows, seed)) for seed in range(10)]
    assert np.mean(walks) > 0.5 and min(walks) > 0.3
    assert max(share_of_the_last_value(ar(0.3, rows, seed)) for seed in range(10)) < 0.25


def test_the_longer_what_slowly_goes_back_is_seen_the_less_it_is_a_walk():
    few, some, many = (
        np.mean([share_of_the_last_value(ar(0.95, n, seed)) for seed in range(10)]) for n in (100, 400, 1500)
    )
    assert many < 0.1 < some < few


def test_a_share_knows_no_units_and_no_level():
    y = ar(0.97, 300, 1)
    assert share_of_the_last_value(1000 * y + 1e6) == pytest.approx(share_of_the_last_value(y), rel=1e-6)


def test_rows_without_a_value_are_no_steps():
    y = ar(1.0, 400, 2)
    y[np.random.default_rng(2).random(400) < 0.2] = np.nan
    assert 0.2 < share_of_the_last_value(y) < 1


def test_smoothing_is_heard_where_nothing_learned_is_better():
    assert shares_of(FracRidge(7).fit(line(200, 0)))[0] > 0.5
    assert not FracRidge(7).fit(ar(0.3, 3000, 0))._path.memory.smoothed


def test_a_last_value_is_heard_alone_without_seasons():
    walk = ar(1.0, 300, 0)
    last = [unlearned_beside(nothing, walk, seasons).shares[0].max() for seasons in ((), (7,))]
    assert last[0] > 0.2 and last[1] == 0


def test_series_beside_others_are_left_to_held_out_time():
    assert unlearned_beside(nothing, np.stack([ar(1.0, 300, 0), ar(1.0, 300, 1)])) is None


def test_a_long_series_is_not_smoothed():
    assert not unlearned_beside(nothing, line(5000, 0)).memory.smoothed


def test_held_out_forecasts_of_a_lead_speak_against_what_is_wrong_there():
    wave = 3 * np.sin(2 * np.pi * np.arange(300) / 7) + np.random.default_rng(0).normal(size=300)
    memory, share = memory_and_share(wave)
    centred, leads = memory.leaning_on(0), np.arange(7)
    moments = FoldMoments.of(centred, share, leads, 1, pooled=True).whole(0)
    right = moments.solve(centred.penalty(PENALTIES[0]))[0]
    wrong = right * (leads != 2)  # the centre there
    both = memory.blending()
    each = Unlearned(both, np.vstack([np.zeros(both.n_blended), np.eye(both.n_blended)])[..., None])
    more = np.subtract(*(each._against(share, np.stack([told] * 3), leads) for told in (wrong, right)))
    assert more[0, 2] > 10
    np.testing.assert_allclose(more[0, leads != 2], 0, atol=1e-9)
    np.testing.assert_allclose(more[1:], 0, atol=1e-9)


def test_without_held_out_forecasts_single_steps_speak_for_every_lead():
    shares = unlearned_beside(nothing, ar(1.0, 100, 0)).shares
    np.testing.assert_array_equal(shares, shares[:, :1].repeat(7, axis=1))
    assert shares.sum(0)[0] > 0.9  # and what nothing has tried is doubted


def test_after_a_break_of_the_level_what_was_learned_before_is_not_heard():
    rows = np.arange(400)
    y = np.random.default_rng(0).normal(size=400) + np.where(rows < 385, 0.0, 7.0)
    assert sum(shares_of(FracRidge(7).fit(y))) > 0.99
    assert np.abs(FracRidge(7).fit(y).predict() - 7).max() < 1.5
    assert sum(shares_of(FracRidge(7).fit(y[:385]))) < 0.9


def test_a_walk_is_forecast_about_as_well_as_by_its_last_value():
    assert missed(FracRidge, lambda n, s: ar(1.0, n, s), 400, 24, 40) < 1.08 * missed(
        Naive, lambda n, s: ar(1.0, n, s), 400, 24, 40
    )


def test_a_line_is_forecast_about_as_well_as_by_exponential_smoothing():
    assert missed(FracRidge, line, 200, 12) < 1.15 * missed(ETS, line, 200, 12)


def test_too_few_values_to_hold_any_out_are_forecast_near_the_last_ones():
    assert missed(FracRidge, lambda n, s: ar(1.0, n, s).cumsum() / 5, 24, 6) < 1.2 * missed(
        Naive, lambda n, s: ar(1.0, n, s).cumsum() / 5, 24, 6
    )


def test_a_smoothed_series_cut_anywhere_forecasts_the_same(tmp_path):
    y = line(260, 3)
    whole = FracRidge(12).fit(y[:200]).update(y[200:])
    assert whole._path.memory.smoothed
    for cut in (201, 223, 259):
        pieces = FracRidge(12).fit(y[:200]).update(y[200:cut]).update(y[cut:])
        np.testing.assert_allclose(pieces.forecast(level=90), whole.forecast(level=90), rtol=1e-9)
    whole.save(tmp_path / "model")
    np.testing.assert_array_equal(FracRidge.load(tmp_path / "model").predict(), whole.predict())


def test_a_smoothed_series_has_no_units():
    y = line(200, 4)
    np.testing.assert_allclose(
        FracRidge(12).fit(1000 * y).forecast(level=90),
        1000 * FracRidge(12).fit(y).forecast(level=90),
        rtol=1e-7,
    )
