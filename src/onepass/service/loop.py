"""One loop: a log, what joins and learns it, and what decides by a copy of the model.

    decide -> a row of the log -> durable -> the answer, which is a function of that row
    row    -> joined at its deadline -> learned -> the next copy

A restart takes the newest checkpoint, learns the joins after it, and reads what still waits: the model is that of a
process that was never interrupted, in every bit.
"""

import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onepass.bandit.decision import made_id
from onepass.foundation import files
from onepass.foundation.check import shown
from onepass.log.records import SECOND, Activation, Checkpoint, Decision, Outcome, Settings
from onepass.log.replay import Fold, restored
from onepass.log.store import Store
from onepass.service import models
from onepass.service.answers import same_request
from onepass.service.clock import Clock
from onepass.service.join import DUE, Joiner
from onepass.service.learner import Learner
from onepass.service.messages import DecideRequest, OutcomeRequest, Refused, fingerprint
from onepass.service.rows import Offer, offer, wrong
from onepass.service.settings import LARGEST, LoopSettings, begun, changes, checked, fixed
from onepass.service.showing import REQUEST, shown_instead
from onepass.service.writer import Writer, promise

FILE, API = "file", "api"  # where settings come from


class Standing(NamedTuple):
    """Settings in force. version: how many there were; from_file: those that a file gave last."""

    settings: LoopSettings
    version: int
    from_file: LoopSettings


