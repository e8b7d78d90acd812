"""Atomic file writes, which survive a killed process, and locks that give a folder to one process."""

import contextlib
import importlib.util
import os
import re
import secrets
import stat
from pathlib import Path

from onepass.foundation.check import quote_path

_HAS_LOCKS = importlib.util.find_spec("fcntl") is not None
TOKEN = 8  # hexadecimal digits in the name of an unfinished file


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to the file `path`, either completely or not at all.

    The data goes to a temporary file in the same folder, is read back for a check, and then replaces `path`. The folder
    is synced to disk. An existing file keeps its mode, and a symbolic link stays a link. Raises ValueError if `path` is
    something other than a regular file.
    """
    place = Path(os.path.realpath(path))
    mode = None
    if place.exists():
        mode = place.stat().st_mode
        if not stat.S_ISREG(mode):
            raise ValueError(
                f"path must be a regular file or a new one, got {quote_path(path)}, which is something else"
            )
    _clean(place)
    partial = place.with_name(f"{place.name}.{secrets.token_hex(TOKEN // 2)}.part")
    handle = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)  # the umask decides who may read it
    try:
        with os.fdopen(handle, "r+b") as file:
            _try_lock(file.fileno())
            file.write(data)
            file.flush()
            if mode is not None:
                os.chmod(partial, stat.S_IMODE(mode))
            os.fsync(file.fileno())
            if partial.read_bytes() != data:
                raise OSError(
                    f"{quote_path(partial)} does not hold what was written to it; {quote_path(path)} was left as it was"
                )
            os.replace(partial, place)
        _sync(place.parent)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        raise


class FolderLock:
    """Exclusive lock on a folder, which ends at the latest when the process ends.

    The constructor's argument `folder` must exist. A file named `lock` is created in it. On a system without file
    locks, `acquire` always succeeds.
    """

    def __init__(self, folder: Path) -> None:
        self._path, self._file = folder / "lock", -1

    def acquire(self) -> bool:
        """Take the lock, and return True; return False if another process holds it."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _try_lock(handle) or not _HAS_LOCKS:
            self._file = handle
            return True
        os.close(handle)
        return False

    def release(self) -> None:
        """Release the lock; nothing happens if it is not held."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _try_lock(handle: int) -> bool:
    """Lock an open file, given by its descriptor, for this process, and return True.

    Returns False if another process has locked it, or on a system without such locks.
    """
    try:
        lock = importlib.import_module("fcntl")
        lock.flock(handle, lock.LOCK_EX | lock.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _clean(place: Path) -> None:
    """Remove the temporary files of earlier writes to `place` whose process was killed."""
    part = re.compile(re.escape(place.name) + rf"\.[0-9a-f]{{{TOKEN}}}\.part")
    for left in place.parent.iterdir():
        if part.fullmatch(left.name):
            with contextlib.suppress(OSError), left.open("rb") as file:
                if _try_lock(file.fileno()):
                    left.unlink()


def _sync(folder: Path) -> None:
    """Sync a folder to disk, so that a rename in it survives a power failure; systems that cannot do so are ignored."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
