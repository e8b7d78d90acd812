"""Arms of an arena that learn by Newton steps: what their estimator says of a row, and of a cut.

    A <- A + w x x^T,   theta <- theta + pull A^-1 x         (A^-1 of before)
    a cut: A <- A' <= A + rise I,   theta stays

In place of b an arm keeps theta, by the coordinates Q theta and what lies outside the span (arena.py): as much memory
as ridge regression on the same design. A rule is a `NamedTuple` with `arm_step` registered for it, and an estimator
whose `arm_learning()` gives ``ArmLearning(rule=NewtonSteps(rule), memory=m)`` learns in the arena.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from onepass.estimator.radii import Constants
from onepass.foundation.generic import generic


class NewtonSteps(NamedTuple):
    """rule: what `arm_step` is registered for."""

    rule: Any


class RidgeSums(NamedTuple):
    """An estimator whose arms are those of ridge regression, theta = A^-1 b, with a radius of its own.

    rule: what `radius_of_steps` is registered for.
    """

    rule: Any


@generic
def arm_step(
    rule: Any, memory: np.ndarray, dim: int, mean: float, square: float, t: int, reward: float
) -> tuple[float, float]:
    """(weight, pull) for the t-th row x of an arm, with mean x^T theta and square x^T A^-1 x of before, and its reward.

    memory: numbers of the arm, 0 at first, kept in place; dim: width of x. mean + pull square is the mean after the
    step, for weights that depend on it.
    """
    raise TypeError(f"arm_step is not defined for {type(rule).__name__}; register it with arm_step.for_state(...)")


@partial(generic, default=True)
def row_factor(rule: Any, memory: np.ndarray) -> float:
    """Return the factor by which the row just learned is kept, the last dim numbers of memory. Default: 0, not kept."""
    return 0.0


@partial(generic, default=True)
def pull_to_undo(rule: Any, memory: np.ndarray) -> float:
    """Return the pull along the first row, theta += pull A^-1 x, that must be undone now. Default: 0, none."""
    return 0.0


@partial(generic, default=True)
def unit_of_steps(rule: Any, memory: np.ndarray, rows: np.ndarray) -> float:
    """`contract.noise_unit` of all arms together: memory (n, m), rows learned (n,), below 1 where there is no arm."""
    return 1.0


@partial(generic, default=True)
def record_cut(rule: Any, memory: np.ndarray, rise: float, square: float) -> None:
    """Note that a cut has raised A by at most rise I, at ||theta||^2 = square. Default: nothing is noted."""


@partial(generic, default=True)
def radius_of_steps(rule: Any, memory: np.ndarray, gained: float, reg: float, constants: Constants) -> float:
    """Return the arm's confidence radius. Default: infinite, none is known.

    gained: log det A - log det(reg I) of what the arm began with; for `RidgeSums`: of what it has learned.
    """
    return np.inf
