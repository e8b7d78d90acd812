"""Worlds of five arms whose clicks have a common level that jumps every 1,000 decisions, or that of a real log."""

from functools import cache
from typing import NamedTuple, Protocol

import numpy as np
from scipy import optimize

from onepass.lab.noisy.real import read_open_bandit

PERIOD = 1_000  # decisions between two jumps
COLUMNS = 6
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(160)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return the logistic function 1 / (1 + e^-x) of every entry of x."""
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def offset_for(rate: float, slope: float) -> float:
    """Return the constant c at which the mean of sigmoid(c + slope z) over standard normal z equals `rate`."""
    return float(optimize.brentq(lambda c: WEIGHTS @ sigmoid(c + slope * NODES) - rate, -60.0, 20.0))


def explained_share(rate: float, slope: float) -> float:
    """Return the share, from 0 to 1, of the variance of an arm's clicks that the context explains.

    `rate` is the mean click rate of the arm, and `slope` the effect of the context in log odds.
    """
    p = sigmoid(offset_for(rate, slope) + slope * NODES)
    return float((WEIGHTS @ p**2 - rate**2) / (rate * (1.0 - rate)))


class Block(NamedTuple):
    """Consecutive decisions of a world.

    Parameters
    ----------
    contexts : contexts (n, 6), or None if the world has none.
    rates : click probabilities (n, K) of every arm.
    """

    contexts: np.ndarray | None
    rates: np.ndarray


class World(Protocol):
    """Simulated world of an A/B test, which yields decisions; `rates` (K,) are the mean click rates of the arms."""

    rates: np.ndarray

    def block(self, size: int) -> Block:
        """Return the next decisions as a `Block`: at least 1 and at most `size`."""
        ...


class JumpingWorld:
    """World in which the click rates of all arms change together every 1,000 decisions, by a random level.

    Parameters
    ----------
    rates : tuple of float
        Mean click rates of the arms while the level is 0, each between 0 and 1.
    shock : float
        Standard deviation of the level, which is added to the log odds of a click and drawn again every 1,000
        decisions.
    slope : float
        Effect of the context: the log odds of a click grow by `slope` times the sum of six standard normal columns,
        divided by sqrt(6). With 0 there are no contexts.
    seed : int
        Seed of levels and contexts.
    """

    def __init__(self, rates: tuple[float, ...], shock: float, slope: float, seed: int) -> None:
        self.rates, self.shock, self.slope = np.array(rates), shock, slope
        self._offsets = np.array([offset_for(rate, slope) if slope else np.log(rate / (1.0 - rate)) for rate in rates])
        self._rng, self._seed, self._count = np.random.default_rng([seed, 1]), seed, 0

    def block(self, size: int) -> Block:
        """Return the next decisions as a `Block`: at most `size`, and fewer if the level changes before."""
        size = min(size, PERIOD - self._count % PERIOD)
        level = self.shock * np.random.default_rng([self._seed, 2, self._count // PERIOD]).standard_normal()
        self._count += size
        if not self.slope:
            return Block(None, np.broadcast_to(sigmoid(self._offsets + level), (size, len(self.rates))))
        contexts = self._rng.standard_normal((size, COLUMNS))
        along = contexts.sum(axis=1) / np.sqrt(COLUMNS)
        return Block(contexts, sigmoid(self._offsets + level + self.slope * along[:, None]))


CAMPAIGNS = ("all", "men", "women")


@cache
def open_bandit_clicks() -> np.ndarray:
    """Return the clicks (30,000,), 0 or 1, of Open Bandit's three logs with uniform choices, each in order of time."""
    each = [sorted(read_open_bandit(name, name), key=lambda line: line["timestamp"]) for name in CAMPAIGNS]
    return np.array([float(line["click"]) for lines in each for line in lines])


class LoggedWorld:
    """World of equally good arms, whose clicks come from a log of Open Bandit, in the order of the log.

    Each row of the log is one decision, and all arms have the click of that row. So no arm is better than another, but
    their click rate changes in time as it did in the log. After the last row comes the first one.

    Parameters
    ----------
    count : int
        Number of arms.
    seed : int
        Seed that draws the row of the log with which the world begins.
    """

    def __init__(self, count: int, seed: int) -> None:
        clicks = open_bandit_clicks()
        self._clicks, self._count = np.roll(clicks, -int(np.random.default_rng(seed).integers(len(clicks)))), 0
        self.rates = np.full(count, clicks.mean())

    def block(self, size: int) -> Block:
        """Return the next `size` decisions as a `Block` whose click probabilities are 0 or 1, as in the log."""
        part = np.take(self._clicks, np.arange(self._count, self._count + size), mode="wrap")
        self._count += size
        return Block(None, np.broadcast_to(part[:, None], (size, len(self.rates))))
