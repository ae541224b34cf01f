"""What a trial is worth: its validation loss, told epoch by epoch where a network is trained.

One idea: losses of epochs must compare between trials whose scales differ. So each is told as the validation
loss of the linear path, in units of the metric, times what the network has left of the held-out loss that its
training starts from.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import Any

from optuna import TrialPruned
from optuna.trial import Trial
from sklearn.base import clone

from fracts.base import Forecaster
from fracts.epochs import watching
from fracts.spaces import Space
from fracts.validation import SPLITS, Losses, Validation


@dataclass
class Objective:
    """A function of a trial, and the last error that a trial met."""

    estimator: Forecaster
    space: Space
    validation: Validation
    seed: int | None
    error: Exception | None = field(default=None, init=False)

    def __call__(self, trial: Trial) -> float:
        try:
            return self._loss(trial)
        except TrialPruned:
            raise
        except Exception as error:
            self.error = error
            trial.set_user_attr("error", f"{type(error).__name__}: {error}")
            raise

    def _loss(self, trial: Trial) -> float:
        model = configured(self.estimator, self.space.draw(trial), self.seed)
        losses = self._losses_of_network(trial, model) if _trains(model) else self.validation.losses(model)
        trial.set_user_attr(SPLITS, losses.splits)
        return losses.whole

    def _losses_of_network(self, trial: Trial, model: Forecaster) -> Losses:
        linear = self.validation.losses(clone(model).set_params(n_layers=0)).whole
        start, latest = 0.0, -1

        def watcher(epoch: int, held_out_loss: float) -> None:
            nonlocal start, latest
            if epoch <= latest:  # of another network
                return
            start, latest = held_out_loss if epoch == 0 else start, epoch
            trial.report(linear * held_out_loss / start if start else linear, epoch)
            if trial.should_prune():
                raise TrialPruned(f"after epoch {epoch}")

        try:
            with watching(watcher):
                return self.validation.losses(model)
        finally:
            gc.collect()  # a training leaves circles that hold its weights


def _trains(model: Forecaster) -> bool:
    return bool(getattr(model, "n_layers", 0))


def configured(estimator: Forecaster, parameters: dict[str, Any], seed: int | None) -> Forecaster:
    """A copy of `estimator` with other `parameters`, seeded where it has a seed and none is given."""
    model: Forecaster = clone(estimator).set_params(**parameters)
    own = model.get_params(deep=False)
    if seed is not None and "random_state" in own and own["random_state"] is None:
        model.set_params(random_state=seed)
    return model
