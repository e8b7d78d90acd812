"""Ridge regression with one design and many heads: n responses to the same rows, most of which are 0.

All rows z share the matrix A, and head i has the responses y_i:

    A = reg I + sum of z z^T,   b_i = sum of y_i z,   theta_i = A^-1 b_i

Head i is its right-hand side b_i, D numbers. A row with only one response that is not 0 costs one append and a change
of one head, O(D), however many heads there are. Forgetting multiplies the design and one number that all heads share.
`dynamics/responses.py` has the estimators whose responses are dense or clipped.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design import contract
from onepass.design.contract import append_rows, solve
from onepass.foundation.generic import compiled

SMALLEST = 2.0**-300  # of the common factor, before heads are multiplied by it


class RidgeHeads(NamedTuple):
    """State of n ridge regressions, called heads, on the same rows; most responses are 0.

    - design: state of any design, of dimension D.
    - moment (n, D): b_i, the sum of response times row of regression i, is scale * moment[i].
    - scale: common factor, above 0.
    """

    design: Any
    moment: np.ndarray
    scale: float


@compiled
def learn_taken(state: RidgeHeads, rows: np.ndarray, heads: np.ndarray, responses: np.ndarray) -> RidgeHeads:
    """Return the state after rows z (t, D), each with a response (t,) for one of n ridge regressions.

    The response for all other regressions is 0. `heads` (t,) are the indices of the regressions.
    """
    design = append_rows(state.design, rows)
    for i in range(rows.shape[0]):
        gain, head = responses[i] / state.scale, heads[i]
        for j in range(rows.shape[1]):
            state.moment[head, j] += gain * rows[i, j]
    return RidgeHeads(design=design, moment=state.moment, scale=state.scale)


@compiled
def solve_heads(design: Any, moment: np.ndarray) -> np.ndarray:
    """Return the parameters A^-1 b (n, D) of n ridge regressions with one design A.

    `moment` (n, D) holds the sums b of response times row.
    """
    out = np.empty_like(moment)
    for i in range(out.shape[0]):
        solved = solve(design, moment[i])
        for j in range(out.shape[1]):
            out[i, j] = solved[j]
    return out


@compiled
def solve_rows(design: Any, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return A^-1 z (m, D) and z^T A^-1 z (m,) for rows z (m, D) and the design A."""
    return solve_heads(design, rows), contract.inverse_quadratic(design, rows)


def forget_heads(state: RidgeHeads, factor: float) -> RidgeHeads:
    """Return the state in which all past rows count `factor` times. The cost does not depend on the number of heads."""
    scale = state.scale * factor
    if scale < SMALLEST:
        state.moment[:] *= scale
        scale = 1.0
    return RidgeHeads(design=contract.decay(state.design, factor), moment=state.moment, scale=scale)
