"""The trials of a study as a table, in the manner of scikit-learn's searches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna import Study
from optuna.trial import FixedTrial, FrozenTrial, TrialState
from scipy.stats import rankdata

from fracts.spaces import Space
from fracts.validation import SPLITS


def results(study: Study, space: Space, n_splits: int) -> dict[str, Any]:
    """Columns of the trials that ran to an end or were pruned, in the order of their numbers.

    Scores are minus the losses; a pruned trial has none, and ranks last.
    """
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
    done = [trial.state == TrialState.COMPLETE for trial in trials]
    losses = [trial.value if ended else np.nan for trial, ended in zip(trials, done, strict=True)]
    scores = -np.array(losses, dtype=np.float64)
    table: dict[str, Any] = {"params": [space.draw(FixedTrial(trial.params)) for trial in trials]}
    for name in dict.fromkeys(name for trial in trials for name in trial.params):
        column = np.ma.MaskedArray(np.empty(len(trials), dtype=object), mask=True)
        for at, trial in enumerate(trials):
            if name in trial.params:
                column[at] = trial.params[name]
        table[f"param_{name}"] = column
    for split, column in enumerate(_splits(trials, n_splits).T):
        table[f"split{split}_test_score"] = column
    ranks = rankdata(-np.nan_to_num(scores, nan=-np.inf), method="min")
    return table | {
        "mean_test_score": scores,
        "rank_test_score": ranks.astype(np.int32),
        "trial": np.array([trial.number for trial in trials], dtype=np.int64),
        "state": np.array([trial.state.name for trial in trials], dtype=object),
        "seconds": np.array([trial.duration.total_seconds() if trial.duration else 0.0 for trial in trials]),
    }


def _splits(trials: list[FrozenTrial], n_splits: int) -> NDArray[np.float64]:
    """Scores (trials, splits), NaN for those of a trial that has none."""
    none = [np.nan] * n_splits
    return -np.array([trial.user_attrs.get(SPLITS, none) for trial in trials]).reshape(-1, n_splits)
