"""The choice of arms for k slots by a rule, without replacement: every slot has a distribution over the arms left."""

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
    """Arms (k,) and distributions (k, K) of k slots, k pairs of lots, without replacement.

    among (1 or k, K): who may be chosen, in every slot or in each, where arms are left out after which a later slot
    could not be filled (assignment.py); greedy: the best of the rest after the first slot.
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
    """Repeat the choice for every slot, (slots, K), but for the first, which only one arm may have."""
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
    """Return what `fill_slots` does, and the scores (K,) that arms are ranked by."""
    scores = score(rule, stats)
    arms, p = fill_slots(rule, stats, scores, eligible, uniforms, greedy)
    return arms, p, scores


def rank_and_fill_direct(
    rule: Any, stats: ArmStatistics, eligible: np.ndarray, uniforms: np.ndarray, greedy: bool, code: dict[Any, Callable]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what `rank_and_fill` does, from Python; code: keeps what is compiled for this rule and plain statistics.

    Statistics are plain where they are contiguous float64: then no type is looked at again, half of a call's time.
    """
    means, widths, samples, beta = stats[:4]
    plain = means.ndim == widths.ndim == beta.ndim == 1 and samples.ndim == 2
    for part in (means, widths, samples, beta):
        plain = plain and part.flags.carray and part.dtype == FLOAT
    given = rule, stats, eligible, uniforms, greedy
    return call_direct(code if plain else None, rank_and_fill, *given)
