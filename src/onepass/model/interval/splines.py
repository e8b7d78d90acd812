"""Cubic B-splines on [0, 1] in a basis that makes the smoothness prior diagonal.

    s(t) = sum_k c_k B_k(t),   k = 1 .. 12, evenly spaced knots,   penalty |D c|^2, D: second differences
    D^T D v = e G v,   G = integral of B B^T                       generalized eigenvectors v_1 .. v_8, by rising e
    psi_j(t) = sum_k v_jk B_k(t):   psi_1 = 1,  psi_2 is linear,  the others oscillate more and more

The psi are orthonormal on [0, 1], and the penalty of sum_j w_j psi_j is sum_j e_j w_j^2. The four functions with the
largest e are left out: the prior all but forbids them. Source: P-splines, Eilers and Marx (1996); Demmler and Reinsch
(1975).
"""

from functools import cache

import numpy as np
from scipy.linalg import eigh

SPLINES, ORDER = 12, 3
KEPT = 8  # functions psi
GRID = 4_000  # points of the integral G


def b_splines(t: np.ndarray) -> np.ndarray:
    """Return the values (n, 12) of 12 cubic B-splines with evenly spaced knots at points (n,) of [0, 1]."""
    pieces = SPLINES - ORDER
    scaled = t * pieces
    piece = np.minimum(scaled.astype(np.int64), pieces - 1)
    u = scaled - piece
    v = 1.0 - u
    weights = (v**3, 3.0 * u**3 - 6.0 * u**2 + 4.0, 3.0 * v**3 - 6.0 * v**2 + 4.0, u**3)
    out, rows = np.zeros((t.size, SPLINES)), np.arange(t.size)
    for j, weight in enumerate(weights):
        out[rows, piece + j] = weight / 6.0
    return out


@cache
def smooth_basis() -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients (12, 8) of 8 orthonormal functions in B-splines, and their roughness penalties (8,).

    Penalties are in units of the third one. The first function is constant and the second linear; both have penalty 0.
    """
    rows = b_splines((np.arange(GRID) + 0.5) / GRID)
    gram, second = rows.T @ rows / GRID, np.diff(np.eye(SPLINES), 2, axis=0)
    penalties, vectors = eigh(second.T @ second, gram)
    constant = np.ones(SPLINES)
    linear = np.arange(SPLINES) - (SPLINES - 1) / 2.0
    vectors[:, 0] = constant / np.sqrt(constant @ gram @ constant)
    vectors[:, 1] = linear / np.sqrt(linear @ gram @ linear)
    vectors *= np.where(vectors[-1] < 0.0, -1.0, 1.0)  # an eigenvector's sign is the library's
    penalties[:2] = 0.0
    return np.ascontiguousarray(vectors[:, :KEPT]), penalties[:KEPT] / penalties[2]


def smooth_functions(t: np.ndarray) -> np.ndarray:
    """Return the values (n, 8) of the 8 orthonormal spline functions at points (n,) of [0, 1]."""
    return np.asarray(b_splines(t) @ smooth_basis()[0])


def smooth_functions_at(t: float) -> np.ndarray:
    """Return the values (8,) of the 8 orthonormal spline functions at one point of [0, 1]."""
    scaled = t * (SPLINES - ORDER)
    piece = min(int(scaled), SPLINES - ORDER - 1)
    u = scaled - piece
    v = 1.0 - u
    weights = np.array([
        v**3, 3.0 * u**3 - 6.0 * u**2 + 4.0, 3.0 * v**3 - 6.0 * v**2 + 4.0, u**3
    ])  # fmt: skip
    return np.asarray((weights / 6.0) @ smooth_basis()[0][piece : piece + 4])
