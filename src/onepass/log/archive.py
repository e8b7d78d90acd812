"""Archive of past months: the oldest records are copied to an archive, read back and compared, and only then deleted.

    archive  1, ..., s            months that are over
    store    s + 1, ..., last     what is still written

If the process is killed in between, some records are in both places and none is lost. The next call compares them and
goes on.
"""

from collections.abc import Callable, Iterator
from datetime import datetime

from onepass.log.records import micros, moment
from onepass.log.store import Row, Store, StoreError


def seal(
    store: Store, archive: Store, before: datetime, permit: Callable[[int], object] = lambda last: None
) -> list[tuple[str, int]]:
    """Move the records before a time from a store to an archive, a month at a time.

    It moves records from the beginning of the log, up to the first record that is not earlier than this time. A month
    ends at the first record of a later month.

    Parameters
    ----------
    store : Store
        The store.
    archive : Store
        The archive: empty, or ending right before the store's first record.
    before : datetime
        The time, with a time zone.
    permit : callable, optional
        Function that is called with the last position to be moved before anything is moved. It raises an error to
        refuse.

    Returns
    -------
    list of (str, int)
        The months and their numbers of records.

    Raises
    ------
    StoreError
        If the archive holds something else. Nothing is deleted then.
    """
    parts = list(months(store, micros(before)))
    if parts:
        permit(parts[-1][-1])
    return [(month, move(store, archive, last)) for month, _, last in parts]


def move(store: Store, archive: Store, last: int) -> int:
    """Move the records of a store up to the position `last` to an archive, as one batch, and return their number.

    `store` is the log, `archive` the store that takes the records.
    """
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
    """Yield (month, first position, last position) for each month of a store's records before `end` (microseconds)."""
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
    """Return the position of the first record that is not earlier than the time `moment`.

    If all records are earlier, the result is the last position + 1.
    """
    parts = list(months(store, micros(moment)))
    return parts[-1][-1] + 1 if parts else store.first


def month_of(row: Row) -> str:
    """Return the month of a record's row in UTC, such as 2026-11."""
    return f"{moment(row.time):%Y-%m}"
