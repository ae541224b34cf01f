"""A comparison tells of each model what a user would work out by hand, and only what the losses carry."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from utilsforecast import losses
from utilsforecast.evaluation import evaluate

from fracts import Drift, FracRidge, Mean, Naive, SeasonalNaive, backtest, compare, plots
from fracts.forecasts import QUANTILES
from fracts.rolling_sums import CRPS_LEVELS
from fracts.scores import diebold_mariano, naive_scale

MODELS = {"last": Naive(3), "week": SeasonalNaive(3, season_length=7), "mean": Mean(3), "drift": Drift(3)}
LEVEL = [60, 90]


@pytest.fixture(scope="module")
def found(two_series):
    return compare(MODELS, two_series, start=140, step=2, level=LEVEL)


@pytest.fixture(scope="module")
def known(found):
    """The frame where there is a truth, all origins together: utilsforecast counts NaN as a miss."""
    return found.frame().dropna(subset="y").drop(columns="cutoff")


@pytest.fixture(scope="module")
def train(two_series):
    long = two_series[:140].rename_axis("ds").reset_index().melt("ds", var_name="unique_id", value_name="y")
    return long.dropna()


def told(table, column):
    return table[column].unstack("model")[list(MODELS)]


@pytest.mark.parametrize("metric", ["mase", "rmsse"])
def test_utilsforecast_finds_the_scaled_errors_of_the_table_in_its_frame(found, known, train, metric):
    function = getattr(losses, metric)
    expected = function(known, list(MODELS), seasonality=1, train_df=train).set_index("unique_id")
    pd.testing.assert_frame_equal(told(found.table("series"), metric), expected, check_names=False)
    for name in MODELS:
        assert found.table().loc[name, metric] == pytest.approx(expected[name].mean())


def test_evaluation_by_utilsforecast_gives_the_mase_coverage_and_smape_of_the_table(found, known, train):
    metrics = [_mase, losses.smape, losses.coverage]
    table = evaluate(known, metrics, train_df=train, level=LEVEL).set_index(["metric", "unique_id"])
    ours = {
        "_mase": "mase",
        "smape": "smape",
        "coverage_level60": "coverage-60",
        "coverage_level90": "coverage-90",
    }
    for theirs, name in ours.items():
        expected = table.loc[theirs][list(MODELS)]
        pd.testing.assert_frame_equal(told(found.table("series"), name), expected, check_names=False)


def _mase(df, models, train_df, id_col="unique_id", target_col="y", cutoff_col="cutoff", time_col="ds"):
    return losses.mase(df, models, 1, train_df, id_col, target_col, cutoff_col, time_col)


def test_the_crps_is_that_of_utilsforecast_over_the_quantiles(two_series):
    y = two_series.ffill()
    found = compare(MODELS, y, n_windows=20, level=LEVEL)
    frame = found.frame()
    for name, model in MODELS.items():
        fitted, quantiles = type(model)(**model.get_params()).fit(y[:-22]), []
        for turn in range(20):
            if turn:
                fitted.update(y[len(y) - 23 + turn : len(y) - 22 + turn])
            quantiles.append(fitted.forecast(quantiles=CRPS_LEVELS)[..., 1:].swapaxes(0, 1))
        columns = [f"{name}_{at}" for at in range(CRPS_LEVELS.size)]
        both = pd.DataFrame(np.reshape(quantiles, (-1, CRPS_LEVELS.size)), columns=columns)
        both[["unique_id", "y"]] = frame[["unique_id", "y"]]
        expected = losses.scaled_crps(both, {name: columns}, CRPS_LEVELS).set_index("unique_id")[name]
        ours = found.table("series")["scaled_crps"].xs(name, level="model")
        np.testing.assert_allclose(ours, expected, rtol=1e-9)
    assert set(CRPS_LEVELS.round(9)) <= set(QUANTILES.round(9))  # no quantile in it is interpolated


def test_a_width_is_the_mean_one_in_steps_of_the_history(found, known, two_series):
    for one, part in known.groupby("unique_id"):
        width = (part["week-hi-90"] - part["week-lo-90"]).mean() / naive_scale(two_series[one][:140])
        assert found.table("series").loc[(one, "week"), "width-90"] == pytest.approx(width)


# R 4.2.2, forecast 8.20: dm.test(a, b, h, power), where its variance is not above 0 with
# varestimator = "bartlett".
PUBLISHED = [
    (1, 1, 2.3285757836, 0.0251572960),
    (1, 2, 3.0069768342, 0.0046003697),
    (2, 1, 2.9425184822, 0.0054567629),
    (2, 2, 3.3974842659, 0.0015780511),
    (4, 1, 2.0307408685, 0.0491386640),
    (4, 2, 2.4942026684, 0.0169704249),
    (8, 1, 3.1250059324, 0.0033502101),
    (8, 2, 3.7182685361, 0.0006293907),
]


@pytest.mark.parametrize(("overlap", "power", "statistic", "p"), PUBLISHED)
def test_the_test_of_diebold_and_mariano_is_that_of_r(overlap, power, statistic, p):
    t = np.arange(1, 41)
    a = np.round(np.sin(t * 1.3) * 2 + np.cos(t * 0.7), 3)
    b = np.round(np.cos(t * 1.1) * 1.5 + 0.4 * np.sin(t * 0.2), 3)
    test = diebold_mariano(np.abs(a) ** power, np.abs(b) ** power, overlap)
    assert test.statistic == pytest.approx(statistic, abs=1e-9)
    assert test.p == pytest.approx(p, abs=1e-9)
    turned = diebold_mariano(np.abs(b) ** power, np.abs(a) ** power, overlap)
    assert turned == (-test.statistic, test.p)


def test_equal_losses_and_too_few_origins_are_not_tested():
    for pair in (([1.0, 2.0], [1.0, 2.0]), ([1.0], [2.0]), ([], []), ([np.nan, 1.0], [1.0, 2.0])):
        assert np.isnan(diebold_mariano(*pair)).all()
    assert np.isnan(diebold_mariano([1.0, 2.0, 4.0], [1.0, 1.0, 1.0], overlap=3)).all()
    with_hole = diebold_mariano([1.0, np.nan, 3.0, 4.0], [0.5, 1.0, 2.0, 1.0])
    assert with_hole == diebold_mariano([1.0, 3.0, 4.0], [0.5, 2.0, 1.0])


@given(st.integers(0, 2**31), st.integers(1, 6))
def test_under_no_difference_the_test_is_right_about_as_often_as_it_says(seed, overlap):
    """Differences of a moving average as long as the overlap: p below .1 in about a tenth of the draws."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(200, 300 + overlap))
    moving = np.stack([np.convolve(row, np.ones(overlap), "valid") for row in noise])
    p = np.array([diebold_mariano(row, np.zeros(row.size), overlap).p for row in moving])
    assert 0.02 < np.mean(p < 0.1) < 0.25


