"""Columns of examples: which are constant but for rounding, and their standard deviations."""

import numpy as np

CONSTANT = 1e-9  # of a column's largest entry: one that spreads less does not vary


def is_constant(rows: np.ndarray) -> np.ndarray:
    """Return True for columns that are constant but for rounding."""
    return ~(rows.std(axis=0) > CONSTANT * np.abs(rows).max(axis=0))


def standard_deviations(rows: np.ndarray) -> np.ndarray:
    """Return the standard deviations of the columns, 1 for those that are constant but for rounding."""
    return np.where(is_constant(rows), 1.0, rows.std(axis=0))
