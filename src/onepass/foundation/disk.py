"""Where files are put: all of one or nothing, wherever a process is killed."""

import contextlib
import importlib
import os
import re
import secrets
import stat
from pathlib import Path

from onepass.foundation.check import quoted

TOKEN = 8  # hexadecimal digits in the name of an unfinished file


def put(path: Path, data: bytes) -> None:
    """Put `data` where `path` leads, all of it or nothing: written beside, read back, moved there, the folder synced.

    ValueError where something else than a regular file stands; an existing file keeps its mode, a link stays a link.
    """
    place = Path(os.path.realpath(path))
    mode = None
    if place.exists():
        mode = place.stat().st_mode
        if not stat.S_ISREG(mode):
            raise ValueError(f"path must be a regular file or a new one, got {quoted(path)}, which is something else")
    _clean(place)
    partial = place.with_name(f"{place.name}.{secrets.token_hex(TOKEN // 2)}.part")
    handle = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)  # the umask decides who may read it
    try:
        with os.fdopen(handle, "r+b") as file:
            _locked(file.fileno())
            file.write(data)
            file.flush()
            if mode is not None:
                os.chmod(partial, stat.S_IMODE(mode))
            os.fsync(file.fileno())
            if partial.read_bytes() != data:
                raise OSError(
                    f"{quoted(partial)} does not hold what was written to it; {quoted(path)} was left as it was"
                )
            os.replace(partial, place)
        _sync(place.parent)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        raise


def _locked(handle: int) -> bool:
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
                if _locked(file.fileno()):
                    left.unlink()


def _sync(folder: Path) -> None:
    """Make a move within a folder last, where folders can be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
