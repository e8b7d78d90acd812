"""Players of the bake-off: bandits of onepass, tuned and untuned, and other packages if they are installed.

A player has `play(rows (n, d), rewards (n, K))`, which returns the arms of the next n rounds. It learns only the
rewards of its own arms. Where the rewards of other arms are not known, `choose(x)` returns an arm and `learn(x, arm,
reward)` learns its reward. Players whose `hindsight` is True get rows scaled by the standard deviations of the whole
data set, which are not known in practice. These rows are centred too, unless they are sparse. Linear models need the
scaling.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np

import onepass
from onepass.exploration.ucb import UCB
from onepass.lab.policy import Policy

SPARSE = 0.9  # rows with a larger share of zeros are not centred
CONSTANT = 1e-9  # a column is constant if its standard deviation is at most this share of the largest entry


def scale_columns(rows: np.ndarray) -> np.ndarray:
    """Return rows (n, d) with columns divided by their standard deviations, and centred unless most entries are 0."""
    deviation = rows.std(axis=0)
    unit = np.where(deviation > CONSTANT * np.abs(rows).max(axis=0), deviation, 1.0)
    return rows / unit if np.mean(rows == 0.0) > SPARSE else (rows - rows.mean(axis=0)) / unit


class PerArmPlayer:
    """Player that wraps a bandit of onepass with one model per arm, which sees the contexts as they are."""

    hindsight = False

    def __init__(self, bandit: Any, arms: int) -> None:
        self.bandit, self.arms = bandit, arms

    def play(self, rows: np.ndarray, rewards: np.ndarray) -> np.ndarray:
        return self.bandit.play(rows[:, None, :], rewards)

    def choose(self, x: np.ndarray) -> int:
        return self.bandit.decide(x, range(self.arms)).index

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        self.bandit.learn(x, reward, arm)


class ScaledPerArmPlayer(PerArmPlayer):
    """Player that wraps a bandit with one model per arm.

    It is given contexts whose columns are divided by their standard deviations. It scales the contexts to a length of
    about 1, and adds a constant feature.
    """

    hindsight = True

    def play(self, rows: np.ndarray, rewards: np.ndarray) -> np.ndarray:
        return super().play(self.features(rows), rewards)

    def choose(self, x: np.ndarray) -> int:
        return super().choose(self.features(x[None])[0])

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        super().learn(self.features(x[None])[0], arm, reward)

    @staticmethod
    def features(rows: np.ndarray) -> np.ndarray:
        return np.hstack([rows / np.sqrt(rows.shape[1]), np.ones((len(rows), 1))])


class SequentialPlayer(ABC):
    """Base class of players that, in each round, choose an arm and then learn its reward."""

    hindsight = True

    def play(self, rows: np.ndarray, rewards: np.ndarray) -> np.ndarray:
        arms = np.empty(len(rows), np.int64)
        for t, x in enumerate(rows):
            arms[t] = arm = self.choose(x)
            self.learn(x, arm, float(rewards[t, arm]))
        return arms

    @abstractmethod
    def choose(self, x: np.ndarray) -> int: ...

    @abstractmethod
    def learn(self, x: np.ndarray, arm: int, reward: float) -> None: ...


class VowpalWabbit(SequentialPlayer):
    """Player that wraps an exploring learner of Vowpal Wabbit at one learning rate, for rewards from about 0 to 1.

    `options` are command-line options, in which "{arms}" stands for the number of arms. Every feature gets a name,
    because hashes of bare numbers collide.
    """

    def __init__(self, options: str, arms: int, seed: int) -> None:
        from vowpalwabbit import Workspace

        self.separate = "adf" not in options
        options = options.format(arms=arms)
        self.model = Workspace(f"{options} --quiet -b 20 --random_seed {seed + 1}")
        self.rng, self.actions = np.random.default_rng([seed, 1]), [f"|a arm{a}" for a in range(arms)]
        self.said, self.p = "", np.empty(0)  # context and probabilities of the last choice

    def choose(self, x: np.ndarray) -> int:
        said = " ".join(f"f{j}:{x[j]:.6g}" for j in np.flatnonzero(x))
        self.said = f"| {said}" if self.separate else f"shared |s {said}"
        found = np.maximum(self.model.predict(self.said if self.separate else [self.said, *self.actions]), 0.0)
        self.p = found / found.sum()
        return int(self.rng.choice(len(found), p=self.p))

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """Learn the `reward` of the arm that was chosen last.

        The context and the probability of that choice are stored, so `x` is not used.
        """
        paid, actions = f"{1.0 - reward}:{self.p[arm]:.6f}", self.actions
        if self.separate:
            self.model.learn(f"{arm + 1}:{paid} {self.said}")
        else:
            self.model.learn([self.said, *actions[:arm], f"0:{paid} {actions[arm]}", *actions[arm + 1 :]])


class ModelPlayer(SequentialPlayer):
    """Player that wraps a model of another package with the methods `predict` and `partial_fit` of scikit-learn."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def choose(self, x: np.ndarray) -> int:
        return int(np.asarray(self.model.predict(x[None])).ravel()[0])

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        self.model.partial_fit(x[None], np.array([arm]), np.array([reward]))


