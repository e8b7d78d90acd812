"""Upper confidence bounds.

The score is mean + beta width, and the arm with the largest score is played. With beta < 0 the rule is pessimistic.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from onepass.exploration import contract
from onepass.exploration.confidence_width import Strength, Theory, check_multiplier, make_strength
from onepass.exploration.contract import ArmStatistics
from onepass.exploration.exploration import Exploration, check_share
from onepass.exploration.inverse_gap_weights import upper_bounds
from onepass.foundation.registry import savable


class UCBRule(NamedTuple):
    """Upper confidence bounds as compiled code reads them; `strength` multiplies the widths.

    `uniform_share` is the share of uniform choices.
    """

    strength: Strength
    uniform_share: float


@contract.strength.for_state(UCBRule)
def strength(rule: UCBRule) -> Strength:
    return rule.strength


@contract.needs_widths.for_state(UCBRule)
def needs_widths(rule: UCBRule) -> bool:
    return True


@contract.score.for_state(UCBRule)
def score(rule: UCBRule, stats: ArmStatistics) -> np.ndarray:
    return upper_bounds(stats)


@savable
@dataclass(frozen=True)
class UCB(Exploration):
    """Upper confidence bounds: play the arm with the largest mean + exploration * width.

    Parameters
    ----------
    exploration : float or Theory, default 0.1
        Multiplier beta of the width, any finite number. A negative value prefers arms of which much is known, which
        suits a policy learned from a log. `Theory` computes beta from the theorem of the estimator.
    uniform_share : float, default 0.0
        Share of all probability that is spread evenly over the K eligible arms, from 0 to 1. Every eligible arm has at
        least the probability uniform_share / K.
        With 0 the best arm has probability 1, and its decisions say nothing about the other arms.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    With `Theory` and uniform_share 0, the regret bound of the estimator's theorem holds. A uniform share adds to the
    regret of a round at most uniform_share times the difference between the best and the worst mean.
    """

    exploration: float | Theory = 0.1
    uniform_share: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "exploration", check_multiplier("exploration", self.exploration))
        object.__setattr__(self, "uniform_share", check_share(self.uniform_share))

    def rule(self) -> UCBRule:
        return UCBRule(strength=make_strength(self.exploration), uniform_share=self.uniform_share)
