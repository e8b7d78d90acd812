"""Policies of the news site: bandits of onepass, and policies to compare them with.

`decide(user, articles)` returns a decision, whose `index` is the index of the article. `learn(decision, reward)` learns
its reward.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass import (
    CBSCFD,
    GLBOMD,
    UCB,
    Bandit,
    Factors,
    FrequentDirections,
    InteractionBandit,
    InverseGap,
    OptimisticGap,
    Records,
)

WIDTH = 40  # number of columns for users, and for articles, in explicit rows: enough for all their terms
RULES: dict[str, Any] = {
    "upper gaps": OptimisticGap(0.8, scale=30.0, uniform_share=0.001),
    "upper bounds": UCB(0.5),
    "inverse gaps": InverseGap(),
}


@dataclass(frozen=True)
class Choice:
    """Choice of an article: its index among those on offer, and `details` that the policy needs to learn."""

    index: int
    details: Any


def make_crossed_bandit(seed: int, rule: str = "upper gaps") -> Bandit:
    """Return the bandit `InteractionBandit` for users and articles, with the exploration rule `rule` of `RULES`."""
    return InteractionBandit(exploration=RULES[rule], seed=seed)


class Dense:
    """Bandit on all products of user and article features, as dense rows.

    `recipe` is "CBSCFD", "CBSCFD newton" or another name, which stands for GLB-OMD on a sketch. `Records` turns users
    and articles into numbers. `size` is the number of rows of the sketch, `exploration` the multiplier of the width,
    and `reg` the ridge penalty.
    """

    def __init__(self, seed: int, recipe: str, size: int = 32, exploration: float = 0.2, reg: float = 1.0) -> None:
        dim = (1 + WIDTH, 1 + WIDTH)
        given: dict[str, Any] = {"exploration": exploration, "seed": seed}
        if recipe == "CBSCFD":
            self.bandit: Any = CBSCFD(dim=dim, size=size, reg=reg, **given)
        elif recipe == "CBSCFD newton":
            self.bandit = CBSCFD(dim=dim, size=size, reg=reg, estimator="newton", **given)
        else:
            width = dim[0] * dim[1]
            design = FrequentDirections(dim=width, size=size, compensation=1.0, reg=reg)
            self.bandit = GLBOMD(dim=dim, design=design, **given)
        self.users = Records(size=WIDTH, standardize=True)
        self.articles = Records(size=WIDTH, standardize=True)

    def decide(self, user: Any, articles: Any) -> Choice:
        left, right = (
            _with_constant(self.users.transform([user]))[0],
            _with_constant(self.articles.transform(list(articles.values()))),
        )
        place = self.bandit.decide(Factors(left, right)).index
        return Choice(place, (user, list(articles.values())[place]))

    def learn(self, choice: Choice, reward: float) -> None:
        user, article = choice.details
        self.users.learn(user)
        self.articles.learn(article)
        rows = _with_constant(self.users.transform([user])), _with_constant(self.articles.transform([article]))
        self.bandit.learn(Factors(rows[0][0], rows[1][0]), reward)

    def memory_usage(self) -> int:
        return self.bandit.memory_usage()


def _with_constant(rows: np.ndarray) -> np.ndarray:
    """Prepend a constant 1 to every row."""
    return np.hstack([np.ones((len(rows), 1)), rows])


class Popularity:
    """Thompson sampling on the click rate of every article, with the prior Beta(1, 15); users are ignored."""

    BEFORE = (1.0, 15.0)

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.counts: dict[str, tuple[float, float]] = {}

    def decide(self, user: Any, articles: Any) -> Choice:
        names = list(articles)
        drawn = self.rng.beta(*np.array([self.counts.get(name, self.BEFORE) for name in names]).T)
        place = int(np.argmax(drawn))
        return Choice(place, names[place])

    def learn(self, choice: Choice, reward: float) -> None:
        clicks, others = self.counts.get(choice.details, self.BEFORE)
        self.counts[choice.details] = (clicks + reward, others + 1.0 - reward)

    def memory_usage(self) -> int:
        return 16 * len(self.counts)  # two numbers of 8 bytes


class Uniform:
    """Policy that chooses articles at random."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def decide(self, user: Any, articles: Any) -> Choice:
        return Choice(int(self.rng.integers(len(articles))), None)

    def learn(self, choice: Choice, reward: float) -> None:
        """Do nothing, because the policy does not learn."""

    def memory_usage(self) -> int:
        return 0


class VowpalWabbit:
    """Policy of Vowpal Wabbit with SquareCB, on the same features as the bandits of onepass.

    Its options are `--cb_explore_adf -q UA --squarecb`, with `gamma` as `--gamma_scale`. If `named` is True, the names
    of articles are further features. The package vowpalwabbit is in the extra `peers`, so the suites do not contain
    these policies; see docs/news.md.
    """

    def __init__(self, seed: int, gamma: float, named: bool = False) -> None:
        from vowpalwabbit import Workspace

        options = "--cb_explore_adf -q UA --squarecb --quiet"
        self.workspace = Workspace(f"{options} --gamma_scale {gamma} --random_seed {seed}")
        self.rng, self.named = np.random.default_rng(seed), named

    def decide(self, user: Any, articles: Any) -> Choice:
        age = "" if user["age"] is None else f" age:{user['age']}"
        interests = "".join(f" interest={one}" for one in user["interests"])
        lines = [f"shared |U country={user['country']} device={user['device']}{age}{interests}"]
        for name, one in articles.items():
            own = f" name={name.replace(' ', '_')}" if self.named else ""
            author = one["author"].replace(" ", "_")
            lines.append(f"|A topic={one['topic']} author={author} age:{one['age']}{own}")
        chances = np.array(self.workspace.predict(lines))
        place = int(self.rng.choice(len(chances), p=chances / chances.sum()))
        return Choice(place, (lines, chances[place]))

    def learn(self, choice: Choice, reward: float) -> None:
        lines, chance = choice.details
        labelled = list(lines)
        labelled[choice.index + 1] = f"0:{-reward}:{chance} {labelled[choice.index + 1]}"
        self.workspace.learn(labelled)

    def memory_usage(self) -> int:
        return 0
