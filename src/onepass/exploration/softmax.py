"""Boltzmann exploration.

    p_a = exp((mean_a - max mean) / T) / sum,        T = scale sqrt(K / t) sigma by default

sigma: the root mean square of reward - mean so far; t rows were learned. A constant T never stops exploring: the
default falls like the standard error of a mean.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from onepass.exploration import contract
from onepass.exploration.contract import ArmStatistics
from onepass.exploration.exploration import Exploration, check_share
from onepass.foundation import check
from onepass.foundation.registry import savable


class SoftmaxRule(NamedTuple):
    """temperature T in units of rewards, 0: scale sqrt(K / t) sigma; uniform_share: the share spread over all arms."""

    temperature: float
    scale: float
    uniform_share: float


@contract.needs_reward_scale.for_state(SoftmaxRule)
def needs_reward_scale(rule: SoftmaxRule) -> bool:
    return True


@contract.needs_residual.for_state(SoftmaxRule)
def needs_residual(rule: SoftmaxRule) -> bool:
    return rule.temperature == 0.0


@contract.action_probabilities.for_state(SoftmaxRule)
def action_probabilities(
    rule: SoftmaxRule, stats: ArmStatistics, scores: np.ndarray, eligible: np.ndarray, out: np.ndarray
) -> None:
    best, count = -np.inf, 0
    for a in range(scores.size):
        if eligible[a]:
            best, count = max(best, scores[a]), count + 1
    temperature = rule.temperature
    if temperature == 0.0:
        temperature = rule.scale * stats.residual * np.sqrt(count / max(stats.rounds, 1))
        if stats.residual == 0.0 and stats.rounds == 0:
            temperature = np.inf
    total = 0.0
    for a in range(scores.size):
        if eligible[a]:
            gap = best - scores[a]
            out[a] = 1.0 if gap == 0.0 else np.exp(-gap / temperature) if temperature > 0.0 else 0.0
    for a in range(scores.size):
        total += out[a]
    for a in range(scores.size):
        out[a] /= total


@savable
@dataclass(frozen=True)
class Softmax(Exploration):
    """An arm with probability in proportion to exp(mean / temperature).

    temperature: T in units of rewards, above 0; None (the default): scale sqrt(K / t) sigma, which falls as rows are
    learned, sigma the running residual. scale: above 0 (default 0.1), used where temperature is None.
    uniform_share: every eligible arm has at least the probability uniform_share / K; from 0 to 1 (default 0.001).
    ValueError for values out of range.
    """

    temperature: float | None = None
    scale: float = 0.1
    uniform_share: float = 0.001

    def __post_init__(self) -> None:
        if self.temperature is not None:
            object.__setattr__(self, "temperature", check.positive("temperature", self.temperature))
        object.__setattr__(self, "scale", check.positive("scale", self.scale))
        object.__setattr__(self, "uniform_share", check_share(self.uniform_share))

    def rule(self) -> SoftmaxRule:
        return SoftmaxRule(temperature=self.temperature or 0.0, scale=self.scale, uniform_share=self.uniform_share)
