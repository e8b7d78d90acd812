"""Conversion of records to rows of numbers that grow wider: every term that was learned has a column.

The numbers of a row are

    row[column of a term] = its number       1 for a name, 34 for {"age": 34}
    a term that is missing has its fill value: 0 for a name, the mean of the numbers learned so far for a number

The columns are those of `Records`: a term gets a column when it is first learned, and terms beyond the size of the
dictionary share the last columns by a hash. Earlier rows did not have the column. They count as if they had its fill
value, so a model with a new column equals a model that had the column from the start (new_columns.py).
"""

from itertools import pairwise
from typing import Any

import numpy as np

from onepass.features.flatten import is_number
from onepass.features.records import Records
from onepass.features.sparse_rows import SparseRows

NONE = -1  # the column of a place that has none
WIDTH = 256  # of the dictionary: with 150 landmarks an arm then takes 1.6 MB


class Columns:
    """Map from records to rows with a column for every term learned.

    - records: the dictionary of terms, which grows as it learns.
    - places: the index in `records` of each column's term, in the order in which the columns were created.
    """

    def __init__(self, records: Records, places: list[int]) -> None:
        self.records, self.places = records, places
        self._column = np.full(records.size, NONE)
        self._column[places] = np.arange(len(places))
        self._refill()

    def copy(self) -> "Columns":
        """Return an independent copy of the map."""
        return Columns(self.records.copy(), list(self.places))

    @property
    def width(self) -> int:
        """Number of columns, which is 0 before the first record is learned and at least 1 afterwards."""
        return len(self.places)

    def names(self) -> list[str]:
        """Return the name of each column's term, such as "age" or "country=de"."""
        every = self.records.feature_names()
        return [every[place] for place in self.places]

    def rows(self, records: list[Any]) -> np.ndarray:
        """Return rows (n, width) of records, without learning them.

        Raises ValueError for anything but records of finite numbers.
        """
        return self._dense(self.records.pairs(records))

    def rows_of_terms(self, every: list[dict[str, float]]) -> np.ndarray:
        """Return rows (n, width) for a list `every` of n dictionaries {term: number}, without learning them."""
        return self._dense(self.records.pairs_of_terms(every))

    def advance(self, found: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
        """Learn the terms `found` of a record, and return its row (width,) and an array (2, n) on the n new columns.

        The array holds each new column's value in all earlier rows, and its first number without the sign (1 if that is
        0, and 0 for a 0/1 column), by which its numbers are scaled.
        """
        places, values = self.records.learn_terms(found)
        new = list(dict.fromkeys(places[self._column[places] == NONE].tolist()))
        if not (new or self.places):  # a record that says nothing: a column that only a hash can hit
            new = [self.records.size - 1]
        for place in new:
            self._column[place] = len(self.places)
            self.places.append(place)
        self._refill()
        row = self._one(places, values)
        if not new:
            return row, np.zeros((2, 0))
        names, first = self.records.feature_names(), len(row) - len(new)
        sizes = [(abs(row[j]) or 1.0) if is_number(names[self.places[j]]) else 0.0 for j in range(first, len(row))]
        return row, np.stack([self._fill[first:], sizes])

    def _refill(self) -> None:
        self._fill = self.records.means()[self.places]

    def _dense(self, pairs: SparseRows) -> np.ndarray:
        ends = pairs.starts.tolist()
        parts = [slice(start, end) for start, end in pairwise(ends)]
        return np.array([self._one(pairs.places[part], pairs.values[part]) for part in parts])

    def _one(self, places: np.ndarray, values: np.ndarray) -> np.ndarray:
        columns, row = self._column[places], self._fill.copy()
        row[columns[columns != NONE]] = values[columns != NONE]
        return row
