"""Triangular matrices by LAPACK itself are bit for bit those of SciPy, in every layout of memory."""

import numpy as np
import pytest
import scipy

from onepass.foundation.triangular import cholesky, solve_lower


def positive_definite(n):
    rows = np.random.default_rng(n).standard_normal((2 * n, n))
    return rows.T @ rows + 0.1 * np.eye(n)


def layouts(array):
    """Return the same numbers in rows, in columns, as a part of a larger array, and backwards in memory."""
    return array, np.asfortranarray(array), np.stack([array, array], axis=-1)[..., 0], array[::-1].copy()[::-1]


@pytest.mark.parametrize("columns", [None, 0, 1, 40])
@pytest.mark.parametrize("n", [1, 3, 20, 70])
def test_they_are_those_of_scipy_bit_for_bit(n, columns):
    matrix, rng = positive_definite(n), np.random.default_rng(n)
    factor = cholesky(matrix)
    np.testing.assert_array_equal(factor, scipy.linalg.cholesky(matrix, lower=True))
    for lower in layouts(factor + np.triu(rng.standard_normal((n, n)), 1)):  # what is above the diagonal is not read
        for b in layouts(rng.standard_normal(n if columns is None else (n, columns))):
            for transposed in (False, True):
                want = scipy.linalg.solve_triangular(lower, b, lower=True, trans=int(transposed))
                held = b.copy()
                np.testing.assert_array_equal(solve_lower(lower, b, transposed=transposed), want)
                np.testing.assert_array_equal(b, held)
                found = solve_lower(lower, held, transposed=transposed, overwrite=True)
                np.testing.assert_array_equal(found, want)


def test_matrices_without_an_answer_are_refused():
    with pytest.raises(np.linalg.LinAlgError, match="diagonal entry 1 is 0"):
        solve_lower(np.array([[1.0, 0.0], [1.0, 0.0]]), np.ones(2))
    with pytest.raises(np.linalg.LinAlgError, match="leading minor 2"):
        cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))
