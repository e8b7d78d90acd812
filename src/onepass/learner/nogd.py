"""NOGD (Lu, Hoi, Wang, Zhao and Liu 2016): gradient descent on Nystrom features of the first examples.

    1.  f = sum of a_i k(x_i, x); on a loss x is stored in the buffer with a = -step l'(f)
    2.  once 2 B examples are stored, with kernel matrix K = V S V^T, whose leading k eigenpairs are S_k and V_k:
        phi(x) = S_k^-1/2 V_k^T k(x),  w = S_k^1/2 V_k^T a,  which leaves f unchanged on these directions
        f = w^T phi(x); on a loss  w <- w - step l'(f) phi(x)

FORKS and SkeGD use the same buffer of 2 B examples. An example costs O(B (d + k)).
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.features.contract import copy_scratch, transform_row
from onepass.features.landmarks import Landmarks, make_nystrom
from onepass.foundation import check
from onepass.foundation.registry import savable
from onepass.foundation.state import has_same_layout, zeros
from onepass.learner import contract
from onepass.learner.budget import Budget, check_sizes, kernel_expansion, make_budget, put_example
from onepass.learner.consistency import buffer_fits
from onepass.learner.explanation import Reason, budget_terms, map_terms
from onepass.learner.learner import Learner, check_common
from onepass.learner.losses import Loss, make_loss, slope
from onepass.learner.newton import inner_product


class NOGDState(NamedTuple):
    """State of `NOGD`: a buffer of the first examples, and the feature map `map` that replaces it, with weights w (k,).

    `mapped` is True once the map is in use. `phi` (k,) is a work array. The other fields are arguments of `NOGD`.
    """

    buffer: Budget
    map: Landmarks
    w: np.ndarray
    phi: np.ndarray
    mapped: bool
    loss: Loss
    step: float


@copy_scratch.for_state(NOGDState)
def copy_scratch_nogd(state: NOGDState) -> NOGDState:
    buffer, features, phi = copy_scratch(state.buffer), copy_scratch(state.map), np.empty(state.phi.size)
    return NOGDState(
        buffer=buffer, map=features, w=state.w, phi=phi, mapped=state.mapped, loss=state.loss, step=state.step
    )


@contract.decision.for_state(NOGDState)
def decision(state: NOGDState, x: np.ndarray) -> float:
    if not state.mapped:
        return kernel_expansion(state.buffer, x)
    transform_row(state.map, x, state.phi)
    return inner_product(state.w, state.phi)


@contract.step.for_state(NOGDState)
def step(state: NOGDState, x: np.ndarray, y: float) -> tuple[NOGDState, float]:
    f = contract.decision(state, x)
    gradient, w = slope(state.loss, f, y), state.w
    if gradient == 0.0:
        return state, f
    if state.mapped:
        for j in range(w.size):
            w[j] -= state.step * gradient * state.phi[j]
        return state, f
    buffer, features = put_example(state.buffer, state.buffer.used, x, -state.step * gradient), state.map
    full = buffer.used == buffer.weights.size
    if full:
        features = make_nystrom(buffer.points, buffer.precision, w.size)
        for i in range(buffer.used):  # w = S^1/2 V^T a = Z^T K a, and K a is f at the points
            at = kernel_expansion(buffer, buffer.points[i])
            for j in range(w.size):
                w[j] += features.z[i, j] * at
    return NOGDState(buffer=buffer, map=features, w=w, phi=state.phi, mapped=full, loss=state.loss, step=state.step), f


@savable
class NOGD(Learner):
    """Gradient descent on Nystrom features, the similarities to the first examples.

    Parameters
    ----------
    budget : int, default 100
        The learner keeps the first 2 * budget examples with a loss; at least 2.
    rank : int, optional
        Number of features, from 1 to 2 * budget. Defaults to a fifth of the budget (Wen, Zhang et al. use a tenth).
    width : float, default 1.0
        Width of the kernel exp(-||x - y||^2 / (2 width^2)), in the unit of x, above 0.
    loss : str, default "hinge"
        Loss: "hinge", "squared_hinge" or "logistic" for targets -1 and 1; "squared", "huber" or
        "epsilon_insensitive" for numbers. See onepass.learner.losses.
    loss_width : float, default 1.0
        Width of the huber and epsilon_insensitive losses, in the unit of targets, above 0.
    step : float, default 0.2
        Step size, above 0.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> import numpy as np, onepass as op
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((2000, 2))
    >>> labels = np.sign(rows[:, 0] * rows[:, 1])
    >>> op.progressive_validation(op.learner.NOGD(), rows, labels).mistakes[1000:].mean() < 0.2
    np.True_
    """

    def __init__(
        self,
        *,
        budget: int = 100,
        rank: int | None = None,
        width: float = 1.0,
        loss: str = "hinge",
        loss_width: float = 1.0,
        step: float = 0.2,
    ) -> None:
        self.params: dict[str, Any] = {**check_sizes(budget, width), **check_common(width, loss, loss_width, step)}
        most = 2 * self.params["budget"]
        self.params["rank"] = check.integer("rank", max(most // 10, 1) if rank is None else rank, 1, most)
        self._state = None

    def _terms(self, x: np.ndarray, names: tuple[str, ...], decision: float) -> list[Reason]:
        return (
            map_terms(self._state.map, self._state.w, x) if self._state.mapped else budget_terms(self._state.buffer, x)
        )

    def begin(self, dim: int) -> NOGDState:
        p = self.params
        buffer, rank = make_budget(2 * p["budget"], dim, p["width"]), p["rank"]
        features = Landmarks(
            points=buffer.points, z=zeros(2 * p["budget"], rank), near=buffer.kernel_values, precision=buffer.precision
        )
        loss = make_loss(p["loss"], p["loss_width"])
        return NOGDState(
            buffer=buffer, map=features, w=zeros(rank), phi=zeros(rank), mapped=False, loss=loss, step=p["step"]
        )

    def fits(self, state: Any, begun: Any) -> bool:
        return has_same_layout(state, begun, ("buffer.used", "mapped")) and buffer_fits(state.buffer, state.mapped)
