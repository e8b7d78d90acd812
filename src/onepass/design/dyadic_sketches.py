"""Dyadic blocks of any sketch whose error has a bound (Wen, Yin et al. algorithm 1, theorem 1).

A sketch states xi if ||A - A_hat||_2 <= xi * mass for all rows, where mass is the sum of their squared norms
(`contract.loss_share`). Blocks have the shares xi, xi / 2, xi / 4, ...; only the last is active. Block i, counted from
0, takes a row while its own error stays within its budget:

    loss_after(block, row) <= error / 2^i     so     ||A - A_hat||_2 <= sum over blocks of error / 2^i <= 2 error

With A_i the matrix of block i, the whole is A_hat = reg I + sum of (A_i - reg I) (Wen, Yin et al. lemma 3).

By default `loss_after` is xi times the mass including the row. With this, Frequent Directions of size l (xi = 1 / l)
take rows while mass < error * l, which is Wen, Yin et al.'s rule. A sketch that knows its error more exactly registers
`loss_after` itself. Frequent Directions compute the cut that the row would cause. Then a block whose rank stays below
its buffer never ends, and blocks end later. Wen, Yin et al. leave such a rule as an open question (section 6). It keeps
the bound 2 error, because only the budgets enter the proof.

If a row does not fit, the block is frozen and a refined one begins. Rows are added exactly once frozen blocks, a new
one and one of twice its size would keep more than dim directions together. For Frequent Directions this is after
floor(log2(dim / size + 1)) - 1 blocks, as in Wen, Yin et al.

A frozen block is held by its eigenvectors, together with earlier ones. If the active block took a row without loss, the
common inverse takes the row too; otherwise it is computed again from the active block's spectrum. A row costs the row
of the sketch and O(dim n) for the n directions held, or O(dim n l) if the inverse is computed again.

Two designs merge without a cut: the blocks of one become frozen blocks of the other. Both errors add up, so n merged
designs have an error of at most 2 n error. Random sketches keep this as well, because the sum of errors exceeds the sum
of bounds only if one error exceeds its bound. The confidence radius follows from the error bound
(estimator/radii.py).

`Dyadic` is the faster special form for Frequent Directions. Its radius is smaller, because it comes from their
spectrum.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design import contract
from onepass.design.decay import scale_space
from onepass.design.design import Design
from onepass.design.dyadic_blocks import add_rows_to_frozen, join_blocks, rows_above_ridge, with_ridge, with_room
from onepass.design.subspace import (
    Subspace,
    extend,
    init_subspace,
    inverse_gram_in,
    inverse_quadratic_in,
    is_valid_subspace,
    matrix_in,
    root_in,
    solve_in,
    spectrum_in,
)
from onepass.design.truncation import Sums, add_mass, add_sums, is_valid_sums, scale_sums
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot, inverse_root_error
from onepass.foundation.registry import savable
from onepass.foundation.state import is_abstract, zeros

BLOCKS, EXACT = 0, 1


class DyadicSketchesSettings(NamedTuple):
    """Settings: `error` is half of the bound of ||A - A_hat||_2, `reg` the regularization."""

    error: float
    reg: float


class DyadicSketchesState(NamedTuple):
    """State of dyadic blocks over a sketch: closed blocks, which are frozen, and one active block that takes rows.

    - active: the active block. Once rows are added exactly, it has no room.
    - whole: inverse of all blocks together. Its first len(spectrum) directions are those of the frozen blocks. Not used
      before a block is frozen.
    - spectrum (n,): eigenvalues of the sum of the frozen blocks' matrices, each without its ridge.
    - phase: 1 once rows are added to `whole` exactly.
    - frozen, held: number of frozen blocks, and of the directions that they keep together.
    - mass: sum of squared norms of the active block's rows.
    - lost, raised: error of the frozen blocks, and how much they have raised the ridge.
    - sums: sum of all rows' squared norms, and totals of what the frozen blocks have cut off.
    """

    active: Any
    whole: Subspace
    spectrum: np.ndarray
    phase: int
    frozen: int
    held: int
    mass: float
    lost: float
    raised: float
    sums: Sums
    settings: DyadicSketchesSettings


@compiled
def is_full(held: int, size: int, dim: int) -> bool:
    """Return True if rows must be added exactly, because the blocks would keep more than `dim` directions together.

    The closed blocks keep `held` directions, the new block keeps `size`, and the block after it twice as many.
    """
    return held + 3 * size > dim


@compiled
def budget(state: DyadicSketchesState) -> float:
    """Return error / 2^i, the largest error that the active block may have, where i blocks were closed before."""
    return state.settings.error / 2.0**state.frozen


@compiled
def rows_of_active(active: Any) -> tuple[np.ndarray, float]:
    """Return rows X for which X^T X is the active block's matrix without the ridge, and return the ridge."""
    values, vectors, ridge = contract.spectrum(active)
    return rows_above_ridge(values, vectors, ridge), ridge


