"""Chain of feature maps, applied one after another: z = b(a(x))."""

from collections.abc import Iterable
from typing import Any, NamedTuple, final

import numpy as np

from onepass.features.attribution import Attribution, Linear, join
from onepass.features.contract import (
    output_dim,
    register_python_fallback,
    transform,
    transform_row,
    update_and_transform,
)
from onepass.features.feature_map import FeatureMap, check_map
from onepass.foundation.check import quote
from onepass.foundation.registry import savable


class ChainState(NamedTuple):
    """States of the `first` and the `second` map of a chain."""

    first: NamedTuple
    second: NamedTuple


@output_dim.for_state(ChainState)
def output_dim_chain(state: ChainState) -> int:
    return output_dim(state.second)


@transform_row.for_state(ChainState)
def transform_row_chain(state: ChainState, x: np.ndarray, z: np.ndarray) -> None:
    between = np.empty(output_dim(state.first), x.dtype)
    transform_row(state.first, x, between)
    transform_row(state.second, between, z)


@transform.for_state(ChainState)
def transform_chain(state: ChainState, rows: np.ndarray) -> np.ndarray:
    return transform(state.second, transform(state.first, rows))


@update_and_transform.for_state(ChainState)
def update_and_transform_chain(state: ChainState, rows: np.ndarray) -> np.ndarray:
    return update_and_transform(state.second, update_and_transform(state.first, rows))


register_python_fallback(ChainState)


@final
@savable
class Chain(FeatureMap):
    """Feature maps one after the other, z = b(a(x)): each map gets the rows that the one before returns.

    Three or more maps are stored as `first` and a chain of the others.

    Parameters
    ----------
    first : FeatureMap
        The map that is applied to x. Compositions are allowed.
    second : FeatureMap
        The map that is applied next. Its `input_dim` must be the `output_dim` of `first`.
    *others : FeatureMap
        Further maps in order. The `input_dim` of each must be the `output_dim` of the one before.

    Raises
    ------
    ValueError
        If an argument is no feature map, or if the widths of neighbours differ.

    Notes
    -----
    The map is certified if all parts are: a design's proven error bound, `error_bound()`, then also holds with this
    map. It is repeatable, so that a row always gives exactly the same z, if all parts are. Costs add up.

    Examples
    --------
    >>> import onepass as op
    >>> features = op.features.Chain(op.features.Standardize(dim=3), op.features.Fourier(dim=3, size=50))
    >>> features.input_dim, features.output_dim
    (3, 50)
    """

    input_dim: int
    output_dim: int

    def __init__(self, first: FeatureMap, second: FeatureMap, *others: FeatureMap) -> None:
        self.first: Any = check_map("first", first)
        self.second: Chain | Any = Chain(second, *others) if others else check_map("second", second)
        if self.second.input_dim != self.first.output_dim:
            raise ValueError(
                f"second must take rows of length {self.first.output_dim}, as {quote(self.first)} gives them, "
                f"got {quote(self.second)}, which takes {self.second.input_dim}"
            )
        self.input_dim, self.output_dim = self.first.input_dim, self.second.output_dim
        self.params: dict[str, Any] = {"first": self.first, "second": self.second}
        self.certified: bool = self.first.certified and self.second.certified
        self.repeatable: bool = self.first.repeatable and self.second.repeatable
        self.sides: tuple[int, int] | None = self.first.sides

    def begin(self, dtype: np.dtype) -> ChainState:
        return ChainState(first=self.first.initial_state(dtype), second=self.second.initial_state(dtype))

    def mutable_arrays(self, state: Any) -> tuple[Any, ...]:
        return self.first.mutable_arrays(state.first), self.second.mutable_arrays(state.second)

    def consistent(self, learned: tuple[Any, ...]) -> bool:
        return self.first.consistent(learned[0]) and self.second.consistent(learned[1])

    def name_features(self, names: tuple[str, ...]) -> Iterable[str]:
        return self.second.feature_names(self.first.feature_names(names))

    def attribute(self, state: Any, x: np.ndarray, features: Linear, names: tuple[str, ...]) -> Attribution:
        between = transform(state.first, x[None])[0]
        outer = self.second.attribute(state.second, between, features, self.first.feature_names(names))
        if outer.inputs is None:
            return outer
        inner = self.first.attribute(state.first, x, outer.inputs, names)
        return join(inner, outer, inner.inputs)

    def __repr__(self) -> str:
        return f"Chain({self.first!r}, {self.second!r})"
