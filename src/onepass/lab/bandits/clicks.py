"""The experiments with clicks and counts, as data: E r = mu(x^T theta), mu logistic or exponential.

Ridge regression with and without a constant feature, for 0/1 rewards have a mean that no theta has at x = 0. All are
tuned on one grid; S is told to those that have a ball.
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
    Concatenate,
    Exact,
    FrequentDirections,
    Greedy,
    Identity,
    Intercept,
    OfflineGLM,
    Ridge,
)
from onepass.estimator.families import family_of, mean_of_scores
from onepass.lab.bandits.environments import BLOCK, Chunk, Decaying, Environment, assemble, unit
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


def paid(law: str, means: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Clicks or counts with these means."""
    if law == "poisson":
        return rng.poisson(means).astype(np.float64)
    return (rng.random(means.shape) < means).astype(np.float64)


class Responses:
    """New contexts of length 1 in every round, ||theta|| = size, and clicks or counts with mean mu(x^T theta).

    outliers: this share of the rewards is multiplied by 100 (counts that a broken counter repeats); means are those of
    the others.
    """

    def __init__(
        self, arms: int, dim: int, seed: int, size: float, law: str = "logistic", outliers: float = 0.0
    ) -> None:
        self.arms, self.dim, self.seed, self.law, self.outliers = arms, dim, seed, law, outliers
        self.theta = size * unit(stream(seed, 0).standard_normal(dim))

    def chunk(self, start: int, rounds: int) -> Chunk:
        return assemble(self.block, start, rounds)

    def block(self, number: int) -> Chunk:
        rng = stream(self.seed, number + 1)
        contexts = unit(rng.standard_normal((BLOCK, self.arms, self.dim)))
        means = of_scores(self.law, contexts @ self.theta)
        rewards = paid(self.law, means, rng)
        if self.outliers > 0.0:
            rewards *= np.where(rng.random(rewards.shape) < self.outliers, 100.0, 1.0)
        return Chunk(contexts, means, rewards)


class WideClicks:
    """`Decaying` contexts of 500 features, scores of standard deviation `size` / 2 or so, and clicks."""

    def __init__(self, arms: int, dim: int, seed: int, size: float) -> None:
        self.inner, self.seed, self.size = Decaying(arms, dim, seed, Gaussian(0.0)), seed, size
        self.arms, self.dim = arms, dim

    def chunk(self, start: int, rounds: int) -> Chunk:
        return assemble(self.block, start, rounds)

    def block(self, number: int) -> Chunk:
        contexts, scores, _ = self.inner.chunk(number * BLOCK, BLOCK)
        means = of_scores("logistic", self.size * scores)
        return Chunk(contexts, means, paid("logistic", means, stream(self.seed, number + 1, 1)))


class RareClicks:
    """Ten fixed arms whose click rates lie near 0.5%: the best has `best`, the second `rate`, the others less.

    An arm is a row of 8 features of length 1 and a constant; log odds are linear in it. Arms are drawn until their log
    odds spread by at most 1.5.
    """

    def __init__(self, seed: int, rate: float = 0.005, best: float = 0.01) -> None:
        self.arms, self.dim, self.seed = 10, 9, seed
        rng, top = stream(seed, 0), np.log(best / (1.0 - best))
        gap = top - np.log(rate / (1.0 - rate))
        while True:
            rows = unit(rng.standard_normal((10, 8)))
            along = rows @ rng.standard_normal(8)
            steep = gap / (along.max() - np.partition(along, -2)[-2])
            if steep * along.std() <= SPREAD:
                break
        self.rows = np.hstack([rows, np.ones((10, 1))])
        self.means = of_scores("logistic", top + steep * (along - along.max()))

    def chunk(self, start: int, rounds: int) -> Chunk:
        return assemble(self.block, start, rounds)

    def block(self, number: int) -> Chunk:
        contexts, means = np.tile(self.rows, (BLOCK, 1, 1)), np.tile(self.means, (BLOCK, 1))
        return Chunk(contexts, means, paid("logistic", means, stream(self.seed, number + 1)))


def of_scores(law: str, scores: np.ndarray) -> np.ndarray:
    """mu(z)."""
    return mean_of_scores(family_of(law), scores.ravel()).reshape(scores.shape)