@compiled
def join_active(whole: Subspace, spectrum: np.ndarray, active: Any, raised: float) -> Subspace:
    """Return the common inverse of the closed blocks and the active block.

    `whole` and `spectrum` hold the eigenvectors and eigenvalues of the closed blocks, and `raised` is how much these
    blocks have raised the ridge.
    """
    rows, ridge = rows_of_active(active)
    return add_rows_to_frozen(whole, spectrum, rows, ridge + raised, rows.shape[0])


@compiled
def freeze(state: DyadicSketchesState) -> DyadicSketchesState:
    """Return the state after the active block was closed, and a finer block begun.

    If no finer block fits, rows are added exactly from then on.
    """
    reg, (rows, ridge) = state.settings.reg, rows_of_active(state.active)
    raised = state.raised + (ridge - reg)
    whole, spectrum = join_blocks(state.whole, state.spectrum, rows, reg + raised)
    following = contract.refine(state.active)
    held = min(state.held + contract.sketch_size(state.active), whole.basis.shape[1])
    full = is_full(held, contract.sketch_size(following), whole.basis.shape[1])
    if full:
        following = contract.close(following)
    return DyadicSketchesState(
        active=following,
        whole=whole,
        spectrum=spectrum,
        phase=EXACT if full else BLOCKS,
        frozen=state.frozen + 1,
        held=held,
        mass=0.0,
        lost=state.lost + contract.error_bound(state.active) + state.whole.left,
        raised=raised,
        sums=add_sums(state.sums, add_mass(contract.sums(state.active), -contract.sums(state.active).mass)),
        settings=state.settings,
    )


@compiled
def with_block(
    state: DyadicSketchesState, active: Any, whole: Subspace, mass: float, sums: Sums
) -> DyadicSketchesState:
    """Return the state with other values of the fields `active`, `whole`, `mass` and `sums`.

    They are the active block, the inverse of the sum of all blocks' matrices, the sum of squared norms of the active
    block's rows, and the totals of rows and cuts.
    """
    return DyadicSketchesState(
        active=active,
        whole=whole,
        spectrum=state.spectrum,
        phase=state.phase,
        frozen=state.frozen,
        held=state.held,
        mass=mass,
        lost=state.lost,
        raised=state.raised,
        sums=sums,
        settings=state.settings,
    )


@contract.append.for_state(DyadicSketchesState)
def append(state: DyadicSketchesState, row: np.ndarray) -> DyadicSketchesState:
    squared_norm = float(dot(row, row))
    while state.phase == BLOCKS and contract.loss_after(state.active, row, state.mass + squared_norm) > budget(state):
        state = freeze(state)
    sums = add_mass(state.sums, squared_norm)
    if state.phase == EXACT:
        whole, _ = extend(with_room(state.whole), row)
        return with_block(state, state.active, whole, 0.0, sums)
    before, active, whole = contract.sums(state.active), contract.append(state.active, row), state.whole
    if state.frozen > 0:
        now = contract.sums(active)
        if now.mass > before.mass and now.shed == before.shed and now.dust == before.dust:
            whole, _ = extend(with_room(whole), row)
        else:
            whole = join_active(whole, state.spectrum, active, state.raised)
    return with_block(state, active, whole, state.mass + squared_norm, sums)


@compiled
def is_one_block(state: DyadicSketchesState) -> bool:
    """Return True while no block was closed, so that the active block alone represents the design."""
    return state.phase == BLOCKS and state.frozen == 0


@contract.solve.for_state(DyadicSketchesState)
def solve(state: DyadicSketchesState, b: np.ndarray) -> np.ndarray:
    return contract.solve(state.active, b) if is_one_block(state) else solve_in(state.whole, b)


@contract.inverse_quadratic.for_state(DyadicSketchesState)
def inverse_quadratic(state: DyadicSketchesState, rows: np.ndarray) -> np.ndarray:
    if is_one_block(state):
        return contract.inverse_quadratic(state.active, rows)
    return inverse_quadratic_in(state.whole, rows)


@contract.inverse_gram.for_state(DyadicSketchesState)
def inverse_gram(state: DyadicSketchesState, rows: np.ndarray) -> np.ndarray:
    return contract.inverse_gram(state.active, rows) if is_one_block(state) else inverse_gram_in(state.whole, rows)


