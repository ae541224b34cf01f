"""A file holds a model whole, holds no code, and is old or new but never half."""

import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from sklearn.base import clone

import fracts
from fracts import FracForecaster, FracRidge, Mean, Naive
from fracts.base import Forecaster

LEVELS = [50, 90]
FIXTURES = Path(__file__).parent / "fixtures"


def through_a_file(model, folder):
    model.save(folder / "model.safetensors")
    return type(model).load(folder / "model.safetensors")


def through_joblib(model, folder):
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib")


COPIES = {
    "file": through_a_file,
    "pickle": lambda model, folder: pickle.loads(pickle.dumps(model)),
    "oldest pickle": lambda model, folder: pickle.loads(pickle.dumps(model, protocol=2)),
    "joblib": through_joblib,
    "cloudpickle": lambda model, folder: pickle.loads(cloudpickle.dumps(model)),
    "deepcopy": lambda model, folder: copy.deepcopy(model),
}


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_forecasts_to_the_bit_and_goes_on_alike(way, lively, two_series, tmp_path):
    other = COPIES[way](lively, tmp_path)
    for model in (lively, other):
        model.update(two_series[150:160]).learn_many(two_series.iloc[160].to_numpy())
    first, second = (model.predict(8, level=LEVELS) for model in (lively, other))
    pd.testing.assert_frame_equal(first, second, check_exact=True)
    assert other.score(two_series[161:]) == lively.score(two_series[161:])
    assert repr(other.get_params()) == repr(lively.get_params())
    refit = clone(other).fit(two_series["a"])
    assert vars(other.fit(two_series["a"])).keys() == vars(refit).keys()


