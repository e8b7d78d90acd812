"""The game of a safe baseline: a data set as a bandit, beside a rule that was fitted to its first rows.

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
    """Rows (n, d), rewards (n, K) of all arms, and the indices (n,) of the rule's arms."""

    rows: np.ndarray
    rewards: np.ndarray
    rule: np.ndarray


class GivenArm(FieldArm):
    """Baseline whose arm is set before every decision."""

    def __init__(self) -> None:
        super().__init__("arm")
        self.arm = 0

    def arm_of(self, context: Any) -> int:
        return self.arm


def make_duel(name: str, order: int, rounds: int, *, turns: bool = False) -> Duel:
    """Return a game of at most `rounds` rows of a set in the order of a seed; if `turns`, arms change at TURN."""
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
    """Return the rewards (n,) of the rule."""
    rewards: np.ndarray = duel.rewards[np.arange(len(duel.rows)), duel.rule]
    return rewards


def play_free(duel: Duel, seed: int) -> np.ndarray:
    """Play `ContextualBandit` with default settings alone, and return its rewards (n,)."""
    arms = ContextualBandit(seed=seed).play(duel.rows[:, None, :], duel.rewards)
    rewards: np.ndarray = duel.rewards[np.arange(len(arms)), arms]
    return rewards


def play_guarded(duel: Duel, seed: int, by: str = "evidence") -> tuple[np.ndarray, np.ndarray]:
    """Play the same bandit beside the rule, and return its rewards (n,) and its shares of the decisions (n,).

    `by` says what opens its share, as in `Guarded`.
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
    """Return the least ratio, over all rounds, of the sum of rewards to that of the rule; inf if the rule earns 0."""
    sums = np.cumsum(rule)
    known = sums > 0.0
    return float((np.cumsum(rewards)[known] / sums[known]).min()) if known.any() else np.inf


def is_broken(rewards: np.ndarray, rule: np.ndarray) -> bool:
    """Return True if, after any round, less than 1 - LOSS of the sum of the rule's rewards was earned."""
    return bool((np.cumsum(rewards) < (1.0 - LOSS) * np.cumsum(rule) - 1e-9).any())
