"""Contract of an exploration rule, which turns statistics of arms into scores and probabilities.

A rule is a `NamedTuple` of numbers with a field `uniform_share`, and the functions below, registered for its type. By
default the score is the mean, and the eligible arms with the largest score share the probability.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from onepass.exploration.confidence_width import Strength
from onepass.foundation.generic import generic


class ArmStatistics(NamedTuple):
    """Statistics of K arms that a model gives to a rule.

    Parameters
    ----------
    means : array of shape (K,)
        Expected rewards. If the rule only compares arms, they may be linear scores instead (`needs_reward_scale`).
    widths : array of shape (K,)
        sqrt(x^T A^-1 x) of every arm; zeros if the rule needs none.
    samples : array of shape (M, K)
        Means under M draws of the parameter; M is 0 if the rule draws nothing.
    beta : array of shape (K,)
        Multipliers of widths and draws.
    residual : float
        Root mean square of reward - mean over the rows learned; 0 if nothing is known.
    rounds : int
        Number of rows learned.
    """

    means: np.ndarray
    widths: np.ndarray
    samples: np.ndarray
    beta: np.ndarray
    residual: float
    rounds: int


@partial(generic, default=True)
def strength(rule: Any) -> Strength:
    """Return the multiplier beta of confidence widths of an exploration rule, as a `Strength`. Default: beta 0."""
    return Strength(scale=0.0, theory=np.empty(0))


@partial(generic, default=True)
def needs_widths(rule: Any) -> bool:
    """Return True if the exploration rule uses the arms' confidence widths. Default: False."""
    return False


@partial(generic, default=True)
def needs_residual(rule: Any) -> bool:
    """Return True if the exploration rule uses the size of past prediction errors. Default: False."""
    return False


@partial(generic, default=True)
def needs_reward_scale(rule: Any) -> bool:
    """Return True if the exploration rule uses differences of means, not only their order. Default: False.

    Models with a link function then pass expected rewards instead of linear scores such as log odds.
    """
    return False


@partial(generic, default=True)
def draws(rule: Any) -> int:
    """Return how many random draws of the model's parameter the exploration rule uses. Default: 0."""
    return 0


@partial(generic, default=True)
def score(rule: Any, stats: ArmStatistics) -> np.ndarray:
    """Return the scores (K,) by which the exploration rule ranks the arms. Default: their means.

    `stats` are the arms' statistics.
    """
    return stats.means.copy()


@partial(generic, default=True)
def action_probabilities(
    rule: Any, stats: ArmStatistics, scores: np.ndarray, eligible: np.ndarray, out: np.ndarray
) -> None:
    """Fill `out` (K,), zeros before, with the rule's action probabilities, before a uniform share is mixed in.

    They are 0 for arms that are not in the mask `eligible` (K,), and add up to 1. `stats` are the arms' statistics, and
    `scores` (K,) the results of `score`. Default: equal shares for the eligible arms with the largest score.
    """
    best, ties = -np.inf, 0
    for a in range(scores.size):
        if eligible[a]:
            if scores[a] > best:
                best, ties = scores[a], 1
            elif scores[a] == best:
                ties += 1
    for a in range(scores.size):
        if eligible[a] and scores[a] == best:
            out[a] = 1.0 / ties
