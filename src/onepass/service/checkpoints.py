"""Checkpoints as files: NAME.models/SEQ.model holds the model, SEQ.json the place in the log from which to continue.

A checkpoint can always be computed again from the log. If one is damaged or belongs to another log, an earlier one is
used. If there is none, the log is learned from its beginning. The file is written first, then its record in the log.
"""

import contextlib
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from onepass.foundation import atomic_write, files
from onepass.log.model_lineage import SERVING, STAGED, ModelLine
from onepass.log.records import Checkpoint, Forgotten
from onepass.log.replay import Fold, bandit_from_checkpoint
from onepass.log.store import Row, Store
from onepass.service.backlog import Block, load_block, save_block
from onepass.service.loop_state import LoopState
from onepass.service.whole_checkpoints import WholeCheckpoints

KEPT = 3  # checkpoints in the folder of a model, the present one or a candidate
FORMER = 4  # models before, of which the last checkpoint is kept: of those that have served, and of those that have not
DIGITS = 15  # of a place in a file's name
NAME = re.compile(r"(\d+)(?:-(\d+))?")  # of a checkpoint's files: the place, and the model but for the first
LEARNED = ("decision", "join")  # what learning reads
FORGOTTEN = str(Forgotten.__struct_config__.tag)


class RecordMark(msgspec.Struct, frozen=True):
    """Mark that identifies a record of the log: it shows if a log was restored from a copy or lost its end.

    `crc` is the checksum of the record's row. `time` is the record's time in microseconds, which an erasure keeps.
    """

    crc: int
    time: int

    def names(self, row: Row | None) -> bool:
        """Return True if a row of the log is the marked record, or the remainder of the record after an erasure."""
        return row is not None and (row.crc == self.crc or (row.kind == FORGOTTEN and row.time == self.time))


