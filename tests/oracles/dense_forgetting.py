"""The naive dense truth of forgetting: all rows, each with the weight that it has now."""

import numpy as np


class Weighted:
    """Rows x_s and rewards r_s with weights g_s: A = reg I + sum g_s x_s x_s^T, theta = A^-1 sum g_s r_s x_s.

    Rows below a share of 1e-30 of the heaviest one are left out: nobody could tell.
    """

    def __init__(self, dim, reg):
        self.reg, self.rows, self.rewards, self.weights = reg, np.zeros((0, dim)), np.zeros(0), np.zeros(0)

    def append(self, row, reward=0.0):
        self.rows, self.rewards = np.vstack([self.rows, row]), np.append(self.rewards, reward)
        self.weights = np.append(self.weights, 1.0)

    def decay(self, factor):
        self.weights = factor * self.weights
        heavy = self.weights * (self.rows**2).sum(axis=1)
        kept = heavy > 1e-30 * max(heavy.max(initial=0.0), self.reg)
        self.rows, self.rewards, self.weights = self.rows[kept], self.rewards[kept], self.weights[kept]

    @property
    def scaled(self):
        """X_g: rows sqrt(g_s) x_s."""
        return np.sqrt(self.weights)[:, None] * self.rows

    @property
    def matrix(self):
        return self.reg * np.eye(self.rows.shape[1]) + self.scaled.T @ self.scaled

    @property
    def inverse(self):
        """By an SVD of X_g, which keeps small eigenvalues beside large ones."""
        dim = self.rows.shape[1]
        _, singular, vectors = np.linalg.svd(np.vstack([self.scaled, np.zeros((dim, dim))]), full_matrices=False)
        return (vectors.T / (singular**2 + self.reg)) @ vectors

    @property
    def theta(self):
        return self.inverse @ (self.rows.T @ (self.weights * self.rewards))
