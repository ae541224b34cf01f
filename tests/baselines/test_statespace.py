"""The Kalman filter against statsmodels' exact diffuse one, and against the models written out."""

import numpy as np
import pytest
from statsmodels.tsa.statespace.sarimax import SARIMAX
from statsmodels.tsa.statespace.structural import UnobservedComponents

from fracts.baselines.statespace import StateSpace
from fracts.series import Panel

LEVELS = np.array([0.1, 0.5, 0.9])


def of_statsmodels(model, params):
    """The same model as one of ours, in units of variance 1."""
    model.update(params)
    ssm = model.ssm
    ssm.initialize(model.initialization) if getattr(model, "initialization", None) else None
    size = ssm.k_states
    selection = ssm["selection"]
    noise = selection @ ssm["state_cov"] @ selection.T
    initialization = ssm.initialization
    start, diffuse, spread = initialization(model=ssm)
    return StateSpace(
        ssm["transition"][None],
        ssm["design"],
        noise[None],
        np.zeros((1, size)),
        ssm["obs_cov"][0],
        np.ones(1),
        start[None],
        spread[None],
        diffuse[None],
    )


def series(n=80, seed=0, holes=0.2):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n).cumsum() + 3 * np.sin(np.arange(n) * np.pi / 2)
    y[rng.random(n) < holes] = np.nan
    return y


def panel_of(*values):
    return Panel(np.array(values), np.arange(float(len(values[0]))))


MODELS = {
    "trend and season": (
        lambda y: UnobservedComponents(y, "lltrend", seasonal=4, use_exact_diffuse=True),
        [1.0, 0.5, 0.1, 0.2],
    ),
    "seasonal ARIMA": (
        lambda y: SARIMAX(y, order=(1, 1, 1), seasonal_order=(0, 1, 1, 4), use_exact_diffuse=True),
        [0.4, 0.3, -0.5, 1.3],
    ),
    "seasonal differences alone": (
        lambda y: SARIMAX(y, order=(1, 0, 0), seasonal_order=(0, 1, 1, 4), use_exact_diffuse=True),
        [0.4, -0.5, 1.3],
    ),
    "stationary": (lambda y: SARIMAX(y, order=(2, 0, 1)), [0.5, 0.2, 0.4, 0.7]),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_errors_and_forecasts_are_those_of_the_exact_diffuse_filter_of_statsmodels(name, holes):
    make, params = MODELS[name]
    y = series(holes=holes)
    theirs = make(y)
    result = theirs.smooth(params)
    space = of_statsmodels(theirs, params)
    state, errors, variances = space.filter(space.empty(), panel_of(y))
    known = ~np.isnan(errors[0])
    assert known.sum() == np.count_nonzero(~np.isnan(y)) - int(np.linalg.matrix_rank(space.diffuse[0]))
    np.testing.assert_allclose(errors[0, known], result.forecasts_error[0, known], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(variances[0, known], result.forecasts_error_cov[0, 0, known], rtol=1e-7)
    expected = result.get_forecast(9)
    means, spreads = space.moments(state, 9)
    np.testing.assert_allclose(means[0], expected.predicted_mean, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(spreads[0], expected.se_mean, rtol=1e-7)


def test_a_gap_is_as_many_rows_without_value():
    make, params = MODELS["trend and season"]
    space = of_statsmodels(make(series()), params)
    y = series(holes=0.0)
    y[5:70] = np.nan
    full = space.advance(space.empty(), panel_of(y))
    rows = np.flatnonzero(~np.isnan(y))
    gapped = space.advance(space.empty(), Panel(y[None, rows], rows.astype(float)))
    for name in full:
        np.testing.assert_allclose(gapped[name], full[name], rtol=1e-9, atol=1e-9)


def smoothing(alpha, variance=1.0):
    """Simple exponential smoothing with a start that is not known."""
    one = np.ones((1, 1))
    gain = np.array([[alpha]])
    return StateSpace(
        one[None],
        one,
        gain[None] * alpha,
        gain,
        one[0],
        np.array([variance]),
        0 * one,
        0 * one[None],
        one[None],
    )


def test_one_source_of_error_is_exponential_smoothing():
    space = smoothing(0.3)
    y = series(holes=0.0)
    state = space.advance(space.empty(), panel_of(y))
    level = y[0]
    for value in y[1:]:
        level += 0.3 * (value - level)
    means, spreads = space.moments(state, 5)
    np.testing.assert_allclose(means[0], level, rtol=1e-12)
    np.testing.assert_allclose(spreads[0], np.sqrt(1 + np.arange(5) * 0.3**2), rtol=1e-12)


def test_stacked_models_do_what_each_does_alone():
    make, params = MODELS["seasonal ARIMA"]
    first, second = of_statsmodels(make(series()), params), smoothing(0.3, variance=4.0)
    together = StateSpace.stack([first, second])
    a, b = series(seed=1), series(seed=2)
    state = together.advance(together.empty(), panel_of(a, b))
    joint = together.forecast(state, 6, LEVELS)
    for k, (space, y) in enumerate(((first, a), (second, b))):
        alone = space.forecast(space.advance(space.empty(), panel_of(y)), 6, LEVELS)
        np.testing.assert_allclose(joint.quantiles[k], alone.quantiles[0], rtol=1e-10)
    swapped = together.take(np.array([1, 0]))
    state = swapped.advance(swapped.empty(), panel_of(b, a))
    np.testing.assert_allclose(swapped.forecast(state, 6, LEVELS).mean, joint.mean[::-1], rtol=1e-12)


def test_the_covariance_stays_one_over_many_steps():
    make, params = MODELS["trend and season"]
    space = of_statsmodels(make(series()), params)
    state = space.advance(space.empty(), panel_of(np.random.default_rng(0).normal(size=20_000)))
    assert not state["diffuse"].any()
    assert np.linalg.eigvalsh(state["spread"][0]).min() > -1e-12


@pytest.mark.parametrize("alone", [True, False])
def test_a_run_that_has_settled_is_its_rows_one_by_one(alone):
    make, params = MODELS["stationary"]
    spaces = [of_statsmodels(make(series()), params), smoothing(0.6)]
    space = StateSpace.stack(spaces[:1] if alone else spaces)
    values = np.array([series(400, seed=1, holes=0.0), series(400, seed=2, holes=0.0)])[: len(space.design)]
    values[-1, 100:180] = np.nan  # so long that without news too nothing changes any more
    state, errors, variances = space.filter(space.empty(), panel_of(*values))
    stepped = space.empty()
    for row in range(400):
        part = Panel(values[:, row : row + 1], np.array([float(row)]))
        stepped, error, variance = space.filter(stepped, part)
        np.testing.assert_allclose(errors[:, row], error[:, 0], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(variances[:, row], variance[:, 0], rtol=1e-10)
    for name in state:
        np.testing.assert_allclose(state[name], stepped[name], rtol=1e-10, atol=1e-10)
