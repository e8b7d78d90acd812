"""Players of noisy worlds: bandits of onepass, and rivals whose settings are tuned in hindsight.

Players with `hindsight` get standardized rows and rewards in fixed units: Vowpal Wabbit in [0, 1], linear bandits with
mean 0 and standard deviation 1. Both kinds of rewards are clipped, so outliers do not harm these players. All other
players get rows and rewards as they are.
"""

from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np

import onepass
from onepass.lab.bakeoff.forest import FOREST as FORESTS
from onepass.lab.bakeoff.forest import Forest
from onepass.lab.bakeoff.policies import (
    RATES,
    RULES,
    PerArmPlayer,
    SequentialPlayer,
    scaled_linear_bandit,
    vowpal_wabbit,
)
from onepass.lab.policy import Policy

OURS, GREEDY_OURS = "ContextualBandit", "ContextualBandit greedy"
UCB_FREE, THOMPSON_FREE, GREEDY, LINEAR, FOREST, WABBIT, GITTINS = (
    "context-free UCB", "context-free Thompson", "greedy linear", "tuned linear", "forest", "VW", "gittins",
)  # fmt: skip


class Player(Protocol):
    """Protocol of a player of bandit problems, which chooses arms and learns rewards."""

    @property
    def hindsight(self) -> bool: ...
    def play(self, rows: np.ndarray, rewards: np.ndarray) -> np.ndarray: ...
    def choose(self, x: np.ndarray) -> int: ...
    def learn(self, x: np.ndarray, arm: int, reward: float) -> None: ...


class Units(NamedTuple):
    """Statistics of a game's rewards, for players that may know them in advance.

    `low` and `high` are the ends of their range, `mean` and `deviation` their mean and standard deviation.
    """

    low: float
    high: float
    mean: float
    deviation: float


class Rescaled:
    """Player that lets another player learn rescaled rewards, (reward - offset) / unit.

    Before that, rewards are clipped to a range three times as long as the range of the game's rewards.
    """

    hindsight = True

    def __init__(self, player: Player, units: Units, offset: float, unit: float) -> None:
        span = units.high - units.low
        self.player, self.limits = player, (units.low - span, units.high + span)
        self.offset, self.unit = offset, unit

    def scale(self, rewards: np.ndarray) -> np.ndarray:
        return (np.clip(rewards, *self.limits) - self.offset) / self.unit

    def play(self, rows: np.ndarray, rewards: np.ndarray) -> np.ndarray:
        return self.player.play(rows, self.scale(rewards))

    def choose(self, x: np.ndarray) -> int:
        return self.player.choose(x)

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        self.player.learn(x, arm, float(self.scale(np.array(reward))))


class ContextFree(SequentialPlayer):
    """Player that ignores contexts: UCB with multiplier `width`, or Thompson sampling if `width` is None.

    Each of the K arms is played once first. The standard deviation s of rewards around the mean of their arm is
    estimated from all arms together. In round t, UCB plays the arm with the largest mean + width s sqrt(log(t) / n),
    where n is the number of plays of the arm. Thompson sampling plays the arm with the largest draw of mean + s T /
    sqrt(n), where T has Student's distribution with t - K degrees of freedom.
    """

    hindsight = False

    def __init__(self, arms: int, seed: int, width: float | None) -> None:
        self.rng, self.width = np.random.default_rng([seed, 3]), width
        self.counts, self.means, self.squares = np.zeros(arms), np.zeros(arms), 0.0

    def choose(self, x: np.ndarray) -> int:
        tie = self.rng.uniform(size=len(self.counts))
        if (self.counts == 0).any():
            return int(np.argmax(np.where(self.counts == 0, 1.0 + tie, tie)))
        t, freedom = self.counts.sum(), max(self.counts.sum() - len(self.counts), 1.0)
        s = np.sqrt(self.squares / freedom)
        spread = (
            self.rng.standard_t(freedom, len(self.counts)) if self.width is None else self.width * np.sqrt(np.log(t))
        )
        return int(np.lexsort((tie, self.means + s * spread / np.sqrt(self.counts)))[-1])

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        self.counts[arm] += 1.0
        error = reward - self.means[arm]
        self.means[arm] += error / self.counts[arm]
        self.squares += error * (reward - self.means[arm])


class Gittins(SequentialPlayer):
    """Player that wraps the bandit of the package `gittins` at its defaults."""

    hindsight = True

    def __init__(self, arms: int, seed: int) -> None:
        import gittins

        self.engine, self.state = gittins, gittins.create(bits=16, horizon=1e9)
        self.candidates: list[tuple[str, dict[str, float]]] = [(f"arm{a}", {}) for a in range(arms)]
        self.salt, self.passed, self.decision = f"seed {seed}", 0, None

    def choose(self, x: np.ndarray) -> int:
        self.passed += 1
        context = {f"f{j}": float(value) for j, value in enumerate(x)}
        record = self.engine.decide(self.state, context, self.candidates, float(self.passed), self.salt)
        self.decision = record.decision_id
        return int(record.chosen)

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """Learn the reward of the arm that was chosen last; `x` and `arm` are not used, as the choice is stored."""
        self.engine.learn(self.state, self.decision, reward, float(self.passed))


