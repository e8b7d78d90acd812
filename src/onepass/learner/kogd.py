"""Kernelized online gradient descent without a budget (Kivinen, Smola and Williamson 2004): the reference.

    f = sum of a_i k(x_i, x);  a_i <- (1 - step reg) a_i,  and on a loss x joins with a = -step l'(f)

Cost O(n d) an example and O(n d) memory for n examples learned from.
"""

from typing import NamedTuple

import numpy as np

from onepass.learner import contract
from onepass.learner.forks import kernel_sum
from onepass.learner.losses import Loss, slope


class KOGDState(NamedTuple):
    """points (capacity, dim), weights (capacity,), `used` of them; precision: 1 / (2 width^2)."""

    points: np.ndarray
    weights: np.ndarray
    used: int
    loss: Loss
    step: float
    reg: float
    precision: float


@contract.decision.for_state(KOGDState)
def decision(state, x):
    return kernel_sum(state.points, state.weights, state.used, x, state.precision)


@contract.step.for_state(KOGDState)
def step(state, x, y):
    f = contract.decision(state, x)
    gradient = slope(state.loss, f, y)
    if state.reg > 0.0:
        for i in range(state.used):
            state.weights[i] *= 1.0 - state.step * state.reg
    if gradient == 0.0:
        return state, f
    points, weights, used = state.points, state.weights, state.used
    if used == points.shape[0]:
        points, weights = np.zeros((2 * used, x.size)), np.zeros(2 * used)
        for i in range(used):
            weights[i] = state.weights[i]
            for j in range(x.size):
                points[i, j] = state.points[i, j]
    for j in range(x.size):
        points[used, j] = x[j]
    weights[used] = -state.step * gradient
    return KOGDState(points, weights, used + 1, state.loss, state.step, state.reg, state.precision), f
