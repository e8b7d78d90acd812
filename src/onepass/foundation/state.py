"""States as trees of arrays and scalars, with functions to copy, measure, flatten and rebuild them.

They work for every NamedTuple and tuple. Within `abstract()`, `zeros` and `copy` allocate no memory, so an initial
state of any size tells the names, shapes and dtypes of its arrays at no cost. Files are compared with such abstract
states before anything is allocated.
"""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

LARGE, HUGE = 1 << 18, 1 << 22  # bytes from which zeros of `cleared_late` are pages of their own, and large ones

_abstract: ContextVar[bool] = ContextVar("_abstract", default=False)


@contextmanager
def abstract() -> Iterator[None]:
    """Make new states take no memory inside the block: only their shapes and dtypes can be used, to check a file."""
    token = _abstract.set(True)
    try:
        yield
    finally:
        _abstract.reset(token)


def is_abstract() -> bool:
    """Return True inside a block of `abstract`, where new states take no memory."""
    return _abstract.get()


def zeros(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    """Return an array of zeros for a new state, or a stand-in that takes no memory inside a block of `abstract`."""
    if is_abstract():
        return np.broadcast_to(np.zeros((), dtype), shape)
    try:
        return np.zeros(shape, dtype)
    except (MemoryError, ValueError):
        raise ValueError(f"an array of shape {shape} does not fit into memory; choose a smaller size") from None


def lazy_zeros(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    """Return an array of zeros whose memory the operating system clears page by page, when it is first written to."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if size < LARGE:
        return np.zeros(shape, dtype)
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    try:
        pages = mmap.mmap(-1, size, **private)
    except (OSError, OverflowError):
        raise ValueError(f"an array of shape {shape} does not fit into memory; choose a smaller size") from None
    if size >= HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype).reshape(shape)


def full(value: float, *shape: int, dtype: Any = np.float64) -> np.ndarray:
    """Return an array filled with `value` for a new state, or a stand-in without memory inside a block of `abstract`.

    If `value` is infinite, entries of a saved state may be infinite too.
    """
    return np.broadcast_to(np.array(value, dtype), shape) if is_abstract() else np.full(shape, value, dtype)


def identity(dim: int, scale: float, dtype: Any = np.float64) -> np.ndarray:
    """Return `scale` times the identity matrix (dim, dim) for a new state; a stand-in inside a block of `abstract`."""
    out = zeros(dim, dim, dtype=dtype)
    if not is_abstract():
        np.fill_diagonal(out, scale)
    return out


def is_state(value: Any) -> bool:
    """Return True if `value` is a NamedTuple, or a plain tuple of states."""
    return isinstance(value, tuple)


def _names(state: Any) -> Any:
    return getattr(state, "_fields", None) or map(str, range(len(state)))


def leaves(state: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, array or scalar) for every entry of a nested state, with paths such as ``design.space.basis``.

    Every path begins with `prefix`.
    """
    for name, value in zip(_names(state), state, strict=True):
        if is_state(value):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def rebuild(template: Any, values: dict[str, Any], prefix: str = "") -> Any:
    """Return a state with the structure of `template`; `values` maps each path to its array or scalar.

    Paths are those that `leaves` yields, each with `prefix` before it.
    """
    fields = [
        rebuild(value, values, f"{prefix}{name}.") if is_state(value) else values[prefix + name]
        for name, value in zip(_names(template), template, strict=True)
    ]
    return type(template)(*fields) if hasattr(template, "_fields") else tuple(fields)


def copy_arrays(state: Any) -> Any:
    """Return the state with all arrays copied: writable, aligned and C-contiguous."""
    return rebuild(state, {k: np.array(v, order="C") if isinstance(v, np.ndarray) else v for k, v in leaves(state)})


def copy(state: Any) -> Any:
    """Return a copy of a state with new arrays; scalars are shared, and a state without arrays is returned itself."""
    return state if is_abstract() else copy_arrays(state)


def equal(one: Any, other: Any) -> bool:
    """Return True if the states `one` and `other` hold the same numbers. NaN is not equal to NaN."""
    mine, its = dict(leaves(one)), dict(leaves(other))
    return mine.keys() == its.keys() and all(np.array_equal(mine[path], its[path]) for path in mine)


def nbytes(state: Any) -> int:
    """Return the number of bytes in the arrays of a state, with 8 for every scalar."""
    return sum(value.nbytes if isinstance(value, np.ndarray) else 8 for _, value in leaves(state))


def object_array(values: list[Any]) -> np.ndarray:
    """Return a list of Python objects as an array, for a field of a state.

    If it is written to a file, they must be strings, numbers, booleans, None and tuples of them.
    """
    out = np.empty(len(values), object)
    for i, value in enumerate(values):
        out[i] = value
    return out


def has_same_layout(state: Any, begun: Any, besides: tuple[str, ...] = ()) -> bool:
    """Return True if `state` has the shapes and scalars of the new state `begun`.

    Arrays and scalars whose paths begin with one of `besides` are not compared.
    """
    return all(
        path.startswith(besides) or (value.shape == other.shape if isinstance(other, np.ndarray) else value == other)
        for (path, value), (_, other) in zip(leaves(state), leaves(begun), strict=True)
    )


def has_same_shapes(state: Any, begun: Any, besides: tuple[str, ...] = ()) -> bool:
    """Return True if arrays have the shapes of the new state `begun` and integer counters are not negative.

    Arrays and scalars whose paths begin with one of `besides` are not compared.
    """
    return all(
        path.startswith(besides)
        or (value.shape == other.shape if isinstance(other, np.ndarray) else type(other) is not int or value >= 0)
        for (path, value), (_, other) in zip(leaves(state), leaves(begun), strict=True)
    )
