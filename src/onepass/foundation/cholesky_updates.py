"""Rank-one and batch updates of matrix roots instead of the matrices themselves.

One kind is a root R with R R^T = A^-1, kept instead of A^-1. The other is a triangle T with T^T T = S^T S, kept instead
of the Gram matrix S^T S. A difference of squares loses every digit once the spectrum spans twelve orders of magnitude;
a root spans only six of them.
"""

import numpy as np

from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot, norm_limit, svd

LEAST_SINGULAR = 1e-150  # of an inverse root: its inverse square, an eigenvalue of A, is still finite


@compiled
def eigenvalue(singular: float) -> float:
    """Return the eigenvalue 1 / s^2 of a matrix A for a singular value s of the root R, where R R^T = A^-1.

    The result is at most 1e300, also for s = 0.
    """
    inverse = 1.0 / max(float(singular), LEAST_SINGULAR)
    return inverse * inverse


@compiled
def spectrum_of_root(root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues (k,) of A, and its eigenvectors as rows (k, k), from a root R with R R^T = A^-1.

    If R = U diag(s) V is the SVD, the eigenvalues are 1 / s^2 and the eigenvectors are the rows of U^T.
    """
    vectors, singular, _ = svd(root)
    values, least = np.empty(singular.size), 1.0 / norm_limit(root)  # so that A has room in the root's dtype
    for i in range(values.size):
        values[i] = eigenvalue(max(float(singular[i]), least))
    return values, np.ascontiguousarray(vectors.T)


@compiled
def update_root(root: np.ndarray, x: np.ndarray) -> float:
    """Update a root R with R R^T = A^-1, in place, so that R R^T = (A + x x^T)^-1.

    Returns q = x^T A^-1 x for the matrix A before the update.

    With v = R^T x, q = ||v||^2 and s = sqrt(1 + q):  R <- R - (R v) v^T / (s (s + 1)).
    This is the Sherman-Morrison formula taken on the root (Potter's form, and eq. 14-16 of the PSI-LinUCB paper): it
    cannot lose positive definiteness, and its error grows with the root of the condition number only.
    Shapes: root (k, c) with c >= k and zeros beyond column k, x (k,). Cost 3 k c multiplications.
    """
    v = dot(x, root)
    q = float(dot(v, v))
    if q > 0.0:
        shift_root(root, v, dot(root, v), q, 1.0)
    return q


@compiled
def update_root_within(root: np.ndarray, x: np.ndarray, v: np.ndarray, u: np.ndarray) -> float:
    """Update the leading k x k corner of a root R of A^-1 for a new row x (k,), in place, and return q = x^T A^-1 x.

    R R^T = A^-1 becomes (A + x x^T)^-1, and no arrays are allocated. The work arrays v and u, of length k or more,
    receive v = R^T x and u = A^-1 x for A before the update. This is faster than matrix products if k is small.
    """
    for j in range(x.size):
        v[j] = 0.0
    for i in range(x.size):
        for j in range(x.size):
            v[j] += x[i] * root[i, j]
    q = 0.0
    for j in range(x.size):
        q += v[j] * v[j]
    for i in range(x.size):
        total = root.dtype.type(0.0)
        for j in range(x.size):
            total += root[i, j] * v[j]
        u[i] = total
    if q > 0.0:
        shift_root(root, v, u[: x.size], q, 1.0)
    return q


@compiled
def shift_root(root: np.ndarray, v: np.ndarray, u: np.ndarray, q: float, weight: float) -> None:
    """Update a root R with R R^T = A^-1, in place, so that R R^T = (A + weight x x^T)^-1.

    The caller passes v = R^T x, u = R v = A^-1 x and q = x^T A^-1 x. The update is R <- R - weight u v^T / (s (s + 1))
    with s = sqrt(1 + weight q). The weight may be negative, down to -1 / q. Rows and columns of the root beyond len(u)
    stay as they are.
    """
    s = np.sqrt(1.0 + weight * q)
    scale = root.dtype.type(weight / (s * (s + 1.0)))
    for i in range(u.size):
        step = u[i] * scale
        for j in range(u.size):
            root[i, j] -= step * v[j]


@compiled
def update_root_rows(root: np.ndarray, rows: np.ndarray) -> float:
    """Update a root R (k, k) of A^-1 in place for B rows (B, k) added to A, and return the growth of log det A.

    The update is R <- R - (R Q^T) C Q, where rows R = P diag(s) Q is an SVD and C = diag(1 - 1 / sqrt(1 + s^2)). It
    takes the symmetric root of I + V^T V, V = rows R, where Shustova et al. take its Cholesky factor, so that repeated
    rows do not inflate the rank. It takes the SVD of V and not its Gram matrix, so that rows of very different norms
    keep their digits.
    """
    _, singular, directions = svd(dot(rows, root))
    gain = 0.0
    scaled = np.empty_like(directions)
    for i in range(singular.size):
        s = np.sqrt(1.0 + float(singular[i]) ** 2)
        gain += 2.0 * np.log(s)
        for j in range(scaled.shape[1]):
            scaled[i, j] = directions[i, j] * (float(singular[i]) ** 2 / (s * (s + 1.0)))
    step = dot(dot(root, directions.T), scaled)
    for i in range(root.shape[0]):
        for j in range(root.shape[1]):
            root[i, j] -= step[i, j]
    return gain


@compiled
def update_triangle(triangle: np.ndarray, z: np.ndarray, outside: bool) -> None:
    """Update a lower triangle T in place so that T^T T grows by z z^T; z (k,) is overwritten.

    If `outside` is True, the row z lies outside the span of T's rows and has one coordinate more than T has columns. It
    then becomes the next row of T, at cost O(k); the array `triangle` must have room for it. Any
    other row is rotated into T by Givens rotations, from the last column to the first, at cost O(k^2).
    """
    last = z.size - 1
    if outside:
        for j in range(z.size):
            triangle[last, j] = z[j]
    else:
        for i in range(last, -1, -1):
            if z[i] != 0.0:
                length = np.hypot(triangle[i, i], z[i])
                cosine, sine = triangle[i, i] / length, z[i] / length
                for j in range(i + 1):
                    above, below = triangle[i, j], z[j]
                    triangle[i, j] = cosine * above + sine * below
                    z[j] = cosine * below - sine * above
