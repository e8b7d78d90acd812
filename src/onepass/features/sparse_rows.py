"""Sparse rows of numbers, each a list of places (columns) and values; records become such rows (records.py)."""

from typing import NamedTuple

import numpy as np


class SparseRows(NamedTuple):
    """Sparse rows in compressed form: row i is values[starts[i] : starts[i + 1]] in the columns `places` there."""

    starts: np.ndarray
    places: np.ndarray
    values: np.ndarray
