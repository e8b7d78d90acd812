"""A folder from which a bandit on shards comes back: a cut of all shards at one `seq`, and a log of what came after.

    current      which cut counts: its number and seq, and the seq of every shard, by number
    cut-N/       bandit, shard-0, shard-1, ...: all as they were after that change
    log-N        what was learned after it: one frame a change, (mark, length, crc32, bytes as `onepass.to_bytes` has)
    lock         held by the process that writes

A cut is written beside the old one, then `current` is moved into place: who is killed between has the old cut and its
log, whole. A frame at the end that was not finished is no change: its caller has had no answer. One that whole frames
follow was changed after it was written, which is refused.
"""

import contextlib
import json
import mmap
import os
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from onepass.foundation import check, files
from onepass.foundation.atomic_write import FolderLock, write_atomically
from onepass.foundation.state import object_array

CURRENT, BANDIT = "current", "bandit"
MARK = b"\x1eonepass"  # begins a frame, so that whole ones are found after a damaged one
FRAME = struct.Struct("<8sQI")  # mark, length, crc32
KIND = "Change"  # of the bytes of a change


class Change(NamedTuple):
    """What was done: rows (n, d) or left factors, right (n, d_a) or (0, 0), rewards (n,), names of arms, and texts
    (decisions as JSON, their rewards)."""

    rows: np.ndarray
    right: np.ndarray
    rewards: np.ndarray
    names: np.ndarray
    texts: np.ndarray


EMPTY = Change(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0), object_array([]), object_array([]))


class Entry(NamedTuple):
    """A change, its number and its kind; options: of its kind, plain data."""

    seq: int
    act: str
    options: dict[str, Any]
    change: Change


def pack_entry(entry: Entry) -> bytes:
    """A frame."""
    extra = {"seq": entry.seq, "act": entry.act, "options": entry.options, "dtype": entry.change.rows.dtype.str}
    data = files.pack(KIND, files.Contents({}, extra, entry.change))
    return FRAME.pack(MARK, len(data), zlib.crc32(data)) + data


def _unpack_entry(data: bytes, source: str) -> Entry:
    """Return the arguments of `pack_entry`; ValueError for bytes of something else."""
    header, arrays = files.read(data, source)
    if header["kind"] != KIND:
        raise ValueError(f"{source} holds no change")
    extra = header["extra"]
    kind = np.dtype(extra["dtype"])
    begun = EMPTY._replace(rows=np.zeros((0, 0), kind), right=np.zeros((0, 0), kind))
    change = files.FromFile(arrays).take(begun, lambda found: True)
    return Entry(extra["seq"], extra["act"], extra["options"], change)


class Checkpoint(NamedTuple):
    """The cut that counts: its number, its seq, and the seq of every shard, by number."""

    number: int
    seq: int
    shards: dict[int, int]


