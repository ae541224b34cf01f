"""Spaces: what a search may choose, and how what is drawn becomes parameters of an estimator.

One idea: a trial draws single numbers and words, as storages keep them, and an estimator takes what they
stand for: `timescales_low` and `timescales_high` are the two ends of `timescales`, and "24 168" is the tuple
of season lengths (24, 168).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import BaseTrial

from fracts.base import Forecaster

Draw = Callable[[BaseTrial], dict[str, Any]]

_ENDS = ("timescales_low", "timescales_high")
_LENGTHS = re.compile(r"(\d+( \d+)*)?")
_WIDTHS = (16, 32, 64, 128)
_PENALTIES = ("auto", 0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
_OF_BASELINES: dict[str, dict[str, BaseDistribution]] = {
    "ARFIMA": {
        "p": IntDistribution(0, 2),
        "q": IntDistribution(0, 2),
        "differences": IntDistribution(0, 1),
    },
    "ETS": {
        "trend": CategoricalDistribution(("auto", "none", "additive", "damped")),
        "logarithm": CategoricalDistribution(("auto", False)),
    },
    "GARCH": {
        "fractional": CategoricalDistribution((False, True)),
        "distribution": CategoricalDistribution(("normal", "t")),
    },
    "WindowAverage": {"window": IntDistribution(1, 512, log=True)},
}


@dataclass(frozen=True)
class Space:
    """What trials draw.

    Parameters
    ----------
    draw : the parameters of an estimator that a trial stands for.
    distributions : by the name of what is drawn; None where a function draws.
    """

    draw: Draw
    distributions: Mapping[str, BaseDistribution] | None = None

    @classmethod
    def of(cls, given: Any, estimator: Forecaster, season_lengths: Sequence[int]) -> Self:
        """The space `given` to a search, or the default one of `estimator` for None.

        season_lengths: those that "auto" finds, which the default space chooses among.
        Raises TypeError or ValueError for what is no space of the estimator.
        """
        if callable(given):
            return cls(lambda trial: _checked(given(trial)))
        distributions = default_space(estimator, season_lengths) if given is None else given
        _check_distributions(distributions, estimator)
        distributions = {name: _in_words(name, each) for name, each in distributions.items()}

        def draw(trial: BaseTrial) -> dict[str, Any]:
            drawn = {name: _suggest(trial, name, each) for name, each in distributions.items()}
            return as_parameters(drawn, estimator)

        return cls(draw, distributions)

    def start(self, estimator: Forecaster) -> dict[str, Any] | None:
        """What a trial would draw to be `estimator` as it stands; None where the space does not hold it."""
        if self.distributions is None:
            return None
        parameters = estimator.get_params()
        drawn = as_drawn({name: parameters[name] for name in _targets(self.distributions)})
        held = {name: drawn[name] for name in self.distributions}
        if all(_holds(each, held[name]) for name, each in self.distributions.items()):
            return held
        return None

    def check_settings(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """`settings`, parameters or what is drawn for them, as a trial draws them.

        Raises ValueError for a name or a value outside the space.
        """
        drawn = as_drawn(settings)
        if self.distributions is None:
            return drawn
        for name, value in drawn.items():
            if name not in self.distributions:
                raise ValueError(
                    f"enqueue sets {name!r}, which is not searched. Leave it out; searched are "
                    f"{', '.join(self.distributions)}."
                )
            if not _holds(self.distributions[name], value):
                raise ValueError(
                    f"enqueue sets {name}={value!r}, outside of {self.distributions[name]}. "
                    "Give a value inside, or a wider space."
                )
        return drawn


def default_space(estimator: Forecaster, season_lengths: Sequence[int]) -> dict[str, BaseDistribution]:
    """What a search of `estimator` chooses unless told otherwise.

    Mode count, both ends of the timescales, memory of the centre, seasons where there are several, penalty,
    anchor; of a network width, layers and learning rate. ValueError where there is no default.
    """
    parameters = estimator.get_params(deep=False)
    if "timescales" not in parameters:
        name = type(estimator).__name__
        if name not in _OF_BASELINES:
            raise ValueError(
                f"{name} has no default space. Give one: space={{'parameter': "
                "optuna.distributions.IntDistribution(1, 9)}, or a function of the trial."
            )
        return dict(_OF_BASELINES[name])
    anchors = ("auto", "centre", "last", *(["season"] * bool(season_lengths)))
    space: dict[str, BaseDistribution] = {
        "n_modes": IntDistribution(4, 32),
        "timescales_low": FloatDistribution(0.3, 4.0, log=True),
        "timescales_high": FloatDistribution(64.0, 2.0**20, log=True),
        "centre_memory": FloatDistribution(64.0, 2.0**20, log=True),
        "penalty": CategoricalDistribution(_PENALTIES),
        "anchor": CategoricalDistribution(anchors),
    }
    if len(season_lengths) > 1 and parameters["season_lengths"] == "auto":
        words = ("auto", *(str(length) for length in season_lengths))
        space["season_lengths"] = CategoricalDistribution(words)
    if "width" in parameters:
        multiple = 2 * parameters["n_heads"]
        widths = sorted({max(multiple, width // multiple * multiple) for width in _WIDTHS})
        space["width"] = CategoricalDistribution(widths)
        space["n_layers"] = IntDistribution(1, 3)
        space["learning_rate"] = FloatDistribution(3e-4, 1e-2, log=True)
    return space


def as_parameters(drawn: Mapping[str, Any], estimator: Forecaster) -> dict[str, Any]:
    """Parameters of `estimator` that what is `drawn` stands for.

    Examples
    --------
    >>> from fracts import FracRidge
    >>> as_parameters({"timescales_high": 512.0, "season_lengths": "24 168"}, FracRidge(24))
    {'season_lengths': (24, 168), 'timescales': (1.0, 512.0)}
    """
    parameters = {name: value for name, value in drawn.items() if name not in _ENDS}
    lengths = parameters.get("season_lengths")
    if isinstance(lengths, str) and _LENGTHS.fullmatch(lengths):
        parameters["season_lengths"] = tuple(int(length) for length in lengths.split())
    if any(end in drawn for end in _ENDS):
        ends = estimator.get_params()["timescales"]
        parameters["timescales"] = tuple(drawn.get(end, own) for end, own in zip(_ENDS, ends, strict=True))
    return parameters


def as_drawn(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What a trial draws for these `parameters`.

    Examples
    --------
    >>> as_drawn({"n_modes": 8, "timescales": (1.0, 512.0), "season_lengths": (24, 168)})
    {'n_modes': 8, 'timescales_low': 1.0, 'timescales_high': 512.0, 'season_lengths': '24 168'}
    """
    drawn: dict[str, Any] = {}
    for name, value in parameters.items():
        if name == "timescales":
            drawn |= zip(_ENDS, value, strict=True)
        elif name == "season_lengths" and isinstance(value, tuple | list):
            drawn[name] = " ".join(str(length) for length in value)
        else:
            drawn[name] = value
    return drawn


