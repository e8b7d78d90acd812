"""Folder that restores a sharded bandit: a checkpoint of all shards after the same change, and a log of later changes.

    current      the valid checkpoint: its number and seq, and the seq of every shard, by number
    cut-N/       checkpoint N: bandit, shard-0, shard-1, ..., all after one change
    log-N        the changes after checkpoint N: one frame a change, (mark, length, crc32, bytes of `onepass.to_bytes`)
    lock         held by the process that writes

A new checkpoint is written beside the old one, then `current` is moved into place. If the process is killed in between,
the old checkpoint and its log are complete. An unfinished frame at the end of the log does not count as a change,
because its caller has had no answer. A damaged frame that is followed by complete frames was altered later, and raises
an error.
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
MARK = b"\x1eonepass"  # begins a frame, so that whole frames are found after a damaged one
FRAME = struct.Struct("<8sQI")  # mark, length, crc32
KIND = "Change"  # kind in the header of a change's bytes


class Change(NamedTuple):
    """Arguments of one change of a sharded bandit, as arrays.

    Parameters
    ----------
    rows : contexts (n, d); for contexts that are outer products, their left factors (n, d_u).
    right : right factors (n, d_a) of outer products; (0, 0) for other contexts.
    rewards : rewards (n,).
    names : names of arms (n,).
    texts : decisions as JSON, followed by their rewards as JSON.
    """

    rows: np.ndarray
    right: np.ndarray
    rewards: np.ndarray
    names: np.ndarray
    texts: np.ndarray


EMPTY = Change(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0), object_array([]), object_array([]))


class Entry(NamedTuple):
    """Entry of the log: one change of a sharded bandit.

    Parameters
    ----------
    seq : number of the change.
    act : name of the method that makes the change, such as "learn".
    options : arguments of the method that are plain data.
    change : arguments of the method that are arrays.
    """

    seq: int
    act: str
    options: dict[str, Any]
    change: Change


def pack_entry(entry: Entry) -> bytes:
    """Return the bytes of a log entry: a mark, the length, a checksum and the entry itself."""
    extra = {"seq": entry.seq, "act": entry.act, "options": entry.options, "dtype": entry.change.rows.dtype.str}
    data = files.pack(KIND, files.Contents({}, extra, entry.change))
    return FRAME.pack(MARK, len(data), zlib.crc32(data)) + data


def _unpack_entry(data: bytes, source: str) -> Entry:
    """Return the entry that `pack_entry` wrote; raise ValueError if the bytes hold something else.

    `data` are the bytes after mark, length and checksum. `source` names the file in the message.
    """
    header, arrays = files.read(data, source)
    if header["kind"] != KIND:
        raise ValueError(f"{source} is damaged: it holds {check.quote(header['kind'])}, expected a '{KIND}'")
    extra = header["extra"]
    kind = np.dtype(extra["dtype"])
    begun = EMPTY._replace(rows=np.zeros((0, 0), kind), right=np.zeros((0, 0), kind))
    change = files.FromFile(arrays).take(begun, lambda found: True)
    return Entry(extra["seq"], extra["act"], extra["options"], change)


class Checkpoint(NamedTuple):
    """Checkpoint of all shards.

    `number` is its number, `seq` the number of the last change in it, and `shards` maps each shard to the number of the
    shard's last change.
    """

    number: int
    seq: int
    shards: dict[int, int]


class Journal:
    """Folder of checkpoints and logs, open for writing in one process.

    Raises ValueError if another process has the folder open.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = FolderLock(self.folder)
        if not self._lock.acquire():
            raise ValueError(
                f"folder must be open in one process, but another one, or another bandit of this one, has "
                f"{check.quote_path(folder)} open: close that one first"
            )
        self._log: FileIO | None = None
        self._size = 0  # bytes of whole frames in the log
        self._unwritten = b""  # frames of changes that were made and not yet written

    def has_checkpoint(self) -> bool:
        """Return True if the folder has a valid checkpoint."""
        return (self.folder / CURRENT).is_file()

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The latest valid checkpoint, or None if there is none yet; raises ValueError for a damaged file."""
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
        """Return the folder that holds the files of the checkpoint `number`."""
        return self.folder / f"cut-{number}"

    def flush(self) -> None:
        """Write those entries that could not be written before.

        Raises OSError if writing fails again, or if the journal is closed.
        """
        if self._log is None:
            raise OSError(f"the log in {check.quote_path(self.folder)} is closed: open the folder again")
        if self._unwritten:
            self.append(b"")

    def append(self, frame: bytes) -> None:
        """Append an entry, packed by `pack_entry`, to the log.

        The entry survives a crash of this process at once, and a crash of the machine from the next checkpoint on.
        Raises OSError if it cannot be written; `flush` then writes it before the next change.
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
            raise OSError(error.errno, f"{error.strerror}: cannot log in {check.quote_path(self.folder)}") from None
        self._size += len(self._unwritten)
        self._unwritten = b""

    def write_checkpoint(self, seq: int, write: Callable[[Path], dict[int, int]]) -> None:
        """Write a new checkpoint after change `seq`, start its log, and delete older checkpoints and logs.

        `write(folder)` writes the files of the checkpoint and returns the number of the last change of every shard.
        """
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
        """Continue with the open log file `log`, of which the first `size` bytes are in use.

        All changes so far must be in that log or in its checkpoint.
        """
        if self._log is not None:
            self._log.close()
        self._log, self._size, self._unwritten = log, size, b""

    def read_after(self, number: int) -> Iterator[Entry]:
        """Yield the entries that were logged after the checkpoint `number`.

        An unfinished entry at the end is cut off. Raises ValueError if whole entries follow a damaged one.
        """
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
        """Close the log, and release the lock of the folder."""
        if self._log is not None:
            self._log.close()
            self._log = None
        self._lock.release()


@contextlib.contextmanager
def _map_file(file: BinaryIO) -> Iterator[Any]:
    """Map a file into memory, so that bytes are read on access."""
    if os.fstat(file.fileno()).st_size == 0:  # an empty file cannot be mapped
        yield b""
        return
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def _frame_end(data: Any, start: int) -> int | None:
    """Return the index of the byte after the entry that begins at byte `start`, or None if no entry is whole there.

    `data` are the bytes of a log. An entry has the form that `pack_entry` writes.
    """
    if len(data) - start < FRAME.size:
        return None
    mark, length, crc = FRAME.unpack_from(data, start)
    end = start + FRAME.size + length
    if mark != MARK or end > len(data) or zlib.crc32(data[start + FRAME.size : end]) != crc:
        return None
    return int(end)


def _has_frame_after(data: Any, start: int) -> bool:
    """Return True if a whole entry begins after byte `start` of `data`, the bytes of a log."""
    while (start := data.find(MARK, start + 1)) >= 0:
        if _frame_end(data, start) is not None:
            return True
    return False
