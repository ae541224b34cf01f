"""Many series, each with its own model: who fails is named, replaced, and does not touch the others."""

import io
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from fracts import FitWarning
from fracts.baselines import ARFIMA, SeasonalNaive, progress
from fracts.baselines.each import Fitted, _fit_all
from fracts.datasets import make_arfima

DAYS = pd.date_range("2024-01-01", periods=140, freq="D")


@pytest.fixture
def panel():
    y = make_arfima(140, 0.3, n_series=3, random_state=0)
    return pd.DataFrame(y, DAYS, ["a", "b", "c"]).assign(
        flat=7.0, short=np.where(np.arange(140) < 9, 1.0, np.nan)
    )


def fitted(model, y, match):
    with pytest.warns(FitWarning, match=match) as said:
        model.fit(y)
    assert len(said) == 1 and said[0].filename == __file__
    return model


def test_series_that_fail_are_named_with_their_reason_in_one_warning(panel):
    model = fitted(
        ARFIMA(3), panel, "ARFIMA: series 'flat': its values are constant; series 'short': .* Naive forecasts"
    )
    assert list(model.failures_) == ["flat", "short"]
    assert list(model.estimates_) == ["a", "b", "c"]
    assert model.failures_["short"].startswith("9 values are too few for 1 parameters, 20 are needed")
    table = model.predict(level=90)
    assert np.isfinite(table.to_numpy()).all()
    np.testing.assert_array_equal(table[["flat", "flat-lo-90", "flat-hi-90"]], 7.0)


def test_a_series_that_fails_has_the_forecast_of_the_fallback_and_leaves_the_others_alone(panel):
    fallback = SeasonalNaive(3, season_length=7)
    panel["short"] = np.where(np.arange(140) > 128, np.arange(140.0) ** 2, np.nan)
    model = fitted(ARFIMA(3, fallback=fallback), panel, "SeasonalNaive forecasts in its place")
    assert not hasattr(fallback, "_state")
    found = model.predict(level=80)
    expected = fallback.fit(panel[["short"]]).predict(level=80)
    pd.testing.assert_frame_equal(found[expected.columns], expected, check_freq=False)
    alone = ARFIMA(3).fit(panel[["a", "b", "c"]]).predict(level=80)
    pd.testing.assert_frame_equal(found[alone.columns], alone, check_freq=False)


def test_the_state_of_both_kinds_moves_on(panel):
    model = fitted(ARFIMA(2), panel.iloc[:120], "flat")
    whole = model.apply(panel).predict(level=80)
    model.update(panel.iloc[120:])
    pd.testing.assert_frame_equal(model.predict(level=80), whole)
    part = model.apply(panel[["short", "c"]]).predict(level=80)
    pd.testing.assert_frame_equal(part, whole[part.columns], check_exact=False, rtol=1e-12)


def test_a_series_that_was_not_fitted_has_no_coefficients(panel):
    model = ARFIMA(2).fit(panel[["a", "b"]])
    with pytest.raises(ValueError, match="series 'c' was not fitted"):
        model.apply(panel[["c"]])
    single = ARFIMA(2).fit(panel[["a"]])
    assert single.apply(panel[["c"]]).predict().shape == (2, 1)


@pytest.mark.slow
def test_processes_change_no_bit(panel):
    y = panel[["a", "b", "c"]]
    pd.testing.assert_frame_equal(ARFIMA(2, n_jobs=2).fit(y).predict(), ARFIMA(2).fit(y).predict())


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_a_fit_has_one_thread_of_linear_algebra(n_jobs):
    def threads(values, first):
        from threadpoolctl import threadpool_info

        libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
        return Fitted(None, [library["num_threads"] for library in libraries])

    with threadpool_limits(4):
        found = _fit_all(threads, np.ones((3, 5)), n_jobs, progress=False)
    assert {count for fit in found for count in fit.learned} == {1}


def test_progress_is_silent_unless_asked_for_and_then_counts_series(panel, capsys):
    y = panel[["a", "b"]]
    ARFIMA(2).fit(y)
    assert capsys.readouterr() == ("", "")
    ARFIMA(2, progress=True).fit(y)
    out, err = capsys.readouterr()
    assert out == "" and "2/2" in err and "series" in err


def test_progress_in_a_log_is_whole_lines_now_and_then(capsys, monkeypatch):
    clock = iter([0.0, 4.0, 11.0, 12.0, 13.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    assert list(progress.shown(iter("abcd"), 4)) == list("abcd")
    lines = capsys.readouterr().err.split("\n")
    assert [line.partition("/4 [")[0][-1:] for line in lines] == ["2", "4", ""]
    assert not any("\r" in line for line in lines)


def test_progress_in_a_notebook_is_one_output_that_changes(monkeypatch):
    cell = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    outputs, updates = [], []
    output = SimpleNamespace(update=lambda data, raw: updates.append(data["text/plain"]))
    display = SimpleNamespace(display=lambda data, raw, display_id: outputs.append(data) or output)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(progress.sys, "stderr", cell)
    assert list(progress.shown(iter("ab"), 2)) == ["a", "b"]
    assert cell.getvalue() == "" and len(outputs) == 1
    assert len(updates) == 1 and updates[0].startswith("100%") and "2/2" in updates[0]


def test_stamps_on_no_grid_are_refused_with_a_cure():
    stamps = pd.to_datetime("2024-01-01") + pd.to_timedelta(
        np.cumsum(np.random.default_rng(0).exponential(size=60)), "h"
    )
    with pytest.raises(ValueError, match=r"ARFIMA counts steps, and these stamps lie on no grid.*FracRidge"):
        ARFIMA(2).fit(pd.Series(np.arange(60.0), stamps))


def test_the_fallback_is_a_forecaster():
    with pytest.raises(TypeError, match=r"fallback must be None \(Naive\) or a forecaster, got a ABCMeta"):
        ARFIMA(2, fallback=SeasonalNaive).fit(np.arange(50.0))
