"""Inverse gap weighting.

An arm is plausible if its upper limit mean + beta width is at least the largest lower limit, max(mean - beta width).
Let K be the number of plausible arms, and b the arm with the largest mean. After t rewards the plausible arms have the
probabilities

    p_a = 1 / (K + gamma (mean_b - mean_a)) for a != b,   p_b = 1 - the rest,        b the largest mean
    gamma = scale sqrt(K t) / sigma by default,           sigma = the root mean square of reward - mean so far

All other arms have only their part of the uniform share, which is spread evenly over all eligible arms.

Guarantee: the regret is O(sqrt(K T Reg_sq)) if gamma is of the order of sqrt(K T / Reg_sq), where Reg_sq is the
estimator's regret in squared loss. Source: SquareCB (Foster and Rakhlin 2020) and FALCON (Simchi-Levi and Xu 2021). The
elimination by widths is that of LinUCB. The default gamma, in units of the residual, is our own.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from onepass.exploration import contract
from onepass.exploration.confidence_width import Strength, Theory, check_multiplier, make_strength
from onepass.exploration.contract import ArmStatistics
from onepass.exploration.exploration import Exploration, check_share
from onepass.exploration.inverse_gap_weights import fill_inverse_gap, gap_scale
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.registry import savable


class InverseGapRule(NamedTuple):
    """Inverse gap weighting as compiled code reads it.

    `gamma` is the weight of a gap between means; 0 stands for scale sqrt(P t) / sigma, with P arms that may be chosen,
    t rows learned and the root mean square sigma of prediction errors. If `plausible` is True, an arm is chosen only if
    its upper bound, mean + multiplier * width, is at least the largest lower bound; `strength` is the multiplier.
    `uniform_share` is the share of uniform choices.
    """

    gamma: float
    scale: float
    plausible: bool
    strength: Strength
    uniform_share: float


@contract.strength.for_state(InverseGapRule)
def strength(rule: InverseGapRule) -> Strength:
    return rule.strength


@contract.needs_widths.for_state(InverseGapRule)
def needs_widths(rule: InverseGapRule) -> bool:
    return rule.plausible


@contract.needs_reward_scale.for_state(InverseGapRule)
def needs_reward_scale(rule: InverseGapRule) -> bool:
    return True


@contract.needs_residual.for_state(InverseGapRule)
def needs_residual(rule: InverseGapRule) -> bool:
    return rule.gamma == 0.0


@contract.action_probabilities.for_state(InverseGapRule)
def action_probabilities(
    rule: InverseGapRule, stats: ArmStatistics, scores: np.ndarray, eligible: np.ndarray, out: np.ndarray
) -> None:
    best, lower, count = -1, -np.inf, 0
    for a in range(scores.size):
        if eligible[a]:
            lower = max(lower, scores[a] - stats.beta[a] * stats.widths[a])
            if best < 0 or scores[a] > scores[best]:
                best = a
    for a in range(scores.size):
        if eligible[a] and (not rule.plausible or a == best or scores[a] + stats.beta[a] * stats.widths[a] >= lower):
            out[a] = 1.0
            count += 1
    gamma = rule.gamma if rule.gamma > 0.0 else gap_scale(rule.scale, count, stats)
    fill_inverse_gap(scores, best, count, gamma, out)


@savable
@dataclass(frozen=True)
class InverseGap(Exploration):
    """Inverse gap weighting: the probability of an arm falls with the gap between its mean and the largest mean.

    A plausible arm other than the best one has the probability 1 / (P + gamma * gap), where P is the number of
    plausible arms. The best arm has the rest.

    Parameters
    ----------
    exploration : float or Theory or None, default 0.1
        Multiplier beta, at least 0. An arm is plausible if its mean + beta * width is at least the largest
        mean - beta * width of all arms. `Theory` computes beta from the theorem of the estimator. With None all arms
        are plausible, and no widths are computed.
    gamma : float, default None
        Weight of a gap, above 0, in units of 1 / reward. The default is scale * sqrt(P t) / sigma for P plausible arms
        and t learned rows. sigma is the root mean square of the prediction errors so far. Before the first row the
        default is 0, so all plausible arms are equally likely. If sigma is 0 later, it is infinite.
    scale : float, default 10.0
        Factor of the default gamma, above 0. It is used only if `gamma` is None.
    uniform_share : float, default 0.001
        Share of all probability that is spread evenly over the K eligible arms, from 0 to 1. Every eligible arm has at
        least the probability uniform_share / K.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """

    exploration: float | Theory | None = 0.1
    gamma: float | None = None
    scale: float = 10.0
    uniform_share: float = 0.001

    def __post_init__(self) -> None:
        if self.exploration is not None:
            object.__setattr__(self, "exploration", check_multiplier("exploration", self.exploration))
            if not isinstance(self.exploration, Theory) and self.exploration < 0.0:
                raise ValueError(f"exploration must be at least 0, got {quote(self.exploration)}; None for all arms")
        if self.gamma is not None:
            object.__setattr__(self, "gamma", check.positive("gamma", self.gamma))
        object.__setattr__(self, "scale", check.positive("scale", self.scale))
        object.__setattr__(self, "uniform_share", check_share(self.uniform_share))

    def rule(self) -> InverseGapRule:
        return InverseGapRule(
            gamma=self.gamma or 0.0,
            scale=self.scale,
            plausible=self.exploration is not None,
            strength=make_strength(0.0 if self.exploration is None else self.exploration),
            uniform_share=self.uniform_share,
        )
