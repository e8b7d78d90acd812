"""Limits of the average value so far that hold at every time: of a policy that learns, or in a world that changes.

    mu_t = (1/t) sum over i <= t of E[w_i r_i | past],     0 <= r <= 1,     E[w_i | past] = 1
    lower limit: that of w r
    upper one:   1 - that of w (1 - r);  or W (1 - that of 1 - w r / W) for a known W >= w: narrower for rare rewards

All of these numbers are at least 0, so running.py has limits of their averages; the two upper ones share their part of
alpha. Bets (betting.py) have narrower limits, of one value that stays. Cost O(1) a row.
"""

import numpy as np

from onepass.evaluation.ranges import Interval, Range
from onepass.evaluation.running import RunningAverages

ROUNDED = 1e-12  # of the bound: what rounding may add to a weight


class AverageSequence:
    """Limits of the average value of what was asked row by row, whatever changes.

    rewards: their range; bound: W, the largest weight that there can be, at least 1; None (default): not known.
    """

    rewards: Range
    bound: float | None

    def __init__(self, rewards: Range, bound: float | None = None) -> None:
        self.rewards, self.bound = rewards, bound
        self._averages = RunningAverages(2 if bound is None else 3)

    def add(self, weights: np.ndarray, rewards: np.ndarray) -> None:
        """Learn rows, in their order: weights (n,), rewards (n,). ValueError for a weight above the bound."""
        r = (rewards - self.rewards.least) / self.rewards.span
        columns = [weights * r, weights * (1.0 - r)]
        if self.bound is not None:
            rest = 1.0 - weights * r / self.bound
            if rest.min(initial=0.0) < -ROUNDED:
                raise ValueError(f"weights must be at most the bound {self.bound:g}, got {weights.max():g}")
            columns.append(np.maximum(rest, 0.0))
        self._averages.add(np.column_stack(columns))

    def then(self, other: "AverageSequence") -> "AverageSequence":
        """The rows of this sequence, then those of `other`, which began anew: limits hold. ValueError for other ranges
        or bounds."""
        if (self.rewards, self.bound) != (other.rewards, other.bound):
            raise ValueError("other must be a sequence over the same range of rewards, with the same bound")
        found = AverageSequence(self.rewards, self.bound)
        found._averages = self._averages.then(other._averages)
        return found

    def interval(self, alpha: float = 0.05) -> Interval:
        """The limits after the rows so far; alpha: how often they may ever fail (default 0.05)."""
        lower = self._averages.lower(0, alpha / 2.0)
        if self.bound is None:
            upper = 1.0 - self._averages.lower(1, alpha / 2.0)
        else:
            known = self.bound * (1.0 - self._averages.lower(2, alpha / 4.0))
            upper = min(1.0 - self._averages.lower(1, alpha / 4.0), known)
        least, span = self.rewards.least, self.rewards.span
        return self.rewards.within(least + span * lower, least + span * upper)
