"""Feature maps by landmarks, phi(x) = Z^T k(x), where k(x) holds the kernel of x with m landmarks.

The Nystrom map is one of them: with the kernel matrix K = V S V^T of the landmarks, Z = V S^-1/2. With all eigenpairs,
phi(x)^T phi(y) = k(x)^T K^-1 k(y), which approximates the kernel of x and y. With the leading k pairs only, it is the
part of this in their span (Williams and Seeger 2001). A row costs O(m (dim + k)).
"""

from typing import NamedTuple

import numpy as np

from onepass.features.contract import copy_scratch, output_dim, transform_row
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import eigh, squared_distances

LEAST = 1e-10  # of the largest eigenvalue: directions with less are left out, their features are 0


class Landmarks(NamedTuple):
    """State of a feature map phi(x) = Z^T k(x), where k(x) holds the Gaussian kernel of x with m landmarks.

    points (m, dim) holds the landmarks, and z (m, k) is Z. precision is 1 / (2 width^2). near (m,) is a work array for
    kernel values.
    """

    points: np.ndarray
    z: np.ndarray
    near: np.ndarray
    precision: float


@compiled
def fill_gaussian(points: np.ndarray, used: int, x: np.ndarray, precision: float, near: np.ndarray) -> None:
    """Write exp(-precision ||x - p||^2) into `near` (m,) for each of the first `used` of m points p."""
    for i in range(used):
        square = 0.0
        for j in range(x.size):
            gap = x[j] - points[i, j]
            square += gap * gap
        near[i] = np.exp(-precision * square)


@output_dim.for_state(Landmarks)
def output_dim_landmarks(state: Landmarks) -> int:
    return state.z.shape[1]


@transform_row.for_state(Landmarks)
def transform_row_landmarks(state: Landmarks, x: np.ndarray, phi: np.ndarray) -> None:
    near, z = state.near, state.z
    fill_gaussian(state.points, near.size, x, state.precision, near)
    for j in range(phi.size):
        phi[j] = 0.0
    for i in range(near.size):
        for j in range(phi.size):
            phi[j] += near[i] * z[i, j]


@copy_scratch.for_state(Landmarks)
def copy_scratch_landmarks(state: Landmarks) -> Landmarks:
    return Landmarks(points=state.points, z=state.z, near=np.empty(state.near.size), precision=state.precision)


@compiled
def make_nystrom(points: np.ndarray, precision: float, rank: int) -> Landmarks:
    """Make the Nystrom feature map of a Gaussian kernel, with the landmarks `points` (m, dim) and `rank` features.

    precision is 1 / (2 width^2) for the kernel's width.
    """
    gram = squared_distances(points, points)
    for i in range(gram.shape[0]):
        for j in range(gram.shape[1]):
            gram[i, j] = np.exp(-precision * gram[i, j])
    values, vectors = eigh(gram)
    z, top = np.zeros((points.shape[0], rank)), values.size - 1
    for i in range(min(rank, values.size)):
        if values[top - i] > LEAST * values[top]:
            scale = 1.0 / np.sqrt(values[top - i])
            for j in range(values.size):
                z[j, i] = scale * vectors[top - i, j]
    return Landmarks(points=points, z=z, near=np.zeros(points.shape[0]), precision=precision)
