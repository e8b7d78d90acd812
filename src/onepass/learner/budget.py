"""What the learners with a budget share: at most B weighted examples, f = sum of a_i k(x_i, x)."""

from typing import Any, NamedTuple

import numpy as np

from onepass.features.contract import copy_scratch
from onepass.features.landmarks import fill_gaussian
from onepass.features.sketched_nystrom import hash_integer
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import double_capacity
from onepass.foundation.state import zeros

LEAST_WIDTH = 1e-150  # of a kernel: its square, and the square's inverse, are numbers


class Budget(NamedTuple):
    """points (B, dim), weights (B,), near (B,): scratch, k(x_i, x) of the last x; precision: 1 / (2 width^2)."""

    points: np.ndarray
    weights: np.ndarray
    kernel_values: np.ndarray
    used: int
    precision: float


@copy_scratch.for_state(Budget)
def copy_scratch_budget(budget):
    return Budget(
        points=budget.points,
        weights=budget.weights,
        kernel_values=np.empty(budget.kernel_values.size),
        used=budget.used,
        precision=budget.precision,
    )


@compiled
def kernel_expansion(budget, x):
    """f(x); leaves the kernel values in budget.kernel_values."""
    fill_gaussian(budget.points, budget.used, x, budget.precision, budget.kernel_values)
    total = 0.0
    for i in range(budget.used):
        total += budget.weights[i] * budget.kernel_values[i]
    return total


@compiled
def put_example(budget, place, x, weight):
    """Put an example at a place: the next free one, or in place of another example."""
    for j in range(x.size):
        budget.points[place, j] = x[j]
    budget.weights[place] = weight
    used = max(budget.used, place + 1)
    return Budget(
        points=budget.points,
        weights=budget.weights,
        kernel_values=budget.kernel_values,
        used=used,
        precision=budget.precision,
    )


@compiled
def double_room(budget):
    """Return the examples with room for twice as many."""
    weights = np.zeros(2 * budget.weights.size)
    for i in range(budget.used):
        weights[i] = budget.weights[i]
    return Budget(
        points=double_capacity(budget.points),
        weights=weights,
        kernel_values=np.zeros(weights.size),
        used=budget.used,
        precision=budget.precision,
    )


@compiled
def free_or_random_index(budget, seed, turn):
    """Return the next free place, or a uniformly random one if there is none: a hash of the seed and the turn."""
    count = budget.weights.size
    if budget.used < count:
        return budget.used
    return np.int64(hash_integer(hash_integer(np.uint64(seed)) ^ np.uint64(turn)) % np.uint64(count))


def make_budget(count: int, dim: int, width: float) -> Budget:
    """Room for so many examples of this width, none yet."""
    return Budget(
        points=zeros(count, dim), weights=zeros(count), kernel_values=zeros(count), used=0, precision=0.5 / width**2
    )


def check_kernel_width(width: Any) -> float:
    """Return the checked width of a kernel, whose square must be a number."""
    found = check.positive("width", width)
    if not LEAST_WIDTH <= found <= 1.0 / LEAST_WIDTH:
        raise ValueError(f"width must be from 1e-150 to 1e150, got {quote(width)}")
    return found


def check_sizes(budget: Any, width: Any) -> dict[str, Any]:
    """Return the checked parameters of every learner with a budget."""
    return {"budget": check.integer("budget", budget, 2), "width": check_kernel_width(width)}


def check_shrinkage(reg: Any, step: float) -> float:
    """Return the checked reg of weights that shrink by 1 - step reg."""
    found = check.real("reg", reg)
    if not 0.0 <= found * step < 1.0:
        raise ValueError(f"reg must be from 0 to below 1 / step, got {quote(reg)}")
    return found
