"""Checks of what users hand in, and the one warning of the library.

Every error says what came, what was needed and what to do, in the user's own names and numbers. Nothing here
changes anything: a check returns its argument in the form the library computes with, or raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

LARGEST = 1e100  # size of a value; its square and sums of these stay finite
LARGEST_EXACT = 2**53  # the largest integer up to which float64 keeps every one


class FitWarning(UserWarning):
    """The fit succeeded, but its result should be distrusted; the message says why."""


def check_positive_integer(value: object, name: str) -> int:
    """`value` as an int; ValueError unless it is an integer of at least 1 (True is none).

    Examples
    --------
    >>> check_positive_integer(24, "horizon")
    24
    """
    # An int is Integral; asking for it first spares the slower question at every forecast.
    if isinstance(value, bool) or not isinstance(value, (int, Integral)) or value < 1:
        got = repr(value) if value is None or isinstance(value, Real | str) else type(value).__name__
        raise ValueError(f"{name} must be an integer of at least 1, got {got}. Give a count, such as 24.")
    return int(value)


def check_levels(level: float | Iterable[float]) -> list[float]:
    """Levels of central intervals in percent, ascending; ValueError outside [1, 100), as for a share.

    Examples
    --------
    >>> check_levels([95, 80])
    [80.0, 95.0]
    """
    hint = "90 asks for the interval that holds 90 % of the outcomes"
    levels = _check_open_interval(level, "level", 100, hint)
    if levels[0] < 1:
        raise ValueError(f"level is in percent, at least 1, got {levels[0]!r}; {hint}.")
    return levels


def check_quantiles(quantiles: float | Iterable[float]) -> list[float]:
    """Quantile levels, ascending; ValueError outside (0, 1).

    Examples
    --------
    >>> check_quantiles(0.1)
    [0.1]
    """
    return _check_open_interval(
        quantiles, "quantiles", 1, "0.9 asks for the value that 90 % of the outcomes stay below"
    )


def check_distinct(suffixes: Sequence[str], levels: Sequence[float]) -> None:
    """ValueError for two quantile levels whose columns would have one name."""
    for at, suffix in enumerate(suffixes):
        if suffix in suffixes[:at]:
            raise ValueError(
                f"the quantiles {levels[suffixes.index(suffix)]!r} and {levels[at]!r} would both be called "
                f"{suffix!r}, names having six digits. Ask for one of them."
            )


def _check_open_interval(asked: float | Iterable[float], name: str, top: int, hint: str) -> list[float]:
    values: list[object] = (
        list(asked) if isinstance(asked, Iterable) and not isinstance(asked, str) else [asked]
    )
    for value in values:
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < top:
            raise ValueError(f"{name} must lie between 0 and {top}, both excluded, got {value!r}. {hint}.")
    if not values:
        raise ValueError(f"{name} is empty. Give at least one number, or leave {name} out; {hint}.")
    return sorted({float(value) for value in values if isinstance(value, Real)})


def check_numbers(values: Any, name: str) -> NDArray[np.float64]:
    """`values` (any shape) as float64; TypeError unless numbers, ValueError for integers too long for it.

    Examples
    --------
    >>> check_numbers(np.array([1, 2]), "y")
    array([1., 2.])
    """
    if values.dtype.kind not in "iuf":
        raise refused_numbers(
            name, values.dtype, values if values.dtype == object and values.ndim == 1 else ()
        )
    if isinstance(values, pd.Series):
        floats = values.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        floats = np.asarray(values, dtype=np.float64)
    if values.dtype.kind in "iu" and (np.abs(floats) >= LARGEST_EXACT).any():
        _check_digits(values, floats, name)
    return floats


def without_none(values: ArrayLike) -> NDArray[Any]:
    """`values` as an array, NaN for None.

    Examples
    --------
    >>> without_none([1, None])
    array([ 1., nan])
    """
    array = np.asarray(values)
    if array.dtype != object:
        return array
    told = [np.nan if value is None else value for value in array.ravel().tolist()]
    return np.array(told).reshape(array.shape)


def refused_numbers(name: str, dtype: object, values: Iterable[object] = ()) -> TypeError:
    """The error that values of `dtype` are no numbers, with the first of `values` that is none."""
    no_number = (
        f", such as {value!r} in row {row}"
        for row, value in enumerate(values)
        if isinstance(value, bool) or not (value is None or value is pd.NA or isinstance(value, Real))
    )
    return TypeError(
        f"{name} holds values of dtype {dtype}{next(no_number, '')}; numbers are needed, NaN for none. "
        "Convert first: texts with `pd.to_numeric(...)`, truths and others with `.astype(float)`."
    )


def _check_digits(integers: Any, floats: NDArray[np.float64], name: str) -> None:
    for exact, kept in zip(np.asarray(integers, dtype=object).ravel(), floats.ravel(), strict=True):
        if not np.isnan(kept) and int(kept) != exact:
            raise ValueError(
                f"{name} holds {exact}, which float64 cannot keep to the last digit. Subtract a constant "
                "such as the first value, or make it a float to accept the rounding: `y.astype(float)`."
            )


def check_finite(values: NDArray[np.float64], names: Iterable[object], rows: Any) -> None:
    """ValueError naming the series and the row of the first infinity in `values` (series, rows)."""
    if not far_off(values).any():
        return
    for name, row in zip(names, values, strict=True):
        if (at := np.flatnonzero(np.isinf(row))).size:
            raise ValueError(
                f"series {name!r}: the value at {rows[at[0]]} (row {at[0]}) is {row[at[0]]}. "
                "Values must be finite; write NaN where there is none."
            )
        if (at := np.flatnonzero(far_off(row))).size:
            raise ValueError(
                f"series {name!r}: the value at {rows[at[0]]} (row {at[0]}) is {row[at[0]]}; its square is "
                f"beyond float64. Sizes from {1 / LARGEST:g} to {LARGEST:g} are needed: change the unit."
            )


def far_off(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where `values` are infinite, or so large or small that their squares leave float64.

    Examples
    --------
    >>> far_off(np.array([0.0, -3.0, np.nan, np.inf, 1e-200]))
    array([False, False, False,  True,  True])
    """
    size = np.abs(values)
    return (size > LARGEST) | ((size > 0) & (size < 1 / LARGEST))


