"""Scaling of rows to one length: z = length x / ||x||, and 0 for x = 0, so that only directions count.

After this map, the inner product of two rows is length^2 times the cosine between them. It measures how alike two users
are, however much each has done. A row costs O(d).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, final

import numpy as np

from onepass.features.contract import output_dim, transform_row
from onepass.features.feature_map import FeatureMap
from onepass.foundation import check
from onepass.foundation.generic import compiled
from onepass.foundation.registry import savable


class UnitLengthState(NamedTuple):
    """State of the scaling: `dim` is the width of a row, and `length` the length of z."""

    dim: int
    length: float


@compiled
def vector_norm(x: np.ndarray) -> float:
    """Return ||x|| = m ||x / m||, with m the largest entry in size, so that no square underflows or overflows."""
    most, total = 0.0, 0.0
    for j in range(x.size):
        most = max(most, abs(float(x[j])))
    if most > 0.0:
        for j in range(x.size):
            share = float(x[j]) / most
            total += share * share
    return most * np.sqrt(total)


@output_dim.for_state(UnitLengthState)
def output_dim_unit_length(state: UnitLengthState) -> int:
    return state.dim


@transform_row.for_state(UnitLengthState)
def transform_row_unit_length(state: UnitLengthState, x: np.ndarray, z: np.ndarray) -> None:
    size = vector_norm(x)
    for j in range(x.size):
        z[j] = state.length * (float(x[j]) / size) if size > 0.0 else 0.0


@final
@savable
class UnitLength(FeatureMap):
    """Rows scaled to one length: z = length x / ||x||, and 0 for x = 0.

    Use it if only the direction of a row matters. In a row of a user's tastes, for example, the length only says how
    much of the user was seen.

    Parameters
    ----------
    dim : int
        Width of x, at least 1.
    length : float, default 1.0
        Length of every z, above 0.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    The map is certified: a design's proven error bound, `error_bound()`, also holds with this map.

    Examples
    --------
    >>> import onepass as op
    >>> op.features.UnitLength(dim=2, length=10.0).transform([[3.0, 4.0], [0.0, 0.0]]).tolist()
    [[6.0, 8.0], [0.0, 0.0]]
    """

    certified = True
    repeatable = True

    def __init__(self, *, dim: int, length: float = 1.0) -> None:
        self.input_dim: int = check.integer("dim", dim, 1)
        self.output_dim: int = self.input_dim
        self.length: float = check.positive("length", length)
        self.params: dict[str, Any] = {"dim": self.input_dim, "length": self.length}

    def begin(self, dtype: np.dtype) -> UnitLengthState:
        return UnitLengthState(dim=self.input_dim, length=self.length)

    def name_features(self, names: tuple[str, ...]) -> Iterable[str]:
        return (f"direction of {name}" for name in names)
