"""The contract of a design: A = reg I + sum of x x^T, held only through its inverse.

Each function is generic: it dispatches on the type of the state, in Python and in compiled code alike.
States are values: a function that learns returns the next state (arrays may be written in place).
A member registers append, solve, inverse_quadratic, root, log_det, error_bound and decay; merge where it can be
certified.
The others are derived from these, and registered where a member knows better.
"""

from functools import partial
from typing import Any

import numpy as np

from onepass.design.subspace import subspace_from_spectrum
from onepass.design.truncation import Prior, Sums, init_sums
from onepass.foundation.cholesky_updates import spectrum_of_root
from onepass.foundation.generic import generic
from onepass.foundation.linalg import ROUNDINGS, dot


def unregistered_error(state: Any, name: str) -> TypeError:
    """Make the error for a type that nobody has registered."""
    return TypeError(f"{name} is not defined for {type(state).__name__}; register it with {name}.for_state(...)")


def removal_error(state: Any) -> ValueError:
    """Make the error for rows that would have to be taken away from a sketch."""
    return ValueError(
        f"rows cannot be taken away from a {type(state).__name__} again: merge sketches that began with nothing "
        "(no rows in the design, no since), and of models per arm those with different arms or exact designs"
    )


@generic
def append(state: Any, row: np.ndarray) -> Any:
    """Return the state after A += x x^T for one row x, shape (dim,)."""
    raise unregistered_error(state, "append")


@partial(generic, default=True)
def append_rows(state: Any, rows: np.ndarray) -> Any:
    """Return the state after A += X^T X for a batch of rows X, shape (n, dim). Default: one row after the other."""
    for i in range(rows.shape[0]):
        state = append(state, rows[i])
    return state


@generic
def solve(state: Any, b: np.ndarray) -> np.ndarray:
    """A^-1 b, shape (dim,) -> (dim,)."""
    raise unregistered_error(state, "solve")


@generic
def inverse_quadratic(state: Any, rows: np.ndarray) -> np.ndarray:
    """x^T A^-1 x for every row x, shape (n, dim) -> (n,)."""
    raise unregistered_error(state, "inverse_quadratic")


@generic
def root(state: Any, z: np.ndarray) -> np.ndarray:
    """R z with R R^T = A^-1, shape (dim,) -> (dim,): a draw from N(0, A^-1) when z is standard normal."""
    raise unregistered_error(state, "root")


@partial(generic, default=True)
def inverse_gram(state: Any, rows: np.ndarray) -> np.ndarray:
    """X A^-1 X^T, the covariance of x^T theta under theta ~ N(0, A^-1), shape (n, dim) -> (n, n). Default: n solves."""
    out = np.empty((rows.shape[0], rows.shape[0]), rows.dtype)
    for i in range(rows.shape[0]):
        solved = solve(state, rows[i])
        for j in range(i + 1):
            out[i, j] = out[j, i] = dot(rows[j], solved)
    return out


@partial(generic, default=True)
def roots(state: Any, z: np.ndarray) -> np.ndarray:
    """R z for every row z of (n, dim): n draws. Default: one after the other."""
    out = np.empty_like(z)
    for i in range(z.shape[0]):
        drawn = root(state, z[i])
        for j in range(z.shape[1]):
            out[i, j] = drawn[j]
    return out


@generic
def log_det(state: Any) -> float:
    """Return log det A."""
    raise unregistered_error(state, "log_det")


@generic
def error_bound(state: Any) -> float:
    """Return a certified bound on ||A - A_hat||_2, a sketch's own rounding included; infinite if there is none.

    Zero for an exact design, whose rounding is watched and repaired (exact.py).
    """
    raise unregistered_error(state, "error_bound")


@partial(generic, default=True)
def width(state: Any) -> int:
    """Return the length dim of a row. Default: the last axis of the state's first array."""
    return state[0].shape[-1]


@partial(generic, default=True)
def spectrum(state: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """Eigenvalues (k,) and eigenvectors as rows (k, dim) of A_hat, and its eigenvalue on what they do not span.

    All positive, in particular the last one, which is any number where they span everything. Default: those of the
    dense root, cost O(dim^3).
    """
    dim = width(state)
    dense = np.empty((dim, dim))
    for j in range(dim):
        axis = np.zeros(dim, state[0].dtype)
        axis[j] = 1.0
        column = root(state, axis)
        for i in range(dim):
            dense[i, j] = column[i]
    values, vectors = spectrum_of_root(dense)
    return values, vectors.astype(state[0].dtype), values[dim - 1]


@partial(generic, default=True)
def matrix(state: Any) -> np.ndarray:
    """Return the dense (dim, dim) matrix A_hat that the state stands for; for tests and small dimensions.

    The default makes it from the spectrum. Cost: O(dim^3).
    """
    values, vectors, rest = spectrum(state)
    directions = vectors.astype(np.float64)
    core = dot(directions.T * (values - rest), directions)
    for j in range(core.shape[0]):
        core[j, j] += rest
    return core


@partial(generic, default=True)
def sums(state: Any) -> Sums:
    """Return the sums of what was cut (cutting.Sums). Default: nothing was."""
    return init_sums()


@partial(generic, default=True)
def prior(state: Any) -> Prior:
    """Return the start of an arm if this is the design of every arm.

    It holds A_hat on the directions that differ from the rest, and what was cut to get there. The default uses the
    spectrum.
    """
    values, vectors, rest = spectrum(state)
    space = subspace_from_spectrum(vectors, values, rest, ROUNDINGS * float(np.finfo(vectors.dtype).eps) * rest)
    return Prior(space=space, sums=sums(state))


@generic
def decay(state: Any, factor: float) -> Any:
    """Return the state of reg I + factor (A - reg I), factor from 0 to 1: rows are forgotten, reg is not (decay.py)."""
    raise unregistered_error(state, "decay")


@partial(generic, default=True)
def regularization(state: Any) -> float:
    """Return reg. Default: that of the settings."""
    return state.settings.reg


@generic
def merge(state: Any, other: Any) -> Any:
    """Return the state of both streams together; defined if the certificate survives."""
    raise unregistered_error(state, "merge")


@generic
def add_matrix(state: Any, change: np.ndarray) -> Any:
    """Return A + change for a symmetric (dim, dim) change; A - reg I must stay positive semi-definite.

    Exact designs only.
    """
    raise unregistered_error(state, "adjusted")


@generic
def subtract_start(state: Any, start: Any) -> Any:
    """Return A - A_start + reg I, the rows learned since the state was `start`.

    Registered for designs that can do so exactly. Others return the state itself if nothing had been learned at the
    start, else raise ValueError.
    """
    known = prior(start)
    if known.space.used > 0 or max(known.sums) > 0.0:
        raise removal_error(start)
    return state