def check_some_value(values: NDArray[np.float64], names: Iterable[object]) -> None:
    """ValueError naming the first series in `values` (series, rows) that has no value at all."""
    for name, row in zip(names, values, strict=True):
        if np.isnan(row).all():
            raise ValueError(
                f"series {name!r}: all {len(row)} values are NaN. At least one value is needed to forecast "
                "from; leave the series out."
            )


def check_row(values: ArrayLike, names: Sequence[object]) -> NDArray[np.float64]:
    """One finite number or NaN for each of `names`, as (series,); TypeError or ValueError otherwise."""
    if isinstance(values, pd.Series):
        raise TypeError(
            "the row came as a Series, whose labels would be ignored. Give the bare values in the order of "
            "`series_ids_`, as `row[model.series_ids_].to_numpy()` does, or a frame with a stamp to `update`."
        )
    row = check_numbers(without_none(values), "the row")
    if row.shape != (len(names),):
        raise ValueError(
            f"one value for each of {len(names)} series is needed, got shape {row.shape}. "
            "Give them in the order of `series_ids_`, NaN where there is none."
        )
    check_finite(row[:, None], names, ["the next step"])
    return row


def check_value(value: Any, names: Sequence[object]) -> NDArray[np.float64]:
    """`check_row` for a single series, in few calls: (1,)."""
    if type(value) is float and len(names) == 1:
        size = abs(value)
        if 1 / LARGEST <= size <= LARGEST or size == 0 or size != size:
            return np.array([value])
    return check_row([value], names)


