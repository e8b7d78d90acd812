"""What the learners with a budget share: at most B weighted examples, f = sum of a_i k(x_i, x)."""

from typing import Any, NamedTuple

import numpy as np

from onepass import check
from onepass.features.sketched_nystrom import mixed
from onepass.generic import compiled


class Budget(NamedTuple):
    """points (B, dim), weights (B,), near (B,): scratch, k(x_i, x) of the last x; precision: 1 / (2 width^2)."""

    points: np.ndarray
    weights: np.ndarray
    near: np.ndarray
    used: int
    precision: float


@compiled
def decided(budget, x):
    """f(x); leaves the kernel values in budget.near."""
    total = 0.0
    for i in range(budget.used):
        square = 0.0
        for j in range(x.size):
            gap = x[j] - budget.points[i, j]
            square += gap * gap
        budget.near[i] = np.exp(-budget.precision * square)
        total += budget.weights[i] * budget.near[i]
    return total


@compiled
def put(budget, place, x, weight):
    """An example at this place: the next free one, or instead of the one that is there."""
    for j in range(x.size):
        budget.points[place, j] = x[j]
    budget.weights[place] = weight
    used = max(budget.used, place + 1)
    return Budget(budget.points, budget.weights, budget.near, used, budget.precision)


@compiled
def some_place(budget, seed, turn):
    """The next free place, or a uniformly random one where there is none: a hash of the seed and the turn."""
    count = budget.weights.size
    if budget.used < count:
        return budget.used
    return np.int64(mixed(mixed(np.uint64(seed)) ^ np.uint64(turn)) % np.uint64(count))


@compiled
def kernel_sum(points, weights, used, x, precision):
    """Sum of weights_i exp(-precision ||x - x_i||^2)."""
    total = 0.0
    for i in range(used):
        square = 0.0
        for j in range(x.size):
            gap = x[j] - points[i, j]
            square += gap * gap
        total += weights[i] * np.exp(-precision * square)
    return total


def budgeted(count: int, dim: int, width: float) -> Budget:
    """Room for so many examples of this width, none yet."""
    return Budget(np.zeros((count, dim)), np.zeros(count), np.zeros(count), 0, 0.5 / width**2)


def sizes(budget: Any, width: Any) -> dict[str, Any]:
    """The checked parameters of every learner with a budget."""
    return {"budget": check.integer("budget", budget, 2), "width": check.positive("width", width)}