def contextual_bandit(*, dim: int, arms: int, seed: int, units: Units, greedy: bool = False) -> PerArmPlayer:
    """Return a player with `ContextualBandit` at its defaults; if `greedy` is True, it does not explore.

    `arms` is the number of arms. `dim` and `units`, which all makers of players get, are not used.
    """
    rule = onepass.Greedy() if greedy else None
    return PerArmPlayer(onepass.ContextualBandit(seed=seed, exploration=rule), arms)


def context_free(*, dim: int, arms: int, seed: int, units: Units, width: float | None = None) -> ContextFree:
    """Return a player that ignores contexts: UCB with multiplier `width`, or Thompson sampling if `width` is None.

    `arms` is the number of arms. `dim` and `units`, which all makers of players get, are not used.
    """
    return ContextFree(arms, seed, width)


def linear_bandit(
    *, dim: int, arms: int, seed: int, units: Units, recipe: str, exploration: float, reg: float
) -> Rescaled:
    """Return a player with a linear bandit of onepass, which gets standardized rewards.

    - recipe: name of the bandit in `onepass`.
    - exploration: multiplier of the width.
    - reg: ridge penalty.
    - units: mean and standard deviation of the rewards.
    """
    player = scaled_linear_bandit(dim=dim, arms=arms, seed=seed, recipe=recipe, exploration=exploration, reg=reg)
    return Rescaled(player, units, units.mean, units.deviation)


def ranged_vowpal_wabbit(*, dim: int, arms: int, seed: int, units: Units, options: str, rate: float) -> Rescaled:
    """Return a player with Vowpal Wabbit, which gets rewards scaled to [0, 1].

    `options` are its command-line options, and `rate` is its learning rate. `units` has the range of rewards.
    """
    player = vowpal_wabbit(dim=dim, arms=arms, seed=seed, options=options, rate=rate)
    return Rescaled(player, units, units.low, units.high - units.low)


def raw_forest(*, dim: int, arms: int, seed: int, units: Units, **sizes: Any) -> Forest:
    """Return a player with one random forest per arm, which gets rewards unscaled; `sizes` are options of `Forest`.

    `dim` and `units`, which all makers of players get, are not used.
    """
    return Forest(arms, seed, **sizes)


def ranged_gittins(*, dim: int, arms: int, seed: int, units: Units) -> Rescaled:
    """Return a player with the bandit of the package `gittins`, which gets rewards scaled to [0, 1].

    `arms` is the number of arms, and `units` has the range of rewards. `dim` is not used.
    """
    return Rescaled(Gittins(arms, seed), units, units.low, units.high - units.low)


def linear_policy(group: str, recipe: str, exploration: float, reg: float) -> Policy:
    """Return the policy that plays the linear bandit `recipe` with one exploration and ridge penalty.

    `group` is the name of the policy's group, `exploration` the multiplier of the width, and `reg` the ridge penalty.
    """
    params = {"recipe": recipe, "exploration": exploration, "reg": reg}
    name = f"{recipe} {exploration:g}/{reg:g}" if exploration else f"{group} {reg:g}"
    return Policy(name, linear_bandit, params, group, tuned=False)


REGS = (1.0, 10.0)
WIDTHS = (0.3, 1.0)


def policies() -> tuple[Policy, ...]:
    """Return the policies of all players; players of other packages are included only if the package is installed."""
    found = [
        Policy(OURS, contextual_bandit, tuned=False),
        Policy(GREEDY_OURS, contextual_bandit, {"greedy": True}, tuned=False),
        *(Policy(f"{UCB_FREE} {at:g}", context_free, {"width": at}, UCB_FREE, tuned=False) for at in WIDTHS),
        Policy(THOMPSON_FREE, context_free, tuned=False),
        *(linear_policy(GREEDY, "LinUCB", 0.0, reg) for reg in REGS),
        *(linear_policy(LINEAR, "LinUCB", at, reg) for at, reg in product((0.1, 0.3, 1.0), REGS)),
        *(linear_policy(LINEAR, "LinTS", 0.3, reg) for reg in REGS),
        Policy(FOREST, raw_forest, FORESTS.params, tuned=False),
    ]
    if find_spec("vowpalwabbit") is not None:
        found += [
            Policy(f"VW {name} -l {rate:g}", ranged_vowpal_wabbit, {"options": rule, "rate": rate}, WABBIT, False)
            for name, rule in RULES.items()
            for rate in RATES
        ]
    if find_spec("gittins") is not None:
        found.append(Policy(GITTINS, ranged_gittins, tuned=False))
    return tuple(found)
