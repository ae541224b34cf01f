"""Models whose intervals learn: a stream equals a batch, forecasts come due as made, states travel."""

import copy
import functools
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fracts import FracForecaster, FracRidge, backtest
from fracts.conformal import Calibrator
from fracts.heads import PARTS
from fracts.linear import LinearPath
from fracts.online import due_row
from fracts.plan import plan_of

ROWS, FITTED, HORIZON, LEVELS = 190, 150, 3, [50, 80, 95]
DAYS = pd.date_range("2024-01-01", periods=ROWS + HORIZON, freq="D")


def table(seed):
    """A number and a category known in advance, and a number that is not."""
    draws = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "heat": draws.normal(size=len(DAYS)),
            "flow": draws.normal(size=len(DAYS)).cumsum(),
            "sky": draws.choice(["clear", "rain"], len(DAYS)),
        },
        DAYS,
    )


def history(seed, n_series=2, missing=0.0):
    draws, X = np.random.default_rng(seed), table(0)
    moved = (X["heat"] + 2.0 * (X["sky"] == "rain"))[:ROWS].to_numpy()[:, None] * np.arange(1, n_series + 1)
    values = moved + draws.normal(size=(ROWS, n_series)).cumsum(0) * 0.3 + draws.normal(size=(ROWS, n_series))
    values[draws.random(values.shape) < missing] = np.nan
    values[[0, -1]] = 1.0
    return pd.DataFrame(values, DAYS[:ROWS], list("ab")[:n_series])


@functools.cache
def fitted(kind, covariates):
    options = {"season_lengths": (7,), "calibration": "adaptive"}
    options |= {"past_only": ("flow",)} if covariates else {}
    if kind == "ridge":
        model = FracRidge(HORIZON, **options)
    else:
        small = {"width": 16, "n_layers": 1, "n_heads": 2, "window": 64, "max_epochs": 1, "random_state": 0}
        model = FracForecaster(HORIZON, **options, **small)
    return model.fit(history(0)[:FITTED], table(0) if covariates else None)


@pytest.fixture(params=["ridge", "network"])
def make(request, random_weights):
    """A fitted model, with covariates or without; of the network every weight is random, in float64."""

    def model(covariates=False):
        alive = copy.deepcopy(fitted(request.param, covariates))
        if request.param == "network":
            random_weights(alive.network_, 0)
            alive.network_.double()
            alive = alive.apply(history(0)[:FITTED], table(0) if covariates else None)
        return alive

    return model


def intervals(model, X=None, horizon=HORIZON):
    return np.asarray(model.forecast(horizon, X, level=LEVELS))


@pytest.mark.parametrize("covariates", [False, True])
def test_pieces_single_steps_and_one_pass_agree(make, covariates):
    start, X = make(covariates), table(0) if covariates else None

    @settings(max_examples=3)
    @given(
        st.integers(0, 99), st.lists(st.integers(1, ROWS - FITTED - 1), max_size=4), st.sampled_from([0, 0.3])
    )
    def agree(seed, cuts, missing):
        y = history(seed, missing=missing)[FITTED:]
        whole, pieces, steps = (copy.copy(start) for _ in range(3))
        whole.update(y, X)
        for at, to in zip([0, *sorted(set(cuts))], [*sorted(set(cuts)), len(y)], strict=True):
            pieces.update(y.iloc[at:to], X)
        for stamp, row in zip(y.index, y.to_numpy(), strict=True):
            steps.learn_many(row, None if X is None else X.loc[stamp].to_dict())
        expected = intervals(whole, X)
        for other in (pieces, steps):
            np.testing.assert_allclose(intervals(other, X), expected, rtol=0, atol=1e-9)

    agree()


def test_a_row_dropped_is_a_row_without_a_value(make):
    y = history(3, missing=0.4)[FITTED:]
    whole = make().update(y)
    dropped = make().update(y[y.notna().any(axis=1)])
    np.testing.assert_allclose(intervals(dropped), intervals(whole), rtol=0, atol=1e-9)


