"""The online Newton step, on any design: one gradient, one row of curvature, and the ball if it is left.

    A <- A + w x x^T,   theta <- theta - A^-1 g x,   then argmin over ||theta'|| <= S of ||theta' - theta||_A

By Sherman and Morrison A^-1 x = A_old^-1 x / (1 + w x^T A_old^-1 x), and A_old^-1 x gives the width of x as well: one
solve a row. The last step costs nothing while theta is inside the ball, else one decomposition of A and a secular
equation in one unknown. Shared by the one-pass estimators: Huber, truncation, medians.
"""

import numpy as np

from onepass.design.contract import append, spectrum
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot, secular_shift


@compiled
def newton_step(design, theta, row, direction, pull, weight):
    """theta += pull * direction in place, A += weight x x^T; returns the design. direction: A_old^-1 x."""
    scaled, size = np.empty_like(row), np.sqrt(weight)
    for j in range(row.size):
        theta[j] += pull * direction[j]
        scaled[j] = size * row[j]
    return append(design, scaled)


@compiled
def squared_step(design, theta, row, direction, target, weight):
    """The step on the squared loss: theta goes by A^-1 (target - x^T theta) x. direction: A_old^-1 x."""
    pull = (target - float(dot(row, theta))) / (1.0 + weight * max(float(dot(row, direction)), 0.0))
    return newton_step(design, theta, row, direction, pull, weight)


@compiled
def into_ball(design, theta, bound):
    """The A-norm projection of theta on ||theta|| <= bound, in place; whether it was outside.

    theta' = (A + mu I)^-1 A theta with the mu at which ||theta'|| = bound, in the eigenvectors of A.
    """
    if not dot(theta, theta) > bound * bound:
        return False
    values, vectors, rest = spectrum(design)
    inside = dot(vectors, theta)
    outside = dot(inside, vectors)
    total = 0.0
    for j in range(theta.size):
        outside[j] = theta[j] - outside[j]
        total += outside[j] * outside[j]
    weighted, curvature = np.empty(values.size + 1), np.empty(values.size + 1)
    for i in range(values.size):
        weighted[i], curvature[i] = values[i] * inside[i], values[i]
    weighted[values.size], curvature[values.size] = rest * np.sqrt(total), rest
    shift = secular_shift(weighted, curvature, bound)
    for i in range(values.size):
        inside[i] *= values[i] / (values[i] + shift)
    kept = dot(inside, vectors)
    for j in range(theta.size):
        theta[j] = kept[j] + outside[j] * (rest / (rest + shift))
    return True
