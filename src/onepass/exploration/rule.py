"""An exploration rule in the form that bandits hold: compiled, with the statistics it needs from a model."""

from collections.abc import Callable
from typing import Any, NamedTuple

from onepass.exploration.confidence_width import Strength
from onepass.exploration.contract import draws, needs_residual, needs_reward_scale, needs_widths, strength
from onepass.exploration.exploration import Exploration
from onepass.exploration.ucb import UCB
from onepass.foundation import check


class Rule(NamedTuple):
    """Exploration rule in the form that bandits hold: compiled, and with the statistics it needs from a model.

    Parameters
    ----------
    exploration : Exploration
        The rule as the user gave it.
    rule : NamedTuple
        The rule as compiled code reads it.
    text : str
        The rule as a log record names it.
    draws, pairs : int
        Number of draws of the parameter that the rule uses, and of pairs of them.
    widths, residual : bool
        True if the rule uses confidence widths, or the root mean square of prediction errors.
    rewards : bool
        True if means must be expected rewards, not scores such as log odds.
    strength : Strength
        Multiplier of widths and draws.
    code : dict
        Code compiled for this rule and plain statistics of a model (slots.py).
    """

    exploration: Exploration
    rule: Any
    text: str
    draws: int
    pairs: int
    widths: bool
    residual: bool
    rewards: bool
    strength: Strength
    code: dict[Any, Callable[..., Any]]

    @property
    def is_random(self) -> bool:
        """True if decisions depend on draws, on a uniform share or on residuals, not only on means and widths."""
        return bool(self.pairs or self.rule.uniform_share > 0.0 or self.residual)


def make_rule(exploration: Exploration | None) -> Rule:
    """Make the compiled rule of an exploration; None stands for `UCB()`."""
    exploration = UCB() if exploration is None else exploration
    if not isinstance(exploration, Exploration):
        raise ValueError(
            "exploration must be UCB, Thompson, InverseGap, Softmax, Greedy or EpsilonGreedy, got "
            f"{check.quote(exploration)}"
        )
    rule = exploration.rule()
    widths, residual, rewards = (bool(asks(rule)) for asks in (needs_widths, needs_residual, needs_reward_scale))
    count, text = int(draws(rule)), repr(exploration)
    return Rule(exploration, rule, text, count, (count + 1) // 2, widths, residual, rewards, strength(rule), {})
