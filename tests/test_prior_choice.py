"""The penalty and the anchor of the linear path may be given instead of chosen."""

import numpy as np
import pytest

from fracts import FracForecaster, FracRidge


def noisy_week(rows=400):
    rng = np.random.default_rng(0)
    return 10 + np.sin(2 * np.pi * np.arange(rows) / 7) + 0.3 * rng.normal(size=rows).cumsum()


MODELS = {
    "ridge": lambda **options: FracRidge(3, season_lengths=7, **options),
    "linear path": lambda **options: FracForecaster(3, season_lengths=7, n_layers=0, **options),
}
models = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


@models
def test_a_given_penalty_and_anchor_are_taken_and_the_rest_is_chosen(make):
    y = noisy_week()
    model = make(penalty=37.0, anchor="last").fit(y)
    assert model._path.penalty.strength == 37.0
    assert [anchor.season_length for anchor in model._path.memory.anchors] == [1]
    assert make(anchor="centre").fit(y)._path.memory.anchors == (None,)
    seasons = make(anchor="season").fit(y)._path.memory.anchors
    assert [season.season_length for season in seasons] == [7, 7]


@models
def test_where_coefficients_are_learned_on_what_was_chosen_gives_the_same_forecast_when_given(make):
    y = noisy_week()
    chosen = make(forgetting=1.0).fit(y)
    (anchor,) = chosen._path.memory.anchors
    kind = "centre" if anchor is None else "last" if anchor.season_length == 1 else "season"
    given = make(forgetting=1.0, penalty=chosen._path.penalty.strength, anchor=kind).fit(y)
    np.testing.assert_array_equal(given.forecast(level=90), chosen.forecast(level=90))


@models
def test_a_stronger_prior_means_smaller_weights(make):
    sizes = []
    for strength in (1.0, 1e6):
        weights = make(penalty=strength, anchor="last").fit(noisy_week())._path.coefficients
        sizes.append(np.abs(weights).sum())
    assert sizes[1] < 0.1 * sizes[0]


def test_a_history_too_short_to_choose_takes_the_penalty_given():
    model = FracRidge(3, season_lengths=(), penalty=2.5).fit([1.0, 2.0, 4.0, 3.0])
    assert model.penalty_.strength == 2.5


FAULTS = [
    ({"penalty": 0}, "penalty must be 'auto' or a number above 0, got 0"),
    ({"penalty": "strong"}, "penalty must be 'auto' or a number above 0, got 'strong'"),
    ({"penalty": True}, "penalty must be"),
    ({"anchor": "first"}, "anchor must be 'auto', 'centre', 'last' or 'season', got 'first'"),
    ({"anchor": "season", "season_lengths": ()}, "anchor='season' came without a season"),
]


@pytest.mark.parametrize(("options", "told"), FAULTS)
@pytest.mark.parametrize("model", [FracRidge, FracForecaster])
def test_what_is_no_penalty_or_anchor_is_refused(model, options, told):
    with pytest.raises(ValueError, match=told):
        model(3, **{"season_lengths": 7} | options).fit(noisy_week())
