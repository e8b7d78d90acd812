"""Models of a loop: how a candidate is staged, takes over, is discarded, or is restored by a rollback.

    PUT settings with another model, promote {evaluation}  ->  stage: an untrained candidate, which learns the log
    rollback {checkpoint}                                  ->  stage: an earlier model, which continues from now on
    caught up; or promote {}; or better in its canary test ->  take over
    failed; or replaced by another candidate; or DELETE    ->  discard

Each step is a record of the log that is durable before it takes effect, and so is which model decided what
(log/model_lineage.py). Only the learner's thread exchanges models: other threads ask it, and hold no lock meanwhile.
"""

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from msgspec import to_builtins
from msgspec.structs import replace

from onepass.log.model_lineage import RETIRED, SERVING, STAGED, ModelLine
from onepass.log.records import Checkpoint, Decision
from onepass.log.replay import Fold
from onepass.log.store import Store, StoreError
from onepass.service import checkpoints
from onepass.service.canary_test import CanaryTest
from onepass.service.candidate import Candidate
from onepass.service.learner import Learner
from onepass.service.loop_state import API, TAKEOVER, LoopState, settings_record
from onepass.service.messages import ApiError, ModelAnswer, SettingsAnswer
from onepass.service.settings import LoopSettings, Model
from onepass.service.writer import new_future

ASKED = 60.0  # seconds for the learner's thread to do what it is asked


class LoopParts(Protocol):
    """Interface of a loop for the functions of this module, which replace one model by another.

    - name, store, folder: name of the loop, its log, and the folder of its checkpoints.
    - loop_state: settings and models of the loop.
    - learner: thread that trains the serving model.
    - building: thread that trains the candidate model, or None.
    """

    name: str
    store: Store
    folder: Path
    loop_state: LoopState
    learner: Learner
    building: Candidate | None

    @property
    def change_lock(self) -> Any:
        """Lock that is held while the state of the loop changes."""
        ...

    @property
    def settings(self) -> LoopSettings:
        """Present settings of the loop."""
        ...

    def put(self, settings: dict[str, Any], *checkpoints: Checkpoint) -> None:
        """Write settings and checkpoints to the log, then change the loop's state as these records say."""
        ...

    def save_model(self, fold: Fold, state: str, why: str = "") -> Checkpoint:
        """Save a model as a file, and return the checkpoint record for the log.

        `fold` holds the model with its position in the log, and `state` and `why` say what becomes of it.
        """
        ...

    def load_fold(self, line: int, found: Any = None) -> Fold:
        """Return model number `line` with its position in the log, from the checkpoint `found`, or untrained."""
        ...

    def has_forgotten_records(self, fold: Fold) -> bool:
        """Return True if a model cannot be learned again from the log, because some records were erased."""
        ...

    def warm(self, bandit: Any) -> None:
        """Compile the code that requests to the loop will need; `bandit` is a copy of a model."""
        ...


# ---- by those who ask ----


def stage(
    loop: LoopParts,
    settings: LoopSettings,
    model: Model,
    bandit: Any,
    through: int,
    *,
    origin: str = API,
    at_once: bool = False,
    why: str = "",
) -> None:
    """Apply settings, and begin a candidate model that learns the rewards after `through` and may take over.

    - settings: the new settings, with the present model.
    - model, bandit: settings and initial model of the candidate.
    - origin: where the settings come from.
    - at_once: True if the candidate takes over when it has caught up, whatever the mode.
    - why: the reason, as a sentence.
    """
    while True:
        discard_candidate(loop, "another candidate came")
        with loop.change_lock:
            if loop.building is None:
                number = loop.loop_state.lines.next
                fold = Fold(loop.store, loop.name, bandit, through, line=number)
                record = fold.checkpoint(0, state=STAGED, why=why)
                loop.put(settings_record(origin, settings, model, number, at_once), record)
                build(loop, fold)
                return


def replay_start(store: Store, loop: str) -> int:
    """Return the sequence number after which every reward in the log has its decision in the log.

    It is 0 if no records were deleted from the beginning of the log.
    """
    held, last = set[str](), 0
    for record in store.read(0, None, ("decision", "join"), loop) if store.first > 1 else ():
        if isinstance(record, Decision):
            held.add(record.id)
        elif record.id in held:
            held.discard(record.id)
        elif not record.again:
            last = record.seq
    return max(last, store.first - 1)


