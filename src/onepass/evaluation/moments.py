"""Sums over rows for all estimates and intervals that use weights alone.

The sums add and merge, and their memory does not grow with the log.

    rows n, sum w, sum w^2, sum w r, sum w^2 r, sum w^2 r^2, the largest w
"""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Moments:
    """Sums of importance weights w and rewards r over n rows, from which IPS and SNIPS are computed.

    Parameters
    ----------
    rows : int, default 0
        Number of rows n.
    weights : float, default 0.0
        Sum of w.
    square_weights : float, default 0.0
        Sum of w^2.
    products : float, default 0.0
        Sum of w r.
    weighted_products : float, default 0.0
        Sum of w^2 r.
    square_products : float, default 0.0
        Sum of (w r)^2.
    max_weight : float, default 0.0
        Largest w.
    """

    rows: int = 0
    weights: float = 0.0
    square_weights: float = 0.0
    products: float = 0.0
    weighted_products: float = 0.0
    square_products: float = 0.0
    max_weight: float = 0.0

    def __add__(self, other: "Moments") -> "Moments":
        """Return the moments of two logs together."""
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
        """Return the moments with one more row.

        Parameters
        ----------
        weight : float
            Weight of the row.
        reward : float
            Reward of the row.

        Returns
        -------
        Moments
            Moments of n + 1 rows.
        """
        return self + compute_moments(np.array([weight]), np.array([reward]))

    def shift_rewards(self, least: float) -> "Moments":
        """Return the moments with rewards r - least in place of r.

        Parameters
        ----------
        least : float
            Number to subtract.

        Returns
        -------
        Moments
            Moments of the shifted rewards.
        """
        products = self.products - least * self.weights
        weighted = self.weighted_products - least * self.square_weights
        squares = self.square_products - 2.0 * least * self.weighted_products + least * least * self.square_weights
        return replace(self, products=products, weighted_products=weighted, square_products=max(squares, 0.0))

    @property
    def ips(self) -> float:
        """Mean of w r, the estimate by inverse propensity scores (IPS)."""
        return self.products / self.rows

    @property
    def snips(self) -> float:
        """Self-normalized estimate sum w r / sum w; 0 if all weights are 0."""
        return self.products / self.weights if self.weights > 0.0 else 0.0

    @property
    def mean_weight(self) -> float:
        """Mean of the weights w, whose expectation is 1 if the propensities are right and cover the policy."""
        return self.weights / self.rows

    @property
    def effective(self) -> float:
        """Effective sample size (sum w)^2 / sum w^2, at most n; 0 if all weights are 0."""
        return self.weights**2 / self.square_weights if self.square_weights > 0.0 else 0.0


def compute_moments(weights: np.ndarray, rewards: np.ndarray) -> Moments:
    """Compute the moments of a block of rows.

    Parameters
    ----------
    weights : ndarray of shape (n,)
        Importance weights.
    rewards : ndarray of shape (n,)
        Rewards.

    Returns
    -------
    Moments
        Moments of the block.
    """
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
