"""Causes of the losses in the first days of a news site: click rates of the bandit, with one change at a time.

    python -m onepass.lab.news.costs --seeds 10

A printed line has the expected click rates of all days and of the last five days, as shares of the rates of the best
fixed policy (oracle.py). It takes five seconds of one processor.
"""

import argparse
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from onepass import UCB, Bandit, InteractionBandit
from onepass.lab.news.oracle import best_fixed
from onepass.lab.news.simulator import PATIENCE, PER_DAY, Request, Site
from onepass.lab.news.study import Server
from onepass.lab.news.through_service import LAST

DAYS = 20
AS_IT_IS, GREEDY, AT_ONCE, TOLD = "as it is", "the largest mean", "clicks at once", "told probabilities"
WAYS = (AS_IT_IS, GREEDY, AT_ONCE, TOLD)


class BanditPolicy:
    """Adapter that gives a bandit the methods `decide` and `learn` that the study of news sites calls."""

    def __init__(self, bandit: Bandit) -> None:
        self.bandit = bandit

    def decide(self, user: Any, articles: Any) -> Any:
        """Choose one of the articles for a user, and return the decision of the bandit."""
        return self.bandit.decide(user, arms=articles)

    def learn(self, decision: Any, reward: float) -> None:
        """Learn the reward of a decision that `decide` returned."""
        self.bandit.learn(decision, reward)


def click_probabilities(requests: Sequence[Request], seed: int, way: str) -> np.ndarray:
    """Return the click probability (n,) of the article that a bandit shows at each of n requests.

    `seed` is the seed of the bandit. `way` selects a change: `AS_IT_IS` none, `GREEDY` greedy choices, `AT_ONCE` clicks
    that are learned at once, and `TOLD` click probabilities that are learned instead of clicks.
    """
    bandit = InteractionBandit(seed=seed, exploration=UCB(0.0) if way == GREEDY else None)
    server, found = Server(BanditPolicy(bandit)), list[float]()
    for request in requests:
        if way == TOLD:
            decision = bandit.decide(request.user, arms=request.articles)
            found.append(float(request.chances[decision.index]))
            bandit.learn(decision, found[-1])
            continue
        before = server.clicks
        server.serve(request)
        found.append(server.clicks - before)
        if way == AT_ONCE:
            server.learn_until(request.hour + PATIENCE)
    return np.array(found)


def main() -> None:
    """Simulate the bandit for every seed and every change in `WAYS`, and print one line of click rates for each."""
    parser = argparse.ArgumentParser(description="What the first days of a simulated news site cost.")
    parser.add_argument("--seeds", type=int, default=10, help="how many sites (default 10)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    given = parser.parse_args()
    print("seed | way | all days | last days: of the best fixed policy's click rate")
    for seed in range(given.first, given.first + given.seeds):
        requests = list(islice(Site(seed).requests(), DAYS * PER_DAY))
        fixed = np.array([one.chances[place] for one, place in zip(requests, best_fixed(requests), strict=True)])
        for way in WAYS:
            own, last = click_probabilities(requests, seed, way), LAST * PER_DAY
            whole, end = own.sum() / fixed.sum(), own[-last:].sum() / fixed[-last:].sum()
            print(f"{seed} | {way} | {whole:.3f} | {end:.3f}", flush=True)


if __name__ == "__main__":
    main()
