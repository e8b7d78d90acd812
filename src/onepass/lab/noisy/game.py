"""Rounds of a bandit problem whose rewards are mostly noise: contexts, rewards and expected rewards."""

from typing import NamedTuple

import numpy as np

TAIL = 0.05  # an unbounded reward's range lies between this quantile and its complement


class Game(NamedTuple):
    """Rounds of a bandit problem in one random order.

    Parameters
    ----------
    rows : array of shape (T, d)
        Contexts, not scaled.
    rewards : array of shape (T, K)
        Reward of every arm. In a replayed log, only those of the logged arms count.
    expected : array of shape (T, K)
        Expected rewards, or the rewards themselves if expectations are not known.
    low, high : float
        Range of rewards, without outliers.
    logged : array of shape (T,), int, default None
        Arms of a log whose logging policy chose all arms with equal probability. A round counts and is learned only if
        the player chooses the logged arm. None means that the rewards of all arms are known.
    """

    rows: np.ndarray
    rewards: np.ndarray
    expected: np.ndarray
    low: float
    high: float
    logged: np.ndarray | None = None

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.rewards.shape[1]

    def arm_values(self) -> np.ndarray:
        """Return the mean reward (K,) of each arm if it is chosen in every round."""
        if self.logged is None:
            return self.expected.mean(axis=0)
        paid = self.rewards[np.arange(len(self.rows)), self.logged]
        return np.array([paid[self.logged == arm].mean() for arm in range(self.arms)])


def bounded_game(rows: np.ndarray, rewards: np.ndarray, expected: np.ndarray, low: float, high: float) -> Game:
    """Return a `Game` with contexts `rows` (T, d), rewards (T, K) in [low, high] and expected rewards (T, K)."""
    return Game(np.ascontiguousarray(rows, np.float64), rewards, expected, low, high)


def unbounded_game(rows: np.ndarray, rewards: np.ndarray, expected: np.ndarray) -> Game:
    """Return a `Game` with contexts `rows` (T, d), and rewards and expected rewards (T, K) that have no bounds.

    The range of the game runs from the 5% to the 95% quantile of all rewards.
    """
    low, high = np.quantile(rewards, [TAIL, 1.0 - TAIL])
    return bounded_game(rows, rewards, expected, float(low), float(high))


def logged_game(
    rows: np.ndarray, arms: np.ndarray, rewards: np.ndarray, rng: np.random.Generator, bounded: bool
) -> Game:
    """Return a `Game` from logged contexts `rows` (n, d), arms (n,) and rewards (n,), in random order.

    `rng` draws the order. Rows of frequent arms are dropped until all arms have equally many, so that the evaluation on
    matching rounds is unbiased. The range of the game runs over all rewards, or over their central 90% if `bounded` is
    False.
    """
    fewest = int(np.bincount(arms).min())
    kept = np.concatenate([rng.permutation(np.flatnonzero(arms == arm))[:fewest] for arm in range(int(arms.max()) + 1)])
    kept = rng.permutation(kept)
    known = np.repeat(rewards[kept, None], int(arms.max()) + 1, axis=1)
    low, high = np.quantile(rewards, [0.0, 1.0] if bounded else [TAIL, 1.0 - TAIL])
    return Game(np.ascontiguousarray(rows[kept], np.float64), known, known, float(low), float(high), arms[kept])
