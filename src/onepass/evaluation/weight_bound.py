"""The largest weight that each row of a log could have had, as it was known before its arm was drawn.

    top = max over arms of policy(a | x) / p(a | x)        where the log has the logger's distributions
    top = K max over arms of policy(a | x)                 where every propensity is 1 / K, K arms offered

Limits by bets rest on it. Of other loggers nobody knows how small the propensities of arms were that were not chosen.
"""

import numpy as np

from onepass.evaluation.log import Log
from onepass.evaluation.sample import row_maxima
from onepass.foundation import check
from onepass.foundation.check import shown

EVEN = 1e-9  # of 1: what rounding may change of a propensity times the number of arms


class WeightBound:
    """The largest weight that there can be. given: by the caller, at least 1; None: as the log tells.

    known: whether it was given, or the log has told it for every row so far; most: the largest one of any row so far,
    or where it is not known the largest weight seen; ceiling: what no policy's weight could have exceeded in the first
    row, None where that is not known.
    """

    known: bool
    max_weight: float
    ceiling: float | None

    def __init__(self, given: float | None) -> None:
        self.given: float | None = None if given is None else check.real("weight_bound", given)
        if self.given is not None and self.given < 1.0:
            raise ValueError(f"weight_bound must be at least 1, got {shown(given)}")
        self.known, self.max_weight, self.ceiling = True, 1.0, self.given

    def update(self, block: Log, p: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
        """Look at a block, under a policy's probabilities p (n, K), with its weights (n,); the largest weight (n,) that
        each row could have had, None where that is not known."""
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
        """Of two parts of a log."""
        found = WeightBound(self.given)
        found.known, found.max_weight = self.known and other.known, max(self.max_weight, other.max_weight)
        found.ceiling = self.ceiling
        return found

    @property
    def value(self) -> float:
        """The bound."""
        return self.max_weight if self.given is None else self.given


def _largest_weights(block: Log, p: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray | None, float | None]:
    """The largest weights (n,) by the log, and that of any policy in the first row; None where it does not tell."""
    if block.distributions is not None:
        ratios = np.divide(p, block.distributions, out=np.zeros_like(p), where=block.distributions > 0.0)
        first = block.distributions[0]
        # propensities may differ from distributions in their last digits
        return np.maximum(row_maxima(ratios), weights), 1.0 / float(first[first > 0.0].min())
    offered = block.n_arms if block.eligible is None else block.eligible.sum(axis=1)
    if (abs(block.propensities * offered - 1.0) < EVEN).all():
        return row_maxima(p) / block.propensities, float(block.n_arms)
    return None, None
