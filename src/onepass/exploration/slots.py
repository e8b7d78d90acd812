"""The choice of arms for k slots by a rule, without replacement; each slot has a distribution over the arms left."""

from collections.abc import Callable
from typing import Any

import numpy as np

from onepass.exploration.assignment import exclude_dead_ends
from onepass.exploration.contract import ArmStatistics, score
from onepass.exploration.sampling import sample_action
from onepass.foundation.generic import call_direct, compiled

FLOAT = np.dtype(np.float64)
NOT_FINITE, NOT_OFFERED, NONE_LEFT = -1, -2, -3  # in place of the first arm


@compiled
def fill_slots(
    rule: Any, stats: ArmStatistics, scores: np.ndarray, eligible: np.ndarray, uniforms: np.ndarray, greedy: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Choose arms (k,) for k slots without replacement; return them and the distribution (k, K) of each slot.

    `scores` (K,) are the exploration rule's scores of the arms, and `stats` their statistics. `uniforms` holds k pairs
    of uniform numbers. `eligible` (1 or k, K) is one mask for every slot or one for each; with one for each, arms are
    excluded after which a later slot could not be filled (assignment.py). If `greedy`, the slots after the first take
    the best of the remaining arms.

    If no arm is left for a slot, the first of the arms is `NONE_LEFT`; if a score is not finite, it is `NOT_FINITE`.
    Both are negative.
    """
    slots = uniforms.size // 2
    arms, p, open_arms = np.empty(slots, np.int64), np.zeros((slots, scores.size)), eligible[0].copy()
    for j in range(slots):
        left = 0
        for a in range(scores.size):
            open_arms[a] = eligible[min(j, eligible.shape[0] - 1), a]
        for i in range(j):
            open_arms[arms[i]] = False
        if eligible.shape[0] > 1 and j < slots - 1:
            free = np.ones(scores.size, np.bool_)
            for i in range(j):
                free[arms[i]] = False
            exclude_dead_ends(eligible, j, open_arms, free)
        for a in range(scores.size):
            left += open_arms[a]
        if left == 0:
            arms[0] = NONE_LEFT
            return arms, p
        if j > 0 and greedy:
            best = -1
            for a in range(scores.size):
                if open_arms[a] and (best < 0 or scores[a] > scores[best]):
                    best = a
            arms[j], p[j, best] = best, 1.0
        else:
            arms[j], p[j] = sample_action(rule, stats, scores, open_arms, uniforms[2 * j : 2 * j + 2])
            if arms[j] < 0:
                arms[0] = NOT_FINITE
                return arms, p
    return arms, p


@compiled
def restrict_first_slot(eligible: np.ndarray, arm: int, slots: int) -> np.ndarray:
    """Return a mask (slots, K) of eligible arms: `arm` alone for the first slot, and `eligible` (K,) for the others."""
    out = np.zeros((slots, eligible.shape[1]), np.bool_)
    out[0, arm] = eligible[0, arm]
    for j in range(1, slots):
        for a in range(eligible.shape[1]):
            out[j, a] = eligible[min(j, eligible.shape[0] - 1), a]
    return out


@compiled
def rank_and_fill(
    rule: Any, stats: ArmStatistics, eligible: np.ndarray, uniforms: np.ndarray, greedy: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose arms (k,) for k slots without replacement; return them, distributions (k, K) and the scores (K,) of arms.

    `rule` is the exploration rule, and `stats` the statistics of the arms. `uniforms` holds k pairs of uniform numbers,
    and `eligible` (1 or k, K) is the mask of eligible arms, one for all slots or one for each. If `greedy`, slots after
    the first take the best remaining arm.
    """
    scores = score(rule, stats)
    arms, p = fill_slots(rule, stats, scores, eligible, uniforms, greedy)
    return arms, p, scores


def rank_and_fill_direct(
    rule: Any, stats: ArmStatistics, eligible: np.ndarray, uniforms: np.ndarray, greedy: bool, code: dict[Any, Callable]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Call `rank_and_fill` from Python, without a second look-up of argument types if possible.

    `code` keeps the compiled code, by type of its arguments, for this rule and plain statistics; the other arguments
    and the results are those of `rank_and_fill`. Statistics are plain if they are contiguous float64. The look-up of
    types, half of a call's time, is then skipped.
    """
    means, widths, samples, beta = stats[:4]
    plain = means.ndim == widths.ndim == beta.ndim == 1 and samples.ndim == 2
    for part in (means, widths, samples, beta):
        plain = plain and part.flags.carray and part.dtype == FLOAT
    given = rule, stats, eligible, uniforms, greedy
    return call_direct(code if plain else None, rank_and_fill, *given)
