"""Random Fourier features (Rahimi and Recht 2007): phi(x) = sqrt(2 / D) [cos(W x), sin(W x)], W (D / 2, dim).

Rows of W are drawn from N(0, I / width^2), so E phi(x)^T phi(y) = exp(-||x - y||^2 / (2 width^2)), and ||phi(x)|| = 1
whatever was drawn. Cost O(D dim) a row.
"""

from typing import NamedTuple

import numpy as np

from onepass.features.embedding import embed


class Fourier(NamedTuple):
    """frequencies: W (D / 2, dim)."""

    frequencies: np.ndarray


@embed.for_state(Fourier)
def embed_fourier(state, x, phi):
    half = state.frequencies.shape[0]
    size = 1.0 / np.sqrt(half)
    for i in range(half):
        angle = 0.0
        for j in range(x.size):
            angle += state.frequencies[i, j] * x[j]
        phi[i] = size * np.cos(angle)
        phi[half + i] = size * np.sin(angle)


def fourier(size: int, dim: int, width: float, seed: int) -> Fourier:
    """`size` features (even) of rows of `dim` numbers."""
    return Fourier(np.random.default_rng(seed).standard_normal((size // 2, dim)) / width)
