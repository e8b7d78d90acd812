"""Update rules for arms of an arena that learn by Newton steps: the changes by a row and by a truncation.

A row x with weight w changes the arm's matrix A and its parameter theta by

    A <- A + w x x^T,   theta <- theta + pull A^-1 x         (A before the row)
    a truncation: A <- A' <= A + rise I,   theta stays

In place of the moment b, an arm stores theta by its coordinates Q theta and its part outside the span (arena.py). This
takes as much memory as ridge regression on the same design. A rule is a `NamedTuple` with `arm_step` registered for it.
An estimator whose `arm_learning()` returns ``ArmLearning(rule=NewtonSteps(rule), memory=m)`` learns in the arena.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from onepass.estimator.radii import Constants
from onepass.foundation.generic import generic


class NewtonSteps(NamedTuple):
    """Marker that every arm's parameter is learned by Newton steps, computed by `arm_step` for the type of `rule`."""

    rule: Any


class RidgeSums(NamedTuple):
    """Marker that every arm learns by ridge regression, theta = A^-1 b, with a confidence radius of its own.

    `radius_of_steps` is registered for the type of `rule`.
    """

    rule: Any


@generic
def arm_step(
    rule: Any, memory: np.ndarray, dim: int, mean: float, square: float, t: int, reward: float
) -> tuple[float, float]:
    """Return two numbers w and pull for the t-th row x of an arm: A += w x x^T and theta += pull A^-1 x learn the row.

    `mean` is x^T theta and `square` is x^T A^-1 x, both before the row. memory (m,) holds numbers that the rule keeps
    for the arm, 0 at first, and is updated in place. `dim` is the width of x. A weight may depend on the predicted
    reward after the step, which is mean + pull square.
    """
    raise TypeError(f"arm_step is not defined for {type(rule).__name__}; register it with arm_step.for_state(...)")


@partial(generic, default=True)
def row_factor(rule: Any, memory: np.ndarray) -> float:
    """Return the factor with which the row just learned is stored in the last dim numbers of `memory`.

    With the default of 0 it is not stored.
    """
    return 0.0


@partial(generic, default=True)
def pull_to_undo(rule: Any, memory: np.ndarray) -> float:
    """Return the factor p for which theta -= p A^-1 x undoes what an arm learned from its stored row x. Default: 0.

    `memory` holds the numbers that the rule keeps for the arm.
    """
    return 0.0


@partial(generic, default=True)
def unit_of_steps(rule: Any, memory: np.ndarray, rows: np.ndarray) -> float:
    """Return the noise scale of all arms together, by which exploration is multiplied (`contract.noise_unit`).

    memory (n, m) holds the numbers kept for each arm, and rows (n,) the number of rows that it has learned. Entries
    with fewer than one row are left out.
    """
    return 1.0


@partial(generic, default=True)
def record_cut(rule: Any, memory: np.ndarray, rise: float, square: float) -> None:
    """Record in an arm's `memory` that a truncation raised its design A by at most rise I.

    `square` is ||theta||^2 at that time. By default nothing is recorded.
    """


@partial(generic, default=True)
def radius_of_steps(rule: Any, memory: np.ndarray, gained: float, reg: float, constants: Constants) -> float:
    """Return the arm's confidence radius; by default infinity, because none is known.

    `memory` holds the numbers that the rule keeps for the arm. `gained` is log det A - log det(reg I) for the design A
    that the arm began with; for `RidgeSums`, A is its present design. `reg` is the regularization, and `constants`
    holds the bounds of radii.py.
    """
    return np.inf
