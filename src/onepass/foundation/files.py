"""Files: safetensors with a JSON header. No pickle: loading builds registered classes from checked parameters.

A file is written next to its place and moved there, so an interrupted save leaves the old one. Its header carries the
format version, the class, its parameters and a digest of every array; a truncated, altered, foreign or newer file is
refused. What an owner puts into a file is its `Contents`; `restored(params, extra, arrays)` of its class is the
inverse.
"""

import contextlib
import hashlib
import importlib
import json
import os
import re
import secrets
import stat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onepass.foundation.registry import kind_of, name_of, plain
from onepass.foundation.state import leaves, rebuild

VERSION = 2
TOKEN = 8  # hexadecimal digits in the name of an unfinished file
UNFIT = (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError, MemoryError)

MISFIT = "its arrays do not fit its parameters"


class Contents(NamedTuple):
    """What a file holds of its owner: the arguments of its constructor, what else is plain data, and its arrays."""

    params: dict[str, Any]
    extra: dict[str, Any]
    state: Any


def _digest(tensors: dict[str, np.ndarray], header: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def save(path: str | Path, owner: Any, contents: Contents) -> None:
    """Write an owner of a registered class from what it says of itself; ValueError for what `load` cannot build."""
    from safetensors.numpy import save as serialize

    kind = name_of(owner)
    params = {name: plain(value) for name, value in contents.params.items()}
    tensors = {name: np.ascontiguousarray(value).reshape(np.shape(value)) for name, value in leaves(contents.state)}
    header = {"version": VERSION, "kind": kind, "params": params, "extra": contents.extra}
    metadata = {"onepass": json.dumps(header), "digest": _digest(tensors, header)}
    _put(Path(path), serialize(tensors, metadata=metadata))


def _put(path: Path, data: bytes) -> None:
    """Put `data` where `path` leads, all of it or nothing: written beside, read back, moved there, the folder synced.

    ValueError where something else than a regular file stands; an existing file keeps its mode, a link stays a link.
    """
    place = Path(os.path.realpath(path))
    mode = None
    if place.exists():
        mode = place.stat().st_mode
        if not stat.S_ISREG(mode):
            raise ValueError(f"path must be a regular file or a new one, got {str(path)!r}, which is something else")
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
                    f"{str(partial)!r} does not hold what was written to it; {str(path)!r} was left as it was"
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


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a file; ValueError with one sentence for anything that `save` did not write."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, TypeError, OverflowError) as trouble:
        raise ValueError(f"{str(path)!r} is not a onepass file, or it is damaged: {trouble}") from None
    try:
        header = json.loads(metadata["onepass"])
        version, digest = header["version"], metadata["digest"]
    except (KeyError, TypeError, json.JSONDecodeError):
        raise ValueError(f"{str(path)!r} is not a onepass file: it has no onepass header") from None
    if type(version) is not int or version > VERSION:
        raise ValueError(f"{str(path)!r} has format {version}, this onepass reads up to {VERSION}; upgrade onepass")
    if version < VERSION:
        raise ValueError(f"{str(path)!r} has format {version} of an earlier onepass, which reads it; this one cannot")
    if digest != _digest(tensors, header):
        raise ValueError(f"{str(path)!r} is damaged: its contents do not match its digest; restore it from a copy")
    return header, tensors


def restore(template: Any, tensors: dict[str, np.ndarray], consistent: Any) -> Any:
    """The state shaped like `template`, filled from a file; ValueError when names, dtypes or shapes do not fit."""
    values: dict[str, Any] = {}
    expected = dict(leaves(template))
    fits = expected.keys() == tensors.keys()
    for name, value in expected.items() if fits else ():
        array, model = tensors[name], np.asarray(value)
        fits = fits and array.dtype == model.dtype and array.ndim == model.ndim
        values[name] = array.copy() if isinstance(value, np.ndarray) else array.item() if array.ndim == 0 else None
    state = rebuild(template, values) if fits else None
    if state is None or not consistent(state):
        raise ValueError(MISFIT)
    return state


def load(path: str | Path) -> Any:
    """The bandit, design or learner that was saved to `path`; it continues exactly where the saved one stopped.

    path: a file that `save` wrote. FileNotFoundError if there is none; ValueError, with the reason, for a truncated,
    altered, foreign or newer file, and for one of a class that is not registered. Nothing in a file is executed.
    """
    header, tensors = read(path)
    try:
        owner: Any = kind_of(header["kind"])
        return owner.restored(header["params"], header["extra"], tensors)
    except UNFIT as trouble:
        reason = str(trouble)
        reason = reason if reason == MISFIT else f"its parameters are refused ({reason})"
        raise ValueError(f"{str(path)!r} is damaged: {reason}") from None
