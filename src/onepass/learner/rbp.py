"""RBP, the randomized budget perceptron (Cavallanti, Cesa-Bianchi and Gentile 2007).

On a mistake, y f(x) <= 0, x is stored with weight y. If the budget is full, a uniformly random example is removed
first. Targets must be classes. With a budget of B examples, an example costs O(B d).
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.features.contract import copy_scratch
from onepass.foundation import check
from onepass.foundation.registry import savable
from onepass.learner import contract
from onepass.learner.budget import Budget, check_sizes, free_or_random_index, kernel_expansion, make_budget, put_example
from onepass.learner.consistency import budget_fits
from onepass.learner.explanation import Reason, budget_terms
from onepass.learner.learner import Learner


class RBPState(NamedTuple):
    """State of `RBP`: `budget` holds the stored examples, `turn` is the number of mistakes so far.

    `seed` is the seed of the random removals.
    """

    budget: Budget
    turn: int
    seed: int


@copy_scratch.for_state(RBPState)
def copy_scratch_rbp(state: RBPState) -> RBPState:
    return RBPState(budget=copy_scratch(state.budget), turn=state.turn, seed=state.seed)


@contract.decision.for_state(RBPState)
def decision(state: RBPState, x: np.ndarray) -> float:
    return kernel_expansion(state.budget, x)


@contract.step.for_state(RBPState)
def step(state: RBPState, x: np.ndarray, y: float) -> tuple[RBPState, float]:
    f = kernel_expansion(state.budget, x)
    if y * f > 0.0:
        return state, f
    place = free_or_random_index(state.budget, state.seed, state.turn)
    return RBPState(budget=put_example(state.budget, place, x, y), turn=state.turn + 1, seed=state.seed), f


@savable
class RBP(Learner):
    """Perceptron with a budget, for targets -1 and 1, that removes a random example when the budget is full.

    Parameters
    ----------
    budget : int, default 100
        Largest number of examples that the learner keeps, at least 2.
    width : float, default 1.0
        Width of the kernel exp(-||x - y||^2 / (2 width^2)), in the unit of x, above 0.
    seed : int, default 0
        Seed of the random removals, from 0 to 2^32 - 1.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> import onepass as op
    >>> op.learner.RBP(budget=10).partial_fit([[0.0], [1.0]], [-1.0, 1.0]).predict([[0.1], [0.9]])
    array([-1.,  1.])
    """

    def __init__(self, *, budget: int = 100, width: float = 1.0, seed: int = 0) -> None:
        self.params: dict[str, Any] = {
            **check_sizes(budget, width),
            "seed": check.integer("seed", seed, 0, check.LARGEST_SEED),
        }
        self._state = None

    def _terms(self, x: np.ndarray, names: tuple[str, ...], decision: float) -> list[Reason]:
        return budget_terms(self._state.budget, x)

    def begin(self, dim: int) -> RBPState:
        p = self.params
        return RBPState(budget=make_budget(p["budget"], dim, p["width"]), turn=0, seed=p["seed"])

    def fits(self, state: Any, begun: Any) -> bool:
        return budget_fits(self, state, begun)
