"""A game of a noisy world: contexts, rewards, and expected rewards if they are known."""

from typing import NamedTuple

import numpy as np

TAIL = 0.05  # an unbounded reward's range lies between this quantile and its complement


class Game(NamedTuple):
    """One order of a world.

    Parameters
    ----------
    rows : array of shape (T, d)
        Contexts in their own units.
    rewards : array of shape (T, K)
        Reward of every arm. In a replayed log, only those of the logged arms count.
    expected : array of shape (T, K)
        Expected rewards, or the rewards themselves where no expectation is known.
    low, high : float
        Range of rewards, without outliers.
    logged : array of shape (T,), int, default None
        Arms of a log with equal propensities, played by replay with rejection: a round counts, and is learned, if
        the player chooses the logged arm. None means that all rewards are known.
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
        """Return the mean reward (K,) of every fixed arm in hindsight."""
        if self.logged is None:
            return self.expected.mean(axis=0)
        paid = self.rewards[np.arange(len(self.rows)), self.logged]
        return np.array([paid[self.logged == arm].mean() for arm in range(self.arms)])


def bounded_game(rows: np.ndarray, rewards: np.ndarray, expected: np.ndarray, low: float, high: float) -> Game:
    """Return a game of contexts (T, d) and rewards (T, K), all in [low, high], with expected rewards (T, K)."""
    return Game(np.ascontiguousarray(rows, np.float64), rewards, expected, low, high)


def unbounded_game(rows: np.ndarray, rewards: np.ndarray, expected: np.ndarray) -> Game:
    """Return a game of contexts (T, d) and rewards (T, K), whose range is that of the central 90% of all rewards."""
    low, high = np.quantile(rewards, [TAIL, 1.0 - TAIL])
    return bounded_game(rows, rewards, expected, float(low), float(high))


def logged_game(
    rows: np.ndarray, arms: np.ndarray, rewards: np.ndarray, rng: np.random.Generator, bounded: bool
) -> Game:
    """Return a log in random order, thinned so that every arm has equally many rows.

    Rewards (n,) are those of the logged arms (n,). Equal propensities make replay with rejection unbiased. The range is
    that of all rewards, or of their central 90% if they are not `bounded`.
    """
    fewest = int(np.bincount(arms).min())
    kept = np.concatenate([rng.permutation(np.flatnonzero(arms == arm))[:fewest] for arm in range(int(arms.max()) + 1)])
    kept = rng.permutation(kept)
    known = np.repeat(rewards[kept, None], int(arms.max()) + 1, axis=1)
    low, high = np.quantile(rewards, [0.0, 1.0] if bounded else [TAIL, 1.0 - TAIL])
    return Game(np.ascontiguousarray(rows[kept], np.float64), known, known, float(low), float(high), arms[kept])
