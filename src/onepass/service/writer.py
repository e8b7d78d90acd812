"""The one thread that writes a loop's log: what many requests bring becomes durable by one commit, then counts.

    drain what waits, and read the clock  ->  commit it with the joins that were due  ->  take it, in the log's order
    ->  what is due by that clock waits for the next commit

An outcome gets its time when it begins to wait, and no later record gets an earlier one. So when a deadline has passed
at a drain, everything that counts before it is drained already: what is joined depends on times alone.

Where the store fails, those who wait are told, nothing counts, and the writer reads what the store holds before it goes
on: a commit whose end nobody knows is counted once, if it was.
"""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

import msgspec

from onepass.log.records import Join, Record
from onepass.log.store import Store, StoreError
from onepass.service.join import Joiner
from onepass.service.messages import Refused

IDLE = 0.02  # seconds between two looks at deadlines while nothing comes
PATIENCE = 0.2  # seconds before a store that failed is asked again
PAGE = 5_000  # records that are told at a time when the log is read

Taken = Callable[[list[Any]], object]


def promise() -> Future[Any]:
    """A future that those who wait for it cannot cancel: others may wait for it too."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


class Writer(threading.Thread):
    """Writes until it is stopped.

    store, loop: where to; clock: of all records; joiner: takes them; taken: is told of decisions and joins, in the
    log's order, so that they can be learned; last: the place up to which the joiner knows the log.
    """

    def __init__(self, store: Store, loop: str, clock: Callable[[], int], joiner: Joiner, taken: Taken, last: int):
        super().__init__(name=f"writer of {loop}", daemon=True)
        self.store, self.loop, self.clock, self.joiner, self.last = store, loop, clock, joiner, last
        self.trouble: str | None = None
        self.commits = 0
        self.counting = threading.Lock()  # of what the joiner holds
        self.watchers: list[Taken] = []  # told of every record, after it counts
        self._taken = taken
        self._waiting: list[tuple[list[Record], Future[list[int]]]] = []
        self._joins: list[Join] = []
        self._behind, self._ending = False, False
        self._some = threading.Condition()

    def submit(self, records: list[Record], *, stamped: bool = False) -> Future[list[int]]:
        """The places of records, once they are durable; StoreError where they could not be stored.

        records: of nobody else; stamped: whether they keep their times (default False: they get the present).
        """
        future: Future[list[int]] = promise()
        with self._some:
            if self._ending:
                raise StoreError("the service is stopping; nothing of this was stored")
            if not stamped:
                now = self.clock()
                for record in records:
                    msgspec.structs.force_setattr(record, "time", now)
            self._waiting.append((records, future))
            self._some.notify()
        return future

    def stop(self) -> None:
        """Write what waits, and end."""
        with self._some:
            self._ending = True
            self._some.notify()
        self.join()

    def run(self) -> None:
        try:
            self._serve()
        except BaseException as error:
            with self._some:
                self._ending, left = True, self._waiting
                self.trouble = f"the writer ended: {error}"
            for _, future in left:
                future.set_exception(StoreError(self.trouble))
            raise

    def _serve(self) -> None:
        while True:
            with self._some:
                if not (self._waiting or self._joins or self._ending):
                    self._some.wait(IDLE)
                batch, self._waiting = self._waiting, []
                now, ending = self.clock(), self._ending
            if batch or self._joins:
                self._write(batch)
            if self.trouble is None:
                with self.counting:
                    self._joins += self.joiner.batches(self.joiner.due(now))
            elif ending:
                return
            else:
                time.sleep(PATIENCE)
            if ending and not self._joins:
                return

    def _write(self, batch: list[tuple[list[Record], Future[list[int]]]]) -> None:
        """Commit the joins that were due, and a batch; then let them count."""
        records: list[Record] = [*self._joins, *(record for part, _ in batch for record in part)]
        try:
            if self._behind:
                self.catch_up()
            seqs = self.store.append(records)
        except ValueError as error:  # a record that cannot be stored, which is nobody else's trouble
            for one in batch if len(batch) > 1 else []:
                self._write([one])
            if len(batch) == 1:
                batch[0][1].set_exception(Refused(400, "BadArgument", f"this cannot be stored: {error}"))
            return
        except OSError as error:
            self._behind, self.trouble = True, str(error)
            for _, future in batch:
                future.set_exception(error)
            return
        self.commits += 1
        self.trouble = None
        start = len(self._joins)
        self._joins = []
        self._count(zip(seqs, records, strict=True))
        for part, future in batch:
            future.set_result(seqs[start : start + len(part)])
            start += len(part)

    def catch_up(self) -> None:
        """Let everything count that the store holds."""
        page: list[tuple[int, Any]] = []
        for record in self.store.read(self.last, None, None, self.loop):
            page.append((record.seq, record))
            if len(page) >= PAGE and not isinstance(record, Join):
                self._count(page)
                page = []
        self._count(page)
        self._behind = False

    def _count(self, placed: Iterable[tuple[int, Record]]) -> None:
        """Records at their places: those that are new count, in this order."""
        told = []
        with self.counting:
            for seq, record in placed:
                if seq <= self.last:
                    continue
                self.last = seq
                if record.seq != seq:
                    msgspec.structs.force_setattr(record, "seq", seq)
                self.joiner.take(record)
                told.append(record)
        if told:
            self._taken(told)
            for watcher in self.watchers:
                watcher(told)
