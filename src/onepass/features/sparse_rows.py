"""Sparse rows of numbers, each a list of places (columns) and values; records become such rows (records.py)."""

from typing import NamedTuple

import numpy as np


class SparseRows(NamedTuple):
    """Sparse rows in compressed form: row i is values[starts[i] : starts[i + 1]] in the columns `places` there."""

    starts: np.ndarray
    places: np.ndarray
    values: np.ndarray


def make_sparse_rows(rows: list[list[tuple[int, float]]]) -> SparseRows:
    """Make sparse rows from one list of pairs (column, value) for each row."""
    flat = [pair for row in rows for pair in row]
    places = np.array([place for place, _ in flat], np.int64)
    return SparseRows(np.cumsum([0, *map(len, rows)]), places, np.array([value for _, value in flat], np.float64))
