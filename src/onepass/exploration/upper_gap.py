"""Inverse gaps of upper bounds.

    U_a = mean_a + beta width_a
    p_a = 1 / (K + gamma (U_b - U_a)) for a != b,   p_b = 1 - the rest,        b the largest U
    gamma = scale sqrt(K t) / sigma,                sigma = the root mean square of reward - mean so far

Inverse gap weighting (inverse_gap.py) with the bound that UCB maximizes in place of the mean: what is little known is
played for its width, and every arm keeps a probability that says how far it is behind. No theorem of ours.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from onepass.exploration import contract
from onepass.exploration.exploration import Exploration, floored
from onepass.exploration.theory import Strength, strength_of
from onepass.foundation import check
from onepass.foundation.check import shown
from onepass.foundation.registry import savable


class UpperGapRule(NamedTuple):
    """strength: of widths; scale of gamma; floor: the share that is spread over all arms."""

    strength: Strength
    scale: float
    floor: float


@contract.strength.for_state(UpperGapRule)
def strength(rule):
    return rule.strength


@contract.wants_widths.for_state(UpperGapRule)
def wants_widths(rule):
    return True


@contract.wants_rewards.for_state(UpperGapRule)
def wants_rewards(rule):
    return True


@contract.wants_residual.for_state(UpperGapRule)
def wants_residual(rule):
    return True


@contract.score.for_state(UpperGapRule)
def score(rule, seen):
    scores = np.empty(seen.means.size)
    for a in range(scores.size):
        scores[a] = seen.means[a] + seen.beta[a] * seen.widths[a]
    return scores


@contract.weigh.for_state(UpperGapRule)
def weigh(rule, seen, scores, among, chances):
    best, count = -1, 0
    for a in range(scores.size):
        if among[a]:
            count += 1
            if best < 0 or scores[a] > scores[best]:
                best = a
    gamma = 0.0 if seen.rounds == 0 else np.inf
    if seen.residual > 0.0:
        gamma = rule.scale * np.sqrt(count * float(seen.rounds)) / seen.residual
    total = 0.0
    for a in range(scores.size):
        if among[a] and a != best:
            gap = scores[best] - scores[a]
            chances[a] = 1.0 / (count + (gamma * gap if gap > 0.0 else 0.0))
            total += chances[a]
    chances[best] = 1.0 - total


@savable
@dataclass(frozen=True)
class UpperGap(Exploration):
    """Every arm with a probability that falls with the gap of its upper bound, mean + beta width, to the largest one.

    exploration: beta, a number from 0 (default 0.8).
    scale: above 0 (default 30.0): gamma = scale sqrt(K t) / sigma, sigma the running residual.
    floor: every eligible arm has at least the probability floor / K; from 0 to 1 (default 0.001).
    Both defaults are chosen on generated news sites (docs/news.md). ValueError for values out of range.
    """

    exploration: float = 0.8
    scale: float = 30.0
    floor: float = 0.001

    def __post_init__(self):
        object.__setattr__(self, "exploration", check.real("exploration", self.exploration))
        if self.exploration < 0.0:
            raise ValueError(f"exploration must be at least 0, got {shown(self.exploration)}")
        object.__setattr__(self, "scale", check.positive("scale", self.scale))
        object.__setattr__(self, "floor", floored(self.floor))

    def rule(self) -> UpperGapRule:
        return UpperGapRule(strength=strength_of(self.exploration), scale=self.scale, floor=self.floor)
