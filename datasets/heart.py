"""The intervals between normal heart beats over one hour, in milliseconds.

4,684 intervals that sum to 3,599 s, one person, counted by beat and not by time: the index is 1, 2, 3, ...
Source and terms: DATA.md.
"""

import pandas as pd

from fracts.datasets.tables import read_table


def load_heart_intervals() -> "pd.Series[float]":
    """4,684 beat-to-beat intervals in milliseconds, by number of the beat.

    Examples
    --------
    >>> load_heart_intervals().head(2)
    beat
    1    664.0
    2    781.0
    Name: nn_ms, dtype: float64
    """
    return read_table("heart_nn_intervals", "beat", dates=False)["nn_ms"].astype(float)
