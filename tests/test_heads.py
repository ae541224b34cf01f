"""The head moves and stretches the quantiles of the linear path, which can never cross."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fracts.heads import PARTS, QuantileHead, pinball

LEVELS = torch.tensor([0.05, 0.25, 0.5, 0.75, 0.95], dtype=torch.float64)


def make_head(random_weights, seed, *, horizon=3, groups=2):
    draws = torch.Generator().manual_seed(seed)
    errors = torch.randn(groups, horizon, len(LEVELS), dtype=torch.float64, generator=draws).sort(-1).values
    head = QuantileHead(6, LEVELS, errors)
    random_weights(head, seed)
    return head, torch.randn(2, 4, 6, generator=draws)


@given(st.integers(0, 10_000), st.floats(0.1, 8.0))
def test_quantiles_never_cross(random_weights, seed, size):
    head, features = make_head(random_weights, seed)
    quantiles = head(size * features, torch.tensor([0, 1]))
    assert quantiles.shape == (2, 4, 3, 5)
    assert (quantiles.diff(dim=-1) >= 0).all()
    assert (quantiles.diff(dim=-1) > 0).any()


def test_a_silent_head_says_the_errors_of_the_series_group(random_weights):
    head, features = make_head(random_weights, 0)
    head.silence(*PARTS)
    quantiles = head(features, torch.tensor([1, 0]))
    expected = head.errors[[1, 0], None].expand_as(quantiles)
    torch.testing.assert_close(quantiles, expected, rtol=0, atol=1e-6)


def test_shift_moves_all_quantiles_and_stretch_one_side(random_weights):
    head, _ = make_head(random_weights, 0, horizon=1, groups=1)
    errors = head.errors[0, 0]

    def quantiles(shift, below, above):
        head.silence(*PARTS)
        with torch.no_grad():
            head.out.bias.copy_(torch.tensor([shift, below, above]))
        return head(torch.zeros(1, 6), torch.tensor([0]))[0, 0]

    torch.testing.assert_close(quantiles(2.0, 0.0, 0.0), errors + 2)
    below, above = quantiles(0.0, np.log(3), 0.0), quantiles(0.0, 0.0, np.log(3))
    torch.testing.assert_close(below[:2] - below[2], 3 * (errors[:2] - errors[2]))
    torch.testing.assert_close(below[2:], errors[2:])
    torch.testing.assert_close(above[3:] - above[2], 3 * (errors[3:] - errors[2]))
    torch.testing.assert_close(above[:3], errors[:3])


def test_the_loss_by_hand():
    quantiles = torch.tensor([[[1.0, 3.0]]])  # one origin, one lead, levels .1 and .9
    levels = torch.tensor([0.1, 0.9])
    loss = [pinball(quantiles, torch.tensor([[y]]), levels).item() for y in (0.0, 2.0, 5.0)]
    assert loss == pytest.approx([(0.9 * 1 + 0.1 * 3) / 2, (0.1 * 1 + 0.1 * 1) / 2, (0.1 * 4 + 0.9 * 2) / 2])


def test_a_silenced_part_adds_nothing_and_the_other_stays(random_weights):
    head, features = make_head(random_weights, 0)
    group = torch.tensor([0, 1])
    median = head.errors[group, :, 2][:, None].expand(2, 4, 3)
    both = head(features, group)
    head.silence("stretch")
    shifted = head(features, group)
    torch.testing.assert_close(shifted[..., 2], both[..., 2])
    torch.testing.assert_close(
        shifted.diff(dim=-1), head.errors[group].diff(dim=-1)[:, None].expand(2, 4, 3, 4)
    )
    random_weights(head, 0)
    head.silence("shift")
    stretched = head(features, group)
    torch.testing.assert_close(stretched[..., 2], median)
    torch.testing.assert_close(stretched.diff(dim=-1), both.diff(dim=-1), rtol=1e-4, atol=1e-5)


def test_unknown_truths_have_no_loss_and_no_gradient():
    quantiles = torch.zeros(2, 2, 3, requires_grad=True)
    truth = torch.tensor([[1.0, torch.nan], [torch.nan, torch.nan]])
    loss = pinball(quantiles, truth, LEVELS[1:4])
    torch.testing.assert_close(loss.isnan(), truth.isnan())
    loss.nanmean().backward()
    torch.testing.assert_close(quantiles.grad[0, 0], -LEVELS[1:4].float() / 3)
    assert quantiles.grad.isfinite().all() and quantiles.grad.count_nonzero() == 3


def test_the_middle_quantile_of_the_least_loss_is_the_median():
    truth = torch.tensor([0.0, 1.0, 2.0, 10.0, 50.0])[:, None]
    guesses = torch.arange(20.0)
    losses = [pinball(guess.expand(5, 1, 1), truth, torch.tensor([0.5])).mean() for guess in guesses]
    assert int(np.argmin(losses)) == 2


@given(st.integers(0, 10_000), st.floats(0.1, 100.0))
def test_what_the_head_says_stays_within_its_range(random_weights, seed, size):
    head, features = make_head(random_weights, seed)
    least, most = torch.tensor([-0.3, -0.2, -0.1]), torch.tensor([0.1, 0.4, 0.2])
    head.hold_within(least[:, None].expand(3, 3), most[:, None].expand(3, 3))
    said = head.moves(size * features)
    assert ((said >= least[:, None]) & (said <= most[:, None])).all()
    assert (said > least[:, None]).any()


def test_a_share_scales_what_is_said_and_a_level_is_added(random_weights):
    head, features = make_head(random_weights, 0)
    head.hold_within(torch.full((3, 3), -torch.inf), torch.full((3, 3), torch.inf))
    whole = head.moves(features)
    head.share[:], head.level[:] = torch.tensor([[0.5], [0.0], [1.0]]), torch.tensor([[0.0], [0.2], [0.1]])
    expected = whole * torch.tensor([[0.5], [0.0], [1.0]]) + torch.tensor([[0.0], [0.2], [0.1]])
    torch.testing.assert_close(head.moves(features), expected)
    shift = torch.stack([head.shift_of(features, lead) for lead in (1, 2, 3)], -1)
    torch.testing.assert_close(shift, expected[..., 0, :])


@pytest.mark.parametrize("n_known", [0, 2])
def test_the_mean_of_heads_says_the_mean_of_what_each_says(random_weights, n_known):
    def one(seed):
        head = QuantileHead(6, LEVELS, torch.zeros(1, 3, 5), n_known, torch.Generator())
        random_weights(head, seed)
        head.hold_within(torch.full((3, 3), -torch.inf), torch.full((3, 3), torch.inf))
        return head

    heads, draws = [one(seed) for seed in range(3)], torch.Generator().manual_seed(0)
    features = torch.randn(3, 2, 4, 6, generator=draws)  # of each head
    ahead = torch.randn(2, 4, 3, n_known, generator=draws)
    whole = QuantileHead.mean_of(heads).moves(torch.cat(list(features), -1), ahead)
    each = [head.moves(own, ahead) for head, own in zip(heads, features, strict=True)]
    torch.testing.assert_close(whole, torch.stack(each).mean(0))
    assert each[0].abs().min() > 0
