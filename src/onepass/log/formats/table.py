"""CSV with named columns, and frames with the same columns (polars, pandas): one decision a row.

    arm, reward, propensity        and, if present: id, time (ISO 8601, or seconds), arms, features in columns of
                                   their own, probabilities of all arms in columns of theirs

The first row of a file holds the names of its columns. Arms are indices from 0 or have names. If the first row has a
name, a first pass over the column finds all names.
"""

import contextlib
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from onepass.foundation import check
from onepass.log.formats.lines import Lines, Report, open_atomic
from onepass.log.records import Decision, Event, Outcome, micros, moment

Row = dict[str, Any]


class ColumnNames:
    """Names of the columns, by their meaning.

    Parameters
    ----------
    arm : str, default "arm"
        Column of the chosen arm.
    reward : str, default "reward"
        Column of the reward; an empty cell means no outcome.
    propensity : str, default "propensity"
        Column of the arm's probability.
    id : str, default None
        Column of the identity. None means "id" if it exists.
    time : str, default None
        Column of the time. None means "time" if it exists.
    features : sequence of str, default ()
        Columns of numbers that describe the decision.
    probabilities : sequence of str, default ()
        Columns of the probabilities of all arms, in their order.
    arms : sequence, default None
        Names of all arms. With None, arms are indices if the first row has a number, else the sorted names of the
        column.
    """

    arm: str
    reward: str
    propensity: str
    id: str | None
    time: str | None
    features: tuple[str, ...]
    probabilities: tuple[str, ...]

    def __init__(
        self, *, arm: str = "arm", reward: str = "reward", propensity: str = "propensity", id: str | None = None,
        time: str | None = None, features: Sequence[str] = (), probabilities: Sequence[str] = (),
        arms: Sequence[Any] | None = None,
    ) -> None:  # fmt: skip
        self.arm, self.reward, self.propensity, self.id, self.time = arm, reward, propensity, id, time
        self.features, self.probabilities = tuple(features), tuple(probabilities)
        self._name(arms)

    def _name(self, arms: Iterable[Any] | None) -> None:
        self.arms: list[Any] | None = None if arms is None else list(arms)
        self._places = {str(name): place for place, name in enumerate(self.arms or ())}

    def find_arms(self, cells: Iterable[Any]) -> None:
        """Take the names of arms from the column's cells, unless they are given or the first cell is a number.

        Raises ValueError if there are columns of probabilities, because their order needs given names.
        """
        given = (cell for cell in cells if not _is_missing(cell))
        first = None if self.arms is not None else next(given, None)
        if first is None or _is_number(first):
            return
        if self.probabilities:
            raise ValueError(f"arms must name all arms in the order of probabilities, as {self.arm} has names")
        self._name(sorted({str(first), *map(str, given)}))

    def check(self, columns: Sequence[str]) -> None:
        """Raise ValueError if one of the named columns is missing among `columns`."""
        given = (self.arm, self.reward, self.propensity, self.id, self.time, *self.features, *self.probabilities)
        missing = [name for name in given if name is not None and name not in columns]
        if missing:
            raise ValueError(f"columns must hold {', '.join(missing)}, got {', '.join(columns)}")

    def event(self, row: Row, loop: str, name: str) -> Event:
        """Return the event of a row (a dictionary of cells); raise ValueError for invalid cells.

        `loop` is the name of the loop for its records, and `name` the event's id if the row has none.
        """
        arm = row[self.arm]
        if self.arms is None:
            if not _is_number(arm):
                raise ValueError(
                    f"{self.arm} must be a place from 0, as in the first row, got {arm}: where it is a name give arms"
                )
            place = int(float(arm))
            if place < 0 or place != float(arm):
                raise ValueError(f"{self.arm} must be a place from 0, got {arm}")
        elif str(arm) not in self._places:
            raise ValueError(f"{self.arm} must be one of arms, got {arm}")
        else:
            place = self._places[str(arm)]
        p = float(row[self.propensity])
        if not 0.0 < p <= 1.0:
            raise ValueError(f"{self.propensity} must be above 0 and at most 1, got {row[self.propensity]}")
        reward = row[self.reward]
        when, own = row.get(self.time or "time"), row.get(self.id or "id")
        decision = Decision(
            loop=loop, time=0 if _is_missing(when) else _parse_time(when), id=name if _is_missing(own) else str(own),
            places=[place], propensities=[p], offered=self.arms,
            probabilities=[_finite_number(row, each) for each in self.probabilities] or None,
            contexts=[_finite_number(row, each) for each in self.features] or None,
        )  # fmt: skip
        if _is_missing(reward):
            return Event(decision, ())
        return Event(
            decision, (Outcome(loop=loop, time=decision.time, id=decision.id, value=_finite_number(row, self.reward)),)
        )


def _is_missing(value: Any) -> bool:
    """Return True for an empty cell, which frames mark by NaN."""
    return value is None or value == "" or value != value


