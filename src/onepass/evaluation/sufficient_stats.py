"""Sufficient statistics of a policy's rows, for evaluation without keeping the rows.

The following numbers are kept:

    of (a, s, v) = (s(w) (r - q), s(w), v) for every estimator: rows, means (3,), and sums of squares about them (3, 3)
    value = mean v + mean a, or self-normalized mean v + mean a / mean s;   its variance from the same numbers
    DM keeps (w (r - q), w, v): its value is mean v, and the other two estimate its error

The symbols are those of estimators.py. Means and squares merge by the formula of Chan, Golub and LeVeque (1983), so
nothing is lost to rounding on long logs. Mean weights are kept for at most 128 parts of the log of equal lengths, so
that its two halves can be compared. Memory does not grow with the log.
"""

from dataclasses import dataclass

import numpy as np

from onepass.evaluation.anytime import AnytimeLimits
from onepass.evaluation.diagnosis import Diagnosis, diagnose_moments, in_errors
from onepass.evaluation.estimators import Estimator, zero_shape
from onepass.evaluation.moments import Moments, compute_moments
from onepass.evaluation.reward_range import Range
from onepass.evaluation.sample import Sample

PIECES = 128  # of the path: its middle is known to one in 64 of all rows


@dataclass(frozen=True)
class TermStatistics:
    """Statistics of one estimator over `rows` rows, from which its value and standard error follow.

    A row with reward r has three terms: the correction s (r - q), s, and the predicted value v of the policy. Here s is
    the importance weight after the estimator's shrinkage, and q the predicted reward of the chosen arm. `means` (3,)
    are the means of the terms, and `squares` (3, 3) the sums of products of their deviations from these means.
    """

    rows: int
    means: np.ndarray
    squares: np.ndarray

    def __add__(self, other: "TermStatistics") -> "TermStatistics":
        """Return the statistics of two logs together."""
        rows, away = self.rows + other.rows, other.means - self.means
        if rows == 0:
            return self
        squares = self.squares + other.squares + np.outer(away, away) * (self.rows * other.rows / rows)
        return TermStatistics(rows, self.means + away * (other.rows / rows), squares)

    def estimate(self, one: Estimator) -> tuple[float, float]:
        """Return the value and the standard error of the estimator `one`, equal to those computed from the rows.

        Without rows both are NaN. A single row has no standard error: it is NaN.
        """
        if self.rows == 0:
            return float("nan"), float("nan")
        a, s, v = self.means
        error = 0.0  # of the reward model
        if one.shape is zero_shape:
            value, along, error = v, np.array([1.0, 0.0, 1.0]), a
        elif not one.normalized:
            value, along = v + a, np.array([1.0, 0.0, 1.0])
        elif s == 0.0:
            value, along = v, np.array([0.0, 0.0, 1.0])
        else:
            value, along = v + a / s, np.array([1.0 / s, -a / s**2, 1.0])
        if self.rows == 1:
            return float(value), float("nan")
        return float(value), float(np.hypot(error, np.sqrt(max(along @ self.squares @ along, 0.0)) / self.rows))


def term_statistics(estimator: Estimator, sample: Sample) -> TermStatistics:
    """Compute the statistics of one estimator over a block of rows."""
    sample = estimator.select_rows(sample)
    if sample.rows == 0:
        return TermStatistics(0, np.zeros(3), np.zeros((3, 3)))
    s = sample.weights if estimator.shape is zero_shape else estimator.shrink(sample.weights)
    q, v = (sample.predicted, sample.values) if estimator.models else (0.0, np.zeros(sample.rows))
    columns = np.stack([s * (sample.rewards - q), s, v])
    means = columns.mean(axis=1)
    columns -= means[:, None]
    return TermStatistics(sample.rows, means, columns @ columns.T)


