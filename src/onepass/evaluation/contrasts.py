"""Differences between the arms of an experiment, with limits at every time, even if all rewards drift together.

In round t, arm A is drawn with probability p_A and pays r. The limits are for the contrast D of two arms a and b:

    g_t(a) = m_a + 1{A = a} (r - m_a) / p_a          doubly robust reward of arm a in round t, m predicted before t
    h_t(a, b) = min(p_a, p_b)                        weight of the round for this pair, known before A is drawn
    D(a, b) = sum h_t E[r(a) - r(b)] / sum h_t       the contrast: the average difference, weighted by h
    estimate: sum h_t (g_t(a) - g_t(b)) / sum h_t

Both arms of a pair share every round, so whatever moves all arms together drops out. The terms y = h (g(a) - g(b)) are
at least -1 for rewards and predictions in [0, 1], however small probabilities become, and E[y | past] is h times the
difference. So for every l in [0, 1), E exp(l (y - E y) + (l + log(1 - l)) y^2) <= 1, and mixtures of the products are
supermartingales (Fan, Grama and Liu 2015; running_averages.py). The limits need no model: predictions only make them
narrow. The weights h are our own addition. With h = 1 (Waudby-Smith et al. 2022), terms are as large as 1 / p, and the
limits of an arm that is hardly shown any more become wider. The K (K - 1) lower limits share alpha. The state is three
matrices (K, K), and a row costs O(K^2).
"""

import math
from typing import Any

import numpy as np
import scipy

from onepass.evaluation.gamma_mixture import log_wealth

MIXING = 30.0  # c of the mixture: of what is wide for hundreds and for 100,000 clicks, little
GRID = 1.01  # ratio of neighbouring variances of which the boundary is computed
STEPS = 1e-6  # how exactly a value of the boundary is found


class Boundary:
    """Boundary of a sequential test: the sum of terms at which the test rejects, for a given variance of the terms.

    At the sum s and the variance v, the wealth of a gamma-exponential mixture is 1 / alpha. v is rounded up to a grid,
    on which the sums are stored.
    """

    def __init__(self, alpha: float) -> None:
        self._wanted = -math.log(alpha)
        self._known: dict[int, float] = {}

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """Return the boundary, a sum s, for each variance in v; the result has the shape of v."""
        places = np.ceil(np.log(np.maximum(v, 1.0)) / math.log(GRID)).astype(int)
        return np.array([self._value(place) for place in places.ravel().tolist()]).reshape(places.shape)

    def _value(self, place: int) -> float:
        """Return the sum s at which the wealth is 1 / alpha, for the variance GRID^place."""
        if place not in self._known:
            v = GRID**place
            high = 2.0 * (self._wanted + math.sqrt(v * self._wanted)) + 10.0

            def excess(s: float) -> float:
                return log_wealth(s, v, MIXING) - self._wanted

            while excess(high) < 0.0:
                high *= 2.0
            self._known[place] = float(scipy.optimize.brentq(excess, 0.0, high, xtol=STEPS)) + STEPS
        return self._known[place]


class Contrasts:
    """Estimated differences between the rewards of K arms, with limits that hold at every time.

    `count` is K, and `alpha` the probability that any limit ever fails. `sums` (3, K, K) holds, for every pair of arms,
    the sum of the rounds' weights, of the weighted differences, and of the squares of the weighted differences.
    """

    def __init__(self, count: int, alpha: float, sums: np.ndarray | None = None) -> None:
        self.sums = np.zeros((3, count, count)) if sums is None else sums
        self._boundary = Boundary(alpha / (count * (count - 1)))

    def add(self, p: np.ndarray, arms: np.ndarray, rewards: np.ndarray, means: np.ndarray) -> None:
        """Add rows: the arms' probabilities p (n, K), chosen arms (n,), rewards (n,) and predicted rewards (n, K).

        Rewards and predictions are in [0, 1].
        """
        rows = np.arange(len(arms))
        robust = means.copy()
        robust[rows, arms] += (rewards - means[rows, arms]) / p[rows, arms]
        weights = np.minimum(p[:, :, None], p[:, None, :])
        terms = weights * (robust[:, :, None] - robust[:, None, :])
        self.sums = self.sums + np.stack([weights.sum(0), terms.sum(0), (terms * terms).sum(0)])

    @property
    def estimates(self) -> np.ndarray:
        """Estimated differences (K, K) between the rewards of two arms, 0 before the first row."""
        return self.sums[1] / np.maximum(self.sums[0], np.finfo(float).tiny)

    def widths(self) -> np.ndarray:
        """Return the distances (K, K) from estimated differences to their limits, infinite for pairs without data."""
        away = self._boundary(self.sums[2])
        return np.divide(away, self.sums[0], out=np.full(away.shape, np.inf), where=self.sums[0] > 0.0)

    def lower(self) -> np.ndarray:
        """Return lower limits (K, K) of the differences between two arms, at least -1, with 0 on the diagonal.

        Upper limits are minus the transpose. All limits hold at all times at once with probability 1 - alpha.
        """
        away = self.widths()
        out = np.where(np.isfinite(away), np.maximum(self.estimates - away, -1.0), -1.0)
        np.fill_diagonal(out, 0.0)
        return out


def leader(lower: Any) -> int:
    """Return the index of the best arm, from lower limits (K, K) of the differences between arms.

    It is the arm whose smallest lower limit against another arm is largest.
    """
    worst = np.array(lower, float)
    np.fill_diagonal(worst, np.inf)
    return int(worst.min(axis=1).argmax())
