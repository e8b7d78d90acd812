"""Checkpoints as files: NAME.models/PLACE.model holds the model, PLACE.json beside it from where the log goes on.

A checkpoint is a cache of the log: one that is damaged, or belongs to another log, is passed over for the one before,
and without any the log is learned from its beginning. The file comes first, then its record in the log.
"""

import contextlib
import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from onepass.foundation import disk, files
from onepass.log.records import Checkpoint
from onepass.log.store import Store

KEPT = 3  # checkpoints in the folder
DIGITS = 15  # of a place in a file's name


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What stands beside a model. loop: its name; through: the last join learned; crc: of its row, which tells this log
    from one that lost its end and went on; since: the place after which the join
    must read; settings: in force, version: theirs, from_file: those that a file gave last; digest: SHA-256 of the
    model's bytes."""

    loop: str
    through: int
    crc: int | None
    since: int
    settings: dict[str, Any]
    version: int
    from_file: dict[str, Any]
    digest: str = ""


class Found(NamedTuple):
    """A checkpoint that was read: the model, and what stands beside it."""

    bandit: Any
    kept: Kept


def save(folder: Path, kept: Kept, bandit: Any, time: int) -> Checkpoint:
    """Put a model into a folder, and remove all others but the newest; its record, for the log."""
    data = files.to_bytes(bandit)
    kept = msgspec.structs.replace(kept, digest=hashlib.sha256(data).hexdigest())
    folder.mkdir(exist_ok=True)
    place = folder / f"{kept.through:0{DIGITS}d}.model"
    disk.put(place, data)
    disk.put(place.with_suffix(".json"), msgspec.json.encode(kept))
    names = {old.stem for old in sorted(folder.glob("*.json"))[-KEPT:]}
    for old in folder.iterdir():  # what is older, and what killed processes left: the folder has one owner
        if old.name not in {f"{name}{ending}" for name in names for ending in (".json", ".model")}:
            with contextlib.suppress(OSError):
                old.unlink()
    path, loop = f"{folder.name}/{place.name}", kept.loop
    return Checkpoint(
        loop=loop, time=time, through=kept.through, digest=kept.digest, path=path, model=f"{bandit.rounds}"
    )


def newest(folder: Path, store: Store, loop: str) -> Found | None:
    """The newest checkpoint of a folder that is whole and of this log; None where there is none."""
    for place in sorted(folder.glob("*.json"), reverse=True):
        try:
            kept = msgspec.json.decode(place.read_bytes(), type=Kept)
            data = place.with_suffix(".model").read_bytes()
            ours = kept.loop == loop and kept.crc == crc(store, kept.through)
            if ours and hashlib.sha256(data).hexdigest() == kept.digest:
                return Found(files.from_bytes(data), kept)
        except (OSError, ValueError):
            continue
    return None


def crc(store: Store, place: int) -> int | None:
    """The checksum of the row at a place, None where there is none."""
    row = next(store.rows(place - 1, place, None, None), None)
    return None if row is None else row.crc
