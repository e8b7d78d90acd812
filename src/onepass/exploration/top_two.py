"""Top-two sampling: half of the decisions for the leader, half for the arm that could most easily be better.

    f_a = share of M draws in which arm a is best                                   the leader, as in Thompson sampling
    rival of a = the b with the least (mean_a - mean_b)^2 / (width_a^2 + width_b^2), 0 where mean_b >= mean_a
    p_a = share f_a + (1 - share) sum over b of f_b 1{rival of b = a}

It finds the best arm with few decisions, and earns while it does so. The probabilities p are exact given the history
and the draws. Source: Russo (2016, 2020). The choice of the rival by transportation cost (T3C) is due to Shang, de
Heide, Menard, Kaufmann and Valko (2020).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from onepass.exploration import contract
from onepass.exploration.confidence_width import Strength, Theory, make_strength
from onepass.exploration.contract import ArmStatistics
from onepass.exploration.exploration import Exploration, check_share
from onepass.exploration.thompson import SHARES, check_optional_multiplier
from onepass.foundation import check
from onepass.foundation.generic import compiled
from onepass.foundation.registry import savable


class TopTwoRule(NamedTuple):
    """Top-two sampling as compiled code reads it: `draws` draws, whose spread is multiplied by `strength`.

    `share` is the part of a draw's weight that its best arm gets; its rival gets the rest. `uniform_share` is the share
    of uniform choices.
    """

    strength: Strength
    draws: int
    share: float
    uniform_share: float


@contract.strength.for_state(TopTwoRule)
def strength(rule: TopTwoRule) -> Strength:
    return rule.strength


@contract.draws.for_state(TopTwoRule)
def draws(rule: TopTwoRule) -> int:
    return rule.draws


@contract.needs_widths.for_state(TopTwoRule)
def needs_widths(rule: TopTwoRule) -> bool:
    return True


@compiled
def count_leaders(samples: np.ndarray, eligible: np.ndarray) -> np.ndarray:
    """Return how often each arm (K,) is the best eligible one in M draws of the means (M, K).

    The first of several equal arms counts as the best.
    """
    wins = np.zeros(samples.shape[1])
    for m in range(samples.shape[0]):
        best = -1
        for a in range(samples.shape[1]):
            if eligible[a] and (best < 0 or samples[m, a] > samples[m, best]):
                best = a
        wins[best] += 1.0
    return wins


@compiled
def find_rival(leader: int, means: np.ndarray, widths: np.ndarray, eligible: np.ndarray) -> int:
    """Return the index of the eligible arm that is hardest to tell from `leader`, or the leader if it is alone.

    It is the arm for which the difference of the means, relative to the widths of both arms, is smallest.
    """
    rival, least = leader, np.inf
    for b in range(means.size):
        if not eligible[b] or b == leader:
            continue
        gap, square, cost = max(means[leader] - means[b], 0.0), widths[leader] ** 2 + widths[b] ** 2, 0.0
        if gap > 0.0:
            cost = gap * gap / square if square > 0.0 else np.inf
        if rival == leader or cost < least:
            rival, least = b, cost
    return rival


@contract.action_probabilities.for_state(TopTwoRule)
def action_probabilities(
    rule: TopTwoRule, stats: ArmStatistics, scores: np.ndarray, eligible: np.ndarray, out: np.ndarray
) -> None:
    wins = count_leaders(stats.samples, eligible)
    for leader in range(out.size):
        if wins[leader] > 0.0:
            part = wins[leader] / stats.samples.shape[0]
            out[leader] += rule.share * part
            out[find_rival(leader, stats.means, stats.widths, eligible)] += (1.0 - rule.share) * part


@savable
@dataclass(frozen=True)
class TopTwo(Exploration):
    """Top-two Thompson sampling with known probabilities, to find the best arm with few decisions.

    The weights are drawn M times from the posterior. The best arm of a draw is its leader. The rival of a leader is the
    arm that is hardest to tell from it: the difference of their means is smallest, relative to the widths of both.

    Parameters
    ----------
    share : float, default 0.5
        Share of the decisions for the leader, from 0 to 1. The other decisions go to its rival.
    exploration : float or Theory or None, default None
        Multiplier beta of the spread of the draws, any finite number. `Theory` computes beta from the theorem of the
        estimator. By default it is 0.03, as in `Thompson`.
    draws : int, default 100
        Number M of draws, at least 1.
    uniform_share : float, default 0.01
        Share of all probability that is spread evenly over the K eligible arms, from 0 to 1.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    The rule explores more than `Thompson`: it always gives the rival a share of the decisions. Use it only until the
    best arm is found. `onepass.ABTest` uses it, and says when that is. Source: Russo (2020); Shang
    et al. (2020).
    """

    share: float = 0.5
    exploration: float | Theory | None = None
    draws: int = 100
    uniform_share: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", check.fraction("share", self.share))
        object.__setattr__(self, "exploration", check_optional_multiplier(self.exploration))
        object.__setattr__(self, "draws", check.integer("draws", self.draws, 1))
        object.__setattr__(self, "uniform_share", check_share(self.uniform_share))

    def rule(self) -> TopTwoRule:
        beta = SHARES if self.exploration is None else self.exploration
        return TopTwoRule(
            strength=make_strength(beta), draws=self.draws, share=self.share, uniform_share=self.uniform_share
        )
