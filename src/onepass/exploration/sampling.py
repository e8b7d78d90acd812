"""Sampling of an arm from the action probabilities of a rule, mixed with its uniform share."""

from typing import Any

import numpy as np

from onepass.exploration.contract import ArmStatistics, action_probabilities
from onepass.foundation.generic import compiled


@compiled
def sample_action(
    rule: Any, stats: ArmStatistics, scores: np.ndarray, eligible: np.ndarray, uniforms: np.ndarray
) -> tuple[int, np.ndarray]:
    """Draw an arm from its action probabilities, and return its index and the probabilities (K,).

    The probabilities are (1 - uniform_share) times those of the exploration rule, plus uniform_share / count for each
    of the `count` arms in the mask `eligible` (K,). `scores` (K,) are the rule's scores of the arms. `uniforms` holds
    two uniform numbers: the first decides if the arm comes from the uniform share, the second which arm it is. The
    index is -1 if the score of any arm is not finite, eligible or not.
    """
    p, count = np.zeros(scores.size), 0
    for a in range(scores.size):
        if not np.isfinite(scores[a]):
            return -1, p
        count += eligible[a]
    action_probabilities(rule, stats, scores, eligible, p)
    if uniforms[0] < rule.uniform_share:
        arm = index_of_nth(eligible, min(int(uniforms[1] * count), count - 1))
    else:
        arm = sample_categorical(p, uniforms[1])
    if rule.uniform_share > 0.0:
        for a in range(p.size):
            if eligible[a]:
                p[a] = (1.0 - rule.uniform_share) * p[a] + rule.uniform_share / count
    return arm, p


@compiled
def index_of_nth(eligible: np.ndarray, skip: int) -> int:
    """Return the index of the True entry of a mask that comes after `skip` other True entries."""
    for a in range(eligible.size):
        if eligible[a]:
            if skip == 0:
                return a
            skip -= 1
    return -1


@compiled
def sample_categorical(p: np.ndarray, lot: float) -> int:
    """Draw an index with probabilities p: the first at which the cumulative sum of p exceeds `lot`.

    `lot` is a uniform random number in [0, 1). The probability of the index is positive, in spite of rounding.
    """
    total, last = 0.0, -1
    for a in range(p.size):
        if p[a] > 0.0:
            total, last = total + p[a], a
            if lot < total:
                return a
    return last


@compiled
def top_k(scores: np.ndarray, k: int, order: np.ndarray, excluded: np.ndarray) -> np.ndarray:
    """Return the k best arms of every row of scores (n, K): indices (n, k), best first, -1 where fewer are left.

    `order` is a permutation of the arms: of arms with equal scores, the one that comes first in it is better.
    `excluded` (n, K) marks arms that must not be taken, or has shape (0, 0).
    """
    out = np.full((scores.shape[0], k), -1)
    values = np.empty(k)
    for i in range(scores.shape[0]):
        filled = 0
        for a in order:
            value = scores[i, a]
            if (filled == k and value <= values[k - 1]) or (excluded.size > 0 and excluded[i, a]):
                continue
            place = filled if filled < k else k - 1
            while place > 0 and values[place - 1] < value:
                values[place], out[i, place] = values[place - 1], out[i, place - 1]
                place -= 1
            values[place], out[i, place] = value, a
            filled = min(filled + 1, k)
    return out
