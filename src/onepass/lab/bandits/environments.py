"""Bandit problems from data or drawn at random: `chunk(start, rounds)` returns contexts and rewards of all arms.

Rounds are drawn in fixed blocks, each from its own stream of the seed. Round t is therefore the same for all chunk
sizes and policies, and tuning and evaluation differ only by their seeds.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol

import numpy as np

from onepass.lab.bandits.noise import Noise
from onepass.lab.datasets import Dataset
from onepass.lab.seeds import stream

BLOCK = 50


class Chunk(NamedTuple):
    """Recorded rounds of a bandit problem, B rounds of K arms.

    Parameters
    ----------
    contexts : array of shape (B, K, d)
        Features of every arm; (B, 1, d) if all arms share one context.
    expected : array of shape (B, K)
        Expected reward of every arm.
    rewards : array of shape (B, K)
        Reward that every arm would pay.
    """

    contexts: np.ndarray
    expected: np.ndarray
    rewards: np.ndarray


class Environment(Protocol):
    """Bandit problem in which every round offers `arms` contexts of `dim` features.

    Attributes
    ----------
    arms : int
        Number of arms.
    dim : int
        Number of features.
    """

    arms: int
    dim: int

    def chunk(self, start: int, rounds: int) -> Chunk:
        """Return contexts, expected rewards and rewards of the rounds start .. start + rounds - 1.

        Parameters
        ----------
        start : int
            First round, at least 0.
        rounds : int
            Number of rounds, at least 1.

        Returns
        -------
        Chunk
            Contexts and rewards of all arms.
        """
        ...


class Blocks(ABC):
    """Bandit problem whose rounds are drawn in blocks of 50, each from a stream of random numbers of its own."""

    arms: int
    dim: int

    def chunk(self, start: int, rounds: int) -> Chunk:
        """Return contexts, expected rewards and rewards of the rounds start .. start + rounds - 1.

        Parameters
        ----------
        start : int
            First round, at least 0.
        rounds : int
            Number of rounds, at least 1.

        Returns
        -------
        Chunk
            Contexts and rewards of all arms.
        """
        first, last = start // BLOCK, (start + rounds - 1) // BLOCK
        blocks = [self.block(number) for number in range(first, last + 1)]
        offset = start - first * BLOCK
        return Chunk(*(np.concatenate(arrays)[offset : offset + rounds] for arrays in zip(*blocks)))

    @abstractmethod
    def block(self, number: int) -> Chunk:
        """Return 50 rounds of the problem.

        Parameters
        ----------
        number : int
            Number of the block, from 0. Block n has the rounds 50 n to 50 n + 49.

        Returns
        -------
        Chunk
            Contexts and rewards of all arms.
        """


class Classification(Blocks):
    """Problem whose arms are one random example of each class. The example of the target class pays 1, others 0.

    It follows appendix F.1 of Wen, Yin et al. and appendix C.2 of Shustova et al. (after Kuzborskij et al. 2019). Rows
    have length 1, and examples are drawn with replacement. The order of the arms is shuffled in every round, so an
    arm's position tells nothing.

    Parameters
    ----------
    dataset : Dataset
        Examples with classes.
    seed : int
        Seed of all draws.
    target : int, default None
        Class that pays. By default it is the seed modulo the number of classes, so that seeds go through all classes.
    """

    def __init__(self, dataset: Dataset, seed: int, target: int | None = None) -> None:
        self.dataset, self.seed = dataset, seed
        self.arms, self.dim = dataset.classes, dataset.rows.shape[1]
        self.target = seed % self.arms if target is None else target
        self.members = [np.flatnonzero(dataset.labels == label) for label in range(self.arms)]

    def block(self, number: int) -> Chunk:
        rng = stream(self.seed, number + 1)
        examples = np.stack([members[rng.integers(members.size, size=BLOCK)] for members in self.members], axis=1)
        order = rng.permuted(np.tile(np.arange(self.arms), (BLOCK, 1)), axis=1)
        rewards = (order == self.target).astype(np.float64)
        return Chunk(normalize_rows(self.dataset.rows[np.take_along_axis(examples, order, axis=1)]), rewards, rewards)


class Linear(Blocks):
    """Synthetic problem of Wen, Yin et al. section 5: reward x^T theta + noise, contexts N(0, I_d).

    theta is uniform on the sphere. The paper normalizes theta but not the contexts, so ||x||^2 is near d. It does not
    describe its noise. Here the noise is Gaussian, with `noise` times the standard deviation of x^T theta, which is 1,
    or 1 / sqrt(d) for normalized contexts.

    Parameters
    ----------
    arms : int
        Number of arms.
    dim : int
        Number of features.
    seed : int
        Seed of all draws.
    noise : float, default 0.1
        Standard deviation of the noise, relative to that of x^T theta.
    normalized : bool, default False
        True if contexts are scaled to length 1.
    """

    def __init__(self, arms: int, dim: int, seed: int, noise: float = 0.1, normalized: bool = False) -> None:
        self.arms, self.dim, self.seed, self.normalized = arms, dim, seed, normalized
        self.noise = noise / dim**0.5 if normalized else noise
        self.theta = normalize_rows(stream(seed, 0).standard_normal(dim))

    def block(self, number: int) -> Chunk:
        rng = stream(self.seed, number + 1)
        contexts = rng.standard_normal((BLOCK, self.arms, self.dim))
        contexts = normalize_rows(contexts) if self.normalized else contexts
        expected = contexts @ self.theta
        return Chunk(contexts, expected, expected + self.noise * rng.standard_normal(expected.shape))


class FixedArms(Blocks):
    """Problem of Wang et al. section 6: the same arms in every round, reward x^T theta + noise.

    The noise is independent for every arm and round. Arms and theta have entries uniform on [-1, 1] and are then scaled
    to length 1.

    Parameters
    ----------
    arms : int
        Number of arms.
    dim : int
        Number of features without the constant.
    seed : int
        Seed of all draws.
    noise : Noise
        Distribution of the noise.
    constant : bool, default False
        True to add a feature that is 1. A model can then represent the mean that is lost if skewed noise is clipped.
    """

    def __init__(self, arms: int, dim: int, seed: int, noise: Noise, constant: bool = False) -> None:
        self.arms, self.dim, self.seed, self.noise = arms, dim + constant, seed, noise
        self.constant = constant
        rng = stream(seed, 0)
        self.rows = normalize_rows(rng.uniform(-1.0, 1.0, (arms, dim)))
        self.theta = normalize_rows(rng.uniform(-1.0, 1.0, dim))

    def block(self, number: int) -> Chunk:
        rows = np.hstack([self.rows, np.ones((self.arms, 1))]) if self.constant else self.rows
        contexts = np.tile(rows, (BLOCK, 1, 1))
        expected = np.tile(self.rows @ self.theta, (BLOCK, 1))
        return Chunk(contexts, expected, expected + self.noise.draw(stream(self.seed, number + 1), expected.shape))


class Decaying(Blocks):
    """Problem with contexts of many features whose spectrum decays, so that a sketch can represent them.

    A context is x = R (g_0, g_1 decay, g_2 decay^2, ...), scaled to length 1. The g_j are independent standard normal
    and new in every round, and R is a random rotation of the seed. The reward is x^T theta + noise. The parameter theta
    is drawn like a context, so that rewards depend on the directions in which contexts vary. With theta uniform on the
    sphere, x^T theta would be close to 0.

    Parameters
    ----------
    arms : int
        Number of arms.
    dim : int
        Number of features.
    seed : int
        Seed of all draws.
    noise : Noise
        Distribution of the noise.
    decay : float, default 0.93
        Ratio of the standard deviations of successive directions.
    """

    def __init__(self, arms: int, dim: int, seed: int, noise: Noise, decay: float = 0.93) -> None:
        self.arms, self.dim, self.seed, self.noise = arms, dim, seed, noise
        rng = stream(seed, 0)
        rotation = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
        self.axes = decay ** np.arange(dim)[:, None] * rotation
        self.theta = normalize_rows(rng.standard_normal(dim) @ self.axes)

    def block(self, number: int) -> Chunk:
        rng = stream(self.seed, number + 1)
        contexts = normalize_rows(rng.standard_normal((BLOCK, self.arms, self.dim)) @ self.axes)
        expected = contexts @ self.theta
        return Chunk(contexts, expected, expected + self.noise.draw(rng, expected.shape))


class Labels(Blocks):
    """Problem of classification with one arm for each class, in which the arm of the right class pays 1 and others 0.

    The context of a round is one random example, shared by all arms, so contexts are (B, 1, d). The problem is meant
    for models per arm. Rows have length 1, and examples are drawn with replacement.

    Parameters
    ----------
    dataset : Dataset
        Examples with classes.
    seed : int
        Seed of all draws.
    """

    def __init__(self, dataset: Dataset, seed: int) -> None:
        self.dataset, self.seed = dataset, seed
        self.arms, self.dim = dataset.classes, dataset.rows.shape[1]

    def block(self, number: int) -> Chunk:
        examples = stream(self.seed, number + 1).integers(len(self.dataset.rows), size=BLOCK)
        rewards = np.eye(self.arms)[self.dataset.labels[examples]]
        return Chunk(normalize_rows(self.dataset.rows[examples])[:, None, :], rewards, rewards)


class Noisy(Blocks):
    """Environment whose rewards get additional noise of mean 0, so expected rewards do not change.

    Parameters
    ----------
    environment : Environment
        Problem without the noise.
    noise : Noise
        Distribution of the noise.
    seed : int
        Seed of the noise.
    """

    def __init__(self, environment: Environment, noise: Noise, seed: int) -> None:
        self.environment, self.noise, self.seed = environment, noise, seed
        self.arms, self.dim = environment.arms, environment.dim

    def block(self, number: int) -> Chunk:
        contexts, expected, rewards = self.environment.chunk(number * BLOCK, BLOCK)
        return Chunk(contexts, expected, rewards + self.noise.draw(stream(self.seed, number + 1, 1), rewards.shape))


def normalize_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows (..., d) scaled to length 1; zero rows stay zero."""
    norms = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1.0)


def gaussian_rows(seed: int, rounds: int, dim: int = 500) -> np.ndarray:
    """Return standard normal rows (rounds, dim), scaled to length 1. Source: Wen, Yin et al. F.2."""
    return normalize_rows(stream(seed, 0).standard_normal((rounds, dim)))


def dataset_rows(dataset: Dataset, seed: int, rounds: int) -> np.ndarray:
    """Return random rows (rounds, d) of a data set, scaled to length 1; none is repeated until all are used."""
    order = stream(seed, 0).permutation(len(dataset.rows))
    return normalize_rows(dataset.rows[np.resize(order, rounds)])
