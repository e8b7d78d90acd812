"""Thompson sampling with a random forest for each arm, a rival without tuning that can represent jumps of rewards."""

from typing import Any

import numpy as np

from onepass.lab.bakeoff.policies import SequentialPlayer
from onepass.lab.policy import Policy

FEW_ROWS = 5  # an arm with fewer rows is judged by its mean alone


class ArmForest:
    """Random forest of one arm, which predicts the reward of the arm from a context; it stores all learned rows.

    It has `trees` regression trees. A tree is fitted to a bootstrap sample of the rows when it is first used. All trees
    are discarded each time that the number of rows has grown by the factor 1 + `growth`.
    """

    def __init__(self, trees: int, growth: float, rng: np.random.Generator) -> None:
        self.growth, self.rng = growth, rng
        self.rows: list[np.ndarray] = []
        self.rewards: list[float] = []
        self.trees: list[Any] = [None] * trees
        self.fitted = 0  # number of rows when the forest was last thrown away

    def add(self, x: np.ndarray, reward: float) -> None:
        self.rows.append(x)
        self.rewards.append(reward)
        if len(self.rows) >= (1.0 + self.growth) * self.fitted:
            self.trees = [None] * len(self.trees)
            self.fitted = len(self.rows)

    def predict(self, x: np.ndarray, n_trees: int) -> float:
        """Return the mean prediction of `n_trees` trees, chosen at random, for a float32 row x of shape (1, d)."""
        places = self.rng.choice(len(self.trees), n_trees, replace=False)
        return sum(float(self.tree(place).predict(x)[0, 0]) for place in places) / n_trees

    def tree(self, place: int) -> Any:
        if self.trees[place] is None:
            from sklearn.tree import DecisionTreeRegressor

            n = self.fitted
            tree = DecisionTreeRegressor(
                min_samples_leaf=2, max_features=0.5, random_state=int(self.rng.integers(2**31 - 1))
            )
            weights = np.bincount(self.rng.integers(n, size=n), minlength=n).astype(np.float64)
            seen = weights > 0.0
            targets = np.array(self.rewards[:n])[seen, None]
            tree.fit(np.array(self.rows[:n])[seen], targets, weights[seen], check_input=False)
            self.trees[place] = tree.tree_
        return self.trees[place]


class Forest(SequentialPlayer):
    """Player with one random forest per arm, which chooses the arm whose forest predicts the largest reward.

    A prediction is the mean of `drawn` of the `trees` trees of a forest, chosen at random; `growth` is passed to
    `ArmForest`. Every arm is played once at the beginning. For an arm with n < 5 rows the prediction is drawn from a
    normal distribution around its mean reward, with the standard deviation of all rewards divided by sqrt(n).
    """

    hindsight = False

    def __init__(self, arms: int, seed: int, trees: int = 40, drawn: int = 10, growth: float = 0.12) -> None:
        self.rng, self.drawn = np.random.default_rng([seed, 2]), drawn
        self.forests = [ArmForest(trees, growth, self.rng) for _ in range(arms)]
        self.unplayed = list(self.rng.permutation(arms))
        self.paid: list[float] = []

    def choose(self, x: np.ndarray) -> int:
        if self.unplayed:
            return int(self.unplayed[-1])
        row, deviation = x[None].astype(np.float32), float(np.std(self.paid))
        return int(np.argmax([self.value(forest, row, deviation) for forest in self.forests]))

    def value(self, forest: ArmForest, row: np.ndarray, deviation: float) -> float:
        n = len(forest.rows)
        if n < FEW_ROWS:
            return sum(forest.rewards) / n + deviation * float(self.rng.standard_normal()) / np.sqrt(n)
        return forest.predict(row, self.drawn)

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        if self.unplayed and self.unplayed[-1] == arm:
            self.unplayed.pop()
        self.forests[arm].add(x.astype(np.float32), reward)
        self.paid.append(reward)


def forest(*, dim: int, arms: int, seed: int, trees: int, drawn: int, growth: float) -> Forest:
    """Make a player with one random forest per arm, for contexts (dim,) and `arms` arms.

    `trees` is the number of trees per forest, `drawn` the number of trees averaged for a prediction, and `growth` the
    growth of the number of rows after which trees are fitted again.
    """
    return Forest(arms, seed, trees, drawn, growth)


FOREST = Policy("forest", forest, {"trees": 40, "drawn": 10, "growth": 0.12}, tuned=False)
