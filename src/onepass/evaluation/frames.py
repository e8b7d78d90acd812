"""Conversion of a frame's columns to columns of a log, with a report of the rows that cannot be used.

    a row is dirty if    its arm, reward, propensity or context is missing, or is no arm, number, probability or JSON

Rows are counted from 0, as frames do. Every dirty row is reported once, with the first column that is wrong.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy

from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.html import make_html

SHOWN = 5  # rows that a report lists of each reason
MOSTLY = 0.9  # share of the cells of a column of text that are numbers in a column of numbers with dirty cells
EXACT = 1e-9  # how exactly probabilities of a fixed split add up to 1
BEYOND = 2.0**31  # a number that is no index of an arm
SURE = 1e-3  # probability of a difference between arms, by chance, below which dirty rows are no accident


class DirtyRow(NamedTuple):
    """Row of a frame that cannot be used.

    Parameters
    ----------
    row : int
        Number of the row, from 0. In a CSV file with a header it is line `row` + 2.
    reason : str
        Description of the fault, with the name of the column.
    value : Any
        Cell of that column.
    """

    row: int
    reason: str
    value: Any


@dataclass(frozen=True)
class DirtyRows:
    """Report of the dirty rows of a frame.

    Parameters
    ----------
    rows : tuple of DirtyRow
        One entry for each dirty row, in order.
    total : int
        Number of rows of the frame.
    warning : str or None
        Sentence if arms lost different shares of their rows, so that the remaining rows are no fair sample.
    """

    rows: tuple[DirtyRow, ...]
    total: int
    warning: str | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[DirtyRow]:
        return iter(self.rows)

    @property
    def counts(self) -> dict[str, int]:
        """Number of dirty rows by reason, the most frequent first."""
        return dict(Counter(one.reason for one in self.rows).most_common())

    def _summary(self) -> str:
        return f"{len(self):,} of {self.total:,} rows are dirty"

    def _examples(self) -> Iterator[tuple[int, str, str, str]]:
        """Yield, for each reason, the number of dirty rows, the reason, the first row numbers and a bad cell."""
        for reason, count in self.counts.items():
            rows = [one for one in self.rows if one.reason == reason]
            numbers = ", ".join(str(one.row) for one in rows[:SHOWN]) + (", ..." if count > SHOWN else "")
            yield count, reason, numbers, quote(rows[0].value, 40)

    def __str__(self) -> str:
        lines = [self._summary()]
        for count, reason, numbers, example in self._examples():
            lines.append(f"{count:>7,}  {reason}: {example} (rows {numbers})")
        return "\n".join(lines if self.warning is None else [*lines, self.warning])

    def _repr_html_(self) -> str:
        head = ("dirty rows", "reason", "row numbers", "example")
        return make_html(self._summary(), head, self._examples(), [] if self.warning is None else [self.warning])


class FrameColumns:
    """Columns of a frame that are checked one after the other, and the dirty (unusable) rows found so far.

    `frame` is a pandas or polars frame, or a mapping of columns.
    """

    def __init__(self, frame: Any) -> None:
        names = getattr(frame, "columns", None)
        each = [str(name) for name in (frame if names is None else names)]
        if len(set(each)) < len(each):
            twice = next(name for name in each if each.count(name) > 1)
            raise ValueError(f"frame must have each column once, got {quote(twice)} more than once")
        self._columns = {str(name): _to_array(frame[name]) for name in (frame if names is None else names)}
        sizes = {len(column) for column in self._columns.values()}
        if len(sizes) != 1:
            raise ValueError(f"frame must have columns of one length, got {sorted(sizes)}")
        self.total = sizes.pop()
        self._first: dict[int, DirtyRow] = {}

    def column(self, argument: str, name: str) -> np.ndarray:
        """Return the column `name`. Raises ValueError, which names the `argument`, if the frame has no such column."""
        if name not in self._columns:
            raise ValueError(
                f"{argument} must be a column of the frame ({', '.join(self._columns)}), got {quote(name)}"
            )
        return self._columns[name]

    def mark(self, rows: np.ndarray, reason: str, column: np.ndarray) -> None:
        """Mark rows, given by a mask (n,), as dirty for a reason, unless they are dirty already.

        The report shows the cell of each row in `column` (n,).
        """
        for row in np.flatnonzero(rows).tolist():
            self._first.setdefault(row, DirtyRow(row, reason, _plain(column[row])))

    def numbers(self, name: str, column: np.ndarray) -> np.ndarray:
        """Return a column as floats; rows without a number are marked as dirty and are NaN."""
        out, missing, text = _to_numbers(column)
        self.mark(missing, f"{name} is missing", column)
        self.mark(text, f"{name} is not a number", column)
        self.mark(np.isinf(out), f"{name} is not finite", column)
        return out

    def rewards(self, name: str, default: float | None, limits: tuple[float, float] | None) -> np.ndarray:
        """Return the rewards (n,) of the column `name`, NaN in rows that are dirty for want of a number.

        Empty cells take `default`; if it is None, their rows are dirty. Rows outside of `limits`, the least and largest
        possible reward, are dirty, too; None stands for no limits.
        """
        if limits is not None and not limits[0] <= limits[1]:
            raise ValueError(f"reward_range must have its least reward first, got {quote(limits)}")
        column = self.column("reward", name)
        missing = _missing(column)
        if default is not None and missing.any():
            column = column.astype(object)
            column[missing] = default
        out = self.numbers(name, column)
        if limits is not None:
            outside = (out < limits[0]) | (out > limits[1])
            self.mark(outside, f"{name} is outside of {limits[0]:g} to {limits[1]:g}", column)
        return out

    def propensities(self, name: str) -> np.ndarray:
        """Return the probabilities (n,) of a column, above 0 and at most 1; rows with other values become dirty."""
        column = self.column("propensity", name)
        out = self.numbers(name, column)
        self.mark((out <= 0.0) | (out > 1.0), f"{name} is no probability above 0 and at most 1", column)
        return out

    def probabilities(
        self, names: Sequence[str], chosen: np.ndarray, propensities: np.ndarray, count: int, rounded: float
    ) -> np.ndarray:
        """Return the probabilities (n, count) of all arms in the columns `names`.

        Rows become dirty if a cell is no probability, if the cells add up to a number further than `rounded` from 1, or
        if the cell of the arm in `chosen` (n,) is not the row's entry of `propensities` (n,). Raises ValueError unless
        there is a column for each arm.
        """
        if len(names) != count:
            raise ValueError(f"probabilities must be a column for each of {count} arms, got {quote(list(names))}")
        columns = [self.column("probabilities", name) for name in names]
        out = np.stack([self.numbers(name, column) for name, column in zip(names, columns, strict=True)], axis=1)
        for name, column, found in zip(names, columns, out.T, strict=True):
            self.mark((found < 0.0) | (found > 1.0), f"{name} is no probability from 0 to 1", column)
        sums = out.sum(axis=1)
        self.mark(np.abs(sums - 1.0) > rounded, f"{', '.join(names)} do not add up to 1", sums)
        held = out[np.arange(len(out)), chosen]
        differs = (chosen >= 0) & (np.abs(held - propensities) > EXACT)
        self.mark(differs, "the propensity is not the probability of the chosen arm", propensities)
        return out

    def arms(self, name: str, names: Sequence[Any] | None) -> tuple[np.ndarray, tuple[str, ...] | None]:
        """Return the arms in the column `name` as indices (n,), -1 if dirty, and the names of all arms.

        `names` are the names in the order of the indices; None takes the sorted names in the column. Without `names`, a
        column of numbers holds indices, and None is returned for the names.
        """
        column = self.column("arm", name)
        missing = _missing(column)
        self.mark(missing, f"{name} is missing", column)
        numbers, _, text = _to_numbers(column)
        if names is None and not text.any():
            whole = (numbers >= 0.0) & (numbers == np.floor(numbers)) & (numbers < BEYOND)
            self.mark(~missing & ~whole, f"{name} is no index from 0", column)
            return np.where(whole, numbers, -1.0).astype(int), None
        cells = np.array([None if gone else str(_plain(cell)) for cell, gone in zip(column, missing)], object)
        known = tuple(sorted(set(cells[~missing]))) if names is None else tuple(map(str, names))
        places = {one: place for place, one in enumerate(known)}
        if names is not None and column.dtype.kind == "f":  # pandas makes 1.0 of 1 where a cell of the column is empty
            whole = [cell if cell is None or cell in places else cell.removesuffix(".0") for cell in cells]
            cells = np.array(whole, object)
        out = np.array([places.get(cell, -1) for cell in cells], int)
        self.mark((out < 0) & ~missing, f"{name} is none of the arms", column)
        return out, known

    def repeats(self, name: str) -> None:
        """Mark rows as dirty if an earlier row has the same identity."""
        column, seen = self.column("id", name), set[str]()
        self.mark(_missing(column), f"{name} is missing", column)
        again = np.zeros(len(column), bool)
        for row, cell in enumerate(column.tolist()):
            again[row] = str(cell) in seen
            seen.add(str(cell))
        self.mark(again, f"{name} is that of an earlier row", column)

    def contexts(self, names: str | Sequence[str]) -> tuple[np.ndarray | None, list[dict[str, Any]] | None]:
        """Return the contexts in the columns `names`: an array (n, d) and None, or None and n dictionaries.

        The array is for columns of numbers. Dictionaries are returned if a column is text, and for a single column of
        dictionaries or JSON.
        """
        each = [names] if isinstance(names, str) else list(names)
        if not each:
            raise ValueError("context must name at least one column, or be None, got no name")
        columns = [self.column("context", name) for name in each]
        if len(each) == 1 and (read := _json_reader(columns[0])) is not None:
            return None, self._read_json(each[0], columns[0], read)
        features: list[np.ndarray] = []
        for name, column in zip(each, columns, strict=True):
            if _is_numeric(column):
                features.append(self.numbers(name, column))
            else:
                self.mark(_missing(column), f"{name} is missing", column)
                features.append(column)
        if all(column.dtype.kind == "f" for column in features):
            return np.stack(features, axis=1), None
        cells = [column.tolist() for column in features]
        return None, [dict(zip(each, row, strict=True)) for row in zip(*cells, strict=True)]

    def _read_json(self, name: str, column: np.ndarray, read: Callable[[Any], Any]) -> list[dict[str, Any]]:
        """Return the dictionaries in the column `name`; rows with anything else become dirty and get an empty one.

        `read` returns the dictionary of a cell of `column`, or raises ValueError.
        """
        missing, wrong, out = _missing(column), np.zeros(len(column), bool), []
        for row, cell in enumerate(column.tolist()):
            found: Any = {}
            if not missing[row]:
                try:
                    found = read(cell)
                except ValueError:
                    found = None
            wrong[row] = not isinstance(found, dict)
            out.append({} if wrong[row] else found)
        self.mark(missing, f"{name} is missing", column)
        self.mark(wrong, f"{name} is no JSON object", column)
        return out

    def report(self, arms: np.ndarray) -> DirtyRows:
        """Return the report of all dirty rows; `arms` (n,) are the rows' arms by index, -1 without a valid arm."""
        rows = tuple(self._first[row] for row in sorted(self._first))
        return DirtyRows(rows, self.total, _loss_warning(arms, self.clean()))

    def clean(self) -> np.ndarray:
        """Return a mask (n,) that is True for rows with valid cells only."""
        out = np.ones(self.total, bool)
        out[list(self._first)] = False
        return out

    def select(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return the cells of all columns in the rows of a mask (n,)."""
        return {name: column[rows] for name, column in self._columns.items()}


def _loss_warning(arms: np.ndarray, clean: np.ndarray) -> str | None:
    """Return a sentence if the arms lost shares of their rows that differ more than chance explains, else None.

    `arms` (n,) are the arms of all rows by index, -1 if not known, and `clean` (n,) is False for rows that were lost.
    """
    known = arms >= 0
    kept, lost = (np.bincount(arms[known & which], minlength=1) for which in (clean, ~clean))
    size = max(len(kept), len(lost))
    table = np.array([np.resize(np.append(one, np.zeros(size, int)), size) for one in (kept, lost)])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2 or table[1].sum() == 0 or table[0].sum() == 0:
        return None
    if float(scipy.stats.chi2_contingency(table, correction=False).pvalue) >= SURE:
        return None
    return "arms lost different shares of their rows: the remaining rows may be no fair sample"


def fixed_split(arms: np.ndarray, propensities: np.ndarray, count: int) -> np.ndarray | None:
    """Return the probabilities (count,) of the arms if they were the same in all rows, else None.

    They were the same if every arm has one propensity in all of its rows, and these propensities add up to 1.
    """
    out = np.zeros(count)
    out[arms] = propensities
    return out if np.array_equal(out[arms], propensities) and abs(out.sum() - 1.0) < EXACT else None


def split_from(given: Any, names: tuple[str, ...] | None, count: int) -> np.ndarray:
    """Return the probabilities (count,) of arms, given as a mapping from arm to probability, or one number for all.

    The arms are `names`, or the indices of `count` arms if that is None. Raises ValueError if an arm is missing, or if
    the probabilities do not add up to 1.
    """
    if isinstance(given, Mapping):
        by_name = {str(name): check.fraction("propensity", value) for name, value in given.items()}
        known = tuple(map(str, range(count))) if names is None else names
        if set(by_name) != set(known):
            raise ValueError(f"propensity must have each arm ({', '.join(known)}) once, got {quote(dict(given))}")
        out = np.array([by_name[name] for name in known])
    else:
        out = np.full(count, check.fraction("propensity", given))
    if abs(out.sum() - 1.0) > EXACT:
        raise ValueError(f"propensity must add up to 1 over {count} arms, got {out.sum():g}")
    return out


def _to_array(series: Any) -> np.ndarray:
    """Return a column as an array: numbers and booleans keep their type, anything else becomes objects.

    Times become `datetime` and `timedelta`, None where there is no time.
    """
    found = np.asarray(series.to_numpy() if hasattr(series, "to_numpy") else series)
    if found.ndim != 1:
        found = np.empty(len(series), object)
        found[:] = list(series)
    if found.dtype.kind in "mM":
        found = found.astype(f"{found.dtype.kind}8[us]")  # NumPy makes integers of nanoseconds
    return found if found.dtype.kind in "biuf" else found.astype(object)


def _missing(column: np.ndarray) -> np.ndarray:
    """Return a mask (n,) of the empty cells: None, "", NaN and pandas' NA."""
    if column.dtype.kind != "O":
        return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), bool)
    return np.array([_is_empty(cell) for cell in column.tolist()], bool)


