"""Largest possible weight of each row of a log, as it was known before its arm was drawn.

It is known in two cases:

    largest = max over arms of policy(a | x) / p(a | x)        where the log has the logger's distributions
    largest = K max over arms of policy(a | x)                 where every propensity is 1 / K, K arms offered

Betting sequences (betting.py) need this bound. In other cases it is unknown, because the propensities of arms that were
not chosen are.
"""

import numpy as np

from onepass.evaluation.log import Log
from onepass.evaluation.sample import row_maxima
from onepass.foundation import check
from onepass.foundation.check import quote

EVEN = 1e-6  # of 1: what rounding may change of a propensity times the number of arms, in single precision, too


class WeightBound:
    """Largest possible importance weight of each row of a log, as far as it is known.

    `given` is the caller's bound, at least 1, or None to take it from the log.

    Attributes
    ----------
    known : bool
        True if the bound was given, or follows from the log for every row so far.
    max_weight : float
        Largest bound of any row so far; if it is not known, the largest weight seen.
    ceiling : float or None
        Largest weight that any policy could have in the first row, None if not known. It is fixed before the first
        draw, so limits that fix a bound beforehand may use it.
    """

    known: bool
    max_weight: float
    ceiling: float | None

    def __init__(self, given: float | None) -> None:
        self.given: float | None = None if given is None else check.real("weight_bound", given)
        if self.given is not None and self.given < 1.0:
            raise ValueError(f"weight_bound must be at least 1, got {quote(given)}")
        self.known, self.max_weight, self.ceiling = True, 1.0, self.given

    def update(self, block: Log, p: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
        """Return the largest possible weights (n,) of a block, over the arms that its rows could have drawn.

        `p` (n, K) are the policy's probabilities, and `weights` (n,) the importance weights of the arms drawn. Returns
        None if the largest weights are not known.
        """
        max_weights, ceiling = (
            (np.full(len(block), self.given), self.given) if self.given else _largest_weights(block, p, weights)
        )
        self.known = self.known and max_weights is not None
        self.max_weight = max(
            self.max_weight, float((weights if max_weights is None else max_weights).max(initial=1.0))
        )
        self.ceiling = ceiling if self.ceiling is None else self.ceiling
        return max_weights

    def concat(self, other: "WeightBound") -> "WeightBound":
        """Return the bound for this part of a log followed by the part of `other`."""
        found = WeightBound(self.given)
        found.known, found.max_weight = self.known and other.known, max(self.max_weight, other.max_weight)
        found.ceiling = self.ceiling
        return found

    @property
    def value(self) -> float:
        """Largest possible weight, which is the bound that was given, or else the attribute `max_weight`."""
        return self.max_weight if self.given is None else self.given


def _largest_weights(block: Log, p: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray | None, float | None]:
    """Return the largest weight that each row could have had (n,), and the largest one of any policy in the first row.

    `p` (n, K) are the policy's probabilities. A row's weight is largest for the arm with the largest p / q, where q are
    the logger's probabilities. Any policy has at most 1 over the smallest q above 0. If the log has no distributions,
    but each propensity is 1 over the number of arms offered, q is equal for these arms. In other cases both results are
    None. `weights` (n,) are the weights of the arms drawn: results are at least these, whatever the rounding.
    """
    if block.distributions is not None:
        ratios = np.divide(p, block.distributions, out=np.zeros_like(p), where=block.distributions > 0.0)
        first = block.distributions[0]
        # propensities may differ from distributions in their last digits
        return np.maximum(row_maxima(ratios), weights), 1.0 / float(first[first > 0.0].min())
    offered = block.n_arms if block.eligible is None else block.eligible.sum(axis=1)
    if (abs(block.propensities * offered - 1.0) < EVEN).all():
        return row_maxima(p) / block.propensities, float(block.n_arms)
    return None, None