def check_increasing(index: pd.Index[Any]) -> None:
    """ValueError at the first missing, repeated or decreasing stamp."""
    if (missing := np.flatnonzero(index.isna())).size:
        raise ValueError(f"the stamp of row {missing[0]} is missing ({index[missing[0]]}). Drop such rows.")
    if len(index) > 1 and (late := np.flatnonzero(index[1:] <= index[:-1])).size:
        at = int(late[0]) + 1
        raise ValueError(
            f"the stamp {index[at]} (row {at}) does not come after {index[at - 1]}. Stamps must increase. "
            "Sort with `y.sort_index()`, or drop repeats with `y[~y.index.duplicated()]`; where a clock was "
            "set back, give the stamps their zone, with `y.tz_localize(zone, ambiguous='infer')`."
        )


def check_season_lengths(season_lengths: object) -> tuple[int, ...]:
    """Season lengths as an ascending tuple; ValueError unless "auto"-free integers of at least 2.

    Examples
    --------
    >>> check_season_lengths((168, 24)), check_season_lengths(12), check_season_lengths(())
    ((24, 168), (12,), ())
    """
    lengths = season_lengths if isinstance(season_lengths, tuple | list) else (season_lengths,)
    for length in lengths:
        if isinstance(length, bool) or not isinstance(length, Integral) or length < 2:
            raise ValueError(
                f"season_lengths holds {length!r}; steps in a season are integers of at least 2. "
                "Give an int, a tuple such as (24, 168), () for none, or 'auto'."
            )
    return tuple(sorted({int(length) for length in lengths}))


def check_memory(n_modes: object, timescales: object, centre_memory: object) -> None:
    """ValueError unless there are at least 2 modes, 0 < shortest < longest timescale, 1 <= centre_memory."""
    if isinstance(n_modes, bool) or not isinstance(n_modes, Integral) or n_modes < 2:
        raise ValueError(
            f"n_modes must be an integer of at least 2 (one mode and the tail mode), got {n_modes!r}."
        )
    pair = timescales if isinstance(timescales, tuple | list) else ()
    if len(pair) != 2 or not all(isinstance(t, Real) and np.isfinite(float(t)) for t in pair):
        raise ValueError(
            f"timescales must be (shortest, longest) in steps, got {timescales!r}. Give (1.0, 131072.0), say."
        )
    if not 0 < pair[0] < pair[1]:
        raise ValueError(
            f"timescales must rise from above 0, got {timescales!r}: shortest first, as in (1.0, 131072.0)."
        )
    steps = float(centre_memory) if isinstance(centre_memory, Real) else 0.0
    if isinstance(centre_memory, bool) or not 1 <= steps < np.inf:
        raise ValueError(f"centre_memory must be a number of steps of at least 1, got {centre_memory!r}.")


def check_pooled(pooled: object) -> None:
    """ValueError unless True, False or "auto"."""
    if pooled not in (True, False, "auto"):
        raise ValueError(f"pooled must be True, False or 'auto', got {pooled!r}.")


def check_calibration(calibration: object) -> None:
    """ValueError unless "held-out" or "adaptive"."""
    if calibration not in ("held-out", "adaptive"):
        raise ValueError(
            f"calibration must be 'held-out' (intervals as wide as held-out errors ask for) or 'adaptive' "
            f"(that learn from every new value besides), got {calibration!r}."
        )


def check_forgetting(forgetting: object) -> None:
    """ValueError unless None or a number above 0 and up to 1."""
    if forgetting is None or (
        isinstance(forgetting, Real) and not isinstance(forgetting, bool) and 0 < float(forgetting) <= 1
    ):
        return
    raise ValueError(
        f"forgetting must be None or a number above 0 and up to 1, got {forgetting!r}. Try 0.999."
    )


