"""Generalized linear regression on the whole history, solved again after every row, as a reference for online methods.

The estimate minimizes the penalized loss, whose Hessian is H:

    theta = argmin of  theta^T A_0 theta / 2 + sum over rows of m(x^T theta) - r x^T theta,   A_0 = reg I
    H = A_0 + sum of mu'(x^T theta) x x^T

It takes damped Newton steps (iteratively reweighted least squares) from the last theta: theta <- theta - H^-1 gradient
/ (1 + R max |x^T H^-1 gradient|). Each step lowers the loss, which is self-concordant; m, mu and R belong to the reward
family (families.py). A round takes O(t d^2 + d^3) time and O(t d) memory.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design.contract import add_matrix, matrix, solve
from onepass.design.exact import Exact
from onepass.estimator.contract import link, update, update_rows
from onepass.estimator.estimator import Estimator, check_design, init_design_and_theta
from onepass.estimator.families import concordance, family_argument, family_of, mean, slope
from onepass.estimator.history import History, append_row, init_history
from onepass.estimator.newton import step_along
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.foundation.registry import savable

STEPS = 100  # at most, a round; two or three are usual
CLOSE = 1e-12  # of the squared length of a step in the norm of H, in which statistical errors are of the order of 1


class OfflineGLMSettings(NamedTuple):
    """Settings of offline generalized linear regression: the reward family."""

    family: Any


class OfflineGLMState(NamedTuple):
    """State of offline generalized linear regression.

    `design` is reg I + sum of w x x^T over rows x with weights w, and theta (dim,) is the estimate. `history` holds the
    rows, with the rewards as values and the weights as marks.
    """

    design: Any
    theta: np.ndarray
    history: History
    settings: OfflineGLMSettings


@compiled
def minimize(state: OfflineGLMState) -> OfflineGLMState:
    """Return the state with the estimate at the minimum of the loss over all rows in the history."""
    design, theta, history, family = state.design, state.theta, state.history, state.settings.family
    used = history.used
    rows, weights = history.rows[:used], history.marks
    for _ in range(STEPS):
        scores = dot(rows, theta)
        pulls, change = np.empty_like(scores), np.empty_like(scores)
        for i in range(used):
            z = float(scores[i])
            weight = slope(family, z)
            change[i], weights[i] = weight - weights[i], weight
            pulls[i] = history.values[i] - mean(family, z) + weight * z
        weighted = np.empty_like(rows)
        for i in range(used):
            for j in range(theta.size):
                weighted[i, j] = change[i] * rows[i, j]
        design = add_matrix(design, dot(weighted.T, rows))
        slopes = dot(pulls, rows) - dot(matrix(design).astype(theta.dtype), theta)  # H theta has what pulls have beside
        step = solve(design, slopes)
        longest, square = 0.0, float(dot(step, slopes))
        if not np.isfinite(square):
            break
        moved = dot(rows, step)
        for i in range(used):
            longest = max(longest, abs(float(moved[i])))
        if not step_along(theta, step, 1.0 / (1.0 + concordance(family) * longest)) or square <= CLOSE:
            break
    return OfflineGLMState(design=design, theta=theta, history=history, settings=state.settings)


@update.for_state(OfflineGLMState)
def update_offline(state: OfflineGLMState, row: np.ndarray, reward: float) -> OfflineGLMState:
    history = append_row(state.history, row, reward, 0.0)
    return minimize(OfflineGLMState(design=state.design, theta=state.theta, history=history, settings=state.settings))


@update_rows.for_state(OfflineGLMState)
def update_offline_rows(state: OfflineGLMState, rows: np.ndarray, rewards: np.ndarray) -> OfflineGLMState:
    """Return the state after rows (n, dim) and rewards (n,), for which the loss is minimized once, at the end."""
    history = state.history
    for i in range(rows.shape[0]):
        history = append_row(history, rows[i], float(rewards[i]), 0.0)
    return minimize(OfflineGLMState(design=state.design, theta=state.theta, history=history, settings=state.settings))


@link.for_state(OfflineGLMState)
def link_of_offline(state: OfflineGLMState) -> Any:
    return state.settings.family


@savable
class OfflineGLM(Estimator):
    """Generalized linear regression on an `Exact` design, for comparison with `OnePassGLM`.

    It keeps all rows, and minimizes the sum of their losses again after every row or batch. No confidence radius is
    proved.

    Parameters
    ----------
    design : Exact
        An `Exact` design. It is copied. A row x adds mu' x x^T to the matrix, where mu' is the derivative of the mean
        function at the row. So reg is compared with sums of mu' ||x||^2.
    family : {"logistic", "poisson", "identity"} or NamedTuple, default "logistic"
        The family of rewards: "logistic" for clicks (0 to 1), "poisson" for counts (from 0), "identity" for any
        rewards. A family of your own is a NamedTuple as in onepass/estimator/families.py.

    Raises
    ------
    ValueError
        If the design is not `Exact`, or the family is unknown.
    """

    has_radius = False

    family: Any

    def __init__(self, design: Exact, *, family: Any = "logistic") -> None:
        self.design: Exact = check_design(design, Exact)
        self.family = family_of(family)
        self._settings = OfflineGLMSettings(family=self.family)
        self.options: dict[str, Any] = {"family": family_argument(self.family)}

    def begin(self) -> OfflineGLMState:
        design, theta = init_design_and_theta(self.design)
        return OfflineGLMState(design=design, theta=theta, history=init_history(theta), settings=self._settings)

    def consistent(self, state: OfflineGLMState) -> bool:
        return (
            state.theta.shape == (self.design.dim,)
            and state.settings == self._settings
            and state.history.is_consistent(self.design.dim)
            and self.design.consistent(state.design)
        )
