"""State of KernelNewton and its implicit Newton step; the formulas are in kernel_newton.py."""

from typing import Any, NamedTuple

import numpy as np

from onepass.design.contract import solve
from onepass.estimator.newton import newton_step
from onepass.features.contract import copy_scratch, transform_row
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.learner import contract
from onepass.learner.losses import Loss, implicit_slope, step_curvature

NO_CLASS = -1.0  # of the example before, where there was none among several classes


class KernelNewtonState(NamedTuple):
    """State of `KernelNewton`. dim is the width of rows, or `columns` if wider rows are hashed.

    - map: the feature map, with `rank` features, or none if sparse rows are so wide that only the linear part is used.
    - design: the matrix A = reg I + weighted sum of phi phi^T over features phi.
    - w, phi (rank + 2,): weights and features of the latest row; for several classes w is (classes, rank + 2).
    - inverse_scale (dim,): 1 / scale of each column.
    - low, high (dim,): range to which columns are clipped.
    - middle, slope (dim,): the linear part (x - middle) * slope; empty if there is none.
    - center, spread: mean and deviation of the targets, which are learned as (y - center) / spread.
    - last (dim,), last_target: the previous example, scaled.
    - vote_precision: factor of the squared distance in the kernel between a row and the previous example; -1 if that
      feature is not used.
    - buffer_rows (warm_up, dim), buffer_targets, buffer_weights (warm_up,): the first examples, empty once all were
      used; if landmarks follow the rows, the latest examples.
    - n_seen: number of examples learned; the field `loss` is the loss.
    - min_leverage: 1 / memory, the least phi^T A^-1 phi at which A is updated.
    - scaled (dim,): work array.
    """

    map: Any
    design: Any
    w: np.ndarray
    phi: np.ndarray
    inverse_scale: np.ndarray
    low: np.ndarray
    high: np.ndarray
    middle: np.ndarray
    slope: np.ndarray
    center: float
    spread: float
    scaled: np.ndarray
    last: np.ndarray
    last_target: float
    vote_precision: float
    buffer_rows: np.ndarray
    buffer_targets: np.ndarray
    buffer_weights: np.ndarray
    n_seen: int
    min_leverage: float
    loss: Loss


@compiled
def fill_features(state: KernelNewtonState, x: np.ndarray) -> float:
    """Write the features of x to state.phi, except the last one.

    Returns the kernel between x and the previous example, from which the last feature is made.
    """
    linear = state.slope.size
    rank, near = state.phi.size - linear - 2, 0.0
    for j in range(x.size):
        entry = min(max(x[j], state.low[j]), state.high[j])
        state.scaled[j] = entry * state.inverse_scale[j]
        if linear > 0:
            state.phi[rank + j] = (entry - state.middle[j]) * state.slope[j]
    if rank > 0:
        transform_row(state.map, state.scaled, state.phi[:rank])
    if state.vote_precision >= 0.0:
        square = 0.0
        for j in range(x.size):
            gap = state.scaled[j] - state.last[j]
            square += gap * gap
        near = np.exp(-state.vote_precision * square)
    state.phi[rank + linear] = 1.0
    return near


@compiled
def _scaled_decision(state: KernelNewtonState, x: np.ndarray) -> float:
    """Return f(x) in units of the targets' standard deviation, and write the features to state.phi."""
    near = fill_features(state, x)
    state.phi[state.phi.size - 1] = state.last_target * near
    return float(dot(state.w, state.phi))


@copy_scratch.for_state(KernelNewtonState)
def copy_scratch_newton(state: KernelNewtonState) -> KernelNewtonState:
    return KernelNewtonState(
        map=copy_scratch(state.map),
        design=state.design,
        w=state.w,
        phi=np.empty(state.phi.size),
        inverse_scale=state.inverse_scale,
        low=state.low,
        high=state.high,
        middle=state.middle,
        slope=state.slope,
        center=state.center,
        spread=state.spread,
        scaled=np.empty(state.scaled.size),
        last=state.last,
        last_target=state.last_target,
        vote_precision=state.vote_precision,
        buffer_rows=state.buffer_rows,
        buffer_targets=state.buffer_targets,
        buffer_weights=state.buffer_weights,
        n_seen=state.n_seen,
        min_leverage=state.min_leverage,
        loss=state.loss,
    )


@contract.decision.for_state(KernelNewtonState)
def decision(state: KernelNewtonState, x: np.ndarray) -> float:
    return state.center + state.spread * _scaled_decision(state, x)


@compiled
def advance_state(
    state: KernelNewtonState, design: Any, x: np.ndarray, target: float, vote: float, times: float
) -> KernelNewtonState:
    """Return the state of `KernelNewton` after the row x was learned, with the design `design`.

    The row becomes the previous example. `target` and `times` are its target and weight, which are stored with it.
    `vote` becomes `last_target`: the target in units of the state, or the class index if there are several classes.
    """
    seen = state.n_seen
    for j in range(x.size):
        state.last[j] = state.scaled[j]
    if state.buffer_targets.size > 0:
        place = seen % state.buffer_targets.size
        for j in range(x.size):
            state.buffer_rows[place, j] = x[j]
        state.buffer_targets[place], state.buffer_weights[place] = target, times
    return KernelNewtonState(
        map=state.map,
        design=design,
        w=state.w,
        phi=state.phi,
        inverse_scale=state.inverse_scale,
        low=state.low,
        high=state.high,
        middle=state.middle,
        slope=state.slope,
        center=state.center,
        spread=state.spread,
        scaled=state.scaled,
        last=state.last,
        last_target=vote,
        vote_precision=state.vote_precision,
        buffer_rows=state.buffer_rows,
        buffer_targets=state.buffer_targets,
        buffer_weights=state.buffer_weights,
        n_seen=seen + 1,
        min_leverage=state.min_leverage,
        loss=state.loss,
    )


@compiled
def _step_with_weight(
    state: KernelNewtonState, x: np.ndarray, target: float, times: float
) -> tuple[KernelNewtonState, float]:
    """Return the state after learning an example (x, target), and the prediction made before.

    The loss of the example is multiplied by `times`.
    """
    f, y = _scaled_decision(state, x), (target - state.center) / state.spread
    design, phi = state.design, state.phi
    u = solve(design, phi)
    q = float(dot(u, phi))
    if q > 0.0 and times > 0.0:
        slope = implicit_slope(state.loss, f, y, q * times)
        gradient = times * slope
        if gradient != 0.0:
            if q > state.min_leverage:
                curvature = times * step_curvature(state.loss, f - q * gradient, y, slope)
                design = newton_step(design, state.w, phi, u, -gradient, curvature)
            else:
                for j in range(u.size):
                    state.w[j] -= gradient * u[j]
    return advance_state(state, design, x, target, y, times), state.center + state.spread * f


@contract.step.for_state(KernelNewtonState)
def step(state: KernelNewtonState, x: np.ndarray, target: float) -> tuple[KernelNewtonState, float]:
    return _step_with_weight(state, x, target, 1.0)


@compiled
def learn_weighted_examples(
    state: KernelNewtonState, rows: np.ndarray, targets: np.ndarray, weights: np.ndarray
) -> tuple[KernelNewtonState, np.ndarray]:
    """Predict, then learn, example by example, with a weight (n,) that multiplies the loss of each example.

    Returns the state and the predictions f (n,), each made before its example was learned.
    """
    decisions = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        state, decisions[i] = _step_with_weight(state, rows[i], targets[i], weights[i])
    return state, decisions
