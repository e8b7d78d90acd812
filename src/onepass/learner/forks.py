"""FORKS (P4, algorithm 1): gradient descent until a buffer is full, then online Newton steps on a sketched Nystrom map.

    1.  f = sum of a_i k(x_i, x); on a loss x joins the buffer with a = -step l'(f)
    2.  f = w^T phi(x); on a loss, with g = l'(f) phi and u = A^-1 phi:
        w <- w - step A^-1 g,   w <- w - h(w^T phi) / (phi^T u) u,  h(z) = sign(z) max(|z| - bound, 0)
        A <- A + curvature l'(f)^2 phi phi^T
    after every `update_every` losses x joins the sketches; phi changes, so A = alpha I and w = 0: the reset

What P4 leaves open is done as in its authors' program: the buffer holds 2 budget points while sketches follow the
budget, nothing is learned without a loss, gradient descent does not shrink its weights, updates are counted in losses,
and the Newton step uses A as it was before. P4 writes (sigma + eta) g g^T with sigma = 0.5; the program has 0.04.
A round of stage 2 costs O(s_m (d + k) + k^2) and allocates nothing: near, phi, v and u are its scratch.
"""

from typing import NamedTuple

import numpy as np

from onepass.features.sketched_nystrom import SketchedNystromState, absorb, sketched_nystrom
from onepass.generic import compiled
from onepass.learner import contract
from onepass.learner.losses import Loss, slope
from onepass.linalg import shift_root


class FORKSState(NamedTuple):
    """points (capacity, dim), weights (capacity,), `used`: the buffer; places (s_m,): its landmarks.

    sketch: the map once `mapped`; w (k,), root (k, k): R R^T = A^-1; losses: since the map was made.
    """

    points: np.ndarray
    weights: np.ndarray
    places: np.ndarray
    sketch: SketchedNystromState
    w: np.ndarray
    root: np.ndarray
    near: np.ndarray
    phi: np.ndarray
    v: np.ndarray
    u: np.ndarray
    used: int
    mapped: bool
    losses: int
    update_every: int
    loss: Loss
    step: float
    alpha: float
    curvature: float
    bound: float


@compiled
def kernel_sum(points, weights, used, x, precision):
    """Sum of weights_i exp(-precision ||x - x_i||^2)."""
    total = 0.0
    for i in range(used):
        square = 0.0
        for j in range(x.size):
            gap = x[j] - points[i, j]
            square += gap * gap
        total += weights[i] * np.exp(-precision * square)
    return total


@compiled
def map_into(state, x):
    """phi(x), written into state.phi."""
    landmarks, z, precision = state.sketch.landmarks, state.sketch.map, state.sketch.precision
    for i in range(landmarks.shape[0]):
        square = 0.0
        for j in range(x.size):
            gap = x[j] - landmarks[i, j]
            square += gap * gap
        state.near[i] = np.exp(-precision * square)
    for j in range(state.phi.size):
        state.phi[j] = 0.0
    for i in range(landmarks.shape[0]):
        for j in range(state.phi.size):
            state.phi[j] += state.near[i] * z[i, j]


@compiled
def inner(a, b):
    """a^T b without a call of BLAS or an allocation."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@compiled
def newton(state, gradient):
    """The online Newton step for l'(f) = gradient at the example whose map is in state.phi; w and root in place."""
    w, root, phi, v, u = state.w, state.root, state.phi, state.v, state.u
    for j in range(phi.size):
        v[j] = 0.0
        u[j] = 0.0
    for i in range(phi.size):
        for j in range(phi.size):
            v[j] += phi[i] * root[i, j]
    for i in range(phi.size):
        for j in range(phi.size):
            u[i] += root[i, j] * v[j]
    q = inner(v, v)
    if q > 0.0:
        for j in range(phi.size):
            w[j] -= state.step * gradient * u[j]
        f = inner(w, phi)
        over = abs(f) - state.bound
        if over > 0.0:
            for j in range(phi.size):
                w[j] -= np.sign(f) * over / q * u[j]
        shift_root(root, v, u, q, state.curvature * gradient * gradient)


@compiled
def reset(state):
    """A = alpha I, w = 0."""
    for i in range(state.w.size):
        state.w[i] = 0.0
        for j in range(state.w.size):
            state.root[i, j] = 1.0 / np.sqrt(state.alpha) if i == j else 0.0


@compiled
def moved(state, sketch, used, mapped, losses):
    """The state with these fields changed."""
    return FORKSState(
        state.points, state.weights, state.places, sketch, state.w, state.root, state.near, state.phi, state.v, state.u,
        used, mapped, losses, state.update_every, state.loss, state.step, state.alpha, state.curvature, state.bound,
    )  # fmt: skip


@contract.decision.for_state(FORKSState)
def decision(state, x):
    if not state.mapped:
        return kernel_sum(state.points, state.weights, state.used, x, state.sketch.precision)
    map_into(state, x)
    return inner(state.w, state.phi)


@contract.step.for_state(FORKSState)
def step(state, x, y):
    f = contract.decision(state, x)
    gradient = slope(state.loss, f, y)
    if gradient == 0.0:
        return state, f
    sketch = state.sketch
    if not state.mapped:
        for j in range(x.size):
            state.points[state.used, j] = x[j]
        state.weights[state.used] = -state.step * gradient
        if state.used + 1 < state.points.shape[0]:
            return moved(state, sketch, state.used + 1, False, 0), f
        size, rank = sketch.pp.shape[0], sketch.rank
        made = sketched_nystrom(state.points, state.places, size, rank, sketch.blocks, sketch.seed, sketch.precision)
        reset(state)
        return moved(state, made, state.used + 1, True, 0), f
    newton(state, gradient)
    losses = state.losses + 1
    if losses % state.update_every == 0:
        sketch = absorb(sketch, x)
        reset(state)
    return moved(state, sketch, state.used, True, losses), f
