"""Functions of scores that several rules share: upper bounds, and probabilities that fall with the gap to the best."""

import numpy as np

from onepass.exploration.contract import ArmStatistics
from onepass.foundation.generic import compiled


@compiled
def upper_bounds(stats: ArmStatistics) -> np.ndarray:
    """Return mean_a + beta_a width_a for every arm, (K,)."""
    scores = np.empty(stats.means.size)
    for a in range(scores.size):
        scores[a] = stats.means[a] + stats.beta[a] * stats.widths[a]
    return scores


@compiled
def gap_scale(scale: float, count: int, stats: ArmStatistics) -> float:
    """Return gamma = scale sqrt(count t) / sigma, with sigma the running residual.

    It is 0 before any row is learned, and infinite if no prediction errs.
    """
    if stats.residual > 0.0:
        return scale * np.sqrt(count * float(stats.rounds)) / stats.residual
    return 0.0 if stats.rounds == 0 else np.inf


@compiled
def fill_inverse_gap(scores: np.ndarray, best: int, count: int, gamma: float, out: np.ndarray) -> None:
    """Write 1 / (count + gamma gap) for every arm with `out` (K,) above 0, in place.

    The best arm gets the rest of the probability.
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
