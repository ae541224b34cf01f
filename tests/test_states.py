"""States are arrays that travel without the weights, in any order and any shards; nothing else fits."""

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest

from fracts import FracForecaster, FracRidge, Mean, Naive

LEVELS = [50, 90]


def test_a_state_set_is_the_model_it_came_from(lively, two_series):
    moved = copy.deepcopy(lively).update(two_series[150:170])
    lively.set_state(moved.get_state())
    pd.testing.assert_frame_equal(lively.predict(level=LEVELS), moved.predict(level=LEVELS), check_exact=True)
    after = (model.update(two_series[170:]).predict(5, level=LEVELS) for model in (lively, moved))
    pd.testing.assert_frame_equal(*after, check_exact=True)
    assert lively.cutoff_ == moved.cutoff_ == two_series.index[-1]


def test_a_state_fits_in_any_order_of_series(lively, two_series):
    turned = copy.deepcopy(lively).set_state(lively.get_state(["b", "a"]))
    assert turned.series_ids_ == ["b", "a"]
    for model in (lively, turned):
        model.update(two_series[150:160]).learn_many(two_series.iloc[160][model.series_ids_].to_numpy())
    expected = lively.predict(level=LEVELS)
    np.testing.assert_allclose(turned.predict(level=LEVELS)[expected.columns], expected, rtol=1e-6)
    assert turned.score(two_series[161:]) == pytest.approx(lively.score(two_series[161:]), rel=1e-5)


def test_shards_joined_are_the_whole(lively, two_series):
    shards = []
    for name in lively.series_ids_:
        shard = copy.deepcopy(lively).set_state(lively.get_state([name]))
        shards.append(shard.update(two_series.loc[:, [name]][150:]).get_state())
        assert list(shard.predict()) == [name]
    joined = {key: np.concatenate([shard[key] for shard in shards]) for key in shards[0]}
    whole = copy.deepcopy(lively).update(two_series[150:]).predict(level=LEVELS)
    np.testing.assert_allclose(lively.set_state(joined).predict(level=LEVELS), whole, rtol=1e-5)


def test_series_of_a_long_frame_keep_their_own_cutoffs_in_any_order(two_series):
    long = (
        two_series.rename_axis("ds").reset_index().melt("ds", var_name="unique_id", value_name="y").dropna()
    )
    model = Mean(3).fit(long.iloc[:-2])
    ahead = model.predict().set_index(["unique_id", "ds"])
    turned = copy.deepcopy(model).set_state(model.get_state(["b", "a"]))
    assert turned.cutoff_ == model.cutoff_ and len(set(model.cutoff_.values())) == 2
    pd.testing.assert_frame_equal(turned.predict().set_index(["unique_id", "ds"]).loc[ahead.index], ahead)


def test_taking_a_state_changes_nothing_and_the_state_goes_its_own_way(lively):
    before, expected = pickle.dumps(lively), lively.forecast(level=LEVELS)
    state = lively.get_state()
    assert pickle.dumps(lively) == before
    lively.set_state(state)
    for array in state.values():
        if array.dtype.kind in "fc":
            array += 1.0
    np.testing.assert_array_equal(lively.forecast(level=LEVELS), expected)


def test_every_array_has_the_series_first_and_some_of_them_may_be_asked_for(lively):
    whole, part = lively.get_state(), lively.get_state("b")
    assert {len(array) for array in whole.values()} == {2}
    for name, array in part.items():
        np.testing.assert_array_equal(array, whole[name][1:])
    own = {name: array for name, array in whole.items() if name in lively._state}
    assert lively.state_nbytes == sum(array.nbytes for array in own.values()) // 2


def without(name):
    return lambda state: {key: array for key, array in state.items() if key != name}


def with_array(name, change):
    return lambda state: state | {name: change(state[name])}


