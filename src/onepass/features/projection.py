"""Random projection of CBRAP (Yu, Lyu and King 2017): z = R x, where R (size, dim) has N(0, 1 / size) entries."""

from collections.abc import Iterable
from typing import Any, NamedTuple, final

import numpy as np

from onepass.features.attribution import Attribution, Linear, constant_part, pass_to_inputs
from onepass.features.contract import output_dim, transform, transform_row
from onepass.features.feature_map import FeatureMap
from onepass.foundation import check
from onepass.foundation.linalg import dot
from onepass.foundation.registry import savable
from onepass.foundation.state import is_abstract, zeros

LARGEST = 1 << 28  # numbers of a projection matrix: 2 GiB


class GaussianProjectionState(NamedTuple):
    """State of a Gaussian projection: R^T as `transposed` (dim, size), drawn from a seed and never stored in a file."""

    transposed: np.ndarray


@output_dim.for_state(GaussianProjectionState)
def output_dim_projection(state: GaussianProjectionState) -> int:
    return state.transposed.shape[1]


@transform_row.for_state(GaussianProjectionState)
def transform_row_projection(state: GaussianProjectionState, x: np.ndarray, z: np.ndarray) -> None:
    product = dot(x, state.transposed)
    for j in range(z.size):
        z[j] = product[j]


@transform.for_state(GaussianProjectionState)
def transform_projection(state: GaussianProjectionState, rows: np.ndarray) -> np.ndarray:
    return dot(rows, state.transposed)


@final
@savable
class GaussianProjection(FeatureMap):
    """Gaussian random projection z = R x, where R has shape (size, dim) and entries drawn from N(0, 1 / size).

    Lengths and angles of n rows are kept up to an error of about sqrt(log n / size) (Johnson and Lindenstrauss 1984).
    No radius and no error bound of a design covers this error.

    Parameters
    ----------
    dim : int
        Width of x, at least 1.
    size : int
        Width of z, from 1 to `dim`. The matrix has dim times size numbers, at most 2^28.
    seed : int, default 0
        Seed from 0 to 2^32 - 1. R is drawn from it alone (NumPy's frozen generator, so the same in every version) and
        is not written to files.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    A row costs O(dim size), and memory is O(dim size).

    Examples
    --------
    >>> import onepass as op
    >>> op.features.GaussianProjection(dim=784, size=50).transform([1.0] * 784).shape
    (50,)
    """

    def __init__(self, *, dim: int, size: int, seed: int = 0) -> None:
        self.input_dim: int = check.integer("dim", dim, 1)
        self.output_dim: int = check.integer("size", size, 1, self.input_dim, "a projection must not add dimensions")
        if self.input_dim * self.output_dim > LARGEST:
            raise ValueError(
                f"dim times size must be at most {LARGEST:,}, got {self.input_dim:,} times {self.output_dim:,}"
            )
        self.seed: int = check.integer("seed", seed, 0, check.LARGEST_SEED)
        self.params: dict[str, Any] = {"dim": self.input_dim, "size": self.output_dim, "seed": self.seed}

    def begin(self, dtype: np.dtype) -> GaussianProjectionState:
        if is_abstract():
            return GaussianProjectionState(transposed=zeros(self.input_dim, self.output_dim, dtype=dtype))
        normal = np.random.RandomState(self.seed).standard_normal((self.input_dim, self.output_dim))
        return GaussianProjectionState(transposed=np.ascontiguousarray(normal / np.sqrt(self.output_dim), dtype=dtype))

    def name_features(self, names: tuple[str, ...]) -> Iterable[str]:
        return (f"projection{j}" for j in range(self.output_dim))

    def attribute(self, state: Any, x: np.ndarray, features: Linear, names: tuple[str, ...]) -> Attribution:
        slopes = features.slopes @ state.transposed.T.astype(np.float64)
        return pass_to_inputs(Linear(slopes, slopes * x), constant_part(features, transform(state, x[None])[0]))
