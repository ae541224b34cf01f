"""A linear path is an average of candidates, at every lead by what they are worth there."""

import numpy as np
import pytest

from fracts.averaging import Mixture, evidence, mixed, mixed_of_each
from fracts.evidence import PENALTIES
from fracts.folds import FoldMoments, Share, held_out_counts
from fracts.linear_fit import fit_linear
from fracts.recall import linear_memory
from fracts.regression import Penalty
from fracts.series import Panel

H = 7


def walk_with_a_week(rows=420, seed=0):
    """What moves like a walk within a season: the last value is near now, the season later on."""
    rng = np.random.default_rng(seed)
    noise = np.zeros(rows)
    for t in range(1, rows):
        noise[t] = 0.8 * noise[t - 1] + rng.normal()
    return Panel((4 * np.sin(2 * np.pi * np.arange(rows) / 7) + noise)[None], np.arange(float(rows)))


def averaged(panel, penalties=PENALTIES, most=8):
    memory = linear_memory(panel, H, 8, (1.0, 512.0), (7,))
    counts, _ = held_out_counts(memory, panel, pooled=True)
    share = Share(panel, np.ones(1))
    return mixed(memory.blending(), share, np.array([0, 2, 6]), counts, 1, penalties, most)


def test_weights_are_shares_at_every_lead():
    mixture = averaged(walk_with_a_week())
    assert (mixture.weights >= 0).all() and len(mixture.penalties) == 8
    np.testing.assert_allclose(mixture.weights.sum((0, 1)), 1.0)


def test_what_forecasts_worse_by_far_says_nothing():
    hopeless = Penalty(0.5, 0.0, 1e12)._replace(blend=1e12)
    mixture = averaged(walk_with_a_week(rows=1500), [PENALTIES[2], hopeless], most=2)
    said = dict(zip(mixture.penalties, mixture.weights.sum(1), strict=True))
    assert said[hopeless][0] < 0.01


def test_where_no_held_out_forecast_tells_what_is_learned_least_is_heard_most():
    panel = walk_with_a_week()
    memory, share = linear_memory(panel, H, 8, (1.0, 512.0), ()).blending(), Share(panel, np.ones(1))
    stiffness = [penalty for penalty in PENALTIES if penalty[:2] == (0.5, 0.0)]
    none, leads = np.zeros(H, dtype=np.int64), np.array([0, 2, 6])
    mixture = mixed(memory, share, leads, none, 1, stiffness, 6)
    heard = dict(zip(mixture.penalties, mixture.weights.sum(1), strict=True))
    assert (np.diff([heard[penalty] for penalty in stiffness], axis=0) > 0).all()


def test_a_lead_of_many_new_forecasts_goes_by_its_own_alone():
    new, leads = np.array([9000.0, 899.0, 299.0]), np.array([0, 9, 29])
    assert np.array_equal(evidence(new, leads), np.diag(new))


@pytest.mark.parametrize("n", [0, 20, 300, 3000])
def test_a_lead_of_few_hears_shorter_leads_alone_and_never_more_than_it_lacks(n):
    leads = np.array([0, 1, 5, 23, 99])
    own = n / (1 + leads)
    heard = evidence(own, leads)
    assert np.array_equal(np.diag(heard), own)
    assert np.array_equal(heard, np.triu(heard))
    assert (heard.sum(0) <= np.maximum(own, 200.0) + 1e-9).all()
    assert (heard[0, own < 200] > 0).all() or n == 0


def test_coefficients_are_the_mean_of_those_of_the_candidates():
    panel = walk_with_a_week()
    mixture, leads = averaged(panel, most=3), np.arange(H)
    moments = FoldMoments.of(mixture.memory, Share(panel, np.ones(1)), leads, 1, pooled=True).whole(0)
    n_answers, size = mixture.weights.shape[1], mixture.memory.n_features + mixture.memory.n_ahead
    expected = np.zeros((size, H))
    for i, penalty in enumerate(mixture.penalties):
        for answer in range(n_answers):
            one = np.zeros((1, n_answers, H))
            one[0, answer] = 1.0
            found = Mixture(mixture.memory, [penalty], one).solve(moments, leads)
            expected += mixture.weights[i, answer] * found
    np.testing.assert_allclose(mixture.solve(moments, leads), expected, atol=1e-9)


