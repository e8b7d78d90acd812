"""The contract of a design: A = reg I + sum of x x^T, held only through its inverse.

Each function is generic: it dispatches on the type of the state, in Python and in compiled code alike.
States are values: a function that learns returns the next state (arrays may be written in place).
"""

import numpy as np

from onepass.foundation.generic import generic


def _unknown(state, name: str) -> TypeError:
    return TypeError(f"{name} is not defined for {type(state).__name__}; register it with {name}.for_state(...)")


@generic
def append(state, row: np.ndarray):
    """The state after A += x x^T for one row x, shape (dim,)."""
    raise _unknown(state, "append")


@generic
def append_rows(state, rows: np.ndarray):
    """The state after A += X^T X for a batch of rows X, shape (n, dim)."""
    raise _unknown(state, "append_rows")


@generic
def solve(state, b: np.ndarray) -> np.ndarray:
    """A^-1 b, shape (dim,) -> (dim,)."""
    raise _unknown(state, "solve")


@generic
def inverse_quadratic(state, rows: np.ndarray) -> np.ndarray:
    """x^T A^-1 x for every row x, shape (n, dim) -> (n,)."""
    raise _unknown(state, "inverse_quadratic")


@generic
def root(state, z: np.ndarray) -> np.ndarray:
    """R z with R R^T = A^-1, shape (dim,) -> (dim,): a draw from N(0, A^-1) when z is standard normal."""
    raise _unknown(state, "root")


@generic
def log_det(state) -> float:
    """log det A."""
    raise _unknown(state, "log_det")


@generic
def error_bound(state) -> float:
    """A certified bound on ||A - A_hat||_2, a sketch's own rounding included: infinite where nothing can be certified.

    Zero for an exact design, whose rounding is watched and repaired (exact.py).
    """
    raise _unknown(state, "error_bound")


@generic
def confidence_radius(state, rounds: int, noise: float, parameter_bound: float, row_bound: float, delta: float):
    """beta with ||theta_* - theta||_A <= beta with probability 1 - delta (ALGORITHMS: radii).

    rounds learned so far, noise R (sub-Gaussian), parameter_bound H >= ||theta_*||, row_bound L >= ||x||.
    """
    raise _unknown(state, "confidence_radius")


@generic
def matrix(state) -> np.ndarray:
    """The dense (dim, dim) matrix A_hat that the state stands for; for tests and small dimensions. Cost O(dim^3)."""
    raise _unknown(state, "matrix")


@generic
def spectrum(state):
    """Eigenvalues (k,) and eigenvectors as rows (k, dim) of A_hat, and its eigenvalue on what they do not span.

    All positive, in particular the last one, which is any number where they span everything.
    """
    raise _unknown(state, "spectrum")


@generic
def merge(state, other):
    """The state of both streams together; defined where the certificate survives."""
    raise _unknown(state, "merge")
