"""Compiled linear algebra on plain arrays. Vectors are stored as rows: k directions in d dimensions are (k, d)."""

from functools import partial
from typing import Any

import numpy as np

from onepass.foundation.generic import compiled

SMALL = 64  # numbers in the larger operand
# What a row has outside a span counts as nothing below this many roundings of its length: a direction made from two
# nearly parallel rows is itself known to thousands of roundings, and every later row along it leaves as many outside.
IN_SPAN = 1e5
IN_SPAN_AT_MOST = 6e-5  # the same as a share of ||x||, for single precision, which has no 1e5 roundings to spare
ROOM = 1e-4  # of the root of the largest number: sums of 10^8 products of two such numbers are finite
SECULAR_STEPS = 100  # at most; some ten are usual
SECULAR_DIGITS = 1e-15  # of mu: a step below that is the last one
FEW = 8  # features up to which differences cost no more than a product
CLOSE = 1e-5  # of ||x||^2 + ||y||^2: a squared distance below it has lost five digits and more to cancellation
CANCELLED = 1e-2  # of ||x||: a residual that is shorter has lost two digits, and is projected once more
KNOWN = 0.1  # of an eigenvalue: one that is less certain is not known at all
DROPPED = 1e-14  # of the largest eigenvalue: what is below are roundings of an update
NEGLIGIBLE = 10.0  # roundings of the largest singular value: one that is smaller is none
ROUNDINGS = 500.0  # of ||A|| that products, and updates of an inverse root, may leave (85 measured)


@compiled
def dot(a: np.ndarray, b: np.ndarray) -> Any:
    """Return np.dot(a, b), compiled once for all callers.

    Inlined everywhere, the checks of np.dot would double the time to compile. Small products of vectors and of matrices
    with vectors are computed in a loop, because a call of BLAS costs a tenth of a microsecond.
    """
    if a.ndim == 1:
        if b.ndim == 1:
            if a.size <= SMALL and a.size == b.size:
                total = a.dtype.type(0)
                for i in range(a.size):
                    total += a[i] * b[i]
                return total
        else:
            if b.size <= SMALL and a.size == b.shape[0]:
                out = np.zeros(b.shape[1], b.dtype)
                for i in range(a.size):
                    for j in range(out.size):
                        out[j] += a[i] * b[i, j]
                return out
    elif b.ndim == 1 and a.size <= SMALL and a.shape[1] == b.size:
        out = np.zeros(a.shape[0], a.dtype)
        for i in range(out.size):
            total = a.dtype.type(0)
            for j in range(b.size):
                total += a[i, j] * b[j]
            out[i] = total
        return out
    return np.dot(a, b)


@compiled
def fill(target: np.ndarray, source: np.ndarray) -> None:
    """Copy matrix `source` into `target` of equal shape; a loop compiles to far less code than a slice assignment."""
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            target[i, j] = source[i, j]


@compiled
def double_capacity(rows: np.ndarray) -> np.ndarray:
    """Return a float64 copy of a matrix (n, m) with 2 n rows, where the new rows are zeros."""
    out = np.zeros((2 * rows.shape[0], rows.shape[1]))
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            out[i, j] = rows[i, j]
    return out


