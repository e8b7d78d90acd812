"""Archive of past months and the store that is still written, read as one log.

    archive  1, ..., s            live  s + 1, ..., last            one order, no gap

While `seal` runs, or after it was killed, some records are in both stores. They are read once. Records are appended to
the live store after the archive is searched for them. A process that writes thousands of records a second should write
to the live store directly. A record that is sent again after its month was sealed is then stored twice.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import final

from onepass.log.store import Damage, Row, Store

PAGE = 1_000  # places read at a time, before it is looked whether they were sealed meanwhile


@final
class JoinedStore(Store):
    """Store that reads the records of an archive, followed by those of a live store, as one log.

    Parameters
    ----------
    archive : Store
        The archive, as `onepass.log.archive.seal` leaves it. It is closed with this store.
    live : Store
        The store that is still written, whose positions follow those of the archive. It is closed with this store.
    """

    archive: Store
    live: Store

    def __init__(self, archive: Store, live: Store) -> None:
        self.archive, self.live = archive, live

    def put(self, rows: list[Row]) -> list[int]:
        if self.live.bounds() == (1, 0) and self.archive.bounds() != (1, 0):
            self.live.begin(self.archive.last + 1)
        held: dict[int, int] = {}
        for place, row in enumerate(rows):
            if row.once is not None and row.event is not None and row.seq == 0:
                for one in self.archive.rows_about(row.loop, row.event):
                    if one.once == row.once:
                        held[place] = one.seq
        new = iter(self.live.put([row for place, row in enumerate(rows) if place not in held]))
        return [held[place] if place in held else next(new) for place in range(len(rows))]

    def rows(self, since: int, until: int | None, kinds: Collection[str] | None, loop: str | None) -> Iterator[Row]:
        while until is None or since < until:
            sealed, last = self.archive.bounds()[1], self.bounds()[1]
            if since < sealed:
                end = sealed if until is None else min(sealed, until)
                yield from self.archive.rows(since, end, kinds, loop)
            else:
                end = min(since + PAGE, last) if until is None else min(since + PAGE, last, until)
                page = list(self.live.rows(since, end, kinds, loop))
                if self.archive.bounds()[1] > since:
                    continue
                yield from page
            since = max(since, end)
            if since >= last:
                return

    def rows_about(self, loop: str, event: str) -> list[Row]:
        live = self.live.rows_about(loop, event)  # first: what is sealed after it is in the archive, too
        found = {row.seq: row for row in (*live, *self.archive.rows_about(loop, event))}
        return [found[seq] for seq in sorted(found)]

    @property
    def is_indexed(self) -> bool:
        return self.archive.is_indexed and self.live.is_indexed

    def rows_about_many(self, loop: str, events: Collection[str]) -> list[Row]:
        live = self.live.rows_about_many(loop, events)  # first: what is sealed after it is in the archive, too
        found = {row.seq: row for row in (*live, *self.archive.rows_about_many(loop, events))}
        return [found[seq] for seq in sorted(found)]

    def decisions_of(self, subject: str) -> set[tuple[str, str]]:
        return self.archive.decisions_of(subject) | self.live.decisions_of(subject)

    def erase(self, subject: str, events: Collection[tuple[str, str]] = ()) -> int:
        every = self.decisions_of(subject).union(events)
        twice = [
            row
            for row in self.live.rows(0, self.archive.bounds()[1], None, None)
            if row.subject == subject or (row.loop, row.event) in every
        ]
        return self.archive.erase(subject, every) + self.live.erase(subject, every) - len(twice)

    def drop(self, seq: int) -> int:
        first = self.bounds()[0]
        begin, sealed = self.archive.bounds()
        if begin <= sealed:
            self.archive.drop(min(seq, sealed + 1))
        self.live.drop(seq)
        return max(seq - first, 0)

    def bounds(self) -> tuple[int, int]:
        last = self.live.bounds()[1]  # first: sealing moves records from there
        begin, sealed = self.archive.bounds()
        if begin <= sealed:
            return begin, max(sealed, last)
        return self.live.bounds() if last > 0 else (begin, sealed)

    def start(self, seq: int) -> None:
        self.live.start(seq)

    def inspect(self) -> Iterator[Damage]:
        yield from self.archive.inspect()
        yield from self.live.inspect()

    @contextmanager
    def open_view(self) -> Iterator[Store]:
        """Open the same log for reading, with separate connections to the live store."""
        with self.archive.open_view() as archive, self.live.open_view() as live:
            yield JoinedStore(archive, live)

    def close(self) -> None:
        self.archive.close()
        self.live.close()

    def __repr__(self) -> str:
        return f"JoinedStore({self.archive!r}, {self.live!r})"
