"""Pictures of a search: how the best loss fell, which parameters it hangs on, and the map of timescales.

One idea: a search is a cloud of trials, each a point in the space with a loss. A pruned trial has no loss of
its own, and only the history shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from fracts.axes import new_axes
from fracts.search import FracSearch

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

_BEST, _TRIAL, _PRUNED = "#D55E00", "#0072B2", "#999999"  # Okabe and Ito (2008), and grey
_REACH = 0.15  # of the width of the map, over which a trial tells of its surroundings
_CELLS = 80
_WORST_SHOWN = 0.75  # share of the trials; the losses of the others lie beyond the colours
_MARGIN = 0.05


def plot_search_history(search: FracSearch, ax: Axes | None = None) -> Axes:
    """The loss of every trial by its number, and the best so far.

    Parameters
    ----------
    search : fitted.
    ax : axes to draw on; None makes new ones.

    Returns
    -------
    The axes. Pruned trials are ticks at the top. The axis ends a little above three quarters of the losses
    and the first one; triangles at its top stand for worse ones.

    Raises
    ------
    NotFittedError : the search is not fitted.

    Examples
    --------
    >>> from fracts import WindowAverage
    >>> search = FracSearch(WindowAverage(2, 9), n_trials=5, random_state=0).fit(np.arange(60) % 6)
    >>> plot_search_history(search).get_xlabel()
    'trial'
    """
    table = _table(search)
    ax = ax or new_axes()
    number, losses = table["trial"], -table["mean_test_score"]
    done = np.isfinite(losses)
    best = np.minimum.accumulate(np.where(done, losses, np.inf))
    top = _ceiling(losses[done])
    near, far = done & (losses <= top), losses > top
    ax.plot(number[near], losses[near], "o", color=_TRIAL, markersize=4, alpha=0.7, label="trial")
    ax.step(number, best, where="post", color=_BEST, label="best so far")
    high = np.full(len(losses), top)
    if far.any():
        ax.plot(number[far], high[far], "^", color=_TRIAL, markersize=4, label="worse than shown")
    if (~done).any():
        ax.plot(number[~done], high[~done], "|", color=_PRUNED, markersize=8, label="pruned or infinite")
    ax.set(xlabel="trial", ylabel=f"validation {search.metric}")
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_search_importance(search: FracSearch, ax: Axes | None = None) -> Axes:
    """How much of the spread of the losses hangs on each parameter, the most important at the top.

    Parameters
    ----------
    search : fitted, with at least two trials of different losses.
    ax : axes to draw on; None makes new ones.

    Returns
    -------
    The axes; the shares sum to 1.

    Raises
    ------
    NotFittedError : the search is not fitted.
    ValueError : fewer than two trials ended, or all with one loss.

    Notes
    -----
    PED-ANOVA, as Optuna has it (Watanabe, Bansal and Hutter, 2023, IJCAI): what sets the best trials apart.

    Examples
    --------
    >>> from fracts import FracRidge
    >>> y = np.sin(np.arange(200.0)) + np.random.default_rng(0).normal(size=200)
    >>> search = FracSearch(FracRidge(2, season_lengths=()), n_trials=9, random_state=0).fit(y)
    >>> round(float(sum(bar.get_width() for bar in plot_search_importance(search).patches)), 6)
    1.0
    """
    losses = -_table(search)["mean_test_score"]
    losses = losses[np.isfinite(losses)]
    if np.unique(losses).size < 2:
        raise ValueError(
            f"{losses.size} trials ended, with {np.unique(losses).size} different losses; two are needed to "
            "tell what they hang on. Run more trials."
        )
    from optuna.importance import get_param_importances

    shares = get_param_importances(search.study_)
    ax = ax or new_axes()
    names = list(shares)[::-1]
    ax.barh(names, [shares[name] for name in names], color=_TRIAL)
    ax.set(xlabel=f"share in the spread of the validation {search.metric}")
    return ax


def plot_timescale_map(search: FracSearch, ax: Axes | None = None) -> Axes:
    """The validation loss over the longest timescale and the mode count.

    Every dot is a trial, the ring the chosen one; the ground is the mean of the losses nearby, each trial
    weighing less with distance. What else was searched differs from dot to dot, so neighbours may, too.

    Parameters
    ----------
    search : fitted, of a model with `timescales`, among which their upper end and `n_modes` were searched.
    ax : axes to draw on; None makes new ones.

    Returns
    -------
    The axes, with a bar of colours beside them. The colours end at three quarters of the losses; worse ones
    look like the worst of these.

    Raises
    ------
    NotFittedError : the search is not fitted.
    ValueError : one of the two was not searched.

    Examples
    --------
    >>> from fracts import FracRidge
    >>> y = np.sin(np.arange(200.0)) + np.random.default_rng(0).normal(size=200)
    >>> search = FracSearch(FracRidge(2, season_lengths=()), n_trials=9, random_state=0).fit(y)
    >>> plot_timescale_map(search).get_xscale()
    'log'
    """
    table = _table(search)
    done = np.isfinite(table["mean_test_score"])
    losses = -table["mean_test_score"][done]
    parameters = [each for each, ended in zip(table["params"], done, strict=True) if ended]
    if not all("n_modes" in each and "timescales" in each for each in parameters):
        raise ValueError(
            f"the map is of n_modes and timescales_high, and searched were {', '.join(search.best_params_)}. "
            "Search both: they are in the default space of FracRidge and FracForecaster."
        )
    longest = np.array([each["timescales"][1] for each in parameters], dtype=np.float64)
    modes = np.array([each["n_modes"] for each in parameters], dtype=np.float64)
    ax = ax or new_axes()
    x, y = _edges(np.log2(longest)), _edges(modes)
    worst = float(np.quantile(losses, _WORST_SHOWN))
    colours = {
        "cmap": "viridis",
        "vmin": losses.min(),
        "vmax": max(worst, np.nextafter(losses.min(), np.inf)),
    }
    ground = _smooth((np.log2(longest), modes), np.minimum(losses, worst), x, y)
    mesh = ax.pcolormesh(2**x, y, ground, shading="flat", alpha=0.8, rasterized=True, **colours)
    ax.scatter(longest, modes, 28, losses, edgecolors="white", linewidths=0.7, **colours)
    at = int(done[: search.best_index_].sum())
    ax.plot(longest[at], modes[at], "o", markersize=13, fillstyle="none", color=_BEST, markeredgewidth=2)
    ax.figure.colorbar(mesh, ax=ax, label=f"validation {search.metric}", extend="max")
    title = f"chosen of {losses.size} trials: {modes[at]:.0f} modes up to {longest[at]:,.0f} steps"
    ax.set(xscale="log", xlabel="longest timescale (steps)", ylabel="modes", title=title)
    return ax


def _edges(values: Array) -> Array:
    """Of cells that cover `values` and a little more."""
    margin = _MARGIN * max(float(np.ptp(values)), 1.0)
    return np.linspace(values.min() - margin, values.max() + margin, _CELLS + 1)


def _smooth(at: tuple[Array, Array], losses: Array, x: Array, y: Array) -> Array:
    """Mean of the losses around the middle of each cell (y, x), weighed by distance (Nadaraya and Watson)."""
    middles = [(edges[1:] + edges[:-1]) / 2 for edges in (x, y)]
    spans = [np.ptp(edges) * _REACH for edges in (x, y)]
    along_x = (middles[0][None, :, None] - at[0]) / spans[0]
    along_y = (middles[1][:, None, None] - at[1]) / spans[1]
    distance = (along_x**2 + along_y**2) / 2
    weight = np.exp(distance.min(-1, keepdims=True) - distance)
    smooth: Array = (weight * losses).sum(-1) / weight.sum(-1)
    return smooth


def _ceiling(losses: Array) -> float:
    """Where the axis of losses ends: above the first loss and most of the others."""
    high = max(float(np.quantile(losses, _WORST_SHOWN)), float(losses[0]))
    return high + _MARGIN * (high - float(losses.min())) + np.finfo(float).tiny


def _table(search: FracSearch) -> Mapping[str, Any]:
    if not hasattr(search, "study_"):
        raise NotFittedError(f"This {type(search).__name__} is not fitted yet: call fit first.")
    table: Mapping[str, Any] = search.cv_results_
    return table