@contract.root.for_state(DyadicSketchesState)
def root(state: DyadicSketchesState, z: np.ndarray) -> np.ndarray:
    return contract.root(state.active, z) if is_one_block(state) else root_in(state.whole, z)


@contract.log_det.for_state(DyadicSketchesState)
def log_det(state: DyadicSketchesState) -> float:
    return contract.log_det(state.active) if is_one_block(state) else state.whole.log_det


@contract.spectrum.for_state(DyadicSketchesState)
def spectrum(state: DyadicSketchesState) -> tuple[np.ndarray, np.ndarray, float]:
    return contract.spectrum(state.active) if is_one_block(state) else spectrum_in(state.whole)


@contract.matrix.for_state(DyadicSketchesState)
def matrix(state: DyadicSketchesState) -> np.ndarray:
    return contract.matrix(state.active) if is_one_block(state) else matrix_in(state.whole)


@contract.error_bound.for_state(DyadicSketchesState)
def error_bound(state: DyadicSketchesState) -> float:
    """Return the bound of the design's error: the sum of the blocks' bounds, and rounding of the common inverse."""
    own = contract.error_bound(state.active) if state.phase == BLOCKS else 0.0
    if is_one_block(state):
        return own
    eps = float(np.finfo(state.whole.basis.dtype).eps)
    return state.lost + own + state.whole.left + inverse_root_error(eps, state.sums.mass, state.settings.reg)


@contract.sums.for_state(DyadicSketchesState)
def sums(state: DyadicSketchesState) -> Sums:
    """Return the totals of what all blocks have cut off, with the sum of all rows' squared norms."""
    active = contract.sums(state.active)
    return add_sums(state.sums, add_mass(active, -active.mass))


@contract.regularization.for_state(DyadicSketchesState)
def regularization(state: DyadicSketchesState) -> float:
    return state.settings.reg


@contract.decay.for_state(DyadicSketchesState)
def decay(state: DyadicSketchesState, factor: float) -> DyadicSketchesState:
    """Return the state in which past rows count `factor` times, in every block; error bounds shrink likewise."""
    active, values, whole, raised = state.active, factor * state.spectrum, state.whole, factor * state.raised
    if state.phase == EXACT:
        whole = scale_space(whole, factor, state.settings.reg)
    else:
        active = contract.decay(active, factor)
        if state.frozen > 0:
            whole = join_active(whole, values, active, raised)
    return DyadicSketchesState(
        active=active,
        whole=whole,
        spectrum=values,
        phase=state.phase,
        frozen=state.frozen,
        held=state.held,
        mass=factor * state.mass,
        lost=factor * state.lost,
        raised=raised,
        sums=scale_sums(state.sums, factor),
        settings=state.settings,
    )


@contract.merge.for_state(DyadicSketchesState)
def merge(state: DyadicSketchesState, other: DyadicSketchesState) -> DyadicSketchesState:
    """Merge two states: what one holds becomes a frozen block of the one that has more blocks."""
    ours, theirs = (state.phase, state.frozen), (other.phase, other.frozen)
    base, guest = (state, other) if ours >= theirs else (other, state)
    if guest.sums.mass == 0.0:
        return base
    if base.sums.mass == 0.0:
        return guest
    values, vectors, ridge = contract.spectrum(guest)
    rows, added = rows_above_ridge(values, vectors, ridge), ridge - guest.settings.reg
    if is_one_block(base):
        base = freeze(base)
    raised, lost = base.raised + added, base.lost + base.whole.left + contract.error_bound(guest)
    whole, held_values = base.whole, base.spectrum
    if base.phase == EXACT:
        for i in range(rows.shape[0]):
            whole, _ = extend(with_room(whole), rows[i])
        if added > 0.0:
            lost += whole.left
            whole = with_ridge(whole, whole.ridge + added)
    else:
        whole, held_values = join_blocks(whole, base.spectrum, rows, base.settings.reg + raised)
        whole = join_active(whole, held_values, base.active, raised)
    return DyadicSketchesState(
        active=base.active,
        whole=whole,
        spectrum=held_values,
        phase=base.phase,
        frozen=base.frozen,
        held=min(base.held + rows.shape[0], whole.basis.shape[1]),
        mass=base.mass,
        lost=lost,
        raised=raised,
        sums=add_sums(base.sums, contract.sums(guest)),
        settings=base.settings,
    )


