"""Triangular matrices by LAPACK itself.

For matrices of a few dozen rows, the checks and conversions of scipy.linalg take several times as long as LAPACK.
The functions here make the same calls of LAPACK, so their results are the same bit for bit.
"""

import numpy as np
import scipy


def solve_lower(lower: np.ndarray, b: np.ndarray, *, transposed: bool = False, overwrite: bool = False) -> np.ndarray:
    """Return L^-1 b, or L^-T b if `transposed`, as scipy.linalg.solve_triangular does without its checks.

    `lower` (n, n) is L, of which the entries above the diagonal are not read, and `b` is (n,) or (n, m). With
    `overwrite`, `b` may be changed. Raises LinAlgError if L is singular.
    """
    if not b.size:
        return np.empty(b.shape)
    if lower.flags.f_contiguous:
        found, info = scipy.linalg.lapack.dtrtrs(lower, b, lower=1, trans=int(transposed), overwrite_b=overwrite)
    else:  # LAPACK reads columns, to which L^T is an upper triangle
        found, info = scipy.linalg.lapack.dtrtrs(lower.T, b, lower=0, trans=int(not transposed), overwrite_b=overwrite)
    if info:
        raise np.linalg.LinAlgError(f"matrix is singular: its diagonal entry {info - 1} is 0")
    return found


def cholesky(matrix: np.ndarray) -> np.ndarray:
    """Return the lower Cholesky factor of a positive definite `matrix` (n, n), n > 0, as scipy.linalg.cholesky does.

    Raises LinAlgError if the matrix is not positive definite.
    """
    factor, info = scipy.linalg.lapack.dpotrf(matrix, lower=1, clean=1)
    if info:
        raise np.linalg.LinAlgError(f"matrix is not positive definite: its leading minor {info} is not")
    return factor
