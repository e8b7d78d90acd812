"""BOGD, bounded online gradient descent with uniform removal (Zhao, Wang, Wu, Jin and Hoi 2012).

    every example    a_i <- (1 - step reg) a_i for all stored examples i
    on a loss        x is stored with a = -step l'(f)
    budget full      a uniformly random example is removed before, and the weights of the others are multiplied by
                     B / (B - 1), so that f stays unbiased

Here f = sum_i a_i k(x_i, x) is the decision, l the loss, and B the budget. Removals would let weights grow, so their
size is limited by `cap` (the paper's C). An example costs O(B d).
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.features.contract import copy_scratch
from onepass.foundation import check
from onepass.foundation.registry import savable
from onepass.learner import contract
from onepass.learner.budget import (
    Budget,
    check_shrinkage,
    check_sizes,
    free_or_random_index,
    kernel_expansion,
    make_budget,
    put_example,
)
from onepass.learner.consistency import budget_fits
from onepass.learner.explanation import Reason, budget_terms
from onepass.learner.learner import Learner, check_common
from onepass.learner.losses import Loss, make_loss, slope


class BOGDState(NamedTuple):
    """State of `BOGD`: `budget` holds the stored examples, and `turn` is the number of examples with a loss so far.

    The other fields are the arguments of `BOGD` with the same names.
    """

    budget: Budget
    turn: int
    seed: int
    loss: Loss
    step: float
    reg: float
    cap: float


@copy_scratch.for_state(BOGDState)
def copy_scratch_bogd(state: BOGDState) -> BOGDState:
    budget = copy_scratch(state.budget)
    return BOGDState(
        budget=budget, turn=state.turn, seed=state.seed, loss=state.loss, step=state.step, reg=state.reg, cap=state.cap
    )


@contract.decision.for_state(BOGDState)
def decision(state: BOGDState, x: np.ndarray) -> float:
    return kernel_expansion(state.budget, x)


@contract.step.for_state(BOGDState)
def step(state: BOGDState, x: np.ndarray, y: float) -> tuple[BOGDState, float]:
    budget = state.budget
    f = kernel_expansion(budget, x)
    gradient, count = slope(state.loss, f, y), budget.weights.size
    scale = 1.0 - state.step * state.reg
    if gradient != 0.0 and budget.used == count:
        scale *= count / (count - 1.0)
    for i in range(budget.used):
        budget.weights[i] = min(max(scale * budget.weights[i], -state.cap), state.cap)
    if gradient == 0.0:
        return state, f
    place = free_or_random_index(budget, state.seed, state.turn)
    budget = put_example(budget, place, x, min(max(-state.step * gradient, -state.cap), state.cap))
    return BOGDState(
        budget=budget,
        turn=state.turn + 1,
        seed=state.seed,
        loss=state.loss,
        step=state.step,
        reg=state.reg,
        cap=state.cap,
    ), f


@savable
class BOGD(Learner):
    """Gradient descent with a kernel and a budget, which removes a random example when the budget is full.

    Parameters
    ----------
    budget : int, default 100
        Largest number of examples that the learner keeps, at least 2.
    width : float, default 1.0
        Width of the kernel exp(-||x - y||^2 / (2 width^2)), in the unit of x, above 0.
    loss : str, default "hinge"
        Loss: "hinge", "squared_hinge" or "logistic" for targets -1 and 1; "squared", "huber" or
        "epsilon_insensitive" for numbers. See onepass.learner.losses.
    loss_width : float, default 1.0
        Width of the huber and epsilon_insensitive losses, in the unit of targets, above 0.
    step : float, default 0.2
        Step size, above 0.
    reg : float, default 0.01
        Penalty, from 0 to below 1 / step: each step multiplies all weights by 1 - step * reg.
    cap : float, default 1.0
        Largest size of any weight, above 0.
    seed : int, default 0
        Seed of the random removals, from 0 to 2^32 - 1.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> import onepass as op
    >>> op.learner.BOGD(budget=10).partial_fit([[0.0], [1.0]], [-1.0, 1.0]).predict([[0.1], [0.9]])
    array([-1.,  1.])
    """

    def __init__(
        self,
        *,
        budget: int = 100,
        width: float = 1.0,
        loss: str = "hinge",
        loss_width: float = 1.0,
        step: float = 0.2,
        reg: float = 0.01,
        cap: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.params: dict[str, Any] = {
            **check_sizes(budget, width),
            **check_common(width, loss, loss_width, step),
            "reg": check_shrinkage(reg, step),
            "cap": check.positive("cap", cap),
            "seed": check.integer("seed", seed, 0, check.LARGEST_SEED),
        }
        self._state = None

    def _terms(self, x: np.ndarray, names: tuple[str, ...], decision: float) -> list[Reason]:
        return budget_terms(self._state.budget, x)

    def begin(self, dim: int) -> BOGDState:
        p = self.params
        loss = make_loss(p["loss"], p["loss_width"])
        return BOGDState(
            budget=make_budget(p["budget"], dim, p["width"]),
            turn=0,
            seed=p["seed"],
            loss=loss,
            step=p["step"],
            reg=p["reg"],
            cap=p["cap"],
        )

    def fits(self, state: Any, begun: Any) -> bool:
        return budget_fits(self, state, begun)
