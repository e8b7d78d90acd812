"""Generic functions: one name, many states, the same dispatch in Python and in compiled code.

A member of a family is a ``NamedTuple`` (its whole state) and a few functions registered for that type::

    @generic
    def solve(state, b): ...  # what the name means; called for a type nobody has registered


    @solve.for_state(Exact)
    def solve_exact(state, b): ...  # what it does for one type

Compiled code that calls ``solve`` is specialised on the type of the state, so one loop serves every design,
and the result is cached on disk (compilation.py).
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numba import config, njit, typeof, types
from numba.core.typing.templates import AbstractTemplate, infer_global

from onepass.foundation import numba_boxing  # noqa: F401  # how states leave compiled code
from onepass.foundation.compilation import attach_cache, include_source, is_ours


def compiled(function: Callable, *, nogil: bool = True) -> Any:
    """Compile a function with ``numba.njit`` and the package's disk cache, which never goes stale.

    A function without a source file is not cached. Floating-point sums may be reordered so that they are vectorized;
    NaN and infinities keep their meaning. Use this decorator for helpers of your own designs as well, because the cache
    does not notice a change of a plain ``njit`` function in another file.

    With `nogil`, other Python threads run while the function does; that costs 0.06 µs a call. Pass False for very short
    functions. Compiled callers use a variant that Python cannot call (numba_linking.py).
    """
    if getattr(config, "DISABLE_JIT", False):  # all of it as Python: an index beyond an array is an IndexError
        return function
    options: dict[str, Any] = {"fastmath": {"reassoc", "contract"}, "nogil": nogil, "no_cfunc_wrapper": True}

    @functools.cache
    def inner() -> Any:  # made when the function is first compiled, or called by compiled code
        bare = {**options, "no_cpython_wrapper": True}
        return attach_cache(njit(function, **bare), "inner-")

    python = attach_cache(njit(function, **options), "", inner)
    python.get_call_template = lambda *given: inner().get_call_template(*given)
    python.get_overload = lambda signature: inner().get_overload(signature)
    return python


def direct(function: Any, *like: Any) -> Callable:
    """Return the compiled code of a function for the types of the example arguments `like`, and for these only.

    A normal call of a compiled function first determines the type of every argument, which takes 2 to 20 µs for a state
    of many arrays. This callable skips that. The caller must make sure that classes, dtypes, dimensions and memory
    layouts are the same in every call. Tests can have calls checked (`verify_direct_calls`).
    """
    if getattr(config, "DISABLE_JIT", False):
        return function
    keys = tuple(map(_type_key, like))
    known = _direct.get(function)
    if known is None:
        known = _direct[function] = {}
    if keys not in known:
        kinds = tuple(map(function.typeof_pyval, like))
        if kinds not in function.overloads:
            function.compile(kinds)
        known[keys] = kinds, function.overloads[kinds].entry_point
    kinds, code = known[keys]
    if not _verified:
        return code

    calls = itertools.count()

    def call_verified(*given: Any) -> Any:
        number = next(calls)
        if (number < 4 or number % 32 == 0) and tuple(map(_type_key, given)) != keys:
            found = tuple(map(function.typeof_pyval, given))
            assert found == kinds, f"{function.__name__} was compiled for {kinds}, and is called with {found}"
        return code(*given)

    return call_verified


_direct: WeakKeyDictionary[Any, dict[tuple, tuple]] = WeakKeyDictionary()  # by function: types and code, by type keys
_PLAIN = frozenset({bool, float, type(None), np.bool_, np.int64, np.float32, np.float64})
_LAYOUT = 0x1 | 0x2 | 0x400  # of the flags of an array: contiguous in rows, contiguous in columns, writeable


def _type_key(value: Any) -> Any:
    """Return what determines the numba type of a value: equal keys, equal types.

    numba takes 70 µs to find the type of a state of five arrays; its key takes 4 µs.
    """
    kind = type(value)
    if kind is np.ndarray:
        return value.dtype, value.ndim, value.flags.num & _LAYOUT
    if kind in _PLAIN or (kind is int and -(2**63) < value < 2**63):
        return kind
    if issubclass(kind, tuple):
        return kind, *map(_type_key, value)
    return typeof(value)


def call_direct(code: dict[Any, Callable] | None, function: Any, *given: Any) -> Any:
    """Call a compiled function without determining argument types again, and return its result.

    `code` caches the compiled code for the types of the first call: pass an empty dictionary at first, and the same one
    at every call. With `code` None the function is called as usual, so the types may differ from call to call.
    """
    if code is None:
        return function(*given)
    found = code.get(function)
    if found is None:
        found = code[function] = direct(function, *given)
    return found(*given)


_verified: list[bool] = []  # empty: direct calls are not checked


def verify_direct_calls() -> None:
    """Make all results of `direct` from now on raise AssertionError if an argument has another type than at first.

    The first few calls are checked, and every 32nd call after that.
    """
    _verified.append(True)


def is_registered(function: Any, state: Any) -> bool:
    """Return True if a generic function has an implementation for the type of a state."""
    return function.dispatch(type(state)) is not function.dispatch(object)


def generic(function: Callable, *, default: bool = False) -> Any:
    """Make a function that dispatches on the type of its first argument, in Python and in compiled code alike.

    If `default` is True, the body is compiled for every type without a registered implementation. Otherwise the body is
    called for such a type, and must raise an error. The decorator `for_state(StateClass)` of the result registers an
    implementation for a type.
    """
    python = functools.singledispatch(compiled(function) if default else function)
    members: dict[Any, Any] = {}
    other = python.dispatch(object) if default else None

    class Dispatch(AbstractTemplate):
        """numba template that replaces a call by the implementation registered for the state's type."""

        key = python

        def generic(self, args: Any, kws: Any) -> Any:
            chosen = self.member(args[0])
            return None if chosen is None else types.Dispatcher(chosen).get_call_type(self.context, args, kws)

        def get_impl_key(self, sig: Any) -> Any:
            return self.member(sig.args[0]).get_overload(sig.args)

        @staticmethod
        def member(kind: Any) -> Any:
            return members.get(getattr(kind, "instance_class", None), other)

    infer_global(python, types.Function(Dispatch))

    def for_state(state_class: type) -> Callable:
        def register(implementation: Callable) -> Any:
            if is_ours(state_class) and not is_ours(implementation):
                include_source(implementation)
            members[state_class] = python.register(state_class)(compiled(implementation))
            return members[state_class]

        return register

    python.for_state = for_state  # type: ignore[attr-defined]
    return python
