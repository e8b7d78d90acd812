"""Store in PostgreSQL, for writers in many processes and machines, in one order.

A writer first locks the row of the mark `last` (`select ... for update`) and keeps it until its commit is visible. So
positions are in the order of commits, whatever waits, fails or is killed. A sequence would give a position before its
commit, and a reader could miss a position that becomes visible later. Readers wait for nobody.
"""

import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, final

try:
    import psycopg
    import psycopg.conninfo
    import psycopg.sql
except ModuleNotFoundError:
    raise ModuleNotFoundError("PostgresStore needs psycopg: pip install onepass[postgres]", name="psycopg") from None

from onepass.log.store import ClaimError, Damage, StoreError
from onepass.log.tables import SCHEMA, Connection, Tables

BEGINNING = 5_119_000  # advisory lock of those who make the tables: any number that nobody else uses
LOCK = "select value from mark where name = 'last' for update"
UNKNOWN = (
    "; the connection broke in the middle of the commit, so it is not known whether this batch was stored: append it "
    "again, what has an id or a request is stored once"
)
PATIENCE = {"connect_timeout": 5, "tcp_user_timeout": 10_000}  # s, ms: for a database that does not answer at all
KEEPALIVES = {"tcp_keepalives_idle": 5, "tcp_keepalives_interval": 2, "tcp_keepalives_count": 3}  # s, s
KEY = 8  # bytes of the number of an advisory lock
NOTHING = "; nothing of it was stored, all that was is still there"


@final
class PostgresStore(Tables):
    """Store that keeps records in a schema of a PostgreSQL database.

    A broken connection is replaced by the next call.

    Parameters
    ----------
    conninfo : str
        Connection string of psycopg: "postgresql://user@host/database".
    schema : str, default "onepass"
        Schema of the two tables, made if it does not exist.

    Raises
    ------
    StoreError
        If the database cannot be reached, or the schema holds something else.
    """

    def __init__(self, conninfo: str, *, schema: str = "onepass") -> None:
        self.schema = schema
        self._conninfo, self._closed = conninfo, False
        self._writer: psycopg.Connection | None = None
        self._reader: psycopg.Connection | None = None
        self._alone, self._asking = threading.Lock(), threading.Lock()
        self._claims: set[str] = set()
        with _translate_errors(NOTHING), self._connect() as connection, connection.transaction():
            connection.execute("select pg_advisory_xact_lock(%s)", (BEGINNING,))
            connection.execute(psycopg.sql.SQL("create schema if not exists {}").format(self._name))
            for statement in SCHEMA:
                connection.execute(_to_psycopg(statement.format(bytes="bytea")))
        super().__init__()

    @property
    def _name(self) -> "psycopg.sql.Identifier":
        return psycopg.sql.Identifier(self.schema)

    def _connect(self) -> "psycopg.Connection":
        if self._closed:
            raise StoreError("the store is closed")
        connection = psycopg.connect(_add_timeouts(self._conninfo), autocommit=True)
        connection.execute("set synchronous_commit = on")
        connection.execute("set client_min_messages = warning")
        connection.execute(psycopg.sql.SQL("set search_path = {}").format(self._name))
        return connection

    def claim(self, loop: str) -> None:
        """Claim a loop for this process by an advisory lock; a process that has lost the lock writes nothing."""
        with self._alone, _translate_errors(NOTHING):
            if self._writer is None or self._writer.broken:
                self._writer = self._open_writer()
            _lock_loop(self._writer, self.schema, loop)
            self._claims.add(loop)

    def _open_writer(self) -> "psycopg.Connection":
        """Open a connection that holds all claims; raise ClaimError if another process has one of them."""
        connection = self._connect()
        try:
            for name, value in KEEPALIVES.items():  # a machine that is gone lets go of its claims
                connection.execute(f"set {name} = {value}".encode())
            for loop in self._claims:
                _lock_loop(connection, self.schema, loop)
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin(self) -> "psycopg.Connection":
        """Begin a transaction of the writer that locks the row `last`; reconnect if the connection broke while idle."""
        for old in (self._writer, None):
            self._writer = connection = self._open_writer() if old is None or old.broken else old
            try:
                connection.execute("begin")
                connection.execute(LOCK)
                return connection
            except psycopg.OperationalError:
                if not connection.broken or old is None:
                    _rollback(connection)
                    raise
        raise AssertionError("a connection is found or refused")

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with self._alone:
            with _translate_errors(NOTHING):
                connection = self._begin()
                try:
                    yield PostgresConnection(connection)
                except BaseException:
                    _rollback(connection)
                    raise
            with _translate_errors(UNKNOWN):
                connection.execute("commit")

    def query(self, question: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._asking, _translate_errors():
            for old in (self._reader, None):
                self._reader = connection = self._connect() if old is None or old.broken else old
                try:
                    return PostgresConnection(connection).query(question, values)
                except psycopg.OperationalError:
                    if not connection.broken or old is None:
                        raise
        raise AssertionError("a connection is found or refused")

    def inspect(self) -> Iterator[Damage]:
        return iter(())

    def close(self) -> None:
        with self._alone, self._asking:
            self._closed = True
            for connection in (self._writer, self._reader):
                if connection is not None:
                    connection.close()
            self._writer = self._reader = None

    def __repr__(self) -> str:
        return f"PostgresStore(schema={self.schema!r})"


def _lock_loop(connection: "psycopg.Connection", schema: str, loop: str) -> None:
    """Claim a loop of the schema `schema` for a connection; raise ClaimError if another connection has it."""
    digest = hashlib.blake2b(f"{schema}\0{loop}".encode(), digest_size=KEY).digest()
    found = connection.execute("select pg_try_advisory_lock(%s)", (int.from_bytes(digest, "big", signed=True),))
    if found.fetchone() != (True,):
        raise ClaimError(
            f"another process writes loop {loop} of this database: stop it, or wait for its end (onepass serve "
            "--standby)"
        )


def _add_timeouts(conninfo: str) -> str:
    """Add timeouts to a connection string that has none."""
    said = psycopg.conninfo.conninfo_to_dict(conninfo)
    return psycopg.conninfo.make_conninfo(conninfo, **{name: PATIENCE[name] for name in PATIENCE.keys() - said.keys()})


@contextmanager
def _translate_errors(loss: str = "") -> Iterator[None]:
    """Turn errors of PostgreSQL into StoreError, as a context manager; `loss` says what was not stored."""
    try:
        yield
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL: {' '.join(str(error).split())}{loss}") from error


def _rollback(connection: "psycopg.Connection") -> None:
    """Roll back, if the connection is still open."""
    with suppress(psycopg.Error):
        connection.execute("rollback")


class PostgresConnection:
    """Connection to a PostgreSQL database."""

    def __init__(self, connection: "psycopg.Connection") -> None:
        self._connection = connection

    def query(self, question: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(_to_psycopg(question), values).fetchall()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self._connection.execute(_to_psycopg(statement), values).rowcount

    def insert(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_to_psycopg(statement), rows)


def _to_psycopg(statement: str) -> bytes:
    """Return a statement with psycopg's placeholders."""
    return statement.replace("?", "%s").encode()
