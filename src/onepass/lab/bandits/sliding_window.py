"""SW-LinUCB (Cheung, Simchi-Levi and Zhu 2019), to compare with: ridge regression on the last rows alone.

    A = reg I + sum of x x^T,   b = sum of r x,   both over the last `window` rows;   x^T A^-1 b + beta sqrt(x^T A^-1 x)

Every row is kept until it leaves: O(window dim) memory, O(dim^3) a round; A and b are summed up anew once in `window`
rows, so that what rows have added and taken away again leaves no rounding.
"""

from typing import Any

import numpy as np


class SlidingWindow:
    """dim; window in rounds; reg; exploration: beta; seed: breaks no ties, there are none."""

    def __init__(self, *, dim: int, window: int, reg: float = 1.0, exploration: float = 0.1, seed: int = 0):
        self.reg, self.beta, self.place = reg, exploration, 0
        self.rows, self.rewards = np.zeros((window, dim)), np.zeros(window)
        self.sum_up()

    def sum_up(self) -> None:
        """A and b from the rows."""
        self.matrix = self.reg * np.eye(self.rows.shape[1]) + self.rows.T @ self.rows
        self.moment = self.rewards @ self.rows

    def decide(self, contexts: np.ndarray) -> int:
        """The row of the largest score."""
        solved = np.linalg.solve(self.matrix, np.column_stack([self.moment, contexts.T]))
        widths = np.einsum("ji,ij->j", contexts, solved[:, 1:])
        return int(np.argmax(contexts @ solved[:, 0] + self.beta * np.sqrt(np.maximum(widths, 0.0))))

    def learn(self, row: np.ndarray, reward: float) -> None:
        """The oldest row leaves."""
        old, paid = self.rows[self.place].copy(), self.rewards[self.place]
        self.matrix += np.outer(row, row) - np.outer(old, old)
        self.moment += reward * row - paid * old
        self.rows[self.place], self.rewards[self.place] = row, reward
        self.place = (self.place + 1) % len(self.rows)
        if self.place == 0:
            self.sum_up()

    def memory_usage(self) -> int:
        """Bytes of all arrays."""
        return int(self.rows.nbytes + self.rewards.nbytes + self.matrix.nbytes + self.moment.nbytes)

    def error_bound(self) -> Any:
        """Exact."""
        return 0.0