def check_penalty(penalty: object) -> float | None:
    """The strength of the prior as a number, None for "auto"; ValueError unless that or above 0.

    Examples
    --------
    >>> check_penalty("auto"), check_penalty(10)
    (None, 10.0)
    """
    if isinstance(penalty, str) and penalty == "auto":
        return None
    if isinstance(penalty, bool) or not isinstance(penalty, Real) or not 0 < float(penalty) < np.inf:
        raise ValueError(f"penalty must be 'auto' or a number above 0, got {penalty!r}. Try 10.")
    return float(penalty)


def check_anchor(anchor: object, season_lengths: Sequence[int]) -> None:
    """ValueError unless "auto", "centre", "last", or "season" where there is a season."""
    if anchor not in ("auto", "centre", "last", "season"):
        raise ValueError(f"anchor must be 'auto', 'centre', 'last' or 'season', got {anchor!r}.")
    if anchor == "season" and not season_lengths:
        raise ValueError(
            "anchor='season' came without a season. Give the steps in one, such as season_lengths=24, or "
            "anchor='auto'."
        )


def check_lead(lead: object, horizon: int) -> int:
    """`lead` as an int; ValueError unless it is an integer from 1 to `horizon`."""
    if check_positive_integer(lead, "lead") > horizon:
        raise ValueError(
            f"lead {lead} lies beyond the horizon {horizon} that was fitted. Give 1 to {horizon}."
        )
    return int(lead)  # type: ignore[call-overload,no-any-return]


def group_of(name: object, fitted: Sequence[object]) -> int:
    """Place of series `name` among those fitted; ValueError where it is not."""
    if name not in fitted:
        raise ValueError(
            f"series {name!r} was not fitted, and every series has coefficients of its own. "
            "Fit it, or share coefficients with `pooled=True`."
        )
    return list(fitted).index(name)


def check_network(model: Any) -> None:
    """ValueError or TypeError unless the parameters of the network and its training make sense."""
    for name in ("width", "n_heads", "n_networks", "window", "max_epochs"):
        check_positive_integer(getattr(model, name), name)
    if isinstance(model.batch_size, str) and model.batch_size != "auto":
        raise ValueError(f"batch_size must be 'auto' or a number of windows, got {model.batch_size!r}.")
    if not isinstance(model.batch_size, str):
        check_positive_integer(model.batch_size, "batch_size")
    layers = model.n_layers
    if isinstance(layers, bool) or not isinstance(layers, Integral) or layers < 0:
        raise ValueError(f"n_layers must be an integer of at least 0 (no network), got {layers!r}.")
    if model.width % (2 * model.n_heads):
        raise ValueError(
            f"width must be a multiple of 2 * n_heads, got width={model.width} and n_heads={model.n_heads}. "
            f"Try width={2 * model.n_heads * max(1, model.width // (2 * model.n_heads))}."
        )
    rate = model.learning_rate
    if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 < float(rate) < np.inf:
        raise ValueError(f"learning_rate must be a number above 0, got {rate!r}. Try 0.002.")
    if not isinstance(model.device, str) or not re.fullmatch("auto|cpu|cuda(:[0-9]+)?", model.device):
        raise ValueError(
            f"device must be 'auto', 'cpu' or 'cuda', got {model.device!r}; 'cuda:1' is the second GPU."
        )
    if model.verbose not in (0, 1):
        raise ValueError(f"verbose must be 0 (nothing) or 1 (a progress bar), got {model.verbose!r}.")
    seed = model.random_state
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0):
        raise ValueError(
            f"random_state must be None or an integer of at least 0, got {seed!r}. Give random_state=0, say."
        )
    if model.trainer is not None and (not callable(model.trainer) or isinstance(model.trainer, type)):
        raise TypeError(
            f"trainer must be a function that returns a new Trainer, got a {type(model.trainer).__name__}. "
            "A Trainer is used up by its first fit: give `lambda: Trainer(...)`."
        )
