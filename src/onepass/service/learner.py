"""The one thread that learns: joins in the log's order, by the lines that replay the log; then a copy to serve from.

What serves is a snapshot, exchanged for a newer one after what was learned, at most every `publish` seconds. Learning
that fails stops learning, not serving, and says why: the log would fail in the same place.
"""

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from onepass.log.records import Decision, Join
from onepass.log.replay import Fold, grouped

IDLE = 0.05  # seconds between two looks at the time while nothing comes


class Learner(threading.Thread):
    """Learns until it is stopped.

    fold: the model at its place of the log; publish: seconds between two serving copies; checkpoint: seconds between
    two checkpoints, save: makes one, called by this thread.
    """

    def __init__(self, fold: Fold, publish: float, checkpoint: float, save: Callable[[], object]):
        super().__init__(name=f"learner of {fold.loop}", daemon=True)
        self.fold, self.publish, self.checkpoint = fold, publish, checkpoint
        self.trouble: str | None = None
        self.serving = fold.bandit.snapshot()
        self.through = self.saved = fold.through
        self.learned = 0
        self._save = save
        self._told: queue.SimpleQueue[list[Any] | None] = queue.SimpleQueue()
        self._published, self._stale = time.monotonic(), False
        self._checkpointed = self._published

    def taken(self, records: list[Any]) -> None:
        """Records of the log, in its order."""
        wanted = [record for record in records if isinstance(record, Decision | Join)]
        if wanted:
            self._told.put(wanted)

    @property
    def lag(self) -> int:
        """Messages of the writer that are not learned."""
        return self._told.qsize()

    def stop(self) -> None:
        """Learn what was told, save it, and end."""
        self._told.put(None)
        self.join()

    def run(self) -> None:
        while True:
            try:
                records = self._told.get(timeout=IDLE)
            except queue.Empty:
                records = []
            if records is None:
                self._serve(always=True)
                self.keep()
                return
            self._learn(records)
            self._serve()
            if time.monotonic() - self._checkpointed >= self.checkpoint:
                self.keep()

    def _learn(self, records: list[Any]) -> None:
        joins = []
        for record in records:
            if isinstance(record, Join):
                joins.append(record)
            else:
                self.fold.note(record)
        for group in grouped(joins) if self.trouble is None else ():
            try:
                self.fold.learn(group)
            except (ValueError, ArithmeticError, OSError) as error:
                self.trouble = f"learning stopped at record {group[0].seq}: {error}"
                return
            self.learned += len(group)
            self.through, self._stale = self.fold.through, True

    def _serve(self, always: bool = False) -> None:
        now = time.monotonic()
        if self._stale and (always or now - self._published >= self.publish):
            self.serving = self.fold.bandit.snapshot()
            self._published, self._stale = now, False

    def keep(self) -> None:
        """Make a checkpoint where something was learned since the last one."""
        self._checkpointed = time.monotonic()
        if self.through > self.saved and self.trouble is None:
            try:
                self._save()
                self.saved = self.through
            except OSError as error:
                self.failure = str(error)
