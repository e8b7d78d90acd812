"""A sketch that is a rule: an inverse on a subspace, cut by the rule as soon as it holds `limit` directions.

The whole contract for a design that says no more than what it gives up (truncation.py): what an arm of an arena is, as
a shared design. CONTRIBUTING shows one. Cost O(dim limit) a row, memory limit (dim + limit) numbers.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design import contract
from onepass.design.subspace import Subspace, extend, init_subspace, is_valid_subspace, matrix_in, spectrum_in
from onepass.design.subspace_members import register_subspace_members
from onepass.design.truncation import (
    Sums,
    Truncation,
    add_mass,
    add_sums,
    certificate,
    is_valid_sums,
    saturating_add,
    truncate_space,
)
from onepass.foundation.linalg import dot, inverse_root_error


class SketchSettings(NamedTuple):
    """rule: what `cutting.cut` is registered for; it is applied at `limit` directions; reg."""

    rule: Any
    limit: int
    reg: float


@register_subspace_members
class SketchState(NamedTuple):
    """space: A^-1 on what the rows span; sums: what they and the cuts came to."""

    space: Subspace
    sums: Sums
    settings: SketchSettings


def init_rule_sketch(dim: int, cutting: Truncation, reg: float, dtype: np.dtype) -> SketchState:
    """Return A = reg I for rows of this width; abstract if states are abstract (foundation/state.py)."""
    return SketchState(
        space=init_subspace(dim, min(cutting.limit, dim), reg, dtype),
        sums=Sums(mass=0.0, shed=0.0, weighted=0.0, dust=0.0),
        settings=SketchSettings(rule=cutting.rule, limit=cutting.limit, reg=reg),
    )


def is_valid_rule_sketch(state: SketchState, begun: SketchState) -> bool:
    """Return whether a state read from a file is one of a sketch that began as `begun`."""
    shapes = state.space.basis.shape == begun.space.basis.shape and state.settings == begun.settings
    return shapes and is_valid_subspace(state.space, begun.space.basis.shape[1]) and is_valid_sums(state.sums)


@contract.append.for_state(SketchState)
def append(state: SketchState, row: np.ndarray) -> SketchState:
    space, coordinates = extend(state.space, row)
    sums = add_mass(state.sums, float(dot(coordinates, coordinates)))
    if space.used == state.settings.limit:
        space, sums = truncate_space(space, state.settings.rule, sums)
    return SketchState(space=space, sums=sums, settings=state.settings)


@contract.error_bound.for_state(SketchState)
def error_bound(state: SketchState) -> float:
    mass, reg, eps = state.sums.mass, state.settings.reg, float(np.finfo(state.space.basis.dtype).eps)
    return certificate(state.settings.rule, state.sums, state.space.left + inverse_root_error(eps, mass, reg))


@contract.matrix.for_state(SketchState)
def matrix(state: SketchState) -> np.ndarray:
    return matrix_in(state.space)


@contract.merge.for_state(SketchState)
def merge(state: SketchState, other: SketchState) -> SketchState:
    """Merge two sketches: the other's directions, times the root of their eigenvalue beyond the ridge, are rows."""
    values, vectors, ridge = spectrum_in(other.space)
    mass = state.sums.mass + other.sums.mass
    for i in range(values.size):
        row = np.empty(vectors.shape[1], vectors.dtype)
        for j in range(row.size):
            row[j] = vectors[i, j] * np.sqrt(max(values[i] - ridge, 0.0))
        state = contract.append(state, row)
    both = add_sums(state.sums, other.sums)
    sums = Sums(mass=mass, shed=both.shed, weighted=both.weighted, dust=saturating_add(both.dust, other.space.left))
    return SketchState(space=state.space, sums=sums, settings=state.settings)
