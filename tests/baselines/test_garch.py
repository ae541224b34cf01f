"""GARCH against the package `arch`, and the laws of the door on histories long enough for it."""

import pickle

import numpy as np
import pytest

from fracts import FitWarning
from fracts.baselines import GARCH
from fracts.datasets import load_sp500_daily


@pytest.fixture(scope="module")
def returns():
    return 100 * np.log(load_sp500_daily()["close"]).diff().to_numpy()[1:1801]


@pytest.mark.parametrize("fractional", [False, True])
def test_variances_are_those_of_arch(returns, fractional):
    from arch import arch_model

    model = GARCH(5, fractional=fractional).fit(returns)
    scale = returns.std()
    theirs = arch_model(
        returns / scale, mean="Constant", vol="FIGARCH" if fractional else "GARCH", rescale=False
    )
    found = theirs.fit(disp="off", show_warning=False)
    expected = found.forecast(horizon=1).variance.iloc[-1].to_numpy() * scale**2
    table = model.predict(quantiles=[0.1, 0.9])
    spreads = (table[:, 2] - table[:, 1]) / 2.5631031
    np.testing.assert_allclose(spreads[0] ** 2, expected[0], rtol=1e-3)
    later = found.forecast(
        horizon=5, method="simulation", simulations=20_000, random_state=np.random.RandomState(0)
    )
    np.testing.assert_allclose(spreads**2, later.variance.iloc[-1] * scale**2, rtol=0.05)


def test_a_shock_widens_the_intervals_and_fades(returns):
    model = GARCH(50).fit(returns)
    calm = model.predict(level=90)
    wild = model.update([8 * returns.std()]).predict(level=90)
    ratio = (wild[:, 2] - wild[:, 1]) / (calm[:, 2] - calm[:, 1])
    assert ratio[0] > 1.5 and ratio[-1] < ratio[0]
    fat = GARCH(1, distribution="t").fit(returns).predict(quantiles=[0.005, 0.25])
    thin = GARCH(1).fit(returns).predict(quantiles=[0.005, 0.25])
    assert (fat[0, 0] - fat[0, 1]) / (fat[0, 2] - fat[0, 1]) != pytest.approx(0)
    assert (fat[0, 1] - fat[0, 0]) / (fat[0, 2] - fat[0, 0]) > (thin[0, 1] - thin[0, 0]) / (
        thin[0, 2] - thin[0, 0]
    )


def test_a_hundred_values_are_wanted():
    with pytest.warns(FitWarning, match="GARCH: series 0: 99 values are too few, 100 are needed"):
        GARCH(2).fit(np.random.default_rng(0).normal(size=99))


def test_a_stream_with_holes_equals_one_pass_and_goes_on_in_a_copy(returns):
    y = returns[:400].copy()
    y[[120, 250, 251, 330]] = np.nan
    model = GARCH(5).fit(y[:300])
    whole = model.apply(y).predict(level=90)
    copied = pickle.loads(pickle.dumps(model)).update(y[300:320])
    for value in y[320:]:
        copied.learn_one(value)
    np.testing.assert_allclose(copied.predict(level=90), whole, rtol=1e-10)
    other = model.apply(y[:10]).set_state(copied.get_state())
    np.testing.assert_array_equal(other.predict(level=90), copied.predict(level=90))


@pytest.mark.parametrize("unit", [1000.0, 1e-3, -1.0])
def test_units_do_not_matter(returns, unit):
    forecast = GARCH(5).fit(returns[:400]).predict(level=90)
    scaled = GARCH(5).fit(unit * returns[:400]).predict(level=90) / unit
    if unit < 0:
        scaled = scaled[:, [0, 2, 1]]
    np.testing.assert_allclose(scaled, forecast, atol=1e-3 * returns.std())
