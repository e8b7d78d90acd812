"""Every rule keeps the contract that third parties are held to."""

from dataclasses import dataclass
from typing import NamedTuple

import pytest

import onepass as op
from onepass.exploration import contract
from onepass.testing import check_exploration

RULES = {
    "UCB": op.UCB(0.3),
    "UCB uniform share": op.UCB(0.3, uniform_share=0.2),
    "Greedy": op.Greedy(),
    "EpsilonGreedy": op.EpsilonGreedy(0.25),
    "Softmax": op.Softmax(),
    "Softmax T": op.Softmax(0.7, uniform_share=0.0),
    "InverseGap": op.InverseGap(),
    "InverseGap all": op.InverseGap(None, gamma=3.0, uniform_share=0.1),
    "OptimisticGap uniform share": op.OptimisticGap(0.3, scale=2.0, uniform_share=0.1),
    "Thompson": op.Thompson(0.5),
    "Thompson 1": op.Thompson(0.5, draws=1, uniform_share=0.1),
    "SingleDrawThompson": op.SingleDrawThompson(0.5),
    "TopTwo": op.TopTwo(0.7, exploration=0.5),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_keep_the_shipped_contract(name):
    check_exploration(lambda: RULES[name], n_draws=500)


class TiltedRule(NamedTuple):
    uniform_share: float


@contract.action_probabilities.for_state(TiltedRule)
def weigh_tilted(rule, seen, scores, among, chances):
    chances[0] = 0.5
    for a in range(scores.size):
        chances[a] += 0.5 / scores.size


@dataclass(frozen=True)
class Tilted(op.extend.Exploration):
    """Half of all probability on the first arm, eligible or not."""

    uniform_share: float = 0.0

    def rule(self):
        return TiltedRule(uniform_share=self.uniform_share)


class HastyRule(NamedTuple):
    uniform_share: float


@contract.action_probabilities.for_state(HastyRule)
def weigh_hasty(rule, seen, scores, among, chances):
    for a in range(scores.size):
        if among[a]:
            chances[a] = 1.0 / scores.size


@dataclass(frozen=True)
class Hasty(op.extend.Exploration):
    """Equal shares of all arms, of which those that are not eligible are lost."""

    uniform_share: float = 0.0

    def rule(self):
        return HastyRule(uniform_share=self.uniform_share)


@pytest.mark.parametrize(("wrong", "why"), [(Tilted, "not eligible"), (Hasty, "add up to 1")])
def test_rules_that_break_it_are_found(wrong, why):
    with pytest.raises(AssertionError, match=why):
        check_exploration(wrong, n_draws=50)
