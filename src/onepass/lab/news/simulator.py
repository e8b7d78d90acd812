"""Simulated news site: users and articles are records, and clicks are rare and arrive minutes later.

A click has the log odds

    log odds of a click = base + country + topic + author + country x topic + device x topic + country x author
                          + age x topic (+ age^2 x topic) + interest - hours / 50 + the article's own appeal

The site has 2,000 requests a day and 60 articles. The oldest article is replaced 20 times a day, and every request
offers 5 to 30 articles. Effects are normal and drawn anew for every seed. A choice counts by its click probability.
"""

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from onepass.lab.seeds import stream

COUNTRIES = ("de", "fr", "us", "uk", "in", "br", "jp", "ng")
DEVICES, SHARES = ("phone", "tablet", "desktop"), (0.6, 0.1, 0.3)
TOPICS = ("sport", "politics", "music", "science", "travel", "food", "games", "money")
AUTHORS = tuple(f"author {number}" for number in range(20))
STOCK, REPLACED, PER_DAY = 60, 20, 2000
LEAST, MOST = 5, 30  # number of articles on offer
HOURS = 24.0
LATE = 5.0 / 60.0  # mean hours until a click arrives
PATIENCE = 0.5  # hours from a decision to its deadline
BASE = -2.9  # log odds: 4 to 15% of choices are clicked
UNKNOWN = 0.1  # share of users without a known age
MIDDLE, SPREAD, YOUNGEST, OLDEST = 40.0, 15.0, 16, 85  # years


class Request(NamedTuple):
    """Request of a user of the simulated news site.

    Parameters
    ----------
    hour : hours since the start of the site.
    user : features of the user.
    articles : features of the articles on offer, by name.
    chances : click probability (K,) of every article on offer.
    lot : uniform random number; the shown article is clicked if `lot` is below its click probability.
    delay : hours until the click arrives.
    """

    hour: float
    user: dict[str, Any]
    articles: dict[str, dict[str, Any]]
    chances: np.ndarray
    lot: float
    delay: float


class Site:
    """Simulated news site; effects of users and articles on clicks are drawn at random.

    Parameters
    ----------
    seed : seed of all draws.
    crossed : factor of the effects that depend on both user and article.
    own : standard deviation of an effect of the single article, which no feature shows.
    curved : standard deviation, over topics, of the effect of the user's age squared.
    replaced : number of articles that are replaced every day.
    """

    def __init__(
        self, seed: int, crossed: float = 1.0, own: float = 0.0, curved: float = 0.0, replaced: int = REPLACED
    ) -> None:
        rng = self.rng = stream(seed)

        def normal(scale: float, *shape: int) -> np.ndarray:
            return scale * rng.standard_normal(shape)

        self.country, self.topic, self.author = normal(0.3, 8), normal(0.4, 8), normal(0.4, 20)
        self.country_topic, self.device_topic = normal(0.5 * crossed, 8, 8), normal(0.3 * crossed, 3, 8)
        self.country_author = normal(0.35 * crossed, 8, 20)
        self.age_topic, self.age_squared = normal(0.5 * crossed, 8), normal(curved, 8)
        self.interest, self.own, self.replaced = 0.9 * crossed, own, replaced
        self.shares = rng.dirichlet(np.full(len(COUNTRIES), 2.0))
        self.count = 0
        self.stock = sorted((self.article(-3.0 * HOURS * rng.random()) for _ in range(STOCK)), key=lambda one: one[3])

    def article(self, born: float) -> tuple[str, int, int, float, float]:
        """Return a new random article that is published at hour `born`.

        The result is (name, number of the topic, number of the author, `born`, effect on clicks that no feature shows).
        """
        self.count += 1
        rng = self.rng
        return (
            f"article {self.count}",
            int(rng.integers(len(TOPICS))),
            int(rng.integers(len(AUTHORS))),
            born,
            self.own * float(rng.standard_normal()),
        )

    def requests(self) -> Iterator[Request]:
        """Yield requests in the order of time, without end."""
        rng = self.rng
        for number in count():
            hour = number * HOURS / PER_DAY
            if number and number % (PER_DAY // self.replaced) == 0:
                self.stock = [*self.stock[1:], self.article(hour)]
            country, device = rng.choice(len(COUNTRIES), p=self.shares), rng.choice(len(DEVICES), p=SHARES)
            age = int(np.clip(rng.normal(MIDDLE, SPREAD), YOUNGEST, OLDEST))
            interests = rng.choice(len(TOPICS), size=int(rng.integers(0, 4)), replace=False)  # up to three
            offered = rng.choice(STOCK, size=int(rng.integers(LEAST, MOST + 1)), replace=False)
            names, topics, authors, born, own = zip(*(self.stock[place] for place in offered), strict=True)
            topic, author, hours = np.array(topics), np.array(authors), hour - np.array(born)
            years = (age - MIDDLE) / SPREAD
            odds = (
                BASE
                + self.country[country]
                + self.topic[topic]
                + self.author[author]
                + self.country_topic[country, topic]
                + self.device_topic[device, topic]
                + self.country_author[country, author]
                + years * self.age_topic[topic]
                + (years**2 - 1.0) * self.age_squared[topic]
                + self.interest * np.isin(topic, interests)
                - hours / 50.0  # half the odds after 35 hours
                + np.array(own)
            )
            user = {
                "country": COUNTRIES[country],
                "device": DEVICES[device],
                "age": None if rng.random() < UNKNOWN else age,
                "interests": [TOPICS[place] for place in interests],
            }
            articles = {
                name: {"topic": TOPICS[t], "author": AUTHORS[a], "age": round(h, 2)}
                for name, t, a, h in zip(names, topics, authors, hours.tolist(), strict=True)
            }
            lot, delay = float(rng.random()), float(rng.exponential(LATE))
            yield Request(hour, user, articles, 1.0 / (1.0 + np.exp(-odds)), lot, delay)
