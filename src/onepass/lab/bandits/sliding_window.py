"""SW-LinUCB (Cheung, Simchi-Levi and Zhu 2019), for comparison: ridge regression on the last rows alone.

For rows x with rewards r, the model and the score of a row are

    A = reg I + sum of x x^T,   b = sum of r x,   both over the last `window` rows;   x^T A^-1 b + beta sqrt(x^T A^-1 x)

Rows are kept until they leave the window: O(window dim) memory, O(dim^3) a round. A and b are recomputed once in
`window` rows, so that rounding errors of added and subtracted rows do not add up.
"""

from typing import Any

import numpy as np


class SlidingWindow:
    """SW-LinUCB: ridge regression on the last `window` rows, with upper confidence bounds.

    `reg` is the ridge penalty, and `exploration` the multiplier of the confidence width. The bandit draws no random
    numbers, so `seed` has no effect.
    """

    def __init__(self, *, dim: int, window: int, reg: float = 1.0, exploration: float = 0.1, seed: int = 0) -> None:
        self.reg, self.beta, self.place = reg, exploration, 0
        self.rows, self.rewards = np.zeros((window, dim)), np.zeros(window)
        self.sum_up()

    def sum_up(self) -> None:
        """Recompute the matrix and the vector of the ridge regression from the rows in the window."""
        self.matrix = self.reg * np.eye(self.rows.shape[1]) + self.rows.T @ self.rows
        self.moment = self.rewards @ self.rows

    def decide(self, contexts: np.ndarray) -> int:
        """Return the index of the row of contexts (K, dim) with the largest upper confidence bound."""
        solved = np.linalg.solve(self.matrix, np.column_stack([self.moment, contexts.T]))
        widths = np.einsum("ji,ij->j", contexts, solved[:, 1:])
        return int(np.argmax(contexts @ solved[:, 0] + self.beta * np.sqrt(np.maximum(widths, 0.0))))

    def learn(self, row: np.ndarray, reward: float) -> None:
        """Learn a row (dim,) and its reward. If the window is full, the row replaces the oldest one."""
        old, paid = self.rows[self.place].copy(), self.rewards[self.place]
        self.matrix += np.outer(row, row) - np.outer(old, old)
        self.moment += reward * row - paid * old
        self.rows[self.place], self.rewards[self.place] = row, reward
        self.place = (self.place + 1) % len(self.rows)
        if self.place == 0:
            self.sum_up()

    def memory_usage(self) -> int:
        """Return the number of bytes of the bandit's arrays."""
        return int(self.rows.nbytes + self.rewards.nbytes + self.matrix.nbytes + self.moment.nbytes)

    def error_bound(self) -> Any:
        """Return 0, because the matrix of this bandit is exact and not sketched."""
        return 0.0
