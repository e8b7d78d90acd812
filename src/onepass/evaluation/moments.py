"""Sums over rows from which every weights-only estimate and interval is made: they add, merge, and take no more memory
however long the log is.

    rows n, sum w, sum w^2, sum w r, sum w^2 r, sum w^2 r^2, the largest w
"""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Moments:
    """rows: n; weights: sum w; square_weights: sum w^2; products: sum w r; weighted_products: sum w^2 r;
    square_products: sum (w r)^2; most: the largest w."""

    rows: int = 0
    weights: float = 0.0
    square_weights: float = 0.0
    products: float = 0.0
    weighted_products: float = 0.0
    square_products: float = 0.0
    max_weight: float = 0.0

    def __add__(self, other: "Moments") -> "Moments":
        """Those of two logs together."""
        return Moments(
            rows=self.rows + other.rows,
            weights=self.weights + other.weights,
            square_weights=self.square_weights + other.square_weights,
            products=self.products + other.products,
            weighted_products=self.weighted_products + other.weighted_products,
            square_products=self.square_products + other.square_products,
            max_weight=max(self.max_weight, other.max_weight),
        )

    def with_row(self, weight: float, reward: float) -> "Moments":
        """And one row more."""
        return self + compute_moments(np.array([weight]), np.array([reward]))

    def shift_rewards(self, least: float) -> "Moments":
        """With rewards r - least in place of r."""
        products = self.products - least * self.weights
        weighted = self.weighted_products - least * self.square_weights
        squares = self.square_products - 2.0 * least * self.weighted_products + least * least * self.square_weights
        return replace(self, products=products, weighted_products=weighted, square_products=max(squares, 0.0))

    @property
    def ips(self) -> float:
        """mean w r."""
        return self.products / self.rows

    @property
    def snips(self) -> float:
        """sum w r / sum w; 0 where all weights are 0."""
        return self.products / self.weights if self.weights > 0.0 else 0.0

    @property
    def mean_weight(self) -> float:
        """mean w: 1 where the propensities are right and cover the policy."""
        return self.weights / self.rows

    @property
    def effective(self) -> float:
        """The effective sample size (sum w)^2 / sum w^2, at most n; 0 where all weights are 0."""
        return self.weights**2 / self.square_weights if self.square_weights > 0.0 else 0.0


def compute_moments(weights: np.ndarray, rewards: np.ndarray) -> Moments:
    """Of a block of rows: weights (n,), rewards (n,)."""
    products = weights * rewards
    return Moments(
        rows=len(weights),
        weights=float(weights.sum()),
        square_weights=float(weights @ weights),
        products=float(products.sum()),
        weighted_products=float(weights @ products),
        square_products=float(products @ products),
        max_weight=float(weights.max(initial=0.0)),
    )
