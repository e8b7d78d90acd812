"""Bound of the regret of the decisions that a bandit has learned, from its own confidence radii.

The regret of round t, in which the row x_t was learned, has the bound

    regret_t <= 2 beta_{t-1} ||x_t||_{A_{t-1}^-1}       while every theta_* is inside its ellipsoid

All regret proofs of the papers begin with this (Wen, Yin et al. eq. 16, Calandriello et al. D.2, Wang et al. C.1), and
bound the sum further. Let U(x) = x^T theta + beta ||x|| and L(x) = x^T theta - beta ||x||, with norms in A^-1. The best
arm's mean is at most the largest U, and the mean of the arm played is at least its L. So a round costs at most max U -
L(x_t), which is 2 beta ||x_t|| if the arm with the largest U is played. With a link mu it is mu(max U) - mu(L(x_t)). A
record of a decision under `UCB(Theory(...))` holds mean and U of every arm, so the bound takes one subtraction a row.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.estimator.families import mean_limits
from onepass.exploration.rule import Rule
from onepass.exploration.ucb import UCB
from onepass.foundation import check


class RegretBound(NamedTuple):
    """Bound of the cumulative regret of learned decisions.

    Parameters
    ----------
    total : float
        The bound, in units of rewards. It is infinite if a confidence radius was infinite.
    probability : float
        Probability with which the bound holds, at all times together. It is 0.0 if nothing is proved, because the
        argument `scale` of `Theory` is below 1, or because its `delta` times the number of confidence ellipsoids is at
        least 1.
    n_decisions : int
        Number of rows that the bound covers.
    n_other_rows : int
        Number of rows that were learned without a decision of the present rule. The bound does not cover them.
    """

    total: float
    probability: float
    n_decisions: int
    n_other_rows: int


class RegretSum(NamedTuple):
    """Running sum of a bandit's regret bounds.

    `total` is the sum, `rows` the number of rows in it, and `streams` the number of sequences of rows that had
    confidence radii of their own: one, and one more for each model merged. `removed` is the number of arms removed,
    whose confidence ellipsoids must have held as well.
    """

    total: float = 0.0
    rows: int = 0
    streams: int = 1
    removed: int = 0

    def add(self, bounds: Any, rows: int = 1) -> "RegretSum":
        return self._replace(total=self.total + float(bounds), rows=self.rows + rows)

    def join(self, other: "RegretSum", since: "RegretSum | None") -> "RegretSum":
        """Return the sum for two merged bandits; the rows of `since`, the start of both (or None), count once."""
        total, rows = self.total + other.total, self.rows + other.rows
        if since is not None and np.isfinite(since.total):
            total, rows = max(total - since.total, 0.0), rows - since.rows
        return RegretSum(total, rows, self.streams + other.streams + 1, self.removed + other.removed)

    def to_plain(self) -> list[Any]:
        found = [self.total if np.isfinite(self.total) else None, self.rows, self.streams]
        return [*found, self.removed] if self.removed else found

    @classmethod
    def from_plain(cls, value: Any) -> "RegretSum":
        total, rows, streams, *removed = value
        total = np.inf if total is None else check.real("regret", total)
        if total < 0.0:
            raise ValueError(f"regret must be at least 0, got {check.quote(total)}")
        counts = check.integer("rows", rows, 0), check.integer("streams", streams, 1)
        return cls(total, *counts, *(check.integer("removed", count, 0) for count in removed[:1]))


def is_bounded(rule: Rule) -> bool:
    """Return True if the rule is `UCB` with a radius from a theorem, for which regret can be bounded."""
    return isinstance(rule.exploration, UCB) and rule.exploration.theory is not None


def bound_of_slot(decision: Any, slot: int, family: Any) -> float:
    """Return the bound of the regret of one slot of a recorded decision.

    `family` is the model's reward family with a link function, None if the mean reward is x^T theta.
    """
    place = int(decision.places[slot])
    middle, upper = float(decision.means[place]), float(decision.scores[place])
    if decision.propensities[slot] == 1.0:
        best = upper
    else:
        offered = decision.probabilities if decision.slots is None else decision.slots[slot]
        best = float(decision.scores[offered > 0.0].max())
    if family is None:
        return best - (2.0 * middle - upper)
    return best - mean_limits(family, middle, upper)


def bounds_of_rounds(seen: np.ndarray, to_rewards: Any) -> np.ndarray:
    """Return the regret bounds (T,) of T rounds that compiled code has played.

    `seen` (T, 3) holds the chosen arm's predicted reward x^T theta and its upper confidence bound, and the largest
    upper bound of all arms. `to_rewards` applies the link function to an array.
    """
    middle, upper, best = seen.T
    return to_rewards(best.copy()) - to_rewards(2.0 * middle - upper)


def make_bound(rule: Rule, found: RegretSum, n_learned: int, n_ellipsoids: int) -> RegretBound:
    """Return the `RegretBound` for the running sum `found`; raise ValueError for a rule without a theorem's radius.

    `n_learned` is the number of rows learned, and `n_ellipsoids` the number of confidence ellipsoids, one for each
    model.
    """
    theory = rule.exploration.theory
    if theory is None or not is_bounded(rule):
        raise ValueError(
            f"exploration must be UCB(Theory(...)), whose radius bounds the regret, got {check.quote(rule.exploration)}"
        )
    proved = theory.scale >= 1.0
    failure = theory.delta * (n_ellipsoids + found.removed) * found.streams
    probability = max(0.0, 1.0 - failure) if proved else 0.0
    return RegretBound(found.total, probability, found.rows, max(n_learned - found.rows, 0))
