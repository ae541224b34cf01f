"""ARFIMA against dense linear algebra, R's fracdiff and the theory of its estimator."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from fracts import FitWarning
from fracts.autocovariance import arfima_autocovariance
from fracts.baselines import ARFIMA
from fracts.baselines.arfima_fit import Orders, by_factor, by_filter, by_prediction, estimate
from fracts.baselines.fractional import Process, fractional_modes, fractional_space
from fracts.datasets import make_arfima
from fracts.projection import fractional_weights
from fracts.series import Panel

NONE = np.zeros(0)
PROCESSES = {
    "d=.4": Process(0.4, 0.0, 1, NONE, NONE),
    "d=.49": Process(0.49, 0.0, 1, NONE, NONE),
    "d=-.45, ma": Process(-0.45, 0.0, 1, NONE, np.array([0.9])),
    "d=.2, ar near 1": Process(0.2, 0.0, 1, np.array([0.98]), NONE),
    "d=-.3, ar 2, ma 1": Process(-0.3, 0.0, 1, np.array([0.2, -0.3]), np.array([0.4])),
}

# fracdiff 1.5-2 in R 4.2.2 (Debian 12), `fracdiff(x, nar, nma)`: d and the sample mean that it takes off.
# Data: longmemo 1.1-4, NileMin and NBSdiff1kg.
R_FRACDIFF = {
    ("nile_minima.csv", "level"): 0.39327442,
    ("nbs_diff1kg.csv", "diff"): 0.11150901,
}
needs_data = pytest.mark.skipif("FRACTS_DATA" not in os.environ, reason="FRACTS_DATA names no folder of data")


def column(file, name):
    return pd.read_csv(Path(os.environ["FRACTS_DATA"]) / file)[name].to_numpy(dtype=float)


@given(st.floats(-0.49, 0.49).filter(lambda d: abs(d) > 1e-6))
@settings(max_examples=15)
def test_the_modes_differ_from_the_weights_by_at_most_3_in_100_000_of_each(d):
    lags = np.unique(np.rint(np.geomspace(1, 131_072, 4000))).astype(int)
    ratio = fractional_modes(d).kernel(lags) / fractional_weights(d, lags)
    assert np.abs(ratio - 1).max() < 3e-5


@pytest.mark.parametrize("process", PROCESSES.values(), ids=PROCESSES)
def test_the_filter_has_the_errors_and_variances_of_the_exact_prediction(process):
    n = 500
    y = make_arfima(n, process.d, ar=process.ar, ma=process.ma, random_state=1)
    white, log_determinant = by_prediction(process, y[:, None])
    by_modes, about = by_filter(process, y[:, None])
    np.testing.assert_allclose(by_modes, white, atol=5e-3)
    assert about == pytest.approx(log_determinant, abs=0.03)


@pytest.mark.parametrize("process", PROCESSES.values(), ids=PROCESSES)
def test_whitening_gives_the_normal_density(process):
    y = make_arfima(60, process.d, ar=process.ar, ma=process.ma, random_state=2)[:, None]
    covariance = arfima_autocovariance(60, process.d, ar=process.ar, ma=process.ma)
    dense = covariance[np.abs(np.subtract.outer(np.arange(60), np.arange(60)))]
    holes = y.copy()
    holes[[3, 4, 30]] = np.nan
    seen = ~np.isnan(holes[:, 0])
    for whiten, values, rows in ((by_prediction, y, slice(None)), (by_factor, holes, seen)):
        white, log_determinant = whiten(process, values)
        expected = multivariate_normal(cov=dense[rows][:, rows]).logpdf(values[rows, 0])
        found = -(white.size * np.log(2 * np.pi) + log_determinant + (white**2).sum()) / 2
        assert found == pytest.approx(expected, abs=1e-8)


@needs_data
@pytest.mark.parametrize(("file", "name"), R_FRACDIFF)
def test_d_is_that_of_fracdiff_and_more_likely(file, name):
    y, theirs = column(file, name), R_FRACDIFF[file, name]
    ours = estimate(y, Orders(0, 0, 1, mean=True))
    assert ours.process.d == pytest.approx(theirs, abs=0.002)
    white, log_determinant = by_prediction(Process(theirs, 0.0, 1, NONE, NONE), (y - y.mean())[:, None])
    at_theirs = -(y.size * (np.log(2 * np.pi * np.mean(white**2)) + 1) + log_determinant) / 2
    assert ours.log_likelihood >= at_theirs


@needs_data
def test_the_memory_of_the_nile_is_the_textbooks():
    """d about 0.39 and its standard error about 0.03 (Beran, 1994, Statistics for Long-Memory Processes)."""
    found = ARFIMA(1).fit(column("nile_minima.csv", "level")).coefficients().iloc[0]
    assert found["value"] == pytest.approx(0.39, abs=0.005)
    assert found["standard_error"] == pytest.approx(0.03, abs=0.002)


@pytest.mark.parametrize("d", [-0.3, 0.3])
def test_bias_and_spread_on_simulated_series_are_those_of_theory(d):
    """The estimator is normal around d with variance 6 / (pi^2 n), but for a bias of order log(n) / n."""
    n, draws = 250, 60
    found = [
        estimate(y, Orders(0, 0, 1, mean=True)) for y in make_arfima(n, d, n_series=draws, random_state=3).T
    ]
    errors = np.array([e.process.d - d for e in found])
    spread = np.sqrt(6 / (np.pi**2 * n))
    assert abs(errors.mean()) < np.log(n) / n + 3 * spread / np.sqrt(draws)
    assert errors.std() == pytest.approx(spread, rel=3 / np.sqrt(2 * draws))
    said = np.array([np.sqrt(e.covariance[0, 0]) for e in found])
    assert said.mean() == pytest.approx(spread, rel=0.12)
    assert 0.88 <= np.mean(np.abs(errors) < 1.96 * said) <= 0.99


def test_standard_errors_of_all_coefficients_are_those_of_theory():
    """Whittle's information of ARFIMA(1, d, 0): pi^2/6, 1/(1 - ar^2), and -log(1 - ar)/ar between them."""
    n, d, ar = 20_000, 0.2, 0.5
    found = estimate(make_arfima(n, d, ar=[ar], random_state=4), Orders(1, 0, 1, mean=True))
    information = [[np.pi**2 / 6, -np.log(1 - ar) / ar], [-np.log(1 - ar) / ar, 1 / (1 - ar**2)]]
    np.testing.assert_allclose(found.covariance, np.linalg.inv(information) / n, rtol=0.1)
    assert found.process.d == pytest.approx(d, abs=3 * np.sqrt(found.covariance[0, 0]))
    assert not found.exact


