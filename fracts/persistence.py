"""What a fitted model keeps: its state as arrays, and itself as a file.

One idea: an estimator is weights and a state, and the two travel apart. A file has both. A state alone, a
few kilobytes a series, fits into any estimator with the very same weights, told by their fingerprint.

What a model must do for this: keep its learned attributes numbers, strings, arrays, indexes, containers of
them, and records (dataclasses or NamedTuples under `fracts.records.record`); name those that belong to a
history rather than to the weights in `_historic`. One that holds more overrides `_packed` and `_unpacked`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from fracts import storage
from fracts.cohorts import forecast
from fracts.covariates import Covariates
from fracts.forecasts import Forecast
from fracts.layouts import Layout
from fracts.packing import pack, unpack
from fracts.records import record
from fracts.rulers import Counts
from fracts.series import State
from fracts.state_checks import check_ids, check_state
from fracts.timeline import Clock

if TYPE_CHECKING:
    from _typeshed import StrPath

STATE_SCHEMA = 1
_DOOR = frozenset(
    {"_state", "_counts", "_clock", "_layout", "_scale", "_names", "_on_gaps", "series_ids_", "freq_"}
)


class Persistence(ABC):
    """`save`, `load`, `get_state`, `set_state` of every forecaster."""

    horizon: int
    series_ids_: list[Any]
    freq_: str | None
    _learned: Sequence[str]
    _historic: Sequence[str] = ()  # attributes, None or with `detached`, that are no weights though learned
    _state: State
    _counts: Counts
    _clock: Clock
    _covariates: Covariates
    _layout: Layout
    _scale: NDArray[np.float64]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        record(cls)

    def save(self, path: StrPath) -> None:
        """Write weights, parameters and state into one file, in a form that holds no code.

        The file is complete or not there: a process stopped half way leaves what was at `path` before. It is
        a safetensors file, read on any machine, with or without a GPU.

        Parameters
        ----------
        path : of the file; its folder exists.

        Raises
        ------
        NotFittedError : before fit.
        TypeError : a parameter is something that no file without code can hold, such as a function.
        OSError : the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> from fracts.baselines import Naive
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Naive(2).fit([1.0, 3.0]).save(folder + "/naive.safetensors")
        ...     Naive.load(folder + "/naive.safetensors").predict()
        array([3., 3.])
        """
        self._check_fitted()
        storage.write(self, path)

    @classmethod
    def load(cls, path: StrPath) -> Self:
        """The estimator that `save` wrote to `path`. Nothing in a file is ever run.

        Raises
        ------
        ValueError : the file is none of fracts, is damaged, or holds another model.
        OSError : there is no such file.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> Naive.load("no such file")
        Traceback (most recent call last):
        FileNotFoundError: [Errno 2] No such file or directory: 'no such file'
        """
        model = storage.read(path)
        if not isinstance(model, cls):
            name = type(model).__name__
            raise ValueError(
                f"{path} holds a {name}, not a {cls.__name__}. Say `{name}.load(path)` to read it."
            )
        try:
            ahead = np.zeros((len(model._counts), model.horizon, model._covariates.n_known))
            state = model._state | {"ahead": ahead}
            forecast(lambda part: model._forecast(part, 1, np.array([0.5])), state, model._counts)
        except Exception as error:  # whatever a file made by hand may lead to
            raise ValueError(f"{path} holds a {cls.__name__} whose parts do not fit together.") from error
        return model

    def get_state(self, ids: Iterable[Any] | None = None) -> dict[str, NDArray[Any]]:
        """What is remembered of each series, as arrays with the series on the first axis. Changes nothing.

        Parameters
        ----------
        ids : some of `series_ids_`, in the order wanted; None for all.

        Returns
        -------
        A dict of arrays of their own memory: `schema`, `weights` (their fingerprint), `clock`, `id`, `cutoff`
        (the last row, as a count on the clock), `scale`, and those of the model; of each layer of a network
        `layer_0_modes`, `layer_0_hold` and, in float64, the tail mode, `layer_0_tail`. States of equal
        weights and clocks may be concatenated.

        Raises
        ------
        NotFittedError : before fit.
        ValueError : an id is not among `series_ids_`.

        Examples
        --------
        >>> from fracts.baselines import Mean
        >>> Mean(1).fit([1.0, 3.0]).get_state()["sum"]
        array([4.])
        """
        self._check_fitted()
        rows = check_ids(ids, self.series_ids_)
        told: dict[str, Any] = {
            "schema": STATE_SCHEMA,
            "weights": storage.fingerprint(self._weights()),
            "clock": json.dumps(pack(self._clock, "clock", {})),
        }
        state = {name: np.full(len(rows), value) for name, value in told.items()}
        state["id"] = np.empty(len(rows), dtype=object)
        state["id"][:] = [self.series_ids_[row] for row in rows]
        state["cutoff"], state["scale"] = self._counts[rows], self._scale[rows]
        return state | {name: array[rows] for name, array in self._state.items()}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> Self:
        """Remember what `state`, from `get_state` of these very weights, remembers: its series and no others.

        Parameters
        ----------
        state : as `get_state` gives it, of one estimator or concatenated from several.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        NotFittedError : before fit.
        TypeError : `state` is no dict of arrays.
        ValueError : it is of other weights or another schema, arrays lack or differ in kind, a series comes
            twice, or the clocks of its series differ, or their cutoffs where fit saw no long frame.

        Examples
        --------
        >>> from fracts.baselines import Naive
        >>> model = Naive(2).fit([1.0, 3.0])
        >>> before = model.get_state()
        >>> model.learn_one(9.0).set_state(before).predict()
        array([3., 3.])
        """
        self._check_fitted()
        check_state(state, self.get_state(), apart=self._layout.apart)
        layout = self._layout.of(list(state["id"]))
        clock = unpack(json.loads(str(state["clock"][0])), {})
        self._counts, self._scale = state["cutoff"].copy(), state["scale"].copy()
        self._layout, self.series_ids_, self._clock, self.freq_ = layout, layout.ids, clock, clock.freq
        self._state = {name: state[name].copy() for name in self._state}
        self._leave_history()
        return self

    @property
    def state_nbytes(self) -> int:
        """Bytes of the state of one series, whatever the length of its history.

        Examples
        --------
        >>> from fracts.baselines import Mean
        >>> Mean(1).fit([1.0, 3.0]).state_nbytes
        32
        """
        self._check_fitted()
        return sum(array.nbytes for array in self._state.values()) // len(self.series_ids_)

    def _leave_history(self) -> None:
        """Detach what is kept of the history so far beside the state."""
        for name in self._historic:
            if (kept := getattr(self, name)) is not None:
                setattr(self, name, kept.detached())

    def _weights(self) -> dict[str, Any]:
        """The learned attributes that a state hangs on."""
        learned = self._packed()["learned"]
        return {name: learned[name] for name in learned if name not in _DOOR and name not in self._historic}

    def _packed(self) -> dict[str, Any]:
        """What makes up the estimator, in kinds that a file holds."""
        parameters = self.get_params(deep=False)
        return {"parameters": parameters, "learned": {name: getattr(self, name) for name in self._learned}}

    @classmethod
    def _unpacked(cls, parameters: dict[str, Any], learned: dict[str, Any]) -> Self:
        """The estimator that `_packed` took apart."""
        model = cls(**parameters)
        for name, value in learned.items():
            setattr(model, name, value)
        model._learned = list(learned)
        return model

    @abstractmethod
    def get_params(self, deep: bool = True) -> dict[str, Any]: ...

    @abstractmethod
    def _check_fitted(self) -> None: ...

    @abstractmethod
    def _forecast(self, state: State, horizon: int, quantiles: NDArray[np.float64]) -> Forecast: ...
