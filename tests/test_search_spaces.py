"""What a trial draws stands for parameters, both ways, and default spaces hold what they are of."""

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from fracts import ARFIMA, ETS, GARCH, FracForecaster, FracRidge, WindowAverage
from fracts.spaces import Space, as_drawn, as_parameters, default_space

pytestmark = pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")

LENGTHS = st.lists(st.integers(2, 400), min_size=1, max_size=3, unique=True).map(tuple)


@given(
    modes=st.integers(2, 40),
    ends=st.tuples(st.floats(0.1, 5), st.floats(10, 1e6)),
    seasons=st.one_of(st.just("auto"), LENGTHS),
    penalty=st.one_of(st.just("auto"), st.floats(0.1, 1e5)),
)
def test_parameters_survive_the_way_into_a_trial_and_back(modes, ends, seasons, penalty):
    parameters = {"n_modes": modes, "timescales": ends, "season_lengths": seasons, "penalty": penalty}
    drawn = as_drawn(parameters)
    assert all(isinstance(value, int | float | str) for value in drawn.values())
    assert as_parameters(drawn, FracRidge(3)) == parameters


def test_an_end_of_the_timescales_that_is_not_searched_stays():
    model = FracRidge(3, timescales=(0.5, 100.0))
    assert as_parameters({"timescales_low": 2.0}, model) == {"timescales": (2.0, 100.0)}


MODELS = [
    FracRidge(3),
    FracForecaster(3),
    FracForecaster(3, n_heads=3, width=66),
    ARFIMA(3),
    ETS(3),
    GARCH(3),
    WindowAverage(3, 7),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("seasons", [(), (7,), (24, 168)], ids=str)
def test_what_a_default_space_draws_an_estimator_takes(model, seasons):
    space = Space.of(None, model, seasons)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(0))
    for _ in range(20):
        parameters = space.draw(study.ask())
        drawn = type(model)(**model.get_params(deep=False) | parameters)
        if "width" in parameters:
            assert drawn.width % (2 * drawn.n_heads) == 0 and drawn.width >= 2 * drawn.n_heads
        if "timescales" in parameters:
            low, high = parameters["timescales"]
            assert 0.3 <= low <= 4 and 64 <= high <= 2**20 and 4 <= parameters["n_modes"] <= 32
            assert parameters["anchor"] != "season" or seasons


@pytest.mark.parametrize("model", [m for m in MODELS if getattr(m, "width", 64) == 64], ids=str)
def test_a_default_space_holds_the_estimator_as_it_stands(model):
    start = Space.of(None, model, (24, 168)).start(model)
    assert start is not None
    parameters = as_parameters(start, model)
    assert parameters == {name: model.get_params()[name] for name in parameters}


def test_seasons_are_searched_only_where_there_are_several_and_none_are_given():
    choices = default_space(FracRidge(3), (24, 168))["season_lengths"].choices
    assert choices == ("auto", "24", "168")
    assert "season_lengths" not in default_space(FracRidge(3), (24,))
    assert "season_lengths" not in default_space(FracRidge(3, season_lengths=(24, 168)), (24, 168))


@pytest.mark.parametrize(
    ("distribution", "inside", "outside"),
    [
        (IntDistribution(2, 9), [2, 9, 4.0], [1, 10, 2.5, "2", True, None, np.nan]),
        (FloatDistribution(0.5, 2), [0.5, 1, 2.0], [0.4, 3, "1", False]),
        (CategoricalDistribution([0, "a", 2.5]), [0, "a", 2.5], [False, "b", 2]),
    ],
    ids=["int", "float", "categorical"],
)
def test_settings_lie_inside_a_space_or_are_refused(distribution, inside, outside):
    space = Space.of({"window": distribution}, WindowAverage(3, 1), ())
    for value in inside:
        assert space.check_settings({"window": value}) == {"window": value}
    for value in outside:
        with pytest.raises(ValueError, match=r"enqueue sets window=.*, outside of"):
            space.check_settings({"window": value})


def test_season_lengths_to_choose_from_are_tuples_as_the_estimator_takes_them():
    choices = [(7,), (), (7, 30), "auto"]
    space = Space.of({"season_lengths": CategoricalDistribution(choices)}, FracRidge(3), ())
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(0))
    drawn = [space.draw(study.ask())["season_lengths"] for _ in range(30)]
    assert set(drawn) == set(choices)
    assert all(isinstance(trial.params["season_lengths"], str) for trial in study.trials)
    assert space.start(FracRidge(3, season_lengths=(7, 30))) == {"season_lengths": "7 30"}
