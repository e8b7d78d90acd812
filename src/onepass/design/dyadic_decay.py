"""Forgetting with dyadic blocks (dyadic.py): all blocks decay alike, and finally one new block replaces them.

With H_j the Gram matrix of block j, g^age_j its decay and error_j its error, the decayed rows X_g satisfy

    0 <= X_g^T X_g - sum of H_j <= Delta I,   Delta <= sum over blocks of g^age_j error_j <= 2 error

Every cut of block j takes size_j delta off the trace, so size Delta is at most the decayed mass (sum of squared norms)
of all rows. The proof is in decay.py. A first block may take the mass error size. Once the decayed mass is below half
of this, a new first block therefore takes in all directions that are held. It counts their whole mass as its own, and
all that was shed as shed by itself. So it sheds no more than its share before it is frozen, and the bound 2 error holds
for all time.

Before that no block is dropped. If the decayed mass stays above error size, rows are added exactly in the end, as
without forgetting. In this case a sketch with the same error is `FrequentDirections` of size L^2 / ((1 - gamma) error),
which needs no blocks.
"""

import numpy as np

from onepass.design import contract
from onepass.design.decay import scale_exact, scale_space
from onepass.design.dyadic import ADDED, DENSE, SKETCHED, DyadicState, mass_budget, max_blocks
from onepass.design.dyadic_blocks import rebuild
from onepass.design.dyadic_merge import sketch_rows_of_all, sums_with_dust
from onepass.design.exact import init_exact_like
from onepass.design.frequent_directions import init_sketch_like, receive, with_sums
from onepass.design.subspace import init_subspace_like
from onepass.design.truncation import Sums, add_sums, scale_sums
from onepass.foundation.generic import compiled

ANEW = 0.5  # of what a first block may take: as much again must come before it is frozen


@contract.regularization.for_state(DyadicState)
def regularization_of_dyadic(state: DyadicState) -> float:
    return state.block.settings.reg


@compiled
def restart_blocks(state: DyadicState) -> DyadicState:
    """Return a dyadic sketch whose first block holds all directions of the present sketch."""
    rule, like, mass = state.block.settings, state.whole.basis, state.sums.mass
    rows, sums = sketch_rows_of_all(state), sums_with_dust(state)
    block = init_sketch_like(like, state.settings.size, rule.reg, rule.compensation)
    for i in range(rows.shape[0]):
        block = receive(block, rows[i], True)
    both = add_sums(sums, block.sums)
    block = with_sums(block, Sums(mass=mass, shed=both.shed, weighted=both.weighted, dust=both.dust))
    return DyadicState(
        block=block,
        whole=init_subspace_like(like, 0, rule.reg),
        spectrum=np.empty(0),
        dense=init_exact_like(like[:, :0], rule.reg),
        phase=SKETCHED,
        mass=mass,
        rows=rows.shape[0],
        frozen=0,
        sums=Sums(mass=mass, shed=0.0, weighted=0.0, dust=0.0),
        settings=state.settings,
    )


@compiled
def scale_blocks(state: DyadicState, factor: float) -> DyadicState:
    """Return the dyadic sketch in which past rows count `factor` times, in every block."""
    reg, sums, block = state.block.settings.reg, scale_sums(state.sums, factor), contract.decay(state.block, factor)
    spectrum, whole, dense = factor * state.spectrum, state.whole, state.dense
    if state.phase == ADDED:
        whole = scale_space(whole, factor, reg)
    elif state.phase == DENSE:
        dense = scale_exact(dense, factor, reg + factor * (dense.settings.reg - reg))
        whole = init_subspace_like(whole.basis, 0, reg + factor * (whole.ridge - reg))
    elif state.frozen > 0:
        whole = rebuild(whole, spectrum, block, sums.shed)
    return DyadicState(
        block=block,
        whole=whole,
        spectrum=spectrum,
        dense=dense,
        phase=state.phase,
        mass=factor * state.mass,
        rows=state.rows,
        frozen=state.frozen,
        sums=sums,
        settings=state.settings,
    )


@contract.decay.for_state(DyadicState)
def decay_dyadic(state: DyadicState, factor: float) -> DyadicState:
    state = scale_blocks(state, factor)
    late = state.phase != SKETCHED or state.frozen > 0
    late = late and max_blocks(state.whole.basis.shape[1], state.settings.size) > 1
    return restart_blocks(state) if late and state.sums.mass < ANEW * mass_budget(state) else state
