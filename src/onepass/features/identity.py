"""Identity map z = x, used within `Concatenate` beside other features of x."""

from collections.abc import Iterable
from typing import Any, NamedTuple, final

import numpy as np

from onepass.features.attribution import Attribution, Linear, pass_to_inputs
from onepass.features.contract import output_dim, transform, transform_row
from onepass.features.feature_map import FeatureMap
from onepass.foundation import check
from onepass.foundation.registry import savable


class IdentityState(NamedTuple):
    """State of the identity map z = x, which holds only the width `dim` of a row."""

    dim: int


@output_dim.for_state(IdentityState)
def output_dim_identity(state: IdentityState) -> int:
    return state.dim


@transform_row.for_state(IdentityState)
def transform_row_identity(state: IdentityState, x: np.ndarray, z: np.ndarray) -> None:
    for j in range(x.size):
        z[j] = x[j]


@transform.for_state(IdentityState)
def transform_identity(state: IdentityState, rows: np.ndarray) -> np.ndarray:
    return rows


@final
@savable
class Identity(FeatureMap):
    """Identity map z = x, as a bandit does without `features`.

    Parameters
    ----------
    dim : int
        Width of x and of z, at least 1.

    Raises
    ------
    ValueError
        If `dim` is below 1.

    Notes
    -----
    The map is certified: a design's proven error bound, `error_bound()`, also holds with this map. It has no cost and
    takes no memory.

    Examples
    --------
    >>> import onepass as op
    >>> op.features.Concatenate(op.features.Identity(dim=2), op.features.Intercept(dim=2)).transform([3.0, 4.0])
    array([3., 4., 1.])
    """

    certified = True
    repeatable = True

    output_dim: int

    input_dim: int

    def __init__(self, *, dim: int) -> None:
        self.input_dim = self.output_dim = check.integer("dim", dim, 1)
        self.params: dict[str, Any] = {"dim": self.input_dim}

    def begin(self, dtype: np.dtype) -> IdentityState:
        return IdentityState(dim=self.input_dim)

    def name_features(self, names: tuple[str, ...]) -> Iterable[str]:
        return names

    def attribute(self, state: Any, x: np.ndarray, features: Linear, names: tuple[str, ...]) -> Attribution:
        return pass_to_inputs(features)
