"""Contract of a store: records in one total order, appended in batches that are durable when `append` returns.

Every record gets a position:

    seq = 1, 2, 3, ...  without a gap, in the order in which batches were acknowledged

A batch is stored completely or not at all, and no reader sees a position before all positions below it. A store keeps
rows: a record as one line of JSON, a checksum of it and its position, and the columns by which rows are searched.
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
    """Failure or damage of a store; the message says in one sentence what was stored and what helps."""


class ClaimError(StoreError):
    """Error for a loop that another process has claimed for writing."""


class Row(NamedTuple):
    """Row in which a store keeps a record.

    - seq, loop, kind, subject, time: position, loop, kind, subject and time of the record.
    - event: id of the decision that the record is about, or None.
    - once: digest of the record's `unique_key`, or None.
    - body: JSON of the record without its position.
    - crc: CRC-32 of position and body.
    """

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
    """Damage in a store: its position `seq` in the log, 0 for the whole store, and a sentence `reason` about it."""

    seq: int
    reason: str


class Store(ABC):
    """Append-only log of records; any number of threads may use a store."""

    # ---- what a member does: rows ----

    @abstractmethod
    def put(self, rows: list[Row]) -> list[int]:
        """Give rows their positions in the log and store them durably, all or none; return the positions.

        A row whose unique key `once` the loop already has is not stored; the position of the earlier row is returned
        for it. A row that has a position already keeps it; StoreError is raised if that is not the next position.
        """

    @abstractmethod
    def rows(self, since: int, until: int | None, kinds: Collection[str] | None, loop: str | None) -> Iterator[Row]:
        """Yield the rows with since < seq <= until in order, for some kinds of records and one loop; None means any."""

    @abstractmethod
    def rows_about(self, loop: str, event: str) -> list[Row]:
        """Return all rows of a log about the decision with the id `event`, in order."""

    @abstractmethod
    def erase(self, subject: str, events: Collection[tuple[str, str]] = ()) -> int:
        """Replace the rows about a subject, such as a user, about its decisions, and about `events`.

        `events` are pairs (loop, id of a decision). A new row, of kind `forgotten`, keeps only the position, time, loop
        and kind of the old row. Returns the number of replaced rows.
        """

    @abstractmethod
    def drop(self, seq: int) -> int:
        """Delete the rows before the position `seq` permanently, and return their number."""

    @abstractmethod
    def bounds(self) -> tuple[int, int]:
        """Return the first position in the store, and the last one assigned; (1, 0) for an empty store."""

    @abstractmethod
    def start(self, seq: int) -> None:
        """Make `seq` the next position of an empty store."""

    @abstractmethod
    def inspect(self) -> Iterator[Damage]:
        """Yield the damage in pages, files and indices, below the level of rows."""

    @abstractmethod
    def close(self) -> None:
        """Close connections and files; a closed store refuses every other call."""

    def claim(self, loop: str) -> None:
        """Claim a loop for this process until the store is closed or the process ends.

        This method claims nothing: every process may write. For an SQLite file this is enough, because its service has
        locked the folder. Stores that machines share override it, and raise ClaimError if another process has the loop.
        """
        del loop

    def probe(self) -> None:
        """Raise StoreError if the store cannot be written; the default checks only that it can be read."""
        self.bounds()

    def open_view(self) -> AbstractContextManager["Store"]:
        """Open the same log for long reads that do not block writers; by default this store itself."""
        return nullcontext(self)

    @property
    def is_indexed(self) -> bool:
        """True if rows about a decision are found without reading the whole log."""
        return True

    def rows_about_many(self, loop: str, events: Collection[str]) -> list[Row]:
        """Return all rows of a log about the decisions with the ids `events`."""
        return [row for event in events for row in self.rows_about(loop, event)]

    def decisions_of(self, subject: str) -> set[tuple[str, str]]:
        """Return pairs (loop, id) of all decisions about a subject.

        A subject is a person or thing that records name in their field `subject`. A decision belongs to it if any
        record about the decision names it.
        """
        rows = self.rows(0, None, None, None)
        return {(row.loop, row.event) for row in rows if row.subject == subject and row.event is not None}

    # ---- what follows from it: records ----

    def append(self, records: Sequence[Record]) -> list[int]:
        """Store records in their order, durably on return.

        A decision, its activation or its join (the record of its final rewards) whose id the loop has already, and an
        outcome with the same id and request, are not stored again.

        Parameters
        ----------
        records : sequence of Record
            The records, with seq = 0 to take the next positions.

        Returns
        -------
        list of int
            Position of each record; of a record that was not stored again, the first one's.

        Raises
        ------
        ValueError
            If an element is not a record, or has a number that is not finite. Nothing of the batch is stored then.
        StoreError
            If the store cannot be written. Nothing of the batch is stored then.
        """
        return self.put([row_from_record(record) for record in records])

    def read(
        self,
        since: int = 0,
        until: int | None = None,
        kinds: Collection[str] | None = None,
        loop: str | None = None,
    ) -> Iterator[Any]:
        """Yield records in their order, including those that are appended meanwhile.

        Parameters
        ----------
        since : int, default 0
            Position after which to begin.
        until : int, default None
            Last position. None means the end.
        kinds : collection of str, default None
            Kinds such as "decision". None means all.
        loop : str, default None
            Name of the loop. None means all.

        Yields
        ------
        Record
            The next record.

        Raises
        ------
        ValueError
            If a kind does not exist.
        StoreError
            If a record is damaged.
        """
        since = check.integer("since", since, 0)
        until = None if until is None else check.integer("until", until, 0)
        unknown = sorted(set(kinds or ()) - KINDS.keys())
        if unknown:
            raise ValueError(f"kinds must be among {', '.join(KINDS)}, got {quote(unknown)}")
        return (record_from_row(row) for row in self.rows(since, until, kinds, loop))

    def find(self, loop: str, id: str) -> list[Any]:
        """Return all records about a decision, in their order.

        Parameters
        ----------
        loop : str
            Name of the loop.
        id : str
            Identity of the decision.

        Returns
        -------
        list of Record
            The records.
        """
        return [record_from_row(row) for row in self.rows_about(loop, id)]

    def find_all(self, loop: str, ids: Sequence[str], kinds: Collection[str] | None = None) -> dict[str, list[Any]]:
        """Return all records about several decisions, as a dictionary from id to a list of records in their order.

        With `kinds`, only records of these kinds are returned, such as ("decision",).
        """
        rows = {id: self.rows_about(loop, id) for id in ids}
        return {
            id: [record_from_row(row) for row in about if kinds is None or row.kind in kinds]
            for id, about in rows.items()
        }

    def events_at(self, loop: str, seqs: Sequence[int]) -> dict[int, str]:
        """Return a dictionary from positions in the log to the ids of the decisions that the records there are about.

        `seqs` are the positions. Positions of other loops and positions without a decision are left out.
        """
        found = (next(self.rows(seq - 1, seq, None, loop), None) for seq in seqs)
        return {row.seq: row.event for row in found if row is not None and row.event is not None}

    def begin(self, seq: int) -> None:
        """Let an empty store give its first record the position `seq`, so that it can continue another store.

        Parameters
        ----------
        seq : int
            The first position, at least 1.

        Raises
        ------
        ValueError
            If the store has, or had, records.
        """
        seq = check.integer("seq", seq, 1)
        if self.bounds() != (1, 0):
            raise ValueError(f"the store must be new to begin at {seq}, but it has had {self.bounds()[1]} records")
        self.start(seq)

    def drop_before(self, seq: int) -> int:
        """Delete the records before a position for ever; other records keep their positions.

        Keep the checkpoint at which replay begins, and the decisions whose final rewards come after it.

        Parameters
        ----------
        seq : int
            The first position to keep, from 1 to the last position + 1.

        Returns
        -------
        int
            Number of deleted records.

        Raises
        ------
        ValueError
            If the position does not exist.
        """
        return self.drop(check.integer("seq", seq, 1, self.bounds()[1] + 1))

    def forget(self, subject: str) -> int:
        """Delete the records of a subject (a person or thing), and all others about the same decisions.

        Their positions stay, as records of the kind `forgotten`. A model still knows what it learned from them: learn
        again from the log, or use a half-life.

        Parameters
        ----------
        subject : str
            The subject, not empty.

        Returns
        -------
        int
            Number of deleted records.
        """
        if not isinstance(subject, str) or not subject:
            raise ValueError(f"subject must be a string that is not empty, got {quote(subject)}")
        return self.erase(subject)

    def check(self) -> Iterator[Damage]:
        """Read the whole store and yield its damage, nothing if all is well.

        Yields
        ------
        Damage
            A damaged or missing part.
        """
        yield from self.inspect()
        yield from self.check_rows()

    def check_rows(
        self, since: int = 0, until: int | None = None, progress: Callable[[Row], object] | None = None
    ) -> Iterator[Damage]:
        """Yield damaged or missing rows with since < seq <= until; `progress` is called with every row."""
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
        """First position in the store; the last position + 1 if it has no records."""
        return self.bounds()[0]

    @property
    def last(self) -> int:
        """Last position that was assigned, or 0 if none was."""
        return self.bounds()[1]

    def __len__(self) -> int:
        first, last = self.bounds()
        return last - first + 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def row_from_record(record: Record) -> Row:
    """Return the `Row` in which a store keeps a record, without a position."""
    if not isinstance(record, Record):
        raise ValueError(f"records must be those of onepass.log, got {quote(record)}")
    read: Any = decode(encode(record))  # what a reader will get: types are checked, 1 becomes 1.0
    msgspec.structs.force_setattr(read, "seq", 0)
    return make_row(read)


def make_row(record: Any) -> Row:
    """Make a row without a position from a record whose fields have the right types.

    It takes half the time of `row_from_record`: numbers must be finite (ValueError), types and names are not checked.
    """
    body, once = encode(record), record.unique_key
    digest = None if once is None else hashlib.blake2b(once.encode(), digest_size=ONCE).hexdigest()
    return Row(0, record.loop, kind_of(record), record.event, record.subject, digest, record.time, body, 0)


def place_row(row: Row, seq: int) -> Row:
    """Return a `Row` with the position `seq` and its checksum."""
    return Row(seq, *row[1:-1], checksum(seq, row.body))


def checksum(seq: int, body: bytes) -> int:
    """Return the CRC-32 checksum of a record's position and its text `body`."""
    return zlib.crc32(body, zlib.crc32(seq.to_bytes(BYTES, "little")))


def record_from_row(row: Row) -> Any:
    """Return the record of a row; raise StoreError if the row is damaged."""
    if not isinstance(row.body, bytes) or row.crc != checksum(row.seq, row.body):
        raise StoreError(f"record {row.seq} is damaged: its checksum is another; restore the store from a copy")
    try:
        record = decode(row.body)
    except ValueError as error:
        raise StoreError(f"record {row.seq} cannot be read: {error}") from None
    msgspec.structs.force_setattr(record, "seq", row.seq)
    return record


def erase_row(row: Row) -> Row:
    """Return the row of kind `forgotten` that takes the place of a deleted row, with the same position."""
    was = row.kind
    return place_row(row_from_record(Forgotten(loop=row.loop, time=row.time, was=was)), row.seq)


def assign_places(rows: list[Row], held: dict[tuple[str, str], int], last: int) -> tuple[list[int], list[Row]]:
    """Return the positions of all rows, and the list of new rows, each with its position.

    A row whose unique key is stored already is not new. `held` maps (loop, unique key) to the positions of stored rows,
    and the new rows are added to it. `last` is the last position that was assigned.
    """
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
