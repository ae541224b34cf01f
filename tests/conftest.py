"""The estimators that every law of the door must hold for, as the session fixture `entry`."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import settings

from fracts.base import Forecaster
from fracts.baselines import Mean, Naive, SeasonalNaive

settings.register_profile("fracts", deadline=None, max_examples=40, print_blob=True)
settings.load_profile("fracts")


@dataclass(frozen=True)
class Entry:
    """An estimator of some horizon, and how far two ways to one forecast may differ, relative to the data."""

    name: str
    make: Callable[[int], Forecaster]
    tolerance: float = 0.0


ENTRIES = [
    Entry("Naive", Naive),
    Entry("SeasonalNaive", lambda horizon: SeasonalNaive(horizon, season_length=7)),
    Entry("Mean", Mean),
]


@pytest.fixture(scope="session", params=ENTRIES, ids=lambda entry: entry.name)
def entry(request: pytest.FixtureRequest) -> Entry:
    return request.param
