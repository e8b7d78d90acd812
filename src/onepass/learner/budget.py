"""Storage shared by learners with a budget: at most B weighted examples, with f(x) = sum of a_i k(x_i, x)."""

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
    """Examples x_i that a learner stores with weights a_i. They define its prediction f(x) = sum of a_i k(x_i, x).

    - points (B, dim): the rows x_i, of which the first `used` count.
    - weights (B,): the weights a_i.
    - kernel_values (B,): work array for the kernel k(x_i, x) of the latest row x.
    - precision: 1 / (2 width^2) of the Gaussian kernel.
    """

    points: np.ndarray
    weights: np.ndarray
    kernel_values: np.ndarray
    used: int
    precision: float


@copy_scratch.for_state(Budget)
def copy_scratch_budget(budget: Budget) -> Budget:
    return Budget(
        points=budget.points,
        weights=budget.weights,
        kernel_values=np.empty(budget.kernel_values.size),
        used=budget.used,
        precision=budget.precision,
    )


@compiled
def kernel_expansion(budget: Budget, x: np.ndarray) -> float:
    """Return f(x), the sum of weight times kernel over the stored examples, and write the kernels to kernel_values."""
    fill_gaussian(budget.points, budget.used, x, budget.precision, budget.kernel_values)
    total = 0.0
    for i in range(budget.used):
        total += budget.weights[i] * budget.kernel_values[i]
    return total


@compiled
def put_example(budget: Budget, place: int, x: np.ndarray, weight: float) -> Budget:
    """Store an example x with its weight at index `place`, which is the next free one or replaces another example."""
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
def double_room(budget: Budget) -> Budget:
    """Return the stored examples in arrays with room for twice as many."""
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
def free_or_random_index(budget: Budget, seed: int, turn: int) -> int | np.int64:
    """Return the next free index of the stored examples, or a uniformly random index if none is free.

    The random index is a hash of `seed` and of `turn`, the number of the draw.
    """
    count = budget.weights.size
    if budget.used < count:
        return budget.used
    return np.int64(hash_integer(hash_integer(np.uint64(seed)) ^ np.uint64(turn)) % np.uint64(count))


def make_budget(count: int, dim: int, width: float) -> Budget:
    """Return empty storage for `count` examples of `dim` columns, with a Gaussian kernel of this width."""
    return Budget(
        points=zeros(count, dim), weights=zeros(count), kernel_values=zeros(count), used=0, precision=0.5 / width**2
    )


def check_kernel_width(width: Any) -> float:
    """Return the width of a kernel as a float; raise ValueError if it or its square is not a finite positive number."""
    found = check.positive("width", width)
    if not LEAST_WIDTH <= found <= 1.0 / LEAST_WIDTH:
        raise ValueError(f"width must be from 1e-150 to 1e150, got {quote(width)}")
    return found


def check_sizes(budget: Any, width: Any) -> dict[str, Any]:
    """Return the checked parameters `budget` and `width`, which every learner with a budget has."""
    return {"budget": check.integer("budget", budget, 2), "width": check_kernel_width(width)}


def check_shrinkage(reg: Any, step: float) -> float:
    """Return `reg`, or raise ValueError unless it is from 0 to below 1 / step, since weights shrink by 1 - step reg."""
    found = check.real("reg", reg)
    if not 0.0 <= found * step < 1.0:
        raise ValueError(f"reg must be from 0 to below 1 / step, got {quote(reg)}")
    return found
