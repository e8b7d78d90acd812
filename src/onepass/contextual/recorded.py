"""Models of every arm on records: the dictionary and the models grow together."""

from typing import Any

import numpy as np

from onepass.contextual.columns import Columns
from onepass.contextual.known import Known


def take(columns: Columns, known: Known, found: dict[str, float], reward: float, arm: Any) -> None:
    """Learn the terms of one request and the reward of an arm; models have a column for every new term."""
    row, (fills, sizes) = columns.learn(found)
    if known.models == ():
        known.begin(len(row))
    elif len(fills):
        known.widen(fills, sizes)
    known.take(row, reward, arm)


def rows_of_slots(columns: Columns, found: dict[str, float], slots: int) -> np.ndarray:
    """The row of a request, (k, width): the same for every slot."""
    return np.repeat(columns.rows_of_terms([found]), slots, axis=0)
