"""Registry of the classes that a file may name; loading builds no others.

A registered class has `params`, the constructor's arguments as plain data (a dictionary, or a method that returns one),
and is rebuilt by its constructor. An instance that is an argument of another one is written as
`to_plain(instance)` = {"kind": the name of its class, **params}. The module files.py describes how other data and
arrays of an instance are stored.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from onepass.foundation.check import quote

Kind = TypeVar("Kind", bound=type)

_known: dict[str, type] = {}
_lazy: dict[str, Callable[[], type]] = {}

PACKAGE = __name__.partition(".")[0]
PART = "part"  # where an instance says which part of a file holds what it knows


def savable(kind: Kind) -> Kind:
    """Register the class `kind`, so that its objects can be saved and loaded. Use it as a decorator.

    Raises ValueError if another class of that name is registered, because files tell classes apart by their names.

    >>> import onepass as op
    >>> @op.extend.savable
    ... class Halving(op.Greedy):
    ...     "A rule of one's own."
    """
    name = kind.__name__
    if kind.__module__.partition(".")[0] != PACKAGE:
        _import_all_classes()
    held = _known.setdefault(name, kind)
    if (held.__module__, held.__qualname__) != (kind.__module__, kind.__qualname__):
        raise ValueError(f"a class named {name} is registered by {held.__module__}; name yours otherwise")
    _known[name] = kind
    return kind


def _import_all_classes() -> None:
    """Import every module of the package that registers classes."""
    _ = sys.modules[PACKAGE].__all__
    for name in ("design", "dynamics", "estimator", "features", "learner", "model"):
        package = import_module(f"{PACKAGE}.{name}")
        for public in package.__all__:
            getattr(package, public)


def register_lazy(name: str, found: Callable[[], type]) -> None:
    """Register a savable class that needs an optional package; it is imported only when a file names it.

    Parameters
    ----------
    name : str
        Name of the class.
    found : callable
        Function without arguments that imports and returns the class.
    """
    _lazy[name] = found


def list_classes(family: type) -> list[type]:
    """Return all registered classes that are subclasses of `family`, in order of their names."""
    _import_all_classes()
    return [_known[name] for name in sorted(_known) if issubclass(_known[name], family)]


def find_class(name: Any) -> type:
    """Return the class registered under a name. Raises ValueError if there is none."""
    if name not in _known and name not in _lazy:
        _import_all_classes()
    if name in _lazy:
        return _lazy[name]()
    if name not in _known:
        raise ValueError(f"{quote(name)} is not a registered class")
    return _known[name]


def class_name(owner: Any) -> str:
    """Return the name under which an object's class is registered. Raises ValueError if it is not."""
    kind = type(owner)
    if _known.get(kind.__name__) is not kind and kind.__name__ not in _lazy:
        raise ValueError(
            f"{kind.__name__} is not known to onepass.load; "
            "decorate the class with onepass.extend.savable before saving"
        )
    return kind.__name__


def to_plain(value: Any, parts: list[Any] | None = None) -> Any:
    """Convert an argument to plain data; an object of a registered class becomes its class name and arguments.

    Anything else stays as it is. Objects that have learned something are appended to the list `parts`, and their index
    there is stored. If `parts` is None, only their parameters are stored.
    """
    given = getattr(value, "given", getattr(value, "params", None))
    if given is None:
        return value
    if callable(given):  # parts as they are have a place, too, where they know something
        given = given() if parts is None or not getattr(value, "has_learned", False) else value.contents().params
    found = {"kind": class_name(value), **{name: to_plain(part, parts) for name, part in given.items()}}
    if parts is not None and getattr(value, "has_learned", False):
        found[PART] = len(parts)
        parts.append(value)
    return found


def has_equal_arguments(one: Any, other: Any) -> bool:
    """Return True if `one` and `other`, instances of registered classes or tuples of them, have equal arguments."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(has_equal_arguments, one, other))
    return one is other or (type(one) is type(other) and bool(to_plain(one) == to_plain(other)))


def build(value: Any, part: Callable[[type, dict[str, Any], Any], Any] | None = None) -> Any:
    """Rebuild an argument from plain data, the inverse of `to_plain`.

    Raises ValueError for a class that is not registered. The function `part` rebuilds an object that had learned
    something, from its class, its arguments and its index in the list `parts` of `to_plain`. Without `part`, such an
    object is built from its arguments alone, and has learned nothing.
    """
    if not isinstance(value, dict):
        return value
    if "kind" not in value:
        raise ValueError("an argument has no kind")
    kind = find_class(value["kind"])
    given = {name: build(inner, part) for name, inner in value.items() if name not in ("kind", PART)}
    if part is None or PART not in value:
        return kind(**given)
    return part(kind, given, value[PART])
