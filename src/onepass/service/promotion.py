"""Models of a loop: how one is staged, takes over, is given up, or comes back.

    PUT settings with another model, promote {evaluation}  ->  stage: a candidate from nothing, by replay of the log
    rollback {checkpoint}                                  ->  stage: a model as it was, that goes on from here
    caught up, promote {}, better by its share             ->  take over
    failed, another one came, DELETE                       ->  give up

Each is a record of the log, durable before it counts, and so is which model decided what (log/lines.py). Models are
exchanged by the learner's thread alone: others ask it, and hold no lock meanwhile.
"""

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from msgspec import to_builtins
from msgspec.structs import replace

from onepass.log.lines import RETIRED, SERVING, STAGED, Line
from onepass.log.records import Checkpoint, Decision
from onepass.log.replay import Fold
from onepass.log.store import Store, StoreError
from onepass.service import models
from onepass.service.candidates import Candidate
from onepass.service.learner import Learner
from onepass.service.messages import ModelAnswer, Refused, SettingsAnswer
from onepass.service.settings import LoopSettings, Model
from onepass.service.standing import API, TAKEOVER, Standing, said
from onepass.service.trial import Trial
from onepass.service.writer import promise

ASKED = 60.0  # seconds for the learner's thread to do what it is asked


class Home(Protocol):
    """What of a loop (loop.py) its models need. changing: held while what stands changes; orders: held by those who
    ask for a change, never by the learner's thread; building: the candidate."""

    name: str
    store: Store
    folder: Path
    standing: Standing
    learner: Learner
    building: Candidate | None

    @property
    def changing(self) -> Any:
        """A lock."""
        ...

    @property
    def settings(self) -> LoopSettings:
        """In force."""
        ...

    def put(self, settings: dict[str, Any], *checkpoints: Checkpoint) -> None:
        """Durable, and then in force."""
        ...

    def saved(self, fold: Fold, state: str, why: str = "") -> Checkpoint:
        """A model as a file, and its record."""
        ...

    def fold_of(self, line: int, found: Any = None) -> Fold:
        """A model as a checkpoint has it, or at its beginning."""
        ...

    def lost_rows(self, fold: Fold) -> bool:
        """Whether what a model has learned cannot be learned again."""
        ...

    def warm(self, bandit: Any) -> None:
        """Compile what requests will need."""
        ...


# ---- by those who ask ----


def stage(
    home: Home,
    settings: LoopSettings,
    model: Model,
    bandit: Any,
    through: int,
    *,
    origin: str = API,
    at_once: bool = False,
    why: str = "",
) -> None:
    """Put other settings in force, and a model beside the present one, which will learn the joins after a place.

    settings: with the present model; model, bandit: the candidate's; through: the place; origin: of the settings;
    at_once: whether it takes over when it has caught up, whatever the mode (default False); why: a sentence.
    """
    while True:
        give_up(home, "another candidate came")
        with home.changing:
            if home.building is None:
                number = home.standing.lines.next
                fold = Fold(home.store, home.name, bandit, through, line=number)
                record = fold.checkpoint(0, state=STAGED, why=why)
                home.put(said(origin, settings, model, number, at_once), record)
                build(home, fold)
                return


def beginning(store: Store, loop: str) -> int:
    """The place after which every join has its decision in the log: 0, but where its first records were dropped."""
    held, last = set[str](), 0
    for record in store.read(0, None, ("decision", "join"), loop) if store.first > 1 else ():
        if isinstance(record, Decision):
            held.add(record.id)
        elif record.id in held:
            held.discard(record.id)
        elif not record.again:
            last = record.seq
    return max(last, store.first - 1)


def resume(home: Home) -> None:
    """Build the candidate that the log has; one that cannot be restored ends."""
    line = home.standing.lines.candidate
    if line is None:
        return
    found = models.newest(home.folder, home.store, home.name, line.number)
    try:
        fold = home.fold_of(line.number, found)
    except (ValueError, StoreError) as error:
        fields: dict[str, Any] = {"line": line.number, "state": RETIRED, "why": str(error)}
        home.put({}, Checkpoint(loop=home.name, time=0, through=line.through, digest="", **fields))
    else:
        build(home, fold)


def build(home: Home, fold: Fold) -> None:
    """Let a candidate catch up, in a thread of its own."""
    line = home.standing.lines.each[fold.line]
    wanted = home.standing.wanted[fold.line].settings

    trial = Trial(fold.line, wanted.reward.range, wanted.share, 1.0 - wanted.promotion.level)
    home.building = Candidate(
        fold, seen=lambda: home.learner.seen, warm=home.warm, do=home.learner.do, trial=trial, since=line.place,
        arrived=lambda one: arrived(home, one), failed=lambda one, why: failed(home, one, why),
        taught=lambda one: settle(home, one),
    )  # fmt: skip
    home.building.start()


def give_up(home: Home, why: str) -> bool:
    """End the candidate, if there is one, and say whether there was."""
    candidate = home.building
    if candidate is None:
        return False
    candidate.stop()
    ask(home, lambda: retire(home, candidate, why))
    return True


def promote(home: Home, why: str) -> None:
    """Let the candidate take over, now or when it has caught up; Refused where there is none."""
    candidate = home.building
    if candidate is None:
        raise Refused(
            409, "NoCandidate", "there is no candidate: PUT settings with another model, or name an evaluation"
        )
    candidate.due = why
    ask(home, lambda: settle(home, candidate, patient=False))


