"""Functions of scores that several rules share: upper bounds, and probabilities that fall with the gap to the best."""

import numpy as np

from onepass.exploration.contract import Seen
from onepass.foundation.generic import compiled


@compiled
def upper_bounds(seen: Seen) -> np.ndarray:
    """mean_a + beta_a width_a (K,)."""
    scores = np.empty(seen.means.size)
    for a in range(scores.size):
        scores[a] = seen.means[a] + seen.beta[a] * seen.widths[a]
    return scores


@compiled
def unit_of_gaps(scale: float, count: int, seen: Seen) -> float:
    """gamma = scale sqrt(count t) / sigma, sigma the running residual; 0 at first, infinite where nothing errs."""
    if seen.residual > 0.0:
        return scale * np.sqrt(count * float(seen.rounds)) / seen.residual
    return 0.0 if seen.rounds == 0 else np.inf


@compiled
def by_gaps(scores: np.ndarray, best: int, count: int, gamma: float, chances: np.ndarray) -> None:
    """1 / (count + gamma gap) for the arms whose chances (K,) are above 0, in place; the best arm has the rest."""
    for a in range(scores.size):
        if chances[a] > 0.0:
            gap = scores[best] - scores[a]
            chances[a] = 1.0 / (count + (gamma * gap if gap > 0.0 else 0.0))
    chances[best] = 0.0
    total = 0.0
    for a in range(chances.size):
        total += chances[a]
    chances[best] = 1.0 - total
