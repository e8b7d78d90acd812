"""Conversion of contexts, which are rows or records, to the rows of numbers that averaged models learn."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Self, final

import numpy as np

from onepass.features.flatten import flatten_record
from onepass.features.records import Records
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.model.averaged.columns import Columns
from onepass.model.contract import check_rounds, rows_of_slots
from onepass.model.names import name_list
from onepass.model.records import (
    NUMBERS,
    are_records,
    check_evidence,
    evidence_of_names,
    examples_of,
    is_frame,
    records_of,
)

NO_COLUMNS = np.zeros((2, 0))


class Contexts(ABC):
    """Conversion of contexts to rows of numbers, the input of averaged models.

    `model` is the name of these models in the result of `choices`.
    """

    model: ClassVar[str]

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of columns of rows; 0 before the first context is learned."""

    @abstractmethod
    def copy(self) -> Self:
        """Return an independent copy."""

    @property
    def records(self) -> Records | None:
        """Dictionary that maps terms to columns; None if contexts are rows of numbers."""
        return None

    @property
    def names(self) -> Sequence[str] | None:
        """Names of the columns of rows; None if columns have no names."""
        return None

    @abstractmethod
    def requests(self, contexts: Any, count: int) -> tuple[bool, np.ndarray, Sequence[Any]]:
        """Return (single, rows, given) for the contexts of n decisions among `count` arms.

        - single: True for a single decision.
        - rows (n, count or 1, width): rows of numbers.
        - given: the n contexts in the form that `evidence` takes.
        """

    @abstractmethod
    def evidence(self, given: Sequence[Any], i: int, rows: np.ndarray, places: np.ndarray, names: list[Any]) -> Any:
        """Return the part of decision i's record from which its context can be learned later.

        - given: the contexts of all decisions.
        - rows: the row or rows of decision i.
        - places (k,), names: indices and names of the k arms chosen.
        """

    @abstractmethod
    def examples(self, contexts: Any, arm: Any) -> tuple[bool, Sequence[Any], list[Any]]:
        """Return (single, examples, arms) for contexts to be learned.

        `contexts` and `arm` are given as to `Bandit.learn`. The results are:

        - single: True for a single context.
        - examples: the contexts in the form that `advance` takes.
        - arms: the arm of each context.
        """

    @abstractmethod
    def recall(self, slots: list[tuple[Any, int]]) -> Sequence[Any]:
        """Return what `advance` learns of each pair (decision, slot) in `slots`, read from the decision's record."""

    @abstractmethod
    def reread(self, decision: Any) -> np.ndarray:
        """Return the rows (k or 1, width) of the k arms that a decision chose, read from its record.

        There is 1 row if the arms share their row, because the arms have no features of their own.
        """

    @abstractmethod
    def advance(self, example: Any) -> tuple[np.ndarray, np.ndarray]:
        """Learn the columns of a context, and return its row (width,) and an array (2, n) on the n new columns.

        `example` is an element of what `examples` or `recall` returns. The array holds each new column's value in all
        earlier rows, and the scale of its numbers (0 for a 0/1 column).
        """

    @abstractmethod
    def game(self, contexts: Any, rewards: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return checked contexts (T, K or 1, width) and rewards (T, K) of T recorded rounds with K arms."""

    def users(self, contexts: Any) -> tuple[int, Callable[[slice], Any]] | None:
        """Return the number of users in contexts, and a function that returns the contexts of a slice of users.

        Returns None if contexts are plain rows, which need no such function.
        """
        return None

    @abstractmethod
    def restore(self, extra: dict[str, Any]) -> None:
        """Restore the object from the dictionary that `extra` returned. Raises ValueError if it is inconsistent."""

    def extra(self) -> dict[str, Any]:
        """Return plain data on contexts for a file, such as the order of columns. Default: none.

        The width of rows and the terms of records are saved elsewhere.
        """
        return {}


@final
class RowContexts(Contexts):
    """Contexts that are rows of numbers.

    - width: number of columns, 0 if the first row learned decides it.
    - most: the largest number of columns allowed.
    """

    model = "rows"

    def __init__(self, width: int, most: int) -> None:
        self._width, self._most = width, most

    @property
    def width(self) -> int:
        return self._width

    def copy(self) -> Self:
        return type(self)(self._width, self._most)

    def _array(self, contexts: Any, dims: tuple[int, ...]) -> np.ndarray:
        if type(contexts) is not np.ndarray and are_records(contexts) and not is_frame(contexts):
            raise ValueError(f"contexts must be rows, as those that this bandit has learned, got {quote(contexts)}")
        return check.array("contexts", contexts, NUMBERS, dims, self._width or None)

    def requests(self, contexts: Any, count: int) -> tuple[bool, np.ndarray, Sequence[Any]]:
        rows = self._array(contexts, (1, 2, 3))
        if rows.size == 0 or (rows.ndim > 1 and rows.shape[-2] not in (1, count)):
            raise ValueError(f"contexts must have one row, or one per arm ({count}), got shape {rows.shape}")
        flat = rows.reshape(-1, rows.shape[-1])
        check.finite_rows("contexts", flat)
        return rows.ndim < 3, rows if rows.ndim == 3 else flat[None], ()

    def evidence(self, given: Sequence[Any], i: int, rows: np.ndarray, places: np.ndarray, names: list[Any]) -> Any:
        if len(places) == 1:
            return rows[places[0] if len(rows) > 1 else 0].copy()
        return rows[places if len(rows) > 1 else [0] * len(places)]

    def examples(self, contexts: Any, arm: Any) -> tuple[bool, Sequence[Any], list[Any]]:
        rows = self._array(contexts, (1, 2))
        if arm is None:
            raise ValueError("arm must name the arm of every row")
        single = rows.ndim == 1
        rows = self._learnable(np.atleast_2d(rows))
        return single, rows, [arm] if single else name_list(arm, len(rows), "arm")

    def recall(self, slots: list[tuple[Any, int]]) -> Sequence[Any]:
        return self._learnable(self._array(rows_of_slots(slots), (2,)))

    def _learnable(self, rows: np.ndarray) -> Any:
        check.finite_rows("contexts", rows)
        if self._width == 0:
            check_width(rows.shape[1], self._most)
        return rows

    def reread(self, decision: Any) -> np.ndarray:
        return self.requests(
            rows_of_slots([(decision, slot) for slot in range(len(decision.arms))]), len(decision.arms)
        )[1][0]

    def advance(self, example: Any) -> tuple[np.ndarray, np.ndarray]:
        self._width = example.size
        return example, NO_COLUMNS

    def game(self, contexts: Any, rewards: Any) -> tuple[np.ndarray, np.ndarray]:
        return check_rounds(self._array(contexts, (3,)), rewards, NUMBERS, True)

    def restore(self, extra: dict[str, Any]) -> None:
        self._width = check.integer("width", extra["width"], self._width, self._most)


@final
class RecordContexts(Contexts):
    """Contexts that are records, with a column for every term learned."""

    model = "records"

    def __init__(self, records: Records) -> None:
        self._columns = Columns(records, [])

    @property
    def width(self) -> int:
        return self._columns.width

    def copy(self) -> Self:
        twin = type(self)(self.records)
        twin._columns = self._columns.copy()
        return twin

    @property
    def records(self) -> Records:
        return self._columns.records

    @property
    def names(self) -> Sequence[str]:
        return self._columns.names()

    @staticmethod
    def _require(contexts: Any) -> None:
        if not are_records(contexts):
            raise ValueError(f"contexts must be records, as those that this bandit has learned, got {quote(contexts)}")

    def requests(self, contexts: Any, count: int) -> tuple[bool, np.ndarray, Sequence[Any]]:
        self._require(contexts)
        single, records = records_of(contexts)
        return single, self._columns.rows(records)[:, None, :], records

    def evidence(self, given: Sequence[Any], i: int, rows: np.ndarray, places: np.ndarray, names: list[Any]) -> Any:
        return evidence_of_names(given[i], names)

    def examples(self, contexts: Any, arm: Any) -> tuple[bool, Sequence[Any], list[Any]]:
        self._require(contexts)
        single, records, arms = examples_of(contexts, arm)
        return single, _finite(map(flatten_record, records)), arms

    def recall(self, slots: list[tuple[Any, int]]) -> Sequence[Any]:
        return _finite(check_evidence(decision)[0] for decision, _ in slots)

    def reread(self, decision: Any) -> np.ndarray:
        return self._columns.rows_of_terms([check_evidence(decision)[0]])

    def advance(self, example: Any) -> tuple[np.ndarray, np.ndarray]:
        return self._columns.advance(example)

    def game(self, contexts: Any, rewards: Any) -> tuple[np.ndarray, np.ndarray]:
        raise ValueError("contexts of this bandit are records: only rows of numbers are played")

    def users(self, contexts: Any) -> tuple[int, Callable[[slice], Any]] | None:
        self._require(contexts)
        records = records_of(contexts)[1]
        return len(records), lambda part: records[part]

    def extra(self) -> dict[str, Any]:
        return {"places": list(self._columns.places)}

    def restore(self, extra: dict[str, Any]) -> None:
        places, records = extra["places"], self._columns.records
        whole = len(set(places)) == len(places) == extra["width"] and all(type(place) is int for place in places)
        if not whole or not all(0 <= place < records.size for place in places):
            raise ValueError(
                f"the columns of records have {len(places)} places, expected {extra['width']} different ones "
                f"from 0 to {records.size - 1}"
            )
        self._columns = Columns(records, places)


def check_width(width: Any, most: int) -> int:
    """Return the number of columns. Raises ValueError unless it is from 1 to `most`."""
    way = "as `memory_limit` and `warm_up` say: raise the one, or map rows before (onepass.features.GaussianProjection)"
    return check.integer("dim", width, 1, most, way)


def _finite(each: Iterable[dict[str, float]]) -> list[dict[str, float]]:
    """Return dictionaries {term: number} as a list. Raises ValueError if a number is NaN or a row is too large."""
    every = list(each)
    for one in every:
        check.finite_rows("contexts", np.array([list(one.values())]))
    return every
