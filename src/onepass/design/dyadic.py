"""Dyadic block sketching (DBSLinUCB): a sketch that grows until its error is below a bound.

Wen, Yin et al. algorithms 1 and 4.

A is a multiple of I plus the Gram matrices of the blocks S_i. X holds all rows, and shed bounds the mass that was cut
from any direction:

    A = (reg + compensation * shed) I + sum over blocks S_i^T S_i,     ||X^T X - sum S_i^T S_i||_2 <= shed <= 2 error

Blocks are Frequent Directions of sizes size, 2 size, 4 size, ...; only the last is active. A row x joins it while

    mass + ||x||^2 < error * size,   or, once the block has received its size in rows, its rank stays below its size

where mass is the sum of squared norms of the block's rows. In the second case the block would not have to cut anything.
This is `willExcessSketch` of Wen, Yin et al., and is decided by projecting x on the block. Directions that are only
rounding are taken out first if that makes room.

If x does not join, the block is frozen, and a block of twice the size begins with x. A block that has cut something
before is shrunk when it is frozen. Wen, Yin et al. allow floor(log2(dim / size + 1)) blocks. Once all but one of them
are frozen, rows are added exactly. From dim / 2 directions on, a dense root replaces the factored one.

Blocks are not orthogonal to each other, so A^-1 is held on one subspace that contains all blocks (Wen, Yin et al. eq.
3). It is computed again, from the eigenvectors of the frozen blocks, when the active block shrinks.

Guarantees: the error bound is theorem 1 of Wen, Yin et al. With compensation, A is monotone and well conditioned
(theorems 7 and 8). If the rows have rank below 2 size, up to rounding, the design is exact up to rounding. A row costs
O(dim l), and memory is O(dim l) for the l directions held.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design import contract
from onepass.design.design import Design, check_common
from onepass.design.dyadic_blocks import densify, join_blocks, rebuild, with_room
from onepass.design.exact import ExactState, init_exact, is_valid_exact
from onepass.design.frequent_directions import (
    FrequentDirectionsState,
    decompose,
    eps_of,
    first_below,
    init_sketch,
    init_sketch_like,
    is_valid_sketch,
    negligible_share,
    receive,
    ridge_of,
    shrink,
    sketch_rows,
    truncate_at,
)
from onepass.design.subspace import (
    Subspace,
    enlarge,
    extend,
    init_subspace,
    init_subspace_like,
    inverse_gram_in,
    inverse_quadratic_in,
    is_valid_subspace,
    matrix_in,
    root_in,
    solve_in,
    spectrum_in,
)
from onepass.design.truncation import Sums, add_dust, add_mass, add_sums, certificate, is_valid_sums, saturating_add
from onepass.foundation import check
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot, inverse_root_error, product_rounding, split
from onepass.foundation.registry import savable
from onepass.foundation.state import zeros

SKETCHED, ADDED, DENSE = 0, 1, 2
COMPENSATIONS = {"fd": 0.0, "half": 0.5, "rfd": 1.0}  # share of the cut mass that comes back, by base


class DyadicSettings(NamedTuple):
    """Settings of a dyadic sketch: `size` is the number of directions of the first block.

    `error` is half of the bound of ||A - A_hat||, where A is the exact matrix and A_hat the one that the sketch stands
    for.
    """

    size: int
    error: float


class DyadicState(NamedTuple):
    """State of a dyadic sketch: finished blocks, which are frozen, and one active block that still takes rows.

    Every block is a Frequent Directions sketch S, which adds S^T S to the design A.

    - block: the active block.
    - rows, mass: number of rows that the active block has received, and the sum of their squared norms.
    - whole: subspace of all blocks together; its first len(spectrum) directions are those of the frozen blocks.
    - spectrum (frozen directions,): eigenvalues of the sum of S^T S over the frozen blocks.
    - frozen: number of frozen blocks.
    - sums: totals of what the frozen blocks have cut off, with the sum of all rows' squared norms.
    - dense: exact design that replaces all blocks in the last phase.
    - phase: 0 while rows are sketched, 1 while they are added exactly to `whole`, 2 once `dense` is used.
    """

    block: FrequentDirectionsState
    whole: Subspace
    spectrum: np.ndarray
    dense: ExactState
    phase: int
    mass: float
    rows: int
    frozen: int
    sums: Sums
    settings: DyadicSettings


@compiled
def max_blocks(dim: int, size: int) -> int:
    """Return the largest number of blocks of a dyadic sketch, floor(log2(dim / size + 1)).

    The first block has `size` directions, the next ones 2 size, 4 size and so on (Wen, Yin et al. invariant 2).
    """
    return int(np.floor(np.log2(dim / size + 1.0)))


@compiled
def replace_parts(
    state: DyadicState,
    block: FrequentDirectionsState,
    whole: Subspace,
    dense: ExactState,
    phase: int,
    mass: float,
    rows: int,
    sums: Sums,
) -> DyadicState:
    """Return the state with new values in the fields named by the arguments; the frozen blocks stay.

    `DyadicState` explains the fields.
    """
    return DyadicState(
        block=block,
        whole=whole,
        spectrum=state.spectrum,
        dense=dense,
        phase=phase,
        mass=mass,
        rows=rows,
        frozen=state.frozen,
        sums=sums,
        settings=state.settings,
    )


@compiled
def tidy_block(state: DyadicState) -> FrequentDirectionsState:
    """Return the active block without directions that are only rounding errors, if its error bound allows it.

    The total that the block cuts off stays below error size / size_i, where size_i is the block's number of directions.
    The sum over all blocks then stays within the bound 2 error.
    """
    block = state.block
    values, vectors = decompose(block)
    place = first_below(values, 1, negligible_share(eps_of(block)) * values[0]) if values.size > 0 else 0
    if place == 0 or (block.sums.shed + values[place - 1]) * block.settings.size > mass_budget(state):
        return block
    return truncate_at(block, values, vectors, place)


@compiled
def freeze(state: DyadicState) -> DyadicState:
    """Return the state after the active block was closed, and a block of twice the size begun.

    If no such block fits, rows are added exactly from then on. A block that has cut off nothing but rounding errors is
    kept as it is; any other block is shrunk first.
    """
    block = state.block
    if block.sums.shed > negligible_share(eps_of(block)) * block.sums.mass:
        block = shrink(block)
    whole = state.whole if state.frozen > 0 else block.space
    ridge = ridge_of(block.settings, state.sums.shed + block.sums.shed)
    whole, spectrum = join_blocks(whole, state.spectrum, sketch_rows(block), ridge)
    frozen, dim, size = state.frozen + 1, whole.basis.shape[1], 2 * block.settings.size
    phase = SKETCHED if frozen < max_blocks(dim, state.settings.size) - 1 else ADDED
    if phase == SKETCHED:
        following = init_sketch_like(whole.basis, size, block.settings.reg, block.settings.compensation)
        whole = enlarge(whole, min(whole.used + 2 * size, dim))
    else:  # no rows will come to this block: it needs no room
        following = init_sketch_like(whole.basis[:, :0], size, block.settings.reg, block.settings.compensation)
    sums = add_sums(state.sums, block.sums)
    dust = saturating_add(sums.dust, block.space.left)
    return DyadicState(
        block=following,
        whole=whole,
        spectrum=spectrum,
        dense=state.dense,
        phase=phase,
        mass=0.0,
        rows=0,
        frozen=frozen,
        sums=Sums(mass=state.sums.mass, shed=sums.shed, weighted=sums.weighted, dust=dust),
        settings=state.settings,
    )


@compiled
def mass_budget(state: DyadicState) -> float:
    """Return error * size, the largest sum of squared row norms that a block of the dyadic sketch may take."""
    return state.settings.error * state.settings.size


@compiled
def can_take(state: DyadicState, row: np.ndarray, squared_norm: float) -> bool:
    """Return True if the active block may take the row without exceeding its part of the error.

    It may if the squared norms of its rows stay below `mass_budget`, or if it would not have to cut anything off.
    """
    if state.mass + squared_norm < mass_budget(state):
        return True
    space, size = state.block.space, state.block.settings.size
    if state.rows + 1 < size or space.used > size - 1:
        return False
    if space.used < size - 1:
        return True
    _, _, length = split(space.basis[: space.used], row)
    return length <= 0.0


@compiled
def add_row(state: DyadicState, row: np.ndarray, squared_norm: float) -> DyadicState:
    """Add a row x to the sketch's matrix exactly, A += x x^T, and return the state.

    Once the rows span half of the space, a dense matrix replaces the subspace.
    """
    whole, dense, phase, sums = state.whole, state.dense, state.phase, add_mass(state.sums, squared_norm)
    dim = whole.basis.shape[1]
    if phase == DENSE:
        dense = contract.append(dense, row)
    else:
        whole, _ = extend(with_room(whole), row)
        if 2 * whole.used >= dim - 1:
            phase = DENSE
            dense = densify(whole)
            sums = add_dust(sums, whole.left)
            whole = init_subspace_like(whole.basis, 0, whole.ridge)
    return replace_parts(state, state.block, whole, dense, phase, state.mass, state.rows, sums)


@compiled
def is_roomy(block: FrequentDirectionsState) -> bool:
    """Return True if a quarter of the block is free, so that rounding errors need not be removed from it soon."""
    return block.space.used + block.settings.size // 4 < block.settings.size


@compiled
def tidy(state: DyadicState) -> DyadicState:
    """Return the state with directions that are only rounding errors removed from the active block.

    If some were removed, the common subspace of all blocks is computed again.
    """
    block = tidy_block(state)
    whole = state.whole
    if state.frozen > 0 and block.space.used < state.block.space.used:
        whole = rebuild(whole, state.spectrum, block, state.sums.shed)
    return replace_parts(state, block, whole, state.dense, state.phase, state.mass, state.rows, state.sums)


@contract.append.for_state(DyadicState)
def append(state: DyadicState, row: np.ndarray) -> DyadicState:
    squared_norm = float(dot(row, row))
    if state.phase != SKETCHED:
        return add_row(state, row, squared_norm)
    if not can_take(state, row, squared_norm):
        state = tidy(state)
        if not (is_roomy(state.block) and can_take(state, row, squared_norm)):
            state = freeze(state)
        if state.phase != SKETCHED:
            return add_row(state, row, squared_norm)
    used, shed = state.block.space.used, state.block.sums.shed
    block = receive(state.block, row, state.frozen == 0)
    whole = state.whole
    if state.frozen > 0:
        if block.space.used < used or block.sums.shed > shed:
            whole = rebuild(whole, state.spectrum, block, state.sums.shed)
        else:
            whole, _ = extend(with_room(whole), row)
    mass, sums = state.mass + squared_norm, add_mass(state.sums, squared_norm)
    return replace_parts(state, block, whole, state.dense, state.phase, mass, state.rows + 1, sums)


@compiled
def answering_space(state: DyadicState) -> Subspace:
    """Return the subspace that represents the design A, as long as there is no dense root."""
    return state.block.space if state.phase == SKETCHED and state.frozen == 0 else state.whole


@contract.solve.for_state(DyadicState)
def solve(state: DyadicState, b: np.ndarray) -> np.ndarray:
    return contract.solve(state.dense, b) if state.phase == DENSE else solve_in(answering_space(state), b)


@contract.inverse_quadratic.for_state(DyadicState)
def inverse_quadratic(state: DyadicState, rows: np.ndarray) -> np.ndarray:
    if state.phase == DENSE:
        return contract.inverse_quadratic(state.dense, rows)
    return inverse_quadratic_in(answering_space(state), rows)


@contract.inverse_gram.for_state(DyadicState)
def inverse_gram(state: DyadicState, rows: np.ndarray) -> np.ndarray:
    if state.phase == DENSE:
        return contract.inverse_gram(state.dense, rows)
    return inverse_gram_in(answering_space(state), rows)


@contract.root.for_state(DyadicState)
def root(state: DyadicState, z: np.ndarray) -> np.ndarray:
    return contract.root(state.dense, z) if state.phase == DENSE else root_in(answering_space(state), z)


@contract.log_det.for_state(DyadicState)
def log_det(state: DyadicState) -> float:
    return state.dense.log_det if state.phase == DENSE else answering_space(state).log_det


@contract.error_bound.for_state(DyadicState)
def error_bound(state: DyadicState) -> float:
    rule, eps, mass = state.block.settings, eps_of(state.block), state.sums.mass
    rounded = (
        product_rounding(eps, mass, rule.reg) if state.phase == SKETCHED else inverse_root_error(eps, mass, rule.reg)
    )
    left = state.block.space.left + (state.whole.left if state.frozen > 0 or state.phase != SKETCHED else 0.0)
    return certificate(rule, add_sums(state.sums, state.block.sums), left + rounded)


@contract.sums.for_state(DyadicState)
def sums_of_all_blocks(state: DyadicState) -> Sums:
    """Return the totals of what all blocks have cut off, with the sum of all rows' squared norms."""
    return add_sums(state.sums, state.block.sums)


