"""Pure compiled functions on arrays; no states, no classes.

Everything here keeps *square roots*: R with R R^T = A^-1 instead of A^-1, a triangle T with T^T T = S^T S instead
of the Gram matrix. A difference of squares loses every digit once the spectrum spans twelve orders of magnitude;
a root spans only six of them. Rows are vectors, so a basis of k directions in d dimensions has shape (k, d).
"""

import numpy as np

from onepass.foundation.generic import compiled

SMALL = 64  # numbers in the larger operand
# What a row has outside a span counts as nothing below this many roundings of its length: a direction made from two
# nearly parallel rows is itself known to thousands of roundings, and every later row along it leaves as many outside.
IN_SPAN = 1e5
IN_SPAN_AT_MOST = 6e-5  # the same as a share of ||x||, for single precision, which has no 1e5 roundings to spare
ROUNDINGS = 500.0  # of ||A|| that products, and updates of an inverse root, may leave (85 measured)
LEAST_SINGULAR = 1e-150  # of an inverse root: its inverse square, an eigenvalue of A, is still finite


@compiled
def dot(a, b):
    """np.dot, compiled once for all callers: inlined everywhere, its checks would double the time to compile.

    Small vectors and matrices times vectors are multiplied here: a call of BLAS costs more (a tenth of a microsecond).
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
            for j in range(b.size):
                out[i] += a[i, j] * b[j]
        return out
    return np.dot(a, b)


@compiled
def fill(target, source):
    """target[:] = source for matrices of equal shape; a loop compiles to far less code than an assignment."""
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            target[i, j] = source[i, j]


@compiled
def roomy(rows):
    """The same rows in an array twice as long, zeros after them."""
    out = np.zeros((2 * rows.shape[0], rows.shape[1]))
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            out[i, j] = rows[i, j]
    return out


@compiled
def svd(matrix):
    """Thin SVD, U diag(s) V: U (m, k), s (k,), V (k, n), all C-contiguous. Compiled once for all callers."""
    u, s, v = np.linalg.svd(np.ascontiguousarray(matrix), full_matrices=False)
    return np.ascontiguousarray(u), s, np.ascontiguousarray(v)


@compiled
def orthonormal(rows):
    """Thin QR of the transpose: rows^T = Q^T T. Returns Q (m, n) with orthonormal rows, and T (m, m)."""
    q, t = np.linalg.qr(np.ascontiguousarray(rows.T))
    return np.ascontiguousarray(q.T), np.ascontiguousarray(t)


@compiled
def eigh(matrix):
    """Eigenvalues, ascending, and eigenvectors as rows, of a symmetric matrix, in double precision."""
    values, vectors = np.linalg.eigh(np.ascontiguousarray(matrix).astype(np.float64))
    return values, np.ascontiguousarray(vectors.T)


@compiled
def squared_norms(rows):
    """||x||^2 of every row, shape (n, dim) -> (n,), in double precision."""
    out = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[i, j] * rows[i, j]
        out[i] = total
    return out


@compiled
def squared_distances(x, y):
    """||x_i - y_j||^2 of rows x (n, d) and y (m, d), shape (n, m): one matrix product.

    Pairs closer than 1e-5 of their norms, where that would cancel, and rows of few features: from the differences.
    """
    direct = x.shape[1] <= 8
    out = np.empty((x.shape[0], y.shape[0])) if direct else np.dot(x, y.T)
    left, right = squared_norms(x), squared_norms(y)
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            both = left[i] + right[j]
            square = 0.0 if direct else both - 2.0 * out[i, j]
            if direct or square < 1e-5 * both:
                square = 0.0
                for k in range(x.shape[1]):
                    step = x[i, k] - y[j, k]
                    square += step * step
            out[i, j] = square
    return out


@compiled
def eigenvalue(singular):
    """The eigenvalue 1 / s^2 of A that belongs to a singular value s of R, R R^T = A^-1; finite for s = 0 too."""
    inverse = 1.0 / max(float(singular), LEAST_SINGULAR)
    return inverse * inverse


@compiled
def spectrum_of_root(root):
    """Eigenvalues (k,) and eigenvectors as rows of A, R R^T = A^-1: from R = U diag(s) V they are 1 / s^2 and U^T."""
    vectors, singular, _ = svd(root)
    values = np.empty(singular.size)
    for i in range(values.size):
        values[i] = eigenvalue(singular[i])
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
    """The same for a batch of rows (B, k) by matrix products: R <- R - (R Q^T) C Q. Returns the gain of log det A.

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


@compiled
def in_span(eps):
    """The share of ||x|| outside a span that counts as nothing; eps: of the arrays' dtype."""
    return min(IN_SPAN * float(eps), IN_SPAN_AT_MOST)


