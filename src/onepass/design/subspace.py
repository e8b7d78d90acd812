"""The shape in which every sketch keeps its inverse: dense on a subspace, a multiple of I outside it.

    A^-1 = (I - Q^T Q) / ridge + Q^T R R^T Q

Q (used, dim) has orthonormal rows, R (used, used) is a root of the inverse on their span. Scoring n rows is one
GEMM of d x used and a small one. Against the more common A^-1 = (I - W^T W) / ridge this needs no second copy of the
rows and cancels less: with rows of norms 1e-6 to 1e6 that form erred by 3e-6 of ||A^-1||, roots by 2e-11 (measured).
"""

from typing import NamedTuple

import numpy as np

from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot, fill, spectrum_of_root, split, squared_norms, update_root


class Subspace(NamedTuple):
    """basis (capacity, dim), root (capacity, capacity): `used` rows count; root is zero beyond."""

    basis: np.ndarray
    root: np.ndarray
    used: int
    ridge: float
    log_det: float


@compiled
def subspace(like, capacity, ridge):
    """An empty subspace for rows of the width and dtype of `like`, shape (n, dim): A = ridge I."""
    basis = np.zeros((capacity, like.shape[1]), like.dtype)
    return Subspace(basis, np.zeros((capacity, capacity), like.dtype), 0, ridge, like.shape[1] * np.log(ridge))


@compiled
def grow(space, row):
    """Make the span hold x; A stays. Returns the space and the coordinates of x (one more if x was outside).

    The caller has made room: a full basis never grows.
    """
    basis, root, used = space.basis, space.root, space.used
    coordinates, residual, length = split(basis[:used], row)
    if length > 0.0 and used < basis.shape[0]:
        for j in range(row.size):
            basis[used, j] = residual[j] / length
        root[used, used] = 1.0 / np.sqrt(space.ridge)
        used += 1
        grown = np.empty(used, basis.dtype)
        for i in range(used - 1):
            grown[i] = coordinates[i]
        grown[used - 1] = length
        coordinates = grown
    return Subspace(basis, root, used, space.ridge, space.log_det), coordinates


@compiled
def extend(space, row):
    """A += x x^T. Returns the space and the coordinates of x."""
    space, coordinates = grow(space, row)
    gain = np.log1p(update_root(space.root[: space.used], coordinates))
    return Subspace(space.basis, space.root, space.used, space.ridge, space.log_det + gain), coordinates


@compiled
def enlarge(space, capacity):
    """The same space with room for `capacity` directions."""
    basis = np.zeros((capacity, space.basis.shape[1]), space.basis.dtype)
    root = np.zeros((capacity, capacity), space.root.dtype)
    used = space.used
    fill(basis[:used], space.basis[:used])
    fill(root[:used, :used], space.root[:used, :used])
    return Subspace(basis, root, used, space.ridge, space.log_det)


@compiled
def solve_in(space, b):
    """A^-1 b = b / ridge + Q^T (R R^T p - p / ridge) with p = Q b."""
    basis, root, ridge = space.basis[: space.used], space.root[: space.used], space.ridge
    p = dot(basis, b)
    inside = dot(root, dot(p, root))
    total, rounding = dot(b, b), 1e10 * np.finfo(basis.dtype).eps
    lost = dot(p, p) > (1.0 - 1e-6) * total
    if lost and rounding * rounding * total > dot(inside, inside) * ridge * ridge:
        # b - Q^T p has lost its digits and they matter: project twice
        p, outside, length = split(basis, b)
        out = dot(dot(root, dot(p, root)), basis)
        for j in range(b.size):
            out[j] += outside[j] / ridge if length > 0.0 else 0.0
        return out
    for i in range(p.size):
        inside[i] -= p[i] / ridge
    out = dot(inside, basis)
    for j in range(b.size):
        out[j] += b[j] / ridge
    return out


@compiled
def inverse_quadratic_in(space, rows):
    """x^T A^-1 x = (||x||^2 - ||p||^2) / ridge + ||R^T p||^2 with p = Q x, for every row x."""
    basis, root = space.basis[: space.used], space.root[: space.used]
    projected = dot(rows, basis.T)
    inside, total, covered = squared_norms(dot(projected, root)), squared_norms(rows), squared_norms(projected)
    rounding = 10.0 * np.finfo(basis.dtype).eps
    for i in range(rows.shape[0]):
        outside = max(total[i] - covered[i], 0.0)
        if outside < 1e-6 * total[i] and rounding * total[i] > 1e-9 * inside[i] * space.ridge:
            _, _, length = split(basis, rows[i])  # the difference has lost its digits and they matter
            outside = length * length
        inside[i] += outside / space.ridge
    return inside


@compiled
def root_in(space, z):
    """((I - Q^T Q) / sqrt(ridge) + Q^T R Q) z."""
    basis = space.basis[: space.used]
    p, coordinates = dot(basis, z), np.zeros(space.root.shape[1], basis.dtype)
    for i in range(p.size):
        coordinates[i] = p[i]
    inside, scale = dot(space.root[: space.used], coordinates), 1.0 / np.sqrt(space.ridge)
    for i in range(p.size):
        inside[i] -= p[i] * scale
    out = dot(inside, basis)
    for j in range(z.size):
        out[j] += z[j] * scale
    return out


@compiled
def matrix_in(space):
    """ridge I + Q^T ((R R^T)^-1 - ridge I) Q."""
    used, ridge = space.used, space.ridge
    basis = space.basis[:used].astype(np.float64)
    inverse = np.linalg.inv(space.root[:used, :used].astype(np.float64))
    core = dot(inverse.T, inverse) - ridge * np.eye(used)
    return ridge * np.eye(basis.shape[1]) + dot(dot(basis.T, core), basis)


@compiled
def spectrum_in(space):
    """Eigenvalues and eigenvectors on the span, those of the root turned by Q; ridge outside it."""
    if space.used == 0:
        return np.empty(0), space.basis[:0], space.ridge
    values, vectors = spectrum_of_root(space.root[: space.used, : space.used])
    return values, dot(vectors, space.basis[: space.used]), space.ridge
