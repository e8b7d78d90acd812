"""A confidence sequence for a policy's value with a reward model (Waudby-Smith et al. 2022).

For row t with weight w, reward r, predicted reward q and predicted value v, and an error probability alpha, the lower
limit is

    x_t = w (r - q) + v >= -k_t,    y = x / (k_t + 1),    k_t = W: the largest weight that was possible so far
    lower_t = (sum l y - log(1 / alpha) - sum psi(l) (y - m)^2) / (sum l / (k + 1)),     psi(l) = -log(1 - l) - l
    l_t = min(1/2, sqrt(2 log(1 / alpha) / (s^2_{t-1} t log(t + 1)))),  m_t: mean of y before row t, up to 1 / (k + 1)

The upper limit is the mirrored lower limit of 1 - r. Rewards are in [0, 1] after scaling. q, l and k are made before
their row (reward_models.py fits on past rows only). So the limits hold at every time at once, also for a logger that
learns.

The source caps the model's predictions by k / w for a k below W. On Open Bandit and simulated logs every such k gave
wider limits (docs/evaluation.md), so there is no cap. Cost O(n), six numbers of state per side.
"""

from copy import copy

import numpy as np

from onepass.evaluation.reward_range import Interval, Range
from onepass.evaluation.sample import Sample

MOST = 0.5  # of a bet: the source's c
PRIOR_VARIANCE, PRIOR_MEAN = 0.25, 0.5  # of numbers in [0, 1] of which nothing is known


