"""Functions shared by several rules: upper confidence bounds, and probabilities that fall with the gap to the best."""

import numpy as np

from onepass.exploration.contract import ArmStatistics
from onepass.foundation.generic import compiled


@compiled
def upper_bounds(stats: ArmStatistics) -> np.ndarray:
    """Return the upper confidence bound, mean + beta width, of every arm, (K,)."""
    scores = np.empty(stats.means.size)
    for a in range(scores.size):
        scores[a] = stats.means[a] + stats.beta[a] * stats.widths[a]
    return scores


@compiled
def gap_scale(scale: float, count: int, stats: ArmStatistics) -> float:
    """Return gamma = scale sqrt(count t) / sigma, the weight of gaps in inverse gap weighting.

    `count` is the number of arms among which the probability is shared, t the number of rows learned, and sigma the
    root mean square of prediction errors. gamma is 0 before any row is learned, and infinite if all predictions are
    exact.
    """
    if stats.residual > 0.0:
        return scale * np.sqrt(count * float(stats.rounds)) / stats.residual
    return 0.0 if stats.rounds == 0 else np.inf


@compiled
def fill_inverse_gap(scores: np.ndarray, best: int, count: int, gamma: float, out: np.ndarray) -> None:
    """Write 1 / (count + gamma gap) in place for every arm whose entry of `out` (K,) is above 0.

    gap is the distance of the arm's score to the best score. The arm with the index `best` gets the rest of the
    probability. `count` is the number of arms among which the probability is shared.
    """
    for a in range(scores.size):
        if out[a] > 0.0:
            gap = scores[best] - scores[a]
            out[a] = 1.0 / (count + (gamma * gap if gap > 0.0 else 0.0))
    out[best] = 0.0
    total = 0.0
    for a in range(out.size):
        total += out[a]
    out[best] = 1.0 - total
