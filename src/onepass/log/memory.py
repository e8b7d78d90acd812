"""Store in memory, for tests, notebooks and files that are read once; nothing in it is durable."""

import threading
from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import islice
from typing import final

from onepass.log.store import Damage, Row, Store, StoreError, assign_places, erase_row

PAGE = 1_000  # rows taken at a time, so that writers need not wait for a reader


@final
class MemoryStore(Store):
    """Store that keeps the records of a log in memory."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._first, self._closed = 1, False
        self._once: dict[tuple[str, str], int] = {}
        self._events: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        self._lock = threading.Lock()

    def put(self, rows: list[Row]) -> list[int]:
        with self._lock:
            self._require_open()
            seqs, new = assign_places(rows, self._once, self._first + len(self._rows) - 1)
            for row in new:
                if row.event is not None:
                    self._events[row.loop, row.event].append(row.seq)
            self._rows += new
            return seqs

    def rows(self, since: int, until: int | None, kinds: Collection[str] | None, loop: str | None) -> Iterator[Row]:
        while True:
            with self._lock:
                self._require_open()
                start = max(since + 1 - self._first, 0)
                page = list(islice(self._rows, start, start + PAGE))
            for row in page:
                if until is not None and row.seq > until:
                    return
                if (kinds is None or row.kind in kinds) and loop in (None, row.loop):
                    yield row
            if not page:
                return
            since = page[-1].seq

    def rows_about(self, loop: str, event: str) -> list[Row]:
        with self._lock:
            self._require_open()
            return [self._rows[seq - self._first] for seq in self._events.get((loop, event), ())]

    def erase(self, subject: str, events: Collection[tuple[str, str]] = ()) -> int:
        with self._lock:
            self._require_open()
            named = [row for row in self._rows if row.subject == subject]
            every = {(row.loop, row.event) for row in named if row.event is not None}.union(events)
            seqs = {row.seq for row in named}.union(*(self._events.pop(event, ()) for event in every))
            for seq in seqs:
                row = self._rows[seq - self._first]
                if row.once is not None:
                    self._once.pop((row.loop, row.once), None)
                self._rows[seq - self._first] = erase_row(row)
            return len(seqs)

    def drop(self, seq: int) -> int:
        with self._lock:
            self._require_open()
            count = max(seq - self._first, 0)
            for row in self._rows[:count]:
                if row.once is not None:
                    self._once.pop((row.loop, row.once), None)
                if row.event is not None:
                    left = [place for place in self._events.pop((row.loop, row.event), ()) if place >= seq]
                    if left:
                        self._events[row.loop, row.event] = left
            del self._rows[:count]
            self._first += count
            return count

    def bounds(self) -> tuple[int, int]:
        with self._lock:
            self._require_open()
            return self._first, self._first + len(self._rows) - 1

    def start(self, seq: int) -> None:
        with self._lock:
            self._first = seq

    def inspect(self) -> Iterator[Damage]:
        return iter(())

    def close(self) -> None:
        self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError("the store is closed")