class Loop:
    """A loop that runs, from when it is made until `stop`.

    settings: from its file; store: its log, of which it is the only writer; folder: of its checkpoints. ValueError
    where the log was made by another model, StoreError where it is damaged.
    """

    def __init__(self, settings: LoopSettings, store: Store, folder: Path):
        self.store, self.folder, self.name = store, folder, settings.name
        self._lock = threading.Lock()
        self._answering: dict[str, tuple[str, Future[Decision]]] = {}
        self._stand: Standing | None = None
        found = models.newest(folder, store, self.name)
        self.joiner = Joiner(settings, store.last)
        first, latest, last = self._scan(found)
        fold = Fold(store, self.name, begun(settings) if first is None else first)
        if found is not None:
            kept = found.kept
            fold = Fold(store, self.name, found.bandit, found.kept.through)
            self._stand = Standing(checked(kept.settings), kept.version, checked(kept.from_file))
            for record in latest:
                self._stands(record)
        self._fits(settings)
        self.clock = Clock(last)
        self.timed = fold.bandit.timed
        warmed(fold.bandit.copy(), settings)
        self._start(fold, settings, first is None and found is None)

    # ---- beginning and end ----

    def _scan(self, found: Any) -> tuple[Any, list[Settings], int]:
        """Let the joiner read what it depends on; the model at the beginning, later settings, the last time."""
        first, latest, last = None, list[Settings](), 0
        for record in self.store.read(0 if found is None else found.kept.since, None, None, self.name):
            self.joiner.take(record)
            last = max(last, record.time)
            if isinstance(record, Settings):
                latest.append(record)
                if found is None:
                    self._stands(record)
            elif isinstance(record, Checkpoint) and first is None and record.data is not None and not record.through:
                first = restored(record)
        if found is not None:
            latest = [record for record in latest if int(record.version) > found.kept.version]
        return first, latest, last

    def _stands(self, record: Settings) -> None:
        """Settings that the log says."""
        settings = checked(record.settings["loop"])
        from_file = settings if self._stand is None or record.settings["from"] == FILE else self._stand.from_file
        self._stand = Standing(settings, int(record.version), from_file)

    def _fits(self, settings: LoopSettings) -> None:
        """ValueError for settings of another model than the log's."""
        if self._stand is not None:
            different = [name for name, value in fixed(settings).items() if fixed(self._stand.settings)[name] != value]
            if different:
                raise ValueError(
                    f"loop {self.name}: {', '.join(different)} must be as the log has it, which another model would "
                    "not explain: give a new loop another name, or another folder"
                )

    def _start(self, fold: Fold, settings: LoopSettings, new: bool) -> None:
        if new:
            data = fold.checkpoint(self.clock())
            fold.through = self.store.append([data])[0]
        trouble, saved = None, fold.through
        try:
            if not fold.advance():
                saved = fold.through
        except (ValueError, ArithmeticError, OSError) as error:
            trouble = f"learning stopped after record {fold.through}: {error}"
        operation = settings.operation
        self.learner = Learner(fold, operation.publish, operation.checkpoint, self._save)
        self.learner.trouble, self.learner.saved = trouble, saved
        last = self.store.last
        self.writer = Writer(self.store, self.name, self.clock, self.joiner, self.learner.taken, last)
        self.learner.start()
        self.writer.start()
        if self._stand is None or settings != self._stand.from_file:
            self._put(settings, FILE)
        self._apply(self.standing.settings)

    def stop(self) -> None:
        """Write and learn what was taken, make a checkpoint, end. Who asks after that is refused."""
        self.writer.stop()
        self.learner.stop()

    def _save(self) -> None:
        """A checkpoint as a file, and its record in the log; by the learner's thread."""
        fold, (settings, version, from_file) = self.learner.fold, self.standing
        with self.writer.counting:
            since = self.joiner.since(self.writer.last)
        kept = models.Kept(
            loop=self.name, through=fold.through, crc=models.crc(self.store, fold.through), since=since,
            settings=settings.plain(), version=version, from_file=from_file.plain(),
        )  # fmt: skip
        record = models.save(self.folder, kept, fold.bandit, self.clock())
        if self.writer.is_alive():
            self.writer.submit([record])
        else:
            self.store.append([record])

    # ---- settings ----

    @property
    def standing(self) -> Standing:
        """Settings in force."""
        assert self._stand is not None
        return self._stand

    @property
    def settings(self) -> LoopSettings:
        """The same, without their version."""
        return self.standing.settings

    def change(self, new: LoopSettings, dry: bool = False) -> list[str]:
        """Go on by other settings; what differs. new: whole; dry: only say it (default False). Refused where the model
        would be another, or the name."""
        old = self.settings
        different = changes(old, new)
        parts = [name for name in fixed(old) if name in different]
        if parts:
            message = f"{', '.join(parts)} must stay as the log has it: begin another loop for another model"
            raise Refused(409, "SettingsFixed", message)
        if different and not dry:
            with self._lock:
                self._put(new, API)
                self._apply(new)
        return different

    def _put(self, settings: LoopSettings, origin: str) -> None:
        version = 1 if self._stand is None else self._stand.version + 1
        said = {"from": origin, "loop": settings.plain()}
        record = Settings(loop=self.name, time=0, settings=said, version=f"{version}")
        self.writer.submit([record]).result()
        self._stands(record)

    def _apply(self, settings: LoopSettings) -> None:
        self.joiner.settings = settings
        self.learner.publish, self.learner.checkpoint = settings.operation.publish, settings.operation.checkpoint

    # ---- decisions and what came of them ----

    def decide(self, request: DecideRequest) -> Future[Decision]:
        """The record of a decision, once it is durable; the one there is for an id that was decided before, where the
        request is the same. Refused for what cannot be decided, and for another request of the same id."""
        print = fingerprint(request)
        if request.id is None:
            return self._decided(request, made_id(), print, promise())
        with self._lock:
            asked, future = self._answering.get(request.id, (None, promise()))
            if asked is None:
                self._answering[request.id] = (print, future)
        if asked is not None:
            same_request(asked, print, request.id)
            return future
        try:
            for record in self.store.find(self.name, request.id):
                if isinstance(record, Decision):
                    same_request((record.extra or {}).get(REQUEST), print, request.id)
                    future.set_result(record)
                    break
            else:
                return self._decided(request, request.id, print, future)
        except BaseException as error:
            if not future.done():
                future.set_exception(error)
            self._answering.pop(request.id, None)
            raise
        self._answering.pop(request.id, None)
        return future

    def _decided(self, request: DecideRequest, identity: str, print: str, future: Future[Decision]) -> Future[Decision]:
        """A new decision."""
        settings, version, _ = self.standing
        record = self._record(request, offer(request, settings), identity, print, settings, version)

        def durable(done: Future[list[int]]) -> None:
            error = done.exception()
            if error is None:
                future.set_result(record)
            else:
                future.set_exception(error)
            self._answering.pop(identity, None)

        self.writer.submit([record], stamped=True).add_done_callback(durable)
        return future

    def _record(
        self, request: DecideRequest, offered: Offer, identity: str, print: str, settings: LoopSettings, version: int
    ) -> Decision:
        now = self.clock()
        options: dict[str, Any] = {"id": identity, "tail": request.tail}
        if offered.eligible is not None:
            options["eligible"] = offered.eligible
        if self.timed:
            options["time"] = now / SECOND
        try:
            found = self.learner.serving.decide(offered.contexts, offered.names, request.slots, **options)
        except ValueError as error:
            raise wrong(str(error)) from None
        due = now + round(settings.reward.wait * SECOND)
        return Decision.of(
            found, loop=self.name, time=now, contexts=offered.contexts, eligible=offered.eligible, mode=settings.mode,
            model=f"{version}", deferred=request.defer, subject=request.subject, extra={REQUEST: print, DUE: due},
            **shown_instead(found, offered, settings),
        )  # fmt: skip

    def outcomes(self, requests: list[OutcomeRequest]) -> tuple[list[Outcome], Future[list[int]]]:
        """Outcomes, and their places once they are durable; those that were there already keep the place 0. Refused for
        values that the settings do not allow."""
        settings = self.settings
        limits, (least, largest) = settings.limits, settings.reward.range
        if not 1 <= len(requests) <= limits.batch:
            raise wrong(f"a request must have from 1 to {limits.batch} outcomes, got {len(requests)}")
        records = []
        for one in requests:
            for text in (one.id, one.key):
                if text is not None and not 1 <= len(text) <= limits.id:
                    raise wrong(f"id and key must have from 1 to {limits.id} characters, got {shown(text)}")
            if one.slot is not None and not 0 <= one.slot < limits.slots:
                raise wrong(f"slot must be from 0 to {limits.slots - 1}, got {one.slot}")
            if not abs(one.value) <= LARGEST:
                raise wrong(f"value must be a finite number up to {LARGEST:.0e}, got {one.value}")
            if settings.reward.aggregation != "sum" and not least <= one.value <= largest:
                raise wrong(f"value must be from {least} to {largest} (reward.range), got {one.value}")
            records.append(Outcome(loop=self.name, time=0, id=one.id, value=one.value, slot=one.slot, request=one.key))
        return records, self.writer.submit([*records])

    def activate(self, identity: str) -> Future[list[int]]:
        """The place of an activation, once it is durable; Refused where there is no such decision."""
        if not any(isinstance(one, Decision) for one in self.store.find(self.name, identity)):
            raise Refused(404, "EventNotFound", f"there is no decision {shown(identity)}")
        return self.writer.submit([Activation(loop=self.name, time=0, id=identity)])

    # ---- how it is ----

    def trouble(self) -> str | None:
        """Why it is not ready, in a sentence; None where it is."""
        if not self.writer.is_alive() or not self.learner.is_alive():
            return "it is stopping"
        if self.writer.trouble is not None:
            return f"the log cannot be written: {self.writer.trouble}"
        return self.learner.trouble

    def numbers(self) -> dict[str, float]:
        """What is counted: of this process, but for the last places."""
        return {
            "waiting": len(self.joiner),
            "learned": self.learner.learned,
            "rounds": self.learner.serving.rounds,
            "lag": self.learner.lag,
            "last": self.writer.last,
            "through": self.learner.through,
            "commits": self.writer.commits,
        }


def warmed(bandit: Any, settings: LoopSettings) -> None:
    """Compile what requests will need. bandit: a copy."""
    dim, names = settings.features.dim, ["a", "b"]
    contexts = np.ones(dim) if settings.features.arms in (0, []) else np.ones((len(names), dim))
    time = {"time": 1.0} if bandit.timed else {}
    if bandit.timed and bandit.rounds:
        return  # its clock stands later
    for k in (1, len(names)):
        decision = bandit.snapshot().decide(contexts, names, k, id="warm", **time)
    decision = bandit.decide(contexts, names, id="warm", **time)
    least, largest = settings.reward.range
    reward = min(max(0.0, least), largest)
    bandit.learn([decision, bandit.decide(contexts, names, id="warmer", **time)], [reward, reward], **time)
    bandit.learn(bandit.decide(contexts, names, id="warmest", **time), reward, **time)
    files.to_bytes(bandit)
