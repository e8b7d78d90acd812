"""Disk cache of compiled code, shared by processes, with one file for each entry.

All cache folders are read. A new entry is written to the first folder that accepts it. If no folder does, the process
prints one message and goes on without a cache. A file holds a digest and the content, and is written beside its place
and renamed, so a damaged or half-written entry counts as missing. Processes that need the same entry wait for the one
that compiles it.
"""

import contextlib
import hashlib
import importlib
import os
import stat
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numba.misc.appdirs import AppDirs

from onepass.foundation.compile_notice import print_once

fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None  # without it some is compiled twice

PACKAGE = Path(__file__).parent.parent
FORMAT = b"onepass compiled code 1\n"
DIGEST = hashlib.sha256().digest_size
SECONDS = "onepass.seconds"  # the file that says how long it took
TURNS = "onepass.turns"  # the file whose bytes are locked by who compiles
PLACES = 1 << 60  # of its bytes: so many that no two names meet
PATIENCE = 60.0  # seconds to wait for another process to compile one function, under load
PAUSE = 0.02  # seconds between two looks whether it has
OLD = 3600.0  # seconds after which what a killed process was writing is removed
UNKEPT = (
    "compiled code cannot be kept in any folder ({why}), so every process compiles anew; "
    "set NUMBA_CACHE_DIR to a folder with room that can be written to"
)


# ---- folders ----


def folders() -> Iterator[Path]:
    """Yield the folders of compiled code, in the order in which they are searched.

    If the environment variable NUMBA_CACHE_DIR is set, its folder is the only one. Otherwise they are a folder beside
    the sources, the user's cache folder, and a private temporary folder.
    """
    told = os.environ.get("NUMBA_CACHE_DIR")
    if told:
        yield Path(told, "onepass")
        return
    yield PACKAGE / "__pycache__"
    user = Path(AppDirs("onepass", appauthor=False).user_cache_dir)
    if user.is_absolute():  # without a home it is not
        yield user
    own = _private_folder()
    if own is not None:
        yield own


def _private_folder() -> Path | None:
    """Return a temporary folder that nobody else can write to, or None if there is none.

    It must be private because the code read from it is executed.
    """
    user = os.getuid() if hasattr(os, "getuid") else None
    try:
        folder = Path(tempfile.gettempdir(), "onepass" if user is None else f"onepass-{user}")
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    shared = user is not None and (found.st_uid != user or bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)))
    return None if shared or not stat.S_ISDIR(found.st_mode) else folder


def count_entries(suffix: str) -> int:
    """Return the number of cache files whose names end in `suffix`, over all cache folders."""
    return len({path.name for folder in folders() for path in folder.glob(f"*{suffix}")})


# ---- files ----


def read_entry(name: str) -> bytes | None:
    """Return the content of a cache entry from the first folder that has it undamaged, or None if no folder has it."""
    for folder in folders():
        with contextlib.suppress(OSError):
            whole = (folder / name).read_bytes()
            content = whole[len(FORMAT) + DIGEST :]
            if whole == _add_digest(content):
                return content
    return None


def write_entry(name: str, content: bytes) -> None:
    """Write a cache entry to the first folder that accepts it.

    If no folder does, a message is printed, once in a process.
    """
    trouble = "there is none"
    for folder in folders():
        try:
            _write_file(folder / name, _add_digest(content))
        except OSError as error:
            trouble = f"{folder}: {error.strerror}"
        else:
            _remove_old_parts(folder)
            return
    print_once("kept", lambda: UNKEPT.format(why=trouble))


def _add_digest(content: bytes) -> bytes:
    return FORMAT + hashlib.sha256(content).digest() + content


def _write_file(path: Path, whole: bytes) -> None:
    """Write bytes to a file atomically, or raise OSError and leave nothing behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        beside.write_bytes(whole)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


_tidy: set[Path] = set()


def _remove_old_parts(folder: Path) -> None:
    """Remove temporary files that are older than an hour from a cache folder; killed processes leave them.

    Each process looks at a folder only once.
    """
    if folder not in _tidy:
        _tidy.add(folder)
        for path in folder.glob("*.part"):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < time.time() - OLD:
                    path.unlink()


def compile_message() -> str:
    """Return the message that is shown if compiling takes long.

    It names the seconds that compiling took last time, if they are known.
    """
    seconds = read_entry(SECONDS)
    took = "up to a minute" if seconds is None else f"{float(seconds):.0f} s the last time"
    return f"compiling for this machine, which takes a while once ({took}); `python -m onepass compile` does it ahead"


def record_seconds(seconds: float) -> None:
    """Store the number of seconds that compiling took, for the message of the next process."""
    write_entry(SECONDS, f"{seconds:.1f}".encode())


# ---- turns ----

_queue: list[int] = []  # the open file; the system forgets the locks of who ends, and gives a child none of them


@contextlib.contextmanager
def turn(name: str) -> Iterator[None]:
    """Hold the lock under which one process at a time makes the cache entry `name`, as a context manager.

    A process waits at most 60 seconds. Compiled functions never call each other in a circle, so processes that wait for
    each other cannot deadlock.
    """
    place = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) % PLACES
    held = _lock_turn(place)
    try:
        yield
    finally:
        if held:
            with contextlib.suppress(OSError):
                fcntl.lockf(_queue[0], fcntl.LOCK_UN, 1, place)


def _lock_turn(place: int) -> bool:
    """Wait for the lock at byte `place` of the lock file, and return True once it is held.

    Returns False on a system without locks, or after PATIENCE seconds.
    """
    if fcntl is None or not (_queue or _open_turns()):
        return False
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            fcntl.lockf(_queue[0], fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):
            time.sleep(PAUSE)
        except OSError:  # a file system without locks
            return False
        else:
            return True
    return False


def _open_turns() -> bool:
    for folder in folders():
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            _queue.append(os.open(folder / TURNS, os.O_RDWR | os.O_CREAT, 0o600))
            return True
    return False
