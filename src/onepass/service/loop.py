"""Loop: a log, the join and the learner that read it, and a copy of the model that decides.

    decide -> a row of the log -> durable -> the answer, which is a function of that row
    row    -> joined at its deadline -> learned -> the next copy

A restart takes the newest checkpoint, learns the joins after it, and reads the decisions that still wait. The model
then equals, in every bit, that of a process that was never interrupted.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from onepass.bandit.decision import new_id
from onepass.foundation import files
from onepass.foundation.check import quote
from onepass.log.model_lineage import SERVING, STAGED
from onepass.log.records import LONGEST as LONGEST_NAME
from onepass.log.records import Activation, Checkpoint, Decision, Eviction, Outcome, Record, Settings
from onepass.log.replay import Fold
from onepass.log.replay_decide import decide_from_log
from onepass.log.store import Store, StoreError
from onepass.service import checkpoints, promotion
from onepass.service.accounting_settings import LARGEST
from onepass.service.apprentice import REQUEST
from onepass.service.arm_table_cache import ArmTableCache, fingerprint
from onepass.service.candidate import Candidate
from onepass.service.clock import Clock
from onepass.service.crossed_features import warm_up_contexts
from onepass.service.decision_record import make_record
from onepass.service.evaluations import Evaluations
from onepass.service.first_model import begin_bandit
from onepass.service.join import Joiner
from onepass.service.learner import Learner
from onepass.service.ledger import RESUME, Ledger
from onepass.service.loop_state import API, FILE, LoopState, settings_record
from onepass.service.messages import ApiError, DecideRequest, OutcomeRequest, bad_argument, check_name
from onepass.service.request_rows import make_table
from onepass.service.responses import check_same_request
from onepass.service.settings import (
    LoopSettings,
    Model,
    diff_settings,
    immutable_settings,
    parse_logged_settings,
    takes_records,
)
from onepass.service.whole_checkpoints import WholeCheckpoints
from onepass.service.writer import ResultSink, Writer, new_future


class Loop:
    """Named bandit that the service runs, with its log, the thread that joins rewards, and the thread that learns.

    It runs from its construction until `stop`.

    - settings: settings in the loop's file.
    - store: log of the loop, to which no other process may write.
    - folder: folder of the checkpoints.
    - clock: function that makes a clock from the last time in the log (default `Clock`).

    Raises ValueError if features or names of outcomes in the settings differ from the settings in the log, and
    StoreError if the log is damaged.
    """

    def __init__(
        self, settings: LoopSettings, store: Store, folder: Path, clock: Callable[[int], Callable[[], int]] = Clock
    ) -> None:
        self.store, self.folder, self.name = store, folder, settings.name
        self._orders, self.change_lock = threading.RLock(), threading.RLock()
        self.building: Candidate | None = None
        self.wholes = WholeCheckpoints(self._bytes_written)
        self.evaluations = Evaluations(self, folder.with_name(f"{settings.name}.evaluations"))
        self.tables = ArmTableCache(lambda arms: make_table(arms, settings))
        found = checkpoints.newest_checkpoint(folder, store, self.name)
        self.loop_state = LoopState() if found is None else found.kept.loop_state
        self.ledger = self._load_ledger(found)
        waiting = checkpoints.load_backlog(folder, found)
        since = 0 if found is None else found.kept.since if waiting is None else found.kept.scan
        self.joiner = Joiner(settings, store.last, store, self._settings_before(since))
        if found is not None and waiting is not None:
            self.joiner.restore(waiting, found.kept.known)
        last = self._scan(since, 0 if found is None else found.kept.known)
        self._check_settings(settings)
        self.clock = clock(last)
        serving = self.loop_state.lines.serving
        if found is not None and found.kept.line != serving:
            found = checkpoints.newest_checkpoint(folder, store, self.name, serving)
        fold = self.load_fold(serving, found) if serving in self.loop_state.lines.each else None
        if fold is None or self.loop_state.settings is None:
            checkpoints.refuse_remainder(folder, store, self.name)
        fresh = Fold(store, self.name, begin_bandit(settings)) if fold is None else fold
        compile_paths(fresh.bandit.copy(), self.loop_state.settings or settings)
        self._start(fresh, settings, fold is None)

    # ---- beginning and end ----

    def _settings_before(self, place: int) -> list[tuple[int, LoopSettings]]:
        """Return all settings in the log up to the sequence number `place`, each with its own sequence number."""
        records = self.store.read(0, place, ("settings",), self.name)
        return [(one.seq, parse_logged_settings(one)) for one in records]

    def _scan(self, since: int, known: int) -> int:
        """Add the records after `since` to the joiner, and those after `known` to the state and the ledger.

        Both are sequence numbers. Returns the time of the last record in microseconds, 0 if there is none.
        """
        last = 0
        for record in self.store.read(min(since, known), None, None, self.name):
            if record.seq > since:
                self.joiner.add_record(record)
            if record.seq > known:
                self.loop_state.apply(record)
                self.ledger.add_record(record)
                if isinstance(record, Decision):
                    self.ledger.recall(record)
            last = max(last, record.time)
        return last

    def _load_ledger(self, found: Any) -> Ledger:
        """Return the ledger of the checkpoint `found`; a new one if there is no checkpoint, or no ledger in it."""
        ledger = Ledger(lambda identity: self.store.find(self.name, identity))
        if found is None or found.kept.ledger is None:
            return ledger
        ledger.restore(found.kept.loop_state.settings, found.kept.ledger)
        places = ledger.recent
        for record in self.store.read(places[0] - 1, found.kept.known, ("decision",), self.name) if places else ():
            ledger.recall(record)
        return ledger

    def load_fold(self, line: int, found: Any = None) -> Fold:
        """Return model number `line` of the loop with its position in the log.

        It comes from the checkpoint `found`, or is untrained if that is None. Raises ValueError if the log no longer
        has the records that the model needs.
        """
        if found is not None:
            self.wholes.resume(line, found.kept.bytes)
        return checkpoints.load_fold(self.folder, self.store, self.name, self.loop_state.lines.each[line], found)

    def _check_settings(self, settings: LoopSettings) -> None:
        """Raise ValueError for settings whose rows differ from those of the log."""
        stands = self.loop_state.settings
        if stands is not None:
            different = [
                name
                for name, value in immutable_settings(settings).items()
                if immutable_settings(stands)[name] != value
            ]
            if different:
                raise ValueError(
                    f"loop {self.name}: {', '.join(different)} must be as the log has it, which other rows would "
                    "not explain: give a new loop another name, or another folder"
                )

    def _start(self, fold: Fold, settings: LoopSettings, new: bool) -> None:
        if new:
            data = fold.checkpoint(self.clock())
            (place,) = self.store.append([data])
            self.loop_state.apply(replace(data, seq=place))
            if not any(True for _ in self.store.rows(0, place, ("join", "eviction"), self.name)):
                fold.through = place  # else an import made them, and the model learns them
        trouble, saved = None, fold.through
        try:
            if not fold.advance():
                saved = fold.through
        except (ValueError, ArithmeticError, OSError) as error:
            trouble = f"learning stopped after record {fold.through}: {error}"
        operation = settings.operation
        self.learner = Learner(fold, operation.publish, operation.checkpoint, self._save, self._evict)
        self.learner.problem, self.learner.saved, self.learner.is_due = trouble, saved, self._is_due
        last = self.store.last
        self.learner.seen = fold.through if trouble is None else last
        self.writer = Writer(self.store, self.name, self.clock, self.joiner, self.learner.add_records, last)
        if (
            self.loop_state.settings is not None
        ):  # what the writer joins before `_apply` is by settings that the log says
            self.joiner.settings = self.loop_state.settings
        self.writer.counted, self.writer.is_behind = self.ledger.add_record, self.learner.is_behind
        self.learner.start()
        self.writer.start()
        if settings != self.loop_state.from_file:
            self._put_change(settings, FILE)
        self._apply()
        if self.has_forgotten_records(fold):
            self.learner.run_soon(lambda: self.learner.save_checkpoint(always=True))
        if self.building is None:
            promotion.resume(self)
        self.evaluations.resume()

    def warm(self, bandit: Any) -> None:
        """Compile the code that requests will need, by calls of `bandit`, a copy of a candidate model."""
        compile_paths(bandit, self.settings)

    def stop(self) -> None:
        """Write and learn what was accepted, save a checkpoint, and end. Later requests are refused.

        Joining and learning take a few seconds at most. The next start continues with the rest.
        """
        self.evaluations.stop()
        building = self.building
        if building is not None:
            building.stop()
        self.writer.stop()
        self.learner.stop()

    def _save(self) -> None:
        """Save checkpoints as files, and their records in the log; called by the learner's thread."""
        candidate = self.learner.candidate
        records = [self.save_model(self.learner.fold, SERVING)]
        if candidate is not None:
            records.append(self.save_model(candidate.fold, STAGED))
        if not self.writer.is_alive():
            self.store.append(records)
        elif any(one.data is not None for one in records):
            self.put({}, *records)
        else:
            self.writer.submit([*records])

    def save_model(self, fold: Fold, state: str, why: str = "") -> Checkpoint:
        """Save a model as a file, and return the checkpoint record for the log.

        `fold` holds the model with its position in the log, and `state` and `why` say what becomes of it. The learner's
        thread calls this method.
        """
        with self.change_lock, self.writer.counting:
            known, loop_state = self.writer.last, self.loop_state
            since, scan, blocks = self.joiner.replay_start(known), self.joiner.scan_start(known), self.joiner.blocks()
            ledger = self.ledger.to_dict() if self.ledger.has_state else None
        kept = checkpoints.CheckpointMeta(
            loop=self.name, line=fold.line, through=fold.through, rounds=fold.bandit.n_learned, since=since,
            known=known,
            mark=checkpoints.make_mark(self.store, known), loop_state=loop_state, rewarded=fold.rewarded_arms(),
            read=max(fold.read, fold.through), scan=scan, ledger=ledger,
        )  # fmt: skip
        return checkpoints.save_checkpoint(
            self.folder, self.store, kept, fold, self.clock(), state, why, self.wholes, blocks
        )

    def _bytes_written(self) -> int:
        return self.writer.bytes_written

    def _is_due(self) -> bool:
        return self.wholes.is_due(self.learner.folds())

    def _evict(self, arms: list[str]) -> Future[Any]:
        """Write to the log that models forget arms; called by the learner's thread."""
        written: Future[Any] = self.writer.submit([Eviction(loop=self.name, time=0, arms=arms)])
        return written

    def has_forgotten_records(self, fold: Fold) -> bool:
        """Return True if a model cannot be learned again, because records were erased from the log.

        `fold` holds the model with its position in the log.
        """
        return checkpoints.has_forgotten_records(
            self.store, self.name, self.loop_state.lines.each[fold.line], fold.through
        )

    # ---- settings ----

    @property
    def settings(self) -> LoopSettings:
        """Present settings of the loop."""
        assert self.loop_state.settings is not None
        return self.loop_state.settings

    def change_settings(self, new: LoopSettings, dry: bool = False) -> list[str]:
        """Replace the settings, and return the names of those that differ.

        `new` has all settings. With `dry` True they are only compared. Another model becomes a candidate. Raises
        ApiError if the features, the names of outcomes or the loop's name would change.
        """
        old = self.settings
        different = diff_settings(old, new)
        fixed = immutable_settings(new)
        parts = [name for name, value in immutable_settings(old).items() if fixed[name] != value]
        if parts:
            message = f"{', '.join(parts)} must stay as the log has it: begin another loop for other rows"
            raise ApiError(409, "SettingsFixed", message)
        if different and not dry:
            with self._orders:
                self._put_change(new, API)
                self._apply()
        return different

    def update_settings(
        self, make: Callable[[LoopSettings], LoopSettings], dry: bool = False
    ) -> tuple[LoopSettings, list[str]]:
        """Replace the settings by those that `make` returns for the present ones.

        Returns the new settings and the names that differ. No other change happens meanwhile. With `dry` True, settings
        are only compared.
        """
        with self._orders:
            new = make(self.settings)
            return new, self.change_settings(new, dry)

    def promote(self, why: str = "promoted") -> None:
        """Let the candidate model take over, for the reason `why`; raise ApiError if there is no candidate."""
        with self._orders:
            promotion.promote(self, why)

    def stage_model(self, model: Model, why: str) -> None:
        """Let another model learn the log, and take over when it has caught up; `why` is the reason as a sentence."""
        with self._orders:
            bandit = _begin_for_request(replace(self.settings, model=model))
            place = promotion.replay_start(self.store, self.name)
            promotion.stage(self, self.settings, model, bandit, place, at_once=True, why=why)

    def rollback(self, name: str, learn: bool = False) -> None:
        """Return to the model of the checkpoint `name`; raise ApiError if there is no such checkpoint.

        If `learn` is True, the model then learns the rewards that were joined since the checkpoint.
        """
        with self._orders:
            promotion.rollback(self, name, learn)

    def resume(self, outcome: str) -> None:
        """Restart the test of a broken guardrail (the limit of an outcome) from the next decision on.

        Raises ApiError if no guardrail of the outcome is broken.
        """
        with self._orders:
            promise = self.ledger.promise
            if promise is None or outcome not in promise.tests:
                raise ApiError(404, "GuardrailNotFound", f"there is no guardrail {quote(outcome)}")
            if not promise.tests[outcome].is_harmful:
                raise ApiError(409, "GuardrailNotBroken", f"guardrail {quote(outcome)} is not broken")
            self.put({**settings_record(API, self.settings), RESUME: outcome})

    def install_model(self, bandit: Any, why: str, through: int | None = None) -> int:
        """Install a model that was not learned from this log, or not from its beginning, and return its model number.

        It learns the rewards joined after `through` (default None: from now on) and takes over at once. `bandit` must
        agree with the present settings; `why` is a sentence.
        """
        with self._orders:
            present, place = self.settings, self.learner.seen if through is None else through
            promotion.stage(self, present, present.model, bandit, place, at_once=True, why=why)
            return self.loop_state.lines.next - 1

    def discard_candidate(self) -> None:
        """Discard the candidate model; raise ApiError if there is none."""
        with self._orders:
            if not promotion.discard_candidate(self, "given up"):
                raise ApiError(409, "NoCandidate", "there is no candidate")

    def _put_change(self, new: LoopSettings, origin: str) -> None:
        """Replace the settings; if they name another model, begin to train it as a candidate beside the present one.

        `origin` says where the settings come from.
        """
        present = self.loop_state.settings
        if present is None or new.model == present.model:
            self.put(settings_record(origin, new))
            return
        settings = replace(new, model=present.model)
        candidate = self.loop_state.lines.candidate
        if candidate is not None and self.loop_state.staged[candidate.number].model == new.model:
            self.put(settings_record(origin, settings, new.model, candidate.number))
        else:
            bandit = begin_bandit(new) if origin == FILE else _begin_for_request(new)
            place = promotion.replay_start(self.store, self.name)
            promotion.stage(self, settings, new.model, bandit, place, origin=origin)

    def put(self, settings: dict[str, Any], *checkpoints: Checkpoint) -> None:
        """Write a settings record and checkpoint records to the log, then change the loop's state as they say.

        `settings` is the content of the settings record; with {} none is written.
        """
        with self.change_lock:
            records: list[Record] = [*checkpoints]
            if settings:
                version = f"{self.loop_state.version + 1}"
                records.insert(0, Settings(loop=self.name, time=0, settings=settings, version=version))
            seqs, loop_state = self.writer.submit(records).result(), self.loop_state.copy()
            for seq, record in zip(seqs, records, strict=True):
                loop_state.apply(replace(record, seq=seq))
            self.loop_state = loop_state
        whole = {one.line for one in checkpoints if one.data is not None}
        for fold in self.learner.folds() if whole else ():
            if fold.line in whole:
                self.wholes.note_stored(fold)

    def _apply(self) -> None:
        settings = self.settings
        self.wholes.joins = settings.operation.whole
        self.learner.publish, self.learner.checkpoint = settings.operation.publish, settings.operation.checkpoint
        self.learner.shared = settings.mode == "canary"
        self.learner.known_arms, self.learner.protected_arms = settings.limits.known_arms, {*settings.arms}

    # ---- decisions and what came of them ----

    def decide(self, request: DecideRequest) -> Future[Decision]:
        """Return a future of the record of a decision, set once it is durable.

        A request that was decided before under its id gets the earlier record. Raises ApiError for a request that
        cannot be decided, and for another request with the same id.
        """
        future = new_future()
        self.decide_for(request, future)
        return future

    def decide_for(self, request: DecideRequest, result: ResultSink) -> None:
        """Make a decision as `decide` does, but set its record as the result of the given object `result`."""
        print = fingerprint(request)
        try:
            self._decide(request, new_id() if request.id is None else request.id, print, result)
        except ApiError:
            if request.id is None or (before := self._find_decision(request.id)) is None:
                raise
            check_same_request((before.extra or {}).get(REQUEST), print, request.id)
            result.set_result(before)

    def _find_decision(self, identity: str) -> Decision | None:
        """Return the decision with an id from the log, or None."""
        found = self.store.find(self.name, identity)
        return next((record for record in found if isinstance(record, Decision)), None)

    def _decide(self, request: DecideRequest, identity: str, print: str, result: ResultSink) -> None:
        """Make a decision, or find the earlier one with the id `identity`, and set its record in `result`.

        `print` is the fingerprint of the request.
        """
        loop_state = self.loop_state
        assert loop_state.settings is not None
        copies, now = self.learner.copies, self.clock()
        record = make_record(
            copies, loop_state.settings, loop_state.version, request, identity, print, now, self.ledger
        )

        def make_result(found: Decision) -> Decision:
            check_same_request((found.extra or {}).get(REQUEST), print, identity)
            return found

        if self.ledger.is_active:
            result = Releasing(result, lambda: self.ledger.release(identity))
        try:
            self.writer.submit([record], keep_times=True, reply=(result, make_result))
        except StoreError:
            self.ledger.release(identity)
            raise

    def outcomes(self, requests: list[OutcomeRequest]) -> tuple[list[Outcome], Future[list[int]]]:
        """Write outcomes, and return their records and a future of their sequence numbers.

        Outcomes that the log has already get the sequence number 0. Raises ApiError for values that the settings do not
        allow.
        """
        settings = self.settings
        limits, (least, largest) = settings.limits, settings.reward.range
        if not 1 <= len(requests) <= limits.batch:
            raise bad_argument(f"a request must have from 1 to {limits.batch} outcomes, got {len(requests)}")
        records = []
        for one in requests:
            check_name("id and key", limits.id, one.id, one.key)
            if one.slot is not None and not 0 <= one.slot < limits.slots:
                raise bad_argument(f"slot must be from 0 to {limits.slots - 1}, got {one.slot}")
            if one.value is None and not one.outcomes:
                raise bad_argument("value or outcomes must be given")
            if one.value is not None and not abs(one.value) <= LARGEST:
                raise bad_argument(f"value must be a finite number up to {LARGEST:.0e}, got {one.value}")
            if one.value is not None and settings.reward.aggregation != "sum" and not least <= one.value <= largest:
                raise bad_argument(f"value must be from {least} to {largest} (reward.range), got {one.value}")
            fields: dict[str, Any] = {"loop": self.name, "time": 0, "id": one.id, "slot": one.slot}
            if one.value is not None:
                records.append(Outcome(value=one.value, request=one.key, **fields))
            for name, value in (one.outcomes or {}).items():
                check_outcome(settings, name, value)
                key = None if one.key is None else f"{one.key}\n{name}"
                check_name("key and name of an outcome together", LONGEST_NAME, key)
                records.append(Outcome(value=value, name=name, request=key, **fields))
        return records, self.writer.submit([*records])

    def activate(self, identity: str) -> Future[list[int]]:
        """Record that the deferred decision with the id `identity` has been shown.

        Returns a future of a list with one number, the sequence number of this record. Raises ApiError if there is no
        such decision.
        """
        if not any(isinstance(one, Decision) for one in self.store.find(self.name, identity)):
            raise ApiError(404, "EventNotFound", f"there is no decision {quote(identity)}")
        return self.writer.submit([Activation(loop=self.name, time=0, id=identity)])

    # ---- how it is ----

    def problem(self) -> str | None:
        """Return why the loop is not ready, in a sentence; None if it is ready."""
        if not self.writer.is_alive() or not self.learner.is_alive():
            return "it is stopping"
        if self.writer.problem is not None:
            return f"the log cannot be written: {self.writer.problem}"
        return self.learner.problem

    def numbers(self) -> dict[str, float]:
        """Return the counters of this process, and sequence numbers of the log, by name.

        "last" is the last sequence number written, "through" the last one learned. "waiting" counts decisions that wait
        for outcomes, "rounds" rows that the model has learned, and "lag" groups of records not yet learned. The other
        names are "learned", "commits", "model", "alarms", "checkpoint_failed" and "evicted".
        """
        return {
            "waiting": len(self.joiner),
            "learned": self.learner.learned,
            "rounds": self.learner.snapshot.n_learned,
            "lag": self.learner.lag,
            "last": self.writer.last,
            "through": self.learner.through,
            "commits": self.writer.commits,
            "model": self.learner.fold.line,
            "alarms": count_alarms(self.learner.fold.bandit),
            "checkpoint_failed": float(self.learner.failure is not None),
            "evicted": self.learner.evicted,
        }


