"""Frequencies are found where there is a season, and not where there is none."""

import numpy as np
import pytest

from fracts import FracRidge
from fracts.datasets import make_arfima
from fracts.seasons import repeated_lengths, strongest_frequencies

T = np.arange(2000.0)


def two_seasons(rng):
    """A day of 24 with a second harmonic and a weaker week of 168, in noise."""
    day, week = 2 * np.pi * T / 24, 2 * np.pi * T / 168
    return 3 * np.sin(day) + np.cos(2 * day + 1) + 0.7 * np.sin(week) + rng.normal(size=T.size)


def periods(values, times=T, lengths=(24, 168)):
    return (2 * np.pi / strongest_frequencies(np.atleast_2d(values), times, lengths, limit=12)).round(6)


@pytest.mark.parametrize("slope", [0.0, 0.05])
def test_the_harmonics_of_two_seasons_are_found_strongest_first(slope):
    y = two_seasons(np.random.default_rng(0)) + slope * T
    np.testing.assert_array_equal(periods(y)[:3], [24, 12, 168])


def test_missing_values_and_dropped_rows_are_all_the_same():
    rng = np.random.default_rng(1)
    y, seen = two_seasons(rng), rng.random(T.size) < 0.7
    np.testing.assert_array_equal(periods(np.where(seen, y, np.nan)), periods(y[seen], T[seen]))
    np.testing.assert_array_equal(periods(y[seen], T[seen])[:3], [24, 12, 168])


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_and_level_do_not_matter(unit):
    y = two_seasons(np.random.default_rng(2))
    np.testing.assert_array_equal(periods(unit * (y + 100)), periods(y))


@pytest.mark.parametrize("noise", ["white", "long memory", "random walk"])
def test_noise_has_no_season_in_97_histories_of_100(noise):
    make = {
        "white": lambda seed: np.random.default_rng(seed).normal(size=T.size),
        "long memory": lambda seed: make_arfima(T.size, 0.4, random_state=seed),
        "random walk": lambda seed: np.random.default_rng(seed).normal(size=T.size).cumsum(),
    }[noise]
    assert sum(periods(make(seed)).size > 0 for seed in range(100)) <= 3


def test_a_constant_series_has_none_and_the_limit_keeps_the_strongest():
    assert periods(np.full(T.size, 7.0)).size == 0
    y = two_seasons(np.random.default_rng(0))
    found = strongest_frequencies(y[None], T, [24], limit=1)
    np.testing.assert_allclose(found, [2 * np.pi / 24])


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("lengths", [(7,), (24, 168)])
def test_lengths_after_which_values_repeat_are_found_without_a_calendar(lengths, missing):
    rng = np.random.default_rng(3)
    y = sum(rng.normal(size=n)[T.astype(int) % n] for n in lengths) + 0.3 * rng.normal(size=T.size)
    y = np.where(rng.random(T.size) < missing, np.nan, y)
    assert repeated_lengths(y[None], T) == lengths
    assert FracRidge(2).fit(y).season_lengths_ == lengths
    assert FracRidge(2, season_lengths=()).fit(y).season_lengths_ == ()


@pytest.mark.parametrize("n", [60, 500])
@pytest.mark.parametrize("law", ["white", "long memory", "random walk", "local mean", "smooth"])
def test_noise_repeats_after_no_length(law, n):
    rng = np.random.default_rng(4)
    for seed in range(20):
        noise = rng.normal(size=n + 4)
        y = {
            "white": noise,
            "long memory": make_arfima(n, 0.4, random_state=seed),
            "random walk": noise.cumsum(),
            "local mean": np.convolve(noise, np.ones(5), "valid"),
            "smooth": noise.cumsum().cumsum(),
        }[law][:n]
        assert repeated_lengths(y[None], np.arange(float(n))) == ()
