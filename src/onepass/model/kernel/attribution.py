"""Why a kernel bandit gives an arm its score: what every point of its dictionary U adds.

    mean(x)  = c + sum_i k(u_i, x) w_i                    w: weights of the points, of rewards less c (normalized: their
    width^2  = s^2 (k(x, x) / reg - k_U(x)^T C k_U(x))    mean and deviation s, else 0 and 1)

    GP-UCB   w = R R^T y                    C = R R^T / reg                          y: mean rewards of the points
    BKB      w = L^-T R R^T sum of z y      C = L^-T (I / reg - R R^T) L^-1          z = L^-1 k_U

So the mean comes from the points near x, and what is known of them narrows the width: their shares are mostly negative;
that of the prior is all there is before the first play. Of two arms the width is that of f(x) - f(y). Where points lie
close to each other their weights may be large and cancel: read them together.
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
    """One arm, or two, in terms of the points of the dictionary.

    names (used,): of the points; gram (used, m): k_U; prior (m, m): k / reg of the arms; centre, scale: c and s.
    """

    names: tuple[str, ...]
    gram: np.ndarray
    prior: np.ndarray
    centre: float
    scale: float

    def cross_values(self, count: int) -> np.ndarray:
        """k_U of the first arm, less that of the second if count is 2, (used,)."""
        return self.gram[:, :count] @ SIGNS[:count]


def make_expansion(
    state: KernelState, kernel: Kernel, points: np.ndarray, reg: float, fixed: bool, normalize: bool
) -> Expansion:
    """Arms at these points (m, dim); fixed: the dictionary's points are arms themselves."""
    members = state.members[: state.n_rows]
    names = [f"arm{place}" for place in members] if fixed else [f"point{i}" for i in range(state.n_rows)]
    gram, prior = kernel_matrix(kernel, state.points[members], points), kernel_matrix(kernel, points, points)
    return Expansion(tuple(names), gram, prior / reg, *reward_units(state, normalize))


def attribute_arms(of: Expansion, weights: np.ndarray, solved: np.ndarray, count: int) -> list[list[Side]]:
    """Return the first `count` arms in terms of the points.

    weights (used, 2) are those of means and ones; solved (used,): C near.
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
