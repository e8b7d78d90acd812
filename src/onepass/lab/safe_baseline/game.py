"""Data sets as bandits, beside a baseline rule that was fitted to the first rows.

The rule is a logistic regression on FITTED = 100 rows with their classes. The game is about the other rows. The reward
is 1 for the right class, else 0. In a game with a turn, every arm earns what another one earned before, from round TURN
= 500 on. The rule knows of the turn, so it stays as good as before; the bandit does not.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass import ContextualBandit
from onepass.evaluation import FieldArm, Guarded
from onepass.lab.bakeoff.datasets import first_rounds

FITTED = 100  # rows with their classes, for the rule
TURN = 500  # round from which arms are permuted
LOSS = 0.05


class Duel(NamedTuple):
    """Bandit problem beside a baseline rule.

    `rows` (n, d) are the contexts, `rewards` (n, K) the rewards of all arms, and `rule` (n,) the arms that the baseline
    rule chooses.
    """

    rows: np.ndarray
    rewards: np.ndarray
    rule: np.ndarray


class GivenArm(FieldArm):
    """Baseline whose arm is set from outside before every decision, in the attribute `arm`."""

    def __init__(self) -> None:
        super().__init__("arm")
        self.arm = 0

    def arm_of(self, context: Any) -> int:
        return self.arm


def make_duel(name: str, order: int, rounds: int, *, turns: bool = False) -> Duel:
    """Return a bandit problem with at most `rounds` rows of the data set `name`, and the arms of a baseline rule.

    The rule is a logistic regression on the first 100 rows. `order` is the seed of the order of the rows. If `turns`
    is True, the meaning of the arms is permuted from round 500 on.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = first_rounds(name, order, FITTED + rounds)
    count = max(data.classes, 2)
    rule = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
    rule.fit(data.rows[:FITTED], data.labels[:FITTED])
    rows, labels = data.rows[FITTED:], data.labels[FITTED:]
    named = np.asarray(rule.predict(rows), np.int64)
    if turns:
        late = np.arange(len(rows)) >= TURN
        labels, named = np.where(late, (labels + 1) % count, labels), np.where(late, (named + 1) % count, named)
    return Duel(rows, (labels[:, None] == np.arange(count)).astype(np.float64), named)


def rule_rewards(duel: Duel) -> np.ndarray:
    """Return the rewards (n,) that the baseline rule of `duel` earns."""
    rewards: np.ndarray = duel.rewards[np.arange(len(duel.rows)), duel.rule]
    return rewards


def play_free(duel: Duel, seed: int) -> np.ndarray:
    """Play `ContextualBandit` on the problem `duel` without the baseline rule, and return its rewards (n,)."""
    arms = ContextualBandit(seed=seed).play(duel.rows[:, None, :], duel.rewards)
    rewards: np.ndarray = duel.rewards[np.arange(len(arms)), arms]
    return rewards


def play_guarded(duel: Duel, seed: int, by: str = "evidence") -> tuple[np.ndarray, np.ndarray]:
    """Play `ContextualBandit` guarded by the baseline rule of `duel`, and return rewards (n,) and shares (n,).

    A share is the probability with which the bandit and not the rule decides. `by` is an argument of `Guarded`:
    "evidence" or "model", which determines how the share grows.
    """
    given, arms = GivenArm(), list(range(duel.rewards.shape[1]))
    guarded = Guarded(ContextualBandit(seed=seed), given, loss=LOSS, by=by)
    rewards, shares = np.empty(len(duel.rows)), np.empty(len(duel.rows))
    for t, row in enumerate(duel.rows):
        given.arm = int(duel.rule[t])
        decision = guarded.decide(row, arms, id=f"{t}")
        rewards[t] = duel.rewards[t, decision.index]
        assert decision.mixture is not None
        shares[t] = decision.mixture["share"]
        guarded.learn(decision, float(rewards[t]))
    return rewards, shares


def least_ratio(rewards: np.ndarray, rule: np.ndarray) -> float:
    """Return the smallest ratio, over all rounds, of the player's sum of rewards so far to the rule's sum.

    `rewards` (n,) are the player's rewards, and `rule` (n,) the rule's rewards. The result is infinity if the rule
    earns 0.
    """
    sums = np.cumsum(rule)
    known = sums > 0.0
    return float((np.cumsum(rewards)[known] / sums[known]).min()) if known.any() else np.inf


def is_broken(rewards: np.ndarray, rule: np.ndarray) -> bool:
    """Return True if, after any round, the player's sum of rewards is below 0.95 times the rule's sum.

    `rewards` (n,) are the player's rewards, and `rule` (n,) the rule's rewards.
    """
    return bool((np.cumsum(rewards) < (1.0 - LOSS) * np.cumsum(rule) - 1e-9).any())
