"""The largest mean, with or without a share of arms at random.

p = 1 - epsilon on the largest mean, + epsilon / K on every arm
"""

from dataclasses import dataclass
from typing import NamedTuple

from onepass.exploration.exploration import Exploration, check_share
from onepass.foundation import check
from onepass.foundation.registry import savable


class GreedyRule(NamedTuple):
    """uniform_share: the share that is spread over all arms."""

    uniform_share: float


@savable
@dataclass(frozen=True)
class Greedy(Exploration):
    """The largest mean.

    uniform_share: every eligible arm has at least the probability uniform_share / K; from 0 to 1 (default 0.0).
    ValueError outside.
    """

    uniform_share: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "uniform_share", check_share(self.uniform_share))

    def rule(self) -> GreedyRule:
        return GreedyRule(uniform_share=self.uniform_share)


@savable
@dataclass(frozen=True)
class EpsilonGreedy(Exploration):
    """The largest mean; with probability epsilon an eligible arm uniformly at random.

    epsilon: from 0 to 1 (default 0.1). ValueError outside.
    """

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check.fraction("epsilon", self.epsilon))

    def rule(self) -> GreedyRule:
        return GreedyRule(uniform_share=self.epsilon)
