"""Concatenate: maps of one row beside each other, z = (a(x), b(x))."""

from collections.abc import Iterable
from typing import Any, NamedTuple, final

import numpy as np

from onepass.features.attribution import Attribution, Linear, added, joined, primed
from onepass.features.contract import advance, embed, output_dim, part_by_part, transform
from onepass.features.feature_map import FeatureMap, checked_map
from onepass.foundation.check import shown
from onepass.foundation.generic import compiled
from onepass.foundation.registry import savable


class ConcatenateState(NamedTuple):
    """The states of both maps."""

    first: NamedTuple
    second: NamedTuple


@compiled
def beside(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Rows (n, a) and (n, b) as (n, a + b)."""
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


@embed.for_state(ConcatenateState)
def embed_concatenate(state: ConcatenateState, x: np.ndarray, z: np.ndarray) -> None:
    width = output_dim(state.first)
    embed(state.first, x, z[:width])
    embed(state.second, x, z[width:])


@transform.for_state(ConcatenateState)
def transform_concatenate(state: ConcatenateState, rows: np.ndarray) -> np.ndarray:
    return beside(transform(state.first, rows), transform(state.second, rows))


@advance.for_state(ConcatenateState)
def advance_concatenate(state: ConcatenateState, rows: np.ndarray) -> np.ndarray:
    return beside(advance(state.first, rows), advance(state.second, rows))


part_by_part(ConcatenateState)


@final
@savable
class Concatenate(FeatureMap):
    """z = (a(x), b(x), ...): the features of several maps of the same row, one after the other.

    first, second, others: feature maps of one input_dim, compositions too. Three or more are kept as first, then a
        concatenation of the rest.
    A name that occurred before gets primes. Certified and repeatable if all parts are. Costs
    add up. ValueError for what is no feature map, or for widths or sides that differ.

    >>> import onepass as op
    >>> features = op.Concatenate(op.Identity(dim=2), op.Intercept(dim=2), op.Fourier(dim=2, size=4))
    >>> features.feature_names(["hour", "age"])
    ('hour', 'age', 'intercept', 'cos0', 'cos1', 'sin0', 'sin1')
    """

    def __init__(self, first: FeatureMap, second: FeatureMap, *others: FeatureMap) -> None:
        self.first: Any = checked_map("first", first)
        self.second: Concatenate | Any = Concatenate(second, *others) if others else checked_map("second", second)
        sides = {part.sides for part in (self.first, self.second) if part.sides is not None}
        if self.second.input_dim != self.first.input_dim or len(sides) > 1:
            raise ValueError(
                f"second must take the same rows as first, got {shown(self.first)} of {self.first.input_dim} and "
                f"{shown(self.second)} of {self.second.input_dim}{', with other sides' if len(sides) > 1 else ''}"
            )
        self.input_dim: int = self.first.input_dim
        self.output_dim: int = self.first.output_dim + self.second.output_dim
        self.params: dict[str, Any] = {"first": self.first, "second": self.second}
        self.certified: bool = self.first.certified and self.second.certified
        self.repeatable: bool = self.first.repeatable and self.second.repeatable
        self.sides: tuple[int, int] | None = sides.pop() if sides else None

    def begin(self, dtype: np.dtype) -> ConcatenateState:
        return ConcatenateState(first=self.first.started(dtype), second=self.second.started(dtype))

    def learned(self, state: Any) -> tuple[Any, ...]:
        return self.first.learned(state.first), self.second.learned(state.second)

    def consistent(self, learned: tuple[Any, ...]) -> bool:
        return self.first.consistent(learned[0]) and self.second.consistent(learned[1])

    def named(self, names: tuple[str, ...]) -> Iterable[str]:
        return primed((*self.first.feature_names(names), *self.second.feature_names(names)))

    def explained(self, state: Any, x: np.ndarray, features: Linear, names: tuple[str, ...]) -> Attribution:
        width = self.first.output_dim
        left, right = (
            Linear(features.slopes[:, part], features.parts[:, part]) for part in (slice(width), slice(width, None))
        )
        first = self.first.explained(state.first, x, left, names)
        second = self.second.explained(state.second, x, right, names)
        return joined(first, second, added(first.inputs, second.inputs))

    def __repr__(self) -> str:
        return f"Concatenate({self.first!r}, {self.second!r})"
