r"""Flattening of records into numeric terms: {"country": "de", "age": 34} becomes country=de: 1 and age: 34.

| value                    | terms |
| ------------------------ | --- |
| number, boolean          | key: the number, 0 or 1 |
| string                   | key=string: 1 |
| None                     | key?: 1 |
| list, tuple, set, array  | of strings key=string: 1 for each, however often; of numbers key[0], key[1], ... |
| record                   | its terms as key.inner: namespaces, to any depth |
| date, time, datetime     | key@day.sin, .cos: the time of day; @week: that of the week; @year: that of the year |

Times are in their own time zone; a date is a whole day and has no time of day. In keys the characters \ . = ? [ @ are
escaped by a \ before them, so that different records never share a name. NaN, infinities and other values raise
ValueError, which names the key. Rows of frames (polars, pandas) are records, in which missing values are None.
"""

import datetime
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np

from onepass.foundation import check
from onepass.foundation.check import quote

MARKS = re.compile(r"([\\.=?\[@])")
NUMBER = re.compile(r"(\\.|[^\\=?])*", re.DOTALL)  # a name without the marks of strings and of what is missing
MISSING = re.compile(r"(\\.|[^\\=?])*\?", re.DOTALL)
LARGEST = check.LARGEST["d"]
DAY, WEEK = 24.0, 7.0  # hours, days
YEAR = 366  # days of the longest one
KEYS = 4096  # names of keys kept, which are the same in every record

Said = Callable[[str, float], None]


def flatten_record(record: Any) -> dict[str, float]:
    """Return a nested record as terms, a flat dictionary from names to numbers, in the record's order.

    Raises ValueError if it is not a record, or has a value that is not finite.
    """
    if type(record) is not dict and not isinstance(record, Mapping):
        raise ValueError(f"a record must be a dictionary, got {quote(record)}")
    found: dict[str, float] = {}
    for key, value in record.items():
        kind = type(value) if type(key) is str else None
        if kind is str:  # the common cases, at once
            found[f"{_escape(key)}={value}"] = 1.0
        elif (kind is float or kind is int or kind is bool) and -LARGEST <= value <= LARGEST:
            found[_escape(key)] = float(value)
        else:
            found.update(flatten_value("", key, value))
    return found


def check_terms(found: Any) -> dict[str, float]:
    """Return `found` itself, or raise ValueError unless it is a dictionary of finite numbers."""
    if not isinstance(found, dict):
        raise ValueError(f"terms must be numbers by name, got {quote(found)}")
    for name, value in found.items():
        if not (type(name) is str and type(value) is float and -LARGEST <= value <= LARGEST):
            raise ValueError(f"terms must be finite numbers by name, got {quote(value)} of {quote(name)}")
    return found


def flatten_mapping(record: Any, path: str) -> Iterator[tuple[str, float]]:
    """Yield the terms (name, number) of a record, with names that begin with `path`."""
    if type(record) is not dict and not isinstance(record, Mapping):
        raise ValueError(f"a record must be a dictionary, got {quote(record)}")
    for key, value in record.items():
        yield from flatten_value(path, key, value)


def flatten_value(path: str, key: Any, value: Any) -> Iterator[tuple[str, float]]:
    """Yield the terms (name, number) of one value, stored under `key` of the record at `path`."""
    name, kind = term_name(path, key), type(value)
    if kind is str or isinstance(value, str):
        yield f"{name}={value}", 1.0
    elif kind is dict:  # this and numbers, the common cases, before the slow tests of abstract classes
        yield from flatten_mapping(value, f"{name}.")
    elif (kind is float or kind is int or kind is bool) and -LARGEST <= value <= LARGEST:
        yield name, float(value)
    elif value is None:
        yield f"{name}?", 1.0
    elif isinstance(value, Mapping):
        yield from flatten_mapping(value, f"{name}.")
    elif isinstance(value, datetime.date | datetime.time | np.datetime64):
        yield from _flatten_time(name, value)
    elif isinstance(value, Collection) and not isinstance(value, bytes | bytearray | memoryview):
        yield from _flatten_list(name, value)
    else:
        yield name, to_number(name, value)