def test_ranks_and_the_order_are_by_mase_and_the_best_is_tested_against_nothing(found):
    table, each = found.table(), found.table("series")
    assert table["mase"].is_monotonic_increasing and np.isnan(table["dm_p"].iloc[0])
    for _, part in each.groupby(level="unique_id"):
        np.testing.assert_array_equal(part["rank"], [1, 2, 3, 4])
        assert np.isnan(part["dm"].iloc[0]) and (part["dm"].iloc[1:] > 0).all()
    ranks = each["rank"].groupby(level="model").mean()
    pd.testing.assert_series_equal(table["rank"].sort_index(), ranks)
    with pytest.raises(ValueError, match="by must be None or 'series', got 'lead'"):
        found.table("lead")


def test_the_test_in_the_table_is_of_paired_scaled_errors_by_origin(found, two_series):
    frame, table = found.frame(), found.table()
    best, other = table.index[0], table.index[-1]
    assert len(frame["cutoff"].unique()) == 29

    def by_origin(name):
        errors = (frame["y"] - frame[name]).abs()
        scaled = errors / frame["unique_id"].map(lambda one: naive_scale(two_series[one][:140]))
        each = scaled.groupby([frame["unique_id"], frame["cutoff"]]).mean()
        return each.groupby(level="cutoff").mean()

    test = diebold_mariano(by_origin(other), by_origin(best), overlap=2)  # 3 steps ahead, 2 apart
    assert table.loc[other, "dm"] == pytest.approx(test.statistic)
    assert table.loc[other, "dm_p"] == pytest.approx(test.p)


@pytest.mark.parametrize(
    ("horizon", "step", "overlap"), [(1, 1, 1), (4, 1, 4), (4, 2, 2), (5, 2, 3), (2, 7, 1)]
)
def test_the_overlap_is_how_many_forecasts_in_a_row_share_a_time(horizon, step, overlap):
    assert backtest(Naive(horizon), np.arange(60.0), start=20, step=step).overlap == overlap


def test_seconds_of_fits_and_of_forecasts_are_told_apart(two_series, monkeypatch):
    clock = iter(np.arange(0.0, 1e6))
    monkeypatch.setattr("fracts.rolling.perf_counter", lambda: next(clock))
    table = compare(Naive(2), two_series, n_windows=4, refit=2).table()
    # Each of two fits takes a tick, between two of its first batch; then come another batch and a last look.
    assert table.loc["Naive", ["fit_seconds", "predict_seconds"]].tolist() == [2.0, 8.0]


def test_the_frame_has_intervals_and_no_other_quantiles_and_is_the_users_own(found):
    ends = [f"-{end}-{level}" for end, level in (("lo", 90), ("lo", 60), ("hi", 60), ("hi", 90))]
    frame = found.frame()
    assert list(frame) == ["unique_id", "ds", "cutoff", "y"] + [m + e for m in MODELS for e in ["", *ends]]
    frame["last"] = 0.0
    assert (found.frame()["last"] != 0).any()


def test_one_model_of_a_still_series_has_what_scores_there_are():
    y = pd.DataFrame({"still": np.ones(40), "moving": np.arange(40.0) % 5})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compare(Naive(1), y, n_windows=10)
    table = found.table("series").droplevel("model")
    assert np.isnan(table.loc["still", "mase"]) and table.loc["still", "scaled_crps"] == 0
    assert found.table().loc["Naive", "mase"] == table.loc["moving", "mase"]


def test_models_with_covariates_are_compared_with_those_without(two_series):
    X = pd.DataFrame({"heat": np.arange(200.0) % 5}, two_series.index)
    with pytest.raises(TypeError, match="Naive"):
        compare({"ridge": FracRidge(2), "last": Naive(2)}, two_series, X, n_windows=3)


def test_the_picture_has_a_dot_a_model_and_grey_ones_for_series(found):
    ax = plots.plot_comparison(found)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == list(found.table().index) and ax.yaxis_inverted()
    large = [line for line in ax.lines if line.get_markersize() == 8]
    np.testing.assert_allclose([line.get_xdata()[0] for line in large], found.table()["mase"])
    hollow = [line.get_fillstyle() == "none" for line in large]
    assert hollow == (found.table()["dm_p"] > 0.05).tolist() and len(ax.lines) == 8
    assert bool(ax.get_title(loc="right")) == any(hollow)