def test_whittle_is_near_the_exact_likelihood_where_one_gives_way_to_the_other():
    y = make_arfima(2049, 0.35, random_state=5)
    long, short = (estimate(part, Orders(0, 0, 1, mean=True)) for part in (y, y[:2048]))
    assert (long.exact, short.exact) == (False, True)
    assert long.process.d == pytest.approx(short.process.d, abs=0.004)


def test_holes_leave_the_estimate_where_it_was_but_widen_it():
    y = make_arfima(1000, 0.4, random_state=6)
    holes = np.where(np.random.default_rng(0).random(1000) < 0.3, np.nan, y)
    holes[[0, -1]] = y[[0, -1]]
    whole, thinned = (estimate(values, Orders(0, 0, 1, mean=True)) for values in (y, holes))
    assert abs(thinned.process.d - whole.process.d) < 2 * np.sqrt(thinned.covariance[0, 0])
    assert 1.0 < thinned.covariance[0, 0] / whole.covariance[0, 0] < 2.0


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("name", ["d=.4", "d=-.3, ar 2, ma 1"])
def test_forecasts_are_the_best_linear_ones_with_the_mean_unknown(name, holes):
    process, n, horizon = PROCESSES[name], 90, 12
    y = 50 + make_arfima(n, process.d, ar=process.ar, ma=process.ma, random_state=7)
    if holes:
        y[[5, 40, 41, 42, 80, 89]] = np.nan
    space = fractional_space(process, 2.0, 0)
    means, spreads = space.moments(space.advance(space.empty(), Panel(y[None], np.arange(float(n)))), horizon)

    seen = np.flatnonzero(~np.isnan(y))
    places = np.append(seen, np.arange(n, n + horizon))
    table = arfima_autocovariance(n + horizon, process.d, ar=process.ar, ma=process.ma, variance=2.0)
    covariance = table[np.abs(np.subtract.outer(places, places))]
    own, cross, ahead = (covariance[: seen.size, : seen.size], covariance[seen.size :, : seen.size],
                         covariance[seen.size :, seen.size :])  # fmt: skip
    ones, weights = np.ones(seen.size), np.linalg.solve(own, cross.T)
    precision = ones @ np.linalg.solve(own, ones)
    mean = ones @ np.linalg.solve(own, y[seen]) / precision
    expected = mean + (y[seen] - mean) @ weights
    left = 1 - ones @ weights
    variance = np.diag(ahead - cross @ weights) + left**2 / precision
    np.testing.assert_allclose(means[0], expected, rtol=0, atol=1e-3)
    np.testing.assert_allclose(spreads[0], np.sqrt(variance), rtol=1e-3)


