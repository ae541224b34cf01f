"""A search that makes no sense is refused before a trial is run, with what is needed."""

import numpy as np
import pandas as pd
import pytest
from optuna.distributions import IntDistribution

from fracts import FracSearch, Mean, SeasonalNaive, WindowAverage, studies


@pytest.fixture(scope="module")
def y():
    noise = np.random.default_rng(0).normal(size=200)
    return pd.Series(noise, pd.date_range("2024-01-01", periods=200), name="load")


FAULTS = [
    ({"estimator": WindowAverage}, TypeError, "estimator came as ABCMeta"),
    ({"n_trials": None}, ValueError, "n_trials=None and timeout=None came"),
    ({"n_trials": 0}, ValueError, "n_trials must be an integer of at least 1"),
    ({"timeout": -1}, ValueError, "timeout must be a number of seconds above 0, got -1"),
    ({"timeout": True}, ValueError, "timeout must be"),
    ({"metric": "mse"}, ValueError, "metric must be 'mase'.*got 'mse'"),
    ({"metric": "pinball_1"}, ValueError, "metric must be"),
    ({"selection": "simple"}, ValueError, "selection must be 'simplest' or 'best', got 'simple'"),
    ({"metric": "pinball_x"}, ValueError, "metric must be"),
    ({"n_windows": 500}, ValueError, "need 1501 rows; y has 200"),
    ({"n_windows": 0}, ValueError, "n_windows must be"),
    ({"step": 0}, ValueError, "step must be an integer"),
    ({"refit": "mase"}, ValueError, "refit must be True or False"),
    ({"verbose": 2}, ValueError, "verbose must be 0"),
    ({"callback": 3}, TypeError, "callback must be a function"),
    ({"random_state": -1}, ValueError, "random_state must be"),
    ({"heartbeat": 0}, ValueError, "heartbeat must be"),
    ({"storage": 3}, TypeError, "storage came as int"),
    ({"storage": "nowhere/study.log"}, FileNotFoundError, "there is no folder nowhere to keep the study"),
    ({"storage": "."}, IsADirectoryError, r"storage \. is a folder. Give a file in it, such as study.log"),
    ({"storage": __file__}, ValueError, "is no journal of a study. Give the path of a new file"),
    ({"storage": "oracel://host/base"}, ValueError, "'oracel://host/base' is no URL of a database"),
    ({"storage": "sqlite//study.db://"}, ValueError, "is no URL of a database that is known"),
    ({"storage": "mysql+asyncmy://host/base"}, ImportError, "needs the package 'asyncmy', which is not inst"),
    ({"study_name": 3}, TypeError, "study_name must be None or a name, got 3"),
    ({"sampler": "tpe"}, TypeError, "sampler must be None or an Optuna sampler, got 'tpe'"),
    ({"pruner": "median"}, TypeError, "pruner must be None or an Optuna pruner, got 'median'"),
    ({"enqueue": {"window": 3}}, TypeError, "enqueue must be a list of dicts"),
    ({"enqueue": [{"windw": 3}]}, ValueError, "enqueue sets 'windw', which is not searched"),
    ({"enqueue": [{"window": 0}]}, ValueError, "enqueue sets window=0, outside"),
    ({"from_study": "old"}, ValueError, "from_study='old' is not in the storage"),
    ({"from_study": 3}, TypeError, "from_study must be a study"),
    ({"space": {}}, TypeError, r"space came as \{\}"),
    ({"space": {"window": (1, 9)}}, TypeError, r"space\['window'\] is \(1, 9\)"),
    (
        {"space": {"windw": IntDistribution(1, 9)}},
        ValueError,
        "space has 'windw', which WindowAverage has not",
    ),
    ({"space": {"horizon": IntDistribution(1, 9)}}, ValueError, "space has 'horizon', which is not searched"),
    ({"space": {"timescales": IntDistribution(1, 9)}}, ValueError, "Search its ends, timescales_low and"),
    ({"estimator": Mean(3)}, ValueError, "Mean has no default space"),
    ({"estimator": SeasonalNaive(3)}, ValueError, "SeasonalNaive has no default space"),
]


@pytest.mark.parametrize(
    ("options", "kind", "told"), FAULTS, ids=[next(iter(f[0])) + str(i) for i, f in enumerate(FAULTS)]
)
def test_what_makes_no_sense_is_refused_before_anything_is_run(options, kind, told, y):
    search = FracSearch(WindowAverage(3, 5), n_trials=1).set_params(**options)
    with pytest.raises(kind, match=told):
        search.fit(y)
    assert not hasattr(search, "study_")


def test_a_database_that_cannot_be_opened_is_named_without_its_password(monkeypatch, y):
    monkeypatch.setattr(studies, "_ATTEMPTS", 1)
    url = "postgresql+psycopg://me:secret@localhost:1/base"
    with pytest.raises(ConnectionError, match=r"postgresql\+psycopg://me:\*\*\*@localhost:1/base cannot be"):
        FracSearch(WindowAverage(3, 5), n_trials=1, storage=url).fit(y)


def test_a_space_that_returns_no_dict_says_so(y):
    with pytest.raises(ValueError, match="no trial") as caught:
        FracSearch(WindowAverage(3, 5), lambda trial: trial.suggest_int("window", 1, 9), n_trials=1).fit(y)
    assert "the space returned a int" in str(caught.value.__cause__)
