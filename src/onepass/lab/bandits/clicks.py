"""Experiments with clicks and counts, whose mean is mu(x^T theta) with a logistic or exponential function mu.

Ridge regression plays with and without a constant feature: without it, the mean of the rewards at x = 0, which is
mu(0), cannot be represented. All policies are tuned on one grid. Policies that keep theta in a ball are told its
radius.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from onepass import (
    GLBOMD,
    OFUL,
    UCB,
    Bandit,
    Exact,
    FrequentDirections,
    Greedy,
    Ridge,
)
from onepass.estimator import OfflineGLM
from onepass.estimator.families import family_of, mean_of_scores
from onepass.features import Concatenate, Identity, Intercept
from onepass.lab.bandits.environments import BLOCK, Blocks, Chunk, Decaying, Environment, normalize_rows
from onepass.lab.bandits.noise import Gaussian
from onepass.lab.bandits.study import Experiment
from onepass.lab.policy import Policy
from onepass.lab.seeds import stream

GRID: Mapping[str, Sequence[float]] = {
    "exploration": (0.0, 0.1, 0.2, 0.4, 0.8, 1.6),
    "reg": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
}
RULE = {"reg": 0.3, "exploration": 0.4}
CLIPS = (0.5, 1.0, 2.0)
SPREAD = 1.5  # of log odds: rates differ by factors of some exp(1.5)


def _draw_rewards(law: str, means: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw one click (0 or 1) or count for every entry of `means`, its expected value.

    `law` is "logistic" for clicks or "poisson" for counts.
    """
    if law == "poisson":
        return rng.poisson(means).astype(np.float64)
    return (rng.random(means.shape) < means).astype(np.float64)


class Responses(Blocks):
    """Problem with `arms` new contexts of length 1 in every round, and rewards that are clicks or counts.

    The mean reward is mu(x^T theta). `law` selects the logistic function mu and clicks ("logistic"), or the exponential
    function and Poisson counts ("poisson"). `size` is the length of theta. A share `outliers` of the rewards is
    multiplied by 100, as if a counter were broken. Expected rewards do not include these outliers.
    """

    def __init__(
        self, arms: int, dim: int, seed: int, size: float, law: str = "logistic", outliers: float = 0.0
    ) -> None:
        self.arms, self.dim, self.seed, self.law, self.outliers = arms, dim, seed, law, outliers
        self.theta = size * normalize_rows(stream(seed, 0).standard_normal(dim))

    def block(self, number: int) -> Chunk:
        rng = stream(self.seed, number + 1)
        contexts = normalize_rows(rng.standard_normal((BLOCK, self.arms, self.dim)))
        means = _mean_rewards(self.law, contexts @ self.theta)
        rewards = _draw_rewards(self.law, means, rng)
        if self.outliers > 0.0:
            rewards *= np.where(rng.random(rewards.shape) < self.outliers, 100.0, 1.0)
        return Chunk(contexts, means, rewards)


class WideClicks(Blocks):
    """Problem with clicks on contexts with `dim` features, many of them, which are drawn as in `Decaying`.

    The log odds of a click are `size` times the mean rewards of `Decaying`. Their standard deviation is about `size` /
    2.
    """

    def __init__(self, arms: int, dim: int, seed: int, size: float) -> None:
        self.inner, self.seed, self.size = Decaying(arms, dim, seed, Gaussian(0.0)), seed, size
        self.arms, self.dim = arms, dim

    def block(self, number: int) -> Chunk:
        contexts, scores, _ = self.inner.chunk(number * BLOCK, BLOCK)
        means = _mean_rewards("logistic", self.size * scores)
        return Chunk(contexts, means, _draw_rewards("logistic", means, stream(self.seed, number + 1, 1)))


class RareClicks(Blocks):
    """Problem with ten fixed arms that are clicked with probabilities near 0.5%.

    `best` is the click rate of the best arm, and `rate` the click rate of the second; all others have lower rates. An
    arm has 8 features, scaled to length 1, and a constant; log odds of a click are linear in them. Arms are drawn until
    the standard deviation of their log odds is at most 1.5.
    """

    def __init__(self, seed: int, rate: float = 0.005, best: float = 0.01) -> None:
        self.arms, self.dim, self.seed = 10, 9, seed
        rng, top = stream(seed, 0), np.log(best / (1.0 - best))
        gap = top - np.log(rate / (1.0 - rate))
        while True:
            rows = normalize_rows(rng.standard_normal((10, 8)))
            along = rows @ rng.standard_normal(8)
            steep = gap / (along.max() - np.partition(along, -2)[-2])
            if steep * along.std() <= SPREAD:
                break
        self.rows = np.hstack([rows, np.ones((10, 1))])
        self.means = _mean_rewards("logistic", top + steep * (along - along.max()))

    def block(self, number: int) -> Chunk:
        contexts, means = np.tile(self.rows, (BLOCK, 1, 1)), np.tile(self.means, (BLOCK, 1))
        return Chunk(contexts, means, _draw_rewards("logistic", means, stream(self.seed, number + 1)))


def _mean_rewards(law: str, scores: np.ndarray) -> np.ndarray:
    """Return the mean rewards mu(z) of the scores z = x^T theta.

    mu is the logistic function if `law` is "logistic", and the exponential function if it is "poisson".
    """
    return mean_of_scores(family_of(law), scores.ravel()).reshape(scores.shape)