def test_forecasts_of_the_cumulated_series_cumulate_those_of_the_series():
    process = PROCESSES["d=-.3, ar 2, ma 1"]
    y = make_arfima(200, process.d, ar=process.ar, ma=process.ma, random_state=8)
    plain = fractional_space(process, 1.0, 0).known_start()
    expected, _ = plain.moments(plain.advance(plain.empty(), Panel(y[None], np.arange(200.0))), 6)
    for differences in (1, 2):
        expected, y = np.cumsum(expected, axis=1), np.append(0.0, np.cumsum(y))
        expected += y[-1]
        space = fractional_space(process, 1.0, differences)
        panel = Panel(y[None], np.arange(float(y.size)))
        found, _ = space.moments(space.advance(space.empty(), panel), 6)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.fixture(scope="module")
def places():
    """A series of white noise but for long memory from one season of 6 to the next."""
    return make_arfima(500, 0.35, n_series=6, random_state=9).ravel()


def test_a_seasonal_memory_is_found_and_told_from_a_plain_one(places):
    found = ARFIMA(6, season_length=6).fit(places).coefficients().set_index("name")
    assert found.loc["D", "value"] == pytest.approx(0.35, abs=3 * found.loc["D", "standard_error"])
    assert abs(found.loc["d", "value"]) < 3 * found.loc["d", "standard_error"]
    spread = np.sqrt(6 / (np.pi**2 * 3000))
    assert found.loc["D", "standard_error"] == pytest.approx(spread, rel=0.1)


def test_a_seasonal_forecast_weighs_the_same_place_of_past_seasons(places):
    y = places[:600]
    process = Process(0.0, 0.35, 6, NONE, NONE)
    space = fractional_space(process, 1.0, 0).known_start()
    means, spreads = space.moments(space.advance(space.empty(), Panel(y[None], np.arange(600.0))), 6)
    weights = fractional_weights(0.35, np.arange(1, 101))
    expected = [y[place::6][::-1] @ weights for place in range(6)]
    np.testing.assert_allclose(means[0], expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(spreads[0], 1.0, rtol=1e-12)


def test_the_forecast_error_of_one_step_approaches_that_of_the_innovations():
    y = make_arfima(4000, 0.4, random_state=10)
    model, errors = ARFIMA(1).fit(y[:2000]), []
    for value in y[2000:3000]:
        errors.append(value - model.forecast()[0])
        model.learn_one(value)
    assert np.std(errors) == pytest.approx(1.0, abs=3 / np.sqrt(2 * 1000))


def test_memory_beyond_a_half_is_said_to_need_a_difference():
    walk = make_arfima(400, 0.0, random_state=11).cumsum()
    with pytest.warns(FitWarning, match=r"series 0: its d is at the edge, 0\.\d+; one difference more"):
        model = ARFIMA(3).fit(walk)
    assert np.isfinite(model.predict(level=90)).all()
    assert ARFIMA(3, differences=1).fit(walk).coefficients()["value"][0] == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p": -1}, "p must be an integer from 0 to 5, got -1"),
        ({"q": 1.5}, "q must be an integer from 0 to 5, got 1.5"),
        ({"differences": 3}, "differences must be an integer from 0 to 2, got 3"),
        ({"season_length": 1}, "season_length must be at least 2, got 1"),
        ({"n_jobs": 0}, "n_jobs must be None"),
        ({"progress": "yes"}, "progress must be True"),
    ],
)
def test_an_option_out_of_range_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        ARFIMA(3, **options).fit(np.arange(50.0))
