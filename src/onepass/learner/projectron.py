"""Projectron and Projectron++ (Orabona, Keshet and Caputo 2009), with a budget.

    on a mistake, y f <= 0:     c = K^-1 k(x), delta^2 = k(x, x) - k(x)^T c
                                delta <= eta or no room: weights += y c;   else x joins with weight y
    Projectron++, 0 < y f < 1:  H = 1 - y f; if H > delta / eta: weights += y tau c,
                                tau = min(1, H / (k^T c), 2 (H - delta / eta) / (k^T c))

Here K is the kernel matrix of the stored examples, k(x) their kernel with x, and `eta` a threshold. "weights += y c"
projects the example: f changes only on the span of the stored examples. The learner stores a root R with R R^T = K^-1,
which grows by a column when an example joins. Targets must be classes. For B stored examples, an example costs O(B d),
or O(B d + B^2) on a mistake (Projectron++: on a loss). The memory is O(B d + B^2).
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.features.contract import copy_scratch
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.registry import savable
from onepass.foundation.state import zeros
from onepass.learner import contract
from onepass.learner.budget import Budget, check_sizes, kernel_expansion, make_budget, put_example
from onepass.learner.consistency import budget_fits
from onepass.learner.explanation import Reason, budget_terms
from onepass.learner.learner import Learner

LEAST = 1e-4  # smallest delta of a new point: below it delta^2 and K^-1 are rounding errors

ROUNDED = 1e-13  # delta^2 up to which a point counts as in the span of the points held


class ProjectronState(NamedTuple):
    """State of `Projectron`: the examples in `budget`, and a root R (B, B) of the inverse of their kernel matrix.

    `eta` is the distance up to which an example is replaced by a combination of others, and `margins` is True for
    Projectron++. `half` and `across`, shape (B,), are work arrays.
    """

    budget: Budget
    root: np.ndarray
    half: np.ndarray
    across: np.ndarray
    eta: float
    margins: bool


@copy_scratch.for_state(ProjectronState)
def copy_scratch_projectron(state: ProjectronState) -> ProjectronState:
    budget = copy_scratch(state.budget)
    return ProjectronState(
        budget=budget, root=state.root, half=state.half, across=state.across, eta=state.eta, margins=state.margins
    )


@contract.decision.for_state(ProjectronState)
def decision(state: ProjectronState, x: np.ndarray) -> float:
    return kernel_expansion(state.budget, x)


@contract.step.for_state(ProjectronState)
def step(state: ProjectronState, x: np.ndarray, y: float) -> tuple[ProjectronState, float]:
    budget, root, half, across = state.budget, state.root, state.half, state.across
    f = kernel_expansion(budget, x)
    if y * f >= 1.0 or (y * f > 0.0 and not state.margins):
        return state, f
    used, inside = budget.used, 0.0
    for j in range(used):
        half[j] = 0.0
    for i in range(used):
        for j in range(i, used):
            half[j] += budget.kernel_values[i] * root[i, j]
    for i in range(used):
        total = 0.0  # summed in memory, its last bits would depend on where the arrays lie
        for j in range(i, used):
            total += root[i, j] * half[j]
        across[i] = total
        inside += half[i] * half[i]
    delta = np.sqrt(1.0 - inside) if 1.0 - inside > ROUNDED else 0.0
    if y * f > 0.0:
        room = 1.0 - y * f - delta / state.eta
        if room > 0.0 and inside > 0.0:
            tau = min(1.0, min((1.0 - y * f) / inside, 2.0 * room / inside))
            for i in range(used):
                budget.weights[i] += y * tau * across[i]
        return state, f
    if delta <= max(state.eta, LEAST) or used == budget.weights.size:
        for i in range(used):
            budget.weights[i] += y * across[i]
        return state, f
    for i in range(used):
        root[i, used] = -across[i] / delta
    root[used, used] = 1.0 / delta
    return ProjectronState(
        budget=put_example(budget, used, x, y),
        root=root,
        half=half,
        across=across,
        eta=state.eta,
        margins=state.margins,
    ), f


@savable
class Projectron(Learner):
    """Perceptron with a budget, for targets -1 and 1, that replaces a new example by a combination of those kept.

    It is the Projectron, and with `margins` Projectron++.

    Parameters
    ----------
    budget : int, default 100
        Largest number of examples that the learner keeps, at least 2.
    width : float, default 1.0
        Width of the kernel exp(-||x - y||^2 / (2 width^2)), in the unit of x, above 0.
    eta : float, default 0.1
        Distance from the combination up to which an example is replaced, above 0 and below 1.
    margins : bool, default False
        Learn correctly classified examples too if their margin is below 1.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> import onepass as op
    >>> op.learner.Projectron(budget=10).partial_fit([[0.0], [1.0]], [-1.0, 1.0]).predict([[0.1], [0.9]])
    array([-1.,  1.])
    """

    def __init__(self, *, budget: int = 100, width: float = 1.0, eta: float = 0.1, margins: bool = False) -> None:
        self.params: dict[str, Any] = {
            **check_sizes(budget, width),
            "eta": check.positive("eta", eta),
            "margins": bool(check.choice("margins", margins, (False, True))),
        }
        if self.params["eta"] >= 1.0:
            raise ValueError(f"eta must be below 1, the length of every example, got {quote(eta)}")
        self._state = None

    def _terms(self, x: np.ndarray, names: tuple[str, ...], decision: float) -> list[Reason]:
        return budget_terms(self._state.budget, x)

    def begin(self, dim: int) -> ProjectronState:
        p, count = self.params, self.params["budget"]
        return ProjectronState(
            budget=make_budget(count, dim, p["width"]),
            root=zeros(count, count),
            half=zeros(count),
            across=zeros(count),
            eta=p["eta"],
            margins=p["margins"],
        )

    def fits(self, state: Any, begun: Any) -> bool:
        return budget_fits(self, state, begun)
