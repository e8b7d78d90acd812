"""Store in one SQLite file, with a write-ahead log, a sync at every commit, and group commits of many threads.

A batch that was acknowledged survives the end of the process and a power cut, if the disk has really synced what it
reports. Measured figures: docs/log_measured.md.
"""

import os
import sqlite3
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, final

from onepass.foundation import check
from onepass.log.store import Damage, Row, StoreError, assign_places
from onepass.log.tables import LAST, MARKS, SCHEMA, Connection, Tables, find_places, insert_rows
from onepass.log.wal_checkpointer import LONGEST, WalCheckpointer

ROW = 5  # pages that a row changes: of the table, three indices, and its long body's


class UnexpectedRowsError(Exception):
    """Error for rows in an SQLite file that another process wrote, or that are stored already."""


@final
class SqliteStore(Tables):
    """Store that keeps records in an SQLite file.

    The store belongs to the process that opened it: a forked process opens its own.

    Parameters
    ----------
    path : str or Path
        The file, made with its companions -wal and -shm if it does not exist.
    readonly : bool, default False
        Open the file for reading only.
    wait : float, default 10.0
        Seconds to wait for another process that writes, above 0.
    synced : bool, default True
        Wait for the disk at every commit. With False, acknowledged batches survive the end of the process, but a power
        cut may take the last commits.

    Raises
    ------
    StoreError
        If the file cannot be opened, or is something else.
    """

    path: Path

    def __init__(self, path: str | Path, *, readonly: bool = False, wait: float = 10.0, synced: bool = True) -> None:
        self.path, self._readonly, self._synced = Path(path), readonly, synced
        self._wait = check.positive("wait", wait)
        self._last: int | None = None  # the place of the last record, as far as this store wrote it
        self._alone, self._asking = threading.Lock(), threading.Lock()
        self.checkpointer: WalCheckpointer = WalCheckpointer(self._connection, self._alone)
        self._writer = self._connection()
        self._reader = self._connection()
        try:
            self._create_tables()
            super().__init__()
        except BaseException:
            self.close()
            raise

    def _create_tables(self) -> None:
        """Create the tables if they do not exist; raise StoreError if the database holds something else."""
        with self._translate_errors():
            tables = {name for (name,) in self._writer.execute("select name from sqlite_master where type = 'table'")}
            if tables and "mark" not in tables:
                raise StoreError(f"{self.path} is a database of something else: {', '.join(sorted(tables))}")
            if not self._readonly:
                (mode,) = self._writer.execute("pragma journal_mode = wal").fetchone()
                if mode != "wal":
                    raise StoreError(f"the store {self.path} cannot have a write-ahead log where it is")
                self._writer.execute(f"pragma synchronous = {'full' if self._synced else 'normal'}")
                self._writer.execute("pragma secure_delete = on")
                self._writer.execute("pragma temp_store = memory")  # of statements of many rows, else a file each
                self._writer.execute(f"pragma wal_autocheckpoint = {LONGEST}")
                self._writer.execute("begin immediate")
                for statement in SCHEMA:
                    self._writer.execute(statement.format(bytes="blob"))
                self._writer.execute("commit")

    def _connection(self) -> sqlite3.Connection:
        with self._translate_errors():
            place = f"{self.path.absolute().as_uri()}?mode={'ro' if self._readonly else 'rwc'}"
            return sqlite3.connect(
                place, uri=True, timeout=self._wait, isolation_level=None, check_same_thread=False, cached_statements=64
            )

    @contextmanager
    def _translate_errors(self, loss: str = "") -> Iterator[None]:
        """Turn errors of SQLite into StoreError, as a context manager; `loss` says what was not stored."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise StoreError(f"the store {self.path} is closed") from None
        except sqlite3.Error as error:
            raise StoreError(f"the store {self.path}: {error}{loss}") from error

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        if self._readonly:
            raise StoreError(f"the store {self.path} is open for reading only; nothing of it was stored")
        with self._alone, self._translate_errors("; nothing of it was stored, all that was is still there"):
            before = self._writer.total_changes
            self._writer.execute("begin immediate")
            try:
                yield SqliteConnection(self._writer)
                self._writer.execute("commit")
            finally:
                if self._writer.in_transaction:
                    self._writer.execute("rollback")
            changed = self._writer.total_changes - before
        self.checkpointer.add_pages(ROW * changed)

    def write(self, rows: list[Row]) -> list[int]:
        """Store rows durably, and return their positions.

        Rows are inserted as if all were new. If one is stored already, or another process has written, the transaction
        fails, and the store is queried for known rows.
        """
        last, self._last = self._last, None
        if last is not None and not any(row.seq for row in rows):
            seqs, new = assign_places(rows, {}, last)
            try:
                with self.transaction() as connection:
                    if not insert_rows(connection, new, last):
                        raise UnexpectedRowsError
            except UnexpectedRowsError:
                pass
            except StoreError as error:
                if not isinstance(error.__cause__, sqlite3.IntegrityError):
                    raise
            else:
                self._last = last + len(new)
                return seqs
        with self.transaction() as connection:
            ((last,),) = connection.query(LAST)
            seqs, new = assign_places(rows, find_places(connection, rows), last)
            insert_rows(connection, new, last)
        self._last = last + len(new)
        return seqs

    def query(self, question: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._asking, self._translate_errors():
            return SqliteConnection(self._reader).query(question, values)

    def erase(self, subject: str, events: Collection[tuple[str, str]] = ()) -> int:
        """Erase the rows of a subject and of events, overwrite their pages on disk, and empty the write-ahead log.

        `events` are pairs (loop, id of a decision). Returns the number of rows.
        """
        count = super().erase(subject, events)
        with self.checkpointer.pause(), self._alone, self._asking, self._translate_errors():
            busy = self._writer.execute("pragma wal_checkpoint(truncate)").fetchone()[0]
        if busy:
            raise StoreError(
                f"{count} records of the subject are deleted, but another process reads {self.path}, so its "
                "write-ahead log still holds their bytes: forget again when it has ended"
            )
        return count

    def backup(self, path: str | Path) -> int:
        """Copy the state of one moment to a new file, while others write.

        Parameters
        ----------
        path : str or Path
            The new file, which opens as a store. It appears when it is complete and synced.

        Returns
        -------
        int
            Last position of the copy.

        Raises
        ------
        ValueError
            If the file exists already.
        StoreError
            If the file cannot be written.
        """
        place = Path(path)
        if place.exists():
            raise ValueError(f"path must be of a new file, but {place} is there")
        partial = place.with_name(f"{place.name}.part")
        try:
            partial.unlink(missing_ok=True)
            with self._translate_errors(), closing(sqlite3.connect(partial, isolation_level=None)) as copy:
                with closing(self._connection()) as source:
                    source.backup(copy)
                last = dict(copy.execute(MARKS).fetchall())["last"]
            fsync_path(partial)
            os.replace(partial, place)
            fsync_path(place.parent)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise StoreError(f"no copy was made: {error}") from error
        return int(last)

    def inspect(self) -> Iterator[Damage]:
        try:
            found = self.query("pragma integrity_check")
        except StoreError as error:
            found = [(str(error),)]
        for (reason,) in found:
            if reason != "ok":
                yield Damage(0, f"SQLite: {reason}")

    def open_view(self) -> "SqliteStore":
        """Open separate connections to the file, for reading only."""
        return SqliteStore(self.path, readonly=True, wait=self._wait)

    def close(self) -> None:
        self.checkpointer.stop()
        with self._alone, self._asking:
            self._reader.close()
            self._writer.close()

    def __repr__(self) -> str:
        return f"SqliteStore({str(self.path)!r})"


def fsync_path(path: Path) -> None:
    """Wait until a file, or the names in a folder, are synced to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class SqliteConnection:
    """Connection to an SQLite database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def query(self, question: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(question, values).fetchall()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self._connection.execute(statement, values).rowcount

    def insert(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(statement, rows)