@pytest.mark.parametrize("covariates", [False, True])
def test_forecasts_come_due_as_they_were_made(make, covariates, monkeypatch):
    """Medians and measures of an error are those of the forecast, what was known ahead included."""
    X, y, seen = table(0) if covariates else None, history(4)[FITTED:], []
    whole = Calibrator.along

    def spying(self, state, panel, said, complete, rows):
        def noted(due, beside):
            outlook = complete(due, beside)
            seen.append(outlook)
            return outlook

        return whole(self, state, panel, said, noted, rows)

    model = make(covariates)
    made = []
    for stamp, row in zip(y.index, y.to_numpy(), strict=True):
        # Thresholds and averages of fresh held-out errors leave the median of the model alone.
        plain = copy.copy(model)
        plain._state = plain._state | plain._calibrator.start(plain._state["group"])
        quantiles = plain._read(plain._state | {"ahead": plain._ahead(X, HORIZON, plain._counts)}).quantiles
        made.append(quantiles)
        monkeypatch.setattr(Calibrator, "along", spying)
        model.learn_many(row, None if X is None else X.loc[stamp].to_dict())
        monkeypatch.undo()
    assert len(seen) == len(y)
    middle, tracker, group = made[0].shape[-1] // 2, model._calibrator, model._state["group"]
    for row in range(HORIZON, len(y)):
        for at, lead in enumerate(tracker.leads):
            quantiles = made[row - lead + 1][:, lead - 1]
            ends = [0, -1]
            measure = (quantiles[:, ends] - quantiles[:, [middle]]) / tracker.distances[group, lead - 1][
                :, ends
            ]
            for name, expected in (
                ("median", quantiles[:, middle]),
                ("below", measure[:, 0]),
                ("above", measure[:, -1]),
            ):
                found = getattr(seen[row], name)[:, at]
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9, err_msg=name)


def test_a_backtest_is_a_loop_of_update_and_forecast(make):
    y, model = history(5), make()
    kind = type(model)(**model.get_params())
    frame = backtest(kind, y, start=FITTED, level=LEVELS).frame()
    loop = copy.deepcopy(kind).fit(y[:FITTED])
    for row in range(FITTED, ROWS - HORIZON + 1):
        told = frame[frame["cutoff"] == loop.cutoff_].set_index("unique_id").filter(like=type(model).__name__)
        expected = np.moveaxis(intervals(loop), 1, 0).reshape(-1, 1 + 2 * len(LEVELS))
        np.testing.assert_allclose(told.to_numpy(), expected, rtol=0, atol=1e-6)
        loop.update(y.iloc[row : row + 1])


@pytest.mark.parametrize("unit", [1000.0, 1e-3, -1.0])
def test_units_do_not_matter(unit):
    y = history(6)["a"]
    first, second = (
        intervals(
            FracRidge(HORIZON, season_lengths=7, calibration="adaptive").fit(z[:FITTED]).update(z[FITTED:])
        )
        for z in (y, unit * y)
    )
    second = second / unit
    if unit < 0:
        second[:, 1:] = second[:, :0:-1]
    np.testing.assert_allclose(second, first, rtol=0, atol=1e-9)


def test_intervals_learn_and_the_point_forecast_is_that_of_held_out_calibration():
    y = history(7)["a"]
    y[FITTED:] += 2 * np.random.default_rng(0).normal(size=ROWS - FITTED)
    plain, adaptive = (
        FracRidge(HORIZON, season_lengths=7, calibration=name).fit(y[:FITTED])
        for name in ("held-out", "adaptive")
    )
    for model in (plain, adaptive):
        model.update(y[FITTED:])
    np.testing.assert_array_equal(intervals(plain)[:, 0], intervals(adaptive)[:, 0])
    wider = np.diff(intervals(adaptive)[:, [2, 5]]) / np.diff(intervals(plain)[:, [2, 5]])
    assert (wider > 1.1).all()


def test_the_last_held_out_errors_count_most_at_the_end_of_fit():
    draws = np.random.default_rng(8).normal(size=800)
    late = np.arange(800) >= 640
    ratio = []
    for spread in (np.where(late, 4, 1), np.where(late, 1, 4)):
        width = [
            np.diff(
                FracRidge(1, season_lengths=(), calibration=name)
                .fit(spread * draws)
                .forecast(level=80)[0, 1:]
            )
            for name in ("held-out", "adaptive")
        ]
        ratio.append(width[1].item() / width[0].item())
    assert ratio[0] > 1.2 and ratio[1] < 0.7


def test_a_fit_learns_from_held_out_forecasts_and_an_apply_from_its_own(monkeypatch):
    held_out = LinearPath.held_out_readings

    def too_high(path, panel):
        reading = held_out(path, panel)
        return reading._replace(leads=reading.leads + 3)

    monkeypatch.setattr(LinearPath, "held_out_readings", too_high)
    y = np.random.default_rng(0).normal(size=800)
    model = FracRidge(2, season_lengths=(), calibration="adaptive").fit(y)
    mean_error, applied = (one.get_state()["averages"][0, :, 0] for one in (model, model.apply(y)))
    assert (mean_error < -1.5).all() and (np.abs(applied) < 0.3).all()


