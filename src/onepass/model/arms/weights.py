"""Weights theta and s of the features z of an arm, or of the difference of two arms, for models per arm.

arm         theta_a,                             s_a = +-A_a^-1 z_a
hybrid      shared: beta, h = A_0^-1 sum of +-(z_a - B_a^T A_a^-1 x_a);      arm: A_a^-1 (b_a - B_a beta),
            +-A_a^-1 x_a - A_a^-1 B_a h

The mean is theta^T z and the squared width is s^T z (model/weights.py). A_a and b_a are the design and the moment of
arm a, and per_arm.py defines the other symbols. The sign is + for the first arm and - for the second.
"""

import numpy as np

from onepass.arena.arena import NONE
from onepass.design import contract
from onepass.estimator.contract import parameter
from onepass.features.outer_product import Factors
from onepass.model.arms.per_arm import ArmModelsState
from onepass.model.arms.rank_one import lengths_along
from onepass.model.weights import SIGNS, Weights


def arm_weights(
    learned: ArmModelsState, arm_ids: np.ndarray, z: np.ndarray, sides: Factors | None
) -> list[list[Weights]]:
    """Return the weights by which the features z (m, D) of m = 1 or 2 arms make up mean and squared width.

    `learned` is the state of models per arm, and `arm_ids` (m,) are the arms' ids. `sides` holds u and v of each arm if
    contexts are vec(u v^T) of which arms learn only u, times the length of v (rank_one.py); else it is None.
    """
    store, shared, rows = learned.store, learned.shared, z
    whole = lambda vector, i: vector  # noqa: E731
    if sides is not None:
        lengths, axes = lengths_along(learned.direction, arm_ids, sides.right), axes_of(learned, arm_ids, sides.right)
        rows = np.ascontiguousarray(lengths[:, None] * sides.left)
        whole = lambda vector, i: np.outer(vector, axes[i]).ravel()  # noqa: E731
    arms = [store.export_arm(arm_id) for arm_id in arm_ids.tolist()]
    theta = [arm.parameter() for arm in arms]
    solved = [sign * arm.solve(row) for sign, arm, row in zip(SIGNS, arms, rows, strict=False)]
    if shared == ():
        return [[Weights("arm", whole(theta[i], i), whole(solved[i], i))] for i in range(len(z))]
    own, beta = z.copy(), parameter(shared)
    _, _, own = store.evaluate(arm_ids, rows, own)
    total = np.ascontiguousarray(sum(sign * row for sign, row in zip(SIGNS, own, strict=False)), z.dtype)
    common = contract.solve(shared.design, total)
    for i, arm in enumerate(arms):
        theta[i], solved[i] = theta[i] - arm.solve_cross(beta), solved[i] - arm.solve_cross(common)
    return [
        [Weights("shared", beta, common), Weights("arm", whole(theta[i], i), whole(solved[i], i))]
        for i in range(len(z))
    ]


def axes_of(learned: ArmModelsState, arm_ids: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the unit vectors (m, d_a) along which v lies for m arms, for contexts vec(u v^T).

    `learned` is the state of the models, and `arm_ids` (m,) are the arms' ids. An arm that has learned keeps the
    direction of its v. For an arm that has not learned it is the direction of its row of `right` (m, d_a), the factors
    v of the arms in this request.
    """
    norms = np.linalg.norm(right.astype(np.float64), axis=1, keepdims=True)
    axes = np.divide(right, norms, out=np.zeros(right.shape), where=norms > 0.0)
    for i, arm_id in enumerate(arm_ids):
        if arm_id != NONE and learned.direction[arm_id].any():
            axes[i] = learned.direction[arm_id]
    return axes