def walks_and_noise(n=3, rows=600):
    """A panel of `n` walks and as many series of noise around a mean."""
    noise = np.random.default_rng(1).normal(size=(2 * n, rows))
    return Panel(np.concatenate([noise[:n].cumsum(1), noise[n:]]), np.arange(float(rows)))


def test_each_series_is_averaged_by_what_it_says_itself():
    panel, n = walks_and_noise(), 3
    memory, leads = linear_memory(panel, H, 8, (1.0, 512.0), ()).blending(), np.array([0, 2, 6])
    share, (counts, _) = Share(panel, np.ones(2 * n)), held_out_counts(memory, panel, pooled=False)
    stiff = [penalty._replace(blend=1e6) for penalty in PENALTIES if penalty.strength == 1e4]
    whole = mixed(memory, share, leads, counts, 2 * n, stiff, 4)
    by_series = np.array([each.weights.sum(0)[:, 0] for each in mixed_of_each(whole, share, 2 * n, 4)])
    of_the_mean = [0, by_series.shape[1] - memory.n_alone]  # answers that go back to the mean at once
    at_once = by_series[:, of_the_mean].sum(1)
    usual = whole.weights.sum(0)[of_the_mean, 0].sum()
    assert at_once[:n].max() < usual < at_once[n:].min()


def test_the_more_series_the_more_each_is_believed_up_to_its_whole_likelihood():
    def spread(n):
        one = walk_with_a_week()
        panel = Panel(np.repeat(one.values, n, axis=0), one.times)
        memory = linear_memory(panel, H, 8, (1.0, 512.0), (7,)).blending()
        counts, _ = held_out_counts(memory, panel, pooled=False)
        share = Share(panel, np.ones(n))
        return np.ptp(mixed(memory, share, np.array([0, 2, 6]), counts, n, PENALTIES, 8).verdict.against)

    two, ten, twelve = spread(2), spread(10), spread(12)
    assert ten == pytest.approx(5 * two) and twelve == pytest.approx(ten)


def test_an_answer_leans_on_one_anchor_alone():
    """The last answers, of as many as there are anchors, are ridges on what that anchor leaves over."""
    panel = walk_with_a_week()
    whole, penalty = linear_memory(panel, H, 8, (1.0, 512.0), (7,)), PENALTIES[3]
    blended, leads, share = whole.blending(), np.arange(H), Share(panel, np.ones(1))
    n_answers, n = len(blended.prior_means(leads)) + blended.n_alone, whole.n_features
    alone = FoldMoments.of(whole, share, leads, 1, pooled=True).whole(0).solve(whole.penalty(penalty))
    moments = FoldMoments.of(blended, share, leads, 1, pooled=True).whole(0)
    for anchor in range(len(whole.anchors)):
        weights = np.zeros((1, n_answers, H))
        weights[0, n_answers - blended.n_alone + anchor] = 1.0
        found = Mixture(blended, [penalty], weights).solve(moments, leads)
        np.testing.assert_allclose(found[:n], alone[anchor], atol=1e-8)
        np.testing.assert_array_equal(found[n:], np.eye(len(whole.anchors))[1:, [anchor] * H])


@pytest.mark.parametrize("averages", [True, False], ids=["average", "best"])
def test_a_path_forecasts_the_same_after_any_scaling(averages):
    panel = walk_with_a_week()
    larger = Panel(1000 * panel.values, panel.times)
    paths = [
        fit_linear(p, linear_memory(p, H, 8, (1.0, 512.0), (7,)), (0,), pooled=True, averaged=averages)
        for p in (panel, larger)
    ]
    np.testing.assert_allclose(paths[1].coefficients, paths[0].coefficients, rtol=1e-6, atol=1e-9)
