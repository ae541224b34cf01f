"""What tests share: the estimators that every law of the door must hold for, and random network weights."""

import copy
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import settings
from threadpoolctl import threadpool_limits
from torch import nn

from fracts import fast
from fracts.base import Forecaster
from fracts.baselines import (
    ARFIMA,
    ARIMA,
    ETS,
    HAR,
    STL,
    Drift,
    Ensemble,
    Mean,
    Naive,
    SeasonalNaive,
    Theta,
    WindowAverage,
)
from fracts.forecaster import FracForecaster
from fracts.ridge import FracRidge

settings.register_profile("fracts", deadline=None, max_examples=40, print_blob=True)
settings.load_profile("fracts")

if "PYTEST_XDIST_WORKER" in os.environ:  # one core each
    os.environ["OMP_NUM_THREADS"] = "1"  # of processes that tests start
    threadpool_limits(1)
    torch.set_num_threads(1)


@dataclass(frozen=True)
class Entry:
    """An estimator of some horizon, and what may be asked of it."""

    name: str
    make: Callable[[int], Forecaster]
    tolerance: float = 0.0  # between two ways to one forecast, relative to the data
    odd: bool = True  # the negative of a series has the negative forecast
    examples: int = 40  # of a law
    shared: bool = True  # one model for all series, so that others can have it too
    real_time: bool = True  # takes stamps that lie on no grid


def _small_network(horizon: int) -> Forecaster:
    return FracForecaster(
        horizon, season_lengths=7, width=8, n_layers=1, n_heads=2, window=32, max_epochs=1, random_state=0
    )


def _seasonal_drift(horizon: int) -> Forecaster:
    return STL(horizon, Drift(horizon), season_lengths=7)


# Not GARCH, which asks for more values than these laws have: its own are in baselines/test_garch.py.
ENTRIES = [
    Entry("Naive", Naive),
    Entry("SeasonalNaive", lambda horizon: SeasonalNaive(horizon, season_length=7)),
    Entry("Mean", Mean),
    Entry("Drift", Drift, tolerance=1e-13),
    Entry("WindowAverage", lambda horizon: WindowAverage(horizon, 5), tolerance=1e-14),
    Entry(
        "ARIMA",
        lambda horizon: ARIMA(horizon, order=(1, 0, 0), season_length=None),
        tolerance=1e-5,
        odd=False,  # but for what its optimiser leaves over
        examples=3,
        shared=False,
        real_time=False,
    ),
    Entry("ARFIMA", ARFIMA, tolerance=1e-6, examples=5, shared=False, real_time=False),
    Entry(
        "ETS",
        lambda horizon: ETS(horizon, trend="none"),
        1e-4,
        odd=False,
        examples=3,
        shared=False,
        real_time=False,
    ),
    Entry(
        "Theta",
        lambda horizon: Theta(horizon, season_length=7),
        1e-6,
        False,
        examples=5,
        shared=False,
        real_time=False,
    ),
    Entry(
        "HAR",
        lambda horizon: HAR(horizon, spans=(1, 3)),
        tolerance=1e-9,
        examples=5,
        shared=False,
        real_time=False,
    ),
    Entry("STL", _seasonal_drift, tolerance=1e-9, examples=5, shared=False, real_time=False),
    Entry("Ensemble", lambda horizon: Ensemble(horizon, [Naive(horizon), Mean(horizon)]), tolerance=1e-13),
    Entry("FracRidge", lambda horizon: FracRidge(horizon, season_lengths=7), tolerance=1e-10, examples=10),
    # Trained on 100 rows or more; on fewer its network is silent.
    Entry("FracForecaster", _small_network, tolerance=1e-5, odd=False, examples=5),
]


PARAMETERS = [pytest.param(e, id=e.name) for e in ENTRIES]


@pytest.fixture(scope="session", params=PARAMETERS)
def entry(request: pytest.FixtureRequest) -> Entry:
    return request.param


@pytest.fixture(scope="session", params=[x for x in PARAMETERS if x.values[0].real_time])
def real_time_entry(request: pytest.FixtureRequest) -> Entry:
    return request.param


@pytest.fixture(scope="session", params=[x for x in PARAMETERS if not x.values[0].real_time])
def step_entry(request: pytest.FixtureRequest) -> Entry:
    return request.param


def _random_weights(network: nn.Module, seed: int) -> None:
    """Replace every parameter by seeded random numbers, that keep the outputs near 1, within 2."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weights in network.named_parameters():
            spread = weights.shape[1] ** -0.5 if weights.ndim == 2 and not name.endswith("nothing") else 0.5
            weights.copy_(spread * torch.randn(weights.shape, generator=generator))
        for name, bound in network.named_buffers():
            for kind, number in (("least", -2.0), ("most", 2.0), ("share", 1.0), ("level", 0.0)):
                if name.endswith(kind):
                    bound.fill_(number)


@pytest.fixture(scope="session")
def random_weights() -> Callable[[nn.Module, int], None]:
    return _random_weights


@pytest.fixture
def without_numba(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Single rows are stepped in numpy, as where numba is not installed."""
    monkeypatch.setattr(fast, "find_spec", lambda name: None)
    fast.compiles.cache_clear()
    yield
    monkeypatch.undo()
    fast.compiles.cache_clear()


@pytest.fixture(scope="session")
def two_series() -> pd.DataFrame:
    """200 days of two series with a week in them, a few values missing."""
    rng = np.random.default_rng(0)
    week = np.sin(2 * np.pi * np.arange(200) / 7)[:, None]
    values = 5 + week * [1.0, -2.0] + 0.3 * rng.normal(size=(200, 2)).cumsum(axis=0)
    values[rng.random(values.shape) < 0.05] = np.nan
    values[[0, -1]] = 5.0
    return pd.DataFrame(values, pd.date_range("2024-01-01", periods=200, freq="D", tz="UTC"), ["a", "b"])


@pytest.fixture(scope="session")
def _lively(entry: Entry, two_series: pd.DataFrame) -> Forecaster:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = entry.make(3).fit(two_series[:150])
    if getattr(model, "network_", None) is not None:
        _random_weights(model.network_, 0)
    return model.apply(two_series[:150])


@pytest.fixture
def lively(_lively: Forecaster) -> Forecaster:
    """A model of the entry after 150 days of `two_series`; a network's weights are random, none silent."""
    return copy.deepcopy(_lively)
