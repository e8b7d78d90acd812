"""Ridge regression with one design and many heads: n responses of the same rows, of which most are 0.

    A = reg I + sum of z z^T,   b_i = sum of y_i z,   theta_i = A^-1 b_i

Head i is its right-hand side b_i, D numbers. A row whose responses are 0 but one costs one append and one head of O(D),
however many heads there are. Forgetting multiplies the design and one number that all heads share, and no head.
`dynamics/responses.py` has the estimators whose responses are dense or clipped.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design import contract
from onepass.design.contract import append_rows, solve
from onepass.foundation.generic import compiled

SMALLEST = 2.0**-300  # of the common factor, before heads are multiplied by it


class RidgeHeads(NamedTuple):
    """State of ridge regression with many heads.

    design: state of any design, of dimension D. moment (n, D): b_i is scale * moment[i]. scale: common factor, above 0.
    """

    design: Any
    moment: np.ndarray
    scale: float


@compiled
def learn_taken(state: RidgeHeads, rows: np.ndarray, heads: np.ndarray, responses: np.ndarray) -> RidgeHeads:
    """Learn rows (t, D), each with a response (t,) of the head at `heads` (t,), and 0 of all others."""
    design = append_rows(state.design, rows)
    for i in range(rows.shape[0]):
        gain, head = responses[i] / state.scale, heads[i]
        for j in range(rows.shape[1]):
            state.moment[head, j] += gain * rows[i, j]
    return RidgeHeads(design=design, moment=state.moment, scale=state.scale)


@compiled
def solve_heads(design: Any, moment: np.ndarray) -> np.ndarray:
    """Return A^-1 b of every head, from their right-hand sides (n, D)."""
    out = np.empty_like(moment)
    for i in range(out.shape[0]):
        solved = solve(design, moment[i])
        for j in range(out.shape[1]):
            out[i, j] = solved[j]
    return out


@compiled
def solve_rows(design: Any, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return A^-1 z and z^T A^-1 z of rows z (m, D); b^T A^-1 z is the mean of every head then."""
    return solve_heads(design, rows), contract.inverse_quadratic(design, rows)


def forget_heads(state: RidgeHeads, factor: float) -> RidgeHeads:
    """Return the state in which all rows learned so far count `factor` times, O(1) for the heads."""
    scale = state.scale * factor
    if scale < SMALLEST:
        state.moment[:] *= scale
        scale = 1.0
    return RidgeHeads(design=contract.decay(state.design, factor), moment=state.moment, scale=scale)
