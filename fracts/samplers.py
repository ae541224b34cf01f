"""The sampler of a search: Optuna's TPE, seeded anew for every trial by the number of the trial.

One idea: what a trial draws depends on the seed, its number and the trials before it, and on nothing else. So
one worker draws the same trials each time, stopped and started again or not, and many workers with one seed
draw different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState


class NumberedSampler(BaseSampler):
    """`optuna.samplers.TPESampler`, of a seed made from `seed` and the number of the trial.

    Examples
    --------
    >>> import optuna
    >>> x = optuna.distributions.FloatDistribution(0, 1)
    >>> first, second = (optuna.create_study(sampler=NumberedSampler(7)) for _ in range(2))
    >>> first.ask({"x": x}).params == second.ask({"x": x}).params
    True
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._sampler = TPESampler(seed=seed)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Seed anew for `trial`."""
        mixed = np.random.SeedSequence([self._seed, trial.number]).generate_state(1)
        self._sampler = TPESampler(seed=int(mixed[0]))

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """As TPE does."""
        return self._sampler.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """As TPE does."""
        return self._sampler.sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """As TPE does."""
        return self._sampler.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """As TPE does."""
        self._sampler.after_trial(study, trial, state, values)
