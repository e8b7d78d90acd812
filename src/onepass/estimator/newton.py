"""The online Newton step on any design: one gradient, one row of curvature, and a projection if theta leaves its ball.

A row x with derivative g of the loss and curvature w changes A and theta by

    A <- A + w x x^T,   theta <- theta - A^-1 g x,   then argmin over ||theta'|| <= S of ||theta' - theta||_A

By the formula of Sherman and Morrison, A^-1 x = A_old^-1 x / (1 + w x^T A_old^-1 x). The width of x follows from
A_old^-1 x as well, so a row takes one solve. If theta leaves the ball, the projection takes one decomposition of A and
a secular equation in one unknown. The one-pass estimators (Huber, truncation and medians) share this step.

Rows longer than sqrt(reg) / eps, with the rounding unit eps, leave no correct digits in the inverse, and a step may
then be arbitrarily long. A step that is too long for products of floats (`check.LARGEST`) is not taken, so theta stays
finite for all rows.
"""

import math
from typing import Any

import numpy as np

from onepass.design.contract import append, decay, regularization, solve, spectrum
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot, norm_limit, secular_shift


@compiled
def step_along(theta: np.ndarray, direction: np.ndarray, pull: float) -> bool:
    """Add pull * direction to theta in place and return True; do nothing and return False if numbers could overflow."""
    most, square = norm_limit(theta), 0.0
    for j in range(theta.size):
        entry = theta[j] + pull * direction[j]
        square += entry * entry
    if not square <= most * most:
        return False
    for j in range(theta.size):
        theta[j] += pull * direction[j]
    return True


@compiled
def assign_if_finite(theta: np.ndarray, found: np.ndarray) -> bool:
    """Copy `found` into theta and return True, or only return False if products with its entries could overflow."""
    most, square = norm_limit(theta), 0.0
    for j in range(theta.size):
        square += float(found[j]) * float(found[j])
    if not square <= most * most:
        return False
    for j in range(theta.size):
        theta[j] = found[j]
    return True


@compiled
def newton_step(
    design: Any, theta: np.ndarray, row: np.ndarray, direction: np.ndarray, pull: float, weight: float
) -> Any:
    """Move theta by pull * direction in place, add weight * x x^T for the row x to the design A, and return the design.

    `direction` is A^-1 x for A before the row.
    """
    scaled, size = np.empty_like(row), np.sqrt(weight)
    for j in range(row.size):
        scaled[j] = size * row[j]
    step_along(theta, direction, pull)
    return append(design, scaled)


@compiled
def step_on_squared_loss(
    design: Any, theta: np.ndarray, row: np.ndarray, direction: np.ndarray, target: float, weight: float
) -> Any:
    """Take a Newton step on the squared loss: theta += (target - x^T theta) A^-1 x in place, and A += weight x x^T.

    A is the design, and `direction` is A^-1 x for A before the row. Returns the design.
    """
    pull = (target - float(dot(row, theta))) / (1.0 + weight * max(float(dot(row, direction)), 0.0))
    return newton_step(design, theta, row, direction, pull, weight)


@compiled
def forget_rows(design: Any, theta: np.ndarray, factor: float) -> Any:
    """Make past rows count `factor` times: change theta in place, and return the design's new state.

    The design becomes A' = reg I + factor (A - reg I). theta minimizes ||. - theta||_A^2 / 2, of which the part reg / 2
    ||.||^2 does not come from data and stays. So A' theta' = factor A theta. As A' - factor A = (1 - factor) reg I, on
    sketches too, theta' = theta - (1 - factor) reg A'^-1 theta.
    """
    design = decay(design, factor)
    solved, share = solve(design, theta), (1.0 - factor) * regularization(design)
    for j in range(theta.size):
        theta[j] -= share * solved[j]
    return design


@compiled
def power_of_two(value: float) -> float:
    """Return the smallest power of two that is at least a positive number."""
    return math.ldexp(1.0, math.frexp(value)[1])


@compiled
def project_onto_ball(design: Any, theta: np.ndarray, bound: float) -> bool:
    """Project theta onto ||theta|| <= bound in the norm of the design A, in place; return True if theta was outside.

    The projection is theta' = (A + mu I)^-1 A theta with the mu at which ||theta'|| = bound, in the eigenvectors of A.
    """
    if not float(dot(theta, theta)) > bound * bound:
        return False
    values, vectors, rest = spectrum(design)
    return project_by_spectrum(values, vectors, rest, theta, bound)


@compiled
def project_by_spectrum(values: np.ndarray, vectors: np.ndarray, rest: float, theta: np.ndarray, bound: float) -> bool:
    """Project theta onto ||theta|| <= bound in the norm of a matrix with known spectrum, in place.

    values (k,) are its eigenvalues, vectors (k, dim) its eigenvectors as rows, and `rest` is the eigenvalue in all
    other directions. So that no square overflows, eigenvalues are divided by a power of two near the largest
    eigenvalue, and lengths by one near ||theta||. Returns True if theta was outside.
    """
    square = float(dot(theta, theta))
    if not square > bound * bound:
        return False
    inside = dot(vectors, theta)
    outside = dot(inside, vectors)
    total = 0.0
    for j in range(theta.size):
        outside[j] = theta[j] - outside[j]
    for j in range(theta.size):
        total += outside[j] * outside[j]
    steepest, parts, curvature = float(rest), np.empty(values.size + 1), np.empty(values.size + 1)
    for i in range(values.size):
        steepest = max(steepest, float(values[i]))
    unit, long, tiny = power_of_two(steepest), power_of_two(np.sqrt(square)), np.finfo(np.float64).tiny
    for i in range(values.size):
        parts[i], curvature[i] = inside[i] / long, max(values[i] / unit, tiny)
    parts[values.size], curvature[values.size] = np.sqrt(total) / long, max(rest / unit, tiny)
    shift = secular_shift(parts, curvature, max(bound / long, tiny))
    for i in range(values.size):
        inside[i] *= curvature[i] / (curvature[i] + shift)
    kept, rest = dot(inside, vectors), curvature[values.size] / (curvature[values.size] + shift)
    for j in range(theta.size):
        theta[j] = kept[j] + outside[j] * rest
    return True
