"""Exploration rules for kernel models, whose multipliers count in posterior standard deviations, sqrt(reg) width."""

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
    """Rule that plays the arm with the largest mean + deviations * posterior standard deviation.

    It is for kernel models only. `deviations` is any finite number (default 2.0). Raises ValueError for others.
    """

    deviations: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "deviations", check.real("deviations", self.deviations))

    def rule(self) -> Any:
        return UCB(self.deviations).rule()


@cache
def uniform_rule() -> Rule:
    """Return the rule that a kernel bandit uses before kernel and reg are chosen: all arms are equally likely."""
    return make_rule(EpsilonGreedy(1.0))


@cache
def default_rule() -> Rule:
    """Return the rule that a kernel bandit uses if the user gives none."""
    return make_rule(PosteriorUCB())


def exploration_multiplier(rule: Rule, reg: float, initial_reg: float) -> float:
    """Return the multiplier beta of widths and draws for an exploration rule, at the present noise variance `reg`.

    The noise variance was `initial_reg` at first. A number as multiplier keeps its meaning in posterior standard
    deviations; with a `Theory`, beta is the factor of the confidence radius.
    """
    exploration = rule.exploration
    if isinstance(exploration, PosteriorUCB):
        return exploration.deviations * reg**0.5
    if isinstance(exploration, Thompson | SingleDrawThompson) and exploration.exploration is None:
        return DEVIATIONS * reg**0.5
    return rule.strength.scale * (1.0 if exploration.theory else (reg / initial_reg) ** 0.5)
