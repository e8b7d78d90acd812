"""The online Newton step of Wen, Zhang et al., algorithm 1, on features phi of which the first k are in use.

With f the decision and l the loss, an example changes the weights w and the matrix A by

    g = l'(f) phi,  u = A^-1 phi:   w <- w - step A^-1 g,   w <- w - h(w^T phi) / (phi^T u) u,
                                    A <- A + curvature g g^T;   h(z) = sign(z) max(|z| - bound, 0)

The step uses A as it was before the example, and allocates no memory. Proposition 1 of Luo, Agarwal, Cesa-Bianchi and
Langford 2016 holds for convex losses and any w' with |w'^T phi_t| <= bound for all t. With A_t the matrix before step
t, c_t the curvature of this step, and A_1 = alpha I:

    sum of l(f_t) - l(w'^T phi_t)  <=  (alpha ||w'||^2 / step + step sum of g_t^T A_t^-1 g_t
                                        + sum of c_t (l'(f_t) (f_{t+1}' - w'^T phi_t))^2 / step) / 2

Here f_{t+1}' is the decision on phi_t by the new w, clipped to the bound. The text of Wen, Zhang et al. has sigma_t +
eta_t in place of c_t, with sigma_t = 0.5. Their program uses c_t = 0.04 and the step 0.2.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.cholesky_updates import shift_root
from onepass.foundation.generic import compiled
from onepass.foundation.state import zeros


class Newton(NamedTuple):
    """State of an online Newton step on k weights; arrays may be longer than the k entries in use.

    - w (k,): weights.
    - root (k, k): R with R R^T = A^-1, where A is the matrix of the Newton step.
    - v, u (k,): work arrays.
    - step: step size.
    - alpha: the matrix A is alpha I at first.
    - curvature: factor with which the outer product g g^T of a gradient g is added to A.
    - bound: largest absolute value of a prediction.
    """

    w: np.ndarray
    root: np.ndarray
    v: np.ndarray
    u: np.ndarray
    step: float
    alpha: float
    curvature: float
    bound: float


@compiled
def inner_product(a: np.ndarray, b: np.ndarray) -> float:
    """Return a^T b without a call of BLAS or an allocation."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@compiled
def solve_features(state: Newton, phi: np.ndarray) -> float:
    """Return phi^T A^-1 phi for features phi (k,) and the matrix A of the Newton step; state.u becomes A^-1 phi.

    state.v becomes R^T phi, where R R^T = A^-1.
    """
    k = phi.size
    root, v, u = state.root, state.v, state.u
    for j in range(k):
        v[j] = 0.0
    for i in range(k):
        for j in range(k):
            v[j] += phi[i] * root[i, j]
    for i in range(k):
        total = 0.0
        for j in range(k):
            total += root[i, j] * v[j]
        u[i] = total
    return inner_product(v[:k], v[:k])


@compiled
def project_weights(state: Newton, phi: np.ndarray, f: float, q: float, bound: float) -> None:
    """Move the weights w to the nearest ones with |w^T phi| <= bound, in the norm of the Newton step's matrix A.

    f is w^T phi and q is phi^T A^-1 phi; state.u must hold A^-1 phi.
    """
    over = abs(f) - bound
    if over > 0.0:
        for j in range(phi.size):
            state.w[j] -= np.sign(f) * over / q * state.u[j]


@compiled
def online_newton_step(state: Newton, phi: np.ndarray, gradient: float, curvature: float) -> None:
    """Take one Newton step, in place, for features phi (k,), and limit the prediction to the state's bound.

    `gradient` is the derivative of the loss by the prediction. The step's matrix gains curvature * g g^T with g =
    gradient * phi.
    """
    k = phi.size
    w, q = state.w[:k], solve_features(state, phi)
    if q > 0.0:
        for j in range(k):
            w[j] -= state.step * gradient * state.u[j]
        project_weights(state, phi, inner_product(w, phi), q, state.bound)
        shift_root(state.root, state.v[:k], state.u[:k], q, curvature * gradient * gradient)


@compiled
def reset_newton(state: Newton, k: int) -> None:
    """Reset the Newton step to the weights 0 and the matrix alpha I, in k dimensions."""
    for i in range(k):
        state.w[i] = 0.0
        for j in range(k):
            state.root[i, j] = 1.0 / np.sqrt(state.alpha) if i == j else 0.0


@compiled
def add_dimension(state: Newton, k: int) -> None:
    """Add a dimension after the k in use, in place: A gets alpha on its diagonal, and the weights a zero."""
    state.w[k] = 0.0
    for i in range(k):
        state.root[i, k], state.root[k, i] = 0.0, 0.0
    state.root[k, k] = 1.0 / np.sqrt(state.alpha)


def init_newton(size: int, params: dict[str, Any]) -> Newton:
    """Return the state of the Newton step with room for `size` features, zeros until `reset_newton` is called.

    `params` holds step, alpha, curvature and bound.
    """
    return Newton(
        w=zeros(size),
        root=zeros(size, size),
        v=zeros(size),
        u=zeros(size),
        step=params["step"],
        alpha=params["alpha"],
        curvature=params["curvature"],
        bound=params["bound"],
    )


def check_settings(alpha: float, curvature: float, bound: float) -> dict[str, float]:
    """Return the settings as a dictionary. Raises ValueError unless alpha, bound > 0 and curvature >= 0."""
    return {
        "alpha": check.positive("alpha", alpha),
        "curvature": check_curvature("curvature", curvature),
        "bound": check.positive("bound", bound),
    }


def check_curvature(name: str, value: float) -> float:
    """Return the curvature `value` of the argument `name`; raise ValueError unless it is finite and at least 0."""
    found = check.real(name, value)
    if found < 0.0:
        raise ValueError(f"{name} must be at least 0, got {quote(value)}")
    return found