def resume(loop: LoopParts) -> None:
    """Continue, after a restart, with the candidate that the log names; end the candidate if it cannot be restored."""
    line = loop.loop_state.lines.candidate
    if line is None:
        return
    found = checkpoints.newest_checkpoint(loop.folder, loop.store, loop.name, line.number)
    try:
        fold = loop.load_fold(line.number, found)
    except (ValueError, StoreError) as error:
        fields: dict[str, Any] = {"line": line.number, "state": RETIRED, "why": str(error)}
        loop.put({}, Checkpoint(loop=loop.name, time=0, through=line.through, digest="", **fields))
    else:
        build(loop, fold)


def build(loop: LoopParts, fold: Fold) -> None:
    """Let the candidate model of `fold` learn the log until it has caught up, in a separate thread."""
    line = loop.loop_state.lines.each[fold.line]
    wanted = loop.loop_state.staged[fold.line].settings

    trial = CanaryTest(fold.line, wanted.reward.range, wanted.share, 1.0 - wanted.promotion.level)
    loop.building = Candidate(
        fold, seen=lambda: loop.learner.seen, warm=loop.warm, do=loop.learner.run_soon, trial=trial, since=line.place,
        arrived=lambda one: on_caught_up(loop, one), failed=lambda one, why: on_failure(loop, one, why),
        taught=lambda one: promote_if_due(loop, one),
    )  # fmt: skip
    loop.building.start()


def discard_candidate(loop: LoopParts, why: str) -> bool:
    """End the candidate for the reason `why`, and return True; return False if there is none."""
    candidate = loop.building
    if candidate is None:
        return False
    candidate.stop()
    run_on_learner(loop, lambda: retire(loop, candidate, why))
    return True


def promote(loop: LoopParts, why: str) -> None:
    """Let the candidate take over for the reason `why`, now or when it has caught up; ApiError if there is none."""
    candidate = loop.building
    if candidate is None:
        raise ApiError(
            409, "NoCandidate", "there is no candidate: PUT settings with another model, or name an evaluation"
        )
    candidate.due = why
    run_on_learner(loop, lambda: promote_if_due(loop, candidate, patient=False))


def rollback(loop: LoopParts, name: str, learn: bool) -> None:
    """Let the model of the checkpoint `name` take over; raise ApiError if there is no such checkpoint.

    If `learn` is True, the model then learns the rewards since the checkpoint.
    """
    kept = next(
        (one for one in checkpoints.list_checkpoints(loop.folder, loop.store, loop.name) if one.name == name), None
    )
    found = None if kept is None else checkpoints.load_checkpoint(loop.folder, kept)
    if found is None:
        raise ApiError(404, "CheckpointNotFound", f"there is no checkpoint {name}: GET models lists those there are")
    wanted = loop.loop_state.staged.get(found.kept.line)
    if wanted is None:
        raise ApiError(404, "CheckpointNotFound", f"the settings of checkpoint {name} are not known any more")
    through = found.kept.through if learn else loop.learner.seen
    stage(loop, loop.settings, wanted.model, found.bandit, through, at_once=True, why=f"back to checkpoint {name}")


def run_on_learner(loop: LoopParts, what: Callable[[], object]) -> None:
    """Call the function `what` on the learner's thread, wait for it, and raise its error, if any."""
    if threading.current_thread() is loop.learner:
        what()
        return
    future = new_future()

    def run() -> None:
        try:
            what()
            future.set_result(None)
        except BaseException as error:
            future.set_exception(error)

    loop.learner.run_soon(run)
    try:
        future.result(ASKED)
    except TimeoutError:
        raise StoreError("the learner does not answer: ask GET what has become of it") from None


# ---- by the learner's thread ----


def on_caught_up(loop: LoopParts, candidate: Candidate) -> None:
    """Let a candidate that has learned the log take over if it is due, or else learn along with the serving model."""
    loop.learner.candidate = candidate
    if loop.has_forgotten_records(candidate.fold):
        loop.learner.save_checkpoint(always=True)
    loop.learner.publish_copies()
    if loop.loop_state.staged[candidate.line].at_once:
        candidate.due = loop.loop_state.lines.each[candidate.line].why or "it has caught up"
    promote_if_due(loop, candidate)


