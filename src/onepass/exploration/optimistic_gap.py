"""Inverse gap weighting over upper confidence bounds.

After t rewards, K arms have the upper bounds U_a and the probabilities

    U_a = mean_a + beta width_a,    p_a = 1 / (K + gamma (U_b - U_a)) for a != b,   p_b = 1 - the rest,   b: largest U
    gamma = scale sqrt(K t) / sigma,  sigma = the root mean square of reward - mean so far

UCB would play b alone. Here every arm keeps a probability, so decisions can be evaluated from their log. An arm about
which little is known has a high upper bound, so its gap is small and it is played.

Guarantee: p_a > 0 for every arm. In a round, arms whose upper bound is below that of b by a gap or more have together
at most the probability K / (K + gamma gap). Sources: LinUCB (Li et al. 2010), and inverse gaps over means from SquareCB
(Foster and Rakhlin 2020). No regret bound is claimed for both together (measured: docs/recommended_measured.md).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from onepass.exploration import contract
from onepass.exploration.confidence_width import Strength, Theory, check_multiplier, make_strength
from onepass.exploration.contract import ArmStatistics
from onepass.exploration.exploration import Exploration, check_share
from onepass.exploration.inverse_gap_weights import fill_inverse_gap, gap_scale, upper_bounds
from onepass.foundation import check
from onepass.foundation.registry import savable


class OptimisticGapRule(NamedTuple):
    """Inverse gap weighting over upper bounds, as compiled code reads it.

    `strength` multiplies the widths, `scale` is the factor of the weight of gaps, and `uniform_share` is the share of
    uniform choices.
    """

    strength: Strength
    scale: float
    uniform_share: float


@contract.strength.for_state(OptimisticGapRule)
def strength(rule: OptimisticGapRule) -> Strength:
    return rule.strength


@contract.needs_widths.for_state(OptimisticGapRule)
def needs_widths(rule: OptimisticGapRule) -> bool:
    return True


@contract.needs_reward_scale.for_state(OptimisticGapRule)
def needs_reward_scale(rule: OptimisticGapRule) -> bool:
    return True


@contract.needs_residual.for_state(OptimisticGapRule)
def needs_residual(rule: OptimisticGapRule) -> bool:
    return True


@contract.score.for_state(OptimisticGapRule)
def score(rule: OptimisticGapRule, stats: ArmStatistics) -> np.ndarray:
    return upper_bounds(stats)


@contract.action_probabilities.for_state(OptimisticGapRule)
def action_probabilities(
    rule: OptimisticGapRule, stats: ArmStatistics, scores: np.ndarray, eligible: np.ndarray, out: np.ndarray
) -> None:
    best, count = -1, 0
    for a in range(scores.size):
        if eligible[a]:
            out[a] = 1.0
            count += 1
            if best < 0 or scores[a] > scores[best]:
                best = a
    fill_inverse_gap(scores, best, count, gap_scale(rule.scale, count, stats), out)


@savable
@dataclass(frozen=True)
class OptimisticGap(Exploration):
    """Inverse gap weighting over upper bounds, mean + exploration * width.

    An arm other than the best one has the probability 1 / (K + gamma * gap), where K is the number of eligible arms.
    The gap is the difference between its upper bound and the largest one. The arm with the largest upper bound has the
    rest.

    Parameters
    ----------
    exploration : float or Theory, default 1.0
        Multiplier of the width, at least 0. In a `ContextualBandit` widths are in units of the typical prediction
        error. `Theory` computes the multiplier from the theorem of the estimator.
    scale : float, default 20.0
        Factor of gamma = scale * sqrt(K t) / sigma, above 0, for K arms and t learned rows. sigma is the root mean
        square of the prediction errors so far.
    uniform_share : float, default 0.0
        Share of all probability that is spread evenly over the K eligible arms, from 0 to 1. Every eligible arm has at
        least the probability uniform_share / K.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """

    exploration: float | Theory = 1.0
    scale: float = 20.0
    uniform_share: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "exploration", check_multiplier("exploration", self.exploration))
        if not isinstance(self.exploration, Theory) and self.exploration < 0.0:
            raise ValueError(f"exploration must be at least 0, got {check.quote(self.exploration)}")
        object.__setattr__(self, "scale", check.positive("scale", self.scale))
        object.__setattr__(self, "uniform_share", check_share(self.uniform_share))

    def rule(self) -> OptimisticGapRule:
        return OptimisticGapRule(
            strength=make_strength(self.exploration), scale=self.scale, uniform_share=self.uniform_share
        )
