"""Worlds of five arms whose clicks have a common level that jumps every 1,000 decisions."""

from typing import NamedTuple

import numpy as np
from scipy import optimize

PERIOD = 1_000  # decisions between two jumps
COLUMNS = 6
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(160)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + e^-x)."""
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def offset_for(rate: float, slope: float) -> float:
    """Return the log odds c with E sigmoid(c + slope z) = rate, z standard normal."""
    return float(optimize.brentq(lambda c: WEIGHTS @ sigmoid(c + slope * NODES) - rate, -60.0, 20.0))


def explained_share(rate: float, slope: float) -> float:
    """Return the share of the variance of clicks that contexts explain."""
    p = sigmoid(offset_for(rate, slope) + slope * NODES)
    return float((WEIGHTS @ p**2 - rate**2) / (rate * (1.0 - rate)))


class Block(NamedTuple):
    """Decisions that follow one another: contexts (n, 6) or None, and click probabilities (n, K) of all arms."""

    contexts: np.ndarray | None
    rates: np.ndarray


class World:
    """Clicks of arms with mean rates `rates` without jumps; `shock` is the deviation of the level in log odds.

    With `slope` above 0, contexts of six standard normal columns move the log odds in their common direction.
    """

    def __init__(self, rates: tuple[float, ...], shock: float, slope: float, seed: int) -> None:
        self.rates, self.shock, self.slope = np.array(rates), shock, slope
        self._offsets = np.array([offset_for(rate, slope) if slope else np.log(rate / (1.0 - rate)) for rate in rates])
        self._rng, self._seed, self._count = np.random.default_rng([seed, 1]), seed, 0

    @property
    def best(self) -> int:
        """Index of the best arm."""
        return int(self.rates.argmax())

    def block(self, size: int) -> Block:
        """Return the next decisions, at most `size`, with one level."""
        size = min(size, PERIOD - self._count % PERIOD)
        level = self.shock * np.random.default_rng([self._seed, 2, self._count // PERIOD]).standard_normal()
        self._count += size
        if not self.slope:
            return Block(None, np.broadcast_to(sigmoid(self._offsets + level), (size, len(self.rates))))
        contexts = self._rng.standard_normal((size, COLUMNS))
        along = contexts.sum(axis=1) / np.sqrt(COLUMNS)
        return Block(contexts, sigmoid(self._offsets + level + self.slope * along[:, None]))
