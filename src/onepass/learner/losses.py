"""Loss functions l(f, y) of a decision f and a target y, and their derivatives by f.

hinge                max(0, 1 - y f)                     classification: y = -1 or 1
squared hinge        max(0, 1 - y f)^2 / 2
logistic             log(1 + exp(-y f))
squared              (f - y)^2 / 2                        regression
huber                (f - y)^2 / 2 up to |f - y| = width, then linear
epsilon-insensitive  max(0, |f - y| - width)

One compiled function serves all of them; a loss is selected by its number.
"""

from typing import NamedTuple

import numpy as np

from onepass.foundation import check
from onepass.foundation.generic import compiled

OVERFLOW = 700.0  # exp of more than 709 is no number
STEPS = 60  # of Newton's method, at most; five are usual
CONVERGED = 1e-15  # of z: a step below that is the last one
CLASSIFICATION = ("hinge", "squared_hinge", "logistic")
REGRESSION = ("squared", "huber", "epsilon_insensitive")
HINGE, SQUARED_HINGE, LOGISTIC, SQUARED, HUBER, EPSILON = range(6)


class Loss(NamedTuple):
    """Loss function.

    - kind: number of the function: 0 hinge, 1 squared hinge, 2 logistic, 3 squared, 4 huber, 5 epsilon-insensitive.
    - width: width of the huber and epsilon-insensitive losses.
    """

    kind: int
    width: float


def make_loss(name: str, width: float, allowed: tuple[str, ...] = CLASSIFICATION + REGRESSION) -> Loss:
    """Return the loss with this name; raise ValueError if it is not allowed or the width is not positive."""
    known = CLASSIFICATION + REGRESSION
    return Loss(known.index(check.choice("loss", name, allowed)), check.positive("loss_width", width))


@compiled
def value(loss: Loss, f: float, y: float) -> float:
    """Return the loss l(f, y) of the decision f for the target y."""
    if loss.kind == HINGE:
        return max(0.0, 1.0 - y * f)
    if loss.kind == SQUARED_HINGE:
        return 0.5 * max(0.0, 1.0 - y * f) ** 2
    if loss.kind == LOGISTIC:
        return max(-y * f, 0.0) + np.log1p(np.exp(-abs(y * f)))
    gap = abs(f - y)
    if loss.kind == SQUARED:
        return 0.5 * gap * gap
    if loss.kind == HUBER:
        return 0.5 * gap * gap if gap <= loss.width else loss.width * (gap - 0.5 * loss.width)
    return max(0.0, gap - loss.width)


@compiled
def slope(loss: Loss, f: float, y: float) -> float:
    """Return the derivative dl/df of the loss l at the decision f for the target y.

    At a kink it is the one-sided derivative that is smaller in size.
    """
    if loss.kind == HINGE:
        return -y if y * f < 1.0 else 0.0
    if loss.kind == SQUARED_HINGE:
        return -y * max(0.0, 1.0 - y * f)
    if loss.kind == LOGISTIC:
        return -y / (1.0 + np.exp(min(y * f, OVERFLOW)))
    gap = f - y
    if loss.kind == SQUARED:
        return gap
    if loss.kind == HUBER:
        return min(max(gap, -loss.width), loss.width)
    return 0.0 if abs(gap) <= loss.width else np.sign(gap)


@compiled
def implicit_slope(loss: Loss, f: float, y: float, q: float) -> float:
    """Return the derivative of the loss l after an implicit step from the decision f, for the target y.

    The step leads to the f' that minimizes (f' - f)^2 / (2 q) + l(f', y), so that f' = f - q l'(f').
    """
    if loss.kind == HINGE:
        return -y * min(1.0, (1.0 - y * f) / q) if y * f < 1.0 else 0.0
    if loss.kind == SQUARED_HINGE:
        return -y * max(0.0, 1.0 - y * f) / (1.0 + q)
    if loss.kind == LOGISTIC:
        # z = y f' is the root of z - y f = q / (1 + e^z); where it is negative, -z is that of the same with -(y f + q).
        # Newton's steps climb to a root above 0 from below, and 1 + e^z <= 2 e^z gives base + x - log x below it.
        mirrored = y * f + 0.5 * q < 0.0
        base = -(y * f + q) if mirrored else y * f
        z, x = max(base, 0.0), np.log(0.5 * q) - base
        if x > 1.0:
            z = max(z, base + x - np.log(x))
        for _ in range(STEPS):
            p = 1.0 / (1.0 + np.exp(min(z, OVERFLOW)))
            move = (base + q * p - z) / (1.0 + q * p * (1.0 - p))
            z += move
            if abs(move) <= CONVERGED * max(1.0, z):
                break
        return -y / (1.0 + np.exp(min(-z if mirrored else z, OVERFLOW)))
    gap = (f - y) / (1.0 + q)
    if loss.kind == SQUARED:
        return gap
    if loss.kind == HUBER:
        return min(max(gap, -loss.width), loss.width)
    over = abs(f - y) - loss.width
    return np.sign(f - y) * min(1.0, over / q) if over > 0.0 else 0.0


@compiled
def step_curvature(loss: Loss, f: float, y: float, gradient: float) -> float:
    """Return the curvature of the loss that a Newton step uses at the decision f for the target y.

    It is 1 for squared losses, p (1 - p) for the logistic loss with p = |gradient|, width / max(|f - y|, width) for the
    huber loss, and gradient^2 for the hinge and epsilon-insensitive losses. `gradient` is the derivative of the loss.
    """
    if loss.kind == LOGISTIC:
        p = abs(gradient)
        return p * (1.0 - p)
    if loss.kind == HUBER:
        return loss.width / max(abs(f - y), loss.width)
    if loss.kind in (HINGE, EPSILON):
        return gradient * gradient
    return 1.0
