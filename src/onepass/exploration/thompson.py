"""Thompson sampling with known action probabilities.

The probability of arm a with row x_a is computed from M draws:

    theta_1 .. theta_M ~ N(theta, beta^2 A^-1),   p_a = the share of the M in which x_a^T theta_m is largest,   arm ~ p

The M draws and the draw of the arm are independent. Given history, contexts and the M draws, the arm has the
distribution p, so every importance-weighted estimate is exact for any M >= 1. Averaged over the draws as well, the arm
is distributed as in plain Thompson sampling for any M. A larger M only gives more even weights, at more cost. Draws
come in antithetic pairs theta +- d.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from onepass.exploration import contract
from onepass.exploration.confidence_width import Strength, Theory, check_multiplier, make_strength
from onepass.exploration.contract import ArmStatistics
from onepass.exploration.exploration import Exploration, check_share
from onepass.foundation import check
from onepass.foundation.registry import savable

# Default beta of `Thompson` and of `SingleDrawThompson` for linear models.
SHARES, SINGLE_DRAW = 0.03, 0.1
DEVIATIONS = 0.6  # default multiple of the posterior's deviation in a kernel bandit (docs/thompson_settings.md)


class ThompsonRule(NamedTuple):
    """Thompson sampling as compiled code reads it: `draws` draws, whose spread is multiplied by `strength`.

    `uniform_share` is the share of uniform choices.
    """

    strength: Strength
    draws: int
    uniform_share: float


@contract.strength.for_state(ThompsonRule)
def strength(rule: ThompsonRule) -> Strength:
    return rule.strength


@contract.draws.for_state(ThompsonRule)
def draws(rule: ThompsonRule) -> int:
    return rule.draws


@contract.score.for_state(ThompsonRule)
def score(rule: ThompsonRule, stats: ArmStatistics) -> np.ndarray:
    return stats.samples[0].copy()


@contract.action_probabilities.for_state(ThompsonRule)
def action_probabilities(
    rule: ThompsonRule, stats: ArmStatistics, scores: np.ndarray, eligible: np.ndarray, out: np.ndarray
) -> None:
    count = stats.samples.shape[0]
    for m in range(count):
        sample, best, ties = stats.samples[m], -1, 0
        for a in range(sample.size):
            if eligible[a]:
                if best < 0 or sample[a] > sample[best]:
                    best, ties = a, 1
                elif sample[a] == sample[best]:
                    ties += 1
        if ties == 1:
            out[best] += 1.0
        else:
            for a in range(best, sample.size):
                if eligible[a] and sample[a] == sample[best]:
                    out[a] += 1.0 / ties
    for a in range(out.size):
        out[a] /= count


def check_optional_multiplier(exploration: float | Theory | None) -> float | Theory | None:
    """Return the argument `exploration`, a multiplier of widths or None, unchanged.

    Raises ValueError unless it is a finite number, `Theory` or None.
    """
    return None if exploration is None else check_multiplier("exploration", exploration)


@savable
@dataclass(frozen=True)
class Thompson(Exploration):
    """Thompson sampling whose action probabilities are known.

    M parameters are drawn from the posterior N(theta, beta^2 A^-1) of the weights. Here theta is the estimate, and A
    the matrix of the design, such as reg I + sum of x x^T. The probability of an arm is the share of draws in which it
    is best.

    Parameters
    ----------
    exploration : float or Theory or None, default None
        Multiplier beta of the spread of the draws, any finite number. `Theory` computes beta from the theorem of the
        estimator. The default is 0.03. It is less than the 0.1 of `UCB`, because a draw deviates in all directions at
        once. In a kernel bandit it is 0.6 sqrt(reg): the draws then have 0.6 times the posterior standard deviation.
    draws : int, default 100
        Number M of draws, at least 1. Without `uniform_share`, an arm's probability is a multiple of 1 / M.
    uniform_share : float, default 0.001
        Share of all probability that is spread evenly over the K eligible arms, from 0 to 1. Every eligible arm has at
        least the probability uniform_share / K.
        With 0 an arm that is best in no draw has probability 0, and the log says nothing about it.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    The arm is drawn from these probabilities by a further random number, independent of the M draws. So the reported
    probabilities are exact. The papers play the best arm of one draw instead: `SingleDrawThompson`. Source: Thompson
    (1933); Agrawal and Goyal (2013) for linear rewards.
    """

    exploration: float | Theory | None = None
    draws: int = 100
    uniform_share: float = 0.001

    def __post_init__(self) -> None:
        object.__setattr__(self, "exploration", check_optional_multiplier(self.exploration))
        object.__setattr__(self, "draws", check.integer("draws", self.draws, 1))
        object.__setattr__(self, "uniform_share", check_share(self.uniform_share))

    def rule(self) -> ThompsonRule:
        beta = SHARES if self.exploration is None else self.exploration
        return ThompsonRule(strength=make_strength(beta), draws=self.draws, uniform_share=self.uniform_share)


@savable
@dataclass(frozen=True)
class SingleDrawThompson(Exploration):
    """Thompson sampling of Agrawal and Goyal (2013), which plays the best arm of one draw.

    One parameter is drawn from N(theta, beta^2 A^-1), where theta is the estimate, and A the matrix of the design, such
    as reg I + sum of x x^T. Use it to compare regret, not to make a log.

    Parameters
    ----------
    exploration : float or Theory or None, default None
        Multiplier beta of the spread of the draw, any finite number. `Theory` computes beta from the theorem of the
        estimator. The default is 0.1. In a kernel bandit it is 0.6 sqrt(reg): the draw then has 0.6 times the posterior
        standard deviation.

    Raises
    ------
    ValueError
        If `exploration` is neither a finite number, `Theory` nor None.

    Notes
    -----
    Given the draw, the arm has probability 1, and all others have probability 0. So no other policy can be evaluated on
    such a log. Over many draws, arms are played as often as with `Thompson` and a uniform share of 0.
    """

    exploration: float | Theory | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "exploration", check_optional_multiplier(self.exploration))

    def rule(self) -> ThompsonRule:
        beta = SINGLE_DRAW if self.exploration is None else self.exploration
        return ThompsonRule(strength=make_strength(beta), draws=1, uniform_share=0.0)
