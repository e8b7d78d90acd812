"""Merging dyadic blocks: what one of two sketches holds joins the frozen blocks of the other as it is.

    0 <= X_i^T X_i - H_i <= shed_i I  for i = 1, 2,  so  0 <= X^T X - (H_1 + H_2) <= (shed_1 + shed_2) I

for all rows X together. Frozen blocks are kept by their common spectrum, however many directions that has, so nothing
is cut; only a first block that is still active is frozen for it. One sketch sheds 2 error at most (Wen, Yin et al.
theorem 1), whatever it takes in after: n merged ones shed 2 n error at most. Held are the directions of both.
"""

import numpy as np

from onepass.design import contract
from onepass.design.blocks import beyond, joined, rebuild, stacked, with_ridge
from onepass.design.cutting import Sums, added, dustier, more
from onepass.design.dyadic import ADDED, DENSE, SKETCHED, DyadicState, add, changed, freeze
from onepass.design.frequent_directions import ridge_of
from onepass.foundation.generic import compiled


@compiled
def held_rows(state: DyadicState) -> np.ndarray:
    """Rows whose Gram matrix is what is held of X^T X."""
    if state.phase == SKETCHED:
        return stacked(state.whole, state.spectrum, state.block)
    values, vectors, _ = contract.spectrum(state)
    return beyond(values, vectors, state.whole.ridge)


@compiled
def came_to(state: DyadicState) -> Sums:
    """The sums of all blocks, and what was left out of them as dust."""
    sums, left = added(state.sums, state.block.sums), state.block.space.left
    left += state.whole.left if state.phase == ADDED else 0.0
    return Sums(mass=state.sums.mass, shed=sums.shed, weighted=sums.weighted, dust=more(sums.dust, left))


@compiled
def exactly_together(state: DyadicState, rows: np.ndarray, sums: Sums) -> DyadicState:
    """The exact phase takes rows in, of a stream that shed `sums`; what was compensated there joins the ridge."""
    for i in range(rows.shape[0]):
        state = add(state, rows[i], 0.0)
    whole, dense, both, left = state.whole, state.dense, added(state.sums, sums), state.whole.left
    grown = ridge_of(state.block.settings, both.shed) - whole.ridge
    if grown > 0.0:
        if state.phase == DENSE:
            diagonal = np.zeros_like(dense.root)
            for i in range(diagonal.shape[0]):
                diagonal[i, i] = np.sqrt(grown)
            dense = contract.append_rows(dense, diagonal)
        whole, both = with_ridge(whole, whole.ridge + grown), dustier(both, left)
    return changed(state, state.block, whole, dense, state.phase, state.mass, state.rows, both)


@contract.merge.for_state(DyadicState)
def merge(state: DyadicState, other: DyadicState) -> DyadicState:
    """The one that has come further takes in the other."""
    mine, its = (state.phase, state.frozen, state.rows), (other.phase, other.frozen, other.rows)
    base, guest = (state, other) if mine >= its else (other, state)
    if guest.sums.mass == 0.0:
        return base
    rows, sums = held_rows(guest), came_to(guest)
    if base.phase == SKETCHED and base.frozen == 0:
        base = freeze(base)
    if base.phase != SKETCHED:
        return exactly_together(base, rows, sums)
    block, both = base.block, added(base.sums, sums)
    ridge = ridge_of(block.settings, both.shed + block.sums.shed)
    whole, spectrum = joined(base.whole, base.spectrum, rows, ridge)
    return DyadicState(
        block=block,
        whole=rebuild(whole, spectrum, block, both.shed),
        spectrum=spectrum,
        dense=base.dense,
        phase=base.phase,
        mass=base.mass,
        rows=base.rows,
        frozen=base.frozen,
        sums=both,
        settings=base.settings,
    )
