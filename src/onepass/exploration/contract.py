"""The contract of a rule: from what was seen of the arms to scores and probabilities.

A rule is a `NamedTuple` of numbers with a field `uniform_share`, and the functions below, registered for its type.
Defaults: the score is the mean, and the eligible arms with the largest score share the probability.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from onepass.exploration.confidence_width import Strength
from onepass.foundation.generic import generic


class ArmStatistics(NamedTuple):
    """A model's view of K arms: means (K,), expected rewards, or scores in the same order (`wants_rewards`); widths
    (K,) = sqrt(x^T A^-1 x), zeros where the rule wants none; samples (M, K), the means under M draws of the parameter;
    beta (K,), the multipliers of widths and draws; residual: the root mean square of reward - mean of what was learned,
    0 where nothing is known; rounds: rows learned."""

    means: np.ndarray
    widths: np.ndarray
    samples: np.ndarray
    beta: np.ndarray
    residual: float
    rounds: int


@partial(generic, default=True)
def strength(rule: Any) -> Strength:
    """The multiplier beta that the rule asks for. Default: none."""
    return Strength(scale=0.0, theory=np.empty(0))


@partial(generic, default=True)
def needs_widths(rule: Any) -> bool:
    """Return whether `Seen.widths` are looked at. Default: no."""
    return False


@partial(generic, default=True)
def needs_residual(rule: Any) -> bool:
    """Return whether `Seen.residual` is looked at. Default: no."""
    return False


@partial(generic, default=True)
def needs_reward_scale(rule: Any) -> bool:
    """Return whether gaps between `Seen.means` count, so that they must be expected rewards where a model scores arms
    on another scale (the log odds of a click). Default: no, order is all that counts."""
    return False


@partial(generic, default=True)
def draws(rule: Any) -> int:
    """Return the number of draws of the parameter that the rule counts. Default: none."""
    return 0


@partial(generic, default=True)
def score(rule: Any, stats: ArmStatistics) -> np.ndarray:
    """Return the scores that arms are ranked by, (K,). Default: their means."""
    return stats.means.copy()


@partial(generic, default=True)
def action_probabilities(
    rule: Any, stats: ArmStatistics, scores: np.ndarray, eligible: np.ndarray, out: np.ndarray
) -> None:
    """Fill chances (K,), zeros before, with the probabilities of the arms that may be chosen, `among` (K,), before the
    floor. They add up to 1. Default: equal shares for the arms with the largest score."""
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
