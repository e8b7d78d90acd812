"""Greedy choice of the arm with the largest mean, with or without a share of random arms.

The probability is 1 - epsilon + epsilon / K for the arm with the largest mean, and epsilon / K for every other arm.
"""

from dataclasses import dataclass
from typing import NamedTuple

from onepass.exploration.exploration import Exploration, check_share
from onepass.foundation import check
from onepass.foundation.registry import savable


class GreedyRule(NamedTuple):
    """Greedy rule in the form for compiled code; `uniform_share` is the share of random choices."""

    uniform_share: float


@savable
@dataclass(frozen=True)
class Greedy(Exploration):
    """Play the arm with the largest mean.

    Parameters
    ----------
    uniform_share : float, default 0.0
        Share of all probability that is spread evenly over the K eligible arms, from 0 to 1. Every eligible arm has at
        least the probability uniform_share / K.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """

    uniform_share: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "uniform_share", check_share(self.uniform_share))

    def rule(self) -> GreedyRule:
        return GreedyRule(uniform_share=self.uniform_share)


@savable
@dataclass(frozen=True)
class EpsilonGreedy(Exploration):
    """Play the arm with the largest mean, or with probability epsilon an eligible arm uniformly at random.

    Parameters
    ----------
    epsilon : float, default 0.1
        Probability of a uniformly random arm, from 0 to 1.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check.fraction("epsilon", self.epsilon))

    def rule(self) -> GreedyRule:
        return GreedyRule(uniform_share=self.epsilon)