@compiled
def length_of(x):
    """||x||, without underflow."""
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
def settle(basis, row, coordinates, residual):
    """Finish `split`, whose coordinates Q x and residual x - Q^T Q x are those of one pass; both in place.

    Projects once more where the first pass cancelled more than two digits, so that the residual is orthogonal to Q to
    rounding. Returns its length; minus its length where the row is in the span, but for what `in_span` calls nothing.
    """
    norm, length = length_of(row), length_of(residual)
    if length < 1e-2 * norm:
        again = dot(basis, residual)
        for i in range(again.size):
            coordinates[i] += again[i]
        twice = dot(again, basis)
        for j in range(row.size):
            residual[j] -= twice[j]
        length = length_of(residual)
    if basis.shape[0] == basis.shape[1]:
        return 0.0
    return length if length > in_span(np.finfo(basis.dtype).eps) * norm else -length


@compiled
def split(basis, row):
    """Coordinates p = Q x and residual x - Q^T p of a row against orthonormal rows Q, and the residual's length.

    A length not above 0 means: in the span (see `settle`). Cost 2 k d (4 k d when projected twice).
    """
    coordinates = dot(basis, row)
    residual = dot(coordinates, basis)
    for j in range(row.size):
        residual[j] = row[j] - residual[j]
    length = settle(basis, row, coordinates, residual)
    return coordinates, residual, length


@compiled
def left_out(coordinates, length):
    """How far x x^T moves, in its 2-norm, when what x has outside a span, `length` long, is not kept."""
    return length * (2.0 * length_of(coordinates) + length)


@compiled
def rounding(eps, mass, reg):
    """What products add to a bound of ||A - A_hat||_2 when rows of squared norms `mass` in all went into a sketch.

    Where an inverse root is kept instead of A, ||A|| is known to as many roundings: so is reg.
    """
    return float(eps) * 2.0 * ROUNDINGS * (mass + reg) if mass > 0.0 else 0.0


@compiled
def in_root(eps, mass, reg):
    """The same where an inverse root is all that is kept, which knows an eigenvalue v to eps v sqrt(v / reg).

    Infinite where that would be more than a tenth of v: singular values of the root are roundings then.
    """
    lost = np.sqrt(1.0 + mass / reg)
    return rounding(eps, mass, reg) * lost if eps * lost < 0.1 else np.inf


@compiled
def first_nonfinite(rows, largest):
    """Index of the first row that has a NaN, an infinity, or a norm above `largest`; -1 if there is none."""
    square = largest * largest
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[i, j] * rows[i, j]
        if not total <= square:
            return i
    return -1


@compiled
def secular_shift(weighted, values, bound):
    """The mu >= 0 with sum of (weighted_i / (values_i + mu))^2 = bound^2, when the sum at mu = 0 is larger.

    Newton's method on 1 / norm(mu) - 1 / bound, which is concave in mu: it climbs from 0 and never overshoots.
    """
    shift = 0.0
    for _ in range(100):
        square, slope = 0.0, 0.0
        for i in range(values.size):
            part = weighted[i] / (values[i] + shift)
            square += part * part
            slope += part * part / (values[i] + shift)
        norm = np.sqrt(square)
        step = (norm / bound - 1.0) * square / slope
        shift += step
        if step <= 1e-15 * shift:
            break
    return shift


@compiled
def tisvd(vectors, values, left, right, rank):
    """Truncated incremental SVD of a symmetric positive semi-definite M: the leading `rank` of M + a b^T + b a^T.

    M = sum of values_i v_i v_i^T, vectors (k, n) as orthonormal rows; a = left, b = right, (n,). With P an orthonormal
    basis of what a and b have outside the span of V, M + a b^T + b a^T = [V P] H [V P]^T, and H of k + 2 rows is
    diagonalized (Wen, Zhang et al., algorithm 2; its s psi^T + psi s^T + c s s^T is a = s, b = psi + c s / 2). P has as
    many rows as there are directions, 0 to 2: repeated and zero updates add none. Exact while nothing is truncated;
    eigenvalues that are not positive are dropped. Returns vectors (r, n) and values (r,), descending, r <= rank.
    Cost O(n k^2 + k^3).
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
    kept, least = 0, 1e-14 * max(abs(found[0]), abs(found[size - 1]))
    while kept < min(rank, size) and found[size - 1 - kept] > least:
        kept += 1
    turned, ordered = np.empty((kept, size)), np.empty(kept)
    for i in range(kept):
        ordered[i] = found[size - 1 - i]
        for j in range(size):
            turned[i, j] = rotation[size - 1 - i, j]
    return dot(turned, basis), ordered


@compiled
def _with_direction(basis, row):
    """Orthonormal rows, with one more for what `row` has outside their span, if anything; the row's coordinates."""
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
