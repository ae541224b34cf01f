"""Ridge regression on a mode bank from streamed moments, with the theory's prior as the penalty.

A mode of unit gain and timescale tau is expected to matter like tau**-decay: its coefficient has that
prior standard deviation, whatever the spread the mode happened to have in the sample (the sample says
little about modes as slow as itself).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fracts.bank import ModeBank
from fracts.scaling import Array


class Penalty(NamedTuple):
    """Prior standard deviation tau**-decay (plain modes) or tau**-seasonal_decay, over the square root of strength."""

    decay: float
    seasonal_decay: float
    strength: float

    def of(self, bank: ModeBank) -> Array:
        """Penalty of each feature."""
        decay = np.where(bank.feature_frequency > 0, self.seasonal_decay, self.decay)
        return self.strength * bank.feature_tau ** (2 * decay)


@dataclass
class Moments:
    """Sums over forecast origins. `gram` counts all of them, `missing[k]` those at which lead k was not observed."""

    gram: Array
    cross: Array  # (anchors, features, horizon)
    square: Array  # (anchors, horizon)
    count: Array  # (horizon,)
    missing: dict[int, Array] = field(default_factory=dict)

    @classmethod
    def empty(cls, n_features: int, n_anchors: int, horizon: int) -> "Moments":
        """No origins yet."""
        gram, cross = np.zeros((n_features, n_features)), np.zeros((n_anchors, n_features, horizon))
        return cls(gram, cross, np.zeros((n_anchors, horizon)), np.zeros(horizon))

    def add(self, features: Array, targets: Array) -> None:
        """Count the origins with features (origins, features) and targets (anchors, origins, horizon)."""
        known = ~np.isnan(targets[0])
        used = known.any(1)
        features, targets, known = features[used], targets[:, used], known[used]
        self.gram += features.T @ features
        for lead in np.flatnonzero(~known.all(0)):
            part = features[~known[:, lead]]
            self.missing[lead] = self.missing.get(lead, 0.0) + part.T @ part
        filled = np.where(known, targets, 0.0)
        self.cross += features.T @ filled
        self.square += (filled**2).sum(1)
        self.count += known.sum(0)

    @classmethod
    def total(cls, parts: Sequence["Moments"], like: "Moments") -> "Moments":
        """Sum of `parts`, shaped as `like`."""
        whole = cls.empty(like.gram.shape[0], *like.square.shape)
        for part in parts:
            whole.gram += part.gram
            whole.cross += part.cross
            whole.square += part.square
            whole.count += part.count
            for lead, gram in part.missing.items():
                whole.missing[lead] = whole.missing.get(lead, 0.0) + gram
        return whole

    def gram_of(self, lead: int) -> Array:
        """Moments of the features over the origins at which `lead` was observed."""
        return self.gram - self.missing[lead] if lead in self.missing else self.gram

    def solve(self, penalty: Array, leads: Sequence[int]) -> Array:
        """Ridge coefficients: (anchors, features, leads)."""
        out = np.empty((*self.cross.shape[:2], len(leads)))
        shared = [i for i, lead in enumerate(leads) if lead not in self.missing]
        groups = ([shared] if shared else []) + [[i] for i, lead in enumerate(leads) if lead in self.missing]
        for group in groups:
            factor = cho_factor(self.gram_of(leads[group[0]]) + np.diag(penalty), check_finite=False)
            right = self.cross[:, :, [leads[i] for i in group]]  # (anchors, features, group)
            flat = np.moveaxis(right, 1, 0).reshape(penalty.size, -1)
            solved = cho_solve(factor, flat, check_finite=False).reshape(penalty.size, -1, len(group))
            out[:, :, group] = np.moveaxis(solved, 0, 1)
        return out

    def squared_error(self, coefficients: Array, leads: Sequence[int]) -> Array:
        """Summed squared error of forecasting these origins with `coefficients`: (anchors, leads)."""
        out = np.empty((len(self.square), len(leads)))
        for i, lead in enumerate(leads):
            b = coefficients[:, :, i]
            fitted = ((b @ self.gram_of(lead)) * b).sum(1)
            out[:, i] = self.square[:, lead] - 2 * (b * self.cross[:, :, lead]).sum(1) + fitted
        return out