@contract.matrix.for_state(DyadicState)
def matrix(state: DyadicState) -> np.ndarray:
    """Return the dense matrix that the sketch stands for: ridge I plus the sum of S^T S over all blocks S.

    Once rows are stored exactly, it is computed from the root of the inverse.
    """
    if state.phase == DENSE:
        return contract.matrix(state.dense)
    if state.phase == ADDED:
        return matrix_in(state.whole)
    rows = sketch_rows(state.block).astype(np.float64)
    frozen = state.whole.basis[: state.spectrum.size].astype(np.float64)
    ridge = ridge_of(state.block.settings, state.sums.shed + state.block.sums.shed)
    held = dot(frozen.T * state.spectrum, frozen)
    return ridge * np.eye(rows.shape[1]) + held + dot(rows.T, rows)


@contract.spectrum.for_state(DyadicState)
def spectrum_of_dyadic(state: DyadicState) -> tuple[np.ndarray, np.ndarray, float]:
    return contract.spectrum(state.dense) if state.phase == DENSE else spectrum_in(answering_space(state))


@savable
class Dyadic(Design):
    """Dyadic blocks of Frequent Directions: a sketch that grows, so that its error is certainly at most 2 `error`.

    A = reg I + sum of x x^T is the matrix of the rows x, and A_hat the matrix that the sketch stands for. The error is
    the spectral norm ||A - A_hat||_2. A block that has used up its part of the error is closed, and a block with twice
    as many directions is opened.

    Parameters
    ----------
    dim : int
        Width d of a row, at least 1.
    size : int
        Number l0 of directions of the first block, from 1 to dim.
    error : float
        Half of the bound of ||A - A_hat||_2, above 0, in the unit of the squared length ||x||^2 of a row.
    reg : float, default 1.0
        Ridge penalty, above 0, in the unit of the squared length ||x||^2 of a row.
    base : {"fd", "half", "rfd"}, default "fd"
        Sketch of a block. "fd" is Frequent Directions, which loses what it cuts off. "rfd" adds the eigenvalues cut off
        to reg, and "half" adds half of them (Luo et al. 2019).
    dtype : {"float64", "float32"}, default "float64"
        Dtype of all arrays.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    The blocks have size, 2 size, 4 size, ... directions, together at most dim. In place of the last block that fits,
    all further rows are stored exactly. If size is above dim / 3, only one block fits, so the design is exact from the
    first row on.

    Examples
    --------
    >>> import onepass as op
    >>> design = op.Dyadic(dim=8, size=2, error=1.0)
    >>> design.append([[1.0, 0, 0, 0, 0, 0, 0, 0]] * 100).blocks
    [2]
    """

    def __init__(
        self, *, dim: int, size: int, error: float, reg: float = 1.0, base: str = "fd", dtype: str = "float64"
    ) -> None:
        self.params: dict[str, Any] = check_common(dim, reg, dtype)
        self.params["size"] = check.integer("size", size, 1, self.dim, "use Exact for a design without a sketch")
        self.params["error"] = check.positive("error", error)
        self.params["base"] = check.choice("base", base, tuple(COMPENSATIONS))

    def begin(self) -> DyadicState:
        p, dim, dtype = self.params, self.dim, self.dtype
        phase = SKETCHED if max_blocks(dim, p["size"]) > 1 else ADDED
        room, width = (0, dim) if phase == SKETCHED else (p["size"], 0)
        return DyadicState(
            block=init_sketch(width, p["size"], p["reg"], COMPENSATIONS[p["base"]], dtype),
            whole=init_subspace(dim, min(room, dim // 2), p["reg"], dtype),
            spectrum=zeros(0),
            dense=init_exact(0, p["reg"], dtype),
            phase=phase,
            mass=0.0,
            rows=0,
            frozen=0,
            sums=Sums(mass=0.0, shed=0.0, weighted=0.0, dust=0.0),
            settings=DyadicSettings(size=p["size"], error=p["error"]),
        )

    @staticmethod
    def choose_error(rounds: int, exponent: float = 0.5, scale: float = 1.0) -> float:
        """Return an error under which the regret of `DBSLinUCB` grows as rounds^exponent at most.

        Parameters
        ----------
        rounds : int
            Number of rounds T, at least 1.
        exponent : float, default 0.5
            Exponent g of the regret T^g, from 0.5 to below 1. 0.5 gives a constant error.
        scale : float, default 1.0
            Factor, above 0, in units of ||x||^2.

        Returns
        -------
        float
            The error scale * T^((2 g - 1) / 3).

        Raises
        ------
        ValueError
            If an argument is out of its range.

        References
        ----------
        Wen, Yin et al., *Revisiting Matrix Sketching in Linear Bandits*, remark 2.

        Examples
        --------
        >>> import onepass as op
        >>> round(op.Dyadic.choose_error(1000, exponent=0.8), 6)
        3.981072
        """
        rounds, exponent = check.integer("rounds", rounds, 1), check.real("exponent", exponent)
        if not 0.5 <= exponent < 1.0:
            raise ValueError(f"exponent must be at least 0.5 and below 1, got {check.quote(exponent)}")
        return float(check.positive("scale", scale) * rounds ** ((2.0 * exponent - 1.0) / 3.0))

    @property
    def blocks(self) -> list[int]:
        """Sizes of the blocks so far, in the order in which they were opened.

        New rows go to the last block. If the design has become exact, new rows go to no block, and the list has only
        the blocks that were closed before.
        """
        count = self.state.frozen + (1 if self.state.phase == SKETCHED else 0)
        return [self.state.settings.size * 2**i for i in range(count)]

    def consistent(self, state: DyadicState) -> bool:
        """Return True if counters and shapes of a loaded state fit together.

        Parameters
        ----------
        state : NamedTuple
            State that a file holds.

        Returns
        -------
        bool
            False if the file is damaged.
        """
        dim, size, begun = self.dim, self.params["size"], self.abstract_state
        counts = 0 <= state.frozen < max(max_blocks(dim, size), 1) and state.rows >= 0
        phases = state.phase in (SKETCHED, ADDED, DENSE) and state.spectrum.size <= (
            state.whole.used if state.phase != DENSE else dim
        )
        settings = begun.block.settings._replace(size=size << state.frozen) if counts else None
        return (
            phases
            and state.block.settings == settings
            and state.settings == begun.settings
            and state.mass >= 0.0
            and is_valid_sums(state.sums)
            and bool((state.spectrum >= 0.0).all())
            and is_valid_subspace(state.whole, dim)
            and is_valid_exact(state.dense, dim if state.phase == DENSE else 0)
            and is_valid_sketch(state.block, dim if state.phase == SKETCHED else 0)
        )
