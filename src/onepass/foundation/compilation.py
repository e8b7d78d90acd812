"""Compiled functions whose machine code is cached on disk and never goes stale.

numba's own cache knows only the file of the compiled function, so a loop would keep calling an old `solve` after that
function's file changed. Here the name of a cache entry is a digest of everything its code depends on: the function, the
argument types, the processor, the versions of numba and Python, and every source file it may call. Those are all files
of this package and, if types or functions of other packages are involved, all of their files. A stale entry is
therefore never found.

This module uses private names of numba, which is why its version is pinned: here `Dispatcher._cache`, `._compiler` and
`.compile`, `CompileResult._reduce` and `._rebuild`; in numba_linking.py `JITCodeLibrary` and `event._registered`; in
numba_boxing.py how results leave compiled code; in numba_bookkeeping.py what its `REPLACED` lists.
"""

import functools
import hashlib
import inspect
import marshal
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba import types
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult, Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps

from onepass.foundation import cache
from onepass.foundation.compile_notice import time_compilation
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.forks import open_at_fork
from onepass.foundation.numba_bookkeeping import reduce_bookkeeping
from onepass.foundation.numba_linking import add_python_wrapper, link_lazily

NEVER_COMPILED = {
    "__main__.py", "adapters", "cache.py", "cli", "client", "cluster", "curve_labels.py", "atomic_write.py", "files.py",
    "lab", "log", "precompile.py", "recipes", "records.py", "registry.py", "service", "rw_lock.py", "flatten.py",
    "testing", "tuning", "compile_notice.py",
    # of bandit and evaluation, and the public names: they change often and no compiled code reads them
    "ab_test.py", "anytime.py", "bandit.py", "baseline_promise.py", "budgeted.py", "censored_rewards.py",
    "comparison.py", "contrasts.py", "decision.py", "delay_law.py", "delay_laws.py", "diagnosis.py", "evaluate.py",
    "explain.py", "extend.py", "fixed_sample.py", "frames.py", "guarded.py", "harm_test.py", "list_bandit.py",
    "list_rewards.py", "maximizer.py", "outcomes.py", "pacing.py", "pending_rewards.py", "plots.py", "policies.py",
    "public.py", "recommender", "restart_on_change.py", "rewarded_ids.py", "sketch_warning.py", "slates.py",
    "store_events.py", "streaming.py", "warm_start.py",
}  # fmt: skip
PLAIN = (
    types.Array, types.Number, types.Boolean, types.NoneType, types.DType, types.Literal, types.Omitted,
    types.UnicodeType,
)  # fmt: skip
LONGEST = 120  # characters of a function's name in that of a file, of which there may be 255

sources = hashlib.sha256()  # of everything in the package that compiled code may call, as it was when it was imported
foreign = hashlib.sha256()  # of everybody else's: part of the names of what was made for their types only
for _path in sorted(cache.PACKAGE.rglob("*.py")):
    if not NEVER_COMPILED.intersection((_path.relative_to(cache.PACKAGE).parts[0], _path.name)):
        sources.update(_path.name.encode() + b"\0" + _path.read_bytes())


# ---- types ----


def _type_name(kind: types.Type) -> str:
    """Return the name of a numba type; a state's class is named with its module, and so are the types of its fields."""
    members = getattr(kind, "types", None)
    if members is None:
        return str(kind)
    owner = getattr(kind, "instance_class", tuple)
    return f"{owner.__module__}.{owner.__qualname__}({', '.join(map(_type_name, members))})"


def _importable(kind: types.Type) -> bool:
    """Return True if another process can import the state classes in a numba type.

    Classes defined in a script, a notebook or an exec cannot be imported.
    """
    owner = getattr(kind, "instance_class", None)
    if owner is not None:
        home = sys.modules.get(owner.__module__)
        if owner.__module__ == "__main__" or getattr(home, owner.__qualname__, None) is not owner:
            return False
    return all(map(_importable, getattr(kind, "types", ())))


def _is_our_type(kind: types.Type) -> bool:
    """Return True if a numba type consists of numbers, arrays and this package's states only.

    Compiled code for such a type calls no code of other packages.
    """
    owner, members = getattr(kind, "instance_class", None), getattr(kind, "types", None)
    if members is None:
        return isinstance(kind, PLAIN)
    return (owner is None or is_ours(owner)) and all(map(_is_our_type, members))


def is_ours(owner: Any) -> bool:
    """Return True if a class or function is defined in onepass."""
    return owner.__module__.partition(".")[0] == __name__.partition(".")[0]


# ---- entries ----


def entry_suffix() -> str:
    """Return the file suffix of cache entries that were compiled from the present sources."""
    return f".{sources.hexdigest()[:8]}.compiled"


