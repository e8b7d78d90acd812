"""Thread that learns joins in the log's order, by the code that replays the log, and publishes copies that decide.

Decisions are made by a snapshot of the model. A newer one replaces it after learning, at most every `publish` seconds,
and so rarely that copying takes at most a tenth of the time. If learning fails, learning stops but serving does not: a
replay would fail at the same record. A candidate that has caught up learns the same joins, and may take over.
"""

import contextlib
import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Any, NamedTuple

from onepass.log.eviction import arms_of, choose_evicted
from onepass.log.records import Decision, Eviction, Join
from onepass.log.replay import Fold, group_joins
from onepass.service.candidate import Candidate
from onepass.service.writer import new_future, run_into_future

IDLE = 0.05  # seconds between two looks at the time while nothing comes
LEAVE = 5.0  # seconds for learning, once it is told to stop
UNSAVED = 10_000  # records of the log after which there is a checkpoint although nothing was learned
RARELY = 10.0  # times as long as a copy takes, until the next one
BEHIND = 8  # queued commits from which on no further decisions are joined

_logger = logging.getLogger("uvicorn.error")


class Copy(NamedTuple):
    """Copy of a model that makes decisions.

    - snapshot: immutable copy of the bandit.
    - line: number of the model in its loop.
    - timed: True if the model needs the time of a decision.
    - through: sequence number of the last rewards that the model has learned.
    """

    snapshot: Any
    line: int
    timed: bool
    through: int

    @classmethod
    def from_fold(cls, fold: Fold) -> "Copy":
        """Return a copy of the model that is learning the log."""
        return cls(fold.bandit.snapshot(), fold.line, fold.bandit.needs_time, fold.through)


class Copies(NamedTuple):
    """Copies of the models that make a loop's decisions.

    `present` is the copy of the serving model. `candidate` is the copy of a candidate model that makes a share of the
    decisions, or None.
    """

    present: Copy
    candidate: Copy | None = None


