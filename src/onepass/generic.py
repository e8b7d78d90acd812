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
from collections.abc import Callable
from functools import lru_cache, singledispatch
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache
from numba.extending import overload

_registered: set[str] = set()  # source files outside this package whose functions compiled code may call


@lru_cache
def _digest(files: frozenset[str]) -> str:
    package = Path(__file__).parent
    sources = [path for path in package.rglob("*.py") if "experiment" not in path.parts]
    digest = hashlib.sha256()
    for path in sorted({*sources, *map(Path, files)}):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class _FreshCache(FunctionCache):
    """numba's disk cache, keyed by the sources of everything that a compiled function may call."""

    def _index_key(self, sig, codegen):
        return (*super()._index_key(sig, codegen), _digest(frozenset(_registered)))


def compiled(function: Callable) -> Any:
    """``numba.njit`` with a disk cache that cannot go stale; a function without a source file is not cached.

    Sums may be reassociated (so that they are vectorized); NaN and infinities keep their meaning.
    """
    dispatcher = njit(function, fastmath={"reassoc", "contract"})
    if Path(inspect.getfile(function)).is_file():
        dispatcher._cache = _FreshCache(function)
    return dispatcher


def generic(function: Callable) -> Any:
    """A function that dispatches on the type of its first argument, in Python and in compiled code alike."""
    python = singledispatch(function)

    def for_state(state_class: type) -> Callable:
        def register(implementation: Callable) -> Any:
            file = Path(inspect.getfile(implementation))
            if file.is_file() and Path(__file__).parent not in file.parents:
                _registered.add(str(file))

            def pick(*arguments):
                return implementation if getattr(arguments[0], "instance_class", None) is state_class else None

            pick.__signature__ = inspect.signature(implementation)  # type: ignore[attr-defined]  # numba compares them
            overload(python)(pick)
            return python.register(state_class)(compiled(implementation))

        return register

    python.for_state = for_state  # type: ignore[attr-defined]
    return python