def test_saving_what_was_loaded_gives_the_same_bytes(lively, tmp_path):
    lively.save(tmp_path / "first")
    type(lively).load(tmp_path / "first").save(tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_saving_changes_nothing(lively, tmp_path):
    def told():  # an index of pandas changes when it is asked: it keeps its answers
        return pickle.dumps({**vars(lively), "_layout": repr(lively._layout)})

    before = told()
    lively.save(tmp_path / "model")
    assert told() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


STAMPS = {
    "hours of a zone": pd.date_range("2024-03-30", periods=60, freq="h", tz="Europe/London", unit="us"),
    "hours of an offset": pd.date_range("2024-03-30", periods=60, freq="h", tz="UTC+05:30"),
    "business days at half past nine": pd.bdate_range("2024-01-01 09:30", periods=60, name="day"),
    "months": pd.date_range("2019-01-31", periods=60, freq="ME", unit="s"),
    "quarters": pd.period_range("2001Q1", periods=60, freq="Q", name="quarter"),
    "integers": pd.Index(np.arange(100, 220, 2), name="step"),
    "real time": pd.DatetimeIndex(
        "2024" + pd.Series(np.arange(60) ** 2 // 3 + np.arange(60)).map("-01-01".format)
    )
    + pd.to_timedelta(np.cumsum(np.arange(60) % 7 + 1), "s"),
}


@pytest.mark.parametrize("kind", STAMPS)
@pytest.mark.parametrize("names", [["x"], ["x", 3], [("a", 1), ("b", 2)]])
def test_stamps_and_names_come_back_from_a_file(kind, names, tmp_path):
    index = STAMPS[kind]
    values = np.random.default_rng(0).normal(size=(60, len(names)))
    y = pd.DataFrame(values, index, pd.Index(names, name="series", tupleize_cols=False))
    model = Naive(3).fit(y[:50])
    loaded = through_a_file(model, tmp_path)
    for other in (loaded, through_a_file(loaded.update(y[50:]), tmp_path)):
        if other is loaded:
            continue
        pd.testing.assert_frame_equal(other.predict(level=80), model.update(y[50:]).predict(level=80))


def long_of(y, framed):
    """`y` as a long frame whose second series ends two rows earlier."""
    long = y.rename_axis("ds").reset_index().melt("ds", var_name="unique_id", value_name="y").dropna()
    return framed(long.iloc[:-2].reset_index(drop=True))


def polars_of(long):
    import polars as pl

    return pl.from_pandas(long).with_columns(pl.col("unique_id").cast(pl.Categorical))


def arrow_of(long):
    import pyarrow as pa

    return pa.Table.from_pandas(long, preserve_index=False)


def wide_polars(long):
    import polars as pl

    return pl.from_pandas(long).pivot("unique_id", index="ds", values="y").sort("ds")


CONTAINERS = {
    "long pandas": lambda long: long.astype({"unique_id": "category"}),
    "long polars": polars_of,
    "long Arrow": arrow_of,
    "wide polars": wide_polars,
    "MultiIndex": lambda long: long.set_index(["unique_id", "ds"])["y"],
    "polars column": lambda long: polars_of(long)["y"],
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_the_kind_of_container_and_the_cutoff_of_each_series_come_back_from_a_file(
    kind, two_series, tmp_path
):
    model = Naive(3).fit(long_of(two_series, CONTAINERS[kind]))
    loaded = through_a_file(model, tmp_path)
    assert loaded.cutoff_ == model.cutoff_
    first, second = (m.predict(level=80) for m in (model, loaded))
    assert type(first) is type(second) and first.equals(second)
    if hasattr(first, "schema"):
        assert first.schema == second.schema
    if hasattr(first, "dtypes"):
        assert list(first.dtypes) == list(second.dtypes)


@pytest.mark.parametrize("transform", ["log", "log1p", "box-cox"])
def test_covariates_scale_and_bound_come_back_from_a_file(transform, two_series, tmp_path):
    y = np.exp(two_series / 5)
    X = pd.DataFrame({"heat": np.arange(200.0) % 5, "sky": ["clear", "rain"] * 100}, two_series.index)
    model = FracRidge(3, season_lengths=7, transform=transform, lower=0.5, past_only=("sky",)).fit(y[:150], X)
    loaded = through_a_file(model, tmp_path)
    for m in (model, loaded):
        m.update(y[150:180], X)
    first, second = (m.predict(X=X, level=LEVELS, point="mean") for m in (model, loaded))
    pd.testing.assert_frame_equal(first, second, check_exact=True)


def test_a_transformer_of_another_library_is_refused(two_series, tmp_path):
    from sklearn.preprocessing import StandardScaler

    model = FracRidge(2, season_lengths=(), transform=StandardScaler()).fit(two_series["a"])
    with pytest.raises(TypeError, match=r"parameters.transform is a StandardScaler, which"):
        model.save(tmp_path / "model")


def test_a_file_says_in_the_open_what_it_holds(tmp_path):
    FracRidge(2, season_lengths=7).fit(np.arange(100.0)).save(tmp_path / "model")
    with safetensors.safe_open(tmp_path / "model", framework="numpy") as file:
        told = json.loads(file.metadata()["fracts"])
    assert told["format"] == 1
    assert told["versions"]["fracts"] == fracts.__version__ and told["versions"]["numpy"] == np.__version__
    fields = told["model"]["fields"]
    assert told["model"]["record"] == "FracRidge"
    assert ["season_lengths", 7] in fields["parameters"]["dict"]
    assert ["season_lengths_", {"tuple": [7]}] in fields["learned"]["dict"]


@pytest.mark.slow
def test_a_network_of_float64_comes_back_as_such(tmp_path, two_series, random_weights):
    model = FracForecaster(2, width=8, n_layers=2, n_heads=2, max_epochs=1, random_state=0).fit(
        two_series[:120]
    )
    random_weights(model.network_, 0)
    model.network_.double()
    loaded = through_a_file(model.apply(two_series), tmp_path)
    assert loaded.network_.dtype.itemsize == 8
    pd.testing.assert_frame_equal(loaded.predict(), model.apply(two_series).predict(), check_exact=True)


def test_a_parameter_that_is_code_is_refused_and_the_old_file_stays(tmp_path):
    Mean(1).fit([1.0]).save(tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    model = FracForecaster(1, n_layers=0, season_lengths=()).fit(np.arange(50.0))
    model.set_params(trainer=print)
    with pytest.raises(
        TypeError, match=r"FracForecaster.parameters.trainer is a builtin_function.*set_params"
    ):
        model.save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_parameters_changed_after_fit_are_told_when_the_file_is_read(tmp_path):
    model = FracForecaster(1, width=8, n_heads=2, n_layers=1, max_epochs=1).fit(np.arange(50.0) % 7)
    model.set_params(width=16).save(tmp_path / "model")
    with pytest.raises(ValueError, match="not those of 1 layers of width 16"):
        FracForecaster.load(tmp_path / "model")


def test_a_folder_that_is_not_there_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        Mean(1).fit([1.0]).save(tmp_path / "none" / "model")
    with pytest.raises(FileNotFoundError):
        Mean.load(tmp_path / "model")


def test_a_file_of_another_model_says_whose_it_is(tmp_path):
    Mean(1).fit([1.0]).save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"holds a Mean, not a Naive. Say `Mean.load\(path\)`"):
        Naive.load(tmp_path / "model")
    assert isinstance(Forecaster.load(tmp_path / "model"), Mean)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "model")
    Mean(1).fit([1.0]).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and Mean.load(tmp_path / "model").forecast() == [1.0]


SAVE_AND_KILL = """
import os, random, signal, sys, time
import numpy as np
from fracts.baselines.spread import Shape
from fracts.storage import read, write

folder, rounds = sys.argv[1], int(sys.argv[2])
path = os.path.join(folder, "model")
records = [Shape(np.arange(1), np.full((200, 250), value)) for value in (1.0, 2.0)]
write(records[0], path)
start = time.perf_counter()
for _ in range(4):
    write(records[0], path)
once = (time.perf_counter() - start) / 4
random.seed(0)
found, cut_short = [], 0
for _ in range(rounds):
    child = os.fork()
    if child == 0:
        for turn in range(1000):
            write(records[1 - turn % 2], path)
        os._exit(0)
    time.sleep(random.uniform(0.0, 8.0) * once)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    left = [name for name in os.listdir(folder) if name.endswith(".part")]
    cut_short += len(left)
    for name in left:
        os.remove(os.path.join(folder, name))
    found += set(read(path).quantiles.ravel().tolist())
print(cut_short, found.count(1.0), found.count(2.0), len(found))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_killed_while_saving_leaves_the_old_file_or_the_new_one(tmp_path):
    command = [sys.executable, "-c", SAVE_AND_KILL, str(tmp_path), "200"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    cut_short, old, new, rounds = map(int, done.stdout.split())
    assert old + new == rounds == 200
    assert cut_short > 5 and old > 5 and new > 5  # else no kill came at an interesting moment


def test_another_process_goes_on_from_a_file(tmp_path, two_series):
    model = FracRidge(3, season_lengths=7).fit(two_series)
    model.save(tmp_path / "model")
    code = (
        "import sys; from fracts import FracRidge; model = FracRidge.load(sys.argv[1]);"
        "[model.learn_many([x, -x]) for x in (1.0, 2.0)]; model.save(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "model")], check=True)
    for x in (1.0, 2.0):
        model.learn_many([x, -x])
    loaded = FracRidge.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.forecast(level=LEVELS), model.forecast(level=LEVELS), rtol=1e-12)


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("format_*/*.safetensors")), ids=lambda path: path.stem)
def test_files_of_every_format_are_read_and_forecast_what_they_did(path):
    model = Forecaster.load(path)
    expected = json.loads((path.parent / "forecasts.json").read_text())[path.stem]
    for forecast in expected:
        np.testing.assert_allclose(model.forecast(level=90), forecast, rtol=1e-5)
        model.learn_one(1.5)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder .*missing to save model in"):
        Mean(1).fit([1.0]).save(tmp_path / "missing" / "model")
