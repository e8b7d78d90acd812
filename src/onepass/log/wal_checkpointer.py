"""Checkpoints of SQLite's write-ahead log in a thread, so that commits wait only for the last part.

    a part of the log is new     ->  its committed pages are copied to the database, while others commit
    the log has grown too long   ->  the rest is copied while nobody writes, and the next commit starts the log again

SQLite's own checkpoint, run by the committing thread, blocks all commits until everything is copied and synced. An
acknowledged commit is synced in the log, as before; a copy is synced before the log is overwritten.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

PIECE = 2_000  # pages, 8 MB, that are copied at once: fewer cost more syncs, more keep the disk busy for longer
WHOLE = 4_000  # pages, 16 MB, after which the log begins again: SQLite's 1,000 would copy pages of indices oftener
LONGEST = 32_000  # pages after which whoever commits copies after all: the copier has had no processor for seconds
PASSES = 3  # over what came while a copy was made, before commits wait: each finds less, unless the disk is too slow
IDLE = 5.0  # seconds without work after which the thread and its connection are given back
NAME = "copier of a log"
COPY = "pragma wal_checkpoint(passive)"


class WalCheckpointer:
    """Thread that copies SQLite's write-ahead log into the database file whenever much was committed.

    `connect` is a function that opens a connection to the database. `alone` is the lock that a writer holds.
    """

    copies: int

    def __init__(self, connect: Callable[[], sqlite3.Connection], alone: threading.Lock) -> None:
        self._connect, self._alone, self._copying = connect, alone, threading.Lock()
        self._some, self._new, self._working, self._ended = threading.Condition(), 0, False, False
        self._thread: threading.Thread | None = None
        self.copies, self.trouble = 0, ""

    def add_pages(self, pages: int) -> None:
        """Add an upper bound of the pages that were committed, and wake the thread if there are enough."""
        with self._some:
            self._new += pages
            if self._new < PIECE or self._ended:
                return
            if self._working:
                self._some.notify()
                return
            self._working = True
            self._thread = threading.Thread(target=self._work, name=NAME, daemon=True)
        self._thread.start()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stop copying inside a `with` block.

        A thread that holds the writer's lock `alone` must not enter the block, because a copy may wait for that lock.
        """
        with self._copying:
            yield

    def stop(self) -> None:
        """Stop the thread once the copy that it is making is complete."""
        with self._some:
            self._ended, thread = True, self._thread
            self._some.notify()
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        try:
            with closing(self._connect()) as connection:
                while self._wait_for_pages():
                    with self._copying:
                        self._copy(connection)
        except OSError as error:
            with self._some:
                self._working, self._new, self.trouble = False, 0, str(error)

    def _wait_for_pages(self) -> bool:
        """Wait for enough pages; return False, and count the thread as ended, if none come."""
        with self._some:
            self._some.wait_for(lambda: self._ended or self._new >= PIECE, IDLE)
            self._working = not self._ended and self._new >= PIECE
            return self._working

    def _copy(self, connection: sqlite3.Connection) -> None:
        """Copy the committed pages of the log to the database; on a full disk they wait for the next copy."""
        try:
            for _ in range(PASSES):
                with self._some:
                    self._new = 0
                _, length, _ = connection.execute(COPY).fetchone()
                if self._new < PIECE:
                    break
            if length >= WHOLE:
                with self._alone:
                    connection.execute(COPY).fetchone()
            self.copies, self.trouble = self.copies + 1, ""
        except sqlite3.Error as error:
            self.trouble = str(error)
