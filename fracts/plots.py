"""Pictures of what a model remembers, of how several do beside each other, and of a search.

One idea: on log axes a power law is a straight line, so a look at a kernel or a spectrum tells how far the
memory follows one and where it stops. Each function draws on matplotlib axes and returns them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fracts.axes import new_axes
from fracts.comparison import Comparison
from fracts.inspection import Inspection
from fracts.projection import fractional_weights
from fracts.search_plots import plot_search_history as plot_search_history
from fracts.search_plots import plot_search_importance as plot_search_importance
from fracts.search_plots import plot_timescale_map as plot_timescale_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

Array = NDArray[np.float64]

_LAGS = np.unique(np.geomspace(1, 1000, 60).astype(np.int64))
_SEASONS = 10  # of each length, among the lags
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito (2008)
_DEEPEST = 1e-5  # of the largest weight: how far down an axis goes
_DOUBT = 0.05  # p-value above which a model is not told apart from the best


def plot_memory_kernel(model: Inspection, lags: ArrayLike | None = None, ax: Axes | None = None) -> Axes:
    """The weight of each past value in the next forecast, beside the law of the model's own exponent.

    The law is the best forecast of ARFIMA(0, d, 0) with the d of `memory_exponent`, which falls like
    lag**-(1 + d). Log axes have no place for a negative weight: its size is drawn, as a hollow dot, and a law
    of negative d as a dashed line.

    Parameters
    ----------
    model : a fitted FracRidge or FracForecaster.
    lags : (lags,), steps back, integers of at least 1; None for some from 1 to 1,000, seasons among them.
    ax : axes to draw on; None makes new ones.

    Returns
    -------
    The axes. Where every series has weights of its own the first six are drawn.

    Raises
    ------
    NotFittedError : the model is not fitted.
    ValueError : `lags` are empty or not as above.

    Examples
    --------
    >>> from fracts import FracRidge
    >>> y = np.random.default_rng(0).normal(size=300).cumsum()
    >>> plot_memory_kernel(FracRidge(1).fit(y)).get_xlabel()
    'lag (steps)'
    """
    table = model.memory_kernel(_lags(model) if lags is None else lags)
    ax = ax or new_axes()
    for name, kernel, color in _by_series(table):
        lag = kernel["lag"].to_numpy()
        d, error = model.memory_exponent(name)
        law = fractional_weights(d, lag)
        _draw_dots(ax, lag, kernel["weight"].to_numpy(), color, "o", _label(name, "the model"))
        _draw_law(ax, lag, law, color, _label(name, f"ARFIMA, d = {d:.2f} ± {error:.2f}"))
    return _finished(ax, "lag (steps)", "weight of a past value", "upper right", _n_series(table))


def plot_memory_spectrum(model: Inspection, ax: Axes | None = None) -> Axes:
    """The weight of each mode in the next forecast, beside the law of the model's own exponent.

    The law is what ARFIMA(0, d, 0) with the d of `memory_exponent` gives to slow modes of this spacing: it
    falls like timescale**-d. Log axes have no place for a negative weight: its size is drawn, hollow. Nor for
    a timescale of 0, the last value as an anchor.

    Parameters
    ----------
    model : a fitted FracRidge or FracForecaster, of which the linear path is drawn.
    ax : axes to draw on; None makes new ones.

    Returns
    -------
    The axes. Where every series has weights of its own the first six are drawn.

    Raises
    ------
    NotFittedError : the model is not fitted.

    Examples
    --------
    >>> from fracts import FracRidge
    >>> y = np.random.default_rng(0).normal(size=300).cumsum()
    >>> plot_memory_spectrum(FracRidge(1).fit(y)).get_xlabel()
    'timescale (steps)'
    """
    table = model.memory_spectrum()
    ax = ax or new_axes()
    for name, modes, color in _by_series(table[table["timescale"] > 0]):
        plain = np.isinf(modes["period"].to_numpy())
        timescale, weight = modes["timescale"].to_numpy(), modes["weight"].to_numpy()
        d = model.memory_exponent(name).d
        _draw_dots(ax, timescale[plain], weight[plain], color, "o", _label(name, "plain modes"))
        if not plain.all():
            _draw_dots(ax, timescale[~plain], weight[~plain], color, "x", _label(name, "modes of seasons"))
        law = _spectral_law(timescale[plain], d)
        _draw_law(ax, timescale[plain], law, color, _label(name, f"law of d = {d:.2f}"))
    return _finished(ax, "timescale (steps)", "weight of a mode of unit gain", "lower left", _n_series(table))


def plot_comparison(comparison: Comparison, ax: Axes | None = None) -> Axes:
    """The MASE of each model, the best at the top, over that of each series.

    Parameters
    ----------
    comparison : what `fracts.compare` gave.
    ax : axes to draw on; None makes new ones.

    Returns
    -------
    The axes. A grey dot is a series, a large dot the mean over series: filled where the test of Diebold and
    Mariano tells the model from the best (p below 0.05), and for the best itself.

    Examples
    --------
    >>> from fracts import Mean, Naive, compare
    >>> y = np.random.default_rng(0).normal(size=60).cumsum()
    >>> plot_comparison(compare({"last": Naive(1), "mean": Mean(1)}, y, start=40)).get_xlabel()
    'MASE'
    """
    table, each = comparison.table(), comparison.table("series")["mase"]
    ax = ax or new_axes()
    doubts = table["dm_p"] > _DOUBT
    for row, name in enumerate(table.index.tolist()):
        of_series = each.xs(name, level="model").to_numpy()
        if of_series.size > 1:
            ax.plot(of_series, np.full(of_series.size, row), "o", color="0.7", markersize=3)
        style: Literal["none", "full"] = "none" if doubts[name] else "full"
        ax.plot(table["mase"][name], row, "o", color=_COLORS[0], markersize=8, fillstyle=style)
    ax.set(xlabel="MASE", yticks=np.arange(len(table)), yticklabels=list(table.index))
    ax.set_ylim(len(table) - 0.5, -0.5)
    if doubts.any():
        ax.set_title("hollow: not told apart from the best", fontsize="small", loc="right")
    return ax


def _lags(model: Inspection) -> NDArray[np.int64]:
    """Evenly spaced on a log axis, and whole seasons, where a seasonal model has its weights."""
    seasons = [length * np.arange(1, _SEASONS + 1) for length in model.season_lengths_]
    lags = np.unique(np.concatenate([_LAGS, *seasons]).astype(np.int64))
    near: NDArray[np.int64] = lags[lags <= _LAGS[-1]]
    return near


def _spectral_law(timescales: Array, d: float) -> Array:
    """Weights of modes of unit gain that together fall like the weights of ARFIMA(0, d, 0).

    Those are about d / Gamma(1 - d) * lag^-(1 + d), and lag^-(1 + d) is the integral over log timescale of
    timescale^-(1 + d) exp(-lag / timescale) / Gamma(1 + d). A mode has gain 1 / timescale.
    """
    spacing = np.gradient(np.log(timescales)) if timescales.size > 1 else np.ones(timescales.size)
    law: Array = np.sin(np.pi * d) / np.pi * spacing * timescales**-d
    return law


def _by_series(table: pd.DataFrame) -> Iterator[tuple[Any, pd.DataFrame, str]]:
    """Name, rows and colour of each series; fewer than all where colours run out."""
    names = table["series"].tolist()
    for name, color in zip(dict.fromkeys(names), _COLORS, strict=False):
        yield name, table[[other is name or other == name for other in names]], color


def _label(name: Any, what: str) -> str:
    return what if name is None else f"{name}: {what}"


def _draw_dots(ax: Axes, x: Array, weight: Array, color: str, marker: str, label: str) -> None:
    """The size of each weight, hollow where it is negative."""
    ax.plot(x, np.where(weight > 0, weight, np.nan), marker, color=color, markersize=4, label=label)
    ax.plot(x, np.where(weight < 0, -weight, np.nan), marker, color=color, markersize=4, fillstyle="none")


def _draw_law(ax: Axes, x: Array, law: Array, color: str, label: str) -> None:
    """The size of the law, dashed where it is negative."""
    for sign, style in ((1, "-"), (-1, "--")):
        size = np.where(sign * law > 0, sign * law, np.nan)
        if not np.isnan(size).all():
            ax.plot(x, size, style, color=color, linewidth=1, alpha=0.7, label=label)


def _n_series(table: pd.DataFrame) -> int:
    return len(dict.fromkeys(table["series"].tolist()))


def _finished(ax: Axes, x: str, y: str, free: Literal["upper right", "lower left"], n_series: int) -> Axes:
    """`ax` with log scales, names of the axes `x` and `y`, and a legend in the corner `free`."""
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=np.float64) for line in ax.lines])
    ax.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    if not np.isnan(drawn).all():
        top = np.nanmax(drawn)
        ax.set_ylim(bottom=max(np.nanmin(drawn), _DEEPEST * top) / 2, top=2 * top)
    notes = [f"{len(_COLORS)} of {n_series} series"] * (n_series > len(_COLORS))
    notes += ["hollow or dashed: negative"] * any(_is_negative(line) for line in ax.lines)
    title = "; ".join(notes) or None
    ax.legend(frameon=False, loc=free, fontsize="small", title=title, title_fontsize="small")
    return ax


def _is_negative(line: Line2D) -> bool:
    marked = line.get_fillstyle() == "none" or line.get_linestyle() == "--"
    return marked and not np.isnan(np.asarray(line.get_ydata(), dtype=np.float64)).all()
