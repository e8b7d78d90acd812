"""Updates of square roots: R with R R^T = A^-1 instead of A^-1, a triangle T with T^T T = S^T S instead of S^T S.

A difference of squares loses every digit once the spectrum spans twelve orders of magnitude; a root spans only six of
them.
"""

import numpy as np

from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot, norm_limit, svd

LEAST_SINGULAR = 1e-150  # of an inverse root: its inverse square, an eigenvalue of A, is still finite


@compiled
def eigenvalue(singular):
    """Return the eigenvalue 1 / s^2 of A for a singular value s of R, R R^T = A^-1; finite for s = 0 too."""
    inverse = 1.0 / max(float(singular), LEAST_SINGULAR)
    return inverse * inverse


@compiled
def spectrum_of_root(root):
    """Eigenvalues (k,) and eigenvectors as rows of A, R R^T = A^-1: from R = U diag(s) V they are 1 / s^2 and U^T."""
    vectors, singular, _ = svd(root)
    values, least = np.empty(singular.size), 1.0 / norm_limit(root)  # so that A has room in the root's dtype
    for i in range(values.size):
        values[i] = eigenvalue(max(float(singular[i]), least))
    return values, np.ascontiguousarray(vectors.T)


@compiled
def update_root(root, x):
    """R R^T = A^-1 becomes (A + x x^T)^-1, in place; returns q = x^T A^-1 x as it was before.

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
def update_root_within(root, x, v, u):
    """`update_root` of the leading corner of as many rows and columns as x has, without an array of its own.

    v and u, longer than x, are left as v = R^T x and u = A^-1 x, of before. Faster than products for small corners.
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
def shift_root(root, v, u, q, weight):
    """R R^T = A^-1 becomes (A + weight x x^T)^-1, in place, given v = R^T x, u = R v = A^-1 x and q = x^T A^-1 x.

    R <- R - weight u v^T / (s (s + 1)), s = sqrt(1 + weight q); weight may be negative, down to -1 / q. The root may
    have more rows and columns than u has entries: they stay.
    """
    s = np.sqrt(1.0 + weight * q)
    scale = root.dtype.type(weight / (s * (s + 1.0)))
    for i in range(u.size):
        step = u[i] * scale
        for j in range(u.size):
            root[i, j] -= step * v[j]


@compiled
def update_root_rows(root, rows):
    """Update the root for a batch of rows (B, k): R <- R - (R Q^T) C Q. Returns the gain of log det A.

    V = rows R = P diag(s) Q, C = diag(1 - 1 / sqrt(1 + s^2)). The symmetric root of I + V^T V, not Shustova et al.'s
    Cholesky factor, so that repeated rows do not inflate the rank; by an SVD, not the Gram matrix of V, so that rows of
    very different norms keep their digits.
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
def update_triangle(triangle, z, outside):
    """T^T T becomes T^T T + z z^T for a lower triangle T, in place; z (k,) is used up.

    A row from `outside` the span has one coordinate more than T has columns: it is the next row of T as it stands.
    Any other row is rotated into T by Givens rotations, from the last column to the first. Cost O(k), O(k^2).
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