def _is_number(value: Any) -> bool:
    """Return True for a finite number or its text."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return False
    return number - number == 0.0


def _finite_number(row: Row, name: str) -> float:
    """Return the finite number in a column of a row; raise ValueError for other cells."""
    value = float(row[name])
    if value - value != 0.0:
        raise ValueError(f"{name} must be finite, got {row[name]}")
    return value


def _parse_time(value: Any) -> int:
    """Convert a datetime, ISO 8601 text or seconds to microseconds; a time without a zone is UTC."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return micros(value if value.tzinfo else value.replace(tzinfo=UTC))
    return micros(float(value))


def read(
    path: str | Path, *, loop: str = "imported", bad: str = "refuse", report: Report | None = None, **names: Any
) -> Iterator[Event]:
    """Yield the events of a CSV file.

    Quoted fields must not hold line ends.

    Parameters
    ----------
    path : str or Path
        The file.
    loop : str, default "imported"
        Name of the loop for its records.
    bad : {"refuse", "skip"}, default "refuse"
        "refuse" raises ValueError with the number of a bad line. "skip" leaves it out.
    report : callable, default None
        Is called with the number of each line left out and the reason.
    **names : Any
        Names of columns, as in `ColumnNames`.

    Yields
    ------
    Event
        The next event.
    """
    lines, columns, meaning = Lines(path, bad, report), None, ColumnNames(**names)
    for number, line in lines:
        if not line:
            continue
        try:
            values = next(csv.reader([line.decode("utf-8-sig" if columns is None else "utf-8")], strict=True))
            if columns is not None:
                if len(values) != len(columns):
                    raise ValueError(f"there must be {len(columns)} fields, got {len(values)}")
                yield meaning.event(dict(zip(columns, values, strict=True)), loop, f"line {number}")
                continue
        except (ValueError, csv.Error) as error:
            lines.reject(number, error)
            continue
        columns = values
        meaning.check(columns)
        meaning.find_arms(_read_column(path, columns.index(meaning.arm)))


def _read_column(path: str | Path, index: int) -> Iterator[str]:
    """Yield the cells of the column with this index, from 0, below the first row; skip lines that cannot be read."""
    lines = iter(Lines(path, "skip"))
    next(line for _, line in lines if line)
    for _, line in lines:
        with contextlib.suppress(ValueError, csv.Error, IndexError):
            yield next(csv.reader([line.decode("utf-8")], strict=True))[index] if line else ""


def events_of(
    frame: Any, *, loop: str = "imported", bad: str = "refuse", report: Report | None = None, **names: Any
) -> Iterator[Event]:
    """Yield the events of a polars or pandas frame, or a mapping of columns.

    `loop` is the loop's name in the events, and `names` are the names of columns by their meaning, as for `read`. If
    `bad` is "skip", bad rows are left out, and `report` is called with the number of each, from 1, and the reason.
    """
    check.choice("bad", bad, ("refuse", "skip"))
    meaning, columns = ColumnNames(**names), [str(name) for name in getattr(frame, "columns", frame)]
    meaning.check(columns)
    held = [list(frame[name].tolist() if hasattr(frame[name], "tolist") else frame[name]) for name in columns]
    meaning.find_arms(held[columns.index(meaning.arm)])
    for number, values in enumerate(zip(*held, strict=True), 1):
        try:
            yield meaning.event(dict(zip(columns, values, strict=True)), loop, f"row {number}")
        except (ValueError, TypeError) as error:
            if bad == "refuse":
                raise ValueError(f"row {number}: {error}") from None
            if report is not None:
                report(number, str(error))


def rows_of(events: Iterable[Event]) -> Iterator[Row]:
    """Yield events as rows of a table: id, time, arm, reward, propensity, features x0, ..., probabilities p0, ...

    Raises ValueError for several slots, features that are not numbers, and a decision without its propensity.
    """
    for event in events:
        decision = event.decision
        features = decision.contexts if decision.contexts is not None else []
        numbers = isinstance(features, list) and all(isinstance(one, int | float) for one in features)
        if len(decision.places) != 1 or decision.propensities is None or not numbers:
            raise ValueError(f"decision {decision.id} must have one slot, its propensity, and numbers for features")
        place = decision.places[0]
        yield {
            "id": decision.id,
            "time": moment(decision.time).isoformat() if decision.time else "",
            "arm": place if decision.offered is None else decision.offered[place],
            "reward": sum(one.value for one in event.outcomes) if event.outcomes else "",
            "propensity": decision.propensities[0],
            **{f"x{i}": one for i, one in enumerate(features)},
            **{f"p{i}": one for i, one in enumerate(decision.probabilities or [])},
        }


def write(path: str | Path, events: Iterable[Event]) -> int:
    """Write events to a CSV file, which appears when it is complete, and return their number.

    `rows_of` describes the columns. Raises ValueError for an event with other columns than the first.
    """
    count, columns, text = 0, None, io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    with open_atomic(path) as file:
        for row in rows_of(events):
            count += 1
            if columns is None:
                columns = list(row)
                writer.writerow(columns)
            if list(row) != columns:
                raise ValueError(f"decision {row['id']} must have the columns of the first: {', '.join(columns)}")
            writer.writerow(row.values())
            file.write(text.getvalue().encode())
            text.seek(0)
            text.truncate()
    return count
