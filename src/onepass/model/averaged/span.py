"""Representation of wide rows by few coordinates, along the main directions of the first rows.

    z -> [Q^T z, 0, rest(z)],   a landmark s -> [Q^T s, rest(s), 0],   rest(z) = sqrt(||z||^2 - ||Q^T z||^2)

Q (d, r) holds r main directions of the first rows. They are computed from FOLD rows Z' at a time: C <- S Q^T, where

    [C; Z'] [C; Z']^T = V S^2 V^T,   S Q^T = V^T [C; Z'],   cut to the r largest singular values S

z is a row scaled by its view (view.py). Products with vectors in the span of Q are exact; distances to landmarks are
exact if the two remainders are orthogonal. Models are regressions on Q^T z and the kernel features, so directions
outside those of the first rows are not learned (docs/wide_rows.md shows what this costs). The coordinates are
computed from z(0) and the columns x_j != 0 alone, in O(r) for each of them, and O(d) to find them.
"""

from typing import NamedTuple

import numpy as np

from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.foundation.state import zeros

WIDE = 300  # columns above which rows are mapped (docs/wide_rows.md)
DIRECTIONS = 64  # at most: 96 to 256 make no fewer mistakes beside the kernels, and cost up to twice the time
LEAST = 32  # and at least, of rows as wide as they may be
FOLD = 64  # rows at a time: on 256 rows .98 (no direction is larger than another) to 1.00 of what the largest r hold
NUMBERS = 1 << 20  # of Q: 4 MB, and as much to read for a row without zeros
DENSE = 4  # rows with more than 1 / DENSE of their columns are multiplied by BLAS
ROUNDING = 1e-8  # of the largest eigenvalue of Z Z^T: directions below it are not known


class Span(NamedTuple):
    """Main directions of wide rows, along which rows are represented by few coordinates.

    - basis (d, r): matrix Q of orthonormal columns, the directions; r is 0 if rows are used as they are.
    - origin (r + 1,): Q^T z0 and ||z0||^2, where z0 is the row of zeros after scaling.
    """

    basis: np.ndarray
    origin: np.ndarray


def no_span(dim: int) -> Span:
    """Return a `Span` without directions: rows are used as they are."""
    return Span(basis=zeros(dim, 0, dtype=np.float32), origin=zeros(1))


def directions(dim: int) -> int:
    """Return the largest number of main directions for rows with `dim` columns; 0 if rows are used as they are."""
    return 0 if dim <= WIDE else max(LEAST, min(DIRECTIONS, NUMBERS // dim))


def folded(fold: np.ndarray, z: np.ndarray, most: int) -> np.ndarray:
    """Return the main directions (k, d), k <= most, of earlier rows and new rows z (n, d), by falling singular value.

    `fold` (k', d) is the result for the earlier rows. Each direction is multiplied by its singular value.
    """
    rows = np.vstack([fold, z])
    values, vectors = np.linalg.eigh(rows @ rows.T)
    least = max(ROUNDING * values[-1], np.finfo(np.float64).tiny)
    kept = [i for i in range(len(values) - 1, -1, -1) if values[i] > least][:most]
    return vectors[:, kept].T @ rows


def span_of(fold: np.ndarray, zero: np.ndarray) -> Span:
    """Return the `Span` of the main directions `fold` (k, d) that `folded` has computed.

    `zero` (d,) is the row of zeros after scaling. The span has at least one direction.
    """
    basis = np.zeros((fold.shape[1], max(len(fold), 1)))
    basis[:, : len(fold)] = (fold / np.sqrt((fold**2).sum(axis=1))[:, None]).T
    return Span(basis=basis.astype(np.float32), origin=np.append(zero @ basis, zero @ zero))


def landmarks_on(span: Span, z: np.ndarray) -> np.ndarray:
    """Return landmarks (n, r + 2) for scaled rows z (n, d), with coordinates as `place` computes them for other rows.

    The entries are the coordinates along the r main directions, the length of the remaining part, and 0. `place` has
    the last two the other way round, so a squared distance adds both lengths.
    """
    along = z @ span.basis.astype(np.float64)
    rest = np.sqrt(np.maximum((z**2).sum(axis=1) - (along**2).sum(axis=1), 0.0))
    return np.column_stack([along, rest, np.zeros(len(z))])


@compiled
def place(span: Span, moved: np.ndarray, square: float) -> np.ndarray:
    """Return a scaled row z in few coordinates (r + 2,), in float32: Q^T z, 0, and the length of the rest of z.

    The columns of Q (d, r) are the main directions in `span`. `moved` (d,) is z minus the row of zeros after scaling,
    and `square` is ||z||^2.
    """
    basis, origin = span.basis, span.origin
    dim, count, filled, inside = basis.shape[0], basis.shape[1], 0, 0.0
    for j in range(dim):
        filled += moved[j] != 0.0
    out = np.zeros(count + 2, np.float32)
    if DENSE * filled > dim:
        along = dot(moved, basis)
        for i in range(count):
            out[i] = along[i]
    else:
        for j in range(dim):
            step = moved[j]
            if step != 0.0:
                row = basis[j]
                for i in range(count):
                    out[i] += step * row[i]
    for i in range(count):
        out[i] += origin[i]
    for i in range(count):
        inside += float(out[i]) * out[i]
    out[count + 1] = np.sqrt(max(square - inside, 0.0))
    return out
