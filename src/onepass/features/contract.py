"""The contract of a feature map x -> z: rows x (input_dim,) become rows z (output_dim,), before any model sees them.

    output_dim(state)         width of z                           every map
    embed(state, x, z)        z of one row, written into z         every map
    transform(state, rows)    z of many rows                       derived; changes nothing
    advance(state, rows)      z of rows that are learned, in order derived: `transform`, for a map that stands still

A map that learns from the stream registers `advance`: for every row, first the arrays of the state (written in place),
then the row's z. So rows learned one by one or all at once give the same z. Maps without compiled code (a kernel may be
any Python function) are registered by `function.register(State)` in place of `function.for_state(State)`: for Python
alone.
"""

from functools import partial
from typing import Any

import numpy as np

from onepass.foundation.generic import generic


def _unknown(state: Any, name: str) -> TypeError:
    return TypeError(f"{name} is not defined for {type(state).__name__}; register it with {name}.for_state(...)")


@generic
def output_dim(state: Any) -> int:
    """Return the width of z."""
    raise _unknown(state, "output_dim")


@generic
def transform_row(state: Any, x: np.ndarray, z: np.ndarray) -> None:
    """Write z (output_dim,) of one row x (input_dim,) into `z`."""
    raise _unknown(state, "embed")


@partial(generic, default=True)
def transform(state: Any, rows: np.ndarray) -> np.ndarray:
    """Compute z for every row, shape (n, input_dim) -> (n, output_dim), in the rows' dtype.

    The state does not change.
    """
    z = np.empty((rows.shape[0], output_dim(state)), rows.dtype)
    for i in range(rows.shape[0]):
        transform_row(state, rows[i], z[i])
    return z


@partial(generic, default=True)
def update_and_transform(state: Any, rows: np.ndarray) -> np.ndarray:
    """Compute z for every row (n, input_dim) that is learned, in order.

    A map that learns writes into its state's arrays.
    """
    return transform(state, rows)


@partial(generic, default=True)
def copy_scratch(state: Any) -> Any:
    """Return the state with scratch arrays of its own, for concurrent computations; itself if computing writes nothing.

    Only for states that hold scratch arrays, as those of learners do: their loops allocate nothing.
    """
    return state


def register_python_fallback(kind: type) -> None:
    """Let a composition run outside compiled code as Python, part by part: one of them may have no compiled code."""
    for function in (output_dim, transform_row, transform, update_and_transform):
        implementation: Any = function.dispatch(kind)
        function.register(kind)(getattr(implementation, "py_func", implementation))  # NUMBA_DISABLE_JIT leaves none