def rounds_until_found(bandit: Any, environment: Environment, rounds: int) -> int:
    """After how many rounds, in blocks of 50, the best of fixed arms has the largest mean and keeps it."""
    last = 0
    for start in range(0, rounds, BLOCK):
        chunk = environment.chunk(start, BLOCK)
        bandit.play(chunk.contexts, chunk.rewards)
        if np.argmax(bandit.exploring(Greedy()).score(chunk.contexts[0])) != np.argmax(chunk.expected[0]):
            last = start + BLOCK
    return last


def RidgeWithConstant(*, dim: int, reg: float, exploration: float, seed: int = 0) -> Bandit:
    """Ridge UCB on contexts with a constant feature."""
    features = Concatenate(Identity(dim=dim), Intercept(dim=dim))
    return Bandit(Ridge(Exact(dim=dim + 1, reg=reg)), UCB(exploration), features=features, seed=seed, name="Ridge")


def Offline(*, dim: int, reg: float, exploration: float, family: str = "logistic", seed: int = 0) -> Bandit:
    """UCB on a generalized linear model that is fitted to all rows again in every round."""
    return Bandit(OfflineGLM(Exact(dim=dim, reg=reg), family=family), UCB(exploration), seed=seed, name="Offline")


def SketchedGLBOMD(*, dim: int, size: int, reg: float, exploration: float, seed: int = 0) -> Bandit:
    """GLB-OMD on a sketch of `size` rows."""
    design = FrequentDirections(dim=dim, size=size, reg=reg)
    return GLBOMD(dim=dim, design=design, exploration=exploration, seed=seed)


def SketchedRidge(*, dim: int, size: int, reg: float, exploration: float, seed: int = 0) -> Bandit:
    """Ridge UCB on the same sketch."""
    design = FrequentDirections(dim=dim, size=size, reg=reg)
    return Bandit(Ridge(design), UCB(exploration), seed=seed, name="SketchedRidge")


def policies(size: float, family: str = "logistic") -> tuple[Policy, ...]:
    """Every policy, told the size of theta where it has a ball."""
    told = {"family": family, **RULE}
    return (
        Policy("ridge UCB", OFUL, RULE),
        Policy("ridge UCB, constant", RidgeWithConstant, RULE),
        Policy("GLOC", "GLOC", {"parameter_bound": size, **told}),
        Policy("GLB-OMD, explicit", GLBOMD, {"implicit": False, **told}),
        Policy("GLB-OMD, step 1 + S", GLBOMD, {"step": 1.0 + size, "parameter_bound": size, **told}),
        Policy("GLB-OMD", GLBOMD, told),
        Policy("GLB-OMD, defaults", GLBOMD, {"family": family}, tuned=False),
        Policy("offline", Offline, told),
    )


def clicks(name: str, description: str, problem: Any, found: tuple[Policy, ...], rounds: int, seeds: int) -> Experiment:
    return Experiment(name, description, problem, found, rounds, seeds, grid=GRID)


def responses(size: float, law: str = "logistic", outliers: float = 0.0) -> Any:
    """The problem of a seed: 20 new arms a round, 8 features."""
    return partial(Responses, 20, 8, size=size, law=law, outliers=outliers)


SUITES = (
    clicks("clicks", "clicks, ||theta|| = 3: 8 features, 20 new arms", responses(3.0), policies(3.0), 3_000, 20),
    clicks("clicks-6", "the same, ||theta|| = 6", responses(6.0), policies(6.0), 3_000, 20),
    clicks(
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
    clicks(
        "rare-clicks",
        "click rates near 0.5%: ten fixed arms, 9 features",
        RareClicks,
        policies(6.0)[:-1],
        20_000,
        20,
    ),
    clicks("counts", "Poisson counts, ||theta|| = 2", responses(2.0, "poisson"), policies(2.0, "poisson"), 3_000, 20),
    clicks(
        "counts-outliers",
        "the same, one count in 100 times 100",
        responses(2.0, "poisson", 0.01),
        (
            *policies(2.0, "poisson")[:-1],
            *(Policy(f"GLB-OMD, clip {c:g}", GLBOMD, {"family": "poisson", "clip": c, **RULE}) for c in CLIPS),
        ),
        3_000,
        20,
    ),
)
