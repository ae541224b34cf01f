"""Ridge regression from streamed moments, with the theory's prior as the penalty.

A mode of unit gain and timescale tau is expected to matter like tau**-decay: its coefficient has that
prior standard deviation, whatever the spread the mode happened to have in the sample (the sample says
little about modes as slow as itself). Several targets share the moments of the features: one set for every
anchor, and every lead. Covariates known in advance differ from lead to lead; they are few, so they are solved
for after the features that all leads share, by the complement of Schur.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from fracts.bank import ModeBank
from fracts.records import record
from fracts.scaling import Array


@record
class Penalty(NamedTuple):
    """Prior standard deviation of a coefficient, in units of the noise: tau**-decay / sqrt(strength).

    Parameters
    ----------
    decay, seasonal_decay : powers of the timescale, for plain modes and for those at a frequency.
    strength : dimensionless, as the number of observations that outweigh the prior of tau = 1.
    covariates : the strength of covariates, whose prior falls with the timescale like that of plain modes.
    blend : the strength at which the anchors beside the first one have no say.

    Examples
    --------
    >>> Penalty(0.5, 0.0, 10.0).of(ModeBank(np.array([1.0, 100.0]), np.array([0.1])))
    array([  10., 1000.,   10.,   10.])
    """

    decay: float
    seasonal_decay: float
    strength: float
    covariates: float = 100.0
    blend: float = 10.0

    def of(self, bank: ModeBank) -> Array:
        """Penalty on the square of each coefficient: (features,)."""
        decay = np.where(bank.feature_frequency > 0, self.seasonal_decay, self.decay)
        penalty: Array = self.strength * bank.feature_tau ** (2 * decay)
        return penalty


class Products(NamedTuple):
    """Sums, over some origins, of the products of what is known there for a lead."""

    gram: Array  # (features, features)
    tie: Array  # (anchors, features, ahead)
    own: Array  # (anchors, ahead, ahead)

    @classmethod
    def of(cls, features: Array, ahead: Array) -> Self:
        """features: (origins, features).  ahead: (anchors, origins, ahead)."""
        return cls(features.T @ features, features.T @ ahead, ahead.swapaxes(1, 2) @ ahead)

    def plus(self, other: Self) -> Self:
        """Over the origins of both."""
        return type(self)(self.gram + other.gram, self.tie + other.tie, self.own + other.own)


@dataclass
class Moments:
    """Sums over forecast origins: from these a ridge is solved, and the error of another on these is told.

    What is known ahead of a lead may come back: lead k then knows what lead k - kinds does. `gram`, `tie` and
    `own` count the origins with any target; `missing[k]` is the part of those at which lead k has none.

    Examples
    --------
    >>> moments = Moments.empty(n_features=1, n_anchors=1, n_leads=1)
    >>> moments.add(np.array([[1.0], [2.0]]), np.array([[[1.0], [2.0]]]))
    >>> moments.solve(np.array([5.0]))
    array([[[0.5]]])
    """

    gram: Array  # (features, features)
    tie: Array  # (anchors, kinds, features, ahead), of the features and what is known ahead
    own: Array  # (anchors, kinds, ahead, ahead)
    cross: Array  # (anchors, features + ahead, leads)
    square: Array  # (anchors, leads)
    count: Array  # (leads,)
    missing: dict[int, Products] = field(default_factory=dict)

    @classmethod
    def empty(
        cls, n_features: int, n_anchors: int, n_leads: int, n_ahead: int = 0, n_kinds: int | None = None
    ) -> Self:
        """No origins yet.  n_kinds: leads after which what is known ahead comes back; None for never."""
        n_kinds = n_kinds or n_leads
        return cls(
            np.zeros((n_features, n_features)),
            np.zeros((n_anchors, n_kinds, n_features, n_ahead)),
            np.zeros((n_anchors, n_kinds, n_ahead, n_ahead)),
            np.zeros((n_anchors, n_features + n_ahead, n_leads)),
            np.zeros((n_anchors, n_leads)),
            np.zeros(n_leads),
        )

    def add(self, features: Array, targets: Array, ahead: Array | None = None) -> None:
        """Count the origins with features (origins, features) and targets (anchors, origins, leads).

        ahead: (anchors, origins, kinds, ahead), what is known ahead of each lead; None for nothing. NaN is no
        target, alike for all anchors.
        """
        known = ~np.isnan(targets[0])
        if ahead is None:
            ahead = np.empty((*targets.shape[:2], *self.own.shape[1:3]))
        used = known.any(1)
        if not used.all():
            features, targets, known, ahead = features[used], targets[:, used], known[used], ahead[:, used]
        self.gram += features.T @ features
        for lead in np.flatnonzero(~known.all(0)).tolist():
            lacking = ~known[:, lead]
            self._miss(lead, Products.of(features[lacking], ahead[:, lacking, self._kind(lead)]))
        filled = np.where(known, targets, 0.0)
        self.cross[:, : features.shape[1]] += features.T @ filled
        if ahead.size:
            self._add_ahead(features, filled, ahead)
        self.square += np.einsum("aol,aol->al", filled, filled)
        self.count += known.sum(0)

    def _add_ahead(self, features: Array, targets: Array, ahead: Array) -> None:
        n_anchors, n_origins, n_kinds, n_ahead = ahead.shape
        flat = ahead.swapaxes(0, 1).reshape(n_origins, -1)
        tied = (features.T @ flat).reshape(-1, n_anchors, n_kinds, n_ahead)
        self.tie += np.moveaxis(tied, 0, 2)
        by_kind = ahead.swapaxes(1, 2)  # (anchors, kinds, origins, ahead)
        across = by_kind.swapaxes(2, 3)
        self.own += across @ by_kind
        beside = self.cross[:, features.shape[1] :]
        for start in range(0, self.count.size, n_kinds):
            some = targets[..., start : start + n_kinds].swapaxes(1, 2)[..., None]
            told = across[:, : some.shape[1]] @ some
            beside[..., start : start + n_kinds] += told[..., 0].swapaxes(1, 2)

    def plus(self, parts: Iterable[Self]) -> Self:
        """These origins and those of `parts`."""
        whole = type(self)(
            self.gram.copy(),
            self.tie.copy(),
            self.own.copy(),
            self.cross.copy(),
            self.square.copy(),
            self.count.copy(),
            dict(self.missing),
        )
        for part in parts:
            whole.gram += part.gram
            whole.tie += part.tie
            whole.own += part.own
            whole.cross += part.cross
            whole.square += part.square
            whole.count += part.count
            for lead, products in part.missing.items():
                whole._miss(lead, products)
        return whole

    def solve(self, penalty: Array, means: Array | None = None, n_kept: int = 0) -> Array:
        """Ridge coefficients under the penalty (features + ahead,): (answers, features + ahead, leads).

        means: (means, features + ahead, leads), prior means, an answer for each; None for an answer of each
        anchor around 0.  n_kept: for so many of the first means there is one answer more, in which what is
        known ahead keeps its means.
        """
        n, n_ahead = len(self.gram), self.own.shape[-1]
        fixed = np.zeros((1, *self.cross.shape[1:])) if means is None else means
        cross = (self.cross + penalty[:, None] * fixed).swapaxes(1, 2)  # (answers, leads, features + ahead)
        # Means that say nothing of the features leave one and the same of these to solve for.
        n_unlike = len(cross) if fixed[:, :n].any() else len(self.cross)
        kept = fixed[:n_kept, n:].swapaxes(1, 2)[..., None]
        out = np.empty((len(cross) + len(kept), *self.cross.shape[1:]))
        complete = [lead for lead in range(self.count.size) if lead not in self.missing]
        for leads in ([complete] if complete else []) + [[lead] for lead in self.missing]:
            gram, tie, own, kind = self.products(leads)
            factor = cho_factor(gram + np.diag(penalty[:n]), overwrite_a=True, check_finite=False)
            plain = _solved(factor, cross[:n_unlike, leads, :n, None])
            plain = np.broadcast_to(plain, (len(cross), *plain.shape[1:]))
            if n_ahead:
                tied, across = _solved(factor, tie), tie.swapaxes(2, 3)
                own = (own + np.diag(penalty[n:]) - across @ tied)[:, kind]
                ahead = np.linalg.solve(own, cross[:, leads, n:, None] - across[:, kind] @ plain)
                ahead = np.concatenate([ahead, kept[:, leads]])
                out[:, n:, leads] = ahead[..., 0].swapaxes(1, 2)
                plain = np.concatenate([plain, plain[:n_kept]]) - tied[:, kind] @ ahead
            out[:, :n, leads] = plain[..., 0].swapaxes(1, 2)
        return out

    def degrees_of_freedom(self, penalties: Array) -> Array:
        """What each coefficient takes of the targets under each of the `penalties` (penalties, features +
        ahead), for the first anchor: (penalties, 2, features + ahead, leads), where all are learned, and
        where those of the features alone are.

        Their sum is the trace of what makes fitted targets of targets (Hoerl and Kennard, 1970, Technometrics
        12(1)).
        """
        n, root = len(self.gram), np.sqrt(penalties)
        found = np.zeros((len(penalties), 2, root.shape[1], self.count.size))
        complete = [lead for lead in range(self.count.size) if lead not in self.missing]
        for leads in ([complete] if complete else []) + [[lead] for lead in self.missing]:
            gram, tie, own, kind = self.products(leads)
            found[:, 1, :n, leads] = _degrees(gram, root[:, :n])
            for at, (t, o) in enumerate(zip(tie[0], own[0], strict=True)):
                mine = [lead for lead, of_kind in zip(leads, kind, strict=True) if of_kind == at]
                found[:, 0, :, mine] = _degrees(np.block([[gram, t], [t.T, o]]), root)
        return found

    def squared_error(self, coefficients: Array) -> Array:
        """Summed squared error of forecasting these origins with `coefficients`: (anchors, leads)."""
        n, rows = len(self.gram), coefficients.swapaxes(1, 2)  # (anchors, leads, features + ahead)
        mine, beside = np.ascontiguousarray(rows[..., :n]), rows[..., n:]
        of_grams = (mine.reshape(-1, n) @ self.gram).reshape(mine.shape)
        for lead, products in self.missing.items():
            of_grams[:, lead] -= mine[:, lead] @ products.gram
        fitted = (mine * of_grams).sum(-1)
        if beside.shape[-1]:
            kind = self._kind(np.arange(self.count.size))
            tie, own = self.tie[:, kind], self.own[:, kind]
            for lead, products in self.missing.items():
                tie[:, lead] -= products.tie
                own[:, lead] -= products.own
            tied = mine[..., None, :] @ tie  # (anchors, leads, 1, ahead)
            fitted += ((2 * tied + beside[..., None, :] @ own) @ beside[..., None])[..., 0, 0]
        error: Array = self.square - 2 * (coefficients * self.cross).sum(1) + fitted
        return error

    def products(self, leads: list[int]) -> tuple[Array, Array, Array, NDArray[np.int64]]:
        """`gram`, `tie` and `own` over the origins at which `leads` have a target, and the kind of each lead
        in the latter two. They are one lead, or miss none."""
        kinds, kind = np.unique(self._kind(np.array(leads)), return_inverse=True)
        gram, tie, own = self.gram, self.tie[:, kinds], self.own[:, kinds]
        if leads[0] in self.missing:
            missing = self.missing[leads[0]]
            gram, tie, own = gram - missing.gram, tie - missing.tie[:, None], own - missing.own[:, None]
        return gram, tie, own, kind

    def _kind(self, lead: Any) -> Any:
        return lead % self.own.shape[1]

    def _miss(self, lead: int, products: Products) -> None:
        known = self.missing.get(lead)
        self.missing[lead] = products if known is None else known.plus(products)


def _degrees(gram: Array, root: Array) -> Array:
    """Degrees of freedom (penalties, features) under penalties of square `root` (penalties, features)."""
    standard = gram / (root[:, :, None] * root[:, None])
    rest = np.linalg.inv(standard + np.eye(len(gram)))
    return np.asarray(1 - np.diagonal(rest, axis1=1, axis2=2))


def _solved(factor: tuple[Array, bool], right: Array) -> Array:
    """Solutions for the right sides (..., features, columns), all at once."""
    sides = np.moveaxis(right, -2, 0)
    solved = cho_solve(factor, sides.reshape(len(sides), -1), check_finite=False)
    return np.asarray(np.moveaxis(solved.reshape(sides.shape), 0, -2))
