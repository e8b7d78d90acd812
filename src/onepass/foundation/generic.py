"""Generic functions: one name, many states, the same dispatch in Python and in compiled code.

A member of a family is a ``NamedTuple`` (its whole state) and a few functions registered for that type::

    @generic
    def solve(state, b): ...  # what the name means; called for a type nobody has registered


    @solve.for_state(Exact)
    def solve_exact(state, b): ...  # what it does for one type

Compiled code that calls ``solve`` is specialised on the type of the state, so one loop serves every design,
and the result is cached on disk. numba keys that cache by the file of the compiled function only; a loop would
therefore keep calling an old `solve_exact` after its file changed. `compiled` adds a fingerprint of every
source that could have been called to the key: a stale entry is never found, and never loaded.
"""

import hashlib
import inspect
import marshal
import sys
from collections.abc import Callable
from functools import singledispatch
from pathlib import Path
from typing import Any

from numba import njit, types
from numba.core.caching import FunctionCache
from numba.extending import overload

from onepass.foundation import boxing  # noqa: F401  # how states leave compiled code

PACKAGE = Path(__file__).parent.parent
NEVER_COMPILED = {"experiment", "cli.py", "__main__.py", "benchmark"}

_sources = hashlib.sha256()  # of everything compiled code may call, as it was when it was imported
for _path in sorted(PACKAGE.rglob("*.py")):
    if _path.relative_to(PACKAGE).parts[0] not in NEVER_COMPILED:
        _sources.update(_path.name.encode() + b"\0" + _path.read_bytes())


def _spelled(kind: types.Type) -> str:
    """A type in words, states by module and name: plain text, so reading an index imports nobody's module."""
    members = getattr(kind, "types", None)
    if members is None:
        return str(kind)
    owner = getattr(kind, "instance_class", tuple)
    return f"{owner.__module__}.{owner.__qualname__}({', '.join(map(_spelled, members))})"


def _importable(kind: types.Type) -> bool:
    """Whether another process finds the very same state classes: not those of a script, a notebook or an exec."""
    owner = getattr(kind, "instance_class", None)
    if owner is not None:
        home = sys.modules.get(owner.__module__)
        if owner.__module__ == "__main__" or getattr(home, owner.__qualname__, None) is not owner:
            return False
    return all(map(_importable, getattr(kind, "types", ())))


class _FreshCache(FunctionCache):
    """numba's disk cache, keyed by the sources of everything that a compiled function may call."""

    def load_overload(self, sig, target_context):
        return super().load_overload(sig, target_context) if all(map(_importable, sig)) else None

    def save_overload(self, sig, data):
        if all(map(_importable, sig)):
            super().save_overload(sig, data)

    def _index_key(self, sig, codegen):
        known = super()._index_key((), codegen)
        return (*map(_spelled, sig), *known, _sources.hexdigest())


def compiled(function: Callable, *, nogil: bool = False) -> Any:
    """``numba.njit`` with a disk cache that cannot go stale; a function without a source file is not cached.

    Sums may be reassociated (so that they are vectorized); NaN and infinities keep their meaning. Use it for helpers
    of your own designs as well: a plain ``njit`` function in another file is not seen by the cache.
    nogil: let other Python threads run meanwhile.
    """
    dispatcher = njit(function, fastmath={"reassoc", "contract"}, nogil=nogil)
    file = Path(inspect.getfile(function))
    if PACKAGE not in file.parents:  # somebody else's code becomes part of what our loops call
        _sources.update(file.read_bytes() if file.is_file() else marshal.dumps(function.__code__))
    if file.is_file():
        dispatcher._cache = _FreshCache(function)
    return dispatcher


def generic(function: Callable, *, default: bool = False) -> Any:
    """A function that dispatches on the type of its first argument, in Python and in compiled code alike.

    default: the body serves, compiled, every type that nobody has registered; else it says that there is none.
    """
    python = singledispatch(compiled(function) if default else function)

    def register(implementation: Callable, serves: Callable[[Any], bool]) -> None:
        def pick(*arguments):
            return implementation if serves(getattr(arguments[0], "instance_class", None)) else None

        pick.__signature__ = inspect.signature(implementation)  # type: ignore[attr-defined]  # numba compares them
        overload(python)(pick)

    def for_state(state_class: type) -> Callable:
        def registered(implementation: Callable) -> Any:
            register(implementation, lambda found: found is state_class)
            return python.register(state_class)(compiled(implementation))

        return registered

    if default:
        register(function, lambda found: found not in python.registry)
    python.for_state = for_state  # type: ignore[attr-defined]
    return python
