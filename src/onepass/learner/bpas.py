"""BPA-S, the simple form of budgeted passive-aggressive learning (Wang and Vucetic 2010).

Let f = sum_i a_i k(x_i, x) be the decision, y = -1 or 1 the target, H = max(0, 1 - y f) the hinge loss, and C the
largest step:

    room left:  x is stored with b = y min(C, H / k(x, x))
    full:       one example r is removed:  w + (b_r phi(x) - a_r phi(x_r)),  b_r = a_r k(x_r, x) + y min(C, H)
                (k(x, x) = 1), for the r with the least ||change||^2 / 2 + C hinge(after)

For a given r, b_r minimizes this objective: it is the change that leaves f(x) as it was, followed by a
passive-aggressive step. Targets must be classes. With a budget of B examples, an example costs O(B d), because the
objective needs scalars only.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.features.contract import copy_scratch
from onepass.foundation import check
from onepass.foundation.registry import savable
from onepass.learner import contract
from onepass.learner.budget import Budget, check_sizes, kernel_expansion, make_budget, put_example
from onepass.learner.consistency import budget_fits
from onepass.learner.explanation import Reason, budget_terms
from onepass.learner.learner import Learner


class BPASState(NamedTuple):
    """State of `BPAS`: `budget` holds the stored examples, and `aggressiveness` is the largest size of a step."""

    budget: Budget
    aggressiveness: float


@copy_scratch.for_state(BPASState)
def copy_scratch_bpas(state: BPASState) -> BPASState:
    return BPASState(budget=copy_scratch(state.budget), aggressiveness=state.aggressiveness)


@contract.decision.for_state(BPASState)
def decision(state: BPASState, x: np.ndarray) -> float:
    return kernel_expansion(state.budget, x)


@contract.step.for_state(BPASState)
def step(state: BPASState, x: np.ndarray, y: float) -> tuple[BPASState, float]:
    budget, most = state.budget, state.aggressiveness
    f = kernel_expansion(budget, x)
    hinge = 1.0 - y * f
    if hinge <= 0.0:
        return state, f
    move = y * min(most, hinge)
    if budget.used < budget.weights.size:
        return BPASState(budget=put_example(budget, budget.used, x, move), aggressiveness=most), f
    place, least = 0, np.inf
    for r in range(budget.used):
        a, k = budget.weights[r], budget.kernel_values[r]
        b = a * k + move
        left = max(0.0, 1.0 - y * (f - a * k + b))
        cost = 0.5 * (a * a - 2.0 * a * b * k + b * b) + most * left
        if cost < least:
            place, least = r, cost
    weight = budget.weights[place] * budget.kernel_values[place] + move
    return BPASState(budget=put_example(budget, place, x, weight), aggressiveness=most), f


@savable
class BPAS(Learner):
    """Passive-aggressive learning with a budget (BPA-S), for targets -1 and 1.

    Parameters
    ----------
    budget : int, default 100
        Largest number of examples that the learner keeps, at least 2.
    width : float, default 1.0
        Width of the kernel exp(-||x - y||^2 / (2 width^2)), in the unit of x, above 0.
    aggressiveness : float, default 1.0
        Largest size of a step, above 0.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> import onepass as op
    >>> op.learner.BPAS(budget=10).partial_fit([[0.0], [1.0]], [-1.0, 1.0]).predict([[0.1], [0.9]])
    array([-1.,  1.])
    """

    def __init__(self, *, budget: int = 100, width: float = 1.0, aggressiveness: float = 1.0) -> None:
        self.params: dict[str, Any] = {
            **check_sizes(budget, width),
            "aggressiveness": check.positive("aggressiveness", aggressiveness),
        }
        self._state = None

    def _terms(self, x: np.ndarray, names: tuple[str, ...], decision: float) -> list[Reason]:
        return budget_terms(self._state.budget, x)

    def begin(self, dim: int) -> BPASState:
        p = self.params
        return BPASState(budget=make_budget(p["budget"], dim, p["width"]), aggressiveness=p["aggressiveness"])

    def fits(self, state: Any, begun: Any) -> bool:
        return budget_fits(self, state, begun)
