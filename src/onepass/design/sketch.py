"""A sketch that is a rule: an inverse on a subspace, cut by the rule as soon as it holds `limit` directions.

The whole contract for a design that says no more than what it gives up (cutting.py): what an arm of an arena is, as a
shared design. CONTRIBUTING shows one. Cost O(dim limit) a row, memory limit (dim + limit) numbers.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design import contract
from onepass.design.cutting import Cutting, Sums, added, certified, cut_space, heavier, more, sums_consistent
from onepass.design.on_a_space import on_a_space
from onepass.design.subspace import Subspace, begun_subspace, extend, matrix_in, spectrum_in, subspace_consistent
from onepass.foundation.linalg import dot, in_root


class SketchSettings(NamedTuple):
    """rule: what `cutting.cut` is registered for; it is applied at `limit` directions; reg."""

    rule: Any
    limit: int
    reg: float


@on_a_space
class SketchState(NamedTuple):
    """space: A^-1 on what the rows span; sums: what they and the cuts came to."""

    space: Subspace
    sums: Sums
    settings: SketchSettings


def empty_sketch(dim: int, cutting: Cutting, reg: float, dtype: np.dtype) -> SketchState:
    """A = reg I for rows of this width; abstract where states are (foundation/state.py)."""
    return SketchState(
        space=begun_subspace(dim, min(cutting.limit, dim), reg, dtype),
        sums=Sums(mass=0.0, shed=0.0, weighted=0.0, dust=0.0),
        settings=SketchSettings(rule=cutting.rule, limit=cutting.limit, reg=reg),
    )


def sketch_fits(state: SketchState, begun: SketchState) -> bool:
    """Return whether a state read from a file is one of a sketch that began as `begun`."""
    shapes = state.space.basis.shape == begun.space.basis.shape and state.settings == begun.settings
    return shapes and subspace_consistent(state.space, begun.space.basis.shape[1]) and sums_consistent(state.sums)


@contract.append.for_state(SketchState)
def append(state: SketchState, row: np.ndarray) -> SketchState:
    space, coordinates = extend(state.space, row)
    sums = heavier(state.sums, float(dot(coordinates, coordinates)))
    if space.used == state.settings.limit:
        space, sums = cut_space(space, state.settings.rule, sums)
    return SketchState(space=space, sums=sums, settings=state.settings)


@contract.error_bound.for_state(SketchState)
def error_bound(state: SketchState) -> float:
    mass, reg, eps = state.sums.mass, state.settings.reg, float(np.finfo(state.space.basis.dtype).eps)
    return certified(state.settings.rule, state.sums, state.space.left + in_root(eps, mass, reg))


@contract.matrix.for_state(SketchState)
def matrix(state: SketchState) -> np.ndarray:
    return matrix_in(state.space)


@contract.merge.for_state(SketchState)
def merge(state: SketchState, other: SketchState) -> SketchState:
    """The other's directions, each as long as the root of its eigenvalue beyond the ridge, are rows like any other."""
    values, vectors, ridge = spectrum_in(other.space)
    mass = state.sums.mass + other.sums.mass
    for i in range(values.size):
        row = np.empty(vectors.shape[1], vectors.dtype)
        for j in range(row.size):
            row[j] = vectors[i, j] * np.sqrt(max(values[i] - ridge, 0.0))
        state = contract.append(state, row)
    both = added(state.sums, other.sums)
    sums = Sums(mass=mass, shed=both.shed, weighted=both.weighted, dust=more(both.dust, other.space.left))
    return SketchState(space=state.space, sums=sums, settings=state.settings)
