"""Limits of the average value so far that hold at every time: of a policy that learns, or in a world that changes.

    mu_t = (1/t) sum over i <= t of E[w_i r_i | past],     0 <= r <= 1,     E[w_i | past] = 1
    lower limit: that of w r
    upper one:   1 - that of w (1 - r);  or mean W_i - that of W_i - w r for known W_i >= w_i: narrower for rare rewards

All of these numbers are at least 0, so running.py has limits of their averages; the two upper ones share their part of
alpha. Without the second they need no bound of the weights at all. Bets (betting.py) have narrower limits, of one value
that stays, and a bound. Cost O(1) a row.
"""

import numpy as np

from onepass.evaluation.reward_range import Interval, Range
from onepass.evaluation.running_averages import RunningAverages

ROUNDED = 1e-12  # of the bound: what rounding may add to a weight


class AverageSequence:
    """Limits of the average value of what was asked row by row, whatever changes.

    rewards: their range; bound: W, the largest weight that there can be, at least 1, but for rows that say more when
    they are added; None (default): not known.
    """

    rewards: Range
    bound: float | None

    def __init__(self, rewards: Range, bound: float | None = None) -> None:
        self.rewards, self.bound = rewards, bound
        self._averages = RunningAverages(2 if bound is None else 3)
        self._max_weight, self._max_weight_sum = bound or 1.0, 0.0  # the largest W_i, and their sum

    def add(self, weights: np.ndarray, rewards: np.ndarray, max_weights: np.ndarray | None = None) -> None:
        """Learn rows, in their order: weights (n,), rewards (n,).

        tops: (n,) the largest weight that each row could have had, known before its arm was drawn: W rises to them;
        None (default): the bound. ValueError for a weight above.
        """
        r = (rewards - self.rewards.least) / self.rewards.span
        earned = weights * r
        columns = [earned, np.maximum(weights - earned, 0.0)]
        if self.bound is not None:
            most = np.full(len(r), self._max_weight)
            if max_weights is not None and max_weights.max(initial=0.0) > self._max_weight:
                most = np.maximum(np.maximum.accumulate(max_weights), self._max_weight)
            rest = (most - earned) / self.bound
            if rest.min(initial=0.0) < -ROUNDED:
                raise ValueError(f"weights must be at most the bound {self.bound:g}, got {weights.max():g}")
            columns.append(np.maximum(rest, 0.0))
            self._max_weight, self._max_weight_sum = (
                float(most[-1]) if len(most) else self._max_weight,
                self._max_weight_sum + float(most.sum()),
            )
        self._averages.add(np.stack(columns).T)

    def forget_bound(self) -> None:
        """Take the bound for unknown, of the rows so far, too."""
        if self.bound is not None:
            self.bound, self._averages = None, RunningAverages(2, self._averages.sums[:, :2], self._averages.rows)

    def concat(self, other: "AverageSequence") -> "AverageSequence":
        """The rows of this sequence, then those of `other`, which began anew: limits hold, without a bound where theirs
        differ. ValueError for other ranges."""
        if self.rewards != other.rewards:
            raise ValueError(f"other must have the range of rewards {tuple(self.rewards)}, got {tuple(other.rewards)}")
        found, bound = AverageSequence(self.rewards), self.bound if self.bound == other.bound else None
        columns = 2 if bound is None else 3
        one, two = (
            RunningAverages(columns, each._averages.sums[:, :columns], each._averages.rows) for each in (self, other)
        )
        found.bound, found._averages = bound, one.concat(two)
        found._max_weight, found._max_weight_sum = (
            max(self._max_weight, other._max_weight),
            self._max_weight_sum + other._max_weight_sum,
        )
        return found

    def interval(self, alpha: float = 0.05) -> Interval:
        """The limits after the rows so far; alpha: how often they may ever fail (default 0.05)."""
        lower = self._averages.lower(0, alpha / 2.0)
        if self.bound is None:
            upper = 1.0 - self._averages.lower(1, alpha / 2.0)
        else:
            most = self._max_weight_sum / max(self._averages.rows, 1)
            known = most - self.bound * self._averages.lower(2, alpha / 4.0)
            upper = min(1.0 - self._averages.lower(1, alpha / 4.0), known if self._averages.rows else 1.0)
        least, span = self.rewards.least, self.rewards.span
        return self.rewards.clip(least + span * lower, least + span * upper)
