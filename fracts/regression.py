"""Ridge regression from streamed moments, with the theory's prior as the penalty.

A mode of unit gain and timescale tau is expected to matter like tau**-decay: its coefficient has that
prior standard deviation, whatever the spread the mode happened to have in the sample (the sample says
little about modes as slow as itself). Several targets share the moments of the features: one set for every
anchor, and every lead.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fracts.bank import ModeBank
from fracts.scaling import Array


class Penalty(NamedTuple):
    """Prior standard deviation of a coefficient, in units of the noise: tau**-decay / sqrt(strength).

    Parameters
    ----------
    decay, seasonal_decay : powers of the timescale, for plain modes and for those at a frequency.
    strength : dimensionless, as the number of observations that outweigh the prior of tau = 1.

    Examples
    --------
    >>> Penalty(0.5, 0.0, 10.0).of(ModeBank(np.array([1.0, 100.0]), np.array([0.1])))
    array([  10., 1000.,   10.,   10.])
    """

    decay: float
    seasonal_decay: float
    strength: float

    def of(self, bank: ModeBank) -> Array:
        """Penalty on the square of each coefficient: (features,)."""
        decay = np.where(bank.feature_frequency > 0, self.seasonal_decay, self.decay)
        penalty: Array = self.strength * bank.feature_tau ** (2 * decay)
        return penalty


@dataclass
class Moments:
    """Sums over forecast origins: from these a ridge is solved, and the error of another on these is told.

    `gram` counts the origins with any target; `missing[k]` is the part of those at which lead k has none.

    Examples
    --------
    >>> moments = Moments.empty(n_features=1, n_anchors=1, n_leads=1)
    >>> moments.add(np.array([[1.0], [2.0]]), np.array([[[1.0], [2.0]]]))
    >>> moments.solve(np.array([5.0]))
    array([[[0.5]]])
    """

    gram: Array  # (features, features)
    cross: Array  # (anchors, features, leads)
    square: Array  # (anchors, leads)
    count: Array  # (leads,)
    missing: dict[int, Array] = field(default_factory=dict)

    @classmethod
    def empty(cls, n_features: int, n_anchors: int, n_leads: int) -> Self:
        """No origins yet."""
        gram, cross = np.zeros((n_features, n_features)), np.zeros((n_anchors, n_features, n_leads))
        return cls(gram, cross, np.zeros((n_anchors, n_leads)), np.zeros(n_leads))

    def add(self, features: Array, targets: Array) -> None:
        """Count the origins with features (origins, features) and targets (anchors, origins, leads).

        NaN is no target, alike for all anchors.
        """
        known = ~np.isnan(targets[0])
        used = known.any(1)
        features, targets, known = features[used], targets[:, used], known[used]
        self.gram += features.T @ features
        for lead in np.flatnonzero(~known.all(0)).tolist():
            part = features[~known[:, lead]]
            self.missing[lead] = self.missing.get(lead, 0.0) + part.T @ part
        filled = np.where(known, targets, 0.0)
        self.cross += features.T @ filled
        self.square += (filled**2).sum(1)
        self.count += known.sum(0)

    def plus(self, parts: Iterable[Self]) -> Self:
        """These origins and those of `parts`."""
        whole = type(self)(
            self.gram.copy(), self.cross.copy(), self.square.copy(), self.count.copy(), dict(self.missing)
        )
        for part in parts:
            whole.gram += part.gram
            whole.cross += part.cross
            whole.square += part.square
            whole.count += part.count
            for lead, gram in part.missing.items():
                whole.missing[lead] = whole.missing.get(lead, 0.0) + gram
        return whole

    def solve(self, penalty: Array) -> Array:
        """Ridge coefficients under the penalty (features,): (anchors, features, leads)."""
        out = np.empty_like(self.cross)
        complete = [lead for lead in range(self.count.size) if lead not in self.missing]
        for leads in ([complete] if complete else []) + [[lead] for lead in self.missing]:
            gram = self._gram_of(leads[0]) + np.diag(penalty)
            factor = cho_factor(gram, overwrite_a=True, check_finite=False)
            right = np.moveaxis(self.cross[:, :, leads], 1, 0)  # (features, anchors, leads)
            solved = cho_solve(factor, right.reshape(penalty.size, -1), check_finite=False)
            out[:, :, leads] = np.moveaxis(solved.reshape(right.shape), 0, 1)
        return out

    def squared_error(self, coefficients: Array) -> Array:
        """Summed squared error of forecasting these origins with `coefficients`: (anchors, leads)."""
        fitted = np.empty_like(self.square)
        for lead in range(self.count.size):
            b = coefficients[:, :, lead]
            fitted[:, lead] = ((b @ self._gram_of(lead)) * b).sum(1)
        error: Array = self.square - 2 * (coefficients * self.cross).sum(1) + fitted
        return error

    def _gram_of(self, lead: int) -> Array:
        """Moments of the features over the origins at which `lead` has a target."""
        return self.gram - self.missing[lead] if lead in self.missing else self.gram