class MABWiser(ModelPlayer):
    """Player that wraps LinUCB of the package MABWiser, whose confidence width has the multiplier `alpha`."""

    def __init__(self, arms: int, dim: int, alpha: float) -> None:
        from mabwiser.mab import MAB, LearningPolicy

        super().__init__(MAB(list(range(arms)), LearningPolicy.LinUCB(alpha=alpha, l2_lambda=1.0)))
        self.model.fit(list(range(arms)), [0.0] * arms, np.zeros((arms, dim)))

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        self.model.partial_fit([arm], [reward], x[None])


def contextual_bandit(*, dim: int, arms: int, seed: int, exploration: float | None = None) -> PerArmPlayer:
    """Make a player with `ContextualBandit`, for contexts (dim,) and `arms` arms.

    The bandit has its defaults, or explores by UCB with the multiplier `exploration`.
    """
    rule = None if exploration is None else UCB(exploration)
    return PerArmPlayer(onepass.ContextualBandit(seed=seed, exploration=rule), arms)


def scaled_linear_bandit(
    *, dim: int, arms: int, seed: int, recipe: str, exploration: float, reg: float, **sizes: Any
) -> ScaledPerArmPlayer:
    """Make a player with a linear bandit of onepass that has one model per arm.

    - recipe: name of the bandit in `onepass`.
    - exploration: multiplier of the confidence width.
    - reg: ridge penalty.
    - sizes: sizes of the bandit's sketch, for example `rank=16`; they are reduced to the number of features.
    """
    make, wide = getattr(onepass, recipe), {name: min(size, dim + 1) for name, size in sizes.items()}
    return ScaledPerArmPlayer(
        make(dim=dim + 1, model="disjoint", exploration=exploration, reg=reg, seed=seed, **wide), arms
    )


def vowpal_wabbit(*, dim: int, arms: int, seed: int, options: str, rate: float) -> VowpalWabbit:
    """Make a player with Vowpal Wabbit, for contexts (dim,) and `arms` arms.

    `options` are command-line options, and `rate` is the learning rate.
    """
    return VowpalWabbit(f"{options} -l {rate:g}", arms, seed)


def mabwiser(*, dim: int, arms: int, seed: int, alpha: float) -> MABWiser:
    """Make a player with LinUCB of the package MABWiser, whose confidence width has the multiplier `alpha`."""
    return MABWiser(arms, dim, alpha)


def contextualbandits(*, dim: int, arms: int, seed: int, alpha: float) -> ModelPlayer:
    """Make a player with LinUCB of the package contextualbandits, whose confidence width has the multiplier `alpha`."""
    from contextualbandits.online import LinUCB

    model = LinUCB(nchoices=arms, alpha=alpha, random_state=seed + 1)
    model.fit(np.zeros((arms, dim)), np.arange(arms), np.zeros(arms))
    return ModelPlayer(model)


OURS = (
    Policy("ContextualBandit", contextual_bandit, tuned=False),
    Policy("ContextualBandit argmax", contextual_bandit, {"exploration": 1.0}, tuned=False),
)
GRID = tuple(product((0.1, 0.5), (0.1, 1.0)))  # exploration, reg
RECIPES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("LinUCB", {}), ("LinTS", {}), ("CBSCFD", {"size": 16}), ("PSILinUCB", {"rank": 16}),
)  # fmt: skip
ADF = "--cb_explore_adf -q sa --ignore_linear s"
RULES = {
    "epsilon-greedy": "--cb_explore {arms} --epsilon 0.1",
    "SquareCB 10": f"{ADF} --squarecb --gamma_scale 10",
    "SquareCB 100": f"{ADF} --squarecb --gamma_scale 100",
    "SquareCB 1000": f"{ADF} --squarecb --gamma_scale 1000",
    "RegCB": f"{ADF} --regcb",
    "cover": "--cb_explore {arms} --cover 3",
}
RATES = (0.5, 2.0, 10.0)
ALPHAS = (0.1, 1.0)


def linear_policies() -> list[Policy]:
    """Return four linear bandits of onepass, each at every combination of two explorations and two ridge penalties."""
    return [
        Policy(
            f"{recipe} {exploration:g}/{reg:g}",
            scaled_linear_bandit,
            {"recipe": recipe, "exploration": exploration, "reg": reg, **sizes},
            recipe,
            tuned=False,
        )
        for recipe, sizes in RECIPES
        for exploration, reg in GRID
    ]


def peer_policies() -> Sequence[Policy]:
    """Return policies of Vowpal Wabbit, MABWiser and contextualbandits, as far as these packages are installed."""
    found = []
    if find_spec("vowpalwabbit") is not None:
        found += [
            Policy(f"VW {name} -l {rate:g}", vowpal_wabbit, {"options": rule, "rate": rate}, "VW", tuned=False)
            for name, rule in RULES.items()
            for rate in RATES
        ]
    for name, make in (("mabwiser", mabwiser), ("contextualbandits", contextualbandits)):
        if find_spec(name) is not None:
            found += [Policy(f"{name} {alpha:g}", make, {"alpha": alpha}, name, tuned=False) for alpha in ALPHAS]
    return found