class Releasing:
    """Receiver of a decision's result that first releases the amounts of budgets which the decision had reserved.

    `release` is called once; then the result is passed on.
    """

    def __init__(self, result: ResultSink, release: Callable[[], object]) -> None:
        self._result, self._release = result, release

    def set_result(self, result: Any, /) -> None:
        """Release the amounts that the decision had reserved, and pass the result on."""
        self._release()
        self._result.set_result(result)

    def set_exception(self, exception: BaseException, /) -> None:
        """Release the amounts that the decision had reserved, and pass the error on."""
        self._release()
        self._result.set_exception(exception)


def check_outcome(settings: LoopSettings, name: str, value: float) -> None:
    """Raise ApiError for an outcome that the settings do not know, or whose value they do not allow."""
    known = settings.outcomes.get(name)
    if known is None:
        raise bad_argument(f"outcomes must be of the settings, {quote([*settings.outcomes])}, got {quote(name)}")
    if not abs(value) <= LARGEST:
        raise bad_argument(f"{name} must be a finite number up to {LARGEST:.0e}, got {value}")
    if known.budget is not None and value < 0.0:
        raise bad_argument(f"{name} must be at least 0, for it is spent from a budget, got {value}")
    if known.guardrail is not None and not 0.0 <= value <= known.guardrail.upper:
        raise bad_argument(f"{name} must be from 0 to {known.guardrail.upper} (guardrail.upper), got {value}")


