"""The contract of a store: records in one total order, appended in batches that are durable when `append` returns.

    seq = 1, 2, 3, ...  without a gap, in the order in which batches were acknowledged

A batch is stored whole or not at all, and no reader sees a place before all places below it. A member of the family
keeps rows: a record as one line of JSON, a checksum of it and its place, and beside it what is searched by.
"""

import hashlib
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Self

import msgspec

from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.log.records import KINDS, Forgotten, Record, decode, encode, kind_of

BYTES = 8  # of a place, in a checksum
ONCE = 16  # bytes of a digest: two of 10^9 records are alike once in 10^20 times


class StoreError(OSError):
    """A store that cannot do what it was asked, or that is damaged: in one sentence, with what was stored and what
    helps."""


class ClaimError(StoreError):
    """Another process writes a loop."""


class Row(NamedTuple):
    """What a store keeps of a record. body: its JSON without the place; crc: CRC-32 of the place and the body; once:
    a digest that no two rows of a loop share, None for none; event: the identity of the decision it is about."""

    seq: int
    loop: str
    kind: str
    event: str | None
    subject: str | None
    once: str | None
    time: int
    body: bytes
    crc: int


class Damage(NamedTuple):
    """What is wrong with a store. seq: where, 0 for all of it; reason: a sentence."""

    seq: int
    reason: str


