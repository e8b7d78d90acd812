"""Statistics of columns: which are constant up to rounding, and their standard deviations."""

import numpy as np

CONSTANT = 1e-9  # of a column's largest entry: one that spreads less does not vary


def is_constant(rows: np.ndarray) -> np.ndarray:
    """Return a mask (dim,) of the columns of rows (n, dim) that are constant up to rounding."""
    return ~(rows.std(axis=0) > CONSTANT * np.abs(rows).max(axis=0))


def standard_deviations(rows: np.ndarray) -> np.ndarray:
    """Return the standard deviations (dim,) of the columns of rows (n, dim), with 1 for constant columns."""
    return np.where(is_constant(rows), 1.0, rows.std(axis=0))
