"""Reading and writing of state, for files, bytes, copies and pickles alike.

An owner is an object with a state. Its method `contents()` returns the constructor's arguments, other plain data, and
its arrays. The class method `from_contents(params, extra, held)` is the inverse, where `held.take(template, fits)`
gives the arrays back. If an argument is an owner that has already learned, such as a design that holds rows, its own
contents are written too.

Copies and pickles take the arrays as they are, into new memory. Bytes and files use the safetensors format with a JSON
header, which holds the format version, the class, its parameters and a digest. There is no pickle in a file: loading
builds registered classes from checked parameters without allocating memory, and compares the arrays with those states
before it keeps them. A file is written beside its place and renamed, so an interrupted save leaves the old one intact.
"""

import hashlib
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from onepass.foundation.atomic_write import write_atomically
from onepass.foundation.check import quote, quote_path
from onepass.foundation.registry import PACKAGE, build, class_name, find_class, to_plain
from onepass.foundation.rw_lock import SharedObject, reading
from onepass.foundation.state import abstract, copy_arrays, leaves, object_array, rebuild

VERSION = 3
WRITERS = {1: "0.1.0", 2: "0.2.0"}  # the onepass that wrote files of an earlier version
CHECKED = 2  # the earliest version whose files are read where their classes are as they were: designs, learners, maps
LARGEST_HEADER = 1 << 24  # bytes of parameters as text: the points of Nystrom features are the largest
UNFIT = (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError, MemoryError)

LONGEST = 300  # characters of a reason: some quote a whole header
DTYPES = {
    "F64": "<f8", "F32": "<f4", "I64": "<i8", "U64": "<u8", "I32": "<i4", "U32": "<u4", "U8": "u1", "BOOL": "?",
}  # fmt: skip
CODES = {np.dtype(dtype).str: code for code, dtype in DTYPES.items()}
ALIGNED = 8  # bytes: where the format wants the arrays to begin

MISFIT = "its arrays do not fit its parameters"
BETWEEN = "/"  # in names of arrays, after the place of the part that they belong to: in no path of a state

Fits = Callable[[Any], bool]


class Contents(NamedTuple):
    """Contents of a saved object: its constructor's arguments `params`, other data `extra`, and arrays `state`."""

    params: dict[str, Any]
    extra: dict[str, Any]
    state: Any


class StateSource(Protocol):
    """Source of the arrays from which a saved object is rebuilt: memory or a file."""

    @property
    def arrays(self) -> dict[str, Any]:
        """Map from an array's path in the state to the array, which is not checked. Use it only to read shapes."""
        ...

    def take(self, template: Any, fits: Fits) -> Any:
        """Return the state, in the structure of the state `template`.

        Raises ValueError if the structure differs, or if the function `fits` returns False for the state.
        """
        ...


class InMemory(NamedTuple):
    """Source of the arrays of an object in this process, for copies and pickles, without checks.

    A `state` of None belongs to an object that has not learned anything yet.
    """

    state: Any

    @property
    def arrays(self) -> dict[str, Any]:
        return {} if self.state is None else dict(leaves(self.state))

    def take(self, template: Any, fits: Fits) -> Any:
        return None if self.state is None else copy_arrays(self.state)


class FromFile(NamedTuple):
    """Source of the arrays of a saved file, which checks them.

    Names, dtypes and shapes must be those of a new state, the template, and all numbers must be finite.
    """

    arrays: dict[str, np.ndarray]

    def take(self, template: Any, fits: Fits) -> Any:
        expected = dict(leaves(template))
        for name in expected.keys() ^ self.arrays.keys():
            raise _misfit(f"array {quote(name)} is {'missing' if name in expected else 'none of them'}")
        state = rebuild(template, {name: _value(name, self.arrays[name], begun) for name, begun in expected.items()})
        if not fits(state):
            raise _misfit(_first_difference(state, template))
        return state


def _misfit(detail: str) -> ValueError:
    return ValueError(f"{MISFIT}: {detail}")


def _first_difference(state: Any, template: Any) -> str:
    """Describe the first counter that is negative, or the first array whose shape differs from that of a new state."""
    pairs = [(path, value, begun) for (path, value), (_, begun) in zip(leaves(state), leaves(template), strict=True)]
    for path, value, begun in pairs:
        if type(begun) is int and value < 0:
            return f"{path} is {value}, expected at least 0"
    for path, value, begun in pairs:
        if isinstance(begun, np.ndarray) and value.shape != begun.shape:
            return f"array {path} has shape {value.shape}, that of a new one is {begun.shape}"
    return "numbers that must agree differ"