def is_missing(value: Any) -> bool:
    """Return True for None, NaN, pandas' NA and NaT."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return type(value).__name__ in ("NAType", "NaTType")


def _is_empty(cell: Any) -> bool:
    """Return True for an empty cell."""
    return cell == "" if isinstance(cell, str) else is_missing(cell)


def _to_numbers(column: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a column as floats, NaN for cells without a number.

    The other results are the masks (n,) of empty cells, and of cells with something else than a number.
    """
    missing = _missing(column)
    if column.dtype.kind != "O":
        return column.astype(float), missing, np.zeros(len(column), bool)
    out = np.full(len(column), np.nan)
    for row, cell in enumerate(column.tolist()):
        if not missing[row]:
            try:
                out[row] = np.nan if isinstance(cell, str) and "_" in cell else float(cell)
            except (TypeError, ValueError):
                continue
    return out, missing, np.isnan(out) & ~missing


def _is_numeric(column: np.ndarray) -> bool:
    """Return True for a column of numbers, or a column of text in which nearly all cells are numbers."""
    if column.dtype.kind != "O":
        return True
    _, missing, text = _to_numbers(column)
    given = len(column) - int(missing.sum())
    return given > 0 and int(text.sum()) < (1.0 - MOSTLY) * given


def _json_reader(column: np.ndarray) -> Callable[[Any], Any] | None:
    """Return the function that reads the cells of a column of dictionaries or JSON, None for another column."""
    first = next((cell for cell in column.tolist() if not _is_empty(cell)), None)
    if isinstance(first, dict):
        return lambda cell: cell
    return _read_json if isinstance(first, str) and first.lstrip().startswith("{") else None


def _read_json(cell: Any) -> Any:
    """Return the value of JSON text; raise ValueError for other text, and for numbers that are not finite."""
    if not isinstance(cell, str):
        raise ValueError(f"JSON must be text, got {quote(cell)}")
    return json.loads(cell, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    """Raise ValueError for NaN and Infinity, which are not valid JSON."""
    raise ValueError(f"JSON has no {name}")


def _plain(cell: Any) -> Any:
    """Return a cell as a Python object."""
    return cell.item() if isinstance(cell, np.generic) else cell
