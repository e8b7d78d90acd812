"""Thread that writes a loop's log: one group commit makes the records of many requests durable, then they take effect.

    drain the queue, and read the clock  ->  commit it with the joins that were due  ->  add it in the log's order
    ->  what is due by that clock waits for the next commit

An outcome gets its time when it enters the queue, and no later record gets an earlier time. So when the queue has been
emptied after a deadline, all outcomes before this deadline have been read, and the join depends on times alone.

If the store fails, the waiting requests get the error, nothing takes effect, and the writer reads what the store has
before it continues. So a commit with an unknown result is counted once, if it happened.
"""

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from typing import Any, Protocol

import msgspec

from onepass.log.records import Activation, Decision, Join, Outcome, Record
from onepass.log.store import Store, StoreError, make_row, row_from_record
from onepass.service.join import Joiner
from onepass.service.messages import ApiError

IDLE = 0.02  # seconds between two looks at deadlines while nothing comes
GATHER = 0.004  # seconds from one commit to the next while requests come together: a commit costs as much as five rows
PATIENCE = 0.2  # seconds before a store that failed is asked again
TYPED = (Decision, Outcome, Activation, Join)  # made of what was checked when it came
PAGE = 5_000  # records that are told at a time when the log is read
LEAVE = 2.0  # seconds for joins that are due when the service stops; the next start makes the others

RecordListener = Callable[[list[Any]], object]
MakeResult = Callable[[Any], Any]
Task = tuple[Callable[[], Any], Future[Any]]


class ResultSink(Protocol):
    """Receiver of a result, such as a `Future` or a cheaper object."""

    def set_result(self, result: Any, /) -> None:
        """Receive the result of the work."""
        ...

    def set_exception(self, exception: BaseException, /) -> None:
        """Receive the error with which the work failed."""
        ...


PendingBatch = tuple[
    list[Record], ResultSink, MakeResult | None
]  # records, the promise to whom they are of, and what keeps it