class Entries(NullCache):
    """Cache entries of one compiled function, one for each combination of argument types.

    The interface is that of numba's caches.
    """

    def __init__(self, function: Callable, prefix: str) -> None:
        self.function = function
        home, line = function.__module__.rpartition(".")[2], function.__code__.co_firstlineno
        title = f"{prefix}{home}.{function.__qualname__}-{line}"
        self.title: str = title.replace("<", "").replace(">", "")[:LONGEST]

    @property
    def cache_path(self) -> str:
        return str(next(cache.folders(), ""))

    def name(self, sig: Any, codegen: Any) -> str | None:
        """Return the file name of the entry for a signature, a digest of everything its code depends on.

        Returns None if no other process could use the entry.
        """
        if not all(map(_importable, sig)):
            return None
        cells = tuple(cell.cell_contents for cell in self.function.__closure__ or ())
        versions = (numba.__version__, llvmlite.__version__, sys.version, codegen.magic_tuple())
        key = (self.function.__module__, self.title, [_type_name(kind) for kind in sig], versions)
        digest = hashlib.sha256(repr(key).encode())
        digest.update(dumps(cells) if cells else b"")
        digest.update(sources.digest())
        if cells or not is_ours(self.function) or not all(map(_is_our_type, sig)):
            digest.update(foreign.digest())
        return f"{self.title}.{digest.hexdigest()[:24]}{entry_suffix()}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        name = self.name(sig, target_context.codegen())
        content = None if name is None else cache.read_entry(name)
        if content is None:
            return None
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(content))
        except (ImportError, AttributeError):  # of a module that has lost what it had
            return None


class Compiler:
    """Wrapper of numba's compiler `usual` for one function, which uses the disk cache.

    `kept` are the cache entries of the function. One process at a time compiles an entry, and writes the result to the
    cache at once. The time is measured. If `inner` returns the dispatcher of the variant that compiled code calls, that
    variant is compiled, and a wrapper for calls from Python is linked to it.
    """

    usual: Any
    kept: Entries | None
    inner: Callable[[], Any] | None

    def __init__(self, usual: Any, kept: Entries | None, inner: Callable[[], Any] | None) -> None:
        self.usual, self.kept, self.inner = usual, kept, inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.usual, name)

    def compile(self, args: Any, return_type: Any) -> Any:
        with time_compilation(cache.compile_message, cache.record_seconds):
            context, kept = self.usual.targetdescr.target_context, self.kept
            name = None if kept is None or return_type is not None else kept.name(args, context.codegen())
            if kept is None or name is None:
                return self._compile(args, return_type)
            with cache.turn(name):
                result = kept.load_overload(args, context)  # another process may have made it meanwhile
                if result is not None:
                    context.insert_user_function(result.entry_point, result.fndesc, [result.library])
                    return result
                result = self._compile(args, return_type)
                if not result.library.has_dynamic_globals:
                    cache.write_entry(name, dumps(result._reduce()))
                return result

    def _compile(self, args: Any, return_type: Any) -> Any:
        if self.inner is None or return_type is not None:
            return self.usual.compile(args, return_type)
        inner = self.inner()
        inner.compile(args)
        flags = Flags()
        self.usual.targetdescr.options.parse_as_flags(flags, self.usual.targetoptions)
        return add_python_wrapper(inner.overloads[args], flags)


@functools.cache
def _is_file(path: str) -> bool:
    return Path(path).is_file()


def _text(function: Callable) -> bytes:
    file = Path(inspect.getfile(function))
    return file.read_bytes() if file.is_file() else marshal.dumps(function.__code__)


def include_source(function: Callable) -> None:
    """Add the source of a function from another package to the digest, because our compiled code may call it."""
    sources.update(_text(function))


def attach_cache(dispatcher: Any, prefix: str, inner: Callable[[], Any] | None = None) -> Any:
    """Give a numba dispatcher the disk cache of onepass, and return the dispatcher.

    `prefix` begins the names of the cache files. A function without a source file gets no cache. `inner` returns the
    dispatcher of the same function without a wrapper for Python, which is then compiled in its place.
    """
    function = dispatcher.py_func
    if not prefix and not is_ours(function):  # somebody else's code becomes part of what our loops call
        foreign.update(_text(function))
    kept = Entries(function, prefix) if _is_file(inspect.getfile(function)) else None
    if kept is not None:
        dispatcher._cache = kept
    dispatcher._compiler = Compiler(dispatcher._compiler, kept, inner)
    dispatcher.compile = _defer_while_compiling(dispatcher.compile)
    return dispatcher


def _defer_while_compiling(compile_or_load: Callable) -> Callable:
    """Return the compile function with signals deferred until it ends.

    An exception raised while LLVM calls back into Python would be lost, and the compiled code with it.
    """

    def compile(sig: Any) -> Any:
        with defer_signals(), global_compiler_lock, link_lazily(), reduce_bookkeeping():
            return compile_or_load(sig)

    return compile


open_at_fork(global_compiler_lock)
