"""Where to try next: the settings of the largest expected improvement among candidates.

    EI(x) = sigma h((mean - best) / sigma),   h(z) = phi(z) + z Phi(z)      as log EI: it ranks far from the best

Candidates: uniform ones, neighbours of the best points so far, and then, in rounds, neighbours of the best candidates;
a neighbour moves some settings by normal steps of many sizes, or to another choice. With pending trials the posterior
is that in which each paid its mean: variances do not depend on rewards, so the widths are exactly those after these
trials, whatever they pay (hallucinated updates: Desautels, Krause and Burdick 2014).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import erfcx, log_ndtr
from scipy.stats import qmc

from onepass.tuning.space import Category, Settings, Space

WORK = 8e7  # multiplications a proposal may cost: some 5 ms
FEWEST, LARGEST = 120, 1536  # candidates
NEAR = 5  # of the best points, whose neighbours are looked at
ROUNDS = 3  # of neighbours of the best candidates
MOVED = 2.0  # settings that a neighbour moves, on average
STEPS = (0.2, 0.05, 0.01)  # deviations of steps, in units of the cube
SHRINKS = 0.3  # of steps from round to round
TRIES = 50  # draws for one that a constraint allows, and times as many candidates as are wanted
WAY_OUT = "allow more, or give a space that fits"
FAR = -1e6  # of z, below which log h is its leading term

Allowed = Callable[[Settings], bool]


def log_improvement(means: np.ndarray, deviations: np.ndarray, best: float) -> np.ndarray:
    """log EI of means and deviations (n,) above 0."""
    z = (means - best) / deviations
    out = np.empty_like(z)
    near, far = z > -1.0, z < FAR
    middle = ~near & ~far
    density = -0.5 * z * z - 0.5 * np.log(2.0 * np.pi)
    out[near] = np.log(np.exp(density[near]) + z[near] * np.exp(log_ndtr(z[near])))
    out[far] = density[far] - 2.0 * np.log(-z[far])
    w = z[middle]
    out[middle] = density[middle] + np.log1p(w * (np.pi / 2.0) ** 0.5 * erfcx(-w / 2.0**0.5))
    return out + np.log(deviations)


class Candidates(NamedTuple):
    """Settings that may be looked at, as shares (n, names) of their ranges."""

    space: Space
    allowed: Allowed | None
    rng: np.random.Generator

    def keep(self, shares: np.ndarray) -> np.ndarray:
        """Those of shares (n, names) that are allowed."""
        if self.allowed is None:
            return shares
        return shares[[bool(self.allowed(self.space.settings(one))) for one in shares]]

    def uniform(self, count: int) -> np.ndarray:
        """Shares of uniform settings, (count, names)."""
        return self.keep(self.rng.random((count, len(self.space.names))))

    def around(self, centres: np.ndarray, count: int, scale: float) -> np.ndarray:
        """Shares of neighbours, (count, names), of centres (m, names) in turn."""
        base = centres[np.arange(count) % len(centres)]
        moved = self.rng.random(base.shape) < MOVED / base.shape[1]
        moved[np.arange(count), self.rng.integers(base.shape[1], size=count)] = True
        sizes = scale * np.array(STEPS)[self.rng.integers(len(STEPS), size=count)]
        steps = base + sizes[:, None] * self.rng.standard_normal(base.shape)
        steps = 1.0 - np.abs(1.0 - np.abs(steps) % 2.0)  # reflected at the edges
        chosen = np.array([isinstance(one, Category) for one in self.space.dimensions.values()])
        steps = np.where(chosen, self.rng.random(base.shape), steps)
        return self.keep(np.where(moved, steps, base))


def started(candidates: Candidates, seed: int, drawn: int) -> tuple[Settings, int]:
    """The next point of a scrambled Sobol sequence that is allowed, after so many, and how many were drawn then."""
    sequence = qmc.Sobol(len(candidates.space.names), seed=np.random.default_rng([seed, 1]))
    if drawn:
        sequence.fast_forward(drawn)
    for count in range(drawn + 1, drawn + 1 + TRIES * FEWEST):
        shares = sequence.random()
        if len(candidates.keep(shares)):
            return candidates.space.settings(shares[0]), count
    raise none_left()


def none_left() -> ValueError:
    """What to say where a constraint allows nothing."""
    return ValueError(f"allowed refuses all of {TRIES * FEWEST:,} settings that were drawn; {WAY_OUT}")


def proposed(
    candidates: Candidates,
    posterior: Callable[[np.ndarray], Any],
    best: float,
    centres: np.ndarray,
    dictionary: int,
) -> np.ndarray:
    """The shares (names,) of the largest expected improvement; ValueError where a constraint allowed none.

    posterior: means and deviations of rows; best: what is to be improved on; centres (m, names): shares of the best
    points; dictionary: points that the posterior rests on.
    """

    def scored(shares: np.ndarray) -> np.ndarray:
        means, deviations = posterior(candidates.space.rows(shares))
        return log_improvement(means, deviations, best)

    count = int(min(max(WORK / max(dictionary, 1) ** 2, FEWEST), LARGEST))
    shares = candidates.uniform(count // 3)
    if len(centres):
        shares = np.concatenate([shares, candidates.around(centres, count // 3, 1.0)])
    for _ in range(TRIES):
        if len(shares):
            break
        shares = candidates.uniform(count)
    if not len(shares):
        raise none_left()
    scores = scored(shares)
    for turn in range(ROUNDS):
        top = np.argsort(-scores, kind="stable")[:NEAR]
        near = candidates.around(shares[top], count // (3 * ROUNDS), SHRINKS**turn)
        shares = np.concatenate([shares[top], near])
        scores = np.concatenate([scores[top], scored(near)]) if len(near) else scores[top]
    return shares[int(scores.argmax())]
