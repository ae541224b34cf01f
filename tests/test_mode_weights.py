"""Weights of the modes: those of the law for every exponent, moved by a content that slow modes share."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts.memory import mode_timescales, power_law_weights
from fracts.mode_weights import (
    BASIS,
    EXPONENTS,
    KNOTS,
    exponent_basis,
    mode_scores,
    read_weights,
    write_weights,
)

TIMESCALES = (1.0, 131072.0)
TAU = mode_timescales(*TIMESCALES, 16)
RATES = torch.from_numpy(1 / TAU)


def scores(tau=TAU, timescales=TIMESCALES, window=512.0):
    return torch.from_numpy(mode_scores(tuple(tau), timescales, window))


def written(content, order, step, rate, observed=True):
    """What one token of one head writes, (modes,)."""
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    seen = torch.full((1, 1), observed)
    content = content.view(1, 1, 1, -1)
    return write_weights(content, order * one, scores()[1], step * one, rate * one, RATES, seen)[0, 0, 0]


@pytest.mark.parametrize("timescales, n_modes", [((1.0, 131072.0), 16), ((1.0, 1e4), 16), ((1.0, 100.0), 24)])
def test_the_kernel_of_any_exponent_is_that_of_its_own_weights(timescales, n_modes):
    """Between the exponents that were fitted, in float32, to 2.5 parts in a thousand at any lag."""
    tau = mode_timescales(*timescales, n_modes)
    exponents, t = np.geomspace(*EXPONENTS, 50), np.geomspace(*timescales, 300)
    exact = np.stack([power_law_weights(tau, exponent, *timescales) for exponent in exponents])
    basis = exponent_basis(torch.from_numpy(np.log(exponents)).float())
    prior = scores(tau, timescales).float()[:, :BASIS]
    read, write = (np.exp((basis.mT @ half).double().numpy()) for half in prior)
    unit_gain = np.append(-np.expm1(-1 / tau[:-1]) * tau[:-1], 1.0)
    decay = np.exp(-t[:, None] / tau)
    kernel = (read * write * unit_gain) @ decay.T
    assert np.abs(kernel / (exact @ decay.T) - 1).max() < 2.5e-3


@given(st.floats(0.05, 5.0), st.floats(0.1, 10.0))
def test_a_write_has_the_gain_of_an_input_held_for_a_base_step(step, rate):
    nothing, order = torch.zeros(KNOTS, dtype=torch.float64), torch.zeros(1, 1, 1, dtype=torch.float64)
    weights = read_weights(nothing.view(1, 1, 1, -1), order, scores()[1])[0, 0, 0]
    gain = written(nothing, 0.0, step, rate) / weights
    pace = rate * RATES[:-1]
    torch.testing.assert_close(gain[:-1], -torch.expm1(-step * pace) / pace, rtol=1e-9, atol=0)
    assert gain[-1].item() == pytest.approx(step)


def test_a_token_without_a_value_writes_nothing():
    nothing = torch.zeros(KNOTS, dtype=torch.float64)
    assert written(nothing, 0.0, 1.0, 1.0, observed=False).abs().max() == 0
    assert written(nothing, 0.0, 1.0, 1.0).min() > 0


@given(st.lists(st.floats(-5, 5), min_size=KNOTS, max_size=KNOTS), st.floats(-4, 4))
def test_no_content_changes_the_shares_of_modes_slower_than_the_window(content, order):
    """They keep the law among themselves, whatever training does."""
    slow = TAU >= 512
    content = torch.tensor(content, dtype=torch.float64).view(1, 1, 1, -1)
    order = torch.full((1, 1, 1), order, dtype=torch.float64)
    moved, still = (read_weights(c, order, scores()[0])[0, 0, 0, slow] for c in (content, 0 * content))
    torch.testing.assert_close(moved / moved.sum(), still / still.sum(), rtol=1e-9, atol=0)


@settings(max_examples=5)
@given(st.floats(0.01, 1e6))
def test_hats_of_the_content_share_out_every_mode(window):
    hats = scores(window=window)[0, BASIS:]
    torch.testing.assert_close(hats.sum(0), torch.ones(16, dtype=torch.float64))
    assert hats.min() >= 0 and (hats.max(1).values > 0).sum() >= 2


@given(st.floats(-4, 4))
def test_weights_are_shares(order):
    draws = torch.Generator().manual_seed(0)
    content = torch.randn(2, 3, 2, KNOTS, generator=draws, dtype=torch.float64)
    weights = read_weights(content, torch.full((2, 3, 2), order, dtype=torch.float64), scores()[0])
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 2, dtype=torch.float64))
    assert weights.min() > 0
