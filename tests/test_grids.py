"""Series that are passed over apart: nothing shows of it but the time it takes."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts import FracForecaster, FracRidge
from fracts.baselines import Mean, Naive, SeasonalNaive
from fracts.grids import grids
from fracts.series import Panel

MODELS = [
    Naive(3),
    Mean(3),
    SeasonalNaive(3, season_length=7),
    FracRidge(3, season_lengths=7, pooled=True),
    FracRidge(3, season_lengths=7, pooled=False),
    FracForecaster(3, season_lengths=7, width=16, n_heads=2, window=32, max_epochs=1, random_state=0),
]


def scattered(irregular, apart=150, rows=100, n_series=4):
    """Series that begin `apart` steps after one another, each with a blank at its end, and a covariate."""
    draws = np.random.default_rng(3)
    parts = []
    for i in range(n_series):
        stamps = np.arange(rows) if not irregular else np.cumsum(draws.integers(50, 90, rows))
        y = 20 + draws.normal(size=rows).cumsum() + np.sin(2 * np.pi * np.arange(rows) / 7)
        y[-1] = np.nan
        x = draws.normal(size=rows)
        stamps = pd.Timestamp("2020-01-01") + pd.to_timedelta(stamps, unit="s" if irregular else "D")
        shift = pd.Timedelta(0 if irregular else apart * i, unit="D")
        parts.append(pd.DataFrame({"unique_id": f"s{i}", "ds": stamps + shift, "y": y, "x": x}))
    return pd.concat(parts, ignore_index=True)


def in_one_lot(monkeypatch):
    def whole(panel, needed):
        yield np.arange(len(panel.values)), panel

    monkeypatch.setattr("fracts.folds.grids", whole)
    monkeypatch.setattr("fracts.conversion.grids", whole)


@pytest.mark.parametrize("irregular", [False, True], ids=["far apart", "stamps of their own"])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{type(m).__name__} {getattr(m, 'pooled', '')}")
def test_series_passed_over_apart_are_forecast_as_those_of_one_pass(model, irregular, monkeypatch):
    table = scattered(irregular)
    given_to_fit = {"y": table[["unique_id", "ds", "y"]]}
    if isinstance(model, FracRidge):
        given_to_fit["X"] = table[["unique_id", "ds", "x"]]
        model = type(model)(**(model.get_params() | {"past_only": ("x",)}))
    apart = model.fit(**given_to_fit).predict(level=90)
    in_one_lot(monkeypatch)
    together = model.fit(**given_to_fit).predict(level=90)
    assert (apart.iloc[:, :2] == together.iloc[:, :2]).all(axis=None)
    np.testing.assert_allclose(apart.iloc[:, 2:], together.iloc[:, 2:], rtol=1e-5)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 3000), st.floats(0.0, 1.0))
@settings(max_examples=40)
def test_every_series_is_in_one_lot_with_all_rows_it_needs(seed, n_series, rows, density):
    draws = np.random.default_rng(seed)
    values = np.where(draws.random((n_series, rows)) < density, draws.normal(size=(n_series, rows)), np.nan)
    values[:, 0] = 1.0
    panel, seen = Panel(values, np.arange(float(rows))), []
    for series, part in grids(panel, ~np.isnan(values)):
        seen.extend(series.tolist())
        for name, row in zip(series, part.values, strict=True):
            known = ~np.isnan(row)
            np.testing.assert_array_equal(row[known], values[name][~np.isnan(values[name])])
            np.testing.assert_array_equal(part.times[known], np.flatnonzero(~np.isnan(values[name])))
    assert sorted(seen) == list(range(n_series))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_series_side_by_side_are_one_lot_and_left_as_they_are(missing):
    draws = np.random.default_rng(0)
    panel = Panel(np.where(draws.random((50, 400)) < missing, np.nan, 1.0), np.arange(400.0))
    ((series, part),) = grids(panel, ~np.isnan(panel.values))
    assert part is panel and series.tolist() == list(range(50))


def test_short_series_far_apart_are_passed_over_in_few_more_numbers_than_side_by_side():
    beside, apart = (sum(part.values.size for part in lots_of(steps)) for steps in (0, 150))
    assert apart < 15 * beside
    assert len(lots_of(150)) > 1


def lots_of(apart):
    table = scattered(False, apart, rows=30, n_series=100).pivot(index="ds", columns="unique_id", values="y")
    panel = Panel(table.to_numpy().T, np.arange(float(len(table))))
    return [part for _, part in grids(panel, ~np.isnan(panel.values))]
