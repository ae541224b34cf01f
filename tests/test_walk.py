"""A series is told from a random walk by its single steps; what may be one leans on its last value."""

import warnings

import numpy as np
import pytest

from fracts import FitWarning, FracRidge, Naive
from fracts.evidence import PENALTIES
from fracts.folds import Share
from fracts.recall import linear_memory
from fracts.series import Panel
from fracts.walk import _log_factor, share_of_a_walk


def ar(weight, rows, seed):
    noise = np.random.default_rng(seed).normal(size=rows)
    y = np.zeros(rows)
    for t in range(1, rows):
        y[t] = weight * y[t - 1] + noise[t]
    return y


def share_of(values, seasons=()):
    panel = Panel(np.atleast_2d(values), np.arange(np.shape(values)[-1], dtype=float))
    memory = linear_memory(panel, 7, 8, (1.0, 512.0), seasons).blending()
    priors = [penalty for penalty in PENALTIES if penalty.seasonal_decay == 0]
    return share_of_a_walk(memory, Share(panel, np.ones(len(panel.values))), priors)


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
    walks = [share_of(ar(1.0, rows, seed)) for seed in range(10)]
    assert np.mean(walks) > 0.5 and min(walks) > 0.2
    assert max(share_of(ar(0.3, rows, seed)) for seed in range(10)) < 0.05


def test_the_longer_what_slowly_goes_back_is_seen_the_less_it_is_a_walk():
    few, some, many = (np.mean([share_of(ar(0.95, n, seed)) for seed in range(10)]) for n in (100, 400, 1500))
    assert many < 0.01 < some < few


def test_a_share_knows_no_units_and_no_level():
    y = ar(0.97, 300, 1)
    assert share_of(1000 * y + 1e6) == pytest.approx(share_of(y), rel=1e-6)


def test_rows_without_a_value_are_no_steps():
    y = ar(1.0, 400, 2)
    y[np.random.default_rng(2).random(400) < 0.2] = np.nan
    assert 0.2 < share_of(y) < 1


def test_seasons_and_panels_are_left_to_held_out_time():
    walk = ar(1.0, 300, 0)
    assert share_of(walk) > 0.2 and share_of(walk, seasons=(7,)) == 0
    assert share_of(np.stack([walk, ar(1.0, 300, 1)])) == 0


def test_a_walk_is_forecast_about_as_well_as_by_its_last_value():
    ours = last = 0.0
    for seed in range(40):
        y = ar(1.0, 424, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            ours += np.abs(FracRidge(24).fit(y[:400]).predict() - y[400:]).mean()
        last += np.abs(Naive(24).fit(y[:400]).predict() - y[400:]).mean()
    assert ours < 1.08 * last
