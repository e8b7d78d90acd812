"""Shortcuts in numba's bookkeeping, which save a fifth of the compile time.

- If an array is assigned to a slice, numba links code that formats both shapes into the error message. It is replaced
  by a fixed message.
- numba makes wrappers, callable from C, for its own helper functions. They are not made.
- Compiler flags are part of a key that is looked up for every operation. numba reads all forty of them to compute a
  hash that depends on their names alone, and again to compare equal flags. Both are cached.
- Every call of LLVM notifies listeners at its begin and end. The notification is switched off if there are none.
- numba builds a list for every part of a statement to find its variables. One list is used instead.

These are private names of numba and llvmlite, as in compilation.py.
"""

import contextlib
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from llvmlite.binding import ffi
from numba.core import event, ir
from numba.core.lowering import BaseLower
from numba.core.targetconfig import TargetConfig
from numba.extending import overload
from numba.np import arrayobj

LLVM = "numba:llvm_lock"  # the event of LLVM's calls

values_of = attrgetter("_values")  # of flags, without those that have their default
callbacks_of = attrgetter("_lock._cblist")  # of LLVM's library: who is told of its calls

_hashes: dict[type, int] = {}  # of flags, by class
_kinds: dict[type, Callable[[Any, list], None] | None] = {}  # how the variables of a part are found, by class


def _hash_flags(flags: Any) -> int:
    kind = type(flags)
    if kind not in _hashes:
        _hashes[kind] = hash(tuple(sorted(kind.options)))
    return _hashes[kind]


def _equal_flags(flags: Any, other: Any) -> Any:
    if type(flags) is type(other) and values_of(flags) == values_of(other):
        return True
    return _usual_equality(flags, other)


_usual_equality: Any = TargetConfig.__eq__


def _list_variables(_: Any, part: Any) -> list:
    found: list[Any] = []
    _add_variables(part, found)
    return found


def _add_variables(part: Any, found: list) -> None:
    kind = type(part)
    if kind not in _kinds:
        _kinds[kind] = _collector(kind)
    add = _kinds[kind]
    if add is not None:
        add(part, found)


def _collector(kind: type) -> Callable[[Any, list], None] | None:
    """Return the function that lists the variables in a statement's part of class `kind`; None if it has none."""
    if issubclass(kind, ir.Var):
        return lambda part, found: found.append(part)
    if issubclass(kind, ir.Inst):
        return lambda part, found: found.extend(part.list_vars())
    if issubclass(kind, list | tuple):
        return _add_each
    if issubclass(kind, dict):
        return lambda part, found: _add_each(part.values(), found)
    return None


def _add_each(parts: Any, found: list) -> None:
    for part in parts:
        _add_variables(part, found)


def _raise_shape_error(source: Any, target: Any) -> None:
    """Raise ValueError for an array whose shape differs from that of a slice; only compiled code calls it."""


@overload(_raise_shape_error)
def _compile_shape_error(source: Any, target: Any) -> Callable:
    def raise_error(source: Any, target: Any) -> None:
        raise ValueError("cannot assign slice from input of different size")

    return raise_error


def _make_c_wrapper(lower: Any) -> None:
    if not lower.fndesc.modname.startswith("numba."):
        _usual_c_wrapper(lower)


_usual_c_wrapper: Any = BaseLower.create_cfunc_wrapper

REPLACED: tuple[tuple[Any, str, Any], ...] = (
    (TargetConfig, "__hash__", _hash_flags),
    (TargetConfig, "__eq__", _equal_flags),
    (ir.Inst, "_rec_list_vars", _list_variables),
    (BaseLower, "create_cfunc_wrapper", _make_c_wrapper),
    (arrayobj, "raise_with_shape_context", _raise_shape_error),
)


@contextlib.contextmanager
def reduce_bookkeeping() -> Iterator[None]:
    """Skip some of numba's own bookkeeping inside the block, which saves a fifth of the compile time.

    It is a context manager. The caller must hold numba's compiler lock.
    """
    usual = [(owner, name, getattr(owner, name)) for owner, name, _ in REPLACED]
    told = [] if event._registered[LLVM] else callbacks_of(ffi.lib)[:]
    for owner, name, ours in REPLACED:
        setattr(owner, name, ours)
    for pair in told:
        ffi.unregister_lock_callback(*pair)
    try:
        yield
    finally:
        for owner, name, before in usual:
            setattr(owner, name, before)
        for pair in told:
            ffi.register_lock_callback(*pair)
