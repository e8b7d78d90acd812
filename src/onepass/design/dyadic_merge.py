"""Merging of two dyadic sketches (dyadic.py): the blocks of one are added to the frozen blocks of the other.

Let sketch i have the rows X_i, the Gram matrix H_i and the error bound shed_i. The sums satisfy

    0 <= X_i^T X_i - H_i <= shed_i I  for i = 1, 2,  so  0 <= X^T X - (H_1 + H_2) <= (shed_1 + shed_2) I

for all rows X together. Frozen blocks are held by the eigenvectors of their sum, however many there are, so a merge
cuts nothing. Only a first block that is still active must be frozen before. One sketch sheds at most 2 error (Wen, Yin
et al. theorem 1), so n merged sketches shed at most 2 n error. The result holds the directions of both sketches.
"""

import numpy as np

from onepass.design import contract
from onepass.design.dyadic import ADDED, DENSE, SKETCHED, DyadicState, add_row, freeze, replace_parts
from onepass.design.dyadic_blocks import join_blocks, rebuild, rows_above_ridge, stack_rows, with_ridge
from onepass.design.frequent_directions import ridge_of
from onepass.design.truncation import Sums, add_dust, add_sums, saturating_add
from onepass.foundation.generic import compiled


@compiled
def sketch_rows_of_all(state: DyadicState) -> np.ndarray:
    """Return the rows S of all blocks of a dyadic sketch together, for which S^T S approximates X^T X of all rows X."""
    if state.phase == SKETCHED:
        return stack_rows(state.whole, state.spectrum, state.block)
    values, vectors, _ = contract.spectrum(state)
    return rows_above_ridge(values, vectors, state.whole.ridge)


@compiled
def sums_with_dust(state: DyadicState) -> Sums:
    """Return the totals of what all blocks of a dyadic sketch have cut off.

    The parts of rows that were left out, because they are outside the directions held, count as rounding errors.
    """
    sums, left = add_sums(state.sums, state.block.sums), state.block.space.left
    left += state.whole.left if state.phase == ADDED else 0.0
    return Sums(mass=state.sums.mass, shed=sums.shed, weighted=sums.weighted, dust=saturating_add(sums.dust, left))


@compiled
def merge_exact(state: DyadicState, rows: np.ndarray, sums: Sums) -> DyadicState:
    """Return the state of a dyadic sketch that stores its rows exactly, after the rows of another sketch were added.

    `rows` (n, dim) are the rows of the other sketch, and `sums` holds the totals of what it has cut off. If the sketch
    adds to the ridge what it cuts off, they raise the ridge.
    """
    for i in range(rows.shape[0]):
        state = add_row(state, rows[i], 0.0)
    whole, dense, both, left = state.whole, state.dense, add_sums(state.sums, sums), state.whole.left
    grown = ridge_of(state.block.settings, both.shed) - whole.ridge
    if grown > 0.0:
        if state.phase == DENSE:
            diagonal = np.zeros_like(dense.root)
            for i in range(diagonal.shape[0]):
                diagonal[i, i] = np.sqrt(grown)
            dense = contract.append_rows(dense, diagonal)
        whole, both = with_ridge(whole, whole.ridge + grown), add_dust(both, left)
    return replace_parts(state, state.block, whole, dense, state.phase, state.mass, state.rows, both)


@contract.merge.for_state(DyadicState)
def merge(state: DyadicState, other: DyadicState) -> DyadicState:
    """Merge two dyadic sketches: add the rows held by one to the sketch that has received more rows."""
    mine, its = (state.phase, state.frozen, state.rows), (other.phase, other.frozen, other.rows)
    base, guest = (state, other) if mine >= its else (other, state)
    if guest.sums.mass == 0.0:
        return base
    rows, sums = sketch_rows_of_all(guest), sums_with_dust(guest)
    if base.phase == SKETCHED and base.frozen == 0:
        base = freeze(base)
    if base.phase != SKETCHED:
        return merge_exact(base, rows, sums)
    block, both = base.block, add_sums(base.sums, sums)
    ridge = ridge_of(block.settings, both.shed + block.sums.shed)
    whole, spectrum = join_blocks(base.whole, base.spectrum, rows, ridge)
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
