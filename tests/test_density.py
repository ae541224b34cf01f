"""Modes of gappy series are local means, those of full series what they always were."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts.bank import ModeBank
from fracts.density import LEAST, Density
from fracts.memory import mode_timescales
from fracts.ridge import FracRidge
from fracts.series import Panel

nan = np.nan
BANK = ModeBank(mode_timescales(1.0, 10_000.0, 8)[:-1], 2 * np.pi / np.array([12.0]))


def shares(values, times):
    """Shares after every row (series, rows, timescales) and raw modes."""
    panel, steps = Panel(values, times), np.diff(times, prepend=times[0])
    modes = BANK.run(BANK.empty(len(values)), values, steps)
    return Density(BANK).run(Density(BANK).empty(len(values)), panel, modes)[0], modes


@pytest.mark.parametrize("first", [0, 7])
def test_of_a_full_history_all_was_seen(first):
    values = np.ones((1, 20_000))
    values[:, :first] = nan
    share, modes = shares(values, np.arange(20_000.0))
    assert (share[:, first:] == 1).all()
    np.testing.assert_array_equal(Density(BANK).evened(modes, share)[:, first:], modes[:, first:])


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([0.2, 0.5, 0.8]))
def test_a_share_is_the_part_of_the_kernel_that_was_seen_up_to_the_last_value(seed, kept):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((1, 300)) < kept, 1.0, nan)
    values[0, [0, 250]] = 1.0
    share = shares(values, np.arange(300.0))[0][0]
    last = np.flatnonzero(~np.isnan(values[0]))[-1]
    age = last - np.arange(last + 1.0)
    kernel = np.exp(-age[:, None] / BANK.timescales)
    expected = kernel[~np.isnan(values[0, : last + 1])].sum(0) / kernel.sum(0)
    np.testing.assert_allclose(share[-1], expected, rtol=1e-6)
    np.testing.assert_array_equal(share[last:], np.broadcast_to(share[last], share[last:].shape))


def test_a_constant_leaves_modes_of_its_size_however_it_was_seen():
    rng = np.random.default_rng(0)
    values = np.where(rng.random((1, 5000)) < 0.5, 3.0, nan)
    values[0, [0, -1]] = 3.0
    share, modes = shares(values, np.arange(5000.0))
    even = Density(BANK).evened(modes, share)[0, -1, 0, : BANK.timescales.size].real
    full = 3 * -np.expm1(-5000 / BANK.timescales)
    np.testing.assert_allclose(even, full * share[0, -1] * (1 + LEAST) / (share[0, -1] + LEAST), rtol=1e-12)
    assert (np.abs(even / full - 1) < 0.1).all()


def test_evening_out_lowers_the_error_where_half_of_the_rows_are_missing(monkeypatch):
    rng = np.random.default_rng(3)
    y = np.zeros(3000)
    for t in range(2, 3000):
        y[t] = 1.6 * y[t - 1] - 0.63 * y[t - 2] + rng.normal()
    seen = pd.Series(np.where(rng.random(3000) < 0.5, y, nan), pd.RangeIndex(3000))

    def error():
        model = FracRidge(5, season_lengths=()).fit(seen[:2000])
        misses = []
        for at in range(2000, 2900):
            model.learn_one(seen[at])
            if not np.isnan(seen[at]):
                misses.append(model.forecast() - y[at + 1 : at + 6])
        return np.sqrt(np.mean(np.square(misses)))

    even = error()
    monkeypatch.setattr("fracts.density.LEAST", 1e9)  # which leaves the modes as they are
    assert even < 0.95 * error()
