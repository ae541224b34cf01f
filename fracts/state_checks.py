"""Checks of states that users hand back, and of the series they ask states of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_ids(ids: Iterable[Any] | None, known: Sequence[Any]) -> list[int]:
    """Places of `ids` among `known`, of all where it is None; ValueError for another id or one told twice.

    Examples
    --------
    >>> check_ids(["b"], ["a", "b"])
    [1]
    """
    if ids is None:
        return list(range(len(known)))
    wanted = [ids] if isinstance(ids, str) else list(ids)
    place = {name: at for at, name in enumerate(known)}
    for name in wanted:
        if name not in place:
            raise ValueError(f"series {name!r} is not among those of this estimator, {list(known)[:10]}.")
    if len(set(wanted)) < len(wanted) or not wanted:
        raise ValueError(f"ids must name at least one series, each once, got {wanted}.")
    return [place[name] for name in wanted]


def check_state(
    state: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]], *, apart: bool
) -> None:
    """TypeError or ValueError unless `state` is of the kind of `expected`, and of the same weights.

    apart: whether every series has a cutoff of its own.
    """
    if not isinstance(state, Mapping) or not all(isinstance(x, np.ndarray) for x in state.values()):
        raise TypeError(f"state came as {type(state).__name__}; a dict of arrays from `get_state` is needed.")
    _check_arrays(state, {name: array for name, array in expected.items() if name in ("schema", "weights")})
    for name, kind in (("schema", "another schema"), ("weights", "other weights")):
        if (other := state[name] != expected[name][0]).any():
            raise ValueError(
                f"the state has {kind}: {name} is {state[name][other][0]}, here {expected[name][0]}. "
                "A state goes with the weights it was made by: `load` those, or run the history by `apply`."
            )
    _check_arrays(state, expected)
    if surplus := sorted(set(state) - set(expected)):
        raise ValueError(f"the state holds {surplus}, which is no part of it. Leave them out.")
    for name in ("clock",) if apart else ("clock", "cutoff"):
        if len(differing := np.unique(state[name])) > 1:
            raise ValueError(
                f"the series differ in {name}: {differing[0]} and {differing[1]}. Bring all to one row by "
                "`update` before joining their states."
            )
    if len(set(state["id"].tolist())) < len(state["id"]):
        raise ValueError(f"a series comes twice among {state['id'].tolist()[:10]}. Give each once.")


def _check_arrays(state: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]]) -> None:
    if missing := sorted(set(expected) - set(state)):
        raise ValueError(f"the state lacks {missing}. Give all that `get_state` gave.")
    n_series = len(np.atleast_1d(state["schema"]))
    for name, like in expected.items():
        array, shape = state[name], (n_series, *like.shape[1:])
        if n_series == 0 or array.shape != shape or (array.dtype.kind, array.itemsize) != _kind(array, like):
            raise ValueError(
                f"the array {name} of the state is {array.dtype} of shape {array.shape}; {like.dtype} of "
                f"shape {shape} is needed, at least one series. Give what `get_state` gave."
            )


def _kind(array: NDArray[Any], like: NDArray[Any]) -> tuple[str, int]:
    return like.dtype.kind, array.itemsize if like.dtype.kind == "U" else like.itemsize


def check_layers(weights: Mapping[str, NDArray[Any]], width: int, n_layers: int) -> None:
    """ValueError unless `weights` hold `n_layers` layers of `width`: before so large a network is made."""
    name = f"blocks.{n_layers - 1}.1.weight"
    last = weights.get(f"encoders.0.{name}", weights.get(f"encoder.{name}"))
    if last is None or last.shape != (2 * width, width):
        raise ValueError(
            f"the weights are not those of {n_layers} layers of width {width}. "
            "Leave parameters as they were at fit."
        )
