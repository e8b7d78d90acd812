"""Random Fourier features (Rahimi and Recht 2007): phi(x) = sqrt(2 / D) [cos(W x), sin(W x)], W (D / 2, dim).

Rows of W are drawn from N(0, I / width^2), so E phi(x)^T phi(y) = exp(-||x - y||^2 / (2 width^2)), and ||phi(x)|| = 1
whatever was drawn. Cost O(D dim) a row.
"""

from math import factorial
from typing import NamedTuple

import numpy as np

from onepass.features.embedding import embed
from onepass.foundation.generic import compiled


class Fourier(NamedTuple):
    """frequencies: W (D / 2, dim)."""

    frequencies: np.ndarray


SINE = tuple((-1.0) ** n / factorial(2 * n + 1) for n in range(8))
COSINE = tuple((-1.0) ** n / factorial(2 * n) for n in range(9))


@compiled
def horner(z, coefficients):
    """The polynomial in z with these coefficients, the constant one first."""
    total = 0.0
    for i in range(len(coefficients)):
        total = total * z + coefficients[len(coefficients) - 1 - i]
    return total


@compiled
def sine_and_cosine(turns):
    """sin and cos of 2 pi turns, to 1e-15: Taylor's series within an eighth of a turn of a multiple of a quarter.

    No branches, so that loops over it are vectorized: libm's take ten times as long. NaN stays NaN.
    """
    quarters = np.rint(4.0 * turns)
    a = 2.0 * np.pi * (turns - 0.25 * quarters)
    z = a * a
    s = a * horner(z, SINE)
    c = horner(z, COSINE)
    half = quarters - 2.0 * np.floor(0.5 * quarters)  # 1 after an odd number of quarters
    whole = quarters - 4.0 * np.floor(0.25 * quarters)  # 0 to 3
    sign = 1.0 if whole < 2.0 else -1.0
    return (sign * c, -sign * s) if half == 1.0 else (sign * s, sign * c)


@embed.for_state(Fourier)
def embed_fourier(state, x, phi):
    half = state.frequencies.shape[0]
    size = 1.0 / np.sqrt(half)
    for i in range(half):
        angle = 0.0
        for j in range(x.size):
            angle += state.frequencies[i, j] * x[j]
        phi[i] = angle * (0.5 / np.pi)
    for i in range(half):
        sine, cosine = sine_and_cosine(phi[i])
        phi[i] = size * cosine
        phi[half + i] = size * sine


def fourier(size: int, dim: int, width: float, seed: int) -> Fourier:
    """`size` features (even) of rows of `dim` numbers."""
    return Fourier(np.random.default_rng(seed).standard_normal((size // 2, dim)) / width)