def count_alarms(bandit: Any) -> int:
    """Return how often a model forgot everything after a detected change; 0 for a model without a detector."""
    return int(bandit.choices().get("alarms", 0)) if hasattr(bandit, "choices") else 0


def _begin_for_request(settings: LoopSettings) -> Any:
    """Make the bandit with which a model begins. Raises ApiError if its source cannot be used."""
    try:
        return begin_bandit(settings)
    except ValueError as error:
        raise ApiError(409, "SourceNotUsable", str(error)) from None


def compile_paths(bandit: Any, settings: LoopSettings) -> None:
    """Compile the code that requests will need; `bandit` is a copy, which is changed."""
    dim, names = settings.features.dim, ["a", "b"]
    contexts: Any = np.ones(dim) if settings.features.arms in (0, []) else np.ones((len(names), dim))
    if takes_records(settings):
        contexts = warm_up_contexts(names)
    time = {"time": 1.0} if bandit.needs_time else {}
    if bandit.needs_time and bandit.n_learned:
        return  # its clock stands later
    for k in (1, len(names)):
        decide_from_log(bandit.snapshot(), contexts, names, k, id="warm", **time)
    if bandit.outcomes:
        decide_from_log(bandit, contexts, names, 1, id="warm", weights={"reward": 1.0}, **time)
    each = [decide_from_log(bandit, contexts, names, 1, id=id, **time) for id in ("warm", "warmer", "warmest")]
    least, largest = settings.reward.range
    reward = min(max(0.0, least), largest)
    bandit.learn(each[:2], [reward, reward], **time)
    bandit.learn(each[2], reward, **time)
    files.to_bytes(bandit)
