"""Ridge regression truncated in whitened coordinates, the estimator of TOFU (Shao, Yu, King and Lyu 2018).

For rows X (t, d) and rewards y, the estimate is

    U = A^(-1/2) X^T (d x t),   theta = A^(-1/2) (sum over j of U_ij y_j 1{|U_ij y_j| <= b_t})_i
    b_t = (v / log(2 d T / delta))^(1/(1+eps)) t^p,   v bounds E|r|^(1+eps)

Here p is (1 - eps) / (2 (1 + eps)), T the horizon, and delta the error probability. A^(-1/2) is the symmetric root. It
is computed in every round, because all of U changes: a round takes O(t d^2 + d^3) time, and the memory is O(t d). With
||theta_*|| <= S, the confidence radius in all T rounds with probability 1 - delta is 4 sqrt(d) v^(1/(1+eps)) log(2dT /
delta)^(eps/(1+eps)) t^p + sqrt(reg) S.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design.contract import append, decay, spectrum
from onepass.design.exact import Exact
from onepass.estimator.contract import forget, merge, radius, update, update_rows
from onepass.estimator.estimator import Estimator, check_design, init_design_and_theta
from onepass.estimator.heavy_tails import Truncation, horizon_and_delta, make_tail, power
from onepass.estimator.history import History, append_row, init_history, rescale
from onepass.estimator.newton import assign_if_finite
from onepass.exploration.confidence_width import Theory
from onepass.foundation import check
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.foundation.registry import savable


class TruncatedRidgeState(NamedTuple):
    """State of truncated ridge regression: the design, the estimate theta (dim,), and the history of all rows.

    `settings` holds the constants. `settings.bound` bounds the rewards' moment of order 1 + epsilon.
    """

    design: Any
    theta: np.ndarray
    history: History
    settings: Truncation


@compiled
def refit(state: TruncatedRidgeState) -> None:
    """Compute the estimate again, in place, from the whole history."""
    settings, theta, used = state.settings, state.theta, state.history.used
    tail = settings.tail
    horizon, delta = horizon_and_delta(tail, used)
    one = 1.0 / (1.0 + tail.epsilon)
    threshold = (settings.bound / np.log(2.0 * theta.size * horizon / delta)) ** one * float(used) ** power(
        tail.epsilon
    )
    threshold *= settings.clip
    values, vectors, _ = spectrum(state.design)
    scaled = np.empty_like(vectors)
    for i in range(values.size):
        for j in range(theta.size):
            scaled[i, j] = vectors[i, j] / np.sqrt(values[i])
    root = dot(vectors.T, scaled)
    whitened = dot(state.history.rows[:used], root)
    kept = np.zeros_like(theta)
    for s in range(used):
        for i in range(theta.size):
            part = whitened[s, i] * state.history.values[s]
            if abs(part) <= threshold:
                kept[i] += part
    assign_if_finite(theta, dot(root, kept))


@update.for_state(TruncatedRidgeState)
def update_truncated(state: TruncatedRidgeState, row: np.ndarray, reward: float) -> TruncatedRidgeState:
    history, design = append_row(state.history, row, reward, 0.0), append(state.design, row)
    state = TruncatedRidgeState(design=design, theta=state.theta, history=history, settings=state.settings)
    refit(state)
    return state


@update_rows.for_state(TruncatedRidgeState)
def update_truncated_rows(state: TruncatedRidgeState, rows: np.ndarray, rewards: np.ndarray) -> TruncatedRidgeState:
    """Return the state after rows (n, dim) and rewards (n,); the estimate theta is computed once, at the end."""
    history, design = state.history, state.design
    for i in range(rows.shape[0]):
        history, design = append_row(history, rows[i], float(rewards[i]), 0.0), append(design, rows[i])
    state = TruncatedRidgeState(design=design, theta=state.theta, history=history, settings=state.settings)
    if rows.shape[0] > 0:
        refit(state)
    return state


@forget.for_state(TruncatedRidgeState)
def forget_truncated(state: TruncatedRidgeState, factor: float) -> TruncatedRidgeState:
    """Return the state with all past rows and rewards multiplied by sqrt(factor), so that they count `factor` times.

    All of them stay in the history.
    """
    rescale(state.history, np.sqrt(factor))
    design = decay(state.design, factor)
    state = TruncatedRidgeState(design=design, theta=state.theta, history=state.history, settings=state.settings)
    if state.history.used > 0:
        refit(state)
    return state


@merge.register(TruncatedRidgeState)
def merge_truncated(
    state: TruncatedRidgeState, other: TruncatedRidgeState, start: TruncatedRidgeState
) -> TruncatedRidgeState:
    """Merge two states by learning the rows that the other one has learned since `start`."""
    new = slice(start.history.used, other.history.used)
    return update_rows(state, other.history.rows[new].copy(), other.history.values[new].copy())


@radius.for_state(TruncatedRidgeState)
def radius_of_truncated(
    state: TruncatedRidgeState, rounds: int, noise: float, parameter_bound: float, row_bound: float, delta: float
) -> float:
    tail, t, dim = state.settings.tail, max(state.history.used, 1), state.theta.size
    horizon, _ = horizon_and_delta(tail, t)
    one = 1.0 + tail.epsilon
    spread = state.settings.bound ** (1.0 / one) * np.log(2.0 * dim * horizon / delta) ** (tail.epsilon / one)
    return 4.0 * np.sqrt(dim) * spread * float(t) ** power(tail.epsilon) + np.sqrt(tail.reg) * parameter_bound


@savable
class TruncatedRidge(Estimator):
    """Ridge regression on an `Exact` design with truncated products of rows and rewards.

    It is for comparison with `OnePassHuber`. It keeps all rows. Each row x is transformed to A^(-1/2) x and multiplied
    by its reward. Numbers of the product beyond a threshold count as 0. The estimate is computed again after every row.

    Parameters
    ----------
    design : Exact
        An `Exact` design. It is copied.
    epsilon : float, default 1.0
        Rewards r have a finite moment E|r|^(1 + epsilon). Above 0 and at most 1.
    moment : float, default 1.0
        An upper bound of E|r|^(1 + epsilon), above 0.
    horizon : int, optional
        Total number of rows to come, at least 1. By default the estimator works for any number of rows.
    clip : float, default 1.0
        Factor of the threshold, above 0. The paper has 1.0.
    theory : Theory, optional
        The threshold uses its delta, the probability of failure. Without a theory the threshold uses 1 / (8T), with T
        the `horizon`, or else the number of rows so far. An exploration by `Theory` requires it.

    Raises
    ------
    ValueError
        If the design is not `Exact`, or another argument is outside its range.

    Notes
    -----
    The radius is proved if `horizon` is given and `clip` is 1.
    """

    def __init__(
        self,
        design: Exact,
        *,
        epsilon: float = 1.0,
        moment: float = 1.0,
        horizon: int | None = None,
        clip: float = 1.0,
        theory: Theory | None = None,
    ) -> None:
        self.design: Exact = check_design(design, Exact)
        tail = make_tail(self.design, epsilon, horizon, 1.0, None, theory)
        self.has_radius: bool = theory is not None
        bound, clip = check.positive("moment", moment), check.positive("clip", clip)
        self._settings = Truncation(tail=tail, bound=bound, clip=clip)
        self.options: dict[str, Any] = {
            "epsilon": tail.epsilon,
            "moment": bound,
            "horizon": horizon,
            "clip": clip,
            "theory": theory,
        }

    def begin(self) -> TruncatedRidgeState:
        design, theta = init_design_and_theta(self.design)
        return TruncatedRidgeState(design=design, theta=theta, history=init_history(theta), settings=self._settings)

    def consistent(self, state: TruncatedRidgeState) -> bool:
        return (
            state.theta.shape == (self.design.dim,)
            and state.settings == self._settings
            and state.history.is_consistent(self.design.dim)
            and self.design.consistent(state.design)
        )
