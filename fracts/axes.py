"""Axes to draw on, made when none are given; matplotlib loads with the first picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def new_axes() -> Axes:
    """Axes of a figure of their own.

    Examples
    --------
    >>> new_axes().get_xscale()
    'linear'
    """
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]
