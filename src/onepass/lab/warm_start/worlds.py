"""Bandit problems with earlier data: data sets or prompts with a log, and a news site with other sites.

Each class has `cold`, which returns a bandit that has learned nothing, `source`, which returns earlier knowledge by
name, and `play`, which plays a bandit and returns its earnings in every round.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

import onepass
from onepass.bandit.bandit import Bandit
from onepass.lab.bakeoff.datasets import NAMES, first_rounds
from onepass.lab.news.simulator import Request, Site
from onepass.lab.routing.game import order_prompts

SETS = NAMES[1::2]  # reported: every second set; the constants of WarmStart were chosen on others
SHARE, LEAST, MOST = 0.15, 50, 1_500  # rows of a log
FLOOR = 0.2  # share of a bad logger's choices that are uniform
LOGGED = 600  # prompts
SISTERS, THEIRS = 19, 500  # other sites, and the requests of each
COMMON = 0.8  # share of the variance of effects that all sites have in common
EFFECTS = ("country", "topic", "author", "country_topic", "device_topic", "country_author", "age_topic")


class World(Protocol):
    """Bandit problem for which earlier data exist.

    `name` is the name of the problem. `cold()` returns a new bandit, `source(log, logger)` the earlier data, and
    `play(bandit, rounds)` the rewards (rounds,) that a bandit earns.
    """

    name: str

    def cold(self) -> Bandit: ...
    def source(self, log: str, logger: str) -> Any: ...
    def play(self, bandit: Bandit, rounds: int) -> np.ndarray: ...


def linear_choices(rng: np.random.Generator, rows: np.ndarray, arms: int) -> np.ndarray:
    """Return the best arms (n,) for the rows (n, d) in a random linear model of standardized columns."""
    scaled = (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-9)
    return np.argmax(scaled @ rng.standard_normal((rows.shape[1], arms)), axis=1)


class SetWorld:
    """Data set as a bandit problem, whose first rows are a log, and whose other rows are played.

    A seed stands for one of the data sets `sets` and an order of its rows. The log is one of these:

    - "good": rewards are the true ones.
    - "swapped": the rewards of half of the arms, at least two, are exchanged.
    - "other": rewards follow a random linear model.
    - "columns": half of the features are taken from other rows.

    The logging policy "uniform" chose arms at random; "bad" is a random linear rule, with a fraction 0.2 of random
    choices.
    """

    def __init__(self, seed: int, sets: Sequence[str] = SETS) -> None:
        self.order, place = divmod(seed, len(sets))
        data = first_rounds(sets[place], self.order, 10_000)
        self.name, self.arms = data.name, max(data.classes, 2)
        self.logged = int(np.clip(SHARE * len(data.rows), LEAST, MOST))
        self.rows, self.labels = data.rows, data.labels

    def cold(self) -> Bandit:
        return onepass.ContextualBandit(seed=self.order)

    def source(self, log: str, logger: str) -> Any:
        rng, n = np.random.default_rng([self.order, 7]), self.logged
        rows, labels = self.rows[:n], self.labels[:n]
        if log == "swapped":
            half = rng.permutation(self.arms)[: max(2, self.arms // 2)]
            others = np.arange(self.arms)
            others[half] = np.roll(half, 1)
            labels = others[labels]
        elif log == "other":
            labels = linear_choices(rng, rows, self.arms)
        elif log == "columns":
            columns = rng.permutation(rows.shape[1])[: rows.shape[1] // 2]
            rows = rows.copy()
            rows[:, columns] = rows[rng.permutation(n)][:, columns]
        arms = rng.integers(self.arms, size=n)
        if logger == "bad":
            ruled = linear_choices(rng, rows, self.arms)
            arms = np.where(rng.random(n) < FLOOR, arms, ruled)
        return rows, arms, (arms == labels).astype(np.float64)

    def play(self, bandit: Bandit, rounds: int) -> np.ndarray:
        part = slice(self.logged, self.logged + rounds)
        rewards = (self.labels[part, None] == np.arange(self.arms)).astype(np.float64)
        arms = bandit.play(self.rows[part, None, :], rewards)
        return rewards[np.arange(len(arms)), arms]


class PromptWorld:
    """Prompts for three language models; the first 600 prompts are a log in which models were chosen at random.

    A seed stands for an order of the prompts. `source` returns this log, whatever its arguments are.
    """

    name = "prompts"

    def __init__(self, seed: int) -> None:
        self.order, self.data = seed, order_prompts(seed)

    def cold(self) -> Bandit:
        return onepass.ContextualBandit(seed=self.order)

    def source(self, log: str, logger: str) -> Any:
        arms = np.random.default_rng([self.order, 7]).integers(len(self.data.models), size=LOGGED)
        return self.data.rows[:LOGGED], arms, self.data.rewards[np.arange(LOGGED), arms]

    def play(self, bandit: Bandit, rounds: int) -> np.ndarray:
        part = slice(LOGGED, LOGGED + rounds)
        rewards = np.asarray(self.data.rewards[part], np.float64)
        arms = bandit.play(self.data.rows[part, None, :], rewards)
        return rewards[np.arange(len(arms)), arms]


class SiteWorld:
    """New news site, and other sites of the same kind that have already answered requests.

    There are SISTERS = 19 other sites, with THEIRS = 500 requests each. A share COMMON = 0.8 of the variance of every
    effect on clicks (such as country or topic) is common to all sites, and the rest is drawn for each site.
    """

    name = "news sites"

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.family = [self._site(number) for number in range(SISTERS + 1)]

    def _site(self, number: int) -> Site:
        common, site = Site(1_000 * self.seed + 999), Site(1_000 * self.seed + number)
        for effect in EFFECTS:
            shared, own = getattr(common, effect), getattr(site, effect)
            setattr(site, effect, np.sqrt(COMMON) * shared + np.sqrt(1.0 - COMMON) * own)
        return site

    def cold(self) -> Bandit:
        return onepass.ContextualBandit(seed=self.seed)

    def source(self, log: str, logger: str) -> Any:
        bandit = onepass.ContextualBandit(seed=self.seed)
        for sister in self.family[:-1]:
            _play_site(bandit, sister, THEIRS)
        return bandit

    def play(self, bandit: Bandit, rounds: int) -> np.ndarray:
        return _play_site(bandit, self._site(SISTERS), rounds)


def _play_site(bandit: Bandit, site: Site, rounds: int) -> np.ndarray:
    """Let a bandit play `rounds` requests of a site, and return the click probabilities (rounds,) of its choices."""
    earned = np.empty(rounds)
    for t, request in zip(range(rounds), site.requests(), strict=False):
        earned[t] = _answer(bandit, request)
    return earned


def _answer(bandit: Bandit, request: Request) -> float:
    decision = bandit.decide(request.user, request.articles)
    chance = float(request.chances[decision.index])
    bandit.learn(decision, float(request.lot < chance))
    return chance
