"""Weights theta and s of the features z of an arm, or of the difference of two arms, for every part of a model.

    shared      theta,                               s = A^-1 sum of +-z
    arm         theta_a,                             s_a = +-A_a^-1 z_a
    hybrid      shared: beta, h = A_0^-1 sum of +-(z_a - B_a^T A_a^-1 x_a);      arm: A_a^-1 (b_a - B_a beta),
                +-A_a^-1 x_a - A_a^-1 B_a h

The mean is theta^T z and the squared width is s^T z, summed over all parts. A, A_a and A_0 are the designs of a shared
model, of arm a, and of the shared part of a hybrid model (arms/per_arm.py has the other symbols). The sign is + for the
first arm and - for the second.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design import contract
from onepass.estimator.contract import parameter
from onepass.features.attribution import attribute
from onepass.features.outer_product import Factors
from onepass.model.contract import Side
from onepass.model.feature_pipeline import FeaturePipeline

SIGNS = (1.0, -1.0)  # of an arm, and of the other


class Weights(NamedTuple):
    """Weights by which features z (D,) make up an arm's mean and squared width, in one part of a model.

    `part` is the name of the part. `theta` (D,) multiplies z for the mean, and `solved` (D,) for the squared width.
    """

    part: str
    theta: np.ndarray
    solved: np.ndarray


def request_rows(pipeline: FeaturePipeline, contexts: Any) -> np.ndarray:
    """Return the checked rows x of a single decision, (K, dim), or (1, dim) for all arms.

    `pipeline` is the feature map, which is not applied here. Raises ValueError for `contexts` of several decisions.
    """
    if not isinstance(contexts, Factors):
        rows = pipeline.rows(contexts, (1, 2))
        return rows.reshape(-1, rows.shape[-1])
    left, right = pipeline.sides(contexts, False)
    if len(left) != 1 or np.ndim(contexts.left) != 1:
        raise ValueError(f"contexts.left must be one user (d_u,), got shape {np.shape(contexts.left)}")
    return np.hstack([np.broadcast_to(left, (len(right), left.shape[1])), right])


def weights_of_shared(learned: Any, z: np.ndarray) -> list[list[Weights]]:
    """Return the weights of the features z (m, D) of m = 1 or 2 arms for mean and squared width, in a shared model.

    `learned` is the state of the model's estimator.
    """
    total = np.ascontiguousarray(sum(sign * row for sign, row in zip(SIGNS, z, strict=False)), z.dtype)
    return [[Weights("shared", parameter(learned), contract.solve(learned.design, total))] for _ in z]


def sides_of(
    pipeline: FeaturePipeline, names: tuple[str, ...], rows: np.ndarray, z: np.ndarray, weights: Any
) -> list[list[Side]]:
    """Return the contributions of the inputs to an arm's mean and squared width, given weights of features z.

    z (m, D) are the features of m arms, rows (m, dim) the inputs, and `names` (dim,) the names of the inputs. `weights`
    lists the `Weights` of every part of the model for each arm.
    """
    found = []
    for x, row, parts in zip(rows, z.astype(np.float64), weights, strict=True):
        each = []
        for part, theta, solved in parts:
            slopes = np.stack([theta, solved]).astype(np.float64)
            mean, square = (slopes @ row).tolist()
            each.append(Side(part, attribute(pipeline.map, pipeline.state, x, row, slopes, names), mean, square))
        found.append(each)
    return found
