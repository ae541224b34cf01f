"""What modes forecast of fractional noise, and that short histories lean on it."""

import numpy as np
import pytest

from fracts import FracRidge
from fracts.datasets import arfima_one_step, make_arfima
from fracts.fractional_prior import ORDERS, fractional_forecasts
from fracts.memory import mode_timescales

TAU = mode_timescales(1.0, 131072.0, 16)[:-1]


@pytest.mark.parametrize("order", [0.2, 0.4])
def test_the_weights_forecast_fractional_noise_as_the_exact_predictor_does(order):
    weights = fractional_forecasts(TAU, 1)[ORDERS.index(order), :, 0]
    y = make_arfima(6000, order, random_state=0)
    modes, said = np.zeros(TAU.size), np.empty(y.size)
    for t, value in enumerate(y):
        said[t] = modes @ weights
        modes += (value - modes) * -np.expm1(-1 / TAU)
    ours, exact = (np.mean((each[500:] - y[500:]) ** 2) for each in (said, arfima_one_step(y, order)))
    assert ours < 1.005 * exact


def test_the_farther_ahead_the_less_is_said_of_noise_that_forgets():
    sums = fractional_forecasts(TAU, 500).sum(1)  # of a series that long stayed where it is
    assert (np.diff(sums[:, ::20]) < 0).all()
    assert (sums > 0).all() and (sums < 1.001).all()


def test_a_short_history_of_fractional_noise_needs_no_more_than_its_order():
    ratios = []
    for seed in range(8):
        y = make_arfima(520, 0.4, random_state=seed)
        model = FracRidge(1, season_lengths=()).fit(y[:120])
        said = np.empty(400)
        for t, value in enumerate(y[120:]):
            said[t] = model.forecast(point="mean")[0]
            model.learn_one(value)
        best = arfima_one_step(y, 0.4)[120:]
        ratios.append(np.mean((said - y[120:]) ** 2) / np.mean((best - y[120:]) ** 2))
    assert np.mean(ratios) < 1.09
