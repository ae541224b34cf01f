"""Each variant of the layer is what its name says, and the ratio of errors is what it says."""

import numpy as np
import pytest
import torch
from ablations import VARIANTS
from frac import Frac
from one_step import SEGMENT, OneStep, Series, error_ratio, train
from variants import CHANGES, TIMESCALES

from fracts.memory import mode_timescales
from fracts.mode_weights import BASIS, KNOTS, exponent_basis, read_weights

MODES = 16
TAU = torch.from_numpy(mode_timescales(*TIMESCALES, MODES))


def changed(name, **sizes):
    sizes = {"n_heads": 2, "n_modes": MODES} | sizes
    draws = torch.Generator().manual_seed(0)
    return Frac(8, change=CHANGES.get(name), generator=draws, **sizes)


def shares(frac, exponent, which=0):
    """Weights of the modes for an exponent, without a content: (modes,)."""
    scores = frac.mixer.scores[which].double()
    order = torch.full((1, 1, 1), exponent / 2).logit().double()
    knots = torch.zeros(1, 1, 1, len(scores) - BASIS, dtype=torch.float64)
    return read_weights(knots, order, scores)[0, 0, 0]


def features(time=20):
    draws = torch.Generator().manual_seed(1)
    return torch.randn(2, 2, time, 8, generator=draws).unbind()


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_passes_gradients_and_may_be_cut(name):
    variant = VARIANTS[name]
    frac = variant.make(8, 2)(torch.Generator().manual_seed(0))
    value, gate = features(30)
    whole, _ = frac(value, gate)
    first, state = frac(value[:, :11], gate[:, :11])
    second, _ = frac(value[:, 11:], gate[:, 11:], state)
    torch.testing.assert_close(torch.cat([first, second], 1), whole, rtol=1e-4, atol=1e-6)
    whole.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in frac.parameters())


def test_at_order_one_no_token_and_no_training_changes_the_order():
    frac = changed("a = 1")
    heads = frac.mixer.n_heads
    value, gate = features()
    before = [x.detach().clone() for x in frac.mixer._apart(frac.mixer.controls(gate))]
    optimiser = torch.optim.Adam(frac.parameters(), 0.1)
    for _ in range(3):
        optimiser.zero_grad()
        frac(value, gate)[0].square().sum().backward()
        optimiser.step()
    after = frac.mixer._apart(frac.mixer.controls(gate))
    for order in (1, 2):
        assert torch.equal(after[order], before[order]) and before[order].std() == 0
    assert not torch.equal(after[0], before[0])
    assert len(frac.mixer.controls.bias) == heads * (4 + 2 * KNOTS)


def test_without_a_write_prior_all_modes_are_written_alike():
    frac = changed("no write prior")
    torch.testing.assert_close(shares(frac, 0.5, 1), torch.full((MODES,), 1 / MODES).double())
    assert shares(frac, 0.5, 0).std() > 0.01


def test_free_timescales_start_on_the_grid_and_learn():
    frac = changed("no priors, free timescales")
    torch.testing.assert_close(frac.mixer.rates.double(), 1 / TAU, rtol=1e-5, atol=0)
    value, gate = features()
    optimiser = torch.optim.Adam(frac.parameters(), 0.1)
    frac(value, gate)[0].square().sum().backward()
    optimiser.step()
    moved = frac.mixer.rates.double() * TAU
    assert (moved[:-1] - 1).abs().min() > 0.01 and frac.mixer.rates[-1] == 0


@pytest.mark.parametrize("exponent", [0.1, 0.7, 1.5])
def test_asymptotic_weights_are_half_a_power_of_the_timescale(exponent):
    weights = shares(changed("asymptotic weights, no tail mode"), exponent)
    law = TAU[:-1] ** (-exponent / 2)
    torch.testing.assert_close(weights[:-1], law / law.sum(), rtol=1e-5, atol=0)
    assert weights[-1] < 1e-12


def test_without_the_tail_mode_the_others_keep_their_shares():
    without, with_tail = shares(changed("no tail mode"), 0.3), shares(changed(None), 0.3)
    assert without[-1] < 1e-9 < with_tail[-1]
    torch.testing.assert_close(without[:-1], with_tail[:-1] / with_tail[:-1].sum(), rtol=1e-5, atol=0)


def test_the_uniform_grid_has_even_spacing_between_the_same_ends():
    tau = 1 / changed("uniform grid").mixer.rates[:-1].double()
    assert tau[0].item() == pytest.approx(TAU[0].item()) and tau[-1].item() == pytest.approx(TAU[-2].item())
    assert tau.diff().std() < 1e-4 * tau.diff().mean()


def test_contents_reach_every_mode_or_none():
    every, none = changed("a content term for every mode"), changed("no content terms")
    assert torch.equal(every.mixer.scores[0, BASIS:], torch.eye(MODES))
    assert none.mixer.scores[:, BASIS:].abs().max() == 0
    prior = changed(None).mixer.scores[:, :BASIS]
    assert torch.equal(every.mixer.scores[:, :BASIS], prior)
    assert torch.equal(none.mixer.scores[:, :BASIS], prior)


def test_the_basis_begins_as_the_asymptotic_weights_take_it():
    basis = exponent_basis(torch.tensor([0.3, 1.7]).log())
    torch.testing.assert_close(basis[:2], torch.tensor([[1.0, 1.0], [-0.7, 0.7]]), rtol=1e-5, atol=1e-6)


class Echo(torch.nn.Module):
    """Says that the next value is the last one."""

    def forward(self, z, state=None):
        return z, None


def test_the_error_ratio_is_one_beside_a_rival_that_says_the_same():
    values = np.random.default_rng(0).normal(size=SEGMENT + 100)
    rival = np.append(0.0, values[:-1])
    assert error_ratio(Echo(), Series(values, 50, rival)) == pytest.approx(1.0, rel=1e-6)
    best = Series(values, 50, np.zeros_like(values))
    assert error_ratio(Echo(), best) == pytest.approx(2.0, rel=0.1)


def test_training_learns_a_series_that_alternates():
    values = np.tile([1.0, -1.0], 400) + 0.01 * np.random.default_rng(0).normal(size=800)
    series = Series(values, 700, np.zeros(800))
    model = OneStep(
        lambda draws: Frac(32, n_heads=2, n_modes=4, generator=draws),
        odd_value=True,
        even_gates=True,
        generator=torch.Generator().manual_seed(0),
    )
    train(model, series, learning_rate=1e-2, steps=30, seed=0)
    assert error_ratio(model, series) < 0.05
