"""Files: safetensors with a JSON header. No pickle: loading builds known classes from checked parameters, never code.

A file is written next to its place and moved there, so an interrupted save leaves the old one. Its header carries the
format version, the parameters and a digest of every array; a truncated, altered, foreign or newer file is refused.
"""

import contextlib
import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from onepass.foundation.state import leaves, rebuild

VERSION = 1


def _digest(tensors: dict[str, np.ndarray], header: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def save(path: str | Path, kind: str, params: dict[str, Any], state: Any, extra: dict[str, Any] | None = None) -> None:
    """Write `state` with what is needed to build its owner again: the class name `kind` and its `params`."""
    from safetensors.numpy import save as serialize

    tensors = {name: np.ascontiguousarray(value).reshape(np.shape(value)) for name, value in leaves(state)}
    header = {"version": VERSION, "kind": kind, "params": params, "extra": extra or {}}
    metadata = {"onepass": json.dumps(header), "digest": _digest(tensors, header)}
    path = Path(path)
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)  # the umask decides who may read it
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(serialize(tensors, metadata=metadata))
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        raise


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
    if type(version) is not int or not 1 <= version <= VERSION:
        raise ValueError(f"{str(path)!r} has format {version}, this onepass reads up to {VERSION}; upgrade onepass")
    if digest != _digest(tensors, header):
        raise ValueError(f"{str(path)!r} is damaged: its contents do not match its digest; restore it from a copy")
    return header, tensors


def restore(template: Any, tensors: dict[str, np.ndarray], consistent: Any, path: str | Path) -> Any:
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
        raise ValueError(f"{str(path)!r} is damaged: its arrays do not fit its parameters")
    return state