@savable
class DyadicSketches(Design):
    """Dyadic blocks of any sketch whose error is at most a known multiple of the sum of squared row lengths.

    A = reg I + sum of x x^T is the matrix of the rows x, and A_hat the matrix that the blocks stand for. The error, the
    spectral norm ||A - A_hat||_2, is at most 2 `error`. This is certain if the error bound of `sketch` is; over
    `RandomProjection` it holds with some probability, see the Notes. `Dyadic` is the faster form for Frequent
    Directions.

    Parameters
    ----------
    sketch : Design
        Sketch of the first block, without rows: `FrequentDirections` with any compensation, `RandomProjection`, or a
        sketch of your own. Yours must register `loss_share` and `refine`, and have a method `refine`
        (docs/contributing/design.md).
    error : float
        Half of the bound of ||A - A_hat||_2, above 0, in the unit of the squared length ||x||^2 of a row.

    Raises
    ------
    ValueError
        If the sketch holds rows or has no known bound of its error, or `error` is not above 0.

    Notes
    -----
    Each block may use up a share of `error`. It is closed when the next row would exceed this share, and a block with a
    finer sketch is opened. Over `FrequentDirections` there are at most as many blocks as with `Dyadic`. With
    compensation 0.5 (Luo et al. 2019), only half of what is cut off is an error. Over `RandomProjection`, each block
    keeps its bound with probability 1 - `delta`, and so there is no confidence radius (`Theory`).

    The error of n merged designs is at most 2 n `error`.

    References
    ----------
    Wen, Yin et al., *Revisiting Matrix Sketching in Linear Bandits*, algorithm 1 and
    theorem 1.

    Examples
    --------
    >>> import onepass as op
    >>> from onepass.design import DyadicSketches
    >>> design = DyadicSketches(op.FrequentDirections(dim=8, size=2, compensation=0.5), error=1.0)
    >>> design.append([[1.0, 0, 0, 0, 0, 0, 0, 0]] * 100).n_blocks
    1
    """

    def __init__(self, sketch: Design, *, error: float) -> None:
        if not isinstance(sketch, Design) or sketch.has_learned:
            raise ValueError(f"sketch must be a design without rows, got {quote(sketch)}")
        if type(sketch).refine is Design.refine:
            raise ValueError(
                "sketch must state its share of lost mass (contract.loss_share, contract.refine, method refine), "
                f"got {quote(sketch)}"
            )
        self.params = {"sketch": sketch, "error": check.positive("error", error)}

    @property
    def sketch(self) -> Design:
        """Sketch, without rows, from which the first block is made."""
        return self.params["sketch"]

    @property
    def dim(self) -> int:
        """Number of features d of a row."""
        return self.sketch.dim

    @property
    def dtype(self) -> np.dtype:
        """Data type of all arrays of the design, float64 or float32."""
        return self.sketch.dtype

    @property
    def reg(self) -> float:
        """Ridge penalty reg of A = reg I + sum of x x^T, in the unit of the squared length of a row."""
        return self.sketch.reg

    @property
    def error_is_certain(self) -> bool:  # type: ignore[override]
        """False if the error bound of the sketch holds only with some probability."""
        return self.sketch.error_is_certain

    @property
    def n_blocks(self) -> int:
        """Number of blocks so far, with the active one; there is no active block while rows are added exactly."""
        return self.state.frozen + (1 if self.state.phase == BLOCKS else 0)

    def begin(self) -> DyadicSketchesState:
        active = self.sketch.begin()
        full = is_full(0, int(contract.sketch_size(active)), self.dim)
        if full and not is_abstract():
            active = contract.close(active)
        return DyadicSketchesState(
            active=active,
            whole=init_subspace(self.dim, 0, self.reg, self.dtype),
            spectrum=zeros(0),
            phase=EXACT if full else BLOCKS,
            frozen=0,
            held=0,
            mass=0.0,
            lost=0.0,
            raised=0.0,
            sums=Sums(mass=0.0, shed=0.0, weighted=0.0, dust=0.0),
            settings=DyadicSketchesSettings(error=self.params["error"], reg=self.reg),
        )

    def consistent(self, state: DyadicSketchesState) -> bool:
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
        return (
            state.settings == self.abstract_state.settings
            and state.phase in (BLOCKS, EXACT)
            and 0 <= state.held <= self.dim
            and 0 <= state.frozen <= self.dim.bit_length()
            and min(state.mass, state.lost, state.raised) >= 0.0
            and is_valid_sums(state.sums)
            and bool((state.spectrum >= 0.0).all())
            and is_valid_subspace(state.whole, self.dim)
            and state.spectrum.size <= state.whole.used
            and (
                is_valid_sums(contract.sums(state.active))  # all that is read of a closed block
                if state.phase == EXACT
                else self.sketch.refine(state.frozen).consistent(state.active)
            )
        )
