"""Contract of a feature map x -> z: rows x (input_dim,) become rows z (output_dim,) before a model sees them.

    output_dim(state)                    returns the width of z (required)
    transform_row(state, x, z)           writes z of one row x into the array z (required)
    transform(state, rows)               returns z of many rows without changes (has a default)
    update_and_transform(state, rows)    learns rows in order and returns their z (default: `transform`)

A map that learns from the stream registers `update_and_transform`. For every row it first updates the arrays of the
state in place, then computes the row's z. So rows learned one by one or all at once give the same z. Maps without
compiled code (a kernel may be any Python function) are registered by `function.register(State)` in place of
`function.for_state(State)`, and work in Python only.
"""

from functools import partial
from typing import Any

import numpy as np

from onepass.foundation.generic import generic


def _unknown(state: Any, name: str) -> TypeError:
    return TypeError(f"{name} is not defined for {type(state).__name__}; register it with {name}.for_state(...)")


@generic
def output_dim(state: Any) -> int:
    """Return the number of features z of a row, given the state of the feature map."""
    raise _unknown(state, "output_dim")


@generic
def transform_row(state: Any, x: np.ndarray, z: np.ndarray) -> None:
    """Write the features z (output_dim,) of one row x (input_dim,) into the array `z`."""
    raise _unknown(state, "transform_row")


@partial(generic, default=True)
def transform(state: Any, rows: np.ndarray) -> np.ndarray:
    """Return the features z of every row, shape (n, input_dim) -> (n, output_dim), in the rows' dtype.

    The state does not change.
    """
    z = np.empty((rows.shape[0], output_dim(state)), rows.dtype)
    for i in range(rows.shape[0]):
        transform_row(state, rows[i], z[i])
    return z


@partial(generic, default=True)
def update_and_transform(state: Any, rows: np.ndarray) -> np.ndarray:
    """Let the map learn rows (n, input_dim), and return the features (n, output_dim), row after row.

    A map that learns writes into its state's arrays.
    """
    return transform(state, rows)


@partial(generic, default=True)
def copy_scratch(state: Any) -> Any:
    """Return the state with its own scratch arrays, for concurrent computations.

    The default returns the state itself, because computing writes nothing. Only states with scratch arrays register it,
    as learners' states do, whose loops allocate nothing.
    """
    return state


def register_python_fallback(kind: type) -> None:
    """Let a composition of maps run in Python, part by part, because one of its parts may have no compiled code.

    `kind` is the class of the composition's state.
    """
    for function in (output_dim, transform_row, transform, update_and_transform):
        implementation: Any = function.dispatch(kind)
        function.register(kind)(getattr(implementation, "py_func", implementation))  # NUMBA_DISABLE_JIT leaves none