def _value(name: str, array: np.ndarray, begun: Any) -> Any:
    """Return an array of a file as a field of a state; `begun` is the same field of a new state.

    `name` is the path of the field in messages. Raises ValueError if dtype or dimensions differ from those of `begun`.
    """
    model = np.asarray(begun)
    if model.dtype == object:
        return object_array(
            [object_from_plain(value) for value in json.loads(array.astype(np.uint8, casting="no").tobytes())]
        )
    value = array if isinstance(begun, np.ndarray) else array.item() if array.ndim == 0 else None
    if array.dtype != model.dtype or array.ndim != model.ndim:
        found, expected = (f"{one.dtype} with {one.ndim} axes" for one in (array, model))
        raise _misfit(f"array {name} is of {found}, expected {expected}")
    if not np.isfinite(array).all():
        each = model[tuple(slice(1) if step == 0 else slice(None) for step in model.strides)]  # abstract ones are huge
        if not (np.isposinf(each).any() and (array > -np.inf).all()):
            raise ValueError(f"not all of its numbers are finite: array {name} has others")
    return value


class Owner(SharedObject, ABC):
    """Base class of objects with a state, which are copied, pickled and saved by their `contents`.

    Any number of threads may use such an object. A method that changes it is decorated with `writing`, others with
    `reading` (rw_lock.py).
    """

    @abstractmethod
    def contents(self) -> Contents:
        """Return the parameters, plain data and arrays that a file holds.

        The arrays are not copied; `snapshot` copies them.
        """

    @classmethod
    @abstractmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: StateSource) -> Self:
        """Rebuild an object from `params`, `extra` and the arrays `held`, the inverse of `contents`.

        Raises ValueError if they do not belong together. While it runs, new states take no memory
        (foundation/state.py).
        """

    @property
    def has_learned(self) -> bool:
        """True if the object holds more than its parameters.

        If it is an argument of another object that is saved, everything that it holds is then saved, too.
        """
        return False

    @reading
    def copy(self) -> Self:
        """Return an independent copy of the object."""
        return restore(type(self), *self.contents())

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return restore, (type(self), *snapshot(self))

    def save(self, path: str | Path) -> None:
        """Write the object to the file `path`, atomically; `onepass.load` reads it.

        Raises ValueError if its class, or the class of a part, is not registered by `onepass.extend.savable`, or if
        `path` is something other than a regular file.
        """
        save(path, self)


@reading
def snapshot(owner: Any) -> Contents:
    """Return the present contents of a savable object, with copies of its arrays and of its parts that have learned."""
    contents = owner.contents()
    params = {
        name: part.copy() if isinstance(part, Owner) and part.has_learned else part
        for name, part in contents.params.items()
    }
    return contents._replace(params=params, state=None if contents.state is None else copy_arrays(contents.state))


def restore(kind: Any, params: dict[str, Any], extra: dict[str, Any], state: Any) -> Any:
    """Rebuild an object of the class `kind` from contents in memory, whose arrays are copied.

    `params` are the arguments of its constructor, `extra` is further data, and `state` holds its arrays.
    """
    with abstract():
        return kind.from_contents(params, extra, InMemory(state))


