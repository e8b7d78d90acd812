"""Blocks of Frequent Directions as one inverse: the frozen blocks by their common spectrum, and the active block.

Blocks are not orthogonal to each other. So their rows are put together, and not their inverses. See dyadic.py.
"""

import numpy as np

from onepass.design.exact import ExactState, init_exact_like, replace_counters
from onepass.design.frequent_directions import FrequentDirectionsState, ridge_of, sketch_rows
from onepass.design.subspace import (
    Subspace,
    enlarge,
    extend,
    init_subspace_like,
    matrix_in,
    root_in,
    spectrum_in,
    subspace_from_spectrum,
)
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import NEGLIGIBLE, fill, svd

ROOM = 8  # directions beside half of those held, when a basis grows


@compiled
def rebuild(whole: Subspace, spectrum: np.ndarray, block: FrequentDirectionsState, shed: float) -> Subspace:
    """Return the common subspace of all blocks of a dyadic sketch, closed ones and the active one.

    The first directions of `whole` are the eigenvectors of the closed blocks, and `spectrum` holds their eigenvalues.
    `block` is the active block, and `shed` the total that the closed blocks have cut off.
    """
    ridge = ridge_of(block.settings, shed + block.sums.shed)
    return add_rows_to_frozen(whole, spectrum, sketch_rows(block), ridge, block.space.basis.shape[0])


@compiled
def add_rows_to_frozen(whole: Subspace, spectrum: np.ndarray, rows: np.ndarray, ridge: float, room: int) -> Subspace:
    """Return the common subspace of the closed blocks of a dyadic sketch and of more rows, with the given ridge.

    The first directions of `whole` are the eigenvectors of the closed blocks, and `spectrum` holds their eigenvalues.
    There is room for `room` further directions.
    """
    frozen = spectrum.size
    fresh = init_subspace_like(whole.basis, min(frozen + room, whole.basis.shape[1]), ridge)
    fill(fresh.basis[:frozen], whole.basis[:frozen])
    log_det = fresh.log_det
    for i in range(frozen):
        fresh.root[i, i] = 1.0 / np.sqrt(spectrum[i] + ridge)
    for i in range(frozen):
        log_det += np.log1p(spectrum[i] / ridge)
    whole = Subspace(basis=fresh.basis, root=fresh.root, used=frozen, ridge=ridge, log_det=log_det, left=0.0)
    for i in range(rows.shape[0]):
        whole, _ = extend(whole, rows[i])
    return whole


@compiled
def join_blocks(whole: Subspace, spectrum: np.ndarray, rows: np.ndarray, ridge: float) -> tuple[Subspace, np.ndarray]:
    """Return the common subspace of the closed blocks of a dyadic sketch and of more rows, and its eigenvalues.

    `whole` and `spectrum` hold the eigenvectors and eigenvalues of the closed blocks. The new eigenvalues are those of
    S^T S for the rows S of all blocks together. They are computed from the rows, because the root of the inverse would
    give an eigenvalue v only up to eps v sqrt(v / ridge).
    """
    frozen, held, dim = spectrum.size, rows.shape[0], whole.basis.shape[1]
    if frozen + held == 0:
        return init_subspace_like(whole.basis, 0, ridge), np.empty(0)
    stacked = np.empty((frozen + held, dim))
    for i in range(frozen):
        scale = np.sqrt(spectrum[i])
        for j in range(dim):
            stacked[i, j] = scale * whole.basis[i, j]
    fill(stacked[frozen:], rows)
    _, singular, vectors = svd(stacked)
    used, least = 0, NEGLIGIBLE * np.finfo(whole.basis.dtype).eps * singular[0]
    while used < singular.size and singular[used] > least:
        used += 1
    space, values = init_subspace_like(whole.basis, used, ridge), np.empty(used)
    fill(space.basis, vectors[:used])
    log_det = space.log_det
    for i in range(used):
        values[i] = singular[i] ** 2
        space.root[i, i] = 1.0 / np.sqrt(values[i] + ridge)
    for i in range(used):
        log_det += np.log1p(values[i] / ridge)
    return Subspace(basis=space.basis, root=space.root, used=used, ridge=ridge, log_det=log_det, left=0.0), values


@compiled
def rows_above_ridge(values: np.ndarray, vectors: np.ndarray, ridge: float) -> np.ndarray:
    """Return rows X (k, dim) for which X^T X is a matrix with the given spectrum minus ridge I.

    values (k,) are its eigenvalues, and vectors (k, dim) its eigenvectors as rows.
    """
    rows = np.empty_like(vectors)
    for i in range(values.size):
        scale = np.sqrt(max(values[i] - ridge, 0.0))
        for j in range(rows.shape[1]):
            rows[i, j] = vectors[i, j] * scale
    return rows


@compiled
def stack_rows(whole: Subspace, spectrum: np.ndarray, block: FrequentDirectionsState) -> np.ndarray:
    """Return rows that represent all blocks: scaled eigenvectors of closed blocks, then rows of the active block.

    `spectrum` holds m eigenvalues, and the first m directions of the subspace `whole` are their eigenvectors. Each is
    multiplied by the square root of its eigenvalue. Further directions of `whole` are not used. `block` is the active
    block.
    """
    frozen, rows = spectrum.size, sketch_rows(block)
    out = np.empty((frozen + rows.shape[0], whole.basis.shape[1]), whole.basis.dtype)
    fill(out[:frozen], rows_above_ridge(spectrum, whole.basis[:frozen], 0.0))
    fill(out[frozen:], rows)
    return out


@compiled
def with_ridge(whole: Subspace, ridge: float) -> Subspace:
    """Return the subspace `whole` with another ridge: the change of the ridge is added to all eigenvalues."""
    values, vectors, before = spectrum_in(whole)
    for i in range(values.size):
        values[i] += ridge - before
    return subspace_from_spectrum(vectors, values, ridge, 0.0)


@compiled
def with_room(whole: Subspace) -> Subspace:
    """Return the subspace with room for one more direction.

    `whole` may hold more directions than the frozen and the active blocks have together, because a row that is nearly
    in one span need not be in the other.
    """
    capacity, dim = whole.basis.shape
    return enlarge(whole, min(capacity + capacity // 2 + ROOM, dim)) if whole.used == capacity < dim else whole


@compiled
def densify(whole: Subspace) -> ExactState:
    """Return the exact design with the same matrix as the subspace `whole`."""
    dense = init_exact_like(whole.basis, whole.ridge)
    identity = np.eye(dense.root.shape[0], dtype=dense.root.dtype)
    for j in range(dense.root.shape[0]):
        column = root_in(whole, identity[j])
        for i in range(column.size):
            dense.root[i, j] = column[i]
    fill(dense.gram, matrix_in(whole))
    return replace_counters(dense, 0, 0, whole.log_det)
