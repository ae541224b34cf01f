"""The season of a model that has one: what was asked for, or the shortest that the calendar implies."""

from fracts.checks import check_positive_integer
from fracts.timeline import Clock, default_season_lengths


def chosen_season(season_length: object, clock: Clock, n_steps: int) -> int:
    """Steps in the season, 1 for none; ValueError unless an integer of at least 2, None or "auto".

    Examples
    --------
    >>> import pandas as pd
    >>> from fracts.timeline import learn_clock
    >>> hourly = learn_clock(pd.date_range("2024-01-01", periods=4, freq="h"))
    >>> chosen_season("auto", hourly, 1000), chosen_season("auto", hourly, 60), chosen_season(None, hourly, 9)
    (24, 1, 1)
    """
    if season_length is None:
        return 1
    if season_length == "auto":
        return min(default_season_lengths(clock, n_steps), default=1)
    length = check_positive_integer(season_length, "season_length")
    if length < 2:
        raise ValueError("season_length must be at least 2, got 1. Give None where there is no season.")
    return length