class LowerLimits:
    """Lower limits of the mean of numbers x, after each row, where x >= -k for bounds k, and the mean is in [0, 1].

    `alpha` is the probability that a limit ever fails. The state is the number of `rows`, `total` and `squares`, the
    sums of y = x / (k + 1) and of (y - mean)^2, three sums of the formula in doubly_robust.py, and the highest limit so
    far.
    """

    rows: int
    total: float
    squares: float

    def __init__(self, alpha: float) -> None:
        self.log = np.log(1.0 / alpha)
        self.rows, self.total, self.squares = 0, 0.0, 0.0
        self.sums, self.highest = np.zeros(3), -np.inf

    def add(self, x: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Add numbers x (n,) with bounds k (n,), x >= -k, and return lower limits (n,) of their mean after each row.

        All limits hold together with probability 1 - `alpha`. The bounds must not decrease.
        """
        y, n, least = x / (k + 1.0), self.rows + np.arange(1, len(x) + 1), 1.0 / (k + 1.0)
        if self.rows == 0 and len(x):
            self.total = PRIOR_MEAN * least[0]
        totals = self.total + np.cumsum(y)
        means = totals / (n + 1)
        before = np.minimum(np.concatenate([[self.total], totals[:-1]])[: len(x)] / n, least)
        squares = self.squares + np.cumsum((y - means) ** 2)
        spread = (PRIOR_VARIANCE + np.concatenate([[self.squares], squares[:-1]])[: len(x)]) / n
        bets = np.minimum(MOST, np.sqrt(2.0 * self.log / (spread * n * np.log(n + 1.0))))
        psi = -np.log1p(-bets) - bets
        terms = np.cumsum([bets * y, psi * (y - before) ** 2, bets * least], axis=1) + self.sums[:, None]
        limits = (terms[0] - self.log - terms[1]) / terms[2]
        if len(x):
            self.rows, self.total, self.squares, self.sums = int(n[-1]), totals[-1], squares[-1], terms[:, -1]
            self.highest = max(self.highest, float(limits.max()))
        return limits

    def concat(self, other: "LowerLimits") -> "LowerLimits":
        """Return the limits after these rows followed by the rows of `other`, which began afresh.

        Limits that `other` gave before its last row are ignored, because they left these rows out.
        """
        found = copy(self)
        found.rows, found.total = self.rows + other.rows, self.total + other.total
        found.squares, found.sums = self.squares + other.squares, self.sums + other.sums
        if found.sums[2] > 0.0:
            limit = (found.sums[0] - self.log - found.sums[1]) / found.sums[2]
            found.highest = max(self.highest, float(limit))
        return found


def lower_limits(x: np.ndarray, k: float, alpha: float) -> np.ndarray:
    """Return the lower limits (n,) of the mean of x (n,) after each row, where x >= -k and the mean is in [0, 1].

    The probability that any of them is above the mean is at most `alpha`.
    """
    return LowerLimits(alpha).add(x, np.full(len(x), k))


class DoublyRobustSequence:
    """Confidence sequence for a policy's value with a reward model, valid also if the logger learns.

    A row is a logged decision, and the value is the policy's mean reward. A confidence sequence is a confidence
    interval after every row, and all intervals hold together. `add` takes rows, and `interval` returns the limits after
    all rows so far.

    Parameters
    ----------
    rewards : Range
        Range of the rewards.
    bound : float, default 1.0
        Largest possible weight, such as 1 / (least probability that the logger gives to any arm). The weight of a row
        is the policy's probability of the arm divided by the logger's. `add` raises the bound to its `max_weights` if
        these are larger.
    alpha : float, default 0.05
        Probability with which the limits may ever fail, above 0 and below 1.
    """

    rewards: Range

    def __init__(self, rewards: Range, bound: float = 1.0, alpha: float = 0.05) -> None:
        self.rewards, self.bound = rewards, max(float(bound), 1.0)
        self._sides = LowerLimits(alpha / 2), LowerLimits(alpha / 2)

    def add(self, sample: Sample, max_weights: np.ndarray | None = None) -> None:
        """Add rows whose model was fitted on the rows before them.

        Parameters
        ----------
        sample : Sample
            Rows with predictions.
        max_weights : ndarray of shape (n,), default None
            Largest possible weight of each row, known before its arm was drawn. The bound rises to these numbers. None
            takes `bound`.
        """
        rising = np.full(sample.rows, self.bound) if max_weights is None else np.maximum.accumulate(max_weights)
        k = np.maximum(rising, self.bound)
        for sign, edge, side in zip((1.0, -1.0), self.rewards, self._sides, strict=True):
            r, q, v = (
                sign * (column - edge) / self.rewards.span
                for column in (sample.rewards, sample.predicted, sample.values)
            )
            side.add(sample.weights * (r - q) + v, k)
        self.bound = float(k.max(initial=self.bound))

    def concat(self, other: "DoublyRobustSequence") -> "DoublyRobustSequence":
        """Return the sequence of these rows followed by the rows of `other`, over the same range and at the same level.

        Parameters
        ----------
        other : DoublyRobustSequence
            Sequence of the rows that follow.

        Returns
        -------
        DoublyRobustSequence
            New sequence. Its limits hold, but they are wider than the limits of one sequence.
        """
        found = DoublyRobustSequence(self.rewards, max(self.bound, other.bound))
        lower, upper = (one.concat(two) for one, two in zip(self._sides, other._sides, strict=True))
        found._sides = lower, upper
        return found

    def interval(self) -> Interval:
        """Return the limits of the value that follow from all rows so far."""
        low, high = (max(side.highest, 0.0) for side in self._sides)
        return self.rewards.clip(
            self.rewards.least + self.rewards.span * low, self.rewards.largest - self.rewards.span * high
        )


def doubly_robust_interval(sample: Sample, rewards: Range, bound: float, alpha: float = 0.05) -> Interval:
    """Return the narrowest limits so far of a policy's value, from the doubly robust confidence sequence.

    They hold after all rows together, also if the logger learns.

    Parameters
    ----------
    sample : Sample
        Rows with a model fitted on the past, with predictions within the range.
    rewards : Range
        Range of the rewards.
    bound : float
        Largest possible weight W, at least every weight.
    alpha : float, default 0.05
        Probability with which the limits may ever fail, above 0 and below 1.

    Returns
    -------
    Interval
        Limits of the value.
    """
    sequence = DoublyRobustSequence(rewards, bound, alpha)
    sequence.add(sample)
    return sequence.interval()
