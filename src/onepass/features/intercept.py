"""Intercept feature z = 1, for the part of a reward that does not depend on x."""

from collections.abc import Iterable
from typing import Any, NamedTuple, final

import numpy as np

from onepass.features.attribution import Attribution, Linear, name_terms
from onepass.features.contract import output_dim, transform_row
from onepass.features.feature_map import FeatureMap
from onepass.foundation import check
from onepass.foundation.registry import savable


class InterceptState(NamedTuple):
    """State of the intercept, which holds only the width `dim` of a row."""

    dim: int


@output_dim.for_state(InterceptState)
def output_dim_intercept(state: InterceptState) -> int:
    return 1


@transform_row.for_state(InterceptState)
def transform_row_intercept(state: InterceptState, x: np.ndarray, z: np.ndarray) -> None:
    z[0] = 1.0


@final
@savable
class Intercept(FeatureMap):
    """Constant feature z = 1.

    Put it beside other features (`Concatenate`): its weight learns the mean reward, which standardized features cannot.

    Parameters
    ----------
    dim : int
        Width of x, at least 1.

    Raises
    ------
    ValueError
        If `dim` is below 1.

    Notes
    -----
    The map is certified: a design's proven error bound, `error_bound()`, also holds with this map.

    Examples
    --------
    >>> import onepass as op
    >>> op.features.Concatenate(op.features.Standardize(dim=2), op.features.Intercept(dim=2)).output_dim
    3
    """

    certified = True
    repeatable = True
    output_dim = 1

    def __init__(self, *, dim: int) -> None:
        self.input_dim: int = check.integer("dim", dim, 1)
        self.params: dict[str, Any] = {"dim": self.input_dim}

    def begin(self, dtype: np.dtype) -> InterceptState:
        return InterceptState(dim=self.input_dim)

    def name_features(self, names: tuple[str, ...]) -> Iterable[str]:
        return ("intercept",)

    def attribute(self, state: Any, x: np.ndarray, features: Linear, names: tuple[str, ...]) -> Attribution:
        none = np.zeros((len(features.parts), 0))
        return name_terms((), (), Linear(none, none), features.parts[:, 0])
