"""Dyadic block sketching (DBSLinUCB, Wen, Yin et al. algorithms 1 and 4): a sketch that grows until its error is below
a bound.

    A = (reg + compensation * shed) I + sum over blocks S_i^T S_i,     ||X^T X - sum S_i^T S_i||_2 <= shed <= 2 error

Blocks are Frequent Directions of sizes size, 2 size, 4 size, ...; only the last is active. A row x joins it while

    mass + ||x||^2 < error * size,   or, once the block has received its size in rows, its rank stays below its size

(then it would not shrink; Wen, Yin et al.'s `willExcessSketch`, decided by projecting x on the block; directions that
are only rounding are taken out first, where that makes room). Otherwise the block is frozen: shrunk, unless it has
never had to cut anything, and one of twice the size begins with x. Wen, Yin et al. allow floor(log2(dim / size + 1))
blocks: once all but one of them are frozen, rows are added exactly; from dim / 2 directions on, a dense root replaces
the factored one.

The answers come from one subspace that holds all blocks, because blocks are not orthogonal to each other (Wen, Yin et
al. eq. 3). It is made anew when the active block shrinks, from the frozen part's eigenvectors. Guarantees: Wen, Yin et
al. theorem 1 (error), theorems 7 and 8 (monotone, well conditioned) when compensated; rows of rank below 2 size, but
for rounding, are answered to rounding. Cost O(dim l) a row and memory O(dim l) for the l directions held.
"""

from typing import NamedTuple

import numpy as np

from onepass.design import contract
from onepass.design.design import Design, common, like
from onepass.design.exact import ExactState, new_exact
from onepass.design.frequent_directions import (
    FrequentDirectionsState,
    cut_at,
    decomposed,
    first_below,
    new_sketch,
    nothing,
    receive,
    shrink,
    sketch_consistent,
    sketch_rows,
    sketched_radius,
)
from onepass.design.subspace import (
    Subspace,
    enlarge,
    extend,
    inverse_quadratic_in,
    matrix_in,
    root_in,
    solve_in,
    spectrum_in,
    subspace,
)
from onepass.foundation import check
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot, fill, rounding, split, svd
from onepass.foundation.registry import savable

SKETCHED, ADDED, DENSE = 0, 1, 2


class DyadicState(NamedTuple):
    """block: the active sketch; whole: all blocks together, its first spectrum.size directions the frozen ones."""

    block: FrequentDirectionsState
    whole: Subspace
    spectrum: np.ndarray  # (frozen directions,) eigenvalues of the frozen blocks' sum of S_i^T S_i
    dense: ExactState
    phase: int
    size: int
    error: float
    mass: float  # squared norms in the active block
    rows: int  # rows received by the active block
    frozen: int  # number of frozen blocks
    shed: float  # by the frozen blocks
    weighted: float  # sum over the cuts of the frozen blocks of place * cut
    total: float  # squared norms of all rows
    dust: float  # bounds what rounding did in the cuts of the frozen blocks


@compiled
def most_blocks(dim, size):
    """floor(log2(dim / size + 1)), Wen, Yin et al. invariant 2."""
    return int(np.floor(np.log2(dim / size + 1.0)))


