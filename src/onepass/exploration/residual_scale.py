"""The running residual: how far rewards are from their means, in root mean square."""

from typing import Any, NamedTuple

import numpy as np

from onepass.foundation import check
from onepass.foundation.generic import compiled


class Tally(NamedTuple):
    """A tally of rewards less their means as they were before: how many rows, and the sum of their squares."""

    rows: int
    squares: float


@compiled
def residual(tally: Tally) -> float:
    """Their root mean square, 0 where there is none."""
    return np.sqrt(tally.squares / tally.rows) if tally.rows > 0 else 0.0


def pool(mine: Tally, its: Tally, since: Tally | None) -> Tally:
    """Add up the tallies of two streams, less the one with which both began."""
    rows, squares = since or (0, 0.0)
    return Tally(rows=mine.rows + its.rows - rows, squares=max(mine.squares + its.squares - squares, 0.0))


@compiled
def count_deviation(tally: Tally, deviation: float) -> Tally:
    """Count one deviation more."""
    return Tally(rows=tally.rows + 1, squares=tally.squares + deviation * deviation)


def check_tally(held: Any) -> Tally:
    """The tally that a file holds; ValueError for what is none."""
    count, squares = held
    tally = Tally(rows=check.integer("tally", count, 0), squares=check.real("tally", squares))
    if tally.squares < 0.0:
        raise ValueError("the sum of squared deviations is negative")
    return tally
