"""Store in two tables of a database, the common part of SQLite and PostgreSQL.

    record (seq, loop, kind, event, subject, once, time, body, crc)      one row for each record
    mark   (name, value)      named numbers: `form`, the version of the tables, and the positions `first` and `last`

Positions are not a sequence of the database, whose numbers commit out of order and leave gaps. A writer holds the mark
`last` from the first statement of its transaction to its commit. So there is one writer at a time, positions are given
in the order of commits, and a rollback leaves no gap.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Protocol, TypeVar

from onepass.log.group_commit import GroupCommit
from onepass.log.store import Row, Store, StoreError, assign_places, erase_row, record_from_row

FORM = 1  # of the tables
PAGE = 1_000  # rows read at a time: no reader holds a transaction open
MOST = 512  # parameters of one question: SQLite takes at least 999
WIDEST = 64  # rows of one statement: fewer parameters than that
DIGITS = 4  # binary digits of the number of rows of a statement: there are 32 such statements

RARE = ("settings", "checkpoint", "eviction", "forgotten")  # kinds that are found without a walk through the log
RARELY = f"kind in {RARE}"

SCHEMA = (
    "create table if not exists record (seq bigint primary key, loop text not null, kind text not null, event text, "
    "subject text, once text, time bigint not null, body {bytes} not null, crc bigint not null)",
    "create unique index if not exists record_once on record (loop, once) where once is not null",
    "create index if not exists record_event on record (loop, event) where event is not null",
    "create index if not exists record_subject on record (subject) where subject is not null",
    f"create index if not exists record_rare on record (loop, kind, seq) where {RARELY}",
    "create table if not exists mark (name text primary key, value bigint not null)",
    f"insert into mark values ('form', {FORM}), ('first', 1), ('last', 0) on conflict do nothing",
)
MARKS = "select name, value from mark"
MOVE = "update mark set value = ? where name = 'last' and value = ?"
LAST = "select value from mark where name = 'last'"
COLUMNS = ", ".join(Row._fields)
VALUES = f"({', '.join('?' * len(Row._fields))})"
Name = TypeVar("Name", str, int)
INSERT = f"insert into record ({COLUMNS}) values {VALUES}"


class Connection(Protocol):
    """Database connection whose statements have ? for parameters."""

    def query(self, question: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a query with these parameter values, and return its rows."""
        ...

    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run an SQL statement with parameter values, and return the number of rows that it changed."""
        ...

    def insert(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run an insert statement once for each row of parameter values."""
        ...


