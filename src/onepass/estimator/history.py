"""History of all rows ever learned, for estimators that need it; its arrays double in length when they are full."""

from typing import NamedTuple

import numpy as np

from onepass.foundation.generic import compiled
from onepass.foundation.linalg import fill
from onepass.foundation.state import full, zeros

FIRST = 64


class History(NamedTuple):
    """History of learned rows, of which the first `used` count.

    rows (capacity, dim) holds the rows. values (capacity,) holds a number for each row, such as its reward. marks
    (capacity,) holds a second one, which may be infinite, such as the limit up to which a loss is quadratic.
    """

    rows: np.ndarray
    values: np.ndarray
    marks: np.ndarray
    used: int

    def is_consistent(self, dim: int) -> bool:
        """Return True if shapes and the counter of a loaded history agree, for rows of width `dim`."""
        capacity = len(self.rows)
        return (
            self.rows.shape == (capacity, dim)
            and self.values.shape == self.marks.shape == (capacity,)
            and 0 <= self.used <= capacity
            and capacity >= FIRST
        )


def init_history(like: np.ndarray) -> History:
    """Return an empty history for rows of the width and dtype of `like` (dim,)."""
    kind = like.dtype
    return History(
        rows=zeros(FIRST, like.size, dtype=kind),
        values=zeros(FIRST, dtype=kind),
        marks=full(np.inf, FIRST, dtype=kind),
        used=0,
    )


@compiled
def rescale(history: History, scale: float) -> None:
    """Multiply the rows, values and thresholds of a history by `scale`, in place.

    The loss of a row x is quadratic in value - x^T theta up to the threshold and linear beyond it. So this loss is
    multiplied by scale^2.
    """
    for i in range(history.used):
        history.values[i] *= scale
        history.marks[i] *= scale
        for j in range(history.rows.shape[1]):
            history.rows[i, j] *= scale


@compiled
def append_row(history: History, row: np.ndarray, value: float, mark: float) -> History:
    """Return the history with one more row, its value and its mark."""
    rows, values, marks, used = history.rows, history.values, history.marks, history.used
    if used == rows.shape[0]:
        rows = np.zeros((2 * used, row.size), row.dtype)
        values, marks = np.zeros(2 * used, row.dtype), np.zeros(2 * used, row.dtype)
        fill(rows[:used], history.rows)
        for i in range(used):
            values[i], marks[i] = history.values[i], history.marks[i]
    for j in range(row.size):
        rows[used, j] = row[j]
    values[used], marks[used] = value, mark
    return History(rows=rows, values=values, marks=marks, used=used + 1)