class Journal:
    """The folder, open for one process that writes. ValueError where another process has it open."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = FolderLock(self.folder)
        if not self._lock.acquire():
            raise ValueError(
                f"folder must be open in one process, but another one, or another bandit of this one, has "
                f"{check.quote_path(folder)} open: close that one first"
            )
        self._log: FileIO | None = None
        self._size = 0  # of the log, whole frames
        self._unwritten = b""  # frames of changes that were made

    def has_checkpoint(self) -> bool:
        """Return whether there is a cut that counts."""
        return (self.folder / CURRENT).is_file()

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The cut that counts, None where there is none yet. ValueError for a damaged file."""
        path = self.folder / CURRENT
        if not self.has_checkpoint():
            return None
        try:
            found = json.loads(path.read_bytes())
            return Checkpoint(
                int(found["cut"]), int(found["seq"]), {int(n): int(s) for n, s in found["shards"].items()}
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{check.quote_path(path)} is damaged: {error}") from None

    def checkpoint_folder(self, number: int) -> Path:
        """The folder of a cut."""
        return self.folder / f"cut-{number}"

    def flush(self) -> None:
        """Write what could not be written before. OSError where that is not possible, or the journal is closed."""
        if self._log is None:
            raise OSError(f"the log in {check.quote_path(self.folder)} is closed: open the folder again")
        if self._unwritten:
            self.append(b"")

    def append(self, frame: bytes) -> None:
        """Write a change, as `pack_entry` gave it; it survives this process, and with the next cut the machine.

        OSError where it cannot be written: it is written before the next one, by `flush`.
        """
        if self._log is None:
            raise OSError(f"the log in {check.quote_path(self.folder)} is closed: open the folder again")
        self._unwritten += frame
        try:
            self._log.seek(self._size)
            left = memoryview(self._unwritten)
            while left:
                left = left[self._log.write(left) or 0 :]
        except OSError as error:
            with contextlib.suppress(OSError):
                self._log.truncate(self._size)
            raise OSError(
                error.errno,
                f"{error.strerror}: the change is made, but not logged in {check.quote_path(self.folder)}; make it "
                "again with the same seq when there is room, which logs it and does not learn it twice",
            ) from None
        self._size += len(self._unwritten)
        self._unwritten = b""

    def write_checkpoint(self, seq: int, write: Callable[[Path], dict[int, int]]) -> None:
        """A new cut: write(folder) puts files there and gives the seq of every shard."""
        known = self.checkpoint
        number = 1 if known is None else known.number + 1
        path = self.checkpoint_folder(number)
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        shards = write(path)
        log = FileIO(self._log_path(number), "w+")
        try:
            write_atomically(self.folder / CURRENT, json.dumps({"cut": number, "seq": seq, "shards": shards}).encode())
        except BaseException:
            log.close()
            raise
        self._switch_log(log, 0)
        for old in self.folder.iterdir():
            if old.name.startswith(("cut-", "log-")) and old.name.partition("-")[2] != str(number):
                shutil.rmtree(old) if old.is_dir() else old.unlink()

    def _log_path(self, number: int) -> Path:
        return self.folder / f"log-{number}"

    def _switch_log(self, log: FileIO, size: int) -> None:
        """Go on with another log. All changes that were made are in it, or in the cut before it."""
        if self._log is not None:
            self._log.close()
        self._log, self._size, self._unwritten = log, size, b""

    def read_after(self, number: int) -> Iterator[Entry]:
        """Yield what was logged after that cut, up to a last frame that was not finished, which is cut off. ValueError
        where a damaged frame is followed by whole ones."""
        path, whole = self._log_path(number), 0
        self._switch_log(FileIO(path, "r+" if path.is_file() else "w+"), 0)
        with path.open("rb") as file, _map_file(file) as data:
            while (end := _frame_end(data, whole)) is not None:
                yield _unpack_entry(data[whole + FRAME.size : end], check.quote_path(path))
                whole = end
            if _has_frame_after(data, whole):
                raise ValueError(
                    f"{check.quote_path(path)} is damaged at byte {whole}: the frame there is not what was written, "
                    "and whole frames follow it; restore the folder from a copy"
                )
        assert self._log is not None
        self._log.truncate(whole)
        self._size = whole

    def close(self) -> None:
        """Let go of the log and the folder."""
        if self._log is not None:
            self._log.close()
            self._log = None
        self._lock.release()


@contextlib.contextmanager
def _map_file(file: BinaryIO) -> Iterator[Any]:
    """The bytes of a file, read where they are looked at."""
    if os.fstat(file.fileno()).st_size == 0:  # which cannot be mapped
        yield b""
        return
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def _frame_end(data: Any, start: int) -> int | None:
    """Return the end of the whole frame that begins at a byte, None where there is none."""
    if len(data) - start < FRAME.size:
        return None
    mark, length, crc = FRAME.unpack_from(data, start)
    end = start + FRAME.size + length
    if mark != MARK or end > len(data) or zlib.crc32(data[start + FRAME.size : end]) != crc:
        return None
    return int(end)


def _has_frame_after(data: Any, start: int) -> bool:
    """Return whether a whole frame begins after a byte."""
    while (start := data.find(MARK, start + 1)) >= 0:
        if _frame_end(data, start) is not None:
            return True
    return False
