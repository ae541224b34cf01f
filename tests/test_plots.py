"""The pictures show what the model says, on log axes, with the law beside it."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from fracts import FracRidge, plots
from fracts.datasets import make_arfima
from fracts.projection import fractional_weights


@pytest.fixture(scope="module")
def model():
    return FracRidge(1, season_lengths=()).fit(make_arfima(4096, 0.3, random_state=0))


@pytest.fixture(scope="module")
def seasonal():
    y = pd.DataFrame({f"s{k}": make_arfima(600, 0.3, random_state=k) for k in range(7)})
    y = y.add(np.sin(2 * np.pi * np.arange(600) / 12), axis=0)
    return FracRidge(1, n_modes=6, season_lengths=12, pooled=False).fit(y)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def drawn(ax, label):
    """Points of the line of that label."""
    (line,) = [line for line in ax.lines if line.get_label() == label]
    return line.get_xdata(), line.get_ydata()


def assert_log_axes(ax):
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert ax.get_xlabel() and ax.get_ylabel() and ax.get_legend() is not None
    ax.figure.canvas.draw()


def test_the_kernel_is_drawn_beside_the_weights_of_its_own_exponent(model):
    lags = [1, 2, 5, 30, 900]
    ax = plots.plot_memory_kernel(model, lags)
    assert_log_axes(ax)
    weights = model.memory_kernel(lags)["weight"].to_numpy()
    x, y = drawn(ax, "the model")
    np.testing.assert_array_equal(x, lags)
    np.testing.assert_array_equal(y, np.where(weights > 0, weights, np.nan))
    d, error = model.memory_exponent()
    _, law = drawn(ax, f"ARFIMA, d = {d:.2f} ± {error:.2f}")
    np.testing.assert_allclose(law, fractional_weights(d, lags))


def test_negative_weights_are_drawn_hollow_at_their_size():
    model = FracRidge(1, season_lengths=()).fit(make_arfima(4096, -0.3, random_state=0))
    ax = plots.plot_memory_kernel(model, [1, 2, 3])
    hollow = [line for line in ax.lines if line.get_fillstyle() == "none"]
    np.testing.assert_array_equal(hollow[0].get_ydata(), -model.memory_kernel([1, 2, 3])["weight"])
    assert all(np.nanmin(line.get_ydata()) > 0 for line in ax.lines if np.isfinite(line.get_ydata()).any())


def test_the_spectrum_of_an_ideal_memory_lies_on_the_law_that_is_drawn(monkeypatch, model):
    """Modes weighed by that law make the weights of ARFIMA, so it is the right line to compare with."""
    tau = model.memory_spectrum()["timescale"].to_numpy()
    tau = tau[tau > 0]  # the last value itself is no mode of the law
    ax = plots.plot_memory_spectrum(model)
    assert_log_axes(ax)
    d = model.memory_exponent().d
    x, law = drawn(ax, f"law of d = {d:.2f}")
    np.testing.assert_array_equal(x, tau)
    lag = np.array([30.0, 100.0, 1000.0])
    kernel = np.exp(-lag[:, None] / tau) @ (law / tau)
    np.testing.assert_allclose(kernel, fractional_weights(d, lag), rtol=0.05)


def test_modes_of_seasons_have_a_mark_of_their_own(seasonal):
    ax = plots.plot_memory_spectrum(seasonal)
    table = seasonal.memory_spectrum().query("series == 's0' and timescale > 0")
    for what, modes in (
        ("plain modes", table[np.isinf(table.period)]),
        ("modes of seasons", table[np.isfinite(table.period)]),
    ):
        assert len(modes)
        np.testing.assert_array_equal(drawn(ax, f"s0: {what}")[0], modes["timescale"])


@pytest.mark.parametrize("plot", [plots.plot_memory_kernel, plots.plot_memory_spectrum])
def test_series_with_weights_of_their_own_are_drawn_each_up_to_six_on_the_axes_given(seasonal, plot):
    ax = plt.figure().add_subplot()
    assert plot(seasonal, ax=ax) is ax
    assert_log_axes(ax)
    names = {line.get_label().split(":")[0] for line in ax.lines if ":" in line.get_label()}
    assert names == {f"s{k}" for k in range(6)}


def test_the_default_lags_reach_from_1_to_1000(model):
    x, _ = drawn(plots.plot_memory_kernel(model), "the model")
    assert x[0] == 1 and x[-1] == 1000 and (np.diff(x) > 0).all()


def test_matplotlib_is_loaded_by_the_first_picture_only():
    code = "import sys; import fracts.plots; print('matplotlib' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


@pytest.mark.parametrize("n_series, note", [(2, None), (8, "6 of 8 series")])
def test_the_legend_says_what_is_left_out_and_what_is_negative(n_series, note):
    y = make_arfima(600, -0.4 if note is None else 0.3, n_series=n_series, random_state=0)
    ax = plots.plot_memory_kernel(FracRidge(1, pooled=False).fit(y), lags=[1, 2, 3])
    title = ax.get_legend().get_title().get_text()
    negative = any(line.get_linestyle() == "--" for line in ax.lines)
    assert negative == (note is None)
    assert (note or "hollow or dashed: negative") in title


def test_a_season_is_among_the_lags():
    rows = pd.date_range("2024", periods=600, freq="h")
    y = pd.Series(np.sin(2 * np.pi * np.arange(600) / 24) + make_arfima(600, 0.3, random_state=0), rows)
    ax = plots.plot_memory_kernel(FracRidge(1).fit(y))
    assert {24, 48, 168} <= set(ax.lines[0].get_xdata())
