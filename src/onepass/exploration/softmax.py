"""Boltzmann exploration.

K arms have the probabilities

    p_a = exp((mean_a - max mean) / T) / sum,        T = scale sqrt(K / t) sigma by default

Here sigma is the root mean square of reward - mean so far, and t is the number of rows learned. A constant temperature
never stops exploring. The default temperature falls like the standard error of a mean.
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
    """Boltzmann exploration as compiled code reads it.

    Temperature 0 stands for scale sqrt(K / t) sigma, with K eligible arms, t rows learned and the root mean square
    sigma of prediction errors. `uniform_share` is the share of uniform choices.
    """

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
    """Boltzmann exploration: the probability of an arm is proportional to exp(mean / temperature).

    Parameters
    ----------
    temperature : float, default None
        Temperature in units of rewards, above 0. The default is scale * sqrt(K / t) * sigma for K arms and t learned
        rows, so it falls as rows are learned. sigma is the root mean square of the prediction errors so far.
    scale : float, default 0.1
        Factor of the default temperature, above 0. It is used only if `temperature` is None.
    uniform_share : float, default 0.001
        Share of all probability that is spread evenly over the K eligible arms, from 0 to 1. Every eligible arm has at
        least the probability uniform_share / K.

    Raises
    ------
    ValueError
        If an argument is out of its range.
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
