"""Noise of mean zero: how to draw it, how large it typically is, and its moments, in closed form.

    size = 1.4826 median |eta|,  1 for the standard Gaussian;  moment(k) = E|eta|^k, infinite where the tail says so

`size` is what a user who knows the noise would state as nu: it exists however heavy the tails are, and outliers hardly
move it. It is not the bound (E|eta|^(1 + eps))^(1 / (1 + eps)) of the theorems, which is far larger: 4.4 against 1.2
for Student t with 2.1 degrees of freedom at eps = 0.99.

>>> round(Gaussian().size, 3), round(StudentT(2.1).size, 2), round(StudentT(2.1).moment(1.99) ** (1 / 1.99), 1)
(1.0, 1.2, 4.4)
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import gamma, inf, pi

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import beta, ndtr, stdtr

TYPICAL = 1.4826


class Noise(ABC):
    """What all members share; a member says how it draws, P(|eta| <= s), and E|eta|^k."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Independent values of the noise."""

    @abstractmethod
    def within(self, s: float) -> float:
        """P(|eta| <= s)."""

    @abstractmethod
    def moment(self, order: float) -> float:
        """E|eta|^order, order > 0."""

    @property
    def size(self) -> float:
        """1.4826 times the median of |eta|."""
        return TYPICAL * float(brentq(lambda s: self.within(s) - 0.5, 0.0, 1e6, xtol=1e-12))

    def reward_moment(self, order: float) -> float:
        """A bound on E|m + eta|^order wherever |m| <= 1, order >= 1: (1 + moment(order)^(1 / order))^order (Minkowski).

        What truncation methods are told of rewards x^T theta + eta with ||x||, ||theta|| <= 1.
        """
        return (1.0 + self.moment(order) ** (1.0 / order)) ** order


@dataclass(frozen=True)
class Gaussian(Noise):
    """N(0, scale^2)."""

    scale: float = 1.0

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return self.scale * rng.standard_normal(shape)

    def within(self, s: float) -> float:
        return float(1.0 - 2.0 * ndtr(-s / self.scale))

    def moment(self, order: float) -> float:
        return self.scale**order * 2 ** (order / 2) * gamma((order + 1) / 2) / pi**0.5


@dataclass(frozen=True)
class StudentT(Noise):
    """scale times Student's t with df > 1 degrees of freedom: moments of every order below df."""

    df: float
    scale: float = 1.0

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return self.scale * rng.standard_t(self.df, shape)

    def within(self, s: float) -> float:
        return float(1.0 - 2.0 * stdtr(self.df, -s / self.scale))

    def moment(self, order: float) -> float:
        if order >= self.df:
            return inf
        ratio = gamma((order + 1) / 2) * gamma((self.df - order) / 2) / (pi**0.5 * gamma(self.df / 2))
        return self.scale**order * self.df ** (order / 2) * ratio


@dataclass(frozen=True)
class Pareto(Noise):
    """scale (X - E X) with P(X > x) = x^-index, x >= 1, index > 1: skewed; moments of every order below the index."""

    index: float
    scale: float = 1.0

    @property
    def mean(self) -> float:
        """E X."""
        return self.index / (self.index - 1.0)

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return self.scale * (1.0 + rng.pareto(self.index, shape) - self.mean)

    def within(self, s: float) -> float:
        above, below = self.mean + s / self.scale, max(1.0, self.mean - s / self.scale)
        return float(below**-self.index - above**-self.index)

    def moment(self, order: float) -> float:
        if order >= self.index:
            return inf
        above = self.mean ** (order - self.index) * beta(order + 1, self.index - order)
        below, _ = quad(lambda x: (self.mean - x) ** order * x ** (-self.index - 1), 1.0, self.mean)
        return float(self.scale**order * self.index * (above + below))


@dataclass(frozen=True)
class Contaminated(Noise):
    """N(0, 1), with probability `share` multiplied by `scale`: all moments, but outliers far beyond the rest."""

    share: float = 0.01
    scale: float = 100.0

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.standard_normal(shape) * np.where(rng.random(shape) < self.share, self.scale, 1.0)

    def within(self, s: float) -> float:
        clean, wild = Gaussian().within(s), Gaussian(self.scale).within(s)
        return (1.0 - self.share) * clean + self.share * wild

    def moment(self, order: float) -> float:
        return (1.0 - self.share + self.share * self.scale**order) * Gaussian().moment(order)