class Tables(Store):
    """Store of records in two tables of a database; a subclass creates the tables, then calls this constructor.

    Raises StoreError if another version made the tables, so that their mark `form` differs.
    """

    def __init__(self) -> None:
        self._groups = GroupCommit(self.write)
        form = dict(self.query(MARKS)).get("form")
        if form != FORM:
            raise StoreError(f"the store has form {form}, this onepass knows form {FORM}; upgrade onepass")

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Connection]:
        """Open a transaction of a single writer, which locks the row `last`.

        On exit it is durable completely or not at all.
        """

    @abstractmethod
    def query(self, question: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run the query `question` with parameter values on committed data, and return the rows."""

    def put(self, rows: list[Row]) -> list[int]:
        return self._groups.append(rows) if rows else []

    def write(self, rows: list[Row]) -> list[int]:
        """Store rows, one for each record, of several callers in one transaction; return their positions in the log."""
        with self.transaction() as connection:
            ((last,),) = connection.query(LAST)
            seqs, new = assign_places(rows, find_places(connection, rows), last)
            insert_rows(connection, new, last)
        return seqs

    def rows(self, since: int, until: int | None, kinds: Collection[str] | None, loop: str | None) -> Iterator[Row]:
        question, values = f"select {COLUMNS} from record where seq > ?", list[Any]()
        if until is not None:
            question, values = f"{question} and seq <= ?", [*values, until]
        if kinds is not None:
            question, values = f"{question} and kind in ({', '.join('?' * len(kinds))})", [*values, *kinds]
            if not kinds:
                return
            if {*kinds} <= {*RARE}:
                question = f"{question} and {RARELY}"  # as the index says it
        if loop is not None:
            question, values = f"{question} and loop = ?", [*values, loop]
        while True:
            page = self.query(f"{question} order by seq limit {PAGE}", [since, *values])
            yield from map(Row._make, page)
            if len(page) < PAGE:
                return
            since = page[-1][0]

    def rows_about(self, loop: str, event: str) -> list[Row]:
        question = f"select {COLUMNS} from record where loop = ? and event = ? order by seq"
        return list(map(Row._make, self.query(question, (loop, event))))

    def find_all(self, loop: str, ids: Sequence[str], kinds: Collection[str] | None = None) -> dict[str, list[Any]]:
        """Return all records about several decisions, by id; one query serves many ids.

        With `kinds`, only records of these kinds are returned. An id without records has an empty list.
        """
        found: dict[str, list[Any]] = {id: [] for id in ids}
        for part in padded_parts([*found]):
            question = f"select {COLUMNS} from record where loop = ? and event in ({', '.join('?' * len(part))})"
            for row in map(Row._make, self.query(f"{question} order by seq", (loop, *part))):
                if kinds is None or row.kind in kinds:
                    found[row.event or ""].append(record_from_row(row))
        return found

    def events_at(self, loop: str, seqs: Sequence[int]) -> dict[int, str]:
        """Return a dictionary from positions in the log to ids of decisions; one query serves many positions."""
        found: dict[int, str] = {}
        for part in padded_parts([*seqs]):
            question = f"select seq, event from record where seq in ({', '.join('?' * len(part))}) and loop = ?"
            found.update((seq, event) for seq, event in self.query(question, (*part, loop)) if event is not None)
        return found

    def decisions_of(self, subject: str) -> set[tuple[str, str]]:
        question = "select distinct loop, event from record where subject = ? and event is not null"
        return {(loop, event) for loop, event in self.query(question, (subject,))}

    def erase(self, subject: str, events: Collection[tuple[str, str]] = ()) -> int:
        question = (
            f"select {COLUMNS} from record where subject = ? or (loop, event) in "
            "(select loop, event from record where subject = ? and event is not null)"
        )
        with self.transaction() as connection:
            found = list(map(Row._make, connection.query(question, (subject, subject))))
            seqs = {row.seq for row in found}
            for event in events:
                about = map(
                    Row._make, connection.query(f"select {COLUMNS} from record where loop = ? and event = ?", event)
                )
                found += [row for row in about if row.seq not in seqs]
            for row in found:
                connection.execute("delete from record where seq = ?", (row.seq,))
            connection.insert(INSERT, [erase_row(row) for row in found])
        return len(found)

    def drop(self, seq: int) -> int:
        with self.transaction() as connection:
            count = connection.execute("delete from record where seq < ?", (seq,))
            connection.execute("update mark set value = ? where name = 'first' and value < ?", (seq, seq))
        return count

    def start(self, seq: int) -> None:
        with self.transaction() as connection:
            for name, value in (("first", seq), ("last", seq - 1)):
                connection.execute("update mark set value = ? where name = ?", (value, name))

    def probe(self) -> None:
        with self.transaction() as connection:
            connection.execute("update mark set value = value where name = 'last'")

    def bounds(self) -> tuple[int, int]:
        found = dict(self.query(MARKS))
        return found["first"], found["last"]


@cache
def insert_statement(count: int) -> str:
    """Return the statement that inserts `count` rows at once, which is faster than one statement for each row."""
    return f"insert into record ({COLUMNS}) values {', '.join([VALUES] * count)}"


def insert_rows(connection: Connection, rows: list[Row], last: int) -> bool:
    """Insert rows whose positions follow `last`, and update the stored last position.

    Returns False, and inserts nothing, if the stored position was not `last`.
    """
    for part in insert_parts(rows):
        connection.execute(insert_statement(len(part)), [value for row in part for value in row])
    return not rows or connection.execute(MOVE, (last + len(rows), last)) == 1


def insert_parts(found: list[Any]) -> Iterator[list[Any]]:
    """Yield consecutive parts of a list with at most 64 elements, each to be inserted by one statement.

    Their lengths are m 2^i with m < 16, so that few different statements are needed.
    """
    start = 0
    while start < len(found):
        length = min(len(found) - start, WIDEST)
        shift = max(length.bit_length() - DIGITS, 0)
        length = length >> shift << shift
        yield found[start : start + length]
        start += length


def padded_parts(names: list[Name]) -> Iterator[list[Name]]:
    """Yield parts of a list of names with at most 512 names, each to be looked up by one query.

    The last name of a part is repeated up to a power of two, so that few different queries are needed.
    """
    for start in range(0, len(names), MOST):
        part = names[start : start + MOST]
        yield part + part[-1:] * ((1 << (len(part) - 1).bit_length()) - len(part))


def find_places(connection: Connection, rows: list[Row]) -> dict[tuple[str, str], int]:
    """Return the positions of those rows that the database has already, by (loop, `Row.once`)."""
    wanted: dict[str, list[str]] = {}
    for row in rows:
        if row.once is not None:
            wanted.setdefault(row.loop, []).append(row.once)
    found = {}
    for loop, names in wanted.items():
        for part in padded_parts(names):
            question = f"select once, seq from record where loop = ? and once in ({', '.join('?' * len(part))})"
            found.update({(loop, once): seq for once, seq in connection.query(question, (loop, *part))})
    return found