def rounds_until_found(bandit: Any, environment: Environment, rounds: int) -> int:
    """Play a bandit, and return the last round at which the arm with the largest estimate was not the best arm.

    The bandit plays `rounds` rounds of the environment, whose arms are fixed. Estimates are compared every 50 rounds.
    The result is 0 if the best arm always had the largest estimate. A result of `rounds` or more means that the best
    arm was not found.
    """
    last = 0
    for start in range(0, rounds, BLOCK):
        chunk = environment.chunk(start, BLOCK)
        bandit.play(chunk.contexts, chunk.rewards)
        if np.argmax(bandit.with_exploration(Greedy()).score(chunk.contexts[0])) != np.argmax(chunk.expected[0]):
            last = start + BLOCK
    return last


def RidgeWithConstant(*, dim: int, reg: float, exploration: float, seed: int = 0) -> Bandit:
    """Return a UCB bandit with ridge regression on `dim` features and an additional constant feature.

    `reg` is the ridge penalty, and `exploration` the multiplier of the width.
    """
    features = Concatenate(Identity(dim=dim), Intercept(dim=dim))
    return Bandit(Ridge(Exact(dim=dim + 1, reg=reg)), UCB(exploration), features=features, seed=seed, name="Ridge")


def Offline(*, dim: int, reg: float, exploration: float, family: str = "logistic", seed: int = 0) -> Bandit:
    """Return a UCB bandit on a generalized linear model that is fitted to all rows again in every round.

    `reg` is the ridge penalty, `exploration` the multiplier of the width, and `family` the distribution of rewards.
    """
    return Bandit(OfflineGLM(Exact(dim=dim, reg=reg), family=family), UCB(exploration), seed=seed, name="Offline")


def SketchedGLBOMD(*, dim: int, size: int, reg: float, exploration: float, seed: int = 0) -> Bandit:
    """Return the bandit `GLBOMD` on a Frequent Directions sketch of `size` rows.

    `reg` is the ridge penalty, and `exploration` the multiplier of the width.
    """
    design = FrequentDirections(dim=dim, size=size, reg=reg)
    return GLBOMD(dim=dim, design=design, exploration=exploration, seed=seed)


def SketchedRidge(*, dim: int, size: int, reg: float, exploration: float, seed: int = 0) -> Bandit:
    """Return a UCB bandit with ridge regression on a Frequent Directions sketch of `size` rows.

    `reg` is the ridge penalty, and `exploration` the multiplier of the width.
    """
    design = FrequentDirections(dim=dim, size=size, reg=reg)
    return Bandit(Ridge(design), UCB(exploration), seed=seed, name="SketchedRidge")


def policies(size: float, family: str = "logistic") -> tuple[Policy, ...]:
    """Return all policies for clicks ("logistic") or counts ("poisson"), as `family` says.

    `size` is the length of the true parameter theta, which some algorithms are given as a bound.
    """
    options = {"family": family, **RULE}
    return (
        Policy("ridge UCB", OFUL, RULE),
        Policy("ridge UCB, constant", RidgeWithConstant, RULE),
        Policy("GLOC", "GLOC", {"parameter_bound": size, **options}),
        Policy("GLB-OMD, explicit", GLBOMD, {"implicit": False, **options}),
        Policy("GLB-OMD, step 1 + S", GLBOMD, {"step": 1.0 + size, "parameter_bound": size, **options}),
        Policy("GLB-OMD", GLBOMD, options),
        Policy("GLB-OMD, defaults", GLBOMD, {"family": family}, tuned=False),
        Policy("offline", Offline, options),
    )


def _click_experiment(
    name: str, description: str, problem: Any, found: tuple[Policy, ...], rounds: int, seeds: int
) -> Experiment:
    return Experiment(name, description, problem, found, rounds, seeds, grid=GRID)


def _response_problem(size: float, law: str = "logistic", outliers: float = 0.0) -> Any:
    """Return the function from a seed to a problem with 20 new arms in every round and 8 features.

    `size`, `law` and `outliers` are arguments of `Responses`.
    """
    return partial(Responses, 20, 8, size=size, law=law, outliers=outliers)


SUITES = (
    _click_experiment(
        "clicks", "clicks, ||theta|| = 3: 8 features, 20 new arms", _response_problem(3.0), policies(3.0), 3_000, 20
    ),
    _click_experiment("clicks-6", "the same, ||theta|| = 6", _response_problem(6.0), policies(6.0), 3_000, 20),
    _click_experiment(
        "clicks-sketched",
        "clicks on wide contexts of decaying spectrum: 500 features, 20 new arms a round",
        partial(WideClicks, 20, 500, size=6.0),
        (
            Policy("ridge UCB", OFUL, RULE),
            Policy("ridge UCB, FD 50", SketchedRidge, {"size": 50, **RULE}),
            Policy("GLB-OMD", GLBOMD, RULE),
            Policy("GLB-OMD, FD 50", SketchedGLBOMD, {"size": 50, **RULE}),
        ),
        2_000,
        10,
    ),
    _click_experiment(
        "rare-clicks",
        "click rates near 0.5%: ten fixed arms, 9 features",
        RareClicks,
        policies(6.0)[:-1],
        20_000,
        20,
    ),
    _click_experiment(
        "counts",
        "Poisson counts, ||theta|| = 2",
        _response_problem(2.0, "poisson"),
        policies(2.0, "poisson"),
        3_000,
        20,
    ),
    _click_experiment(
        "counts-outliers",
        "the same, one count in 100 times 100",
        _response_problem(2.0, "poisson", 0.01),
        (
            *policies(2.0, "poisson")[:-1],
            *(Policy(f"GLB-OMD, clip {c:g}", GLBOMD, {"family": "poisson", "clip": c, **RULE}) for c in CLIPS),
        ),
        3_000,
        20,
    ),
)
