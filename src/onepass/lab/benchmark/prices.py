"""Cost of a decision over an interval of prices, relative to one among ten named arms, by `ContextualBandit`."""

import time

import numpy as np

import onepass as op
from onepass.lab.benchmark.shared_model import Line
from onepass.lab.prices.games import PRICES, buyers

ARMS, LEARNED, ROUNDS = 10, 600, 1_000


def decision_microseconds(learned: int = LEARNED, rounds: int = ROUNDS) -> tuple[float, float]:
    """Return the median microseconds of processor time of a decision of a price, and of one among ten named arms.

    Two bandits first learn `learned` rewards each, then make `rounds` decisions in turn, so that other work on the
    machine slows both. Their contexts are the same rows of three numbers.
    """
    game, rng = buyers(0, learned + rounds), np.random.default_rng(0)
    theta, names = rng.standard_normal((ARMS, game.rows.shape[1])), list(range(ARMS))
    priced, named = op.ContextualBandit(seed=1), op.ContextualBandit(seed=1)
    times: list[tuple[float, float]] = []
    for i, row in enumerate(game.rows):
        began = time.process_time()
        price = priced.decide(row, PRICES)
        between = time.process_time()
        choice = named.decide(row, names)
        if i >= learned:
            times.append((between - began, time.process_time() - between))
        else:
            priced.learn(price, game.reward(i, price.arm))
            named.learn(choice, float(theta[choice.arm] @ row + rng.standard_normal()))
    price_seconds, choice_seconds = np.median(times, axis=0)
    return float(price_seconds) * 1e6, float(choice_seconds) * 1e6


def speed_lines() -> list[Line]:
    """Measure decisions of prices, and return lines of the table that `onepass bench` prints."""
    price, choice = decision_microseconds()
    what = f"decide a price, d={buyers(0, 1).rows.shape[1]}: ContextualBandit, demand"
    return [(what, price, "us", price / choice, f"times {choice:.0f} us with {ARMS} named arms (bar 2)")]
