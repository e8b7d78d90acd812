"""Sealed months: the oldest records go into an archive, are read back and compared, and only then deleted.

    archive  1, ..., s            months that are over
    store    s + 1, ..., last     what is still written

Who is killed in between has records twice and none lost; the next call compares and goes on.
"""

from collections.abc import Callable, Iterator
from datetime import datetime

from onepass.log.records import micros, moment
from onepass.log.store import Row, Store, StoreError


def seal(
    store: Store, archive: Store, before: datetime, permit: Callable[[int], object] = lambda last: None
) -> list[tuple[str, int]]:
    """Move the records before a moment from a store to an archive, a month at a time; the months and their numbers of
    records.

    store, archive: whose places follow one another, or an archive that is new; before: a datetime with a time zone.
    permit: is called with the last place that would be moved, before anything is; it raises where that must stay
    (default: all may go).
    What is moved is the longest beginning of the log of which all records are earlier; a month ends where the first
    record of a later one comes. StoreError, and nothing is deleted, where the archive has something else.
    """
    parts = list(months(store, micros(before)))
    if parts:
        permit(parts[-1][-1])
    return [(month, move(store, archive, last)) for month, _, last in parts]


def move(store: Store, archive: Store, last: int) -> int:
    """Move the records of a store up to a place to an archive, as one batch; how many. Errors as of `seal`."""
    first = store.first
    begin, end = archive.bounds()
    if begin > end and first > end + 1:  # it holds nothing: new, or all was dropped, and records of the store as well
        archive.start(first)
    rows = list(store.rows(first - 1, last, None, None))
    if archive.last < first and rows:
        archive.put(rows)
    if list(archive.rows(first - 1, last, None, None)) != rows:
        raise StoreError(f"the archive holds records {first} to {last} otherwise than the store; nothing was deleted")
    store.drop_before(last + 1)
    return len(rows)


def months(store: Store, end: int) -> Iterator[tuple[str, int, int]]:
    """Month, first and last place of the parts of a store's beginning that is earlier than `end`, microseconds."""
    month, first, last = "", store.first, store.first - 1
    for row in store.rows(0, None, None, None):
        if row.time >= end:
            break
        name = month_of(row)
        if name > month:
            if last >= first:
                yield month, first, last
            month, first = name, row.seq
        last = row.seq
    if last >= first:
        yield month, first, last


def first_since(store: Store, moment: datetime) -> int:
    """The place of a store's first record that is not earlier than a moment, a datetime with a time zone; one more than
    the last place where all are."""
    parts = list(months(store, micros(moment)))
    return parts[-1][-1] + 1 if parts else store.first


def month_of(row: Row) -> str:
    """The month of a row in UTC, as 2026-11."""
    return f"{moment(row.time):%Y-%m}"