FAULTS = {
    "a list": (lambda state: list(state), TypeError, "a dict of arrays"),
    "a number among arrays": (lambda state: state | {"cutoff": 3}, TypeError, "a dict of arrays"),
    "no cutoff": (without("cutoff"), ValueError, r"lacks \['cutoff'\]"),
    "no array of the model": (without("sum"), ValueError, r"lacks \['sum'\]"),
    "no weights": (without("weights"), ValueError, r"lacks \['weights'\]"),
    "a later schema": (
        with_array("schema", lambda x: x + 1),
        ValueError,
        "another schema: schema is 2, here 1",
    ),
    "more than a state": (lambda state: state | {"more": state["sum"]}, ValueError, r"holds \['more'\]"),
    "float32": (with_array("sum", np.float32), ValueError, "array sum of the state is float32"),
    "a series short": (with_array("sum", lambda x: x[:1]), ValueError, r"array sum .* shape \(1,\)"),
    "one array deeper": (with_array("sum", lambda x: x[:, None]), ValueError, r"shape \(2, 1\)"),
    "two cutoffs": (with_array("cutoff", lambda x: x + np.arange(2)), ValueError, "differ in cutoff"),
    "one series twice": (with_array("id", lambda x: x[[0, 0]]), ValueError, "comes twice"),
    "no series": (lambda state: {k: x[:0] for k, x in state.items()}, ValueError, "at least one series"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_no_state_of_this_model_is_refused_and_nothing_moves(fault, two_series):
    change, error, told = FAULTS[fault]
    model = Mean(3).fit(two_series)
    before, state = pickle.dumps(model), change(model.get_state())
    with pytest.raises(error, match=told):
        model.set_state(state)
    assert pickle.dumps(model) == before


def test_the_state_of_other_weights_is_refused(two_series, random_weights):
    y = two_series["a"]
    ridge, other = FracRidge(2).fit(y), FracRidge(2).fit(y[:-1])
    with pytest.raises(ValueError, match=r"other weights: weights is .* `load` those"):
        ridge.set_state(other.get_state())
    network = FracForecaster(2, width=8, n_layers=1, n_heads=2, max_epochs=1, random_state=0).fit(y)
    state = network.get_state()
    random_weights(network.network_, 1)
    with pytest.raises(ValueError, match="other weights"):
        network.set_state(state)


def test_a_state_brings_its_own_time_and_its_name():
    stamps = pd.date_range("2024-03-01 06:00", periods=40, freq="D", name="when")
    fitted = Naive(2).fit(pd.Series(np.arange(40.0), stamps, name="load"))
    later = fitted.apply(
        pd.Series([5.0, 7.0], pd.date_range("2030-01-01 18:30", periods=2, name="at"), name="x")
    )
    fitted.set_state(later.get_state())
    pd.testing.assert_series_equal(fitted.predict(), later.predict())
    json.loads(later.get_state()["clock"][0])


def test_a_series_alone_takes_one_state_and_not_two(two_series):
    panel = Mean(3).fit(two_series)
    one = Mean(3).fit(two_series)
    alone = one.apply(two_series["a"])
    with pytest.raises(ValueError, match="2 series came, but fit saw a Series, which holds one"):
        alone.set_state(panel.get_state())
    alone.set_state(panel.get_state(["b"]))
    pd.testing.assert_series_equal(alone.predict(), panel.predict()["b"])


@pytest.mark.parametrize(
    ("ids", "told"), [(["c"], "'c' is not among"), ([], "at least one"), (["a", "a"], "once")]
)
def test_states_of_no_or_unknown_series_are_refused(ids, told, two_series):
    with pytest.raises(ValueError, match=told):
        Mean(3).fit(two_series).get_state(ids)


@pytest.mark.filterwarnings("ignore::fracts.checks.FitWarning")
def test_the_state_of_a_default_network_with_a_season_of_2000_steps_stays_below_64_kb():
    t = np.arange(6000)
    y = np.sin(2 * np.pi * t / 24) + np.sin(2 * np.pi * t / 2000) + np.random.default_rng(0).normal(size=6000)
    model = FracForecaster(24, season_lengths=(24, 168, 2000), max_epochs=1, random_state=0).fit(y)
    assert model.state_nbytes <= 64 * 1024


@pytest.mark.parametrize("seasons", [(24, 48, 60), (24, 168), (1000,)])
def test_the_state_of_short_series_that_are_smoothed_stays_below_64_kb(seasons):
    t = np.arange(500)[:, None] + np.zeros(6)
    y = np.sin(2 * np.pi * t / 24) + 0.3 * np.random.default_rng(0).normal(size=t.shape)
    model = FracRidge(12, season_lengths=seasons, pooled=True).fit(y)
    assert model._path.memory.smoothed
    assert model.state_nbytes <= 64 * 1024