class CheckpointMeta(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata of a checkpoint, stored beside the model.

    - loop, line: name of the loop, and model number.
    - through: sequence number of the last join learned. A join is a record of the final rewards of a decision.
    - rounds: number of rows learned.
    - known, mark: last sequence number of the log when the checkpoint was made, and the mark of the record there, by
      which another log is recognized.
    - loop_state: state of the loop up to that record.
    - since: sequence number after which a restart reads the log to find the decisions that wait for rewards, if the
      files in `waiting` are missing or damaged.
    - scan: sequence number after which a restart reads the log if these files can be read.
    - waiting: files of all decisions that waited at `known`, each with the number of its decisions that are finished.
    - digest: SHA-256 of the model's bytes.
    - rewarded: arms that had an outcome, the one whose last outcome is oldest first.
    - joins, bytes: how many joins were learned, and bytes written to the log, since the last checkpoint whose model is
      stored in the log itself.
    - read: sequence number up to which the log has been read; no join between `through` and it is left to learn.
    - ledger: state of budgets and of the baseline at `known`, None if the loop has none.
    """

    loop: str
    line: int
    through: int
    rounds: int
    since: int
    known: int
    mark: "RecordMark"
    loop_state: LoopState
    digest: str = ""
    rewarded: list[str] = []
    joins: int = 0
    bytes: int = 0
    read: int = 0
    scan: int = 0
    waiting: list[tuple[str, int]] = []
    ledger: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """Name of the files of the checkpoint, without their endings."""
        place = f"{self.through:0{DIGITS}d}"
        return place if self.line == 0 else f"{place}-{self.line}"


class StoredCheckpoint(NamedTuple):
    """Checkpoint read from files: the model `bandit` and its metadata `kept`."""

    bandit: Any
    kept: CheckpointMeta


def save_checkpoint(
    folder: Path,
    store: Store,
    kept: CheckpointMeta,
    fold: Fold,
    time: int,
    state: str = SERVING,
    why: str = "",
    wholes: WholeCheckpoints | None = None,
    blocks: Iterable[tuple[Block, int]] = (),
) -> Checkpoint:
    """Write a checkpoint of a model into a folder, remove surplus checkpoints, and return the record for the log.

    The record contains the model as well if it cannot be learned again from the log, or if that is due
    (whole_checkpoints.py). `kept` is the metadata, `fold` the model with its position in the log, `state` and `why` say
    what becomes of the model, and `wholes` is the schedule of complete records. `blocks` are the decisions that wait,
    each block with its number of finished rows. `time` is the time of the record in microseconds of Unix time.
    """
    data, line = files.to_bytes(fold.bandit), kept.loop_state.lines.each[kept.line]
    whole = has_forgotten_records(store, kept.loop, line, kept.through)
    if wholes is not None:
        whole = whole or wholes.is_due_for(fold, len(data))
        if not whole:
            kept = msgspec.structs.replace(kept, joins=fold.joins, bytes=wholes.bytes_since(fold.line))
    folder.mkdir(exist_ok=True)
    waiting = [(save_block(folder, block), done) for block, done in blocks]
    kept = msgspec.structs.replace(kept, digest=hashlib.sha256(data).hexdigest(), waiting=waiting)
    place = folder / f"{kept.name}.model"
    atomic_write.write_atomically(place, data)
    atomic_write.write_atomically(place.with_suffix(".json"), msgspec.json.encode(kept))
    remove_old(folder, store, kept)
    return Checkpoint(
        loop=kept.loop, time=time, through=kept.through, digest=kept.digest, path=f"{folder.name}/{place.name}",
        data=data if whole else None, model=f"{fold.bandit.n_learned}", line=kept.line, state=state, why=why,
        begun=line.through if whole else None,
    )  # fmt: skip


def has_forgotten_records(store: Store, loop: str, line: ModelLine, through: int) -> bool:
    """Return True if a record that a model has learned, or may have learned, was erased later.

    Such a model cannot be learned again from the log, so the next checkpoint must contain it. `line` is the entry of
    the model in the loop's list of models, and `through` the sequence number of the last rewards that the model
    learned.
    """
    rows = store.read(line.whole, through, ("forgotten",), loop)
    return any(one.was in LEARNED for one in rows)


def remove_old(folder: Path, store: Store, newest: CheckpointMeta) -> None:
    """Remove surplus checkpoints, and temporary files of killed processes.

    The last 3 of the serving model and of the candidate stay. Of earlier models the last checkpoint stays, for the 4
    that served last and for as many that never served. Checkpoints of another log, such as before a restore from a
    copy, do not count. `newest` is the metadata of the checkpoint just saved.
    """
    found, waiting = dict[int, list[str]](), dict[str, list[str]]()
    for kept in reversed([*list_checkpoints(folder, store, newest.loop)]):
        found.setdefault(kept.line, []).append(kept.name)
        waiting[kept.name] = [name for name, _ in kept.waiting]
    lines = newest.loop_state.lines
    present = {lines.serving, *(line for line in found if line not in lines.each)}
    present |= {one.number for one in lines.each.values() if one.state == STAGED}
    former = [line for line in sorted(found) if line not in present]
    served = [line for line in former if lines.each[line].served][-FORMER:]
    others = [line for line in former if not lines.each[line].served][-FORMER:]
    names = {name for line in present & found.keys() for name in found[line][-KEPT:]}
    names |= {found[line][-1] for line in (*served, *others)}
    wanted = {f"{name}{ending}" for name in names for ending in (".json", ".model")}
    wanted.update(*(waiting[name] for name in names))
    for old in folder.iterdir():
        if old.name not in wanted:
            with contextlib.suppress(OSError):
                old.unlink()


def newest_checkpoint(folder: Path, store: Store, loop: str, line: int | None = None) -> StoredCheckpoint | None:
    """Return the newest intact checkpoint of this log, or None if there is none.

    `line` is the number of the model; by default any model counts.
    """
    for kept in list_checkpoints(folder, store, loop):
        if line in (None, kept.line) and (found := load_checkpoint(folder, kept)) is not None:
            return found
    return None


def list_checkpoints(folder: Path, store: Store, loop: str) -> Iterator[CheckpointMeta]:
    """Yield the metadata of a loop's checkpoints in a folder, the newest first.

    Checkpoints of another log than `store` and damaged files are left out.
    """
    for place in sorted(folder.glob("*.json"), reverse=True):
        try:
            kept = msgspec.json.decode(place.read_bytes(), type=CheckpointMeta)
        except (OSError, ValueError):
            continue
        if kept.loop == loop and kept.mark.names(row_at(store, kept.known)):
            yield kept


def count_unusable(folder: Path, line: int, through: int) -> int:
    """Return the number of a model's checkpoints that are later than its newest usable one.

    `line` is the model's number, and `through` the sequence number of the last rewards in the newest usable checkpoint.
    """
    names = (NAME.fullmatch(one.stem) for one in folder.glob("*.json"))
    return sum(int(found[1]) > through and int(found[2] or 0) == line for found in names if found is not None)


def load_checkpoint(folder: Path, kept: CheckpointMeta) -> StoredCheckpoint | None:
    """Return the checkpoint with the metadata `kept` and its model, or None if its files are damaged."""
    try:
        data = (folder / f"{kept.name}.model").read_bytes()
        return (
            StoredCheckpoint(files.from_bytes(data), kept) if hashlib.sha256(data).hexdigest() == kept.digest else None
        )
    except (OSError, ValueError):
        return None


def load_backlog(folder: Path, found: StoredCheckpoint | None) -> list[Block] | None:
    """Return the decisions that waited for rewards at the checkpoint `found`.

    Returns None if there is no checkpoint, or if its files are missing or damaged; the log must then be read instead.
    """
    if found is None or found.kept.scan == 0:
        return None
    try:
        return [load_block(folder, name, done) for name, done in found.kept.waiting]
    except (OSError, ValueError):
        return None


def load_fold(folder: Path, store: Store, loop: str, line: ModelLine, found: StoredCheckpoint | None) -> Fold:
    """Return the model with which a start continues.

    It is the model of its newest checkpoint in the folder (`found`), or of the last checkpoint whose model is itself
    written in the log, whichever is later. A log that has its beginning has such a checkpoint, with the untrained
    model. `line` says which of the loop's models. Raises ValueError, with a remedy, if there is neither, as after the
    beginning of the log was dropped.
    """
    if found is not None and found.kept.through >= line.whole:
        fold = Fold(store, loop, found.bandit, found.kept.through, line=line.number)
        fold.rewarded, fold.joins = dict.fromkeys(found.kept.rewarded), found.kept.joins
        fold.read = max(found.kept.read, found.kept.through)
        return fold
    saved = store.read(0, None, ("checkpoint",), loop)
    place = max((one.seq for one in saved if one.line == line.number and one.data is not None), default=0)
    if place == 0 or store.first > line.whole + 1:
        raise ValueError(
            f"loop {loop}: model {line.number} cannot be restored: {folder} has no whole checkpoint of it, and the log "
            f"begins with record {store.first}, but the model has learned all that follows record {line.whole}: put "
            f"the checkpoints of a backup into {folder}, or a backup of the log with its beginning in the log's place"
        )
    (record,) = store.read(place - 1, place)
    return Fold(store, loop, bandit_from_checkpoint(record), record.through, line=line.number)


def refuse_remainder(folder: Path, store: Store, loop: str) -> None:
    """Raise ValueError if a loop's first records were dropped from the log and its checkpoints are lost."""
    if store.first > 1 and any(True for _ in store.rows(0, None, None, loop)):
        raise ValueError(
            f"loop {loop} cannot go on: {folder} has no whole checkpoint, and the log begins with record "
            f"{store.first}, after those of its model and settings: put the checkpoints of a backup into {folder}, or "
            "a backup of the log with its beginning in the log's place"
        )


def current_state(store: Store, loop: str, found: StoredCheckpoint | None) -> LoopState:
    """Return the state of a loop, read from its newest checkpoint `found`, if any, and the log after it."""
    loop_state = LoopState() if found is None else found.kept.loop_state.copy()
    for record in store.read(0 if found is None else found.kept.known, None, ("settings", "checkpoint"), loop):
        loop_state.apply(record)
    return loop_state


def last_droppable(folder: Path, store: Store, loop: str) -> int:
    """Return the sequence number up to which a restart of the service does not need the log.

    A restart reads the record that was the last one when a checkpoint was made, the joins (final rewards) that it had
    not learned, and all records about decisions that wait or are learned later. If the serving model or the candidate
    has no usable checkpoint, the restart also reads everything that the model has learned, from its beginning.
    """
    found = newest_checkpoint(folder, store, loop)
    lines = current_state(store, loop, found).lines
    last = store.first - 1 if found is None else min(found.kept.since, found.kept.known - 1)
    through = store.last
    for line in lines.each.values():
        if line.number == lines.serving or line.state == STAGED:
            own = newest_checkpoint(folder, store, loop, line.number)
            through = min(through, line.through if own is None else own.kept.through)
            last = min(last, through, line.place - 1 if own is None else own.kept.known - 1)
    for join in store.read(through, None, ("join",), loop):
        last = min(last, *(one.seq - 1 for one in store.rows_about(loop, join.id)))
    return max(last, store.first - 1)


def refuse_loss(data: Path, store: Store, last: int) -> None:
    """Raise ValueError if dropping the records up to `last` would lose a model that a loop uses.

    `data` is the folder of the checkpoints, the argument of `onepass serve --data`.
    """
    for loop in sorted({row.loop for row in store.rows(0, None, ("settings",), None)}):
        most = last_droppable(data / f"{loop}.models", store, loop)
        if last > most:
            raise ValueError(
                f"loop {loop} needs records {most + 1} to {last} for a restart, since no usable checkpoint in "
                f"{data / f'{loop}.models'} covers them: start the service with this folder and stop it, which makes "
                "one, or name the folder that it uses by --data; decisions that still wait for outcomes (reward.wait) "
                "must stay; nothing was taken out of the log"
            )


def make_mark(store: Store, place: int) -> RecordMark:
    """Return the mark of the record with the sequence number `place`."""
    row = row_at(store, place)
    assert row is not None
    return RecordMark(row.crc, row.time)


def row_crc(store: Store, place: int) -> int | None:
    """Return the checksum of the row with the sequence number `place`, or None if there is none."""
    row = row_at(store, place)
    return None if row is None else row.crc


def row_at(store: Store, place: int) -> Row | None:
    """Return the row with the sequence number `place`, or None if there is none."""
    return next(store.rows(place - 1, place, None, None), None)
