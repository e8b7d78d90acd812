"""Anytime limits of the average value so far, for a policy that learns or a world that changes.

In row i let w_i be the importance weight and r_i the reward. Limits are given for the average mu_t:

    mu_t = (1/t) sum over i <= t of E[w_i r_i | past],     0 <= r <= 1,     E[w_i | past] = 1
    lower limit: the limit of the average of w r
    upper limit: 1 - the limit of the average of w (1 - r);
                 or mean W_i - the limit of the average of W_i - w r, for known W_i >= w_i: narrower for rare rewards

All of these averaged numbers are at least 0, so running_averages.py has limits of their averages. The two upper limits
share their part of alpha. Only the second upper limit needs a bound W_i of the weights. Bets (betting.py) have narrower
limits, but they need a value that does not change, and a bound of the weights. A row costs O(1).
"""

import numpy as np

from onepass.evaluation.reward_range import Interval, Range
from onepass.evaluation.running_averages import RunningAverages

ROUNDED = 1e-12  # of the bound: what rounding may add to a weight


class AverageSequence:
    """Confidence sequence for the average value of a policy over the rows so far, even if the value changes.

    A row is a logged decision, and the value is the policy's mean reward. A confidence sequence is a pair of limits
    after every row, which hold after all rows together. `interval` takes their level `alpha`.

    Parameters
    ----------
    rewards : Range
        Range of the rewards.
    bound : float, default None
        Largest possible weight, at least 1, such as 1 / (least probability that the logger gives to any arm). The
        weight of a row is the policy's probability of the arm divided by the logger's. `max_weights` of `add` may raise
        the bound. None means that it is not known.
    """

    rewards: Range
    bound: float | None

    def __init__(self, rewards: Range, bound: float | None = None) -> None:
        self.rewards, self.bound = rewards, bound
        self._averages = RunningAverages(2 if bound is None else 3)
        self._max_weight, self._max_weight_sum = bound or 1.0, 0.0  # the largest W_i, and their sum

    def add(self, weights: np.ndarray, rewards: np.ndarray, max_weights: np.ndarray | None = None) -> None:
        """Add rows in their order.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            Importance weights.
        rewards : ndarray of shape (n,)
            Rewards, within the range.
        max_weights : ndarray of shape (n,), default None
            Largest possible weight of each row, known before its arm was drawn. The bound rises to these numbers. None
            takes `bound`.

        Raises
        ------
        ValueError
            If a weight exceeds its bound.
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
        """Treat the largest possible weight as unknown, also for the rows so far."""
        if self.bound is not None:
            self.bound, self._averages = None, RunningAverages(2, self._averages.sums[:, :2], self._averages.rows)

    def concat(self, other: "AverageSequence") -> "AverageSequence":
        """Return the sequence of these rows followed by the rows of `other`.

        The limits hold although `other` started afresh. If the two bounds differ, the result has none.

        Parameters
        ----------
        other : AverageSequence
            Sequence of the rows that follow, over the same range of rewards.

        Returns
        -------
        AverageSequence
            New sequence of all rows.

        Raises
        ------
        ValueError
            If the ranges of rewards differ.
        """
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
        """Return the limits after the rows so far.

        Parameters
        ----------
        alpha : float, default 0.05
            Probability with which the limits may ever fail.

        Returns
        -------
        Interval
            Limits of the average value so far.
        """
        lower = self._averages.lower(0, alpha / 2.0)
        if self.bound is None:
            upper = 1.0 - self._averages.lower(1, alpha / 2.0)
        else:
            most = self._max_weight_sum / max(self._averages.rows, 1)
            known = most - self.bound * self._averages.lower(2, alpha / 4.0)
            upper = min(1.0 - self._averages.lower(1, alpha / 4.0), known if self._averages.rows else 1.0)
        least, span = self.rewards.least, self.rewards.span
        return self.rewards.clip(least + span * lower, least + span * upper)
