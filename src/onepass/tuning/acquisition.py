"""Where to try next: the point of the largest expected improvement among candidates in a unit cube.

    EI(x) = sigma h((mean - best) / sigma),   h(z) = phi(z) + z Phi(z)      as log EI: it ranks far from the best

Candidates are uniform points, neighbours of the best points so far, and then, in rounds, neighbours of the best
candidates. A neighbour moves some coordinates by normal steps of many sizes; those of choices are drawn anew.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import erfcx, log_ndtr

WORK = 8e7  # multiplications a proposal may cost: some 5 ms
FEWEST, LARGEST = 120, 1536  # candidates
NEAR = 5  # of the best points, whose neighbours are looked at
ROUNDS = 3  # of neighbours of the best candidates
MOVED = 2.0  # coordinates that a neighbour moves, on average
STEPS = (0.2, 0.05, 0.01)  # deviations of steps, in units of the cube
SHRINKS = 0.3  # of steps from round to round
FAR = -1e6  # of z, below which log h is its leading term

Moments = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def log_improvement(means: np.ndarray, deviations: np.ndarray, best: float) -> np.ndarray:
    """Return log EI of means and deviations (n,) above 0."""
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


def neighbours(
    centres: np.ndarray, count: int, scale: float, choices: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return points (count, dim) near centres (m, dim) in turn; choices (dim,): True where values have no order."""
    base = centres[np.arange(count) % len(centres)]
    moved = rng.random(base.shape) < MOVED / base.shape[1]
    moved[np.arange(count), rng.integers(base.shape[1], size=count)] = True
    sizes = scale * np.array(STEPS)[rng.integers(len(STEPS), size=count)]
    steps = base + sizes[:, None] * rng.standard_normal(base.shape)
    steps = 1.0 - np.abs(1.0 - np.abs(steps) % 2.0)  # reflected at the edges
    return np.where(moved, np.where(choices, rng.random(base.shape), steps), base)


def best_candidate(
    moments: Moments, best: float, centres: np.ndarray, size: int, choices: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return the candidate (dim,) of the largest expected improvement.

    Parameters
    ----------
    moments : function
        Posterior means and deviations (n,) at points (n, dim) of the unit cube.
    best : float
        Value to improve on.
    centres : array of shape (m, dim)
        Best points so far, at least one.
    size : int
        Number of points that the posterior rests on: the more there are, the fewer candidates are looked at.
    choices : boolean array of shape (dim,)
        True where the values of a coordinate have no order.
    rng : numpy.random.Generator
        Source of the candidates.
    """
    count = int(min(max(WORK / max(size, 1) ** 2, FEWEST), LARGEST))
    uniform = rng.random((count // 3, centres.shape[1]))
    points = np.concatenate([uniform, neighbours(centres, count // 3, 1.0, choices, rng)])
    scores = log_improvement(*moments(points), best)
    for turn in range(ROUNDS):
        top = np.argsort(-scores, kind="stable")[:NEAR]
        near = neighbours(points[top], count // (3 * ROUNDS), SHRINKS**turn, choices, rng)
        points = np.concatenate([points[top], near])
        scores = np.concatenate([scores[top], log_improvement(*moments(near), best)])
    return points[int(scores.argmax())]
