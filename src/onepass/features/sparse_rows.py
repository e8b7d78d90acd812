"""Rows of numbers that are mostly 0, by place and value: what records become (records.py)."""

from typing import NamedTuple

import numpy as np


class SparseRows(NamedTuple):
    """Rows by their numbers that are not 0: row i has values[j] at places[j] for j from starts[i] to starts[i + 1]."""

    starts: np.ndarray
    places: np.ndarray
    values: np.ndarray


def make_sparse_rows(rows: list[list[tuple[int, float]]]) -> SparseRows:
    """Make sparse rows from lists of (place, value)."""
    flat = [pair for row in rows for pair in row]
    places = np.array([place for place, _ in flat], np.int64)
    return SparseRows(np.cumsum([0, *map(len, rows)]), places, np.array([value for _, value in flat], np.float64))
