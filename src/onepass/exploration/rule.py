"""A rule of exploration as bandits hold it: compiled, with what it asks of a model."""

from collections.abc import Callable
from typing import Any, NamedTuple

from onepass.exploration.confidence_width import Strength
from onepass.exploration.contract import draws, needs_residual, needs_reward_scale, needs_widths, strength
from onepass.exploration.exploration import Exploration
from onepass.exploration.ucb import UCB
from onepass.foundation import check


class Rule(NamedTuple):
    """How a bandit explores: as it was given, as compiled code reads it, as a record names it; pairs: of draws that it
    counts; widths, residual: whether it looks at them; rewards: whether means must be expected rewards for it;
    strength: of widths and draws; code: compiled for this rule and statistics of a model (slots.py)."""

    exploration: Exploration
    rule: Any
    text: str
    pairs: int
    widths: bool
    residual: bool
    rewards: bool
    strength: Strength
    code: dict[Any, Callable]

    @property
    def by_chance(self) -> bool:
        """True if decisions depend on more than means and widths: on draws, on a uniform_share, or on residuals."""
        return bool(self.pairs or self.rule.uniform_share > 0.0 or self.residual)


def make_rule(exploration: Exploration | None) -> Rule:
    """The same from what a user gives, None: `UCB()`; ValueError for what is no exploration."""
    exploration = UCB() if exploration is None else exploration
    if not isinstance(exploration, Exploration):
        raise ValueError(
            "exploration must be UCB, Thompson, InverseGap, Softmax, Greedy or EpsilonGreedy, got "
            f"{check.quote(exploration)}"
        )
    rule = exploration.rule()
    widths, residual, rewards = (bool(asks(rule)) for asks in (needs_widths, needs_residual, needs_reward_scale))
    pairs, text = (draws(rule) + 1) // 2, repr(exploration)
    return Rule(exploration, rule, text, pairs, widths, residual, rewards, strength(rule), {})
