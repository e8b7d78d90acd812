"""The state of KernelNewton and its implicit Newton step; the formulas are in kernel_newton.py."""

from typing import Any, NamedTuple

import numpy as np

from onepass.design.contract import solve
from onepass.estimator.newton import newton_step
from onepass.features.contract import copy_scratch, transform_row
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.learner import contract
from onepass.learner.losses import Loss, implicit_slope, weight

NO_CLASS = -1.0  # of the example before, where there was none among several classes


class KernelNewtonState(NamedTuple):
    """map, of rank features; design: A; w, phi (rank + 2,), of several classes w (classes, rank + 2); inverse_scale,
    scaled (dim,), the latter scratch.

    low, high (dim,): where features are cut; center, spread: of the targets, which are learned in these units.
    middle, slope (dim,): of the linear part, of no entries without one. phi has no map's features where sparse rows
    are so wide that the linear part is all.
    last (dim,), scaled, and last_target: the example before; nearness: NEAR / (2 width^2), -1 without its vote.
    early (warm_up, dim), targets, weights (warm_up,): the first examples, none once all of them were used; where
    landmarks follow, the last ones; least: 1 / memory. dim is that of the rows, or `columns` where wider ones are
    hashed.
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
    nearness: float
    early: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    seen: int
    least: float
    loss: Loss


@compiled
def featured(state, x):
    """Leaves phi in state.phi but for its last entry, of the example before; returns the kernel between it and x."""
    linear = state.slope.size
    rank, near = state.phi.size - linear - 2, 0.0
    for j in range(x.size):
        entry = min(max(x[j], state.low[j]), state.high[j])
        state.scaled[j] = entry * state.inverse_scale[j]
        if linear > 0:
            state.phi[rank + j] = (entry - state.middle[j]) * state.slope[j]
    if rank > 0:
        transform_row(state.map, state.scaled, state.phi[:rank])
    if state.nearness >= 0.0:
        square = 0.0
        for j in range(x.size):
            gap = state.scaled[j] - state.last[j]
            square += gap * gap
        near = np.exp(-state.nearness * square)
    state.phi[rank + linear] = 1.0
    return near


@compiled
def decided(state, x):
    """f(x) in units of the targets' spread; leaves phi in state.phi."""
    near = featured(state, x)
    state.phi[state.phi.size - 1] = state.last_target * near
    return float(dot(state.w, state.phi))


@copy_scratch.for_state(KernelNewtonState)
def apart_newton(state):
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
        nearness=state.nearness,
        early=state.early,
        targets=state.targets,
        weights=state.weights,
        seen=state.seen,
        least=state.least,
        loss=state.loss,
    )


@contract.decision.for_state(KernelNewtonState)
def decision(state, x):
    return state.center + state.spread * decided(state, x)


@compiled
def moved_on(state, design, x, target, vote, times):
    """The state with this design once x was learned, which is now the example before, with this vote."""
    seen = state.seen
    for j in range(x.size):
        state.last[j] = state.scaled[j]
    if state.targets.size > 0:
        place = seen % state.targets.size
        for j in range(x.size):
            state.early[place, j] = x[j]
        state.targets[place], state.weights[place] = target, times
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
        nearness=state.nearness,
        early=state.early,
        targets=state.targets,
        weights=state.weights,
        seen=seen + 1,
        least=state.least,
        loss=state.loss,
    )


@compiled
def weighted_step(state, x, target, times):
    """`step` for an example that counts so many times: its loss is times l."""
    f, y = decided(state, x), (target - state.center) / state.spread
    design, phi = state.design, state.phi
    u = solve(design, phi)
    q = float(dot(u, phi))
    if q > 0.0 and times > 0.0:
        slope = implicit_slope(state.loss, f, y, q * times)
        gradient = times * slope
        if gradient != 0.0:
            if q > state.least:
                curvature = times * weight(state.loss, f - q * gradient, y, slope)
                design = newton_step(design, state.w, phi, u, -gradient, curvature)
            else:
                for j in range(u.size):
                    state.w[j] -= gradient * u[j]
    return moved_on(state, design, x, target, y, times), state.center + state.spread * f


@contract.step.for_state(KernelNewtonState)
def step(state, x, target):
    return weighted_step(state, x, target, 1.0)


@compiled
def progress(state, rows, targets, weights):
    """`contract.progress` of examples that count so many times."""
    decisions = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        state, decisions[i] = weighted_step(state, rows[i], targets[i], weights[i])
    return state, decisions
