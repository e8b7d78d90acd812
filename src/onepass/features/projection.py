"""Feature maps of linear bandits: z = x, and z = R x with R (size, dim) of N(0, 1 / size) (CBRAP, Yu et al. 2017)."""

from typing import Any, NamedTuple

import numpy as np

from onepass.foundation import check
from onepass.foundation.generic import generic
from onepass.foundation.linalg import dot
from onepass.foundation.registry import savable


class IdentityState(NamedTuple):
    """No map: z = x."""

    dim: int


class GaussianProjectionState(NamedTuple):
    """transposed (dim, size): R^T, drawn from a seed and never stored in a file."""

    transposed: np.ndarray


@generic
def transform(state, rows: np.ndarray) -> np.ndarray:
    """z for every row x, shape (n, dim) -> (n, features)."""
    raise TypeError(f"transform is not defined for {type(state).__name__}; register it with transform.for_state(...)")


@transform.for_state(IdentityState)
def transform_identity(state, rows):
    return rows


@transform.for_state(GaussianProjectionState)
def transform_projection(state, rows):
    return dot(rows, state.transposed)


@savable
class GaussianProjection:
    """z = R x with R (size, dim) of N(0, 1 / size) entries: norms and angles survive up to about sqrt(log n / size).

    dim: width of x; size: of z, from 1 to dim; seed: R is drawn from it alone (NumPy's frozen generator, so the same in
    every version) and is not written to files. Cost O(dim size) a row. ValueError outside those ranges.
    """

    def __init__(self, *, dim: int, size: int, seed: int = 0):
        self.dim = check.integer("dim", dim, 1)
        self.size = check.integer("size", size, 1, self.dim, "a projection must not add dimensions")
        self.seed = check.integer("seed", seed, 0, 2**32 - 1)

    def begin(self, dtype: np.dtype) -> GaussianProjectionState:
        """R^T in `dtype`."""
        normal = np.random.RandomState(self.seed).standard_normal((self.dim, self.size))
        return GaussianProjectionState(np.ascontiguousarray(normal / np.sqrt(self.size), dtype=dtype))

    def params(self) -> dict[str, Any]:
        """What the constructor was given, as plain data."""
        return {"dim": self.dim, "size": self.size, "seed": self.seed}

    def __repr__(self) -> str:
        return f"GaussianProjection(dim={self.dim}, size={self.size}, seed={self.seed})"