def term_name(path: str, key: Any) -> str:
    """Return the name of a term: the path of the record, followed by the escaped key.

    Raises ValueError if the key is not a string.
    """
    if not isinstance(key, str):
        raise ValueError(f"keys of a record must be strings, got {quote(key)}")
    return path + _escape(key)


@lru_cache(maxsize=KEYS)
def _escape(key: str) -> str:
    return MARKS.sub(r"\\\1", key)


def to_number(name: str, value: Any) -> float:
    """Return the number or boolean `value` of the term `name` as a float.

    Raises ValueError for anything else, also for NaN, infinities and numbers above `LARGEST` in size.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, np.timedelta64) and isinstance(value, Real | Decimal | np.bool_):
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if -LARGEST <= found <= LARGEST:
            return found
    raise ValueError(
        f"{name} must be a string, a number up to {LARGEST:.0e}, a boolean, a date, a list, a record or None, got "
        f"{quote(value)}; None says that it is missing"
    )


def is_number(name: str) -> bool:
    """Return True if a term's name belongs to a number, not to a string or a missing value."""
    return NUMBER.fullmatch(name) is not None


def is_missing(name: str) -> bool:
    """Return True if a term's name marks a missing value."""
    return MISSING.fullmatch(name) is not None


def _flatten_list(name: str, values: Any) -> Iterator[tuple[str, float]]:
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            if values.ndim == 0:
                values = [values]
                yield name, to_number(name, values[0])
                return
            raise ValueError(f"{name} must be a list, got an array of shape {values.shape}")
        values = values.tolist()
    each = list(values)
    if any(isinstance(value, str) for value in each):
        wrong = [value for value in each if not isinstance(value, str)]
        if wrong:
            raise ValueError(f"{name} must be a list of strings or of numbers, got {quote(wrong[0])} among strings")
        ordered = sorted(set(each)) if isinstance(values, set | frozenset) else dict.fromkeys(each)
        for value in ordered:
            yield f"{name}={value}", 1.0
        return
    if isinstance(values, set | frozenset) and each:
        raise ValueError(f"{name} must be a list where it holds numbers, for a set has no order, got {quote(values)}")
    for place, value in enumerate(each):
        yield f"{name}[{place}]", to_number(f"{name}[{place}]", value)


def _flatten_time(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """Yield the terms of a date, a time or a datetime: sine and cosine in the cycles day, week and year."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]" if value.dtype != np.dtype("<M8[D]") else "datetime64[D]").item()
    if value is None or value != value:  # NaT, of NumPy and of pandas
        yield f"{name}?", 1.0
        return
    days = 0.0
    if isinstance(value, datetime.time | datetime.datetime):
        hours = value.hour + value.minute / 60 + value.second / 3600
        days = hours / DAY
        yield from _circle_terms(f"{name}@day", days)
    if isinstance(value, datetime.date):
        yield from _circle_terms(f"{name}@week", (value.weekday() + days) / WEEK)
        yield from _circle_terms(f"{name}@year", (value.timetuple().tm_yday - 1 + days) / YEAR)


def _circle_terms(name: str, turn: float) -> Iterator[tuple[str, float]]:
    yield f"{name}.sin", math.sin(2.0 * math.pi * turn)
    yield f"{name}.cos", math.cos(2.0 * math.pi * turn)


def to_records(records: Any) -> tuple[bool, list[Any]]:
    """Return whether there is a single dictionary, and the records of a dictionary, a list of them, or a frame.

    A single dictionary makes a list of one record. A frame is of polars or pandas.
    """
    if isinstance(records, Mapping):
        return True, [records]
    if hasattr(records, "iter_rows"):  # polars
        return False, list(records.iter_rows(named=True))
    if hasattr(records, "isna") and hasattr(records, "to_dict"):  # pandas, for whom NaN is what is missing
        return False, records.astype(object).where(~records.isna(), None).to_dict("records")
    if isinstance(records, list | tuple):
        return False, list(records)
    raise ValueError(f"records must be a dictionary, a list of them, or a frame, got {quote(records)}")
