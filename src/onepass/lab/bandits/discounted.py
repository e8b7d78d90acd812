"""D-LinUCB (Russac, Vernade and Cappe 2019), for comparison: discounted ridge regression with two matrices.

After a row x with reward r, the matrices V and W and the vector b change by

    V <- gamma V + x x^T + (1 - gamma) reg I,   W <- gamma^2 W + x x^T + (1 - gamma^2) reg I,   b <- gamma b + r x

and the score of a row x is x^T V^-1 b + beta sqrt(x^T V^-1 W V^-1 x).

The authors' program computes W from V, as gamma^2 V + ...; this class follows the paper. No `Design` has two matrices,
so this implementation is dense: a round takes O(dim^3).
"""

from typing import Any

import numpy as np


class DLinUCB:
    """D-LinUCB: ridge regression in which old rows count less, with upper confidence bounds.

    A row counts half after `half_life` rounds. `reg` is the ridge penalty, and `exploration` the multiplier of the
    confidence width. The bandit draws no random numbers, so `seed` has no effect.
    """

    def __init__(
        self, *, dim: int, half_life: float, reg: float = 1.0, exploration: float = 0.1, seed: int = 0
    ) -> None:
        self.gamma, self.reg, self.beta = 2.0 ** (-1.0 / half_life), reg, exploration
        self.v, self.w, self.moment = reg * np.eye(dim), reg * np.eye(dim), np.zeros(dim)

    def decide(self, contexts: np.ndarray) -> int:
        """Return the index of the row of contexts (K, dim) with the largest upper confidence bound."""
        solved = np.linalg.solve(self.v, np.column_stack([self.moment, contexts.T]))
        widths = np.einsum("ij,ik,kj->j", solved[:, 1:], self.w, solved[:, 1:])
        return int(np.argmax(contexts @ solved[:, 0] + self.beta * np.sqrt(np.maximum(widths, 0.0))))

    def learn(self, row: np.ndarray, reward: float) -> None:
        """Learn a row (dim,) and its reward; the weight of every earlier row is reduced."""
        gamma, eye, step = self.gamma, self.reg * np.eye(row.size), np.outer(row, row)
        self.v = gamma * self.v + step + (1.0 - gamma) * eye
        self.w = gamma**2 * self.w + step + (1.0 - gamma**2) * eye
        self.moment = gamma * self.moment + reward * row

    def memory_usage(self) -> int:
        """Return the number of bytes of the bandit's arrays."""
        return int(self.v.nbytes + self.w.nbytes + self.moment.nbytes)

    def error_bound(self) -> Any:
        """Return 0, because the matrix of this bandit is exact and not sketched."""
        return 0.0