def back(home: Home, name: str, learn: bool) -> None:
    """Stage a model as a checkpoint has it, to take over at once. name: of the checkpoint; learn: whether it learns
    what was joined since. Refused where there is no such checkpoint."""
    kept = next((one for one in models.kepts(home.folder, home.store, home.name) if one.name == name), None)
    found = None if kept is None else models.whole(home.folder, kept)
    if found is None:
        raise Refused(404, "CheckpointNotFound", f"there is no checkpoint {name}: GET models lists those there are")
    wanted = home.standing.wanted.get(found.kept.line)
    if wanted is None:
        raise Refused(404, "CheckpointNotFound", f"the settings of checkpoint {name} are not known any more")
    through = found.kept.through if learn else home.learner.seen
    stage(home, home.settings, wanted.model, found.bandit, through, at_once=True, why=f"back to checkpoint {name}")


def ask(home: Home, what: Callable[[], object]) -> None:
    """Let the learner's thread do something, and wait for it; what it raises."""
    if threading.current_thread() is home.learner:
        what()
        return
    future = promise()

    def done() -> None:
        try:
            what()
            future.set_result(None)
        except BaseException as error:
            future.set_exception(error)

    home.learner.do(done)
    try:
        future.result(ASKED)
    except TimeoutError:
        raise StoreError("the learner does not answer: ask GET what has become of it") from None


# ---- by the learner's thread ----


def arrived(home: Home, candidate: Candidate) -> None:
    """A candidate has caught up."""
    home.learner.candidate = candidate
    if home.lost_rows(candidate.fold):
        home.learner.keep(always=True)
    home.learner.exchange()
    if home.standing.wanted[candidate.line].at_once:
        candidate.due = home.standing.lines.each[candidate.line].why or "it has caught up"
    settle(home, candidate)


def settle(home: Home, candidate: Candidate, patient: bool = True) -> None:
    """Let a candidate take over where it is time. patient: whether a log that cannot be written is asked again after
    the next joins (default True), else that is raised."""
    if home.learner.candidate is not candidate:
        return
    settings = home.settings
    if candidate.due is None and settings.mode != "canary":
        candidate.due = "it has caught up"
    if candidate.trial is not None:
        gain = candidate.trial.gain()
        if settings.reward.range != home.standing.wanted[candidate.line].settings.reward.range:
            candidate.trial = None  # gains may leave the range that limits rest on
        elif candidate.due is None and settings.promotion.automatic and gain.better:
            candidate.due = f"better: {gain.said()}"
    if candidate.due is not None:
        with contextlib.suppress(OSError) if patient else contextlib.nullcontext():
            take_over(home, candidate, candidate.due)


def take_over(home: Home, candidate: Candidate, why: str) -> None:
    """A candidate serves from here on. The model before it is saved first, so that there is a way back to it as it was
    last, unless its learning has failed."""
    with home.changing:
        records = [] if home.learner.trouble is not None else [home.saved(home.learner.fold, SERVING)]
        records.append(home.saved(candidate.fold, SERVING, why))
        settings = replace(home.settings, model=home.standing.wanted[candidate.line].model)
        home.put(said(TAKEOVER, settings), *records)
        home.building = None
    home.learner.go_on(candidate)


def failed(home: Home, candidate: Candidate, why: str) -> None:
    """A candidate cannot learn what was learned; where the log cannot say so it is built again after a restart."""
    with contextlib.suppress(OSError):
        retire(home, candidate, why)


def retire(home: Home, candidate: Candidate, why: str) -> None:
    """A candidate ends: it decides nothing any more, and then its record says up to where it has learned."""
    if home.building is not candidate:
        return
    if home.learner.candidate is candidate:
        home.learner.candidate = None
        home.learner.exchange()
    fields: dict[str, Any] = {"line": candidate.line, "state": RETIRED, "why": why}
    record = Checkpoint(loop=home.name, time=0, through=candidate.fold.through, digest="", **fields)
    with home.changing:
        try:
            home.put({}, record)
        finally:
            home.building = None


# ---- how it is ----


def settings_of(home: Home, changed: list[str] | None = None, new: LoopSettings | None = None) -> SettingsAnswer:
    """What stands, for those who ask. changed: what a change changed; new: settings that are not in force."""
    standing = home.standing
    assert standing.settings is not None
    last = standing.lines.each.get(standing.lines.next - 1)
    candidate = None if last is None or last.number <= standing.lines.serving else model_of(home, standing, last)
    settings = standing.settings if new is None else new
    return SettingsAnswer(
        settings=settings.plain(), version=f"{standing.version}", changed=changed or [],
        model_number=standing.lines.serving, candidate=candidate,
    )  # fmt: skip


def model_of(home: Home, standing: Standing, line: Line) -> ModelAnswer:
    """A model of the loop."""
    state, through, gain = line.state, line.end, None
    building, wanted = home.building, standing.wanted.get(line.number)
    if line.state == STAGED and building is not None and building.line == line.number:
        state, through = "waiting" if building.ready else "building", building.fold.through
        if building.trial is not None and building.trial.known is not None:
            gain = building.trial.known._asdict()
    elif line.state == SERVING:
        through = home.learner.through
    model = {} if wanted is None else to_builtins(wanted.model)
    return ModelAnswer(model_number=line.number, state=state, why=line.why, model=model, through=through, gain=gain)
