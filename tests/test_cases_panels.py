"""What trips users of other libraries about panels, leakage and quantiles: one kind of fault a test."""

import numpy as np
import pandas as pd
import pytest

from fracts.forecaster import FracForecaster
from fracts.ridge import FracRidge

DAYS = pd.date_range("2024-01-01", periods=120, freq="D")


def panel(**seeds):
    parts = [
        pd.DataFrame(
            {"unique_id": name, "ds": DAYS, "y": np.random.default_rng(seed).normal(size=120).cumsum()}
        )
        for name, seed in seeds.items()
    ]
    return pd.concat(parts, ignore_index=True)


def points(forecast, name):
    return forecast.loc[forecast["unique_id"] == name].iloc[:, 2:].to_numpy()


def test_the_name_of_a_series_says_nothing_to_a_model(entry):
    y = panel(a=0, b=1)
    renamed = y.assign(unique_id=y["unique_id"].map({"a": "b", "b": "zebra"}))
    first, second = (entry.make(3).fit(frame).predict(level=90) for frame in (y, renamed))
    np.testing.assert_array_equal(points(first, "a"), points(second, "b"))


def test_other_series_change_a_forecast_only_where_weights_are_shared():
    alone, together = panel(a=0), panel(a=0, b=1, c=2)
    own, shared = (
        [
            points(FracRidge(3, season_lengths=(), pooled=pooled).fit(y).predict(), "a")
            for y in (alone, together)
        ]
        for pooled in (False, True)
    )
    assert np.abs(shared[0] - shared[1]).max() > 1e-3
    # The penalty and the anchor are chosen for all series together.
    assert np.abs(own[0] - own[1]).max() < np.abs(shared[0] - shared[1]).max()


def test_an_index_of_three_levels_works(entry):
    y = panel(a=0, b=1).assign(region=["north"] * 120 + ["south"] * 120)
    stacked = y.set_index(["region", "unique_id", "ds"])["y"]
    model = entry.make(3).fit(stacked)
    assert model.series_ids_ == [("north", "a"), ("south", "b")]
    expected = entry.make(3).fit(y.drop(columns="region")).predict()
    np.testing.assert_array_equal(model.predict().to_numpy(), expected.iloc[:, 2].to_numpy())
    assert model.predict().index.names == ["region", "unique_id", "ds"]


def test_what_comes_after_a_cutoff_moves_no_forecast_before_it(entry):
    y, late = panel(a=0, b=1), DAYS[80]
    corrupted = y.assign(y=y["y"].where(y["ds"] < late, y["y"] * 1e6 - 3))
    past = [entry.make(3).fit(frame[frame["ds"] < late]) for frame in (y, corrupted)]
    np.testing.assert_array_equal(past[0].forecast(level=90), past[1].forecast(level=90))
    for model, frame in zip(past, (y, corrupted), strict=True):
        model.update(frame[(frame["ds"] >= late) & (frame["unique_id"] == "a")])
    forecasts = [model.forecast(level=90) for model in past]
    np.testing.assert_array_equal(forecasts[0][:, 1], forecasts[1][:, 1])  # of the series left alone
    assert (forecasts[0][:, 0] != forecasts[1][:, 0]).any()


def test_losses_of_training_and_of_held_out_time_are_told_in_one_unit():
    options = {"width": 8, "n_layers": 1, "n_heads": 2, "window": 32, "max_epochs": 2, "random_state": 0}
    y = np.random.default_rng(0).normal(size=200).cumsum()
    histories = [FracForecaster(2, **options).fit(y * unit).history_ for unit in (1.0, 2.0**20)]
    np.testing.assert_array_equal(histories[0], histories[1])  # in units of the scale of the series
    assert len(histories[0]) > 1
    assert histories[0][0]._fields == ("epoch", "train_loss", "held_out_loss")


@pytest.mark.filterwarnings("ignore:.*the fit is perfect:fracts.checks.FitWarning")
@pytest.mark.parametrize("kind", ["a line", "a walk", "noise"])
def test_quantiles_never_cross(entry, kind):
    rng = np.random.default_rng(7)
    y = {
        "a line": np.linspace(0, 1, 130),
        "a walk": rng.normal(size=130).cumsum(),
        "noise": rng.normal(size=130),
    }
    forecast = entry.make(4).fit(y[kind]).forecast(9, quantiles=[0.1, 0.2, 0.21, 0.5, 0.99])
    assert (np.diff(forecast[:, 1:], axis=1) >= 0).all()


def test_an_end_of_an_interval_is_a_quantile_and_one_side_may_be_asked_for_alone(entry):
    model = entry.make(3).fit(panel(a=0))
    both, service = model.predict(level=90), model.predict(quantiles=0.95)
    name = type(model).__name__
    assert list(service.columns) == ["unique_id", "ds", name, f"{name}_ql0.95"]
    np.testing.assert_array_equal(both[f"{name}-hi-90"], service[f"{name}_ql0.95"])
