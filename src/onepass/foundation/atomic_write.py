"""Files that are put whole or not at all, wherever a process is killed, and folders that one process holds."""

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
    """Put `data` where `path` leads, all of it or nothing: written beside, read back, moved there, the folder synced.

    ValueError where something else than a regular file stands; an existing file keeps its mode, a link stays a link.
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
    """A folder that one process holds, until it lets go or ends, however it ends.

    folder: there already; a file of the name `lock` is made in it. On a system without file locks nothing is held.
    """

    def __init__(self, folder: Path):
        self._path, self._file = folder / "lock", -1

    def acquire(self) -> bool:
        """Hold the folder, and return True; False if somebody else holds it."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _try_lock(handle) or not _HAS_LOCKS:
            self._file = handle
            return True
        os.close(handle)
        return False

    def release(self) -> None:
        """Let go of the folder."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _try_lock(handle: int) -> bool:
    """Lock an open file for this process; False if another one holds it, or on a system without such locks."""
    try:
        lock = importlib.import_module("fcntl")
        lock.flock(handle, lock.LOCK_EX | lock.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _clean(place: Path) -> None:
    """Remove what killed saves of this file left: unfinished parts that no living process has locked."""
    part = re.compile(re.escape(place.name) + rf"\.[0-9a-f]{{{TOKEN}}}\.part")
    for left in place.parent.iterdir():
        if part.fullmatch(left.name):
            with contextlib.suppress(OSError), left.open("rb") as file:
                if _try_lock(file.fileno()):
                    left.unlink()


def _sync(folder: Path) -> None:
    """Make a move within a folder last, where folders can be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
