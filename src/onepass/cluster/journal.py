"""A folder from which a bandit on shards comes back: a cut of all shards at one `seq`, and a log of what came after.

    current      which cut counts: its number and seq, and the seq of every shard, by number
    cut-N/       bandit, shard-0, shard-1, ...: all as they were after that change
    log-N        what was learned after it: one frame a change, (length, crc32, bytes as `onepass.to_bytes` has them)

A cut is written beside the old one, then `current` is moved into place: who is killed between has the old cut and its
log, whole. A frame that was not finished is no change: its caller has had no answer.
"""

import json
import os
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np

from onepass.foundation import check, files
from onepass.foundation.disk import put
from onepass.foundation.state import objects

CURRENT, BANDIT = "current", "bandit"
FRAME = struct.Struct("<QI")  # length, crc32
KIND = "Change"  # of the bytes of a change


class Change(NamedTuple):
    """What was done: rows (n, d) or left factors, right (n, d_a) or (0, 0), rewards (n,), names of arms, and texts
    (decisions as JSON, their rewards)."""

    rows: np.ndarray
    right: np.ndarray
    rewards: np.ndarray
    names: np.ndarray
    texts: np.ndarray


EMPTY = Change(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0), objects([]), objects([]))


class Entry(NamedTuple):
    """A change, its number and its kind; options: of its kind, plain data."""

    seq: int
    act: str
    options: dict[str, Any]
    change: Change


def written(entry: Entry) -> bytes:
    """A frame."""
    extra = {"seq": entry.seq, "act": entry.act, "options": entry.options, "dtype": entry.change.rows.dtype.str}
    data = files.packed(KIND, files.Contents({}, extra, entry.change))
    return FRAME.pack(len(data), zlib.crc32(data)) + data


def entry_of(data: bytes, source: str) -> Entry:
    """What `written` was given; ValueError for bytes of something else."""
    header, arrays = files.read(data, source)
    if header["kind"] != KIND:
        raise ValueError(f"{source} holds no change")
    extra = header["extra"]
    kind = np.dtype(extra["dtype"])
    begun = EMPTY._replace(rows=np.zeros((0, 0), kind), right=np.zeros((0, 0), kind))
    change = files.Foreign(arrays).take(begun, lambda found: True)
    return Entry(extra["seq"], extra["act"], extra["options"], change)


class Cut(NamedTuple):
    """The cut that counts: its number, its seq, and the seq of every shard, by number."""

    number: int
    seq: int
    shards: dict[int, int]


class Journal:
    """The folder, open for one process that writes."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log: BinaryIO | None = None

    @property
    def current(self) -> Cut | None:
        """The cut that counts, None where there is none yet. ValueError for a damaged file."""
        place = self.folder / CURRENT
        if not place.is_file():
            return None
        try:
            found = json.loads(place.read_bytes())
            return Cut(int(found["cut"]), int(found["seq"]), {int(n): int(s) for n, s in found["shards"].items()})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{check.quoted(place)} is damaged: {error}") from None

    def cut_at(self, number: int) -> Path:
        """The folder of a cut."""
        return self.folder / f"cut-{number}"

    @property
    def log(self) -> BinaryIO:
        """Where changes are written; OSError where it is closed, or could not be written once."""
        if self._log is None:
            raise OSError(
                f"the log in {check.quoted(self.folder)} is closed, or could not be written: open the folder again"
            )
        return self._log

    def append(self, frame: bytes) -> None:
        """Write a change, as `written` gave it; it survives this process, and with the next cut the machine.

        OSError where it cannot be written; then nothing is, any more: who opens the folder goes on from what is there.
        """
        log = self.log
        try:
            log.write(frame)
            log.flush()
        except OSError:
            self.close()
            raise

    def cut(self, seq: int, write: Callable[[Path], dict[int, int]]) -> None:
        """A new cut: write(folder) puts files there and gives the seq of every shard."""
        known = self.current
        number = 1 if known is None else known.number + 1
        place = self.cut_at(number)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        shards = write(place)
        self._open(number, "wb")
        put(self.folder / CURRENT, json.dumps({"cut": number, "seq": seq, "shards": shards}).encode())
        for old in self.folder.iterdir():
            if old.name.startswith(("cut-", "log-")) and old.name.partition("-")[2] != str(number):
                shutil.rmtree(old) if old.is_dir() else old.unlink()

    def _log_of(self, number: int) -> Path:
        return self.folder / f"log-{number}"

    def _open(self, number: int, mode: str) -> None:
        self.close()
        self._log = cast(BinaryIO, self._log_of(number).open(mode))

    def after(self, number: int) -> Iterator[Entry]:
        """What was logged after that cut, up to the first frame that was not finished, which is cut off."""
        path, whole = self._log_of(number), 0
        if path.is_file():
            with path.open("rb") as file:
                while len(head := file.read(FRAME.size)) == FRAME.size:
                    length, crc = FRAME.unpack(head)
                    data = file.read(length)
                    if len(data) != length or zlib.crc32(data) != crc:
                        break
                    yield entry_of(data, check.quoted(path))
                    whole = file.tell()
            os.truncate(path, whole)
        self._open(number, "ab")

    def close(self) -> None:
        """Let go of the log."""
        if self._log is not None:
            self._log.close()
            self._log = None
