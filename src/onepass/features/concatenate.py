"""Concatenation of feature maps of the same row: z = (a(x), b(x))."""

from collections.abc import Iterable
from typing import Any, NamedTuple, final

import numpy as np

from onepass.features.attribution import Attribution, Linear, add, add_primes, join
from onepass.features.contract import (
    output_dim,
    register_python_fallback,
    transform,
    transform_row,
    update_and_transform,
)
from onepass.features.feature_map import FeatureMap, check_map
from onepass.foundation.check import quote
from onepass.foundation.generic import compiled
from onepass.foundation.registry import savable


class ConcatenateState(NamedTuple):
    """States of the `first` and the `second` map of a concatenation."""

    first: NamedTuple
    second: NamedTuple


@compiled
def hstack(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return rows (n, a + b): the rows (n, a) and (n, b) side by side."""
    out = np.empty((left.shape[0], left.shape[1] + right.shape[1]), left.dtype)
    for i in range(out.shape[0]):
        for j in range(left.shape[1]):
            out[i, j] = left[i, j]
        for j in range(right.shape[1]):
            out[i, left.shape[1] + j] = right[i, j]
    return out


@output_dim.for_state(ConcatenateState)
def output_dim_concatenate(state: ConcatenateState) -> int:
    return output_dim(state.first) + output_dim(state.second)


@transform_row.for_state(ConcatenateState)
def transform_row_concatenate(state: ConcatenateState, x: np.ndarray, z: np.ndarray) -> None:
    width = output_dim(state.first)
    transform_row(state.first, x, z[:width])
    transform_row(state.second, x, z[width:])


@transform.for_state(ConcatenateState)
def transform_concatenate(state: ConcatenateState, rows: np.ndarray) -> np.ndarray:
    return hstack(transform(state.first, rows), transform(state.second, rows))


@update_and_transform.for_state(ConcatenateState)
def update_and_transform_concatenate(state: ConcatenateState, rows: np.ndarray) -> np.ndarray:
    return hstack(update_and_transform(state.first, rows), update_and_transform(state.second, rows))


register_python_fallback(ConcatenateState)


@final
@savable
class Concatenate(FeatureMap):
    """Features of several maps of the same row, one after the other: z = (a(x), b(x), ...).

    If two maps give a feature the same name, a prime is added to the later one. Three or more maps are stored as
    `first` and a concatenation of the others.

    Parameters
    ----------
    first : FeatureMap
        The map whose features come first. Compositions are allowed.
    second : FeatureMap
        The map whose features come next, with the same `input_dim`.
    *others : FeatureMap
        Further maps with the same `input_dim`.

    Raises
    ------
    ValueError
        If an argument is no feature map, or if the maps differ in `input_dim` or in their sides.

    Notes
    -----
    The map is certified if all parts are: a design's proven error bound, `error_bound()`, then also holds with this
    map. It is repeatable, so that a row always gives exactly the same z, if all parts are. Costs add up.

    Examples
    --------
    >>> import onepass as op
    >>> features = op.features.Concatenate(
    ...     op.features.Identity(dim=2), op.features.Intercept(dim=2), op.features.Fourier(dim=2, size=4)
    ... )
    >>> features.feature_names(["hour", "age"])
    ('hour', 'age', 'intercept', 'cos0', 'cos1', 'sin0', 'sin1')
    """

    def __init__(self, first: FeatureMap, second: FeatureMap, *others: FeatureMap) -> None:
        self.first: Any = check_map("first", first)
        self.second: Concatenate | Any = Concatenate(second, *others) if others else check_map("second", second)
        sides = {part.sides for part in (self.first, self.second) if part.sides is not None}
        if self.second.input_dim != self.first.input_dim or len(sides) > 1:
            raise ValueError(
                f"second must take the same rows as first, got {quote(self.first)} of {self.first.input_dim} and "
                f"{quote(self.second)} of {self.second.input_dim}{', with other sides' if len(sides) > 1 else ''}"
            )
        self.input_dim: int = self.first.input_dim
        self.output_dim: int = self.first.output_dim + self.second.output_dim
        self.params: dict[str, Any] = {"first": self.first, "second": self.second}
        self.certified: bool = self.first.certified and self.second.certified
        self.repeatable: bool = self.first.repeatable and self.second.repeatable
        self.sides: tuple[int, int] | None = sides.pop() if sides else None

    def begin(self, dtype: np.dtype) -> ConcatenateState:
        return ConcatenateState(first=self.first.initial_state(dtype), second=self.second.initial_state(dtype))

    def mutable_arrays(self, state: Any) -> tuple[Any, ...]:
        return self.first.mutable_arrays(state.first), self.second.mutable_arrays(state.second)

    def consistent(self, learned: tuple[Any, ...]) -> bool:
        return self.first.consistent(learned[0]) and self.second.consistent(learned[1])

    def name_features(self, names: tuple[str, ...]) -> Iterable[str]:
        return add_primes((*self.first.feature_names(names), *self.second.feature_names(names)))

    def attribute(self, state: Any, x: np.ndarray, features: Linear, names: tuple[str, ...]) -> Attribution:
        width = self.first.output_dim
        left, right = (
            Linear(features.slopes[:, part], features.parts[:, part]) for part in (slice(width), slice(width, None))
        )
        first = self.first.attribute(state.first, x, left, names)
        second = self.second.attribute(state.second, x, right, names)
        return join(first, second, add(first.inputs, second.inputs))

    def __repr__(self) -> str:
        return f"Concatenate({self.first!r}, {self.second!r})"
