"""The running residual: the root mean square of reward - predicted mean over all rows so far."""

from typing import Any, NamedTuple

import numpy as np

from onepass.foundation import check
from onepass.foundation.generic import compiled


class Tally(NamedTuple):
    """Number of rows, and the sum of squared prediction errors: reward minus the mean predicted before each row."""

    rows: int
    squares: float


@compiled
def residual(tally: Tally) -> float:
    """Return the root mean square of the prediction errors in a tally; 0 if it has no rows."""
    return np.sqrt(tally.squares / tally.rows) if tally.rows > 0 else 0.0


def pool(mine: Tally, its: Tally, since: Tally | None) -> Tally:
    """Return the sum of the tallies `mine` and `its` of prediction errors, minus their common start `since`, if any."""
    rows, squares = since or (0, 0.0)
    return Tally(rows=mine.rows + its.rows - rows, squares=max(mine.squares + its.squares - squares, 0.0))


@compiled
def count_deviation(tally: Tally, deviation: float) -> Tally:
    """Return the tally of prediction errors with one more row, whose reward minus predicted mean is `deviation`."""
    return Tally(rows=tally.rows + 1, squares=tally.squares + deviation * deviation)


def check_tally(held: Any) -> Tally:
    """Return the tally `held` of prediction errors, read from a file; raise ValueError if a number is impossible.

    The number of rows must be an integer of at least 0, and the sum of squares finite and at least 0.
    """
    count, squares = held
    tally = Tally(rows=check.integer("tally", count, 0), squares=check.real("tally", squares))
    if tally.squares < 0.0:
        raise ValueError("the sum of squared deviations is negative")
    return tally
