"""Search of a log by time. Records are in the order of their times, up to APART."""

from onepass.log.records import SECOND, Decision
from onepass.log.store import Store

APART = 60 * SECOND  # records may be this much out of order: a commit takes seconds at most
LOOKED = 1_000  # records that are looked through at once for the last decision


def seq_before(store: Store, time: int) -> int:
    """Return a sequence number before all records with this time or later, and after most earlier records.

    The time is in microseconds.
    """
    first, last = store.bounds()
    low, high = first - 1, last
    while low < high:
        middle = (low + high + 1) // 2
        row = next(store.rows(middle - 1, None, None, None), None)
        if row is not None and row.time < time - APART:
            low = middle
        else:
            high = middle - 1
    return low


def decision_times(store: Store, loop: str) -> tuple[int, int] | None:
    """Return the times of the first and the last decision of a loop; None without any."""
    first = next(store.rows(0, None, ("decision",), loop), None)
    if first is None:
        return None
    end = store.last
    while end > 0:
        begin = max(end - LOOKED, 0)
        rows = [row.time for row in store.rows(begin, end, ("decision",), loop)]
        if rows:
            return first.time, rows[-1]
        end = begin
    return None


def has_decisions_between(store: Store, loop: str, begin: int, end: int) -> bool:
    """Return True if there is a decision from `begin` to `end`, in microseconds."""
    for record in store.read(seq_before(store, begin), None, ("decision",), loop):
        assert isinstance(record, Decision)
        if begin <= record.time <= end:
            return True
        if record.time > end + APART:
            return False
    return False
