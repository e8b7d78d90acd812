"""Kernelized online gradient descent without a budget (Kivinen, Smola and Williamson 2004): the reference.

    f = sum of a_i k(x_i, x)
    every example    a_i <- (1 - step reg) a_i
    on a loss l      x is stored with a = -step l'(f)

For n stored examples, an example costs O(n d), and the memory is O(n d).
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.features.contract import copy_scratch
from onepass.foundation.registry import savable
from onepass.learner import contract
from onepass.learner.budget import Budget, check_shrinkage, double_room, kernel_expansion, make_budget, put_example
from onepass.learner.consistency import growing_budget_fits
from onepass.learner.explanation import Reason, budget_terms
from onepass.learner.learner import Learner, check_common
from onepass.learner.losses import Loss, make_loss, slope

ROOM = 16  # initial capacity in examples; full arrays double


class KOGDState(NamedTuple):
    """State of `KOGD`: `budget` holds every example learned from, in arrays that double when they are full.

    The other fields are arguments of `KOGD`.
    """

    budget: Budget
    loss: Loss
    step: float
    reg: float


@copy_scratch.for_state(KOGDState)
def copy_scratch_kogd(state: KOGDState) -> KOGDState:
    return KOGDState(budget=copy_scratch(state.budget), loss=state.loss, step=state.step, reg=state.reg)


@contract.decision.for_state(KOGDState)
def decision(state: KOGDState, x: np.ndarray) -> float:
    return kernel_expansion(state.budget, x)


@contract.step.for_state(KOGDState)
def step(state: KOGDState, x: np.ndarray, y: float) -> tuple[KOGDState, float]:
    budget = state.budget
    f = kernel_expansion(budget, x)
    gradient = slope(state.loss, f, y)
    if state.reg > 0.0:
        for i in range(budget.used):
            budget.weights[i] *= 1.0 - state.step * state.reg
    if gradient == 0.0:
        return state, f
    if budget.used == budget.weights.size:
        budget = double_room(budget)
    return KOGDState(
        budget=put_example(budget, budget.used, x, -state.step * gradient),
        loss=state.loss,
        step=state.step,
        reg=state.reg,
    ), f


@savable
class KOGD(Learner):
    """Gradient descent with a kernel that keeps every example with a loss.

    Parameters
    ----------
    width : float, default 1.0
        Width of the kernel exp(-||x - y||^2 / (2 width^2)), in the unit of x, above 0.
    loss : str, default "hinge"
        Loss: "hinge", "squared_hinge" or "logistic" for targets -1 and 1; "squared", "huber" or
        "epsilon_insensitive" for numbers. See onepass.learner.losses.
    loss_width : float, default 1.0
        Width of the huber and epsilon_insensitive losses, in the unit of targets, above 0.
    step : float, default 0.2
        Step size, above 0.
    reg : float, default 0.0
        Penalty, from 0 to below 1 / step: each step multiplies all weights by 1 - step * reg.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> import onepass as op
    >>> learner = op.learner.KOGD(width=1.0).partial_fit([[0.0], [1.0]], [-1.0, 1.0])
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
    ) -> None:
        self.params: dict[str, Any] = check_common(width, loss, loss_width, step)
        self.params["reg"] = check_shrinkage(reg, step)
        self._state = None

    def _terms(self, x: np.ndarray, names: tuple[str, ...], decision: float) -> list[Reason]:
        return budget_terms(self._state.budget, x)

    def begin(self, dim: int) -> KOGDState:
        p = self.params
        return KOGDState(
            budget=make_budget(ROOM, dim, p["width"]),
            loss=make_loss(p["loss"], p["loss_width"]),
            step=p["step"],
            reg=p["reg"],
        )

    def fits(self, state: Any, begun: Any) -> bool:
        return growing_budget_fits(self, state, begun)
