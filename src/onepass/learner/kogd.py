"""Kernelized online gradient descent without a budget (Kivinen, Smola and Williamson 2004): the reference.

    f = sum of a_i k(x_i, x);  a_i <- (1 - step reg) a_i,  and on a loss x joins with a = -step l'(f)

Cost O(n d) an example and O(n d) memory for n examples learned from.
"""

from typing import NamedTuple

import numpy as np

from onepass import check
from onepass.learner import contract
from onepass.learner.budget import kernel_sum
from onepass.learner.learner import Learner, common
from onepass.learner.losses import Loss, loss_named, slope


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


class KOGD(Learner):
    """Kernelized online gradient descent without a budget; see onepass.learner.kogd.

    width: of the kernel exp(-||x - y||^2 / (2 width^2)); step: eta; reg: lambda, by which weights shrink.

    >>> import onepass as op
    >>> learner = op.KOGD(width=1.0).partial_fit([[0.0], [1.0]], [-1.0, 1.0])
    >>> learner.predict([[0.1], [0.9]])
    array([-1.,  1.])
    """

    def __init__(
        self,
        *,
        width: float = 1.0,
        loss: str = "hinge",
        loss_width: float = 1.0,
        step: float = 0.2,
        reg: float = 0.0,
    ):
        self.params = common(width, loss, loss_width, step)
        self.params["reg"] = check.real("reg", reg)
        if not 0.0 <= self.params["reg"] * self.params["step"] < 1.0:
            raise ValueError(f"reg must be from 0 to below 1 / step, got {reg!r}")
        self._state = None

    def _begin(self, dim: int) -> KOGDState:
        p = self.params
        loss = loss_named(p["loss"], p["loss_width"])
        return KOGDState(np.zeros((16, dim)), np.zeros(16), 0, loss, p["step"], p["reg"], 0.5 / p["width"] ** 2)
