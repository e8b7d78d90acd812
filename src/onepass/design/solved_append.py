"""Cheaper append of a row x for which A^-1 x is already known: two of four matrix-vector products are saved.

Estimators that step along A^-1 x append the same x afterwards, with a weight that depends on x^T A^-1 x.
"""

from functools import partial
from typing import Any

import numpy as np

from onepass.design.contract import append, solve
from onepass.design.exact import ExactState, flush, replace_counters
from onepass.foundation.cholesky_updates import shift_root
from onepass.foundation.generic import compiled, generic
from onepass.foundation.linalg import dot


@partial(generic, default=True)
def solve_in_halves(state: Any, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays (dim,) that `append_solved` needs, for a row x (dim,) and the design A.

    The first depends on the kind of design; it is x itself by default. The second is A^-1 x.
    """
    return row, solve(state, row)


@partial(generic, default=True)
def append_solved(state: Any, row: np.ndarray, half: np.ndarray, direction: np.ndarray, weight: float) -> Any:
    """Return the state of A + weight x x^T for the row x and a weight of at least 0.

    `half` and `direction` are the two results of `solve_in_halves(state, row)`. Reusing them saves half of the work of
    `append`.
    """
    return append(state, scale_row(row, weight))


@compiled
def scale_row(row: np.ndarray, weight: float) -> np.ndarray:
    """Return sqrt(weight) x for a row x (dim,)."""
    scaled, size = np.empty_like(row), np.sqrt(weight)
    for j in range(row.size):
        scaled[j] = size * row[j]
    return scaled


@compiled
def append_with_leverages(state: Any, rows: np.ndarray) -> tuple[Any, np.ndarray]:
    """Append rows (t, dim) one by one, and return the state and x^T A^-1 x (t,) of each row before it was added."""
    leverages = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        leverages[i] = dot(rows[i], solve(state, rows[i]))
        state = append(state, rows[i])
    return state, leverages


@solve_in_halves.for_state(ExactState)
def solve_exact_in_halves(state: ExactState, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return R^T x and R R^T x = A^-1 x for a row x (dim,), where R is the root that an exact design A stores."""
    half = dot(row, state.root)
    return half, dot(state.root, half)


@append_solved.for_state(ExactState)
def append_solved_to_exact(
    state: ExactState, row: np.ndarray, half: np.ndarray, direction: np.ndarray, weight: float
) -> ExactState:
    """Append a row x with a weight to an exact design A, given half = R^T x and direction = A^-1 x, where R R^T = A^-1.

    The result equals that of `exact.append`, without a second multiplication by the root R.
    """
    leverage = float(dot(half, half))
    if leverage > 0.0:
        shift_root(state.root, half, direction, leverage, weight)
    recent, size, waiting = state.recent[state.waiting], np.sqrt(weight), state.waiting + 1
    for j in range(row.size):
        recent[j] = size * row[j]
    state = replace_counters(state, waiting, state.repairs, state.log_det + np.log1p(weight * leverage))
    return flush(state) if waiting == state.recent.shape[0] else state