class Store(ABC):
    """What was decided and what came of it. Any number of threads may use a store."""

    # ---- what a member does: rows ----

    @abstractmethod
    def put(self, rows: list[Row]) -> list[int]:
        """Give rows their places and keep them, all or none; those whose `once` a row of the loop has already get its
        place and are not kept. Rows that have a place already, those of another store, keep it, and it must be the next
        one (StoreError). Durable on return."""

    @abstractmethod
    def rows(self, since: int, until: int | None, kinds: Collection[str] | None, loop: str | None) -> Iterator[Row]:
        """Rows with since < seq <= until of these kinds and this loop (None: of all), in order, as a stream."""

    @abstractmethod
    def rows_about(self, loop: str, event: str) -> list[Row]:
        """All rows about one decision, in order."""

    @abstractmethod
    def erase(self, subject: str, events: Collection[tuple[str, str]] = ()) -> int:
        """Put `forgotten` in the place of every row of a subject, of its decisions, and of those named (loop, event);
        how many there were."""

    @abstractmethod
    def drop(self, seq: int) -> int:
        """Delete the rows before a place, for ever; how many there were."""

    @abstractmethod
    def bounds(self) -> tuple[int, int]:
        """The first place that is kept, and the last that was given: (1, 0) of an empty store."""

    @abstractmethod
    def start(self, seq: int) -> None:
        """Let the next place be this one; nothing is kept yet."""

    @abstractmethod
    def inspect(self) -> Iterator[Damage]:
        """What is wrong below rows: pages, files, indices."""

    @abstractmethod
    def close(self) -> None:
        """Give back connections and files. A store that is closed refuses everything else."""

    def claim(self, loop: str) -> None:
        """Be the only one who may claim a loop, until the store is closed or the process ends, however it ends.

        ClaimError where somebody else has claimed it. By default everybody may: a file of SQLite is in a folder that
        its service holds.
        """
        del loop

    def probe(self) -> None:
        """Find out whether the store can be written; StoreError where it cannot. By default, whether it can be read."""
        self.bounds()

    def open_view(self) -> AbstractContextManager["Store"]:
        """The same log, for long reading that shall keep nobody waiting: by default this very store."""
        return nullcontext(self)

    @property
    def is_indexed(self) -> bool:
        """Whether rows about a decision are found without a walk through the log (default True)."""
        return True

    def rows_about_many(self, loop: str, events: Collection[str]) -> list[Row]:
        """All rows about several decisions."""
        return [row for event in events for row in self.rows_about(loop, event)]

    def decisions_of(self, subject: str) -> set[tuple[str, str]]:
        """Loop and event of all rows of a subject."""
        rows = self.rows(0, None, None, None)
        return {(row.loop, row.event) for row in rows if row.subject == subject and row.event is not None}

    # ---- what follows from it: records ----

    def append(self, records: Sequence[Record]) -> list[int]:
        """Store records, in their order, and return their places (n,), durably.

        records: with seq = 0, for a store gives the places. A decision, activation or join that the loop has of the
        same id already, and an outcome of the same id and request, are not stored again: the place is that of the
        first. ValueError for what is no record or has a number that is not finite, StoreError where it cannot be
        written; then nothing of the batch is stored.
        """
        return self.put([row_from_record(record) for record in records])

    def read(
        self,
        since: int = 0,
        until: int | None = None,
        kinds: Collection[str] | None = None,
        loop: str | None = None,
    ) -> Iterator[Any]:
        """Records in their order, as a stream: what is appended meanwhile may come as well.

        since: the place after which, at least 0 (default: from the first); until: the last one (default None: to the
        end); kinds: names such as "decision" (default None: all); loop: of which (default None: all). ValueError for
        kinds that there are not; StoreError at a record that is damaged.
        """
        since = check.integer("since", since, 0)
        until = None if until is None else check.integer("until", until, 0)
        unknown = sorted(set(kinds or ()) - KINDS.keys())
        if unknown:
            raise ValueError(f"kinds must be among {', '.join(KINDS)}, got {quote(unknown)}")
        return (record_from_row(row) for row in self.rows(since, until, kinds, loop))

    def find(self, loop: str, id: str) -> list[Any]:
        """All records about one decision, in their order. loop, id: of the decision."""
        return [record_from_row(row) for row in self.rows_about(loop, id)]

    def find_all(self, loop: str, ids: Sequence[str]) -> dict[str, list[Any]]:
        """All records about several decisions, by their ids, each in their order. By default one after the other."""
        return {id: self.find(loop, id) for id in ids}

    def events_at(self, loop: str, seqs: Sequence[int]) -> dict[int, str]:
        """The events that records of a loop at some places are about; places without one are left out. By default one
        after the other."""
        found = (next(self.rows(seq - 1, seq, None, loop), None) for seq in seqs)
        return {row.seq: row.event for row in found if row is not None and row.event is not None}

    def begin(self, seq: int) -> None:
        """Let an empty store begin at a place, as the store did whose records it takes: their places stay as they are.

        seq: at least 1. ValueError where there are records, or were.
        """
        seq = check.integer("seq", seq, 1)
        if self.bounds() != (1, 0):
            raise ValueError(f"the store must be new to begin at {seq}, but it has had {self.bounds()[1]} records")
        self.start(seq)

    def drop_before(self, seq: int) -> int:
        """Delete the records before a place for ever, and return how many there were; other places stay as they are.

        seq: from 1 to the last place + 1. Keep the checkpoint that replay begins with, and the decisions whose joins
        come after it. ValueError for a place that there is not.
        """
        return self.drop(check.integer("seq", seq, 1, self.bounds()[1] + 1))

    def forget(self, subject: str) -> int:
        """Delete what is about a subject, and return how many records: those that name it, and all others about the
        same decisions. Their places stay, as records of the kind `forgotten`. subject: a string that is not empty.

        What a model learned of them it still knows: learn again from the log, or let a half-life do it.
        """
        if not isinstance(subject, str) or not subject:
            raise ValueError(f"subject must be a string that is not empty, got {quote(subject)}")
        return self.erase(subject)

    def check(self) -> Iterator[Damage]:
        """Walk the whole store and tell what is damaged: nothing, if all is well."""
        yield from self.inspect()
        yield from self.check_rows()

    def check_rows(
        self, since: int = 0, until: int | None = None, progress: Callable[[Row], object] | None = None
    ) -> Iterator[Damage]:
        """Tell which rows are damaged or missing, of those after a place and up to another. since, until: the places
        (default: all); progress: is called with every row (default None)."""
        first, last = self.bounds()
        last = last if until is None else min(last, until)
        wanted = max(first, since + 1)
        try:
            for row in self.rows(wanted - 1, until, None, None):
                if progress is not None:
                    progress(row)
                if row.seq != wanted:
                    yield Damage(wanted, f"records {wanted} to {row.seq - 1} are missing")
                wanted = row.seq + 1
                try:
                    again = row_from_record(record_from_row(row))._replace(seq=row.seq, crc=row.crc)
                    if again != row:
                        names = ", ".join(name for name in row._fields if getattr(again, name) != getattr(row, name))
                        yield Damage(row.seq, f"what is searched by is not what record {row.seq} says: {names}")
                except StoreError as error:
                    yield Damage(row.seq, str(error))
        except StoreError as error:
            yield Damage(wanted, str(error))
        else:
            if wanted <= last:
                yield Damage(wanted, f"records {wanted} to {last} are missing")

    @property
    def first(self) -> int:
        """The first place that is kept; the last + 1 where none is."""
        return self.bounds()[0]

    @property
    def last(self) -> int:
        """The last place that was given, 0 for none."""
        return self.bounds()[1]

    def __len__(self) -> int:
        first, last = self.bounds()
        return last - first + 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def row_from_record(record: Record) -> Row:
    """A record as a row that has no place yet."""
    if not isinstance(record, Record):
        raise ValueError(f"records must be those of onepass.log, got {quote(record)}")
    read: Any = decode(encode(record))  # what a reader will get: types are checked, 1 becomes 1.0
    msgspec.structs.force_setattr(read, "seq", 0)
    return make_row(read)


