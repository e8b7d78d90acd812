"""Acquisition by expected improvement: the choice of the best among many candidate points in a unit cube.

For a point x with posterior mean and standard deviation sigma, the expected improvement over the value `best` is

    EI(x) = sigma h((mean - best) / sigma),   h(z) = phi(z) + z Phi(z)

where phi and Phi are the density and the distribution function of the standard normal distribution. Candidates are
compared by log EI, which also ranks points far below the best. They are uniform points, neighbours of the best points
so far, and then, in rounds, neighbours of the best candidates. A neighbour moves some coordinates by normal steps of
several sizes. Coordinates that stand for categorical choices are drawn uniformly instead.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import erfcx, log_ndtr

MAX_MULTIPLICATIONS = 8e7  # per proposal: about 5 ms
MIN_CANDIDATES, MAX_CANDIDATES = 120, 1536
N_CENTRES = 5  # best points whose neighbours become candidates
LOCAL_ROUNDS = 3  # rounds of neighbours of the best candidates
MEAN_MOVES = 2.0  # coordinates that a neighbour moves, on average
STEP_SIZES = (0.2, 0.05, 0.01)  # standard deviations of steps, in units of the cube
STEP_DECAY = 0.3  # factor of the step sizes from round to round
FAR_Z = -1e6  # below this z, log h equals its leading term

Moments = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def log_improvement(means: np.ndarray, deviations: np.ndarray, best: float) -> np.ndarray:
    """Return the logarithm (n,) of the expected improvement over `best`, from posterior means and deviations (n,)."""
    z = (means - best) / deviations
    out = np.empty_like(z)
    near, far = z > -1.0, z < FAR_Z
    middle = ~near & ~far
    density = -0.5 * z * z - 0.5 * np.log(2.0 * np.pi)
    out[near] = np.log(np.exp(density[near]) + z[near] * np.exp(log_ndtr(z[near])))
    out[far] = density[far] - 2.0 * np.log(-z[far])
    w = z[middle]
    out[middle] = density[middle] + np.log1p(w * (np.pi / 2.0) ** 0.5 * erfcx(-w / 2.0**0.5))
    return out + np.log(deviations)


def draw_neighbours(
    centres: np.ndarray, count: int, scale: float, is_choice: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw `count` random points (count, dim) of the unit cube near the points `centres` (m, dim).

    The numbers of points per centre differ by at most one. `scale` multiplies the step sizes. `is_choice`
    (dim,) is True for coordinates whose values have no order; a step replaces such a value by a random one.
    """
    base = centres[np.arange(count) % len(centres)]
    moves = rng.random(base.shape) < MEAN_MOVES / base.shape[1]
    moves[np.arange(count), rng.integers(base.shape[1], size=count)] = True
    sizes = scale * np.array(STEP_SIZES)[rng.integers(len(STEP_SIZES), size=count)]
    steps = base + sizes[:, None] * rng.standard_normal(base.shape)
    steps = 1.0 - np.abs(1.0 - np.abs(steps) % 2.0)  # reflected at the edges
    return np.where(moves, np.where(is_choice, rng.random(base.shape), steps), base)


def best_candidate(
    moments: Moments, best: float, centres: np.ndarray, n_points: int, is_choice: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return the candidate (dim,) with the largest expected improvement.

    Parameters
    ----------
    moments : function
        Maps points (n, dim) of the unit cube to their posterior means and deviations (n,).
    best : float
        Value to improve on.
    centres : array of shape (m, dim)
        Best points so far, at least one.
    n_points : int
        Number of points on which the posterior is based. The more there are, the fewer candidates are compared.
    is_choice : boolean array of shape (dim,)
        True for coordinates whose values have no order.
    rng : numpy.random.Generator
        Source of the candidates.
    """
    count = int(min(max(MAX_MULTIPLICATIONS / max(n_points, 1) ** 2, MIN_CANDIDATES), MAX_CANDIDATES))
    uniform = rng.random((count // 3, centres.shape[1]))
    points = np.concatenate([uniform, draw_neighbours(centres, count // 3, 1.0, is_choice, rng)])
    scores = log_improvement(*moments(points), best)
    for turn in range(LOCAL_ROUNDS):
        top = np.argsort(-scores, kind="stable")[:N_CENTRES]
        near = draw_neighbours(points[top], count // (3 * LOCAL_ROUNDS), STEP_DECAY**turn, is_choice, rng)
        points = np.concatenate([points[top], near])
        scores = np.concatenate([scores[top], log_improvement(*moments(near), best)])
    return points[int(scores.argmax())]
