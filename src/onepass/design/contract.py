"""Contract of a design, a matrix A = reg I + sum of x x^T that is held only through its inverse.

Each function is generic: it dispatches on the type of the state, in Python and in compiled code alike. States are
values: a function that learns returns the next state, and may write its arrays in place. A design registers append,
solve, inverse_quadratic, root, log_det, error_bound and decay, and also merge if a merged state has a certified error.
The other functions have defaults made from these, and a design registers them if it can do better.
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
    """Make the error for a design, given by its state, that lacks the function `name` of the contract."""
    return TypeError(f"{name} is not defined for {type(state).__name__}; register it with {name}.for_state(...)")


def removal_error(state: Any) -> ValueError:
    """Make the error for a sketch from which rows would have to be subtracted, which is impossible."""
    return ValueError(
        f"rows cannot be taken away from a {type(state).__name__} again: merge sketches that began with nothing "
        "(no rows in the design, no since), and of models per arm those with different arms or exact designs"
    )


@generic
def append(state: Any, row: np.ndarray) -> Any:
    """Return the state of the design A after one more row: A += x x^T for the row x, shape (dim,)."""
    raise unregistered_error(state, "append")


@partial(generic, default=True)
def append_rows(state: Any, rows: np.ndarray) -> Any:
    """Return the state of the design A after more rows: A += X^T X for rows X, shape (n, dim).

    By default one row is added after the other.
    """
    for i in range(rows.shape[0]):
        state = append(state, rows[i])
    return state


@generic
def solve(state: Any, b: np.ndarray) -> np.ndarray:
    """Return A^-1 b, shape (dim,), for a design A and a vector b, shape (dim,)."""
    raise unregistered_error(state, "solve")


@generic
def inverse_quadratic(state: Any, rows: np.ndarray) -> np.ndarray:
    """Return x^T A^-1 x, shape (n,), for a design A and every row x of `rows`, shape (n, dim)."""
    raise unregistered_error(state, "inverse_quadratic")


@generic
def root(state: Any, z: np.ndarray) -> np.ndarray:
    """Return R z, shape (dim,), for a vector z, shape (dim,), and a root R of the inverse design: R R^T = A^-1.

    If z is standard normal, the result is a draw from N(0, A^-1).
    """
    raise unregistered_error(state, "root")


@partial(generic, default=True)
def inverse_gram(state: Any, rows: np.ndarray) -> np.ndarray:
    """Return X A^-1 X^T, shape (n, n), for a design A and rows X, shape (n, dim).

    It is the covariance of x^T theta under theta ~ N(0, A^-1). The default takes n solves.
    """
    out = np.empty((rows.shape[0], rows.shape[0]), rows.dtype)
    for i in range(rows.shape[0]):
        solved = solve(state, rows[i])
        for j in range(i + 1):
            out[i, j] = out[j, i] = dot(rows[j], solved)
    return out


@partial(generic, default=True)
def roots(state: Any, z: np.ndarray) -> np.ndarray:
    """Return R z, shape (n, dim), for every row z of an array, shape (n, dim), where R R^T = A^-1 for the design A.

    If z is standard normal, these are n draws from N(0, A^-1). The default makes one after the other.
    """
    out = np.empty_like(z)
    for i in range(z.shape[0]):
        drawn = root(state, z[i])
        for j in range(z.shape[1]):
            out[i, j] = drawn[j]
    return out


@generic
def log_det(state: Any) -> float:
    """Return log det A of the design A."""
    raise unregistered_error(state, "log_det")


@generic
def error_bound(state: Any) -> float:
    """Return a certified bound on ||A - A_hat||_2, including the sketch's own rounding; infinite if none is known.

    A_hat is the matrix that the state represents, and A the exact one. The bound is zero for an exact design, whose
    rounding is monitored and repaired (exact.py).
    """
    raise unregistered_error(state, "error_bound")


@partial(generic, default=True)
def width(state: Any) -> int:
    """Return the length of a row. By default it is the last axis of the state's first array."""
    return state[0].shape[-1]


@partial(generic, default=True)
def spectrum(state: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """Return k eigenvalues (k,) of the matrix that the design stands for, their eigenvectors (k, dim), and one number.

    The number is the eigenvalue in all other directions, or any positive number if there are no others. All are
    positive. The default decomposes the dense root, at cost O(dim^3).
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
    """Return the dense (dim, dim) matrix A_hat that the state represents; for tests and small dimensions.

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
    """Return the totals of what a sketch has cut off, as `Sums` (truncation.py). By default nothing was cut off."""
    return init_sums()


@partial(generic, default=True)
def loss_share(state: Any) -> float:
    """Return the factor xi for which ||A - A_hat||_2 <= xi * mass, where mass is the sum of all rows' squared norms.

    A is the exact design and A_hat the sketch. A sketch with such a factor can be a block of `DyadicSketches`. The
    default is infinite: no such bound is known.
    """
    return np.inf


@partial(generic, default=True)
def loss_after(state: Any, row: np.ndarray, mass: float) -> float:
    """Return a bound of ||A - A_hat||_2, the error of the sketch A_hat of the design A, after `row` is added.

    `mass` is the sum of the squared norms of all rows, `row` included. The default is `loss_share` times `mass`.
    """
    return loss_share(state) * mass


@generic
def refine(state: Any) -> Any:
    """Return an empty sketch that keeps more directions, so that `loss_share` is at most half."""
    raise unregistered_error(state, "refine")


@partial(generic, default=True)
def close(state: Any) -> Any:
    """Return a sketch of the same type without rows and with as little memory as possible.

    It replaces a block that is not needed any more. The default returns the state itself.
    """
    return state


@generic
def sketch_size(state: Any) -> int:
    """Return the number of directions that a sketch keeps when it is cut."""
    raise unregistered_error(state, "sketch_size")


@partial(generic, default=True)
def prior(state: Any) -> Prior:
    """Return the initial model of every arm, if arms start from this design.

    It holds the design on the directions whose eigenvalues differ from the rest, and the totals of what was cut off.
    The default uses the spectrum.
    """
    values, vectors, rest = spectrum(state)
    space = subspace_from_spectrum(vectors, values, rest, ROUNDINGS * float(np.finfo(vectors.dtype).eps) * rest)
    return Prior(space=space, sums=sums(state))


@generic
def decay(state: Any, factor: float) -> Any:
    """Return the state in which past rows count less: the design A becomes reg I + factor (A - reg I).

    The factor is from 0 to 1. The regularization stays (decay.py).
    """
    raise unregistered_error(state, "decay")


@partial(generic, default=True)
def regularization(state: Any) -> float:
    """Return the regularization reg of the design. By default it is the field `settings.reg` of the state."""
    return state.settings.reg


@generic
def merge(state: Any, other: Any) -> Any:
    """Return one state for the rows of two states; it is registered only for designs whose error is then certified."""
    raise unregistered_error(state, "merge")


@generic
def add_matrix(state: Any, change: np.ndarray) -> Any:
    """Return the state of the design A + change, for a symmetric matrix `change` (dim, dim).

    A - reg I must stay positive semi-definite. Only exact designs register this function.
    """
    raise unregistered_error(state, "adjusted")


@generic
def subtract_start(state: Any, start: Any) -> Any:
    """Return the state that has only the rows learned since the state was `start`: A - A_start + reg I."""
    known = prior(start)
    if known.space.used > 0 or max(known.sums) > 0.0:
        raise removal_error(start)
    return state