@compiled
def new_dyadic(like, size, error, reg, compensation):
    """A = reg I for rows of the width and dtype of `like`, shape (n, dim)."""
    phase = SKETCHED if most_blocks(like.shape[1], size) > 1 else ADDED
    room, width = (0, like.shape[1]) if phase == SKETCHED else (size, 0)
    block = new_sketch(like[:, :width], size, reg, compensation)
    whole = subspace(like, min(room, like.shape[1] // 2), reg)
    dense = new_exact(like[:, :0], reg)
    return DyadicState(block, whole, np.empty(0), dense, phase, size, error, 0.0, 0, 0, 0.0, 0.0, 0.0, 0.0)


@compiled
def with_block(state, block, whole, squared_norm):
    """The state after the active block has received a row."""
    return DyadicState(
        block, whole, state.spectrum, state.dense, state.phase, state.size, state.error,
        state.mass + squared_norm, state.rows + 1, state.frozen, state.shed, state.weighted,
        state.total + squared_norm, state.dust,
    )  # fmt: skip


@compiled
def rebuild(whole, spectrum, block, shed):
    """All blocks together: the frozen eigenvectors under the present ridge, then the active block's rows."""
    ridge = block.reg + block.compensation * (shed + block.shed)
    frozen = spectrum.size
    capacity = min(frozen + block.space.basis.shape[0], whole.basis.shape[1])
    fresh = subspace(whole.basis, capacity, ridge)
    fill(fresh.basis[:frozen], whole.basis[:frozen])
    log_det = fresh.log_det
    for i in range(frozen):
        fresh.root[i, i] = 1.0 / np.sqrt(spectrum[i] + ridge)
        log_det += np.log1p(spectrum[i] / ridge)
    whole = Subspace(fresh.basis, fresh.root, frozen, ridge, log_det)
    rows = sketch_rows(block)
    for i in range(rows.shape[0]):
        whole, _ = extend(whole, rows[i])
    return whole


@compiled
def joined(whole, spectrum, block, shed):
    """The frozen blocks and one more: their common space with a diagonal root, and the eigenvalues of S^T S on it.

    From the rows, not from the root: the root knows an eigenvalue v of S^T S to eps v sqrt(v / ridge) only.
    """
    frozen, held = spectrum.size, block.space.used
    ridge, dim = block.reg + block.compensation * (shed + block.shed), whole.basis.shape[1]
    if frozen + held == 0:
        return subspace(whole.basis, 0, ridge), np.empty(0)
    stacked = np.empty((frozen + held, dim))
    for i in range(frozen):
        scale = np.sqrt(spectrum[i])
        for j in range(dim):
            stacked[i, j] = scale * whole.basis[i, j]
    fill(stacked[frozen:], sketch_rows(block))
    _, singular, vectors = svd(stacked)
    used, least = 0, 10.0 * np.finfo(whole.basis.dtype).eps * singular[0]
    while used < singular.size and singular[used] > least:
        used += 1
    space = subspace(whole.basis, used, ridge)
    fill(space.basis, vectors[:used])
    values, log_det = np.empty(used), space.log_det
    for i in range(used):
        values[i] = singular[i] ** 2
        space.root[i, i] = 1.0 / np.sqrt(values[i] + ridge)
        log_det += np.log1p(values[i] / ridge)
    return Subspace(space.basis, space.root, used, ridge, log_det), values


@compiled
def tidied(state):
    """The active block without the directions that are nothing but rounding, if all that it may shed allows it.

    What it sheds in all stays below error size / size_i, as by the rule of masses: so does the sum over blocks.
    """
    block = state.block
    values, vectors = decomposed(block)
    place = first_below(values, 1, nothing(block.triangle.dtype) * values[0]) if values.size > 0 else 0
    if place == 0 or (block.shed + values[place - 1]) * block.size > state.error * state.size:
        return block
    return cut_at(block, values, vectors, place)


@compiled
def freeze(state):
    """Add the active block to the frozen ones, and begin one of twice the size (or the exact phase).

    A block that has cut nothing but rounding is frozen as it is, any other one is shrunk.
    """
    block = state.block
    if block.shed > nothing(block.triangle.dtype) * block.mass:
        block = shrink(block)
    whole = state.whole if state.frozen > 0 else block.space
    whole, spectrum = joined(whole, state.spectrum, block, state.shed)
    frozen = state.frozen + 1
    dim = whole.basis.shape[1]
    phase = SKETCHED if frozen < most_blocks(dim, state.size) - 1 else ADDED
    if phase == SKETCHED:
        following = new_sketch(whole.basis, 2 * block.size, block.reg, block.compensation)
        whole = enlarge(whole, min(whole.used + 2 * following.size, dim))
    else:  # no rows will come to this block: it needs no room
        following = new_sketch(whole.basis[:, :0], 2 * block.size, block.reg, block.compensation)
    return DyadicState(
        following, whole, spectrum, state.dense, phase, state.size, state.error, 0.0, 0, frozen,
        state.shed + block.shed, state.weighted + block.weighted, state.total, state.dust + block.dust,
    )  # fmt: skip


@compiled
def fits(state, row, squared_norm):
    """Whether the active block takes the row: by its mass, or because it would not have to shrink."""
    if state.mass + squared_norm < state.error * state.size:
        return True
    space, size = state.block.space, state.block.size
    if state.rows + 1 < size or space.used > size - 1:
        return False
    if space.used < size - 1:
        return True
    _, _, length = split(space.basis[: space.used], row)
    return length == 0.0


@compiled
def add(state, row, squared_norm):
    """A row of the exact phase; the dense root takes over at dim / 2 directions."""
    whole, dense, phase = state.whole, state.dense, state.phase
    dim = whole.basis.shape[1]
    if phase == DENSE:
        dense = contract.append(dense, row)
    else:
        whole, _ = extend(with_room(whole), row)
        if 2 * whole.used >= dim - 1:
            phase = DENSE
            dense = densify(whole)
            whole = subspace(whole.basis, 0, whole.ridge)
    return DyadicState(
        state.block, whole, state.spectrum, dense, phase, state.size, state.error, state.mass, state.rows + 1,
        state.frozen, state.shed, state.weighted, state.total + squared_norm, state.dust,
    )  # fmt: skip


@compiled
def with_room(whole):
    """The subspace with room for one more direction.

    `whole` may hold more directions than frozen and active blocks count together: rows that are nearly in the span of
    the one need not be in the span of the other.
    """
    capacity, dim = whole.basis.shape
    return enlarge(whole, min(capacity + capacity // 2 + 8, dim)) if whole.used == capacity < dim else whole


@compiled
def densify(whole):
    """The subspace as an exact design."""
    dense = new_exact(whole.basis, whole.ridge)
    identity = np.eye(dense.root.shape[0], dtype=dense.root.dtype)
    for j in range(dense.root.shape[0]):
        column = root_in(whole, identity[j])
        for i in range(column.size):
            dense.root[i, j] = column[i]
    fill(dense.gram, matrix_in(whole))
    return ExactState(dense.root, dense.gram, dense.recent, 0, 0, whole.ridge, whole.log_det)


@compiled
def roomy(block):
    """Whether a tidied block can go on for a while: a quarter of it is free, so that it is not tidied at every row."""
    return block.space.used + block.size // 4 < block.size


@compiled
def with_tidied(state):
    """The state with its active block tidied, and the space that answers made anew if that took directions out."""
    block = tidied(state)
    whole = state.whole
    if state.frozen > 0 and block.space.used < state.block.space.used:
        whole = rebuild(whole, state.spectrum, block, state.shed)
    return DyadicState(
        block, whole, state.spectrum, state.dense, state.phase, state.size, state.error, state.mass, state.rows,
        state.frozen, state.shed, state.weighted, state.total, state.dust,
    )  # fmt: skip


@contract.append.for_state(DyadicState)
def append(state, row):
    squared_norm = float(dot(row, row))
    if state.phase != SKETCHED:
        return add(state, row, squared_norm)
    if not fits(state, row, squared_norm):
        state = with_tidied(state)
        if not (roomy(state.block) and fits(state, row, squared_norm)):
            state = freeze(state)
        if state.phase != SKETCHED:
            return add(state, row, squared_norm)
    used, shed = state.block.space.used, state.block.shed
    block = receive(state.block, row, state.frozen == 0)
    whole = state.whole
    if state.frozen > 0:
        if block.space.used < used or block.shed > shed:
            whole = rebuild(whole, state.spectrum, block, state.shed)
        else:
            whole, _ = extend(with_room(whole), row)
    return with_block(state, block, whole, squared_norm)


@contract.append_rows.for_state(DyadicState)
def append_rows(state, rows):
    for i in range(rows.shape[0]):
        state = contract.append(state, rows[i])
    return state


@compiled
def current(state):
    """The subspace that answers while there is no dense root."""
    return state.block.space if state.phase == SKETCHED and state.frozen == 0 else state.whole


@contract.solve.for_state(DyadicState)
def solve(state, b):
    return contract.solve(state.dense, b) if state.phase == DENSE else solve_in(current(state), b)


@contract.inverse_quadratic.for_state(DyadicState)
def inverse_quadratic(state, rows):
    if state.phase == DENSE:
        return contract.inverse_quadratic(state.dense, rows)
    return inverse_quadratic_in(current(state), rows)


@contract.root.for_state(DyadicState)
def root(state, z):
    return contract.root(state.dense, z) if state.phase == DENSE else root_in(current(state), z)


@contract.log_det.for_state(DyadicState)
def log_det(state):
    return state.dense.log_det if state.phase == DENSE else current(state).log_det


@contract.error_bound.for_state(DyadicState)
def error_bound(state):
    block = state.block
    lost = max(block.compensation, 1.0 - block.compensation) * (state.shed + block.shed)
    rounded = rounding(np.finfo(state.whole.basis.dtype).eps, state.total, block.reg)
    if state.phase != SKETCHED:  # rows are in the root only, which knows an eigenvalue v to eps v sqrt(v / reg)
        rounded *= np.sqrt(1.0 + state.total / block.reg)
    return lost + state.dust + block.dust + rounded


@contract.confidence_radius.for_state(DyadicState)
def confidence_radius(state, rounds, noise, parameter_bound, row_bound, delta):
    """All blocks together span the frozen directions and those of the active block; exact rows may fill all of R^d."""
    block, dim = state.block, max(state.whole.basis.shape[1], state.dense.root.shape[0])
    held = dim
    if state.phase == SKETCHED:
        held = min(dim, state.spectrum.size + max(2 * block.size, block.space.basis.shape[0]))
    return sketched_radius(
        dim, block.reg, state.shed + block.shed, state.weighted + block.weighted, held, block.compensation,
        rounds, noise, parameter_bound, row_bound, delta,
    )  # fmt: skip


@contract.matrix.for_state(DyadicState)
def matrix(state):
    """ridge I, the frozen spectrum, and the active block's rows; the inverse root only where no rows are kept."""
    if state.phase == DENSE:
        return contract.matrix(state.dense)
    if state.phase == ADDED:
        return matrix_in(state.whole)
    rows = sketch_rows(state.block).astype(np.float64)
    frozen = state.whole.basis[: state.spectrum.size].astype(np.float64)
    ridge = state.block.reg + state.block.compensation * (state.shed + state.block.shed)
    held = dot(frozen.T * state.spectrum, frozen)
    return ridge * np.eye(rows.shape[1]) + held + dot(rows.T, rows)


@contract.spectrum.for_state(DyadicState)
def spectrum_of_dyadic(state):
    return contract.spectrum(state.dense) if state.phase == DENSE else spectrum_in(current(state))


@savable
class Dyadic(Design):
    """Dyadic blocks of Frequent Directions: the sketch grows until ||A - A_hat|| <= 2 error is certain.

    size l0: of the first block, from 1 to dim; error > 0: the bound's half; base: "fd" or "rfd" (compensated).
    With log2(dim / size + 1) < 2 there is room for one block only, so every row is exact. ValueError elsewhere.

    >>> import onepass as op
    >>> design = op.Dyadic(dim=8, size=2, error=1.0)
    >>> design.append([[1.0, 0, 0, 0, 0, 0, 0, 0]] * 100).blocks
    [2]
    """

    def __init__(
        self, *, dim: int, size: int, error: float, reg: float = 1.0, base: str = "fd", dtype: str = "float64"
    ):
        self.params = common(dim, reg, dtype)
        self.params["size"] = check.integer("size", size, 1, self.dim, "use Exact for a design without a sketch")
        self.params["error"] = check.positive("error", error)
        self.params["base"] = check.choice("base", base, ("fd", "rfd"))
        compensation = 1.0 if base == "rfd" else 0.0
        self.state = new_dyadic(
            like(self.dim, dtype), self.params["size"], self.params["error"], self.params["reg"], compensation
        )

    @property
    def blocks(self) -> list[int]:
        """Sizes of the blocks begun so far, the active one last; no active block in the exact phase."""
        count = self.state.frozen + (1 if self.state.phase == SKETCHED else 0)
        return [self.state.size * 2**i for i in range(count)]

    def consistent(self, s: DyadicState) -> bool:
        """Whether counters and shapes of a loaded state fit together."""
        capacity, dim = s.whole.basis.shape[0], self.dim
        whole = s.whole.basis.shape == (capacity, dim) and s.whole.root.shape == (capacity, capacity)
        counts = 0 <= s.whole.used <= capacity and 0 <= s.frozen < max(most_blocks(dim, self.params["size"]), 1)
        held = s.spectrum.size <= (s.whole.used if s.phase != DENSE else dim)
        dense = s.dense.root.shape == s.dense.gram.shape == (2 * (dim if s.phase == DENSE else 0,))
        recent = s.dense.recent.shape[1] == s.dense.root.shape[0] and 0 <= s.dense.waiting < s.dense.recent.shape[0]
        block = sketch_consistent(s.block, dim if s.phase == SKETCHED else 0)
        return s.phase in (SKETCHED, ADDED, DENSE) and whole and counts and held and dense and recent and block
