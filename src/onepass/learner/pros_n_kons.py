"""PROS-N-KONS (Calandriello, Lazaric and Valko 2017): online Newton steps on Nystrom features of a sampled dictionary.

For an example x with kernel values k, and a dictionary with kernel matrix K, the following is computed:

    every example    r = 1 - k^T S (S K S + reg I)^-1 S k,  S = diag(1 / sqrt(p_i));  x joins the dictionary with
                     probability p = min(1, oversampling (1 + epsilon) r / (r + reg)): its ridge leverage score (KORS)
    if it joined     phi has one more dimension;  if `reset`, A = alpha I and w = 0, as the theorem requires
    on a loss        the online Newton step of onepass.learner.newton on phi(x) = L^-1 k(x), L L^T = K

Whether x joins depends only on x and a random number. f is computed on the dictionary before x, and the step is taken
on the dictionary with x. So f never comes from a w that was just reset, which would be 0 and err more often
(docs/forks_adversarial.md). In the regret bound this costs one loss more for each reset.

With a Cholesky factor, old features do not change when a point joins, so a reset is not needed. `reset=False` is this
variant of ours (docs/kernel_learners_measured.md compares both). The dictionary never shrinks. It is limited by
`budget`, as in Wen, Zhang et al., or else grows like the effective dimension. Points within 1e-9 of the span of the
others do not join.
Roots of K^-1 and (S K S + reg I)^-1 grow by a column. Cost O(m d + m^2) for m points, memory O(m (m + d)).
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.features.contract import copy_scratch
from onepass.features.landmarks import fill_gaussian
from onepass.features.sketched_nystrom import hash_integer
from onepass.foundation import check
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import double_capacity
from onepass.foundation.registry import savable
from onepass.foundation.state import has_same_layout, zeros
from onepass.learner import contract
from onepass.learner import newton as steps
from onepass.learner.explanation import Reason, point_terms
from onepass.learner.learner import Learner, check_common
from onepass.learner.losses import Loss, make_loss, slope
from onepass.learner.newton import Newton, add_dimension, inner_product, online_newton_step, reset_newton

IN_SPAN = 1e-9  # least squared distance to the span, k(x, x) = 1: less may be a rounding error
ROOM = 16  # initial capacity in points and features; full arrays double


class Dictionary(NamedTuple):
    """Sample of the examples, called the dictionary, with kernel matrix K and the matrices computed from it.

    - points (capacity, dim): the examples, of which the first `used` count.
    - scales (capacity,): 1 / sqrt(p_i) for the probabilities p_i with which the points joined.
    - whitening (capacity, capacity): upper triangle by which kernel values k become features phi = k whitening.
    - ridge (capacity, capacity): the same for the matrix S K S + reg I with S = diag(scales).

    The other arrays are work arrays.
    """

    points: np.ndarray
    scales: np.ndarray
    whitening: np.ndarray
    ridge: np.ndarray
    near: np.ndarray
    phi: np.ndarray
    scaled: np.ndarray
    half: np.ndarray
    used: int


# arrays that grow with the dictionary, in it and in the step
DICTIONARY = ("points", "scales", "whitening", "ridge", "near", "phi", "scaled", "half", "used")
STEP = ("newton.w", "newton.root", "newton.v", "newton.u")


class PROSNKONSState(NamedTuple):
    """State of `PROSNKONS`: the sample of examples (dictionary), and the Newton step on the features that it defines.

    - dictionary, newton: the sample, and the state of the Newton step.
    - most: largest number of points in the dictionary, 0 if it is not limited.
    - turn: number of examples seen.
    - precision: 1 / (2 width^2) of the Gaussian kernel.

    The other fields are arguments of `PROSNKONS`.
    """

    dictionary: Dictionary
    newton: Newton
    most: int
    turn: int
    seed: int
    precision: float
    oversampling: float
    epsilon: float
    reg: float
    reset: bool
    loss: Loss


@compiled
def hash_to_uniform(seed: int, turn: int) -> float:
    """Return a pseudo-random number in [0, 1): a hash of `seed` and of `turn`, the number of the draw."""
    return (hash_integer(hash_integer(np.uint64(seed)) ^ np.uint64(turn)) >> np.uint64(11)) * 2.0**-53


@compiled
def _times_triangle(row: np.ndarray, triangle: np.ndarray, k: int, out: np.ndarray) -> None:
    """Multiply row (k,) by the upper triangular (k, k) matrix, and write the product into out."""
    for j in range(k):
        out[j] = 0.0
    for i in range(k):
        for j in range(i, k):
            out[j] += row[i] * triangle[i, j]


@compiled
def _grow_triangle(triangle: np.ndarray, half: np.ndarray, rest: float, k: int) -> None:
    """Write the column k of `triangle`, the transposed inverse of a Cholesky factor, in place.

    `triangle` is an array with more than k rows and columns, of which the first k are in use before the call, and the
    first k + 1 after it. The factor's new row is half (k,), followed by `rest` on the diagonal.
    """
    for i in range(k):
        total = 0.0
        for j in range(i, k):
            total += triangle[i, j] * half[j]
        triangle[i, k] = -total / rest
    triangle[k, k] = 1.0 / rest


@compiled
def _double_matrix(matrix: np.ndarray) -> np.ndarray:
    """Copy a matrix into an array of twice the rows and columns."""
    out = np.zeros((2 * matrix.shape[0], 2 * matrix.shape[0]))
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[0]):
            out[i, j] = matrix[i, j]
    return out


@compiled
def _double_room(d: Dictionary, newton: Newton) -> tuple[Dictionary, Newton]:
    """Copy dictionary and Newton step into arrays with room for twice as many points."""
    size = 2 * d.scales.size
    scales, w = np.zeros(size), np.zeros(size)
    for i in range(d.used):
        scales[i], w[i] = d.scales[i], newton.w[i]
    larger = Dictionary(
        points=double_capacity(d.points),
        scales=scales,
        whitening=_double_matrix(d.whitening),
        ridge=_double_matrix(d.ridge),
        near=np.zeros(size),
        phi=np.zeros(size),
        scaled=np.zeros(size),
        half=np.zeros(size),
        used=d.used,
    )
    return larger, Newton(
        w=w,
        root=_double_matrix(newton.root),
        v=np.zeros(size),
        u=np.zeros(size),
        step=newton.step,
        alpha=newton.alpha,
        curvature=newton.curvature,
        bound=newton.bound,
    )


@copy_scratch.for_state(PROSNKONSState)
def copy_scratch_pros_n_kons(state: PROSNKONSState) -> PROSNKONSState:
    d = state.dictionary
    near, phi = np.empty(d.near.size), np.empty(d.phi.size)
    return PROSNKONSState(
        dictionary=Dictionary(
            points=d.points,
            scales=d.scales,
            whitening=d.whitening,
            ridge=d.ridge,
            near=near,
            phi=phi,
            scaled=d.scaled,
            half=d.half,
            used=d.used,
        ),
        newton=state.newton,
        most=state.most,
        turn=state.turn,
        seed=state.seed,
        precision=state.precision,
        oversampling=state.oversampling,
        epsilon=state.epsilon,
        reg=state.reg,
        reset=state.reset,
        loss=state.loss,
    )


@contract.decision.for_state(PROSNKONSState)
def decision(state: PROSNKONSState, x: np.ndarray) -> float:
    d = state.dictionary
    fill_gaussian(d.points, d.used, x, state.precision, d.near)
    _times_triangle(d.near, d.whitening, d.used, d.phi)
    return inner_product(state.newton.w[: d.used], d.phi[: d.used])


@contract.step.for_state(PROSNKONSState)
def step(state: PROSNKONSState, x: np.ndarray, y: float) -> tuple[PROSNKONSState, float]:
    f = contract.decision(state, x)
    d, second = state.dictionary, state.newton
    k = d.used
    at, turn = f, state.turn + 1
    if state.most == 0 or k < state.most:
        for i in range(k):
            d.scaled[i] = d.scales[i] * d.near[i]
        _times_triangle(d.scaled, d.ridge, k, d.half)
        left = max(1.0 - inner_product(d.half[:k], d.half[:k]), 0.0)
        outside = 1.0 - inner_product(d.phi[:k], d.phi[:k])
        p = min(1.0, state.oversampling * (1.0 + state.epsilon) * left / (left + state.reg))
        if outside > IN_SPAN and hash_to_uniform(state.seed, state.turn) < p:
            if k == d.scales.size:
                half, phi = d.half, d.phi
                d, second = _double_room(d, second)
                for i in range(k):
                    d.half[i] = half[i]
                    d.phi[i] = phi[i]
            _grow_triangle(d.whitening, d.phi, np.sqrt(outside), k)
            for i in range(k):
                d.half[i] /= np.sqrt(p)
            own = 1.0 / p + state.reg
            _grow_triangle(d.ridge, d.half, np.sqrt(own - inner_product(d.half[:k], d.half[:k])), k)
            for j in range(x.size):
                d.points[k, j] = x[j]
            d.scales[k] = 1.0 / np.sqrt(p)
            d.phi[k] = np.sqrt(outside)
            d = Dictionary(
                points=d.points,
                scales=d.scales,
                whitening=d.whitening,
                ridge=d.ridge,
                near=d.near,
                phi=d.phi,
                scaled=d.scaled,
                half=d.half,
                used=k + 1,
            )
            if state.reset:
                reset_newton(second, k + 1)
                at = 0.0
            else:
                add_dimension(second, k)
    gradient = slope(state.loss, at, y)
    if gradient != 0.0 and d.used > 0:
        online_newton_step(second, d.phi[: d.used], gradient, second.curvature)
    return PROSNKONSState(
        dictionary=d,
        newton=second,
        most=state.most,
        turn=turn,
        seed=state.seed,
        precision=state.precision,
        oversampling=state.oversampling,
        epsilon=state.epsilon,
        reg=state.reg,
        reset=state.reset,
        loss=state.loss,
    ), f


@savable
class PROSNKONS(Learner):
    """PROS-N-KONS: Newton steps on features of a kernel, from a random sample of the examples (dictionary).

    Parameters
    ----------
    budget : int, optional
        Largest number of examples in the dictionary, at least 2. By default there is no limit.
    width : float, default 1.0
        Width of the kernel exp(-||x - y||^2 / (2 width^2)), in the unit of x, above 0.
    loss : str, default "hinge"
        Loss: "hinge", "squared_hinge" or "logistic" for targets -1 and 1; "squared", "huber" or
        "epsilon_insensitive" for numbers. See onepass.learner.losses.
    loss_width : float, default 1.0
        Width of the huber and epsilon_insensitive losses, in the unit of targets, above 0.
    step : float, default 0.2
        Step size, above 0.
    alpha : float, default 0.01
        Penalty, above 0: the matrix of the Newton step is alpha I before the first loss and after a reset.
    curvature : float, default 0.04
        Each loss with gradient g adds curvature * g g^T to the matrix of the Newton step. At least 0.
    bound : float, default 1.0
        Limit of |f| after a step, above 0. Targets of regression must lie within it.
    oversampling : float, default 1.0
        Factor of the probability with which an example joins the dictionary, above 0.
    epsilon : float, default 0.5
        Accuracy of the sampling, above 0.
    reg : float, default 1.0
        Penalty, above 0, in the leverage scores, which say how little of an example the dictionary explains.
    reset : bool, default True
        True forgets the weights when an example joins the dictionary. False keeps them.
    seed : int, default 0
        Seed of the sampling, from 0 to 2^32 - 1.

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
    >>> op.progressive_validation(op.learner.PROSNKONS(), rows, labels).mistakes[1000:].mean() < 0.2
    np.True_
    """

    def __init__(
        self,
        *,
        budget: int | None = None,
        width: float = 1.0,
        loss: str = "hinge",
        loss_width: float = 1.0,
        step: float = 0.2,
        alpha: float = 0.01,
        curvature: float = 0.04,
        bound: float = 1.0,
        oversampling: float = 1.0,
        epsilon: float = 0.5,
        reg: float = 1.0,
        reset: bool = True,
        seed: int = 0,
    ) -> None:
        self.params: dict[str, Any] = {
            "budget": None if budget is None else check.integer("budget", budget, 2),
            **check_common(width, loss, loss_width, step),
            **steps.check_settings(alpha, curvature, bound),
            "oversampling": check.positive("oversampling", oversampling),
            "epsilon": check.positive("epsilon", epsilon),
            "reg": check.positive("reg", reg),
            "reset": bool(check.choice("reset", reset, (False, True))),
            "seed": check.integer("seed", seed, 0, check.LARGEST_SEED),
        }
        self._state = None

    def _terms(self, x: np.ndarray, names: tuple[str, ...], decision: float) -> list[Reason]:
        d, used = self._state.dictionary, self._state.dictionary.used
        weights = d.whitening[:used, :used] @ self._state.newton.w[:used]
        return point_terms("example", d.points[:used], weights, self._state.precision, x)

    def begin(self, dim: int) -> PROSNKONSState:
        p, size = self.params, ROOM
        dictionary = Dictionary(
            points=zeros(size, dim),
            scales=zeros(size),
            whitening=zeros(size, size),
            ridge=zeros(size, size),
            near=zeros(size),
            phi=zeros(size),
            scaled=zeros(size),
            half=zeros(size),
            used=0,
        )
        return PROSNKONSState(
            dictionary=dictionary,
            newton=steps.init_newton(size, p),
            most=p["budget"] or 0,
            turn=0,
            seed=p["seed"],
            precision=0.5 / p["width"] ** 2,
            oversampling=p["oversampling"],
            epsilon=p["epsilon"],
            reg=p["reg"],
            reset=p["reset"],
            loss=make_loss(p["loss"], p["loss_width"]),
        )

    def fits(self, state: Any, begun: Any) -> bool:
        d, room = state.dictionary, state.dictionary.scales.size
        flat = (d.near, d.phi, d.scaled, d.half, state.newton.w, state.newton.v, state.newton.u)
        return (
            has_same_layout(state, begun, (*(f"dictionary.{name}" for name in DICTIONARY), *STEP, "turn"))
            and room >= 1
            and d.points.shape == (room, self.dim)
            and all(array.shape == (room,) for array in flat)
            and all(array.shape == (room, room) for array in (d.whitening, d.ridge, state.newton.root))
            and 0 <= d.used <= (min(room, state.most) if state.most else room)
            and state.turn >= 0
        )