def new_future() -> Future[Any]:
    """Make a future that its waiters cannot cancel: others may wait for it too."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


def run_into_future(act: Callable[[], Any], future: Future[Any]) -> None:
    """Call the function `act`, and set its result or its error in a future."""
    try:
        future.set_result(act())
    except Exception as error:  # of whoever asked for it
        future.set_exception(error)


class Writer(threading.Thread):
    """Thread that writes the records of a loop to its log until it is stopped.

    - store, loop: the log, and the name of the loop.
    - clock: clock of all records.
    - joiner: join of decisions and rewards, which gets all records.
    - on_records: called with new records in the log's order, so that they can be learned. Decisions that were read from
      the log to be joined come again, before their joins.
    - last: sequence number up to which the joiner has read the log.
    - bytes_written: bytes of the records written.
    - is_behind: returns True while learning lags so far that no decisions are joined.
    """

    def __init__(
        self, store: Store, loop: str, clock: Callable[[], int], joiner: Joiner, on_records: RecordListener, last: int
    ) -> None:
        super().__init__(name=f"writer of {loop}", daemon=True)
        self.store, self.loop, self.clock, self.joiner, self.last = store, loop, clock, joiner, last
        self.problem: str | None = None
        self.commits = self.bytes_written = 0
        self.counting = threading.Lock()  # of what the joiner holds
        self.counted: Callable[[Any], object] = bool  # told of every record while it is counted
        self.watchers: list[RecordListener] = []  # told of every record, after it counts
        self.is_behind: Callable[[], bool] = bool
        self._on_records, self._leaving = on_records, math.inf
        self._waiting: list[PendingBatch] = []
        self._acts: list[Task] = []
        self._joins: list[Join] = []
        self._behind, self._ending = False, False
        self._condition = threading.Condition()

    def submit(
        self, records: list[Record], *, keep_times: bool = False, reply: tuple[ResultSink, MakeResult] | None = None
    ) -> Any:
        """Queue records, and return a future of their sequence numbers, set once they are durable.

        - records: records, which belong to the writer from here on.
        - keep_times: True if they keep their times instead of getting the present time.
        - reply: for a single record, a result sink used instead of the future, and a function that makes its result
          from the stored record, which is this one or an earlier one with the same id.

        The future raises StoreError if the log cannot be written.
        """
        future, kept = (new_future(), None) if reply is None else reply
        with self._condition:
            if self._ending:
                raise StoreError("the service is stopping; nothing of this was stored")
            if not keep_times:
                now = self.clock()
                for record in records:
                    msgspec.structs.force_setattr(record, "time", now)
            self._waiting.append((records, future, kept))
            self._condition.notify()
        return future

    def run_between_commits(self, act: Callable[[], Any]) -> Future[Any]:
        """Return a future of the result of `act`, a function that this thread calls between two commits.

        It raises StoreError if the writer is stopping.
        """
        future = new_future()
        with self._condition:
            if self._ending:
                raise StoreError("the service is stopping; nothing was done")
            self._acts.append((act, future))
            self._condition.notify()
        return future

    def drop_joins(self, identities: Collection[str]) -> None:
        """Drop the final rewards (joins) of some decisions, given by their ids, that are not written yet.

        The writer's thread calls this method.
        """
        self._joins = [join for join in self._joins if join.id not in identities]

    def stop(self) -> None:
        """Write the queued records, join what is due for at most 2 seconds, and end the thread.

        Decisions that are due but are not in memory stay in the log, and are joined after the next start.
        """
        with self._condition:
            self._ending, self._leaving = True, time.monotonic() + LEAVE
            self._condition.notify()
        self.join()

    def run(self) -> None:
        try:
            self._serve()
        except BaseException as error:
            with self._condition:
                self._ending, left = True, [one[1] for one in self._waiting] + [one[1] for one in self._acts]
                self.problem = f"the writer ended: {error}"
            for future in left:
                future.set_exception(StoreError(self.problem))
            raise

    def _serve(self) -> None:
        begun, together = 0.0, False
        while True:
            if together and not self._ending:
                time.sleep(max(begun + GATHER - time.monotonic(), 0.0))
            with self._condition:
                if not (self._waiting or self._joins or self._acts or self._ending):
                    self._condition.wait(IDLE)
                batch, self._waiting = self._waiting, []
                acts, self._acts = self._acts, []
                now, ending = self.clock(), self._ending
            begun, together = time.monotonic(), len(batch) > 1
            if batch or self._joins:
                self._write(batch)
            elif self.problem is not None:
                self._probe()
            for act, future in acts:
                run_into_future(act, future)
            if self.problem is not None:
                if ending:
                    return
                time.sleep(PATIENCE)
            elif time.monotonic() < self._leaving and (ending or not self.is_behind()):
                with self.counting:
                    due = self.joiner.pop_due(now, recall=not ending)
                    self._joins += self.joiner.assign_batches(due) + self.joiner.corrections(now)
            if ending and not self._joins:
                return

    def _probe(self) -> None:
        """Check if a store that failed can be written again, since no request reaches a service that is not ready."""
        try:
            self.store.probe()
            if self._behind:
                self.catch_up()
        except OSError as error:
            self.problem = str(error)
        else:
            self.problem = None

    def _write(self, batch: list[PendingBatch]) -> None:
        """Commit the joins that were due together with a batch; then let them take effect."""
        records: list[Record] = [*self._joins, *(record for part, _, _ in batch for record in part)]
        try:
            if self._behind:
                self.catch_up()
            rows = [make_row(record) if type(record) in TYPED else row_from_record(record) for record in records]
            seqs = self.store.put(rows)
            self.bytes_written += sum(len(row.body) for row in rows)
        except ValueError as error:  # a record that cannot be stored, which is nobody else's trouble
            for one in batch if len(batch) > 1 else []:
                self._write([one])
            if len(batch) == 1:
                batch[0][1].set_exception(ApiError(400, "BadArgument", f"this cannot be stored: {error}"))
            return
        except OSError as error:
            self._behind, self.problem = True, str(error)
            for _, future, _ in batch:
                future.set_exception(error)
            return
        self.commits += 1
        self.problem = None
        start = len(self._joins)
        self._joins = []
        self._count(zip(seqs, records, strict=True))
        for part, future, kept in batch:
            places = seqs[start : start + len(part)]
            start += len(part)
            if kept is None:
                future.set_result(places)
                continue
            try:
                mine = part[0].seq == places[0]
                future.set_result(kept(part[0] if mine else self._at(places[0])))
            except Exception as error:  # of whoever asked
                future.set_exception(error)

    def _at(self, place: int) -> Record:
        """Return the record with a sequence number."""
        record: Record = next(self.store.read(place - 1, place))
        return record

    def catch_up(self) -> None:
        """Process all records of the log that this process has not processed yet."""
        page: list[tuple[int, Any]] = []
        for record in self.store.read(self.last, None, None, self.loop):
            page.append((record.seq, record))
            if len(page) >= PAGE and not isinstance(record, Join):
                self._count(page)
                page = []
        self._count(page)
        self._behind = False

    def _count(self, placed: Iterable[tuple[int, Record]]) -> None:
        """Let new records take effect, in this order; `placed` holds pairs (sequence number, record)."""
        told = []
        with self.counting:
            for seq, record in placed:
                if seq <= self.last:
                    continue
                self.last = seq
                if record.seq != seq:
                    msgspec.structs.force_setattr(record, "seq", seq)
                self.joiner.add_record(record)
                self.counted(record)
                told.append(record)
        if told:
            self._on_records([*self.joiner.take_recalled(), *told])
            for watcher in self.watchers:
                watcher(told)
