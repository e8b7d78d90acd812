"""Candidate: a model that may take over, built by a replay of the log, which then learns along with the serving model.

    staged -> built by this thread -> caught up, from then on taught by the learner's thread -> takes over, or waits

If a candidate fails, the serving model stays as it is, and the reason is recorded.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from onepass.log.records import Decision, Eviction, Join
from onepass.log.replay import Fold
from onepass.service.canary_test import CanaryTest

STEP = 1_000  # places of the log that are learned at a time
NEAR = 2_000  # places behind: the rest is learned while nothing else is
PAUSE = 0.05  # seconds at most that follow a step, as long as the step took: requests come first
FAILURES = (ValueError, ArithmeticError, OSError)  # of learning and of reading the log

Do = Callable[[Callable[[], object]], object]


class Candidate(threading.Thread):
    """Thread in which a candidate, a model that may replace the serving model, learns the log.

    - fold: the untrained candidate with its position in the log (`log.replay.Fold`).
    - since: sequence number of the record with which the candidate began.
    - trial: test that compares the candidate with the serving model, or None.
    - seen: function that returns the sequence number up to which the serving model has learned.
    - warm: function that compiles what the model needs.
    - do: function that runs another function on the learner's thread.
    - arrived: called when the candidate has caught up with the serving model.
    - taught: called when the candidate has learned more rewards.
    - failed: called after a failure, with a sentence that describes it.
    """

    def __init__(
        self,
        fold: Fold,
        *,
        seen: Callable[[], int],
        warm: Callable[[Any], object],
        do: Do,
        arrived: Callable[["Candidate"], object],
        failed: Callable[["Candidate", str], object],
        taught: Callable[["Candidate"], object],
        trial: CanaryTest | None,
        since: int,
    ) -> None:
        super().__init__(name=f"candidate {fold.line} of {fold.loop}", daemon=True)
        self.fold, self.trial, self.since, self.ready = fold, trial, since, False
        self.due: str | None = None  # why it is to take over
        self._seen, self._warm, self._do = seen, warm, do
        self._arrived, self._failed, self._taught = arrived, failed, taught
        self._ending = threading.Event()

    @property
    def line(self) -> int:
        """Model number of the candidate."""
        return self.fold.line

    def stop(self) -> None:
        """Stop building the candidate."""
        self._ending.set()
        if self.is_alive() and self is not threading.current_thread():
            self.join()

    def run(self) -> None:
        try:
            self._warm(self.fold.bandit.copy())
            end = self.fold.through
            while self._seen() - end > NEAR:
                begun = time.monotonic()
                end = min(end + STEP, self._seen())
                self.fold.advance(end)
                if self._ending.wait(min(time.monotonic() - begun, PAUSE)):
                    return
        except FAILURES as error:
            why = str(error)
            self._do(lambda: self._fail(why))
        else:
            self._do(self._arrive)

    # ---- by the learner's thread ----

    def _arrive(self) -> None:
        if self._ending.is_set():
            return
        try:
            self.fold.advance(self._seen())
            if self.trial is not None:
                self.trial.read_log(self.fold.store, self.fold.loop, self.since, self.fold.through)
        except FAILURES as error:
            self._fail(str(error))
            return
        self._arrived(self)
        self.ready = True  # those who wait for this find it in what decides

    def _fail(self, why: str) -> None:
        if not self._ending.is_set():
            self._failed(self, why)

    def add_decision(self, decision: Decision) -> None:
        """Store a decision until its final reward comes."""
        self.fold.add_decision(decision)
        if self.trial is not None:
            self.trial.add_decision(decision)

    def learn(self, joins: list[Join | Eviction]) -> None:
        """Learn final rewards of decisions, or remove the arms that a record of removed arms (`Eviction`) names.

        The call may also end the candidate: if learning fails, the function `failed` is called.
        """
        try:
            self.fold.learn(joins)
        except FAILURES as error:
            self._fail(f"learning stopped at record {joins[0].seq}: {error}")
            return
        if self.trial is not None:
            for join in joins:
                if isinstance(join, Join):
                    self.trial.add_join(join)
        self._taught(self)
