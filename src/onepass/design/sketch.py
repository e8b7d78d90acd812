"""Sketch defined by a truncation rule alone: an inverse on a subspace, cut when it holds `limit` directions.

It implements the whole contract for a design that only declares its rule (truncation.py). An arm of an arena
(arena/arena.py) works in the same way. docs/contributing/design.md shows an example of a rule. The cost is O(dim limit)
a row, the memory limit (dim + limit) numbers.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design import contract
from onepass.design.subspace import (
    Subspace,
    extend,
    init_subspace,
    init_subspace_like,
    is_valid_subspace,
    matrix_in,
    spectrum_in,
)
from onepass.design.subspace_members import register_subspace_members
from onepass.design.truncation import (
    Sums,
    Truncation,
    add_mass,
    add_sums,
    certificate,
    init_sums,
    is_valid_sums,
    loss_share,
    refine,
    saturating_add,
    truncate_space,
)
from onepass.foundation.linalg import dot, inverse_root_error


class SketchSettings(NamedTuple):
    """Settings of a rule-based sketch.

    `rule` is an object for whose type `truncation.truncate` is registered; it is applied at `limit` directions; `reg`
    is the regularization.
    """

    rule: Any
    limit: int
    reg: float


@register_subspace_members
class SketchState(NamedTuple):
    """State of a rule-based sketch: `space` is A^-1 on the span of the rows, `sums` the totals of rows and of cuts."""

    space: Subspace
    sums: Sums
    settings: SketchSettings


def init_rule_sketch(dim: int, cutting: Truncation, reg: float, dtype: np.dtype) -> SketchState:
    """Return a sketch without rows, for rows of width `dim`, with the truncation rule and limits `cutting`.

    While `foundation.state` makes abstract states, the arrays of the result take no memory.
    """
    return SketchState(
        space=init_subspace(dim, min(cutting.limit, dim), reg, dtype),
        sums=Sums(mass=0.0, shed=0.0, weighted=0.0, dust=0.0),
        settings=SketchSettings(rule=cutting.rule, limit=cutting.limit, reg=reg),
    )


def is_valid_rule_sketch(state: SketchState, begun: SketchState) -> bool:
    """Return True if a state read from a file can belong to a sketch that began as `begun`."""
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
    """Merge two sketches: the other's directions are appended as rows, scaled by sqrt(eigenvalue - ridge)."""
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


@contract.loss_share.for_state(SketchState)
def loss_share_of_rule(state: SketchState) -> float:
    return loss_share(state.settings.rule)


@contract.sketch_size.for_state(SketchState)
def sketch_size(state: SketchState) -> int:
    return state.settings.limit


@contract.refine.for_state(SketchState)
def refine_sketch(state: SketchState) -> SketchState:
    """Return a sketch without rows that holds twice as many directions."""
    basis, reg, limit = state.space.basis, state.settings.reg, 2 * state.settings.limit
    return SketchState(
        space=init_subspace_like(basis, min(limit, basis.shape[1]), reg),
        sums=init_sums(),
        settings=SketchSettings(rule=refine(state.settings.rule), limit=limit, reg=reg),
    )


@contract.close.for_state(SketchState)
def close_sketch(state: SketchState) -> SketchState:
    rule = state.settings
    return SketchState(space=init_subspace_like(state.space.basis[:, :0], 0, rule.reg), sums=init_sums(), settings=rule)