class Learner(threading.Thread):
    """Thread that learns the rewards in a loop's log until it is stopped, and publishes copies of the model.

    - fold: the model (`log.replay.Fold`), with its position in the log.
    - publish, checkpoint: seconds between two serving copies, and between two checkpoints.
    - save: function that makes a checkpoint, called by this thread.
    - evict: function that writes a record into the log that some arms are forgotten. It is called if a model knows more
      than `known_arms` arms; `protected_arms` stay.
    - is_due: function that returns True if a checkpoint is due before its time.
    """

    known_arms: int | None = None
    protected_arms: Collection[str] = ()

    def __init__(
        self, fold: Fold, publish: float, checkpoint: float, save: Callable[[], object],
        evict: Callable[[list[str]], Future[Any]],
    ) -> None:  # fmt: skip
        super().__init__(name=f"learner of {fold.loop}", daemon=True)
        self.fold, self.publish, self.checkpoint = fold, publish, checkpoint
        self.problem: str | None = None
        self.failure: str | None = None  # why the last checkpoint could not be saved
        self.copies = Copies(Copy.from_fold(fold))
        self.through = self.saved = self.seen = fold.through
        self.saved_read = fold.read  # the place that the last checkpoint had read
        self.learned = 0
        self.candidate: Candidate | None = None
        self.is_due: Callable[[], bool] = bool
        self.shared = False  # whether a candidate has a share of the decisions
        self.evicted = 0
        self._save, self._evict, self._leaving = save, evict, math.inf
        self._pending_eviction: Future[Any] | None = None
        self._counted: dict[int, tuple[int, int]] = {}  # arms of each model, and the limit, when they were last counted
        self._queue: queue.SimpleQueue[list[Any] | Callable[[], object] | None] = queue.SimpleQueue()
        self._published, self._stale, self._took = time.monotonic(), False, 0.0
        self._checkpointed = self._published

    def add_records(self, records: list[Any]) -> None:
        """Queue records of the log, to be learned in this order."""
        wanted = [record for record in records if isinstance(record, Decision | Join | Eviction)]
        if wanted:
            self._queue.put(wanted)

    def run_soon(self, what: Callable[[], object]) -> None:
        """Let this thread call a function after it has learned what is queued."""
        self._queue.put(what)

    @property
    def snapshot(self) -> Any:
        """Immutable copy of the serving model, with which decisions are made."""
        return self.copies.present.snapshot

    @property
    def lag(self) -> int:
        """Number of queued groups of records that are not yet learned."""
        return self._queue.qsize()

    def is_behind(self) -> bool:
        """Return True if so much is queued that decisions whose deadline has passed had better wait on."""
        return self.lag >= BEHIND

    def run_after_learning(self, act: Callable[[], Any]) -> Future[Any]:
        """Return a future of the result of `act`, a function that this thread calls after learning what is queued."""
        future = new_future()
        self.run_soon(lambda: run_into_future(act, future))
        return future

    def stop(self) -> None:
        """Learn the queued records for at most 5 seconds, save a checkpoint, and end.

        The rest is learned when the service starts again.
        """
        self._leaving = time.monotonic() + LEAVE
        self._queue.put(None)
        self.join()

    def run(self) -> None:
        while True:
            try:
                records = self._queue.get(timeout=IDLE)
            except queue.Empty:
                records = []
            if records is None:
                self._publish_if_stale(always=True)
                self.save_checkpoint()
                return
            if callable(records):
                records()
                continue
            if time.monotonic() >= self._leaving:
                continue  # it is in the log
            self._learn(records)
            self._publish_if_stale()
            self._make_room()
            if time.monotonic() - self._checkpointed >= self.checkpoint or (self.failure is None and self.is_due()):
                self.save_checkpoint()

    def _learn(self, records: list[Any]) -> None:
        joins = list[Join | Eviction]()
        for record in records:
            if not isinstance(record, Decision):
                joins.append(record)
            else:
                self.fold.add_decision(record)
                if self.candidate is not None:
                    self.candidate.add_decision(record)
        for group in group_joins(joins):
            if self.problem is None:
                try:
                    self.fold.learn(group)
                except (ValueError, ArithmeticError, OSError) as error:
                    self.problem = f"learning stopped at record {group[0].seq}: {error}"
                else:
                    self.learned += sum(isinstance(one, Join) for one in group)
                    self.through = self.fold.through
            self.seen, self._stale = group[-1].seq, True
            if self.candidate is not None:
                self.candidate.learn(group)
            if isinstance(group[0], Eviction):
                self.evicted, self._pending_eviction = self.evicted + len(group[0].arms), None
        for fold in self.folds() if records and self.problem is None else ():
            fold.read = records[-1].seq

    def folds(self) -> list[Fold]:
        """Return the models that learn, with their positions in the log: the serving one, and the candidate."""
        return [self.fold] if self.candidate is None else [self.fold, self.candidate.fold]

    def _make_room(self) -> None:
        """Write an eviction if a model knows too many arms; each eviction is learned before the next."""
        asked = self._pending_eviction
        if self.known_arms is None or self.problem is not None:
            return
        if asked is not None and not (asked.done() and asked.exception() is not None):
            return
        folds = self.folds()
        for fold in folds:
            count = len(arms_of(fold.bandit)), self.known_arms
            if self._counted.get(fold.line) == count:
                continue  # no arm is new
            self._counted[fold.line] = count
            rewarded = {arm: None for each in reversed(folds) for arm in each.rewarded}
            arms = choose_evicted(fold.bandit, self.known_arms, rewarded, self.protected_arms)
            if arms:
                del self._counted[fold.line]
                with contextlib.suppress(OSError):  # the next start makes room
                    self._pending_eviction = self._evict(arms)
                return

    def _publish_if_stale(self, always: bool = False) -> None:
        now = time.monotonic()
        if self._stale and (always or now - self._published >= max(self.publish, RARELY * self._took)):
            self.publish_copies()

    def publish_copies(self) -> None:
        """Replace the copies that decide by copies of the present models; called by this thread."""
        begun, found = time.monotonic(), self.candidate
        candidate = Copy.from_fold(found.fold) if self.shared and found is not None else None
        self.copies = Copies(Copy.from_fold(self.fold), candidate)
        self._published, self._stale = time.monotonic(), False
        self._took = self._published - begun

    def install_candidate(self, candidate: Candidate) -> None:
        """Replace the serving model by a candidate that has caught up; called by this thread."""
        candidate.fold.rewarded = {**self.fold.rewarded, **candidate.fold.rewarded}
        self.fold, self.candidate, self.problem = candidate.fold, None, None
        self.through = self.fold.through
        self.publish_copies()

    def save_checkpoint(self, always: bool = False) -> None:
        """Save a checkpoint if something was learned since the last one, or if `always`."""
        self._checkpointed = time.monotonic()
        learned = self.through > self.saved or self.fold.read >= self.saved_read + UNSAVED
        if (always or learned) and self.problem is None:
            try:
                self._save()
                self.saved, self.saved_read, self.failure = self.through, self.fold.read, None
            except OSError as error:
                if self.failure is None:
                    _logger.warning("loop %s: a checkpoint could not be saved: %s", self.fold.loop, error)
                self.failure = f"a checkpoint could not be saved, and will be tried again: {error}"