def test_coverage_comes_back_after_a_level_and_a_spread_that_broke():
    rng = np.random.default_rng(9)
    y = rng.normal(size=1800)
    y[900:] = 8 + 3 * y[900:]
    share = {}
    for name in ("held-out", "adaptive"):
        model = FracRidge(1, season_lengths=(), calibration=name)
        frame = backtest(model, y, start=800, level=80).frame()[200:]
        inside = (frame["FracRidge-lo-80"] <= frame["y"]) & (frame["y"] <= frame["FracRidge-hi-80"])
        share[name] = inside.rolling(500).mean().dropna()
    assert share["adaptive"].between(0.75, 0.85).all()
    assert share["held-out"].max() < 0.6


def test_a_state_has_one_size_and_travels_in_files_and_in_shards(make, tmp_path):
    y, model = history(10), make()
    size = model.state_nbytes
    model.update(y[FITTED : FITTED + 20])
    assert model.state_nbytes == size
    model.save(tmp_path / "model")
    read = type(model).load(tmp_path / "model")
    shard = copy.deepcopy(model).set_state(model.get_state(["b"]))
    for other in (model, read):
        other.update(y[FITTED + 20 :])
    shard.update(y[["b"]][FITTED + 20 :])
    np.testing.assert_array_equal(intervals(read), intervals(model))
    np.testing.assert_allclose(intervals(shard)[:, 0], intervals(model)[:, 1], rtol=0, atol=1e-9)


def test_paths_beyond_the_horizon_learn_nothing_and_never_cross(make, monkeypatch):
    model = make().update(history(11)[FITTED:])
    before = pickle.dumps(model)
    monkeypatch.delattr(Calibrator, "along")
    table = intervals(model, horizon=4 * HORIZON)
    assert pickle.dumps(model) == before
    assert (np.diff(table[..., 1:]) >= 0).all()
    np.testing.assert_array_equal(table[:HORIZON], intervals(model))


def test_held_out_calibration_keeps_no_forecasts():
    y = history(12)["a"]
    plain, adaptive = (
        FracRidge(HORIZON, season_lengths=7, calibration=name).fit(y[:FITTED]).get_state()
        for name in ("held-out", "adaptive")
    )
    assert set(adaptive) - set(plain) == {"thresholds", "averages", "due", "due_features"}
    for name in set(plain) - {"weights"}:
        np.testing.assert_array_equal(plain[name], adaptive[name])


@pytest.mark.parametrize("wrong", ["aci", True, None, "Adaptive"])
def test_another_calibration_is_refused(wrong):
    for model in (FracRidge(1, calibration=wrong), FracForecaster(1, calibration=wrong)):
        with pytest.raises(ValueError, match=r"calibration must be 'held-out'.*or 'adaptive'.*got"):
            model.fit(np.arange(50.0))


@pytest.mark.parametrize("covariates", [False, True])
def test_what_a_network_makes_of_a_due_forecast_is_what_its_head_says(random_weights, covariates):
    model = copy.deepcopy(fitted("network", covariates))
    network = model.network_.double()
    random_weights(network, 1)
    draws, n_known = torch.Generator().manual_seed(0), model._covariates.n_known
    features = torch.randn(2, 3, 16, dtype=torch.float64, generator=draws)
    known = torch.randn(2, n_known, dtype=torch.float64, generator=draws)
    leads = np.array([1, 2, 3])
    shift, below, above = due_row(plan_of(network), features.numpy(), leads, known.numpy())
    errors = network.head.errors[0].numpy()
    middle = errors.shape[-1] // 2
    ahead = known[:, None].expand(2, HORIZON, n_known)
    for at, lead in enumerate(leads):
        said = network.head(features[:, at], torch.zeros(2, dtype=torch.int64), ahead).detach().numpy()
        centre = errors[lead - 1, middle]
        apart = errors[lead - 1] - centre
        stretch = np.where(np.arange(apart.size) < middle, below[:, at, None], above[:, at, None])
        expected = shift[:, at, None] + centre + apart * np.exp(stretch)
        np.testing.assert_allclose(said[:, lead - 1], expected, atol=1e-9)
    network.head.silence(*PARTS)
    assert not due_row(plan_of(network), features.numpy(), leads, known.numpy()).any()