@compiled
def svd(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the thin SVD U diag(s) V of a matrix (m, n), with k = min(m, n): U (m, k), s (k,) and V (k, n).

    All are C-contiguous. The function is compiled once for all callers.
    """
    u, s, v = np.linalg.svd(np.ascontiguousarray(matrix), full_matrices=False)
    return np.ascontiguousarray(u), s, np.ascontiguousarray(v)


@compiled
def orthonormal(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Q (m, n) with orthonormal rows and T (m, m) with rows^T = Q^T T, the thin QR of the transpose."""
    q, t = np.linalg.qr(np.ascontiguousarray(rows.T))
    return np.ascontiguousarray(q.T), np.ascontiguousarray(t)


@compiled
def eigh(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues of a symmetric matrix, ascending, and its eigenvectors as rows, in double precision."""
    values, vectors = np.linalg.eigh(np.ascontiguousarray(matrix).astype(np.float64))
    return values, np.ascontiguousarray(vectors.T)


@compiled
def squared_norms(rows: np.ndarray) -> np.ndarray:
    """Return ||x||^2 for every row x, shape (n, dim) -> (n,), in double precision."""
    out = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[i, j] * rows[i, j]
        out[i] = total
    return out


@compiled
def squared_distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the squared distances ||x_i - y_j||^2 (n, m) between rows x (n, d) and rows y (m, d).

    They come from one matrix product. Pairs so close that this would lose digits (CLOSE), and rows with few features,
    are computed from the differences instead.
    """
    direct = x.shape[1] <= FEW
    out = np.empty((x.shape[0], y.shape[0])) if direct else np.dot(x, y.T)
    left, right = squared_norms(x), squared_norms(y)
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            both = left[i] + right[j]
            square = 0.0 if direct else both - 2.0 * out[i, j]
            if direct or square < CLOSE * both:
                square = 0.0
                for k in range(x.shape[1]):
                    step = x[i, k] - y[j, k]
                    square += step * step
            out[i, j] = square
    return out


@compiled
def span_tolerance(eps: float) -> float:
    """Return the fraction of ||x|| outside a span that is treated as rounding; `eps` is the dtype's epsilon."""
    return min(IN_SPAN * float(eps), IN_SPAN_AT_MOST)


@compiled
def vector_norm(x: np.ndarray) -> float:
    """Return the Euclidean norm of a vector, without underflow."""
    total, largest = 0.0, 0.0
    for j in range(x.size):
        total += x[j] * x[j]
    kind = np.finfo(x.dtype)
    if total * kind.eps > kind.tiny:
        return np.sqrt(total)
    for j in range(x.size):
        largest = max(largest, abs(float(x[j])))
    if largest == 0.0:
        return 0.0
    total = 0.0
    for j in range(x.size):
        total += (x[j] / largest) ** 2
    return largest * np.sqrt(total)


@compiled
def reorthogonalize(basis: np.ndarray, row: np.ndarray, coordinates: np.ndarray, residual: np.ndarray) -> float:
    """Make the residual of a row x orthogonal to the rows of Q = `basis`, and return its length, or minus its length.

    `coordinates` = Q x and `residual` = x - Q^T Q x come from one pass and are corrected in place. The second
    projection is done if the first one cancelled more than two digits, so that the residual is orthogonal to Q up to
    rounding. The result is minus the length (or 0) if x lies in the span of Q: if the length is at most ||x|| times
    `span_tolerance`, which depends on the dtype. Otherwise it is the length.
    """
    norm, length = vector_norm(row), vector_norm(residual)
    least = span_tolerance(np.finfo(basis.dtype).eps) * norm
    if least < length < CANCELLED * norm:
        again = dot(basis, residual)
        for i in range(again.size):
            coordinates[i] += again[i]
        twice = dot(again, basis)
        for j in range(row.size):
            residual[j] -= twice[j]
        length = vector_norm(residual)
    if basis.shape[0] == basis.shape[1]:
        return 0.0
    return length if length > least else -length


@compiled
def split(basis: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return coordinates p = Q x of a row x, the residual x - Q^T p and its length, for orthonormal rows Q = `basis`.

    A length of 0 or below means that x lies in the span (see `reorthogonalize`). Cost: 2 k d for Q (k, d), and 4 k d if
    the row is projected twice.
    """
    coordinates = dot(basis, row)
    residual = dot(coordinates, basis)
    for j in range(row.size):
        residual[j] = row[j] - residual[j]
    length = reorthogonalize(basis, row, coordinates, residual)
    return coordinates, residual, length


@compiled
def omission_error(coordinates: np.ndarray, length: float) -> float:
    """Return how far x x^T changes, in its 2-norm, if the part of x outside a span is dropped.

    `coordinates` are those of x in the span, and `length` is the norm of the dropped part.
    """
    return length * (2.0 * vector_norm(coordinates) + length)


@compiled
def product_rounding(eps: float, mass: float, reg: float) -> float:
    """Return how much the rounding of products adds to a bound on ||A - A_hat||_2, the error of a sketched design.

    `mass` is the total squared norm of the rows, `reg` the regularization, `eps` the dtype's rounding unit. `reg` is
    added to `mass` because rounding of an inverse root, which is kept instead of A, is relative to the whole ||A||.
    """
    return float(eps) * 2.0 * ROUNDINGS * (mass + reg) if mass > 0.0 else 0.0


@compiled
def inverse_root_error(eps: float, mass: float, reg: float) -> float:
    """Return the rounding error of a design A if only a root of A^-1 is kept.

    Such a root gives an eigenvalue v of A up to eps v sqrt(v / reg). The result is infinite if that would exceed a
    tenth of v, because the root's singular values are then only rounding. `mass` is the total squared norm of the rows,
    `reg` the regularization, `eps` the dtype's rounding unit.
    """
    lost = np.sqrt(1.0 + mass / reg)
    return product_rounding(eps, mass, reg) * lost if eps * lost < KNOWN else np.inf


@compiled
def norm_limit(like: np.ndarray) -> float:
    """Return the largest norm allowed for rows and parameters in the dtype of `like`.

    The sum of 10^8 inner products of two such vectors is still finite.
    """
    return ROOM * np.sqrt(float(np.finfo(like.dtype).max))


@partial(compiled, nogil=False)
def first_nonfinite(rows: np.ndarray, most: float) -> int:
    """Return the index of the first row with a NaN, an infinity, or a norm above `most`; -1 if there is none."""
    square = most * most
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[i, j] * rows[i, j]
        if not total <= square:
            return i
    return -1


@compiled
def secular_shift(inside: np.ndarray, values: np.ndarray, bound: float) -> float:
    """Return the mu >= 0 that solves the secular equation sum of (inside_i values_i / (values_i + mu))^2 = bound^2.

    The sum at mu = 0 must be larger than bound^2. It is Newton's method on 1 / norm(mu) - 1 / bound, which is concave
    in mu, so it climbs from 0 and never overshoots. Parts are squared in units of the largest, so that none overflows
    or is lost.
    """
    shift, parts = 0.0, np.empty(values.size)
    for _ in range(SECULAR_STEPS):
        most, square, slope = 0.0, 0.0, 0.0
        for i in range(values.size):
            parts[i] = inside[i] * (values[i] / (values[i] + shift))
            most = max(most, abs(parts[i]))
        for i in range(values.size):
            share = (parts[i] / most) ** 2
            square += share
            slope += share / (values[i] + shift)
        step = (most * np.sqrt(square) / bound - 1.0) * square / slope
        shift += step
        if step <= SECULAR_DIGITS * shift:
            break
    return shift


@compiled
def tisvd(
    vectors: np.ndarray, values: np.ndarray, left: np.ndarray, right: np.ndarray, rank: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the `rank` largest eigenpairs of M + a b^T + b a^T for a symmetric positive semi-definite matrix M.

    This is truncated incremental SVD (Wen, Zhang et al., algorithm 2). M is given by its eigenvectors `vectors` (k, n),
    as rows, and its eigenvalues `values` (k,); `left` and `right` (n,) are a and b. Let P be an orthonormal basis of
    what a and b have outside the span of the eigenvectors V; it has 0 to 2 directions. Then M + a b^T + b a^T = [V P] H
    [V P]^T, where the small matrix H is diagonalized. The paper's change s psi^T + psi s^T + c s s^T has a = s and b =
    psi + c s / 2. Eigenvalues that are not positive are dropped.

    Returns vectors (r, n) and values (r,) in descending order, with r <= rank. They are exact if nothing is truncated.
    The cost is O(n k^2 + k^3).
    """
    basis, first = _with_direction(vectors, left)
    basis, second = _with_direction(basis, right)
    size = basis.shape[0]
    if size == 0:
        return basis, values
    inner = np.zeros((size, size))
    for i in range(first.size):
        for j in range(second.size):
            product = first[i] * second[j]
            inner[i, j] += product
            inner[j, i] += product
    for i in range(values.size):
        inner[i, i] += values[i]
    found, rotation = eigh(inner)
    kept, least = 0, DROPPED * max(abs(found[0]), abs(found[size - 1]))
    while kept < min(rank, size) and found[size - 1 - kept] > least:
        kept += 1
    turned, ordered = np.empty((kept, size)), np.empty(kept)
    for i in range(kept):
        ordered[i] = found[size - 1 - i]
        for j in range(size):
            turned[i, j] = rotation[size - 1 - i, j]
    return dot(turned, basis), ordered


@compiled
def _with_direction(basis: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the orthonormal rows of `basis` (k, n), with one more if `row` (n,) has a part outside their span.

    The second result holds the row's coordinates in the returned basis.
    """
    if basis.shape[0] == 0:
        coordinates, residual, length = np.empty(0), row.copy(), np.sqrt(float(dot(row, row)))
    else:
        coordinates, residual, length = split(basis, row)
    if length <= 0.0:
        return basis, coordinates
    wider, longer = np.empty((basis.shape[0] + 1, basis.shape[1])), np.empty(basis.shape[0] + 1)
    for i in range(basis.shape[0]):
        longer[i] = coordinates[i]
        for j in range(row.size):
            wider[i, j] = basis[i, j]
    longer[basis.shape[0]] = length
    for j in range(row.size):
        wider[basis.shape[0], j] = residual[j] / length
    return wider, longer


NOTHING_LEFT = 64.0  # roundings of a diagonal entry below which a pivot is zero: a row is in the span of those before


@compiled
def semidefinite_root(matrix: np.ndarray) -> np.ndarray:
    """Return a lower triangular L with L L^T = M for a symmetric positive semi-definite M (n, n), in double precision.

    If a pivot is zero up to 64 roundings in M's precision, its column is zero. Cost n^3 / 3.
    """
    n, least = matrix.shape[0], NOTHING_LEFT * np.finfo(matrix.dtype).eps
    out = np.zeros((n, n))
    for j in range(n):
        pivot = float(matrix[j, j])
        for k in range(j):
            pivot -= out[j, k] * out[j, k]
        if not pivot > least * matrix[j, j]:
            continue
        out[j, j] = np.sqrt(pivot)
        for i in range(j + 1, n):
            rest = float(matrix[i, j])
            for k in range(j):
                rest -= out[i, k] * out[j, k]
            out[i, j] = rest / out[j, j]
    return out
