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

from onepass import check
from onepass.features.sketched_nystrom import SketchedNystromState, absorb, sketched_nystrom
from onepass.generic import compiled
from onepass.learner import contract
from onepass.learner.budget import kernel_sum
from onepass.learner.learner import Learner, common
from onepass.learner.losses import Loss, loss_named, slope
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


class FORKS(Learner):
    """FORKS: second-order online kernel learning on an incremental sketch; see onepass.learner.forks.

    budget B: 2 B examples are buffered, then sketched; sketch_size s_p (None: B), sample_size s_m (None: a fifth of
    s_p), rank k (None: a tenth of B), blocks D: of the sketches; update_every: losses between their updates, each of
    which keeps one example more (P4: 0.3 of the stream's length; None: 3,000); width, loss, loss_width, step: as for
    `KOGD`; alpha, curvature: A = alpha I + curvature sum of g g^T; bound C: |f| <= C after a step; seed: of the sketch.
    ValueError for a budget below 2, a rank above sketch or sample size, sizes that do not fit.

    >>> import numpy as np, onepass as op
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((2000, 2))
    >>> labels = np.sign(rows[:, 0] * rows[:, 1])
    >>> found = op.progressive_validation(op.FORKS(budget=100, rank=20, sample_size=50), rows, labels)
    >>> found.mistakes[1000:].mean() < 0.2
    np.True_
    """

    def __init__(
        self,
        *,
        budget: int = 50,
        rank: int | None = None,
        sketch_size: int | None = None,
        sample_size: int | None = None,
        blocks: int = 1,
        update_every: int | None = None,
        width: float = 1.0,
        loss: str = "hinge",
        loss_width: float = 1.0,
        step: float = 0.2,
        alpha: float = 0.01,
        curvature: float = 0.04,
        bound: float = 1.0,
        seed: int = 0,
    ):
        budget = check.integer("budget", budget, 2)
        size = check.integer("sketch_size", budget if sketch_size is None else sketch_size, 1)
        sample = check.integer("sample_size", max(size // 5, 1) if sample_size is None else sample_size, 1, 2 * budget)
        top = min(size, sample)
        rank = check.integer("rank", min(max(budget // 10, 1), top) if rank is None else rank, 1, top)
        blocks = check.integer("blocks", blocks, 1, size)
        if size % blocks:
            raise ValueError(f"blocks must divide sketch_size={size}, got {blocks}")
        self.params = {
            "budget": budget,
            "rank": rank,
            "sketch_size": size,
            "sample_size": sample,
            "blocks": blocks,
            "update_every": check.integer("update_every", 3000 if update_every is None else update_every, 1),
            **common(width, loss, loss_width, step),
            "alpha": check.positive("alpha", alpha),
            "curvature": check.positive("curvature", curvature),
            "bound": check.positive("bound", bound),
            "seed": check.integer("seed", seed, 0, 2**32 - 1),
        }
        self._state = None

    def _begin(self, dim: int) -> FORKSState:
        p = self.params
        size, sample, rank, capacity = p["sketch_size"], p["sample_size"], p["rank"], 2 * p["budget"]
        places = np.random.default_rng(p["seed"]).choice(capacity, sample, replace=False)
        sketch = SketchedNystromState(
            np.zeros((sample, dim)), np.zeros((1, dim)), np.zeros((size, sample)), np.zeros((size, size)),
            np.zeros((0, size)), np.zeros(0), np.zeros((sample, rank)), 0, rank, p["blocks"], p["seed"],
            0.5 / p["width"] ** 2,
        )  # fmt: skip
        return FORKSState(
            np.zeros((capacity, dim)), np.zeros(capacity), places, sketch, np.zeros(rank), np.zeros((rank, rank)),
            np.zeros(sample), np.zeros(rank), np.zeros(rank), np.zeros(rank), 0, False, 0, p["update_every"],
            loss_named(p["loss"], p["loss_width"]), p["step"], p["alpha"], p["curvature"], p["bound"],
        )  # fmt: skip
