"""Exploration of kernel models, in standard deviations of the posterior: sqrt(reg) widths, whatever reg is fitted."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from onepass.exploration.exploration import Exploration
from onepass.exploration.greedy import EpsilonGreedy
from onepass.exploration.rule import Rule, make_rule
from onepass.exploration.thompson import DEVIATIONS, SingleDrawThompson, Thompson
from onepass.exploration.ucb import UCB
from onepass.foundation import check
from onepass.foundation.registry import savable


@savable
@dataclass(frozen=True)
class PosteriorUCB(Exploration):
    """The arm with the largest mean + deviations x standard deviation of the posterior: of kernel models alone.

    deviations: any finite number (default 2.0). ValueError for others.
    """

    deviations: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "deviations", check.real("deviations", self.deviations))

    def rule(self) -> Any:
        return UCB(self.deviations).rule()


@cache
def uniform_rule() -> Rule:
    """Return the rule while kernel and reg are not chosen."""
    return make_rule(EpsilonGreedy(1.0))


@cache
def default_rule() -> Rule:
    """Return the rule where none is given."""
    return make_rule(PosteriorUCB())


def exploration_multiplier(rule: Rule, reg: float, initial_reg: float) -> float:
    """Return beta of widths and draws, at a reg that was `begun`; with a `Theory`: of its radius.

    A number means as many standard deviations as it did in the beginning.
    """
    exploration = rule.exploration
    if isinstance(exploration, PosteriorUCB):
        return exploration.deviations * reg**0.5
    if isinstance(exploration, Thompson | SingleDrawThompson) and exploration.exploration is None:
        return DEVIATIONS * reg**0.5
    return rule.strength.scale * (1.0 if exploration.theory else (reg / initial_reg) ** 0.5)