def promote_if_due(loop: LoopParts, candidate: Candidate, patient: bool = True) -> None:
    """Let a candidate that has caught up take over; in canary mode, only if it was promoted, or is better.

    That it is better counts only with the setting `promotion.automatic`.

    If `patient` is True and the log cannot be written, the candidate is tried again after the next rewards; otherwise
    the error is raised.
    """
    if loop.learner.candidate is not candidate:
        return
    settings = loop.settings
    if candidate.due is None and settings.mode != "canary":
        candidate.due = "it has caught up"
    if candidate.trial is not None:
        gain = candidate.trial.gain()
        if settings.reward.range != loop.loop_state.staged[candidate.line].settings.reward.range:
            candidate.trial = None  # gains may leave the range that limits rest on
        elif candidate.due is None and settings.promotion.automatic and gain.better:
            candidate.due = f"better: {gain.sentence()}"
    if candidate.due is not None:
        with contextlib.suppress(OSError) if patient else contextlib.nullcontext():
            take_over(loop, candidate, candidate.due)


def take_over(loop: LoopParts, candidate: Candidate, why: str) -> None:
    """Let a candidate serve from here on, for the reason `why`.

    The model before it is saved first, unless its learning has failed, so that a rollback returns to its last state.
    """
    with loop.change_lock:
        records = [] if loop.learner.problem is not None else [loop.save_model(loop.learner.fold, SERVING)]
        records.append(loop.save_model(candidate.fold, SERVING, why))
        settings = replace(loop.settings, model=loop.loop_state.staged[candidate.line].model)
        loop.put(settings_record(TAKEOVER, settings), *records)
        loop.building = None
    loop.learner.install_candidate(candidate)


def on_failure(loop: LoopParts, candidate: Candidate, why: str) -> None:
    """End a candidate that failed for the reason `why`.

    If the end cannot be written to the log, the next start of the service builds the candidate again.
    """
    with contextlib.suppress(OSError):
        retire(loop, candidate, why)


def retire(loop: LoopParts, candidate: Candidate, why: str) -> None:
    """End a candidate for the reason `why`: it makes no more decisions, and the log records how far it had learned."""
    if loop.building is not candidate:
        return
    if loop.learner.candidate is candidate:
        loop.learner.candidate = None
        loop.learner.publish_copies()
    fields: dict[str, Any] = {"line": candidate.line, "state": RETIRED, "why": why}
    record = Checkpoint(loop=loop.name, time=0, through=candidate.fold.through, digest="", **fields)
    with loop.change_lock:
        try:
            loop.put({}, record)
        finally:
            loop.building = None


# ---- how it is ----


def settings_answer(
    loop: LoopParts, changed: list[str] | None = None, new: LoopSettings | None = None
) -> SettingsAnswer:
    """Return the API's answer about settings and candidate.

    `changed` are the names of the settings that a request changed, and `new` are settings that have not been applied.
    """
    loop_state = loop.loop_state
    assert loop_state.settings is not None
    last = loop_state.lines.each.get(loop_state.lines.next - 1)
    candidate = (
        None if last is None or last.number <= loop_state.lines.serving else model_answer(loop, loop_state, last)
    )
    settings = loop_state.settings if new is None else new
    return SettingsAnswer(
        settings=settings.to_dict(), version=f"{loop_state.version}", changed=changed or [],
        model_number=loop_state.lines.serving, candidate=candidate,
    )  # fmt: skip


def model_answer(loop: LoopParts, loop_state: LoopState, line: ModelLine) -> ModelAnswer:
    """Return the API's answer about one model of a loop: its number, state, settings, position and gain.

    `line` is the model's entry in `loop_state`, the state of the loop.
    """
    state, through, gain = line.state, line.end, None
    building, wanted = loop.building, loop_state.staged.get(line.number)
    if line.state == STAGED and building is not None and building.line == line.number:
        state, through = "waiting" if building.ready else "building", building.fold.through
        if building.trial is not None and building.trial.known is not None:
            gain = building.trial.known._asdict()
    elif line.state == SERVING:
        through = loop.learner.through
    model = {} if wanted is None else to_builtins(wanted.model)
    return ModelAnswer(model_number=line.number, state=state, why=line.why, model=model, through=through, gain=gain)