def _targets(distributions: Mapping[str, BaseDistribution]) -> list[str]:
    """The parameters that `distributions` are of."""
    return list(dict.fromkeys("timescales" if name in _ENDS else name for name in distributions))


def _check_distributions(distributions: Any, estimator: Forecaster) -> None:
    if not isinstance(distributions, Mapping) or not distributions:
        raise TypeError(
            f"space came as {distributions!r}; a dict of Optuna distributions by parameter, or a function of "
            "the trial that returns parameters, is needed. None takes the default."
        )
    parameters = estimator.get_params()
    for name, each in distributions.items():
        if not isinstance(each, FloatDistribution | IntDistribution | CategoricalDistribution):
            raise TypeError(
                f"space[{name!r}] is {each!r}; an Optuna distribution is needed, such as "
                "optuna.distributions.IntDistribution(4, 32)."
            )
    for name in ("timescales", "horizon"):
        if name in distributions:
            cure = f"Search its ends, {' and '.join(_ENDS)}" if name == "timescales" else "Leave it out"
            raise ValueError(f"space has {name!r}, which is not searched by itself. {cure}.")
    for name in _targets(distributions):
        if name not in parameters:
            raise ValueError(
                f"space has {name!r}, which {type(estimator).__name__} has not. Its parameters are "
                f"{', '.join(parameters)}; the ends of timescales are {' and '.join(_ENDS)}."
            )


def _in_words(name: str, each: BaseDistribution) -> BaseDistribution:
    """The distribution `each` of `name`, choices that storages do not keep as what is drawn for them."""
    if not isinstance(each, CategoricalDistribution):
        return each
    return CategoricalDistribution([as_drawn({name: choice})[name] for choice in each.choices])


def _checked(drawn: Any) -> dict[str, Any]:
    if not isinstance(drawn, Mapping):
        raise TypeError(
            f"the space returned a {type(drawn).__name__}; a dict of parameters of the estimator is needed."
        )
    return dict(drawn)


def _suggest(trial: BaseTrial, name: str, each: BaseDistribution) -> Any:
    if isinstance(each, FloatDistribution):
        return trial.suggest_float(name, each.low, each.high, step=each.step, log=each.log)
    if isinstance(each, IntDistribution):
        return trial.suggest_int(name, each.low, each.high, step=each.step, log=each.log)
    assert isinstance(each, CategoricalDistribution)
    return trial.suggest_categorical(name, each.choices)


def _holds(each: BaseDistribution, value: Any) -> bool:
    if isinstance(each, CategoricalDistribution):
        truth = isinstance(value, bool)
        return any(choice == value and isinstance(choice, bool) == truth for choice in each.choices)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(each, IntDistribution) and not float(value).is_integer():
        return False
    assert isinstance(each, FloatDistribution | IntDistribution)
    return each.low <= value <= each.high