def make_row(record: Any) -> Row:
    """`row_of` of a record without a place whose parts have the types that they should: half the time. ValueError for
    a number that is not finite; types and names are not looked at."""
    body, once = encode(record), record.unique_key
    digest = None if once is None else hashlib.blake2b(once.encode(), digest_size=ONCE).hexdigest()
    return Row(0, record.loop, kind_of(record), record.event, record.subject, digest, record.time, body, 0)


def place_row(row: Row, seq: int) -> Row:
    """A row at its place."""
    return row._replace(seq=seq, crc=checksum(seq, row.body))


def checksum(seq: int, body: bytes) -> int:
    """CRC-32 of a place and a body."""
    return zlib.crc32(body, zlib.crc32(seq.to_bytes(BYTES, "little")))


def record_from_row(row: Row) -> Any:
    """The record of a row; StoreError where it is damaged."""
    if not isinstance(row.body, bytes) or row.crc != checksum(row.seq, row.body):
        raise StoreError(f"record {row.seq} is damaged: its checksum is another; restore the store from a copy")
    try:
        record = decode(row.body)
    except ValueError as error:
        raise StoreError(f"record {row.seq} cannot be read: {error}") from None
    msgspec.structs.force_setattr(record, "seq", row.seq)
    return record


def erase_row(row: Row) -> Row:
    """What stands in the place of a row that was deleted."""
    was = row.kind
    return place_row(row_from_record(Forgotten(loop=row.loop, time=row.time, was=was)), row.seq)


def assign_places(rows: list[Row], held: dict[tuple[str, str], int], last: int) -> tuple[list[int], list[Row]]:
    """The places of rows, and those that are new, at theirs. held: the places of (loop, once) that are kept already,
    to which those of these rows are added; last: the last place given."""
    seqs, new = [], []
    for row in rows:
        if row.seq not in (0, last + 1):
            raise StoreError(f"record {row.seq} cannot follow record {last}; nothing of the batch was stored")
        key = None if row.once is None else (row.loop, row.once)
        seq = None if key is None or row.seq else held.get(key)
        if seq is None:
            last += 1
            seq = last
            new.append(place_row(row, seq))
            if key is not None:
                held[key] = seq
        seqs.append(seq)
    return seqs, new