class WeightPath:
    """Sums of importance weights along a log, to find drift: rows, sum of w and sum of w^2 of consecutive pieces.

    The pieces have equal numbers of blocks.
    """

    def __init__(self) -> None:
        self._pieces: list[np.ndarray] = []
        self._blocks, self._held = 1, 0

    def add(self, m: Moments) -> None:
        """Add the rows of a block, given by the moments `m` of their weights."""
        if self._held == 0:
            self._pieces.append(np.zeros(3))
        self._pieces[-1] += (m.rows, m.weights, m.square_weights)
        self._held = (self._held + 1) % self._blocks
        if len(self._pieces) == PIECES and self._held == 0:
            self._pieces = [one + two for one, two in zip(self._pieces[::2], self._pieces[1::2], strict=True)]
            self._blocks *= 2

    def concat(self, other: "WeightPath") -> "WeightPath":
        """Return the sums along this log, followed by those along the log of `other`."""
        found = WeightPath()
        found._blocks, found._pieces = max(self._blocks, other._blocks), [*self._pieces, *other._pieces]
        while len(found._pieces) >= PIECES:
            if len(found._pieces) % 2:
                found._pieces.append(np.zeros(3))
            found._pieces = [one + two for one, two in zip(found._pieces[::2], found._pieces[1::2], strict=True)]
        return found

    def drift(self) -> float:
        """Return the mean weight of the log's second half minus that of the first half, in standard errors.

        Returns 0 for fewer than two pieces or fewer than two rows, or if the difference may be rounding.
        """
        if len(self._pieces) < 2:
            return 0.0
        pieces = np.stack(self._pieces)
        middle = 1 + int(np.argmin(abs(np.cumsum(pieces[:-1, 0]) - pieces[:, 0].sum() / 2)))
        means, errors = [], []
        for rows, weights, squares in (pieces[:middle].sum(axis=0), pieces[middle:].sum(axis=0)):
            means.append(weights / rows)
            errors.append(max(squares / rows - (weights / rows) ** 2, 0.0) / rows)
        return in_errors(float(means[1] - means[0]), float(sum(errors)))


class PolicyStatistics:
    """Statistics of one policy over a stream of rows.

    Parameters
    ----------
    rewards : range of possible rewards.
    estimators : estimators to compute, with their arguments.
    alpha : error probability of all limits.
    average : True if anytime limits are for the average value so far, for a policy or a world that changes.
    """

    rewards: Range
    estimators: tuple[Estimator, ...]
    alpha: float
    moments: Moments
    path: WeightPath
    unsupported: float
    logged: float

    def __init__(self, rewards: Range, estimators: tuple[Estimator, ...], alpha: float, average: bool = False) -> None:
        nothing = TermStatistics(0, np.zeros(3), np.zeros((3, 3)))
        self.rewards, self.estimators, self.alpha = rewards, estimators, alpha
        self.moments, self.terms, self.path = Moments(), [nothing for _ in estimators], WeightPath()
        self.unsupported, self.logged = 0.0, 0.0
        self.anytime = AnytimeLimits(rewards, alpha, average, any(one.models for one in estimators))

    def add(
        self, sample: Sample, max_weights: np.ndarray | None, unsupported: float, ceiling: float | None = None
    ) -> None:
        """Add a block of rows.

        `max_weights` (n,) are the largest possible weights of the rows, None if not known. `unsupported` is the
        policy's probability of arms that the logger never chose, summed over the rows. `ceiling` is the largest weight
        of any policy in the first row, None if not known.
        """
        m = compute_moments(sample.weights, sample.rewards)
        self.moments += m
        self.path.add(m)
        self.terms = [
            one + term_statistics(estimator, sample) for one, estimator in zip(self.terms, self.estimators, strict=True)
        ]
        self.unsupported += unsupported
        self.logged += float(sample.rewards.sum())
        self.anytime.add(sample, max_weights, ceiling)

    def concat(self, other: "PolicyStatistics") -> "PolicyStatistics":
        """Return the statistics of this stream followed by another one with the same arguments."""
        found = PolicyStatistics(self.rewards, self.estimators, self.alpha)
        found.moments, found.path = self.moments + other.moments, self.path.concat(other.path)
        found.terms = [one + two for one, two in zip(self.terms, other.terms, strict=True)]
        found.unsupported, found.logged = self.unsupported + other.unsupported, self.logged + other.logged
        found.anytime = self.anytime.concat(other.anytime)
        return found

    def diagnosis(self) -> Diagnosis:
        """Return the diagnosis of the importance weights so far, which says whether the estimates can be believed."""
        m = self.moments
        variance = max(m.square_weights / m.rows - m.mean_weight**2, 0.0)
        found = diagnose_moments(m, float(np.sqrt(variance / m.rows)), self.path.drift(), self.unsupported / m.rows)
        return self.anytime.add_warning(found)
