"""What nothing learned improves on is heard alone, of a single series: its last value, smoothing."""

import warnings

import numpy as np
import pytest
from scipy.special import softmax

from fracts import ETS, FitWarning, FracRidge, Naive
from fracts.evidence import PENALTIES
from fracts.folds import FoldMoments, Share
from fracts.recall import linear_memory, with_smoothing
from fracts.series import Panel
from fracts.smoothing import Smoothers
from fracts.unlearned import Unlearned, _log_factor, log_odds


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


def heard(values, seasons=()):
    """The anchors that are heard alone."""
    memory, share = memory_and_share(values, seasons)
    found = Unlearned.of(memory, share, PENALTIES)
    if found is None:
        return []
    return [a for a, odd in zip(found.memory.anchors[1:], found.odds[1:], strict=True) if np.isfinite(odd)]


def forecast(model, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return model.fit(y).predict()


def missed(make, series, rows, horizon, seeds=20):
    each = [(make, series(rows + horizon, seed)) for seed in range(seeds)]
    return np.mean([np.abs(forecast(m(horizon), y[:rows]) - y[rows:]).mean() for m, y in each])


def test_the_factor_is_that_of_the_marginal_likelihoods():
    """Both are densities of t with the noise's variance left open: a ratio of two dense quadratic forms."""
    draws = np.random.default_rng(0)
    x, penalty = draws.normal(size=(40, 5)), np.array([0.5, 2.0, 8.0, 1.0, 30.0])
    y = x @ draws.normal(size=5) + draws.normal(size=40)
    spread = np.eye(40) + (x / penalty) @ x.T
    quadratic = y @ np.linalg.solve(spread, y)
    expected = -np.linalg.slogdet(spread)[1] / 2 - 20 * np.log(quadratic / (y @ y))
    assert _log_factor(x.T @ x, x.T @ y, y @ y, 40.0, penalty) == pytest.approx(expected)


@pytest.mark.parametrize("rows", [100, 400, 1500])
def test_walks_are_told_from_what_goes_back(rows):
    walks = [share_of_the_last_value(ar(1.0, rows, seed)) for seed in range(10)]
    assert np.mean(walks) > 0.5 and min(walks) > 0.3
    assert max(share_of_the_last_value(ar(0.3, rows, seed)) for seed in range(10)) < 0.2


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


def test_each_is_heard_where_nothing_learned_is_better():
    assert any(isinstance(anchor, Smoothers) for anchor in heard(line(200, 0)))
    assert heard(ar(0.3, 3000, 0)) == []
    walk = ar(1.0, 300, 0)
    assert any(not isinstance(anchor, Smoothers) for anchor in heard(walk))
    assert all(isinstance(anchor, Smoothers) for anchor in heard(walk, seasons=(7,)))


def test_series_beside_others_are_left_to_held_out_time():
    assert heard(np.stack([ar(1.0, 300, 0), ar(1.0, 300, 1)])) == []


def test_a_long_series_is_not_smoothed():
    assert not any(isinstance(anchor, Smoothers) for anchor in heard(line(5000, 0)))


def test_what_held_out_forecasts_of_a_lead_tell_against_is_heard_less_there():
    y = line(300, 0)
    memory, share = memory_and_share(y)
    both = with_smoothing(memory).blending()
    found = Unlearned(both, np.zeros(1 + both.n_blended))
    learned = np.zeros((3, memory.n_features, 7))  # the centre: right never, of a line
    shares = found.shares(share, learned, np.array([0, 6]))
    assert shares.shape == (both.n_blended, 7)
    assert (shares >= 0).all() and (shares.sum(0) <= 1 + 1e-12).all()
    assert (shares.sum(0) > 0.99).all()  # all against what was learned
    assert shares[-1].min() > 0.5  # and for the smoothing that carries the line on


def test_without_held_out_forecasts_single_steps_speak_for_every_lead_and_what_is_learned_is_doubted():
    memory, share = memory_and_share(ar(1.0, 100, 0))
    found = Unlearned(memory.blending(), np.log([0.6, 0.4]))
    shares = found.shares(share, np.zeros((3, memory.n_features, 7)), np.empty(0, dtype=np.int64))
    np.testing.assert_allclose(shares, np.full((1, 7), 0.4 / 0.46))


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