def _digest(tensors: dict[str, np.ndarray], header: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def to_bytes(owner: Any) -> bytes:
    """Write a bandit, design or learner, its random generators included, as bytes.

    `from_bytes` is the inverse.

    Parameters
    ----------
    owner : object
        Any object with a method `save`.

    Returns
    -------
    bytes
        The contents of the file that `save` would write.

    Raises
    ------
    ValueError
        If `owner`, or a part of it, is of a class that is not registered (`onepass.extend.savable`).
    TypeError
        If `owner` cannot be saved.

    Examples
    --------
    >>> import onepass as op
    >>> op.from_bytes(op.to_bytes(op.Exact(dim=2, reg=0.5)))
    Exact(dim=2, reg=0.5, dtype='float64')
    """
    if isinstance(owner, type) or not hasattr(owner, "contents"):
        raise TypeError(f"owner must be a bandit, a design or a learner, got {quote(owner)}")
    return pack(class_name(owner), snapshot(owner))


def pack(kind: str, contents: Contents) -> bytes:
    """Return the contents of an object as bytes; the class is registered under the name `kind`."""
    parts: list[Owner] = []
    params = {name: to_plain(value, parts) for name, value in contents.params.items()}
    extra = {name: to_plain(value) for name, value in contents.extra.items()}
    header: dict[str, Any] = {"version": VERSION, "kind": kind, "params": params, "extra": extra}
    written = list(leaves(contents.state))
    if parts:
        known = [part.contents() for part in parts]
        header["parts"] = [{name: to_plain(value) for name, value in one.extra.items()} for one in known]
        for place, one in enumerate(known):
            written += leaves(one.state, f"{place}{BETWEEN}")
    text = json.dumps(header)
    if len(text) > LARGEST_HEADER:
        raise ValueError(f"parameters must take up to {LARGEST_HEADER:,} bytes as text, got {len(text):,}")
    tensors = {name: _array_from_leaf(value) for name, value in written}
    return serialize(tensors, {"onepass": text, "digest": _digest(tensors, header)})


def serialize(tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> bytes:
    """Return arrays and metadata as bytes in the safetensors format.

    Arrays are in order of their names, so equal arrays give equal bytes.
    """
    places, end = {}, 0
    for name in sorted(tensors):
        array = tensors[name]
        if array.dtype.str not in CODES:
            raise ValueError(f"arrays must be of {', '.join(CODES)} to be saved, got {array.dtype} in {name}")
        places[name] = {
            "dtype": CODES[array.dtype.str],
            "shape": array.shape,
            "data_offsets": [end, end + array.nbytes],
        }
        end += array.nbytes
    header = json.dumps({"__metadata__": metadata, **places}).encode()
    header += b" " * (-len(header) % ALIGNED)
    parts = [np.ascontiguousarray(tensors[name]).reshape(-1).view(np.uint8).data for name in sorted(tensors)]
    return b"".join([len(header).to_bytes(8, "little"), header, *parts])


def _array_from_leaf(leaf: Any) -> np.ndarray:
    """Convert a field of a state to an array for a file; arrays of Python objects become JSON text."""
    if isinstance(leaf, np.ndarray) and leaf.dtype == object:
        return np.frombuffer(json.dumps([plain_object(value) for value in leaf]).encode(), np.uint8)
    return np.ascontiguousarray(leaf).reshape(np.shape(leaf))


def plain_object(value: Any) -> Any:
    """Convert an object to JSON: strings, numbers, booleans, None, and tuples of them; ValueError for others."""
    if isinstance(value, np.bool_ | np.integer | np.floating | np.str_):
        value = value.item()
    if isinstance(value, tuple):
        return {"tuple": [plain_object(part) for part in value]}
    if value is None or (type(value) in (str, int, float, bool) and value == value):
        return value
    raise ValueError(f"arm names must be strings, numbers or tuples of them to be saved, got {quote(value)}")


def object_from_plain(value: Any) -> Any:
    """Convert JSON back to the object from which `plain_object` made it."""
    if isinstance(value, dict):
        return tuple(object_from_plain(part) for part in value["tuple"])
    if isinstance(value, list) or value != value:
        raise _misfit(f"{quote(value)} is no name of an arm")
    return value


def save(path: str | Path, owner: Any) -> None:
    """Write `owner`, an object of a registered class, to `path`; raise ValueError if `load` could not rebuild it."""
    write_atomically(_place(path), to_bytes(owner))


def _place(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a string or a path, got {type(path).__name__}")
    return Path(path)


def read(data: bytes, source: str = "data") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays in the bytes that `to_bytes` made.

    The header has the keys version, kind (the class name), params and extra, and also parts if an argument of the
    object had learned. For any other bytes, raises ValueError with one sentence, in which `source` names where the data
    came from.
    """
    from safetensors import SafetensorError, deserialize

    try:
        parts = deserialize(data)
        metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__", {})
        tensors = {name: _array(part) for name, part in parts}
    except (SafetensorError, *UNFIT) as trouble:
        raise ValueError(f"{source} is not a onepass file, or it is damaged: {_sentence(trouble)}") from None
    text, digest = metadata.get("onepass"), metadata.get("digest")
    if text is None or digest is None:
        raise ValueError(f"{source} is not a onepass file: it has no onepass header")
    if len(text) > LARGEST_HEADER:
        raise ValueError(f"{source} is damaged: its parameters take {len(text):,} bytes")
    try:
        header = json.loads(text)
        version, found = header["version"], _digest(tensors, header)
    except UNFIT:
        raise ValueError(f"{source} is not a onepass file: it has no onepass header") from None
    if type(version) is not int or version < min(WRITERS) or version > VERSION:
        raise ValueError(f"{source} has format {quote(version)}, this onepass reads up to {VERSION}; upgrade onepass")
    if version < CHECKED:
        raise _other_writer(source, version, f"its format is {version}, expected {CHECKED} to {VERSION}")
    if digest != found:
        raise ValueError(f"{source} is damaged: its contents do not match its digest; restore it from a copy")
    return header, tensors


def _other_writer(source: str, version: int, reason: str) -> ValueError:
    """Make the error for a file written by an earlier version of onepass that this version cannot read.

    `source` names the file, `version` is the file's format number, and `reason` says why it cannot be read.
    """
    writer, reader = WRITERS[version], sys.modules[PACKAGE].__version__
    return ValueError(
        f"{source} was written by onepass {writer}; onepass {reader} does not read it: {reason}; learn the model again "
        f"from its data or log, or load it with onepass {writer}"
    )


def _array(part: dict[str, Any]) -> np.ndarray:
    """Return one array of a file, described by its safetensors entry, as a copy in new memory."""
    if part["dtype"] not in DTYPES:
        raise ValueError(f"arrays of {part['dtype']} are none of ours")
    data = part["data"] if isinstance(part["data"], bytearray) else bytearray(part["data"])
    array = np.frombuffer(data, DTYPES[part["dtype"]]).reshape(part["shape"])
    if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
        raise ValueError("a truth value is neither 0 nor 1")
    return array if array.flags.carray else array.copy()


def _sentence(trouble: BaseException) -> str:
    """Return the message of an exception on one line."""
    return (str(trouble).splitlines() or [type(trouble).__name__])[0][:LONGEST]


def from_bytes(data: Any) -> Any:
    """Rebuild the bandit, design or learner of these bytes; it continues exactly where the saved one stopped.

    Nothing in the bytes is executed.

    Parameters
    ----------
    data : bytes, bytearray or memoryview
        Result of `to_bytes`, or the contents of a file.

    Returns
    -------
    object
        The bandit, design or learner.

    Raises
    ------
    ValueError
        If the data are truncated, altered, not from onepass or from a newer version, or of a class that is not
        registered.
    TypeError
        If `data` is not bytes.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"data must be bytes, got {type(data).__name__}")
    return _build_owner(bytes(data), "data")


def load(path: str | Path) -> Any:
    """Load the bandit, design or learner saved to `path`; it continues exactly where the saved one stopped.

    Nothing in a file is executed.

    Parameters
    ----------
    path : str or Path
        A file that `save` wrote.

    Returns
    -------
    object
        The bandit, design or learner.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is truncated, altered, not from onepass or from a newer version, or of a class that is not
        registered.
    """
    place = _place(path)
    if not os.path.isfile(place):  # false, where `Path.is_file` raises, for a name that no file can have
        raise FileNotFoundError(f"there is no file {quote_path(path)}")
    return _build_owner(place.read_bytes(), repr(str(path)))


def _build_owner(data: bytes, source: str) -> Any:
    header, tensors = read(data, source)
    del data
    try:
        owner: Any = find_class(header["kind"])
        with abstract(), np.errstate(all="ignore"):
            own, parts = _split_parts(tensors, header.get("parts", []))
            params = {name: build(value, parts.build) for name, value in header["params"].items()}
            if parts.left:
                raise _misfit("it has arrays of an argument that its parameters do not name")
            return owner.from_contents(params, header["extra"], FromFile(own))
    except UNFIT as trouble:
        reason = _sentence(trouble)
        if header["version"] < VERSION:
            raise _other_writer(source, header["version"], reason) from None
        reason = reason if reason.startswith(MISFIT) else f"its parameters are refused ({reason})"
        raise ValueError(f"{source} is damaged: {reason}") from None


class Parts(NamedTuple):
    """Objects that were saved as arguments of another object.

    `left` maps an object's index in the file to its plain data and arrays. `build` takes an object out when it rebuilds
    it.
    """

    left: dict[int, tuple[dict[str, Any], FromFile]]

    def build(self, kind: Any, given: dict[str, Any], place: Any) -> Any:
        """Build the part with index `place` in the file, of class `kind` with arguments `given`.

        Raises KeyError if it was built already or does not exist.
        """
        extra, held = self.left.pop(place)
        return kind.from_contents(given, extra, held)


def _split_parts(tensors: dict[str, np.ndarray], extras: list[dict[str, Any]]) -> tuple[dict[str, np.ndarray], Parts]:
    """Split a file's arrays into those of the owner itself and those of its parts.

    The name of a part's array begins with the part's index. `extras` holds the plain data of each part. Raises
    ValueError if an array has the index of no part.
    """
    own: dict[str, np.ndarray] = {}
    each: list[dict[str, np.ndarray]] = [{} for _ in extras]
    for name, array in tensors.items():
        place, between, path = name.rpartition(BETWEEN)
        if not between:
            own[name] = array
        elif place in map(str, range(len(extras))):
            each[int(place)][path] = array
        else:
            raise _misfit(f"array {quote(name)} belongs to no argument")
    return own, Parts(
        {i: (extra, FromFile(arrays)) for i, (extra, arrays) in enumerate(zip(extras, each, strict=True))}
    )
