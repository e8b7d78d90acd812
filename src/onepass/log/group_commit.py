"""Group commit: one commit makes the batches of many waiting threads durable.

A thread writes if no other thread does. Threads that come meanwhile queue, and the first of them then writes the
batches of all.
"""

import threading
from collections.abc import Callable

from onepass.log.store import Row, StoreError


class PendingBatch:
    """Batch of rows that waits until a thread has written it, its own or another one.

    - rows: the rows.
    - seqs: positions of the rows in the log, once they are written.
    - done: True once the batch is written or has failed.
    """

    rows: list[Row]
    seqs: list[int]
    done: bool

    def __init__(self, rows: list[Row]) -> None:
        self.rows, self.seqs = rows, list[int]()
        self.turn, self.done = threading.Event(), False
        self.error: StoreError | None = None


class GroupCommit:
    """Queue in which threads leave batches of rows, so that one commit makes the batches of many threads durable.

    The function `write` stores all rows of a group by one commit, or raises an error and stores none.
    """

    def __init__(self, write: Callable[[list[Row]], list[int]]) -> None:
        self._write = write
        self._queue: list[PendingBatch] = []
        self._lock, self._busy = threading.Lock(), False

    def append(self, rows: list[Row]) -> list[int]:
        """Write rows durably, and return their positions in the log; raises the errors of `write`."""
        mine = PendingBatch(rows)
        with self._lock:
            self._queue.append(mine)
            first, self._busy = not self._busy, True
        if not first:
            mine.turn.wait()
        if not mine.done:
            self._lead()
        if mine.error is not None:
            raise StoreError(str(mine.error)) from mine.error
        return mine.seqs

    def _lead(self) -> None:
        """Write the batches of all waiting threads, and pass the turn on."""
        with self._lock:
            group, self._queue = self._queue, []
        error: StoreError | None = StoreError("the commit was interrupted; nothing of it was stored")
        try:
            seqs, start = self._write([row for one in group for row in one.rows]), 0
            for one in group:
                one.seqs = seqs[start : start + len(one.rows)]
                start += len(one.rows)
            error = None
        except StoreError as trouble:
            error = trouble
        finally:
            for one in group:
                one.error, one.done = error, True
            with self._lock:
                self._busy = bool(self._queue)
                following = self._queue[:1]
            for one in [*following, *group]:
                one.turn.set()
