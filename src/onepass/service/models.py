"""Checkpoints as files: NAME.models/PLACE.model holds the model, PLACE.json beside it from where the log goes on.

A checkpoint is a cache of the log: one that is damaged, or belongs to another log, is passed over for the one before,
and without any the log is learned from its beginning. The file comes first, then its record in the log.
"""

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from onepass.foundation import disk, files
from onepass.log.lines import SERVING
from onepass.log.records import Checkpoint
from onepass.log.store import Store
from onepass.service.standing import Standing

KEPT = 3  # checkpoints in the folder of a model, the present one or a candidate
FORMER = 4  # models before, of which the last checkpoint is kept
DIGITS = 15  # of a place in a file's name


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What stands beside a model. loop: its name; line: which of the loop's models; through: the last join learned;
    crc: of its row, which tells this log from one that lost its end and went on; rounds: rows it has learned; since:
    the place after which the join must read; known: the place up to which `standing` is what the log says; digest:
    SHA-256 of the model's bytes."""

    loop: str
    line: int
    through: int
    crc: int | None
    rounds: int
    since: int
    known: int
    standing: Standing
    digest: str = ""

    @property
    def name(self) -> str:
        """Of its file, without the ending."""
        place = f"{self.through:0{DIGITS}d}"
        return place if self.line == 0 else f"{place}-{self.line}"


class Found(NamedTuple):
    """A checkpoint that was read: the model, and what stands beside it."""

    bandit: Any
    kept: Kept


def save(folder: Path, kept: Kept, bandit: Any, time: int, state: str = SERVING, why: str = "") -> Checkpoint:
    """Put a model into a folder, and remove those that are too many; its record, for the log."""
    data = files.to_bytes(bandit)
    kept = msgspec.structs.replace(kept, digest=hashlib.sha256(data).hexdigest())
    folder.mkdir(exist_ok=True)
    place = folder / f"{kept.name}.model"
    disk.put(place, data)
    disk.put(place.with_suffix(".json"), msgspec.json.encode(kept))
    tidied(folder, kept.standing)
    return Checkpoint(
        loop=kept.loop, time=time, through=kept.through, digest=kept.digest, path=f"{folder.name}/{place.name}",
        model=f"{bandit.rounds}", line=kept.line, state=state, why=why,
    )  # fmt: skip


def tidied(folder: Path, standing: Standing) -> None:
    """Remove what is older, and what killed processes left: the folder has one owner."""
    found, names = dict[int, list[str]](), set[str]()
    for one in sorted(folder.glob("*.json")):
        found.setdefault(line_of(one.stem), []).append(one.stem)
    present = {standing.lines.serving, max(found, default=0)}
    for line in sorted(found)[-FORMER - len(present) :]:
        names.update(found[line][-KEPT if line in present else -1 :])
    for old in folder.iterdir():
        if old.name not in {f"{name}{ending}" for name in names for ending in (".json", ".model")}:
            with contextlib.suppress(OSError):
                old.unlink()


def line_of(name: str) -> int:
    """The model that a file is of, by its name."""
    _, _, line = name.partition("-")
    return int(line) if line.isdigit() else 0


def newest(folder: Path, store: Store, loop: str, line: int | None = None) -> Found | None:
    """The newest checkpoint of a folder that is whole and of this log; None where there is none. line: only of this
    model of the loop (default None: of any)."""
    for kept in kepts(folder, store, loop):
        if line in (None, kept.line) and (found := whole(folder, kept)) is not None:
            return found
    return None


def kepts(folder: Path, store: Store, loop: str) -> Iterator[Kept]:
    """What stands beside the models of a folder, the newest first."""
    for place in sorted(folder.glob("*.json"), reverse=True):
        try:
            kept = msgspec.json.decode(place.read_bytes(), type=Kept)
            if kept.loop == loop and kept.crc == crc(store, kept.through):
                yield kept
        except (OSError, ValueError):
            continue


def whole(folder: Path, kept: Kept) -> Found | None:
    """A checkpoint with its model; None where it is damaged."""
    try:
        data = (folder / f"{kept.name}.model").read_bytes()
        return Found(files.from_bytes(data), kept) if hashlib.sha256(data).hexdigest() == kept.digest else None
    except (OSError, ValueError):
        return None


def crc(store: Store, place: int) -> int | None:
    """The checksum of the row at a place, None where there is none."""
    row = next(store.rows(place - 1, place, None, None), None)
    return None if row is None else row.crc
