"""Attribution of a kernel bandit's score for an arm to the points of its dictionary U.

    mean(x)  = c + sum_i k(u_i, x) w_i                    w: weights of the points, of rewards less c (normalized: their
    width^2  = s^2 (k(x, x) / reg - k_U(x)^T C k_U(x))    mean and deviation s, else 0 and 1)
    GP-UCB   w = R R^T y                    C = R R^T / reg                          y: mean rewards of the points
    BKB      w = L^-T R R^T sum of z y      C = L^-T (I / reg - R R^T) L^-1          z = L^-1 k_U

The mean comes from the points near x, and these points narrow the width, so their shares are mostly negative. Before
the first play, the width has only the share of the prior. For two arms x and y, the width is that of f(x) - f(y).
Points that lie close to each other may have large weights that cancel, so only their sum has a meaning.
"""

from typing import NamedTuple

import numpy as np

from onepass.features.attribution import Terms
from onepass.features.kernels import Kernel
from onepass.model.contract import Side
from onepass.model.kernel.checks import kernel_matrix
from onepass.model.kernel.state import KernelState, reward_units

SIGNS = np.array([1.0, -1.0])  # of an arm, and of the other


class Expansion(NamedTuple):
    """One arm or two in terms of the points on which a kernel model's posterior is based.

    - names (used,): names of the points.
    - gram (used, m): kernel between the points and the m arms.
    - prior (m, m): kernel between the arms, divided by reg.
    - centre, scale: mean and deviation of rewards if they are normalized, else 0 and 1.
    """

    names: tuple[str, ...]
    gram: np.ndarray
    prior: np.ndarray
    centre: float
    scale: float

    def cross_values(self, count: int) -> np.ndarray:
        """Return the kernel (used,) between the points and the first arm, minus the second arm's if `count` is 2."""
        return self.gram[:, :count] @ SIGNS[:count]


def make_expansion(
    state: KernelState, kernel: Kernel, points: np.ndarray, reg: float, fixed: bool, normalize: bool
) -> Expansion:
    """Return one or two arms at points (m, dim) in terms of the points on which the model's posterior is based.

    Means and widths are sums over these points. `fixed` is True if the model's points are arms themselves. `reg` and
    `normalize` are arguments of the model.
    """
    members = state.members[: state.n_rows]
    names = [f"arm{place}" for place in members] if fixed else [f"point{i}" for i in range(state.n_rows)]
    gram, prior = kernel_matrix(kernel, state.points[members], points), kernel_matrix(kernel, points, points)
    return Expansion(tuple(names), gram, prior / reg, *reward_units(state, normalize))


def attribute_arms(of: Expansion, weights: np.ndarray, solved: np.ndarray, count: int) -> list[list[Side]]:
    """Return the contributions of the model's points to the mean and squared width of the first `count` arms.

    `of` holds the arms in terms of the points. weights (used, 2) are the points' weights for rewards and for the
    constant 1, and solved (used,) the weights for the squared width.
    """
    own, square = weights[:, 0] - of.centre * weights[:, 1], of.scale**2
    names, known = ("intercept", "prior", *of.names), of.prior[:count, :count] @ SIGNS[:count]
    mean, width = np.concatenate([[of.centre, 0.0], own]), square * np.concatenate([[0.0, 1.0], -solved])
    found = []
    for i in range(count):
        values = np.concatenate([[1.0, of.prior[i, i]], of.gram[:, i]])
        parts = np.stack([mean * values, width * values])
        parts[1, 1] = square * known[i]
        found.append(
            [Side("shared", Terms(names, values, np.stack([mean, width]), parts), *parts.sum(axis=1).tolist())]
        )
    return found
