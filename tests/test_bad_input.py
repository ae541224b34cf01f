"""Bad input: the error names the thing, the value and the cure, and the estimator stays as it was."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from fracts import FracForecaster, FracRidge
from fracts.baselines import Naive, SeasonalNaive

DAYS = pd.date_range("2024-01-01", periods=50, freq="D")
HISTORY = pd.Series(np.random.default_rng(0).normal(size=40).cumsum(), DAYS[:40], name="load")
WIDE = pd.DataFrame({"a": HISTORY, "b": 2 * HISTORY})


def on(stamps, name="load"):
    return pd.Series(np.arange(float(len(stamps))), pd.DatetimeIndex(stamps), name=name)


def holding(value, row=5):
    y = HISTORY.copy()
    y.iloc[row] = value
    return y


BAD_HISTORIES = {
    "an empty list": ([], ValueError, "y is empty.*At least one"),
    "an empty series": (HISTORY[:0], ValueError, "y is empty.*At least one"),
    "a frame without columns": (WIDE[[]], ValueError, "y is empty.*At least one"),
    "no value": (HISTORY * np.nan, ValueError, "'load': all 40 values are NaN.*leave the series out"),
    "a column without value": (
        WIDE.assign(c=np.nan),
        ValueError,
        "'c': all 40 values are NaN.*leave the series out",
    ),
    "an infinity": (holding(np.inf), ValueError, "'load': the value at 2024-01-06.*row 5.*inf.*NaN"),
    "minus infinity in an array": (np.array([1.0, 2.0, -np.inf]), ValueError, "value at 2 .*-inf.*NaN"),
    "a value too large": (
        holding(-2e100),
        ValueError,
        "'load': the value at 2024-01-06.*row 5.*-2e\\+100.*unit",
    ),
    "a value too small": (
        holding(3e-101),
        ValueError,
        "'load': the value at 2024-01-06.*row 5.*3e-101.*unit",
    ),
    "strings": (["a", "b"], TypeError, "y holds values of dtype <U1.*numbers.*to_numeric"),
    "a series of strings": (
        HISTORY.astype(str),
        TypeError,
        "'load' holds values of dtype (str|object).*numbers.*to_numeric",
    ),
    "objects": (
        pd.Series([1, None, "x"], name="z"),
        TypeError,
        "'z' holds values of dtype object, such as 'x' in row 2.*to_numeric",
    ),
    "truths": (HISTORY > 0, TypeError, "'load' holds values of dtype bool.*numbers.*to_numeric"),
    "complex numbers": (np.array([1j, 2]), TypeError, "dtype complex128.*numbers"),
    "integers too long": ([1, 2**53 + 1], ValueError, "9007199254740993.*last digit.*Subtract"),
    "a repeated stamp": (
        on(["2024-01-01", "2024-01-02", "2024-01-02"]),
        ValueError,
        "2024-01-02.*row 2.*drop repeats",
    ),
    "a decreasing stamp": (
        on(["2024-01-01", "2024-01-03", "2024-01-02"]),
        ValueError,
        "2024-01-02.*row 2.*sort_index",
    ),
    "a missing stamp": (on(["2024-01-01", None, "2024-01-03"]), ValueError, "row 1 is missing.*NaT.*Drop"),
    "a single date": (on(["2024-01-01"]), ValueError, "2024-01-01.*no step.*freq='h'"),
    "an index of strings": (
        pd.Series([1.0, 2.0], ["x", "y"]),
        TypeError,
        "dates, periods or integers.*to_datetime",
    ),
    "an index of floats": (
        pd.Series([1.0, 2.0], [0.5, 1.5]),
        TypeError,
        "float64.*dates, periods or integers",
    ),
    "three axes": (np.zeros((2, 3, 4)), ValueError, r"shape \(2, 3, 4\).*Reshape"),
    "a ragged list": ([[1.0], [1.0, 2.0]], ValueError, "different lengths.*one number"),
    "a column twice": (pd.concat([HISTORY, HISTORY], axis=1), ValueError, "'load', 'load'.*its own name"),
    "a string": ("load", TypeError, "came as str.*Series.*Convert"),
    "nothing": (None, TypeError, "came as NoneType.*Series.*Convert"),
}


@pytest.mark.parametrize("case", BAD_HISTORIES)
@pytest.mark.parametrize("fitted", [False, True])
def test_a_bad_history_is_refused_by_fit(entry, case, fitted):
    y, error, message = BAD_HISTORIES[case]
    model = entry.make(2)
    if fitted:
        model.fit(HISTORY)
    refused(model, lambda: model.fit(y), error, message)


@pytest.mark.parametrize("case", BAD_HISTORIES)
def test_a_bad_history_is_refused_by_apply(entry, case):
    y, error, message = BAD_HISTORIES[case]
    model = entry.make(2).fit(HISTORY)
    if case == "a single date":  # the step is known
        assert model.apply(y).cutoff_ == pd.Timestamp("2024-01-01")
    elif case in (
        "an infinity",
        "no value",
        "a column without value",
        "strings",
        "a repeated stamp",
        "three axes",
    ):
        refused(model, lambda: model.apply(y), error, message)


def refused(model, call, error, message):
    """The call raises, one line says it all, and the model has the same bytes as before."""
    before = pickle.dumps(model)
    with pytest.raises(error, match=f"(?s){message}"):
        call()
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("horizon", [True, 0, -3, 2.5, "3", np.nan])
def test_a_horizon_that_is_no_positive_integer_is_refused(entry, horizon):
    model = entry.make(2).fit(HISTORY)
    refused(
        model,
        lambda: model.predict(horizon),
        ValueError,
        f"horizon must be an integer of at least 1.*{horizon}",
    )
    model.set_params(horizon=horizon)
    refused(
        model, lambda: model.fit(HISTORY), ValueError, f"horizon must be an integer of at least 1.*{horizon}"
    )


@pytest.mark.parametrize("season_length", [0, -1, 2.5, True, "weekly", None])
def test_a_season_length_that_is_no_positive_integer_is_refused(season_length):
    model = SeasonalNaive(2, season_length=season_length)
    refused(
        model, lambda: model.fit(HISTORY), ValueError, f"season_length must be an integer.*{season_length}"
    )


BAD_MEMORIES = [
    ({"n_modes": 1}, "n_modes must be an integer of at least 2.*got 1"),
    ({"n_modes": True}, "n_modes must.*got True"),
    ({"n_modes": 2.5}, "n_modes must.*got 2.5"),
    ({"timescales": (100, 1)}, r"timescales must rise.*got \(100, 1\).*shortest first"),
    ({"timescales": (0, 10)}, r"timescales must rise from above 0, got \(0, 10\)"),
    ({"timescales": (1,)}, r"timescales must be \(shortest, longest\).*got \(1,\)"),
    ({"timescales": (1, np.inf)}, r"timescales must be.*got \(1, inf\)"),
    ({"timescales": "x"}, "timescales must be.*got 'x'"),
    ({"centre_memory": 0}, "centre_memory must be a number of steps of at least 1, got 0"),
    ({"centre_memory": "long"}, "centre_memory must be.*got 'long'"),
    ({"season_lengths": 0}, "season_lengths holds 0;.*at least 2"),
    ({"season_lengths": (7, 1)}, "season_lengths holds 1;.*at least 2"),
    ({"season_lengths": True}, "season_lengths holds True"),
    ({"season_lengths": "weekly"}, "season_lengths holds 'weekly'.*'auto'"),
    ({"season_lengths": 2.5}, "season_lengths holds 2.5"),
]
BAD_NETWORKS = [
    ({"width": 7}, "width must be a multiple of 2 \\* n_heads, got width=7.*Try width=4"),
    ({"width": 0}, "width must.*got 0"),
    ({"n_layers": -1}, "n_layers must be an integer of at least 0.*got -1"),
    ({"n_layers": True}, "n_layers must.*got True"),
    ({"n_heads": 0}, "n_heads must.*got 0"),
    ({"window": 0.5}, "window must.*got 0.5"),
    ({"max_epochs": 0}, "max_epochs must.*got 0"),
    ({"n_networks": 0}, "n_networks must.*got 0"),
    ({"batch_size": "all"}, "batch_size must.*got 'all'"),
    ({"batch_size": 0}, "batch_size must.*got 0"),
    ({"learning_rate": 0}, "learning_rate must be a number above 0, got 0"),
    ({"learning_rate": -1}, "learning_rate must.*got -1"),
    ({"learning_rate": np.nan}, "learning_rate must.*got nan"),
    ({"learning_rate": "fast"}, "learning_rate must.*got 'fast'"),
    ({"device": "tpu"}, "device must be 'auto', 'cpu' or 'cuda', got 'tpu'"),
    ({"device": None}, "device must.*got None"),
    ({"random_state": "a"}, "random_state must be None or an integer.*got 'a'"),
    ({"random_state": -1}, "random_state must.*got -1"),
    ({"random_state": 1.5}, "random_state must.*got 1.5"),
    ({"verbose": "yes"}, "verbose must be 0.*got 'yes'"),
]


def no_trainer():
    return None


BAD_TRAINERS = [
    ({"trainer": object}, "trainer must be a function.*got a type"),
    ({"trainer": 3}, "trainer must be a function.*got a int"),
    ({"trainer": no_trainer}, r"trainer\(\) returned a NoneType.*lightning.Trainer"),
]


@pytest.mark.parametrize(
    "params, message", [*BAD_MEMORIES, ({"pooled": "x"}, "pooled must be True.*got 'x'")]
)
def test_a_ridge_refuses_parameters_that_make_no_sense(params, message):
    model = FracRidge(2, season_lengths=()).fit(HISTORY).set_params(**params)
    refused(model, lambda: model.fit(HISTORY), ValueError, message)


@pytest.fixture(scope="module")
def network():
    return FracForecaster(2, season_lengths=(), width=8, n_layers=1, n_heads=2, random_state=0).fit(HISTORY)


@pytest.mark.parametrize("params, message", [*BAD_MEMORIES, *BAD_NETWORKS])
def test_a_network_refuses_parameters_that_make_no_sense(network, params, message):
    model = copy.deepcopy(network).set_params(**params)
    refused(model, lambda: model.fit(HISTORY), ValueError, message)


@pytest.mark.parametrize("params, message", BAD_TRAINERS)
def test_a_network_refuses_what_makes_no_trainer(network, params, message):
    model = copy.deepcopy(network).set_params(window=32, **params)
    refused(model, lambda: model.fit(np.sin(np.arange(120.0) ** 2)), TypeError, message)


@pytest.mark.parametrize(
    "lead, message",
    [
        (0, "lead must be an integer of at least 1, got 0"),
        (True, "lead must.*got True"),
        (1.5, "lead must.*got 1.5"),
        (3, "lead 3 lies beyond the horizon 2.*1 to 2"),
    ],
)
def test_the_spectrum_of_a_lead_that_was_not_fitted_is_refused(network, lead, message):
    for model in (network, FracRidge(2).fit(HISTORY)):
        refused(model, lambda model=model: model.memory_spectrum(lead), ValueError, message)


def test_a_season_that_no_calendar_implies_must_be_given():
    model = SeasonalNaive(2)
    refused(
        model, lambda: model.fit(HISTORY.to_numpy()), ValueError, "40 rows of freq None.*season_length=12"
    )


@pytest.mark.parametrize(
    "asked, message",
    [
        ({"level": 0}, "level must lie between 0 and 100.*got 0"),
        ({"level": [80, 100]}, "level must lie between 0 and 100.*got 100"),
        ({"level": -5}, "level must.*got -5"),
        ({"level": "90"}, "level must.*got '90'"),
        ({"level": np.nan}, "level must.*got nan"),
        ({"level": True}, "level must.*got True"),
        ({"level": []}, "level is empty"),
        ({"quantiles": [0.1, 1.0]}, "quantiles must lie between 0 and 1,.*got 1.0"),
        ({"quantiles": 0}, "quantiles must.*got 0"),
        ({"quantiles": [True]}, "quantiles must.*got True"),
        ({"level": 90, "quantiles": [0.1]}, "came together.*one of them"),
        ({"point": "mode"}, "'median' or 'mean', got 'mode'"),
    ],
)
def test_intervals_that_make_no_sense_are_refused(entry, asked, message):
    model = entry.make(2).fit(HISTORY)
    refused(model, lambda: model.predict(**asked), ValueError, message)
    refused(model, lambda: model.forecast(**asked), ValueError, message)


def test_a_level_beyond_the_learned_quantiles_is_refused():
    model = Naive(2).fit(HISTORY)
    refused(model, lambda: model.predict(level=99.5), ValueError, "0.0025 lies beyond.*0.005 to 0.995.*99")
    assert model.predict(level=99).shape == (2, 3)


@pytest.mark.parametrize(
    "call", ["predict", "forecast", "update", "apply", "score", "learn_one", "learn_many"]
)
def test_nothing_goes_before_fit(entry, call):
    model = entry.make(2)
    args = () if call in ("predict", "forecast") else (1.0,) if call == "learn_one" else (HISTORY,)
    refused(model, lambda: getattr(model, call)(*args), NotFittedError, "not fitted yet: call fit first")


BAD_UPDATES = {
    "a stamp of before": (
        HISTORY[-1:],
        ValueError,
        "starts at 2024-02-09.*up to 2024-02-09.*after the cutoff",
    ),
    "a stamp off the grid": (on(["2024-02-10 12:00"]), ValueError, "2024-02-10 12:00.*every D"),
    "a zone": (on(DAYS[40:42].tz_localize("UTC")), TypeError, "time zone UTC.*tz_localize"),
    "another name": (on(DAYS[40:42], name="wind"), ValueError, "'wind' was not seen by fit.*load.*apply"),
    "an array": (np.array([1.0]), TypeError, "1-D array.*fit saw a Series"),
    "a frame": (WIDE, TypeError, "wide DataFrame.*fit saw a Series"),
    "integers": (pd.Series([1.0], [40], name="load"), TypeError, "fit saw dates"),
    "an infinity": (on(DAYS[40:42]) / 0, ValueError, "2024-02-11.*row 1.*inf"),
    "nothing": (HISTORY[:0], ValueError, "y is empty"),
    "strings": (pd.Series(["a"], DAYS[40:41]), TypeError, "dtype (str|object)"),
}


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("case", BAD_UPDATES)
def test_a_bad_continuation_is_refused(entry, case):
    y, error, message = BAD_UPDATES[case]
    model = entry.make(2).fit(HISTORY)
    refused(model, lambda: model.update(y), error, message)
    refused(model, lambda: model.score(y), error, message)


def test_a_continuation_of_other_series_is_refused(entry):
    model = entry.make(2).fit(WIDE)
    later = WIDE.set_axis(WIDE.index + pd.Timedelta(40, "D"))
    refused(
        model,
        lambda: model.update(later.rename(columns={"b": "c"})),
        ValueError,
        r"'c' was not seen.*\['a', 'b'\]",
    )
    refused(model, lambda: model.update(later["a"]), TypeError, "a Series.*fit saw a wide DataFrame")
    matrix = entry.make(2).fit(WIDE.to_numpy())
    refused(matrix, lambda: matrix.update(np.zeros((3, 3))), ValueError, "3 columns.*saw 2")
    refused(matrix, lambda: matrix.update(np.zeros(3)), TypeError, "1-D array.*saw a 2-D array")


@pytest.mark.parametrize(
    "values, error, message",
    [
        ([1.0], ValueError, r"2 series.*shape \(1,\).*series_ids_"),
        ([1.0, np.inf], ValueError, "'b'.*inf.*NaN"),
        (["a", "b"], TypeError, "numbers"),
        (pd.Series({"a": 1.0, "b": 2.0}), TypeError, "came as a Series.*series_ids_"),
        ([1.0, 1e101], ValueError, "'b'.*1e\\+101.*unit"),
        ([True, False], TypeError, "bool"),
    ],
)
def test_a_bad_row_is_refused(entry, values, error, message):
    model = entry.make(2).fit(WIDE)
    refused(model, lambda: model.learn_many(values), error, message)
    refused(model, lambda: model.learn_one(1.0), ValueError, "2 series")


def test_fit_of_x_and_y_by_habit_is_told_how_to_write_it(entry):
    model = entry.make(2).fit(HISTORY)
    X, later = np.zeros((40, 2)), on(DAYS[40:45])
    cure = r"write `fit\(y\)`" if entry.name.startswith("Frac") else r"makes nothing of.*write `fit\(y\)`"
    refused(model, lambda: model.fit(X, HISTORY), TypeError, f"X came as Series.*{cure}")
    refused(model, lambda: model.score(later, HISTORY), TypeError, "X came as Series, but fit saw no")
    refused(model, lambda: model.update(later, X[:5]), TypeError, "X came as ndarray, but fit saw no")
    refused(model, lambda: model.predict(2, X), TypeError, "X came as ndarray, but fit saw no")


@pytest.mark.filterwarnings("ignore::fracts.checks.FitWarning")
def test_a_failure_while_computing_leaves_the_estimator_as_it_was(entry, monkeypatch):
    model = entry.make(2).fit(HISTORY)

    def broken(*args):
        raise RuntimeError("out of luck")

    with monkeypatch.context() as patch:
        patch.setattr(type(model), "_advance", broken)
        for call in (model.fit, model.update, model.apply):
            refused(model, lambda call=call: call(on(DAYS[40:45])), RuntimeError, "out of luck")
        refused(model, lambda: model.learn_one(1.0), RuntimeError, "out of luck")


@pytest.mark.filterwarnings("ignore::fracts.checks.FitWarning")
def test_a_series_that_never_moved_has_no_scale_to_score_by(entry):
    model = entry.make(2).fit(HISTORY * 0)
    refused(
        model, lambda: model.score(on(DAYS[40:45])), ValueError, "'load' never moved.*two different values"
    )


def test_a_continuation_without_value_cannot_be_scored(entry):
    model = entry.make(2).fit(HISTORY)
    refused(model, lambda: model.score(on(DAYS[40:45]) * np.nan), ValueError, "no value to score")
