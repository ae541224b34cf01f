"""What the theory of a process is handed is checked here: counts and open intervals.

Messages say what came, what was needed and what to do.
"""

from numbers import Integral, Real


def check_count(name: str, value: object) -> int:
    """The value as a positive int; TypeError for what is no integer, ValueError for what is below 1."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a positive integer, got {value!r}. Pass a whole number such as 512.")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}. Ask for one value or more.")
    return int(value)


def check_between(name: str, value: object, low: float, high: float, cure: str) -> float:
    """The value as a float strictly between low and high; `cure` ends the message of the ValueError."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}. {cure}")
    if not low < float(value) < high:
        raise ValueError(f"{name} must lie strictly between {low:g} and {high:g}, got {value}. {cure}")
    return float(value)


def check_memory(d: object) -> float:
    """The order of fractional integration, stationary and invertible: between -0.5 and 0.5."""
    return check_between("d", d, -0.5, 0.5, "For d of 0.5 and more, make d - 1 and take its cumulative sum.")
