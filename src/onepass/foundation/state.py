"""States as trees of arrays and scalars: copy, size, flatten, rebuild. Written once for every NamedTuple and tuple."""

from collections.abc import Iterator
from typing import Any

import numpy as np


def is_state(value: Any) -> bool:
    """Whether `value` is a NamedTuple, or a plain tuple of states."""
    return isinstance(value, tuple)


def _names(state: Any) -> Any:
    return getattr(state, "_fields", None) or map(str, range(len(state)))


def leaves(state: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(path, array or scalar) of every leaf, paths like ``design.space.basis``."""
    for name, value in zip(_names(state), state, strict=True):
        if is_state(value):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def rebuild(template: Any, values: dict[str, Any], prefix: str = "") -> Any:
    """The state shaped like `template` with the leaves in `values`."""
    fields = [
        rebuild(value, values, f"{prefix}{name}.") if is_state(value) else values[prefix + name]
        for name, value in zip(_names(template), template, strict=True)
    ]
    return type(template)(*fields) if hasattr(template, "_fields") else tuple(fields)


def copy(state: Any) -> Any:
    """An independent copy: arrays are copied, scalars shared."""
    return rebuild(state, {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in leaves(state)})


def nbytes(state: Any) -> int:
    """Bytes held by the arrays of a state, 8 for every scalar."""
    return sum(value.nbytes if isinstance(value, np.ndarray) else 8 for _, value in leaves(state))
