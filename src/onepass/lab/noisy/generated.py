"""Noisy worlds that are generated: linear rewards, steps, no contexts, ratings, costs, jackpots and many arms."""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import expit, ndtr

from onepass.lab.noisy.game import Game, bounded_game, unbounded_game

ROUNDS = 1_500
OUTLIER, OUTLIER_RATE = 1e12, 0.002
Means = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]  # rows (T, d), means (T, K)


def _standardize(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / values.std()


def linear_means(rng: np.random.Generator, dim: int = 30, arms: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Return Gaussian contexts (T, dim) and mean rewards (T, arms), which are linear in the context.

    T is the number of rounds, 1,500. The mean of arm a is x^T theta_a + c_a. Constants c_a have a fifth of the total
    variance.
    """
    rows = rng.standard_normal((ROUNDS, dim))
    slopes, constants = rows @ rng.standard_normal((dim, arms)), rng.standard_normal((1, arms))
    return rows, 2.0 * _standardize(slopes) + _standardize(constants)


def step_means(rng: np.random.Generator, dim: int = 10, arms: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Return uniform contexts (T, dim) and mean rewards (T, arms), which are a decision tree of depth three per arm.

    T is the number of rounds, 1,500. A tree has one threshold for each of three random columns, and a random mean per
    leaf.
    """
    rows, means = rng.uniform(-1.0, 1.0, (ROUNDS, dim)), np.empty((ROUNDS, arms))
    for arm in range(arms):
        columns, thresholds = rng.choice(dim, 3, replace=False), rng.uniform(-0.5, 0.5, 3)
        means[:, arm] = rng.standard_normal(8)[(rows[:, columns] > thresholds) @ [1, 2, 4]]
    return rows, means


def constant_means(rng: np.random.Generator, dim: int = 10, arms: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Return Gaussian contexts (T, dim) without effect, and mean rewards (T, arms) that are constant for every arm.

    T is the number of rounds, 1,500.
    """
    return rng.standard_normal((ROUNDS, dim)), np.repeat(rng.standard_normal((1, arms)), ROUNDS, axis=0)


def continuous_game(rng: np.random.Generator, means: Means, explained: float) -> Game:
    """Return a random game whose rewards have variance 1, of which means explain the fraction `explained`.

    `means` is a function from a generator to contexts (T, d) and mean rewards (T, K).
    """
    rows, values = means(rng)
    expected = np.sqrt(explained) * _standardize(values)
    return unbounded_game(rows, expected + np.sqrt(1.0 - explained) * rng.standard_normal(expected.shape), expected)


def clipped_mean(means: np.ndarray, deviation: float) -> np.ndarray:
    """Return E min(max(Z, 0), 1) for Gaussian Z with the given means and standard deviation `deviation`."""
    a, b = -means / deviation, (1.0 - means) / deviation
    density = (np.exp(-0.5 * a * a) - np.exp(-0.5 * b * b)) / np.sqrt(2.0 * np.pi)
    return means * (ndtr(b) - ndtr(a)) + deviation * density + ndtr(-b)


def ratings_game(rng: np.random.Generator, taste: float, arms: int = 8, rank: int = 4, dim: int = 32) -> Game:
    """Return a random game whose rewards are ratings in [0, 1], from a matrix of low rank.

    The mean rating of user u for arm a is .6 + .05 b_a + .15 e_u + taste u_u^T v_a / sqrt(rank), with random levels b_a
    of the arm and e_u of the user, and random vectors u_u and v_a (rank,). Noise with standard deviation .2 is added,
    and the sum is clipped. The context is a noisy linear map of u_u, so it does not show the level e_u.
    """
    users, films = rng.standard_normal((ROUNDS, rank)), rng.standard_normal((arms, rank))
    rows = users @ rng.standard_normal((rank, dim)) + rng.standard_normal((ROUNDS, dim))
    level = 0.6 + 0.05 * rng.standard_normal(arms) + 0.15 * rng.standard_normal((ROUNDS, 1))
    means = level + taste * users @ films.T / np.sqrt(rank)
    ratings = np.clip(means + 0.2 * rng.standard_normal(means.shape), 0.0, 1.0)
    return bounded_game(rows, ratings, clipped_mean(means, 0.2), 0.0, 1.0)


def costs_game(rng: np.random.Generator, dim: int = 12, arms: int = 5) -> Game:
    """Return a random game whose rewards are negative costs in [-1, 0].

    Costs have Beta distributions, and the log odds of the mean cost are linear in the context.
    """
    rows, scores = linear_means(rng, dim, arms)
    expected = expit(0.4 * scores)
    return bounded_game(rows, -rng.beta(2.0 * expected, 2.0 - 2.0 * expected), -expected, -1.0, 0.0)


def jackpot_game(rng: np.random.Generator, contextual: bool, dim: int = 8, arms: int = 5) -> Game:
    """Return a random game in which one arm pays 50 with probability .1, else 0, and others uniform rewards in [0, 1].

    If `contextual` is True, another arm has the jackpot in rounds whose first feature is negative.
    """
    rounds = 2 * ROUNDS
    rows, rewards = rng.standard_normal((rounds, dim)), rng.uniform(size=(rounds, arms))
    expected = np.full((rounds, arms), 0.5)
    first, second = rng.choice(arms, 2, replace=False)
    arm = np.where(rows[:, 0] > 0.0, first, second) if contextual else np.full(rounds, first)
    rewards[np.arange(rounds), arm] = 50.0 * (rng.uniform(size=rounds) < 0.1)
    expected[np.arange(rounds), arm] = 5.0
    return bounded_game(rows, rewards, expected, 0.0, 50.0)


def outliers_game(rng: np.random.Generator) -> Game:
    """Return a random game with linear rewards, of which a few are replaced by 10^12 or -10^12.

    The context explains 30% of the variance of other rewards. Outliers are errors of measurement, so expected rewards
    do not include them.
    """
    game = continuous_game(rng, partial(linear_means, dim=10, arms=4), 0.3)
    signs = rng.choice([-1.0, 1.0], game.rewards.shape)
    replaced = rng.uniform(size=game.rewards.shape) < OUTLIER_RATE
    return game._replace(rewards=np.where(replaced, OUTLIER * signs, game.rewards))


def many_arms_game(rng: np.random.Generator, dim: int = 5, arms: int = 300) -> Game:
    """Return a random game with many arms, of which one pays 1 with probability .6, and the others with probability .1.

    `arms` is their number. Contexts (dim,) have no effect.
    """
    rounds = 1_000
    expected = np.full((rounds, arms), 0.1)
    expected[:, rng.integers(arms)] = 0.6
    rewards = (rng.uniform(size=expected.shape) < expected).astype(np.float64)
    return bounded_game(rng.standard_normal((rounds, dim)), rewards, expected, 0.0, 1.0)


GENERATED: dict[str, Callable[[np.random.Generator], Game]] = {
    "linear-02": partial(continuous_game, means=partial(linear_means, dim=10), explained=0.02),
    "linear-10": partial(continuous_game, means=linear_means, explained=0.1),
    "linear-30": partial(continuous_game, means=partial(linear_means, dim=60), explained=0.3),
    "steps-02": partial(continuous_game, means=step_means, explained=0.02),
    "steps-10": partial(continuous_game, means=step_means, explained=0.1),
    "steps-30": partial(continuous_game, means=step_means, explained=0.3),
    "arms-02": partial(continuous_game, means=constant_means, explained=0.02),
    "arms-10": partial(continuous_game, means=constant_means, explained=0.1),
    "arms-30": partial(continuous_game, means=constant_means, explained=0.3),
    "ratings-generated": partial(ratings_game, taste=0.1),
    "ratings-generated-weak": partial(ratings_game, taste=0.05),
    "costs-linear": costs_game,
    "jackpot": partial(jackpot_game, contextual=False),
    "jackpot-context": partial(jackpot_game, contextual=True),
    "outliers": outliers_game,
    "many-arms": many_arms_game,
}
